//! Where results go: standard output, or a file that appears under its name only when everything has succeeded.
//! In: bytes. Out: the same bytes, compressed if the name says so, or no file at all.
//! Invariant: nothing but results is written here; a reader that has gone away is remembered and not reported.
//! Not here: messages and the progress bar, which go to standard error.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use flate2::write::GzEncoder;
use grouse::NewFile;
use grouse::open_in_place;

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// The place that results are written to.
pub struct Output {
    writer: Writer,
    target: Target,
    reader: Reader,
}

/// How the bytes of a file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip
    Gzip,
    /// zstd
    Zstd,
}

enum Writer {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Writer {
    fn new(file: File, compression: Compression) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match compression {
            Compression::None => Writer::Plain(file),
            Compression::Gzip => Writer::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            // 0 stands for the library's own level.
            Compression::Zstd => Writer::Zstd(zstd::Encoder::new(file, 0)?),
        })
    }

    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Writer::Plain(file) => file,
            Writer::Gzip(encoder) => encoder,
            Writer::Zstd(encoder) => encoder,
        }
    }

    /// Writes what has to follow the last byte.
    fn finish(self) -> io::Result<()> {
        match self {
            Writer::Plain(mut file) => file.flush(),
            Writer::Gzip(encoder) => encoder.finish()?.flush(),
            Writer::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

enum Target {
    Terminal,
    Pipe,
    File(Box<NewFile>),
    /// A device or a named pipe: written in place.
    Device,
}

#[derive(PartialEq, Eq)]
enum Reader {
    Listening,
    Gone,
}

impl Output {
    /// Standard output.
    pub fn standard() -> io::Result<Output> {
        let stdout = io::stdout();
        let target = if stdout.is_terminal() {
            Target::Terminal
        } else {
            Target::Pipe
        };
        // A duplicate of the descriptor: std's own handle flushes at every line end.
        let file = File::from(stdout.as_fd().try_clone_to_owned()?);
        Output::new(file, Compression::None, target)
    }

    /// The file `path`, under a temporary name in the same folder until [`Output::commit`].
    pub fn file(path: &Path, compression: Compression) -> io::Result<Output> {
        if let Some(file) = open_in_place(path)? {
            return Output::new(file, compression, Target::Device);
        }
        let new = NewFile::beside(path)?;
        Output::new(
            new.file().try_clone()?,
            compression,
            Target::File(Box::new(new)),
        )
    }

    fn new(file: File, compression: Compression, target: Target) -> io::Result<Output> {
        Ok(Output {
            writer: Writer::new(file, compression)?,
            target,
            reader: Reader::Listening,
        })
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self.target, Target::Terminal)
    }

    /// Whether the bytes can be read from any place later, not only as they come.
    pub fn is_file(&self) -> bool {
        matches!(self.target, Target::File(_))
    }

    /// The temporary name, while there is one.
    pub fn temporary(&self) -> Option<&Path> {
        match &self.target {
            Target::File(new) => Some(new.temporary()),
            _ => None,
        }
    }

    /// Whether the reader of a pipe has gone away.
    pub fn reader_is_gone(&self) -> bool {
        self.reader == Reader::Gone
    }

    /// Writes what is left and gives a file its name.
    pub fn commit(self) -> io::Result<()> {
        self.writer.finish()?;
        match self.target {
            Target::File(new) => new.commit(),
            Target::Terminal | Target::Pipe | Target::Device => Ok(()),
        }
    }

    fn noting<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.reader = Reader::Gone;
        }
        result
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.writer.as_write().write(bytes);
        self.noting(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.writer.as_write().flush();
        self.noting(result)
    }
}
