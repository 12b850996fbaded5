//! The shell of grouse: SQL from the command line, a file, standard input or a prompt; results on the terminal, in a
//! pipe or in a file.
//! In: arguments and SQL. Out: results, messages on standard error, an exit code.
//! Invariant: exit code 0 says that all statements ran and all rows were written (or that the reader had enough). 1
//! says that a statement failed, 2 that the command line is wrong, 128 + n that signal n came.
//! Not here: anything about SQL or grouping, which is the engine's.

// From the ground up: a module names only those above it in this list.
mod interrupt;
mod lexer;
mod script;
mod output;
mod print;
mod endings;
mod args;
mod progress;
mod run;
mod report;
mod shell;
mod manual;
mod prompt;
mod startup;
mod profile;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use grouse::SessionOptions;

use args::Args;
use interrupt::Interrupts;
use output::Output;
use run::Runner;
use shell::{Settings, Shell, Stop};
use startup::Startup;

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
    if let Some(what) = args.generate {
        prompt::tell(manual::text(what).trim_end());
        return ExitCode::SUCCESS;
    }
    grouse_allocator::keep_pages();
    match start(&args, options) {
        Ok(code) => code,
        Err(message) => {
            report::message(&message);
            ExitCode::from(USAGE)
        }
    }
}

/// An error here is one of the command line.
fn start(args: &Args, mut options: SessionOptions) -> Result<ExitCode, String> {
    let startup = Startup::of(args)?;
    if startup.is_prompt() && args.output.is_some() {
        return Err("--output needs SQL: as an argument, with -f or on standard input".to_owned());
    }
    let interrupts =
        Interrupts::install().map_err(|error| format!("cannot listen to signals: {error}"))?;
    let output = open_output(args, &interrupts)?;
    if let Some(format) = args.format()
        && format.is_binary()
        && output.is_terminal()
    {
        return Err(shell::binary_on_terminal(format));
    }
    // What the command line sets comes before the lock.
    let startup = startup.locking(std::mem::take(&mut options.lock_options));
    let session = run::session(options).map_err(|error| error.to_string())?;
    let runner =
        Runner::new(session, interrupts).map_err(|error| format!("cannot start: {error}"))?;
    for (name, value) in args.datafusion_settings() {
        set_datafusion_option(&runner, name, value)?;
    }
    let settings = Settings::new(args.format(), args.max_rows);
    Ok(run(Shell::new(runner, output, settings), &startup, args))
}

fn open_output(args: &Args, interrupts: &Interrupts) -> Result<Output, String> {
    let Some(path) = &args.output else {
        return Output::standard()
            .map_err(|error| format!("cannot write to standard output: {error}"));
    };
    let output = Output::file(path, args.compression())
        .map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
    let temporary = output.temporary().map(Path::to_owned);
    interrupts.set_temporaries(temporary.into_iter().collect());
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

/// Runs what is to be run and says how that went.
fn run(mut shell: Shell, startup: &Startup, args: &Args) -> ExitCode {
    let ran = startup.run(&mut shell, args);
    let signal = shell.runner().interrupts().signal();
    let has_failed = shell.failures() > 0 && !startup.is_prompt();
    match ran {
        Ok(()) | Err(Stop::Exit(0)) if has_failed => ExitCode::from(FAILED),
        Ok(()) => commit(shell, 0),
        Err(Stop::Exit(code)) => commit(shell, code),
        Err(Stop::ReaderGone) => ExitCode::SUCCESS,
        Err(Stop::Failed) => ExitCode::from(FAILED),
        Err(Stop::Interrupted) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(0)),
    }
}

fn commit(shell: Shell, code: u8) -> ExitCode {
    match shell.commit() {
        Ok(()) => ExitCode::from(code),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(code),
        Err(error) => {
            report::message(&format!("cannot write the result: {error}"));
            ExitCode::from(FAILED)
        }
    }
}
