//! The command line.
//! In: the arguments. Out: [`Args`] with the steps in the order in which they were written, and the engine's options.
//! Invariant: a wrong argument is refused here, with exit code 2 and its name. The engine's options become flags by its
//! own table: a new option needs no line here.
//! Not here: what the options mean.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};
use grouse::{Audience, OPTIONS, OptionSpec, SessionOptions};

use crate::endings;
use crate::output::Compression;
use crate::print::Format;

/// How to use the shell, below the options in its help.
pub const EXAMPLES: &str = "\
Examples:
  grouse \"SELECT region, count(*) FROM 'visits/*.parquet' GROUP BY region\"
  grouse -f report.sql --format csv -o report.csv
  grouse orders.csv                  (a prompt, with the file as the table orders)
  grouse orders.csv \"SELECT count(*) FROM orders\"
  grouse --cmd \"SET threads = 4\" -c \"SELECT 1\" -c .tables
  cat report.sql | grouse --memory-limit 4GB
  cat orders.csv | grouse - \"SELECT count(*) FROM stdin\"
  grouse                             (a prompt; .help lists its commands)
  grouse profile \"SELECT …\"         (what each worker does when, as a page; see grouse profile --help)

What is written runs in its order: data files become tables first, then comes --cmd, then SQL, -c, scripts and -f. Where there
is nothing to run, SQL comes from standard input: a prompt if that is a terminal. Before all of it runs the file of --init, by
default ~/.config/grouse/init.sql, if there is one. As in other shells, a format is an option with one dash, too: -csv, -json, -box.

A table fits the terminal; where standard output is none it has its full width. It shows the first and the
last rows of a large result: 40 on a terminal, 10000 elsewhere (--max-rows). All other formats write every row.

Environment: PAGER shows results at the prompt that are longer than the screen (less -SRFX), NO_COLOR leaves
colors out, XDG_CONFIG_HOME and XDG_STATE_HOME say where init.sql and the history are.

Exit codes: 0 all statements ran, 1 one failed, 2 the command line is wrong, 130 interrupted.";

/// SQL over Parquet, CSV, JSON and Arrow files, built around GROUP BY.
#[derive(Debug, Parser)]
#[command(name = "grouse", version, after_help = EXAMPLES)]
pub struct Args {
    /// SQL to run, a script of it (.sql), or data files, which become tables; `-` is data on standard input
    #[arg(value_name = "SQL|FILE")]
    pub inputs: Vec<String>,

    /// Run this SQL or dot command and leave; may be repeated
    #[arg(short, long = "command", value_name = "SQL")]
    pub commands: Vec<String>,

    /// Run the SQL of this file (`-` is standard input) and leave; may be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Run this SQL or dot command before anything else; may be repeated
    #[arg(long = "cmd", value_name = "SQL")]
    pub first: Vec<String>,

    /// Run this file at the start, in place of ~/.config/grouse/init.sql
    #[arg(long, value_name = "FILE", conflicts_with = "no_init")]
    pub init: Option<PathBuf>,

    /// Run no file at the start
    #[arg(long)]
    pub no_init: bool,

    /// How results are written [default: by the ending of --output, else table]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Write results to this file, which appears only when all statements have run
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// For SQL that nobody answers for: it reaches no file and no address and changes no option; `--allowed-directories` opens folders
    #[arg(long)]
    pub safe: bool,

    /// Rows that a table shows, 0 for all [default: 40 on a terminal, else 10000]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,

    /// Set any option (`SHOW ALL` lists them); may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,

    /// Write the manual page, or what a shell needs to complete these options
    #[arg(long, value_enum, value_name = "WHAT", hide = true)]
    pub generate: Option<Generated>,

    /// What is to run, in the order of the command line.
    #[arg(skip)]
    pub steps: Vec<Step>,
}

/// What is written of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// A manual page
    Man,
    /// A script for bash
    Bash,
    /// A script for zsh
    Zsh,
    /// A script for fish
    Fish,
}

/// Something that the command line says is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An argument by itself: SQL or a file.
    Input(String),
    /// `-c`
    Command(String),
    /// `-f`
    File(PathBuf),
}

impl Args {
    /// The arguments of this process; leaves it if they are wrong or ask for help.
    pub fn parse_all() -> (Args, SessionOptions) {
        Args::parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    fn parse_from<T>(
        arguments: impl IntoIterator<Item = T>,
    ) -> Result<(Args, SessionOptions), clap::Error>
    where
        T: Into<OsString>,
    {
        let mut command = Args::whole_command();
        let arguments = arguments.into_iter().map(|one| as_written_here(one.into()));
        let matches = command.try_get_matches_from_mut(arguments)?;
        let mut args = Args::from_arg_matches(&matches)?;
        args.steps = steps(&matches, &args);
        if let Some(path) = &args.output
            && let Some(message) = endings::refusal(path, args.format)
        {
            let message = format!("--output {}: {message}", path.display());
            return Err(command.error(ErrorKind::ValueValidation, message));
        }
        let options = options(&matches, &args)
            .map_err(|error| command.error(ErrorKind::ValueValidation, error))?;
        Ok((args, options))
    }

    /// The command line with the engine's options.
    pub fn whole_command() -> Command {
        engine_flags().fold(Args::command(), |command, (_, flag)| command.arg(flag))
    }

    /// The format asked for, or the one that the output file's ending stands for.
    pub fn format(&self) -> Option<Format> {
        let by_ending = || self.output.as_deref().and_then(endings::format_of);
        self.format.or_else(by_ending)
    }

    /// How the output file is compressed, by its ending.
    pub fn compression(&self) -> Compression {
        let path = self.output.as_deref();
        path.map_or(Compression::None, endings::compression_of)
    }

    /// Settings that are not the engine's own but DataFusion's, which only SQL knows.
    pub fn datafusion_settings(&self) -> impl Iterator<Item = &(String, String)> {
        self.settings
            .iter()
            .filter(|(name, _)| is_of_datafusion(name))
    }
}

/// What the command line says is to run, in its order.
fn steps(matches: &ArgMatches, args: &Args) -> Vec<Step> {
    let places = |id| matches.indices_of(id).into_iter().flatten();
    let inputs = args.inputs.iter().cloned().map(Step::Input);
    let commands = args.commands.iter().cloned().map(Step::Command);
    let files = args.files.iter().cloned().map(Step::File);
    let mut steps: Vec<(usize, Step)> = (places("inputs").zip(inputs))
        .chain(places("commands").zip(commands))
        .chain(places("files").zip(files))
        .collect();
    steps.sort_by_key(|(place, _)| *place);
    steps.into_iter().map(|(_, step)| step).collect()
}

/// Options that have one dash in other shells.
const ONE_DASH: [&str; 5] = ["cmd", "init", "no-init", "version", "help"];

/// An argument as clap takes it.
fn as_written_here(argument: OsString) -> OsString {
    let Some(text) = argument.to_str() else {
        return argument;
    };
    // SQL that begins with a comment, `-- daily\nSELECT …`, is no flag: no flag has a blank after its dashes.
    let rest = text.strip_prefix("--");
    if rest.is_some_and(|rest| rest.starts_with(char::is_whitespace)) {
        return format!(" {text}").into();
    }
    match text.strip_prefix('-') {
        Some(option) if ONE_DASH.contains(&option) => format!("--{option}").into(),
        Some(format) if format.len() > 1 && Format::from_str(format, false).is_ok() => {
            format!("--format={format}").into()
        }
        _ => argument,
    }
}

/// A flag per option for users: `memory_limit` is `--memory-limit`.
pub fn engine_flags() -> impl Iterator<Item = (&'static OptionSpec, Arg)> {
    let for_users = OPTIONS
        .iter()
        .filter(|option| option.audience == Audience::User);
    for_users.map(|option| {
        // Leaked once per process: clap keeps flags as static text.
        let flag: &'static str = option.name.replace('_', "-").leak();
        let help: &'static str = format!(
            "{} [default: {}]",
            option.doc.trim_end_matches('.'),
            option.default
        )
        .leak();
        let flag = Arg::new(option.name)
            .long(flag)
            .value_name(option.value)
            .help(help);
        let flag = if option.name == "temp_directory" {
            flag.visible_alias("temp-dir")
        } else {
            flag
        };
        (option, flag)
    })
}

fn options(matches: &ArgMatches, args: &Args) -> Result<SessionOptions, grouse::Error> {
    let mut options = SessionOptions::default();
    if args.safe {
        options.close();
    }
    for (name, value) in args
        .settings
        .iter()
        .filter(|(name, _)| !is_of_datafusion(name))
    {
        options.set(name, value)?;
    }
    set_engine_flags(matches, &mut options)?;
    Ok(options)
}

/// The engine's options as their flags say.
pub fn set_engine_flags(
    matches: &ArgMatches,
    options: &mut SessionOptions,
) -> Result<(), grouse::Error> {
    for (option, _) in engine_flags() {
        if let Some(value) = matches.get_one::<String>(option.name) {
            options.set(option.name, value)?;
        }
    }
    Ok(())
}

fn is_of_datafusion(name: &str) -> bool {
    name.starts_with("datafusion.")
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<(Args, SessionOptions), clap::Error> {
        Args::parse_from(std::iter::once("grouse").chain(arguments.iter().copied()))
    }

    #[test]
    fn format_follows_the_ending_unless_it_is_given() {
        let check = |arguments: &[&str], expected| {
            assert_eq!(
                parse(arguments).unwrap().0.format(),
                Some(expected),
                "{arguments:?}"
            );
        };
        assert_eq!(parse(&["select 1"]).unwrap().0.format(), None);
        check(&["select 1", "-o", "a.PARQUET"], Format::Parquet);
        check(&["select 1", "-o", "a.jsonl"], Format::Ndjson);
        check(&["select 1", "-o", "a.txt"], Format::Table);
        check(
            &["select 1", "-o", "a.parquet", "--format", "csv"],
            Format::Csv,
        );
    }

    #[test]
    fn settings_are_split_at_the_first_equals_sign() {
        assert_eq!(parse_setting("a = b=c"), Ok(("a".into(), "b=c".into())));
        assert!(parse_setting("novalue").is_err());
        assert!(parse_setting("=1").is_err());
    }

    #[test]
    fn options_come_from_flags_and_settings() {
        let (_, options) = parse(&["--threads", "3", "--memory-limit", "4GB"]).unwrap();
        assert_eq!(
            (options.threads, options.memory_limit),
            (3, Some(4_000_000_000))
        );
        let (_, options) = parse(&["--temp-dir", "/x", "--set", "threads=2"]).unwrap();
        assert_eq!(
            (options.threads, options.temp_directory),
            (2, vec!["/x".into()])
        );
        for wrong in [
            ["--threads", "many"],
            ["--memory-limit", "4 apples"],
            ["--set", "theads=1"],
        ] {
            let error = parse(&wrong).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
        }
    }

    #[test]
    fn safe_closes_what_no_other_flag_opens() {
        let (_, options) = parse(&["--safe", "--allow-network", "on"]).unwrap();
        let closed = (
            options.allow_files,
            options.allow_network,
            options.lock_options,
        );
        assert_eq!(closed, (false, true, true));
        let (_, options) = parse(&["--allowed-directories", "a:b", "--safe"]).unwrap();
        assert_eq!(options.allowed_directories.len(), 2);
        assert!(!options.allow_files && options.lock_options);
    }

    #[test]
    fn steps_keep_their_order() {
        let (args, _) = parse(&["-c", "a", "x.csv", "-f", "y.sql", "-c", "b"]).unwrap();
        assert_eq!(
            args.steps,
            [
                Step::Command("a".into()),
                Step::Input("x.csv".into()),
                Step::File("y.sql".into()),
                Step::Command("b".into()),
            ]
        );
    }

    #[test]
    fn options_of_other_shells_are_read() {
        let (args, _) = parse(&["-cmd", "a", "-csv", "-init", "x.sql", "select 1"]).unwrap();
        assert_eq!(
            (args.first, args.format, args.init),
            (vec!["a".into()], Some(Format::Csv), Some("x.sql".into()))
        );
        assert_eq!(args.inputs, ["select 1"]);
        assert!(parse(&["--init", "x.sql", "--no-init"]).is_err());
    }

    #[test]
    fn sql_may_begin_with_a_comment() {
        for sql in ["-- a comment\nselect 1", "--\nselect 1"] {
            let (args, _) = parse(&["--threads", "2", sql]).unwrap();
            assert_eq!(args.inputs[0].trim_start(), sql);
        }
        assert!(parse(&["--nothing"]).is_err());
    }

    #[test]
    fn an_ending_that_would_not_be_true_is_refused() {
        for (file, format) in [
            ("out.xlsx", None),
            ("a.csv.bz2", Some("csv")),
            ("a.parquet.gz", None),
            ("a.gz", Some("arrow")),
        ] {
            let mut arguments = vec!["select 1", "-o", file];
            arguments.extend(format.map(|_| "--format"));
            arguments.extend(format);
            let error = parse(&arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
            assert!(error.to_string().contains(file), "{error}");
        }
    }

    #[test]
    fn a_compressed_file_has_the_format_of_the_ending_before() {
        let (args, _) = parse(&["select 1", "-o", "a.csv.GZ"]).unwrap();
        assert_eq!(
            (args.format(), args.compression()),
            (Some(Format::Csv), Compression::Gzip)
        );
        let (args, _) = parse(&["select 1", "-o", "a.zst", "--format", "json"]).unwrap();
        assert_eq!(
            (args.format(), args.compression()),
            (Some(Format::Json), Compression::Zstd)
        );
        assert!(parse(&["select 1", "-o", "out.xlsx", "--format", "csv"]).is_ok());
    }

    #[test]
    fn the_command_is_well_formed() {
        Args::whole_command().debug_assert();
    }
}
