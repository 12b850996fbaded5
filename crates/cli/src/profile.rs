//! `grouse profile`: what a query's workers did when.
//! In: the arguments behind `profile`. Out: a page or a trace file, the sums on standard output, an exit code.
//! Invariant: the file appears whole or not at all; a query that failed or was stopped has a profile too.
//! Not here: what a profile holds (the engine's).

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use grouse::{NewFile, Position, Profile, Session, SessionOptions, Statement};

use crate::args::{engine_flags, set_engine_flags};
use crate::interrupt::Interrupts;
use crate::report::{self, Origin};
use crate::run::{self, Failure, Runner};
use crate::script::Text;
use crate::{FAILED, USAGE};

const EXAMPLES: &str = "\
Examples:
  grouse profile \"SELECT region, count(*) FROM 'visits.parquet' GROUP BY region\"
  grouse profile \"SELECT …\" -o visits.json       (opens in Perfetto and chrome://tracing)
  grouse profile --compare before.json after.json

Of several statements the last one is profiled. Its rows are not shown.";

/// Records what each worker of a query does, as a page for a browser or as a trace
#[derive(Debug, Parser)]
#[command(name = "grouse profile", version, after_help = EXAMPLES)]
struct ProfileArgs {
    /// The SQL to run: one statement or several, separated by `;`
    #[arg(value_name = "SQL", required_unless_present = "compare")]
    sql: Option<String>,

    /// The profile: a page (.html) or a trace (.json)
    #[arg(short, long, value_name = "FILE", default_value = "profile.html")]
    output: PathBuf,

    /// For SQL that nobody answers for: it reaches no file and no address and changes no option
    #[arg(long)]
    safe: bool,

    /// Say what changed from one trace to another, phase by phase, and run nothing
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with = "sql")]
    compare: Vec<PathBuf>,

    /// Say how long it would take on these numbers of workers, e.g. 4,16,64
    #[arg(long, value_name = "WORKERS", value_delimiter = ',')]
    simulate: Vec<usize>,
}

/// Whether these arguments are those of `grouse profile`, and not SQL.
pub fn is_asked_for(arguments: &[OsString]) -> bool {
    arguments.len() > 2 && arguments[1] == "profile"
}

/// Runs `grouse profile`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let (args, options) = parse(arguments).unwrap_or_else(|error| error.exit());
    let done = match args.compare.as_slice() {
        [before, after] => compare(before, after).map_err(|message| (message, FAILED)),
        _ => profile(&args, options),
    };
    match done {
        Ok(text) => {
            // A reader that has seen enough is no failure.
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err((message, code)) => {
            if !message.is_empty() {
                report::message(&message);
            }
            ExitCode::from(code)
        }
    }
}

fn parse(arguments: &[OsString]) -> Result<(ProfileArgs, SessionOptions), clap::Error> {
    let flags = engine_flags();
    let mut command = flags.fold(ProfileArgs::command(), |command, (_, flag)| {
        command.arg(flag)
    });
    let matches: ArgMatches = command.try_get_matches_from_mut(&arguments[1..])?;
    let args = ProfileArgs::from_arg_matches(&matches)?;
    let refused = |message: String| {
        let mut command = ProfileArgs::command();
        command.error(clap::error::ErrorKind::ValueValidation, message)
    };
    if args.compare.is_empty() && Profile::form_of(&args.output).is_none() {
        let name = args.output.display();
        return Err(refused(format!(
            "--output {name}: a profile is a page (.html) or a trace (.json)"
        )));
    }
    let mut options = SessionOptions::default();
    if args.safe {
        options.close();
    }
    set_engine_flags(&matches, &mut options).map_err(|error| refused(error.to_string()))?;
    Ok((args, options))
}

fn compare(before: &Path, after: &Path) -> Result<String, String> {
    let read = |path: &Path| {
        let text = fs::read_to_string(path).map_err(|error| error.to_string());
        let profile =
            text.and_then(|text| Profile::from_json(&text).map_err(|error| error.to_string()));
        profile.map_err(|message| format!("{}: {message}", path.display()))
    };
    Ok(read(after)?.compared(&read(before)?))
}

/// The sums; or what failed, and the exit code.
fn profile(args: &ProfileArgs, options: SessionOptions) -> Result<String, (String, u8)> {
    let usage = |message: String| (message, USAGE);
    let interrupts = Interrupts::install()
        .map_err(|error| usage(format!("cannot listen to signals: {error}")))?;
    let session = run::session(options).map_err(|error| usage(error.to_string()))?;
    let runner = Runner::new(session, interrupts)
        .map_err(|error| usage(format!("cannot start: {error}")))?;
    let sql = args.sql.as_deref().unwrap_or_default();
    let text = Text {
        sql: sql.to_string(),
        line: 1,
    };
    let statements = Session::split(sql);
    let statements = statements.map_err(|error| failed(&runner, error.into(), &text))?;
    let Some((last, before)) = statements.split_last() else {
        return Err(usage("there is no statement to profile".to_string()));
    };
    let run = |statement: &Statement| {
        let told = |failure| failed(&runner, moved(failure, statement.start), &text);
        let (profile, ran) = runner.profiled(&statement.text).map_err(told)?;
        Ok((profile, ran.map_err(told)))
    };
    for statement in before {
        run(statement)?.1?;
    }
    let (profile, ran) = run(last)?;
    let write = Profile::form_of(&args.output).unwrap_or(Profile::to_html);
    let written = write_whole(&args.output, &write(&profile));
    written.map_err(|error| {
        (
            format!("cannot write {}: {error}", args.output.display()),
            FAILED,
        )
    })?;
    ran?;
    let simulated = match args.simulate.as_slice() {
        [] => String::new(),
        workers => format!("\n\n{}", profile.simulated(workers).trim_end()),
    };
    let (sums, name) = (profile.summary(), args.output.display());
    Ok(format!("{sums}{simulated}\n\nwrote {name}"))
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let new = NewFile::beside(path)?;
    new.file().write_all(text.as_bytes())?;
    new.commit()
}

/// A failure whose place counts from the start of all statements.
fn moved(failure: Failure, start: Position) -> Failure {
    match failure {
        Failure::Engine(error) => Failure::Engine(Box::new(error.moved_to(start))),
        other => other,
    }
}

/// Tells of a failure that has a place in the text; the message of others.
fn failed(runner: &Runner, failure: Failure, text: &Text) -> (String, u8) {
    match failure {
        Failure::Engine(error) => {
            report::failure(&error, text, &Origin::Typed);
            (String::new(), FAILED)
        }
        Failure::Interrupted => {
            let signal = u8::try_from(runner.interrupts().signal()).unwrap_or(0);
            ("interrupted".to_string(), 128 + signal)
        }
        Failure::Print(error) => (format!("{error:?}"), FAILED),
        Failure::SecondResult(_) | Failure::ReaderGone => (String::new(), FAILED),
    }
}
