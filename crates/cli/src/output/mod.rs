//! Where results go: standard output, a pager, a program, or a file that appears under its name only when everything has succeeded.
//! In: bytes. Out: the same bytes, compressed if the name says so, or no file at all.
//! Invariant: nothing but results is written here; a reader that has gone away is remembered and not reported.
//! Not here: messages and the progress bar, which go to standard error.

mod pager;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flate2::write::GzEncoder;
use grouse::NewFile;
use grouse::open_in_place;

pub use pager::Pager;

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
    Paged(Pager),
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
            Writer::Paged(pager) => pager,
        }
    }

    /// Writes what has to follow the last byte.
    fn finish(self) -> io::Result<()> {
        match self {
            Writer::Plain(mut file) => file.flush(),
            Writer::Gzip(encoder) => encoder.finish()?.flush(),
            Writer::Zstd(encoder) => encoder.finish()?.flush(),
            Writer::Paged(mut pager) => pager.turn(),
        }
    }
}

enum Target {
    Terminal,
    Pipe,
    File(Box<NewFile>),
    /// A device or a named pipe: written in place.
    Device,
    /// A program that reads it.
    Program(Child),
}

#[derive(PartialEq, Eq)]
enum Reader {
    Listening,
    Gone,
}

impl Output {
    /// Standard output.
    pub fn standard() -> io::Result<Output> {
        let target = if io::stdout().is_terminal() {
            Target::Terminal
        } else {
            Target::Pipe
        };
        Output::new(standard_file()?, Compression::None, target)
    }

    /// The standard input of `sh -c command`.
    pub fn program(command: &str) -> io::Result<Output> {
        let mut program = Command::new("sh");
        program.args(["-c", command]).stdin(Stdio::piped());
        let mut child = program.spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let file = File::from(OwnedFd::from(pipe));
        Output::new(file, Compression::None, Target::Program(child))
    }

    /// From now on what is longer than the screen goes to a pager: by this command, else by that of the environment. It gives
    /// whether there is one, which only a terminal has.
    pub fn page(&mut self, command: Option<String>) -> io::Result<bool> {
        self.stop_paging()?;
        if !self.is_terminal() {
            return Ok(false);
        }
        let terminal = standard_file()?;
        let pager = match command {
            Some(command) => Some(Pager::new(terminal, command)),
            None => Pager::of_environment(terminal),
        };
        let Some(pager) = pager else {
            return Ok(false);
        };
        self.writer.as_write().flush()?;
        self.writer = Writer::Paged(pager);
        Ok(true)
    }

    /// From now on all goes to the terminal as it comes.
    pub fn stop_paging(&mut self) -> io::Result<()> {
        if matches!(self.writer, Writer::Paged(_)) {
            self.turn_page()?;
            self.writer = Writer::new(standard_file()?, Compression::None)?;
        }
        Ok(())
    }

    /// The command of the pager, if there is one.
    pub fn pager(&self) -> Option<&str> {
        match &self.writer {
            Writer::Paged(pager) => Some(pager.command()),
            _ => None,
        }
    }

    /// Whether a pager has the terminal, as of any later time.
    pub fn pager_is_up(&self) -> Arc<AtomicBool> {
        match &self.writer {
            Writer::Paged(pager) => pager.is_up(),
            _ => Arc::default(),
        }
    }

    /// Ends what is shown at once: it is on the terminal, or its reader has left the pager.
    pub fn turn_page(&mut self) -> io::Result<()> {
        let Writer::Paged(pager) = &mut self.writer else {
            return Ok(());
        };
        let turned = pager.turn();
        self.reader = Reader::Listening;
        turned
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
            Target::Program(mut child) => child.wait().map(|_| ()),
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

/// A duplicate of standard output: std's own handle flushes at every line end.
fn standard_file() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
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
