//! Results that are longer than the screen: another program shows them page by page.
//! In: the bytes of what is shown at once. Out: the same bytes on the terminal, by a pager if they need one.
//! Invariant: bytes are held until it is known that they do not fit the screen; a pager whose reader leaves is no error.
//! Not here: which results are paged (the prompt's).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The pager if the environment names none: S leaves long lines on one, R shows colors, F ends where all fits, X leaves it there.
const PAGER: [&str; 2] = ["less", "-SRFX"];

/// Rows of the screen that a result leaves to the prompt.
const ROWS_KEPT: usize = 1;

/// Shows results page by page.
pub struct Pager {
    terminal: File,
    command: String,
    page: Page,
    is_up: Arc<AtomicBool>,
}

/// What is shown at once.
enum Page {
    /// It fits the screen so far.
    Held { bytes: Vec<u8>, lines: Lines },
    /// A program shows it.
    Flowing(Child, BufWriter<ChildStdin>),
}

/// Rows of the screen that text takes.
#[derive(Debug, Default)]
struct Lines {
    rows: usize,
    column: usize,
}

impl Page {
    fn new() -> Page {
        let (bytes, lines) = (Vec::new(), Lines::default());
        Page::Held { bytes, lines }
    }
}

impl Pager {
    /// A pager by the command of the environment, or the usual one; none where there is none.
    pub fn of_environment(terminal: File) -> Option<Pager> {
        let named = std::env::var("PAGER").ok();
        let command = match named {
            Some(command) => command.trim().to_owned(),
            None if is_installed(PAGER[0]) => PAGER.join(" "),
            None => return None,
        };
        let is_one = !command.is_empty() && command != "cat";
        is_one.then(|| Pager::new(terminal, command))
    }

    /// A pager by this command.
    pub fn new(terminal: File, command: String) -> Pager {
        Pager {
            terminal,
            command,
            page: Page::new(),
            is_up: Arc::default(),
        }
    }

    /// The command.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Whether the program has the terminal, as of any later time.
    pub fn is_up(&self) -> Arc<AtomicBool> {
        self.is_up.clone()
    }

    /// Shows what is held, or waits until the reader leaves the program.
    pub fn turn(&mut self) -> io::Result<()> {
        let page = std::mem::replace(&mut self.page, Page::new());
        self.is_up.store(false, Ordering::Relaxed);
        let (mut child, flushed) = match page {
            Page::Held { bytes, .. } => return self.terminal.write_all(&bytes),
            Page::Flowing(child, mut pipe) => (child, pipe.flush()),
        };
        match child.wait()?.code() {
            // The shell that runs the command says so.
            Some(126 | 127) => Err(io::Error::other(format!(
                "the pager {} does not run; .pager off shows results without one",
                self.command
            ))),
            // A reader that leaves early has seen enough.
            _ => match flushed {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
                _ => Ok(()),
            },
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]).stdin(Stdio::piped());
        let mut child = command.spawn()?;
        let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let flowing = Page::Flowing(child, BufWriter::new(pipe));
        let page = std::mem::replace(&mut self.page, flowing);
        self.is_up.store(true, Ordering::Relaxed);
        match page {
            Page::Held { bytes, .. } => self.write_all(&bytes),
            Page::Flowing(..) => Ok(()),
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.page {
            Page::Held { bytes: held, lines } => {
                held.extend_from_slice(bytes);
                let (columns, rows) = screen();
                lines.take(bytes, columns);
                if lines.rows + ROWS_KEPT > rows {
                    self.start()?;
                }
                Ok(bytes.len())
            }
            Page::Flowing(_, pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.page {
            Page::Held { .. } => Ok(()),
            Page::Flowing(_, pipe) => pipe.flush(),
        }
    }
}

impl Lines {
    fn take(&mut self, bytes: &[u8], columns: usize) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    self.rows += 1;
                    self.column = 0;
                }
                // The later bytes of a character.
                0x80..=0xbf => {}
                _ if self.column == columns => {
                    self.rows += 1;
                    self.column = 1;
                }
                _ => self.column += 1,
            }
        }
    }
}

/// Columns and rows of the terminal.
fn screen() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    size.map_or((80, 24), |(columns, rows)| {
        (usize::from(columns.0).max(1), usize::from(rows.0).max(2))
    })
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_the_terminal_breaks_lines() {
        for (text, rows) in [
            ("a\nb\n", 2),
            ("12345", 0),
            ("123456", 1),
            ("12345\n", 1),
            ("äöüäö\n", 1),
            ("12345678901\n", 3),
        ] {
            let mut lines = Lines::default();
            lines.take(text.as_bytes(), 5);
            assert_eq!(lines.rows, rows, "{text:?}");
        }
    }
}
