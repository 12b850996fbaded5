//! Input: the bytes of one file, as they come.
//!
//! In: what the store gives for a file: a file of this machine, or a stream.
//! Out: more bytes at the end of a buffer, as UTF-8, decompressed.
//! Invariant: a file that is not the one which the query was planned for, or changes while it is read, is an error that
//! names it. The end of a file is where it was then.
//! Not here: records (blocks.rs).

use std::fs::File;
use std::os::unix::fs::FileExt;

use datafusion::common::{DataFusionError, Result};
use encoding_rs::{Decoder, Encoding};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetResult, GetResultPayload, ObjectMeta};

use crate::error::Error;
use crate::runtime::accounted::Bytes;
use crate::scan::decompression::{DecompressedFile, Decompression};
use crate::scan::steady::{changed, is_same};

/// Bytes that are read at once.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// An open file of this machine.
#[derive(Debug)]
pub(crate) struct LocalFile {
    file: File,
    planned: ObjectMeta,
    name: String,
}

impl LocalFile {
    /// The file as it was planned, or an error.
    pub(crate) fn new(file: File, planned: ObjectMeta, name: String) -> Result<LocalFile> {
        let file = LocalFile {
            file,
            planned,
            name,
        };
        file.check()?;
        Ok(file)
    }

    /// Its bytes from `at`, appended.
    pub(crate) fn read(&self, at: u64, bytes: usize, into: &mut Vec<u8>) -> Result<()> {
        let before = into.len();
        into.resize(before + bytes, 0);
        let read = self.file.read_exact_at(&mut into[before..], at);
        self.check()?;
        read.map_err(|error| self.failed(&error))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.planned.size
    }

    /// It is still what it was when the query was planned.
    fn check(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|error| self.failed(&error))?;
        match is_same(&now, &self.planned) {
            true => Ok(()),
            false => Err(changed(&self.planned.location).into()),
        }
    }

    fn failed(&self, error: &std::io::Error) -> DataFusionError {
        let error = Error::Io {
            path: self.name.clone(),
            message: error.to_string(),
        };
        error.into()
    }
}

/// Where bytes come from.
enum ByteSource {
    File {
        file: LocalFile,
        at: u64,
    },
    /// A decompressor, which blocks; the file below it.
    Read(DecompressedFile, LocalFile),
    Stream(BoxStream<'static, Result<Bytes>>),
}

/// The bytes of one file.
pub(crate) struct Input {
    source: ByteSource,
    decoder: Option<Decoder>,
    name: String,
}

impl Input {
    /// From its beginning, whatever it is.
    pub(crate) fn new(
        result: GetResult,
        planned: &ObjectMeta,
        name: &str,
        decompression: &Decompression,
    ) -> Result<Input> {
        let source = match result.payload {
            GetResultPayload::File(file, _) => {
                let file = LocalFile::new(file, planned.clone(), name.to_string())?;
                match decompression.is_needed() {
                    true => {
                        let copy = file.file.try_clone().map_err(|error| file.failed(&error))?;
                        ByteSource::Read(decompression.reader(copy, name)?, file)
                    }
                    false => ByteSource::File { file, at: 0 },
                }
            }
            GetResultPayload::Stream(stream) => {
                let stream = stream.map_err(DataFusionError::from).boxed();
                ByteSource::Stream(decompression.stream(stream, name)?)
            }
        };
        Ok(Input {
            source,
            decoder: None,
            name: name.to_string(),
        })
    }

    /// From a stream.
    pub(crate) fn of_stream(stream: BoxStream<'static, Result<Bytes>>, name: &str) -> Input {
        Input {
            source: ByteSource::Stream(stream),
            decoder: None,
            name: name.to_string(),
        }
    }

    /// Of a text in another encoding than UTF-8.
    pub(crate) fn encoded(mut self, encoding: Option<&'static Encoding>) -> Input {
        self.decoder = encoding.map(Encoding::new_decoder_with_bom_removal);
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Appends more bytes; false = there were none.
    pub(crate) async fn fill(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        if self.decoder.is_none() {
            return self.fill_raw(into).await;
        }
        let mut raw = Vec::new();
        let has_more = self.fill_raw(&mut raw).await?;
        let Some(decoder) = &mut self.decoder else {
            return Ok(has_more);
        };
        let is_valid = decode(decoder, &raw, into, has_more);
        if !has_more {
            self.decoder = None;
        }
        match is_valid {
            true => Ok(has_more),
            false => Err(self.undecodable()),
        }
    }

    fn undecodable(&self) -> DataFusionError {
        let error = Error::bad_file(
            self.name.clone(),
            "it holds bytes that are no text in its encoding; encoding => '…' names another",
        );
        error.into()
    }

    async fn fill_raw(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        match &mut self.source {
            ByteSource::File { file, at } => {
                let left = file.bytes() - *at;
                let bytes = left.min(READ_BYTES as u64);
                file.read(*at, bytes as usize, into)?;
                *at += bytes;
                Ok(bytes > 0)
            }
            ByteSource::Read(reader, file) => {
                let has_more = reader.fill(READ_BYTES, into)?;
                file.check()?;
                Ok(has_more)
            }
            ByteSource::Stream(stream) => match stream.try_next().await? {
                Some(bytes) => {
                    into.extend_from_slice(&bytes);
                    Ok(true)
                }
                None => Ok(false),
            },
        }
    }
}

/// Appends the text of `raw`; false = it is none.
fn decode(decoder: &mut Decoder, raw: &[u8], into: &mut Vec<u8>, has_more: bool) -> bool {
    let most = decoder
        .max_utf8_buffer_length(raw.len())
        .unwrap_or(raw.len());
    let mut text = String::with_capacity(most);
    let (_, _, has_errors) = decoder.decode_to_string(raw, &mut text, !has_more);
    into.extend_from_slice(text.as_bytes());
    !has_errors
}

/// The text of a beginning in an encoding; a character that is cut at its end is left out.
pub(crate) fn decoded(bytes: &[u8], encoding: &'static Encoding) -> Vec<u8> {
    let mut text = Vec::new();
    decode(
        &mut encoding.new_decoder_with_bom_removal(),
        bytes,
        &mut text,
        true,
    );
    text
}
