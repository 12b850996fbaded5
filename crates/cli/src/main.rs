//! The shell of grouse: SQL from the command line, a file, standard input or a prompt; results on the terminal, in a
//! pipe or in a file.
//! In: arguments and SQL. Out: results, messages on standard error, an exit code.
//! Invariant: exit code 0 says that all statements ran and all rows were written (or that the reader had enough). 1
//! says that a statement failed, 2 that the command line is wrong, 128 + n that signal n came.
//! Not here: anything about SQL or grouping, which is the engine's.

// From the ground up: a module names only those above it in this list.
mod interrupt;
mod script;
mod output;
mod print;
mod args;
mod progress;
mod run;
mod report;
mod shell;
mod repl;
mod profile;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use grouse::{Session, SessionOptions};

use args::Args;
use interrupt::Interrupts;
use output::Output;
use report::Origin;
use run::Runner;
use script::{Assembler, Piece, Text};
use shell::{Shell, Stop};

const FAILED: u8 = 1;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if let Err(message) = grouse::processor::check() {
        grouse::processor::tell(message);
        return ExitCode::from(USAGE);
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    if profile::is_asked_for(&arguments) {
        grouse_allocator::keep_pages();
        return profile::run(&arguments);
    }
    let (args, options) = Args::parse_all();
    grouse_allocator::keep_pages();
    match start(&args, options) {
        Ok(code) => code,
        Err(message) => {
            report::message(&message);
            ExitCode::from(USAGE)
        }
    }
}

/// Where the SQL comes from.
enum Input {
    Argument(String),
    /// Lines of a file or of standard input, and its name.
    Lines(Box<dyn BufRead>, String),
    Prompt,
}

/// An error here is one of the command line.
fn start(args: &Args, options: SessionOptions) -> Result<ExitCode, String> {
    let input = input(args)?;
    if matches!(input, Input::Prompt) && args.output.is_some() {
        return Err("--output needs SQL: as an argument, with -f or on standard input".to_owned());
    }
    let interrupts =
        Interrupts::install().map_err(|error| format!("cannot listen to signals: {error}"))?;
    let output = open_output(args, &interrupts)?;
    if args.format().is_binary() && output.is_terminal() {
        return Err(shell::binary_on_terminal(args.format()));
    }
    let session = Session::new(options).map_err(|error| error.to_string())?;
    let runner =
        Runner::new(session, interrupts).map_err(|error| format!("cannot start: {error}"))?;
    for (name, value) in args.datafusion_settings() {
        set_datafusion_option(&runner, name, value)?;
    }
    let shell = Shell::new(runner, output, args.format(), args.max_rows);
    Ok(run(shell, input))
}

fn input(args: &Args) -> Result<Input, String> {
    if let Some(sql) = &args.sql {
        return Ok(Input::Argument(sql.clone()));
    }
    match args.file.as_deref() {
        Some(path) if path != Path::new("-") => {
            let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
                true => Err(io::ErrorKind::IsADirectory.into()),
                false => Ok(file),
            });
            let file = file.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            Ok(Input::Lines(
                Box::new(BufReader::new(file)),
                path.display().to_string(),
            ))
        }
        None if io::stdin().is_terminal() => Ok(Input::Prompt),
        _ => {
            let lines = Box::new(BufReader::new(io::stdin()));
            Ok(Input::Lines(lines, "standard input".to_owned()))
        }
    }
}

fn open_output(args: &Args, interrupts: &Interrupts) -> Result<Output, String> {
    let Some(path) = &args.output else {
        return Output::standard()
            .map_err(|error| format!("cannot write to standard output: {error}"));
    };
    let output = Output::file(path, args.compression())
        .map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
    interrupts.set_temporary(output.temporary());
    Ok(output)
}

fn set_datafusion_option(runner: &Runner, name: &str, value: &str) -> Result<(), String> {
    let statement = format!("SET {name} = '{}'", value.replace('\'', "''"));
    match runner.plan(&statement) {
        Ok(_) => Ok(()),
        Err(run::Failure::Engine(error)) => Err(format!("--set {name}: {error}")),
        Err(_) => Err(format!("--set {name}: interrupted")),
    }
}

/// Runs the input to its end and says how that went.
fn run(mut shell: Shell, input: Input) -> ExitCode {
    let ran = match input {
        Input::Argument(sql) => {
            let piece = Piece::Sql(Text { sql, line: 1 });
            shell.run(&piece, &Origin::Typed)
        }
        Input::Lines(lines, name) => run_lines(&mut shell, lines, name),
        Input::Prompt => repl::run(&mut shell),
    };
    let signal = shell.runner().interrupts().signal();
    match ran {
        Ok(()) | Err(Stop::Exit) => commit(shell),
        Err(Stop::ReaderGone) => ExitCode::SUCCESS,
        Err(Stop::Failed) => ExitCode::from(FAILED),
        Err(Stop::Interrupted) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
    }
}

fn commit(shell: Shell) -> ExitCode {
    match shell.commit() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            report::message(&format!("cannot write the result: {error}"));
            ExitCode::from(FAILED)
        }
    }
}

/// Runs pieces as their lines come in, so that a program can talk to the shell through a pipe; stops at a failure.
fn run_lines(shell: &mut Shell, lines: Box<dyn BufRead>, name: String) -> Result<(), Stop> {
    let mut assembler = Assembler::default();
    let origin = Origin::File(name.clone());
    for line in lines.lines() {
        let line = line.map_err(|error| {
            report::message(&format!("cannot read {name}: {error}"));
            Stop::Failed
        })?;
        if let Some(piece) = assembler.push(&line) {
            shell.run(&piece, &origin)?;
        }
    }
    match assembler.finish() {
        Some(piece) => shell.run(&piece, &origin),
        None => Ok(()),
    }
}
