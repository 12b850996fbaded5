//! Where results go: standard output, or a file that appears under its name only when everything has succeeded.
//! In: bytes. Out: the same bytes, or no file at all.
//! Invariant: nothing but results is written here; a reader that has gone away is remembered and not reported.
//! Not here: messages and the progress bar, which go to standard error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// The place that results are written to.
pub struct Output {
    writer: BufWriter<File>,
    target: Target,
    reader: Reader,
}

enum Target {
    Terminal,
    Pipe,
    File(Pending),
    /// A device or a named pipe: written in place.
    Device,
}

/// A file that still has its temporary name.
struct Pending {
    temporary: PathBuf,
    target: PathBuf,
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After a commit the temporary name is gone and there is nothing to remove.
        let _ = fs::remove_file(&self.temporary);
    }
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
        Ok(Output::new(file, target))
    }

    /// The file `path`, under a temporary name in the same folder until [`Output::commit`].
    pub fn file(path: &Path) -> io::Result<Output> {
        // Through links, so that a link to a file stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(meta) if !meta.is_file() => {
                let file = OpenOptions::new().write(true).open(&path)?;
                return Ok(Output::new(file, Target::Device));
            }
            _ => {}
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let name = format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id());
        let temporary = path.with_file_name(name);
        let file = File::create(&temporary)?;
        Ok(Output::new(
            file,
            Target::File(Pending {
                temporary,
                target: path,
            }),
        ))
    }

    fn new(file: File, target: Target) -> Output {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, file);
        Output {
            writer,
            target,
            reader: Reader::Listening,
        }
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
            Target::File(pending) => Some(&pending.temporary),
            _ => None,
        }
    }

    /// Whether the reader of a pipe has gone away.
    pub fn reader_is_gone(&self) -> bool {
        self.reader == Reader::Gone
    }

    /// Writes what is left and gives a file its name.
    pub fn commit(mut self) -> io::Result<()> {
        self.flush()?;
        if let Target::File(pending) = &self.target {
            fs::rename(&pending.temporary, &pending.target)?;
        }
        Ok(())
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
        let result = self.writer.write(bytes);
        self.noting(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.writer.flush();
        self.noting(result)
    }
}
