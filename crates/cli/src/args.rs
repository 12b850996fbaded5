//! The command line.
//! In: the arguments. Out: [`Args`] and the engine's options.
//! Invariant: a wrong argument is refused here, with exit code 2 and its name. The engine's options become flags by its
//! own table: a new option needs no line here.
//! Not here: what the options mean.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser};
use grouse::{Audience, OPTIONS, OptionSpec, SessionOptions};

use crate::output::Compression;
use crate::print::Format;

const EXAMPLES: &str = "\
Examples:
  grouse \"SELECT region, count(*) FROM 'visits/*.parquet' GROUP BY region\"
  grouse -f report.sql --format csv -o report.csv
  cat report.sql | grouse --memory-limit 4GB
  grouse                      (a prompt; .help lists its commands)
  grouse profile \"SELECT …\"  (what each worker does when, as a page; see grouse profile --help)

A table fits the terminal; where standard output is none it has its full width. It shows the first and the
last rows of a large result: 40 on a terminal, 10000 elsewhere (--max-rows). All other formats write every row.

Exit codes: 0 all statements ran, 1 one failed, 2 the command line is wrong, 130 interrupted.";

/// SQL over Parquet, CSV, JSON and Arrow files, built around GROUP BY.
#[derive(Debug, Parser)]
#[command(name = "grouse", version, after_help = EXAMPLES)]
pub struct Args {
    /// The SQL to run: one statement or several, separated by `;`
    #[arg(value_name = "SQL", conflicts_with = "file")]
    pub sql: Option<String>,

    /// Run the SQL of this file (`-` is standard input)
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// How results are written [default: by the ending of --output, else table]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Write results to this file, which appears only when all statements have run
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Rows that a table shows, 0 for all [default: 40 on a terminal, else 10000]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<usize>,

    /// Set any option (`SHOW ALL` lists them); may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<(String, String)>,
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
        let mut command =
            engine_flags().fold(Args::command(), |command, (_, flag)| command.arg(flag));
        let arguments = arguments.into_iter().map(|one| comment_as_sql(one.into()));
        let matches = command.try_get_matches_from_mut(arguments)?;
        let args = Args::from_arg_matches(&matches)?;
        if let Some(message) = args.output.as_deref().and_then(|path| refusal(path, &args)) {
            return Err(command.error(ErrorKind::ValueValidation, message));
        }
        let options = options(&matches, &args)
            .map_err(|error| command.error(ErrorKind::ValueValidation, error))?;
        Ok((args, options))
    }

    /// The format asked for, or the one that the output file's ending stands for.
    pub fn format(&self) -> Format {
        let by_ending = || self.output.as_deref().and_then(format_of);
        self.format.or_else(by_ending).unwrap_or(Format::Table)
    }

    /// How the output file is compressed, by its ending.
    pub fn compression(&self) -> Compression {
        let path = self.output.as_deref();
        path.map_or(Compression::None, |path| split_compression(path).1)
    }

    /// Settings that are not the engine's own but DataFusion's, which only SQL knows.
    pub fn datafusion_settings(&self) -> impl Iterator<Item = &(String, String)> {
        self.settings
            .iter()
            .filter(|(name, _)| is_of_datafusion(name))
    }
}

/// SQL that begins with a comment, `-- daily\nSELECT …`, is no flag: no flag has a blank after its dashes.
fn comment_as_sql(argument: OsString) -> OsString {
    let is_comment = argument
        .to_str()
        .and_then(|text| text.strip_prefix("--"))
        .is_some_and(|rest| rest.starts_with(char::is_whitespace));
    if !is_comment {
        return argument;
    }
    let mut sql = OsString::from(" ");
    sql.push(argument);
    sql
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

/// Endings of files, and their formats.
const ENDINGS: &[(&str, Format)] = &[
    ("txt", Format::Table),
    ("text", Format::Table),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("tab", Format::Tsv),
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("jsonl", Format::Ndjson),
    ("md", Format::Markdown),
    ("markdown", Format::Markdown),
    ("arrow", Format::Arrow),
    ("arrows", Format::Arrow),
    ("feather", Format::Arrow),
    ("ipc", Format::Arrow),
    ("parquet", Format::Parquet),
    ("parq", Format::Parquet),
    ("pq", Format::Parquet),
];

/// Endings of compressed files that are not written.
const OTHER_COMPRESSIONS: &[&str] = &["bz2", "xz", "lz4", "zip", "br", "7z"];

/// Why a file of this name is not written: its ending would say what is not in it.
fn refusal(path: &Path, args: &Args) -> Option<String> {
    let name = path.display();
    let (stem, compression) = split_compression(path);
    let ending = ending_of(stem);
    let known = || {
        let endings: Vec<String> = ENDINGS
            .iter()
            .map(|(ending, _)| format!(".{ending}"))
            .collect();
        format!("{} (text also with .gz or .zst)", endings.join(", "))
    };
    match ending.as_deref() {
        Some(other) if OTHER_COMPRESSIONS.contains(&other) => Some(format!(
            "--output {name}: files are compressed with gzip (.gz) or zstd (.zst), not as .{other}"
        )),
        Some(other) if args.format.is_none() && format_of(path).is_none() => Some(format!(
            "--output {name}: no format has the ending .{other}; name one with --format, or write {}",
            known()
        )),
        _ if compression != Compression::None && args.format().is_binary() => Some(format!(
            "--output {name}: {} files are compressed inside; leave .gz or .zst out",
            args.format().name()
        )),
        _ => None,
    }
}

/// The name without the ending of a compression.
fn split_compression(path: &Path) -> (&Path, Compression) {
    let compression = match ending_of(path).as_deref() {
        Some("gz" | "gzip") => Compression::Gzip,
        Some("zst" | "zstd") => Compression::Zstd,
        _ => return (path, Compression::None),
    };
    (path.file_stem().map_or(path, Path::new), compression)
}

fn ending_of(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

fn format_of(path: &Path) -> Option<Format> {
    let ending = ending_of(split_compression(path).0)?;
    let found = ENDINGS.iter().find(|(known, _)| *known == ending);
    found.map(|(_, format)| *format)
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
                expected,
                "{arguments:?}"
            );
        };
        check(&["select 1"], Format::Table);
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
    fn sql_and_a_file_exclude_each_other() {
        assert!(parse(&["select 1", "-f", "x.sql"]).is_err());
    }

    #[test]
    fn sql_may_begin_with_a_comment() {
        for sql in ["-- a comment\nselect 1", "--\nselect 1"] {
            let (args, _) = parse(&["--threads", "2", sql]).unwrap();
            assert_eq!(args.sql.as_deref().map(str::trim_start), Some(sql));
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
            (Format::Csv, Compression::Gzip)
        );
        let (args, _) = parse(&["select 1", "-o", "a.zst", "--format", "json"]).unwrap();
        assert_eq!(
            (args.format(), args.compression()),
            (Format::Json, Compression::Zstd)
        );
        assert!(parse(&["select 1", "-o", "out.xlsx", "--format", "csv"]).is_ok());
    }

    #[test]
    fn the_command_is_well_formed() {
        engine_flags()
            .fold(Args::command(), |command, (_, flag)| command.arg(flag))
            .debug_assert();
    }
}
