//! Pieces of input run one after the other: SQL by the engine, `.commands` here.
//! In: [`Piece`]s. Out: results on the output, messages on standard error.
//! Invariant: settings of the shell live here and nowhere else; a command never touches the engine's options.
//! Not here: where pieces come from, and whether a failure ends the input.

use std::io::Write;

use clap::ValueEnum;
use grouse::sql_name;
use grouse::{Error, Statement};

use crate::output::Output;
use crate::print::{Fit, Format, PrintError, seconds};
use crate::report::{self, Origin};
use crate::run::{Failure, FooterTime, Runner, Sink};
use crate::script::{Piece, Text};

const HELP: &str = "\
SQL runs when a line ends with `;`. Ctrl-C stops a query, Ctrl-D leaves.
.help                 this text
.tables               the tables of this session
.schema [TABLE|FILE]  columns and types
.mode [FORMAT]        table, csv, tsv, json, ndjson or markdown
.maxrows N            rows that a table shows, 0 for all
.timer on|off         the time after each statement
.exit, .quit          leave
";

/// Rows of a table on a terminal.
const ROWS_ON_TERMINAL: usize = 40;
/// Rows of a table elsewhere: more than anybody reads, and still a bound on memory.
const ROWS_ELSEWHERE: usize = 10_000;

/// Runs pieces.
pub struct Shell {
    runner: Runner,
    output: Output,
    results: usize,
    format: Format,
    rows_max: Option<usize>,
    timer: Timer,
}

/// When the time of a statement is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// In the footer of tables.
    Footer,
    /// After every statement, whatever the format.
    Always,
    Never,
}

/// Why pieces stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// `.exit`
    Exit,
    /// A statement failed; the message is out.
    Failed,
    /// A signal came.
    Interrupted,
    /// Nobody reads the output any more.
    ReaderGone,
}

impl Shell {
    /// A shell that writes to `output`.
    pub fn new(runner: Runner, output: Output, format: Format, rows_max: Option<usize>) -> Shell {
        Shell {
            runner,
            output,
            results: 0,
            format,
            rows_max,
            timer: Timer::Footer,
        }
    }

    /// The runner of its statements.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Gives the output its final name. A file of a binary format has to hold a result: no bytes are no Parquet.
    pub fn commit(self) -> std::io::Result<()> {
        if self.output.is_file() && self.format.is_binary() && self.results == 0 {
            return Err(std::io::Error::other(
                "no statement gave one, so there is no file",
            ));
        }
        self.output.commit()
    }

    /// Runs one piece.
    pub fn run(&mut self, piece: &Piece, origin: &Origin) -> Result<(), Stop> {
        match piece {
            Piece::Command(command) => self.command(command),
            Piece::Sql(text) => self.sql(text, origin),
        }
    }

    fn sql(&mut self, text: &Text, origin: &Origin) -> Result<(), Stop> {
        let statements = match grouse::Session::split(&text.sql) {
            Ok(statements) => statements,
            Err(error) => {
                report::failure(&error, text, origin);
                return Err(Stop::Failed);
            }
        };
        for statement in &statements {
            self.statement(statement, text, origin)?;
        }
        Ok(())
    }

    fn statement(
        &mut self,
        statement: &Statement,
        text: &Text,
        origin: &Origin,
    ) -> Result<(), Stop> {
        let fit = self.fit();
        let footer_time = if self.timer == Timer::Never {
            FooterTime::Hidden
        } else {
            FooterTime::Shown
        };
        let sink = Sink {
            output: &mut self.output,
            format: self.format,
            fit,
            footer_time,
            results: &mut self.results,
        };
        let run = self.runner.run(&statement.text, sink);
        report::warnings(&self.runner.session().take_warnings());
        match run {
            Ok(elapsed) => {
                let in_footer = self.format == Format::Table;
                if self.timer == Timer::Always && !in_footer {
                    report::note(&seconds(elapsed));
                }
                Ok(())
            }
            Err(Failure::Engine(error)) => {
                report::failure(&error.moved_to(statement.start), text, origin);
                Err(Stop::Failed)
            }
            Err(failure) => Err(self.stop(failure)),
        }
    }

    /// What a failure without a place in the SQL means.
    fn stop(&self, failure: Failure) -> Stop {
        match failure {
            Failure::Engine(error) => report::message(&error.to_string()),
            Failure::Print(_) if self.output.reader_is_gone() => return Stop::ReaderGone,
            Failure::Print(error) => report::message(&error.to_string()),
            Failure::SecondResult(format) => report::message(&format!(
                "{} holds one result and this is a second one; run one SELECT at a time or choose another format, such as ndjson",
                format.name()
            )),
            Failure::Interrupted => return Stop::Interrupted,
            Failure::ReaderGone => return Stop::ReaderGone,
        }
        Stop::Failed
    }

    fn fit(&self) -> Fit {
        let (width, rows) = if self.output.is_terminal() {
            let size = terminal_size::terminal_size_of(std::io::stdout());
            (
                Some(size.map_or(80, |(width, _)| usize::from(width.0))),
                ROWS_ON_TERMINAL,
            )
        } else {
            (None, ROWS_ELSEWHERE)
        };
        let rows_max = match self.rows_max {
            None => rows,
            Some(0) => usize::MAX,
            Some(rows) => rows,
        };
        Fit { width, rows_max }
    }

    fn command(&mut self, line: &str) -> Result<(), Stop> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let done = match (name, argument) {
            ("help", "") => self.say(HELP),
            ("exit" | "quit", "") => return Err(Stop::Exit),
            ("tables", "") => self.tables(),
            ("schema", _) => self.schema(argument),
            ("mode", _) => self.mode(argument),
            ("maxrows", _) => self.max_rows(argument),
            ("timer", _) => self.set_timer(argument),
            _ => Err(Complaint::Text(format!(
                "there is no command .{line}; .help lists them"
            ))),
        };
        match done {
            Ok(()) => Ok(()),
            Err(Complaint::Failure(failure)) => Err(self.stop(failure)),
            Err(Complaint::Text(text)) => {
                report::message(&text);
                Err(Stop::Failed)
            }
        }
    }

    fn say(&mut self, text: &str) -> Result<(), Complaint> {
        let said = self
            .output
            .write_all(text.as_bytes())
            .and_then(|()| self.output.flush());
        said.map_err(|error| Complaint::Failure(Failure::Print(PrintError::Io(error))))
    }

    fn tables(&mut self) -> Result<(), Complaint> {
        let mut names = self.runner.session().tables();
        names.sort();
        self.say(
            &names
                .iter()
                .map(|name| format!("{name}\n"))
                .collect::<String>(),
        )
    }

    /// `.schema`: of all tables; `.schema visits`, `.schema 'visits/*.parquet'`: of one.
    fn schema(&mut self, argument: &str) -> Result<(), Complaint> {
        let mut names = self.runner.session().tables();
        names.sort();
        let wanted = argument.trim_matches(['\'', '"']);
        let relations: Vec<(String, String)> = if wanted.is_empty() {
            names
                .iter()
                .map(|name| (name.clone(), quoted(name, '"')))
                .collect()
        } else if names.iter().any(|name| name == wanted) {
            vec![(wanted.to_owned(), quoted(wanted, '"'))]
        } else if wanted.contains(['/', '.', '*']) {
            vec![(wanted.to_owned(), quoted(wanted, '\''))]
        } else {
            vec![(wanted.to_owned(), wanted.to_owned())]
        };
        for (name, relation) in relations {
            let planned = self.runner.plan(&format!("SELECT * FROM {relation}"));
            let schema = planned.map_err(without_place)?.schema();
            let width = schema
                .fields()
                .iter()
                .map(|f| f.name().chars().count())
                .max()
                .unwrap_or(0);
            let mut text = format!("{name}\n");
            for field in schema.fields() {
                let (name, type_name) = (field.name(), sql_name(field.data_type()));
                let null = if field.is_nullable() { "" } else { " not null" };
                text += &format!("  {name:width$}  {type_name}{null}\n");
            }
            self.say(&text)?;
        }
        Ok(())
    }

    fn mode(&mut self, argument: &str) -> Result<(), Complaint> {
        if argument.is_empty() {
            return self.say(&format!("{}\n", self.format.name()));
        }
        match Format::from_str(argument, true) {
            Ok(format) if format.is_binary() && self.output.is_terminal() => {
                Err(Complaint::Text(binary_on_terminal(format)))
            }
            Ok(format) => {
                self.format = format;
                Ok(())
            }
            Err(_) => {
                let formats: Vec<String> =
                    Format::value_variants().iter().map(|f| f.name()).collect();
                let formats = formats.join(", ");
                Err(Complaint::Text(format!(
                    "there is no format {argument}; one of {formats}"
                )))
            }
        }
    }

    fn max_rows(&mut self, argument: &str) -> Result<(), Complaint> {
        match argument.parse() {
            Ok(rows) => {
                self.rows_max = Some(rows);
                Ok(())
            }
            Err(_) => Err(Complaint::Text(
                "expected .maxrows N, with 0 for all rows".to_owned(),
            )),
        }
    }

    fn set_timer(&mut self, argument: &str) -> Result<(), Complaint> {
        self.timer = match argument {
            "on" => Timer::Always,
            "off" => Timer::Never,
            _ => {
                return Err(Complaint::Text(
                    "expected .timer on or .timer off".to_owned(),
                ));
            }
        };
        Ok(())
    }
}

/// Why a command did not do what it should.
enum Complaint {
    Text(String),
    Failure(Failure),
}

/// A failure of SQL that the user did not write: its line and column would only confuse.
fn without_place(failure: Failure) -> Complaint {
    match failure {
        Failure::Engine(error) => match *error {
            Error::UnknownTable { name, nearest, .. } => {
                let position = None;
                Complaint::Text(
                    Error::UnknownTable {
                        name,
                        nearest,
                        position,
                    }
                    .to_string(),
                )
            }
            other => Complaint::Text(other.to_string()),
        },
        other => Complaint::Failure(other),
    }
}

/// The message for a format that a terminal cannot show.
pub fn binary_on_terminal(format: Format) -> String {
    format!(
        "{} is not for a terminal; write it to a file with -o or to a pipe",
        format.name()
    )
}

fn quoted(name: &str, quote: char) -> String {
    format!(
        "{quote}{}{quote}",
        name.replace(quote, &format!("{quote}{quote}"))
    )
}
