//! Pieces of input run one after the other: SQL by the engine, `.commands` here.
//! In: [`Piece`]s, or the lines that they stand in. Out: results where they are to go, messages on standard error.
//! Invariant: settings of the shell live here and nowhere else; a command never touches the engine's options. A statement that
//! fails ends a script, unless `.bail off` says otherwise, and never the prompt.
//! Not here: where lines come from.

mod words;
mod settings;
mod destination;
mod commands;
mod looks;
mod catalog;
mod files;

use std::io::{self, BufRead};

use grouse::Statement;

use crate::output::Output;
use crate::print::{Fit, Format, PrintError, seconds};
use crate::report::{self, Origin};
use crate::run::{Failure, FooterTime, Runner, Sink};
use crate::script::{Assembler, Piece, Text};

use destination::{Destination, Life};
use words::Complaint;

pub use commands::{COMMANDS, Takes};
pub use settings::{Bail, Settings, Timer};

/// Rows of a table on a terminal.
const ROWS_ON_TERMINAL: usize = 40;
/// Rows of a table elsewhere: more than anybody reads, and still a bound on memory.
const ROWS_ELSEWHERE: usize = 10_000;

/// Runs pieces.
pub struct Shell {
    runner: Runner,
    settings: Settings,
    base: Destination,
    /// Where results go instead, since `.output` or `.once`.
    aside: Option<Destination>,
    author: Author,
    /// Files that are being read, one by the other.
    depth: usize,
    failures: usize,
}

/// Who says what is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    /// A script.
    Script,
    /// A person at the prompt.
    Person,
}

/// Why pieces stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `.exit`, with its code
    Exit(u8),
    /// A statement failed; the message is out.
    Failed,
    /// A signal came.
    Interrupted,
    /// Nobody reads the output any more.
    ReaderGone,
}

impl Shell {
    /// A shell that writes to `output`.
    pub fn new(runner: Runner, output: Output, settings: Settings) -> Shell {
        Shell {
            runner,
            settings,
            base: Destination::new(output, Life::Session),
            aside: None,
            author: Author::Script,
            depth: 0,
            failures: 0,
        }
    }

    /// The runner of its statements.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// What commands have set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What commands have set, to change it.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Statements that failed and did not end the script.
    pub fn failures(&self) -> usize {
        self.failures
    }

    /// From now on a person types: failures end nothing, and results longer than the screen are paged.
    pub fn at_prompt(&mut self) {
        self.author = Author::Person;
        if self.settings.pager_is_wanted
            && let Err(error) = self.base.output.page(None)
        {
            report::message(&format!("cannot page results: {error}"));
        }
    }

    /// Gives outputs their final names.
    pub fn commit(mut self) -> io::Result<()> {
        self.close_aside()?;
        self.base.commit(self.settings.format)
    }

    /// Runs the pieces of `lines` as they come in, so that a program can talk to the shell through a pipe.
    pub fn feed(&mut self, lines: impl BufRead, origin: &Origin) -> Result<(), Stop> {
        let mut assembler = Assembler::default();
        for line in lines.split(b'\n') {
            let line = line.and_then(|bytes| {
                String::from_utf8(bytes)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
            });
            let line = line.map_err(|error| {
                report::message(&format!("cannot read {}: {error}", origin.name()));
                Stop::Failed
            })?;
            if let Some(piece) = assembler.push(&line) {
                self.run(&piece, origin)?;
            }
        }
        match assembler.finish() {
            Some(piece) => self.run(&piece, origin),
            None => Ok(()),
        }
    }

    /// Runs one piece.
    pub fn run(&mut self, piece: &Piece, origin: &Origin) -> Result<(), Stop> {
        match piece {
            Piece::Command(command) => {
                let ran = self.command(command);
                self.unless_it_goes_on(ran)
            }
            Piece::Sql(text) => self.sql(text, origin),
        }
    }

    fn sql(&mut self, text: &Text, origin: &Origin) -> Result<(), Stop> {
        let statements = match grouse::Session::split(&text.sql) {
            Ok(statements) => statements,
            Err(error) => {
                report::failure(&error, text, origin);
                return self.unless_it_goes_on(Err(Stop::Failed));
            }
        };
        for statement in &statements {
            let ran = self.statement(statement, text, origin);
            self.unless_it_goes_on(ran)?;
        }
        Ok(())
    }

    /// A failure that does not end the script is counted.
    fn unless_it_goes_on(&mut self, ran: Result<(), Stop>) -> Result<(), Stop> {
        let ends = match self.settings.bail {
            Bail::Always => true,
            Bail::Never => false,
            Bail::Scripts => self.author == Author::Script || self.depth > 0,
        };
        match ran {
            Err(Stop::Failed) if !ends => {
                self.failures += 1;
                Ok(())
            }
            other => other,
        }
    }

    fn statement(
        &mut self,
        statement: &Statement,
        text: &Text,
        origin: &Origin,
    ) -> Result<(), Stop> {
        if self.settings.echoes {
            self.echo(&format!("{};\n", statement.text))?;
        }
        let ran = self.rows(&statement.text);
        report::warnings(&self.runner.session().take_warnings());
        let has_left = self.reader_has_left(&ran);
        let is_shown_aside = self.aside.is_some() || self.base.output.pager().is_some();
        let shown = self.show(ran.is_ok() || has_left);
        match ran {
            Ok(elapsed) => {
                let has_footer = self.format().is_drawn();
                if self.settings.timer == Timer::Always && !has_footer {
                    report::note(&seconds(elapsed));
                }
            }
            Err(_) if has_left && !is_shown_aside => return Err(Stop::ReaderGone),
            Err(_) if has_left => {}
            Err(Failure::Engine(error)) => {
                report::failure(&error.moved_to(statement.start), text, origin);
                return Err(Stop::Failed);
            }
            Err(failure) => return Err(self.complain(failure.into())),
        }
        shown.map_err(|complaint| self.complain(complaint))
    }

    /// Runs a statement into where results go.
    fn rows(&mut self, text: &str) -> Result<std::time::Duration, Failure> {
        let fit = self.fit();
        let to = self.aside.as_mut().unwrap_or(&mut self.base);
        let format = to.format(self.settings.format);
        if format.is_binary() && to.output.is_terminal() {
            let message = binary_on_terminal(format);
            return Err(Failure::Print(PrintError::Value(message)));
        }
        let footer_time = if self.settings.timer == Timer::Never {
            FooterTime::Hidden
        } else {
            FooterTime::Shown
        };
        let sink = Sink {
            output: &mut to.output,
            format,
            look: &self.settings.look,
            fit,
            footer_time,
            results: &mut to.results,
        };
        self.runner.run(text, sink)
    }

    fn reader_has_left<T>(&self, ran: &Result<T, Failure>) -> bool {
        match ran {
            Err(Failure::ReaderGone) => true,
            Err(Failure::Print(_)) => self.destination().output.reader_is_gone(),
            _ => false,
        }
    }

    /// Lets a person see what one statement or command wrote, and ends a `.once`.
    fn show(&mut self, has_succeeded: bool) -> Result<(), Complaint> {
        if self.base.output.pager().is_some() {
            let interrupts = self.runner.interrupts();
            // What was to be stopped has stopped; from here on Ctrl-C is the pager's.
            interrupts.settled();
            let _elsewhere = interrupts.elsewhere();
            self.base.output.turn_page()?;
        }
        if self.aside.as_ref().is_some_and(|to| to.life == Life::Once) {
            if !has_succeeded {
                self.aside = None;
            }
            self.close_aside()?;
        }
        Ok(())
    }

    fn destination(&self) -> &Destination {
        self.aside.as_ref().unwrap_or(&self.base)
    }

    fn format(&self) -> Format {
        self.destination().format(self.settings.format)
    }

    /// Says what went wrong, and what that means for the pieces that follow.
    fn complain(&self, complaint: Complaint) -> Stop {
        let message = match complaint {
            Complaint::Stop(stop) => return stop,
            Complaint::Usage => "these arguments are not taken".to_owned(),
            Complaint::Text(text) => text,
            Complaint::Failure(Failure::Interrupted) => return Stop::Interrupted,
            Complaint::Failure(Failure::ReaderGone) => return Stop::ReaderGone,
            Complaint::Failure(Failure::Print(_)) if self.destination().output.reader_is_gone() => {
                return Stop::ReaderGone;
            }
            Complaint::Failure(Failure::Engine(error)) => error.to_string(),
            Complaint::Failure(Failure::Print(error)) => error.to_string(),
            Complaint::Failure(Failure::SecondResult(format)) => format!(
                "{} holds one result and this is a second one; run one SELECT at a time or choose another format, such as ndjson",
                format.name()
            ),
        };
        report::message(&message);
        Stop::Failed
    }

    fn fit(&self) -> Fit {
        let (width, rows) = if self.destination().output.is_terminal() {
            let size = terminal_size::terminal_size_of(std::io::stdout());
            (
                Some(size.map_or(80, |(width, _)| usize::from(width.0))),
                ROWS_ON_TERMINAL,
            )
        } else {
            (None, ROWS_ELSEWHERE)
        };
        let rows_max = match self.settings.rows_max {
            None => rows,
            Some(0) => usize::MAX,
            Some(rows) => rows,
        };
        Fit { width, rows_max }
    }

    fn command(&mut self, line: &str) -> Result<(), Stop> {
        if self.settings.echoes {
            let dot = if line.starts_with('\\') { "" } else { "." };
            self.echo(&format!("{dot}{line}\n"))?;
        }
        let done = commands::run(self, line);
        let has_output = |to: &Destination| to.is_written || to.results > 0;
        let shown = match self.aside.as_ref().is_some_and(has_output) || self.aside.is_none() {
            true => self.show(done.is_ok()),
            // `.once` is about the statement or command that writes something.
            false => Ok(()),
        };
        done.and(shown)
            .map_err(|complaint| self.complain(complaint))
    }

    fn say(&mut self, text: &str) -> Result<(), Complaint> {
        let to = self.aside.as_mut().unwrap_or(&mut self.base);
        Ok(to.say(text)?)
    }

    /// `.echo`: what runs stands where results went at first.
    fn echo(&mut self, text: &str) -> Result<(), Stop> {
        let said = self.base.say(text);
        said.map_err(|error| self.complain(error.into()))
    }
}

/// The message for a format that a terminal cannot show.
pub fn binary_on_terminal(format: Format) -> String {
    format!(
        "{} is not for a terminal; write it to a file with -o or .once, or to a pipe",
        format.name()
    )
}
