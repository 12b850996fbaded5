//! Where results go: the output of the session, or a file or program that `.output` and `.once` name.
//! In: the arguments of these commands. Out: [`Destination`]s, opened and closed.
//! Invariant: a file gets its name when the destination is closed, not at all if the script fails before; it is known to the
//! signals until then.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::endings;
use crate::output::Output;
use crate::print::Format;

use super::Shell;
use super::words::{Arguments, Complaint};

/// A place that results are written to.
pub struct Destination {
    /// The place.
    pub output: Output,
    /// Results written to it so far.
    pub results: usize,
    /// Whether a command has written something to it.
    pub is_written: bool,
    /// How long results go there.
    pub life: Life,
    /// The format that the name of its file stands for.
    by_ending: Option<Format>,
}

/// How long results go to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// As long as there is no other.
    Session,
    /// Until `.output` says otherwise.
    UntilTold,
    /// For one statement.
    Once,
}

impl Destination {
    /// The place `output`.
    pub fn new(output: Output, life: Life) -> Destination {
        Destination {
            output,
            results: 0,
            is_written: false,
            life,
            by_ending: None,
        }
    }

    /// The format of its results if `asked` was asked for.
    pub fn format(&self, asked: Option<Format>) -> Format {
        asked.or(self.by_ending).unwrap_or(Format::Table)
    }

    /// Writes text of a command.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.is_written = true;
        self.output.write_all(text.as_bytes())?;
        self.output.flush()
    }

    /// Gives a file its name. One of a binary format has to hold a result: no bytes are no Parquet.
    pub fn commit(self, asked: Option<Format>) -> io::Result<()> {
        if self.output.is_file() && self.format(asked).is_binary() && self.results == 0 {
            return Err(io::Error::other(
                "no statement gave one, so there is no file",
            ));
        }
        self.output.commit()
    }
}

impl Shell {
    /// `.output`, `.once`: results go to a file or program, or where they went at first.
    pub(super) fn redirect(&mut self, arguments: &Arguments, life: Life) -> Result<(), Complaint> {
        self.close_aside()?;
        let is_back = arguments.words.is_empty() || arguments.words == ["stdout"];
        if is_back && life == Life::UntilTold {
            return Ok(());
        }
        self.aside = Some(self.opened(arguments, life)?);
        self.note_temporaries();
        Ok(())
    }

    fn opened(&self, arguments: &Arguments, life: Life) -> Result<Destination, Complaint> {
        // `|program`, also in quotes.
        let whole = match arguments.words.as_slice() {
            [word] => word,
            _ => &arguments.line,
        };
        if let Some(command) = whole.strip_prefix('|') {
            return Ok(Destination::new(Output::program(command.trim())?, life));
        }
        let path = Path::new(arguments.one()?);
        let named = |message: &dyn std::fmt::Display| {
            Complaint::Text(format!("cannot write to {}: {message}", path.display()))
        };
        let by_ending = endings::format_of(path);
        let format = self.settings.format.or(by_ending);
        if let Some(message) = endings::refusal(path, format.or(Some(Format::Table))) {
            return Err(named(&message));
        }
        let output = Output::file(path, endings::compression_of(path));
        let mut to = Destination::new(output.map_err(|error| named(&error))?, life);
        to.by_ending = by_ending;
        Ok(to)
    }

    /// Closes what `.output` or `.once` opened, if they did.
    pub(super) fn close_aside(&mut self) -> io::Result<()> {
        let Some(to) = self.aside.take() else {
            self.note_temporaries();
            return Ok(());
        };
        if to.life == Life::Once && to.results == 0 && !to.is_written {
            // Nothing came that it was about.
            drop(to);
            self.note_temporaries();
            return Ok(());
        }
        let closed = {
            // A program that reads the results may have the terminal.
            let _elsewhere = self.runner.interrupts().elsewhere();
            to.commit(self.settings.format)
        };
        self.note_temporaries();
        match closed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells the signals which files are not whole.
    pub(super) fn note_temporaries(&self) {
        let places = [Some(&self.base), self.aside.as_ref()];
        let paths = places.into_iter().flatten();
        let paths: Vec<PathBuf> = paths
            .filter_map(|to| to.output.temporary().map(Path::to_owned))
            .collect();
        self.runner.interrupts().set_temporaries(paths);
    }
}
