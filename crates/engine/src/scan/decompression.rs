//! Decompression of text files, whose windows the files themselves choose.
//!
//! In: compressed bytes as they come, the session's memory.
//! Out: the bytes that they stand for, of all members of a file.
//! Invariant: a window counts in the session's memory before it is filled, or is refused with an error that names the file. A file
//! that ends within a member is an error.
//! Not here: gzip, whose window has 32 KiB (DataFusion's reader); how a file is compressed (format.rs).

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use bzip2::{Decompress, Status as BzipStatus};
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use liblzma::stream::{Action, CONCATENATED, Error as XzError, Status as XzStatus, Stream};
use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, get_error_name};

use crate::error::Error;
use crate::runtime::accounted::{Bytes, DECODING};

/// Decompressed bytes that are handed on at once.
const OUTPUT_BYTES: usize = 256 << 10;

/// Compressed bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What bzip2 takes for blocks of 900 kB, the largest that there are.
const BZIP2_BYTES: usize = 4 << 20;

/// What xz may take at first: it says that it needs more, but not how much. It is given a quarter more each time.
const XZ_BYTES_MIN: usize = 1 << 20;

/// How files are compressed, and where the windows of decompression count.
#[derive(Clone, Debug)]
pub(crate) struct Decompression {
    compression: FileCompressionType,
    pool: Arc<dyn MemoryPool>,
}

impl Decompression {
    pub(crate) fn new(compression: FileCompressionType, pool: &Arc<dyn MemoryPool>) -> Self {
        Decompression {
            compression,
            pool: Arc::clone(pool),
        }
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.compression.is_compressed()
    }

    /// What the bytes of a file of this name stand for.
    pub(crate) fn stream(
        &self,
        bytes: BoxStream<'static, Result<Bytes>>,
        name: &str,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let Some(decompressor) = self.decompressor(name)? else {
            return self.compression.convert_stream(bytes);
        };
        let state = Streamed {
            bytes,
            chunk: Bytes::new(),
            is_over: false,
            decompressor,
        };
        let next = |mut state: Streamed| async move {
            let output = state.next().await?;
            Ok((!output.is_empty()).then(|| (Bytes::from(output), state)))
        };
        Ok(futures::stream::try_unfold(state, next).boxed())
    }

    /// What a file of this machine stands for, read by whoever wants it.
    pub(crate) fn reader(&self, file: File, name: &str) -> Result<DecompressedFile> {
        Ok(match self.decompressor(name)? {
            Some(decompressor) => DecompressedFile::Windowed(Box::new(Windowed {
                file,
                chunk: Vec::new(),
                at: 0,
                decompressor,
            })),
            None => DecompressedFile::Read(self.compression.convert_read(file)?, name.to_string()),
        })
    }

    fn decompressor(&self, name: &str) -> Result<Option<Decompressor>> {
        let codec = match self.compression.get_variant() {
            CompressionTypeVariant::XZ => Codec::Xz(
                Stream::new_stream_decoder(XZ_BYTES_MIN as u64, CONCATENATED)
                    .map_err(|error| damaged(name, &error.to_string()))?,
            ),
            CompressionTypeVariant::ZSTD => Codec::Zstd(DCtx::create()),
            CompressionTypeVariant::BZIP2 => Codec::Bzip2(Decompress::new(false)),
            CompressionTypeVariant::GZIP | CompressionTypeVariant::UNCOMPRESSED => return Ok(None),
        };
        let mut decompressor = Decompressor {
            codec,
            reservation: MemoryConsumer::new(DECODING).register(&self.pool),
            name: name.to_string(),
            is_inside: false,
        };
        let held = match &decompressor.codec {
            Codec::Xz(_) => XZ_BYTES_MIN,
            Codec::Zstd(context) => context.sizeof(),
            Codec::Bzip2(_) => BZIP2_BYTES,
        };
        decompressor.hold(held)?;
        Ok(Some(decompressor))
    }
}

fn damaged(name: &str, message: &str) -> DataFusionError {
    let error = Error::Format {
        path: name.to_string(),
        line: None,
        message: message.to_string(),
    };
    error.into()
}

enum Codec {
    Xz(Stream),
    Zstd(DCtx<'static>),
    Bzip2(Decompress),
}

/// Decompresses the members of one file, one after the other.
struct Decompressor {
    codec: Codec,
    reservation: MemoryReservation,
    name: String,
    /// Bytes of a member were read, and not all of them.
    is_inside: bool,
}

impl Decompressor {
    /// Reserves so many bytes in all.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let refused = match self.reservation.try_resize(bytes) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        Err(match Error::from(refused) {
            Error::OutOfMemory(mut out) => {
                out.operator = format!("the decompression of '{}'", self.name);
                Error::OutOfMemory(out)
            }
            other => other,
        }
        .into())
    }

    /// Appends what some bytes say, and returns how many of them were read; without bytes, what is left at the end of the file.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        output.reserve(OUTPUT_BYTES);
        let before = output.len();
        self.is_inside |= !input.is_empty();
        let read = match &mut self.codec {
            Codec::Xz(_) => self.step_xz(input, output)?,
            Codec::Zstd(_) => self.step_zstd(input, output)?,
            Codec::Bzip2(_) => self.step_bzip2(input, output)?,
        };
        match read > 0 || output.len() > before || !self.is_inside {
            true => Ok(read),
            false if input.is_empty() => Err(damaged(
                &self.name,
                "it ends within its compressed data; it is cut off or damaged",
            )),
            false => Err(damaged(&self.name, "its compressed data are damaged")),
        }
    }

    fn step_xz(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        // Members follow each other until the end is said.
        let action = match input.is_empty() {
            true => Action::Finish,
            false => Action::Run,
        };
        let mut read = 0;
        loop {
            let Codec::Xz(stream) = &mut self.codec else {
                return Ok(read);
            };
            let before = stream.total_in();
            let status = stream.process_vec(&input[read..], output, action);
            read += (stream.total_in() - before) as usize;
            match status {
                Ok(XzStatus::StreamEnd) => self.is_inside = false,
                Ok(_) => {}
                Err(XzError::MemLimit) => {
                    self.more_for_xz()?;
                    continue;
                }
                Err(error) => return Err(damaged(&self.name, &error.to_string())),
            }
            return Ok(read);
        }
    }

    /// A quarter more; what it needs is less than four gigabytes.
    fn more_for_xz(&mut self) -> Result<()> {
        let bytes = self.reservation.size() / 4 * 5;
        self.hold(bytes)?;
        match &mut self.codec {
            Codec::Xz(stream) => stream
                .set_memlimit(bytes as u64)
                .or_else(|error| match error {
                    // Not yet enough: the next step says so again.
                    XzError::MemLimit => Ok(()),
                    error => Err(damaged(&self.name, &error.to_string())),
                }),
            Codec::Zstd(_) | Codec::Bzip2(_) => Ok(()),
        }
    }

    /// The library refuses windows of more than 128 MiB. It asks the system for one when a frame begins, and fills it later.
    fn step_zstd(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        let Codec::Zstd(context) = &mut self.codec else {
            return Ok(0);
        };
        let mut source = InBuffer::around(input);
        let at = output.len();
        let mut target = OutBuffer::around_pos(output, at);
        let left = context
            .decompress_stream(&mut target, &mut source)
            .map_err(|code| damaged(&self.name, get_error_name(code)))?;
        self.is_inside = left > 0;
        let (read, held) = (source.pos(), context.sizeof());
        if held != self.reservation.size() {
            self.hold(held)?;
        }
        Ok(read)
    }

    fn step_bzip2(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        let Codec::Bzip2(member) = &mut self.codec else {
            return Ok(0);
        };
        let before = member.total_in();
        let status = member
            .decompress_vec(input, output)
            .map_err(|error| damaged(&self.name, &error.to_string()))?;
        let read = (member.total_in() - before) as usize;
        if status == BzipStatus::StreamEnd {
            *member = Decompress::new(false);
            self.is_inside = false;
        }
        Ok(read)
    }
}

/// A file that comes in pieces.
struct Streamed {
    bytes: BoxStream<'static, Result<Bytes>>,
    chunk: Bytes,
    is_over: bool,
    decompressor: Decompressor,
}

impl Streamed {
    /// More decompressed bytes; none = that was all.
    async fn next(&mut self) -> Result<Vec<u8>> {
        // Small files may stand for very long ones, and whoever waits wants to be asked now and then.
        tokio::task::coop::consume_budget().await;
        let mut output = Vec::new();
        while output.is_empty() {
            if !self.chunk.is_empty() {
                let read = self.decompressor.step(&self.chunk, &mut output)?;
                self.chunk = self.chunk.slice(read..);
            } else if !self.is_over {
                match self.bytes.try_next().await? {
                    Some(chunk) => self.chunk = chunk,
                    None => self.is_over = true,
                }
            } else if self.decompressor.is_inside {
                self.decompressor.step(&[], &mut output)?;
            } else {
                break;
            }
        }
        Ok(output)
    }
}

/// A file of this machine.
pub(crate) enum DecompressedFile {
    /// By a decompressor whose window is small; the file's name.
    Read(Box<dyn Read + Send>, String),
    Windowed(Box<Windowed>),
}

impl DecompressedFile {
    /// Appends about so many bytes; false = there were none.
    pub(crate) fn fill(&mut self, bytes: usize, into: &mut Vec<u8>) -> Result<bool> {
        let before = into.len();
        match self {
            DecompressedFile::Read(reader, name) => {
                let read = reader.take(bytes as u64).read_to_end(into);
                read.map_err(|error| damaged(name, &error.to_string()))?;
            }
            DecompressedFile::Windowed(windowed) => {
                while into.len() < before + bytes && windowed.step(into)? {}
            }
        }
        Ok(into.len() > before)
    }
}

/// Reads a part of a file to its end.
fn read_all(mut part: impl Read, into: &mut Vec<u8>, name: &str) -> Result<()> {
    match part.read_to_end(into) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Io {
            path: name.to_string(),
            message: error.to_string(),
        }
        .into()),
    }
}

/// A file whose decompressor has a window of the file's choice.
pub(crate) struct Windowed {
    file: File,
    /// Bytes of the file, of which those up to `at` were read.
    chunk: Vec<u8>,
    at: usize,
    decompressor: Decompressor,
}

impl Windowed {
    /// Appends some bytes; false = that was all.
    fn step(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        if self.at == self.chunk.len() {
            self.chunk.clear();
            self.at = 0;
            let part = (&mut self.file).take(READ_BYTES as u64);
            read_all(part, &mut self.chunk, &self.decompressor.name)?;
        }
        if self.chunk.is_empty() && !self.decompressor.is_inside {
            return Ok(false);
        }
        self.at += self.decompressor.step(&self.chunk[self.at..], into)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::UnboundedMemoryPool;

    use super::*;
    use crate::runtime::memory::SessionPool;

    const KINDS: [FileCompressionType; 3] = [
        FileCompressionType::XZ,
        FileCompressionType::ZSTD,
        FileCompressionType::BZIP2,
    ];

    fn unbounded() -> Arc<dyn MemoryPool> {
        Arc::new(UnboundedMemoryPool::default())
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::with_capacity(text.len() + 1024);
        let mut stream =
            Stream::new_easy_encoder(0, liblzma::stream::Check::Crc32).expect("an encoder");
        let status = stream.process_vec(text, &mut packed, Action::Finish);
        assert_eq!(status, Ok(XzStatus::StreamEnd));
        packed
    }

    fn packed(compression: FileCompressionType, text: &[u8]) -> Vec<u8> {
        match compression.get_variant() {
            CompressionTypeVariant::XZ => xz(text),
            CompressionTypeVariant::ZSTD => zstd::encode_all(text, 1).unwrap(),
            _ => {
                let mut packed = Vec::with_capacity(text.len() + 1024);
                let mut encoder = bzip2::Compress::new(bzip2::Compression::fast(), 0);
                let status = encoder
                    .compress_vec(text, &mut packed, bzip2::Action::Finish)
                    .unwrap();
                assert_eq!(status, BzipStatus::StreamEnd);
                packed
            }
        }
    }

    fn text(rows: usize) -> Vec<u8> {
        (0..rows)
            .flat_map(|row| format!("{row},{}\n", row * row % 977).into_bytes())
            .collect()
    }

    /// What the bytes stand for: as a stream in pieces of so many bytes, and as a file.
    fn both(decompression: &Decompression, bytes: &[u8], each: usize) -> [Result<Vec<u8>>; 2] {
        let pieces: Vec<_> = bytes
            .chunks(each)
            .map(|piece| Ok(Bytes::from(piece.to_vec())))
            .collect();
        let stream = decompression.stream(futures::stream::iter(pieces).boxed(), "x");
        let streamed = stream.and_then(|stream| {
            let all = stream.try_fold(Vec::new(), |mut all: Vec<u8>, bytes| async move {
                all.extend_from_slice(&bytes);
                Ok(all)
            });
            futures::executor::block_on(all)
        });
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let read = decompression.reader(file, "x").and_then(|mut reader| {
            let mut all = Vec::new();
            while reader.fill(each, &mut all)? {}
            Ok(all)
        });
        [streamed, read]
    }

    #[test]
    fn all_members_in_pieces_of_any_size() {
        for kind in KINDS {
            let decompression = Decompression::new(kind, &unbounded());
            let (first, second) = (text(40_000), text(3));
            let bytes = [
                packed(kind, &first),
                packed(kind, b""),
                packed(kind, &second),
            ]
            .concat();
            for each in [1, 7, 1000, 1 << 20] {
                for all in both(&decompression, &bytes, each) {
                    assert!(all.unwrap() == [first.clone(), second.clone()].concat());
                }
            }
            for all in both(&decompression, b"", 1) {
                assert!(all.unwrap().is_empty());
            }
        }
    }

    #[test]
    fn files_that_are_cut_off_or_changed_are_errors() {
        for kind in KINDS {
            let decompression = Decompression::new(kind, &unbounded());
            let bytes = packed(kind, &text(1000));
            for end in [1, 5, bytes.len() / 2, bytes.len() - 1] {
                for cut in both(&decompression, &bytes[..end], 64) {
                    assert!(cut.unwrap_err().to_string().contains('x'), "{kind:?} {end}");
                }
            }
            let behind = [&bytes[..], b"what is behind"].concat();
            for other in both(&decompression, &behind, 64) {
                assert!(other.is_err(), "{kind:?}");
            }
        }
    }

    fn crc32(bytes: &[u8]) -> u32 {
        let all = bytes.iter().fold(!0_u32, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| match sum & 1 {
                1 => sum >> 1 ^ 0xEDB8_8320,
                _ => sum >> 1,
            })
        });
        !all
    }

    #[test]
    fn a_window_has_room_or_is_refused() {
        // The first block's header lies behind the stream's twelve bytes: length, flags, filter, one byte of properties,
        // which is the size of the window; at its end is its checksum.
        let mut bytes = xz(&text(1000));
        let end = 12 + (usize::from(bytes[12]) + 1) * 4;
        assert_eq!(bytes[14..16], [0x21, 1]);
        bytes[16] = 40;
        let sum = crc32(&bytes[12..end - 4]);
        bytes[end - 4..end].copy_from_slice(&sum.to_le_bytes());
        let small: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(64 << 20));
        let decompression = Decompression::new(FileCompressionType::XZ, &small);
        for refused in both(&decompression, &bytes, 1 << 20) {
            let error = Error::from(refused.unwrap_err());
            let text = error.to_string();
            assert!(matches!(error, Error::OutOfMemory(_)), "{text}");
            assert!(
                text.contains("'x'") && text.contains("memory_limit"),
                "{text}"
            );
        }
        assert_eq!(small.reserved(), 0);
        for honest in both(&decompression, &xz(&text(1000)), 1 << 20) {
            assert_eq!(honest.unwrap(), text(1000));
        }
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        std::io::Write::write_all(&mut encoder, &text(1000)).unwrap();
        let bytes = encoder.finish().unwrap();
        let decompression = Decompression::new(FileCompressionType::ZSTD, &small);
        for refused in both(&decompression, &bytes, 1 << 20) {
            assert!(matches!(
                Error::from(refused.unwrap_err()),
                Error::OutOfMemory(_)
            ));
        }
        let large: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(1 << 30));
        let decompression = Decompression::new(FileCompressionType::ZSTD, &large);
        for honest in both(&decompression, &bytes, 1 << 20) {
            assert_eq!(honest.unwrap(), text(1000));
        }
    }
}
