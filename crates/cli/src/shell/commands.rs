//! The dot commands: one table that dispatch, help, completion and the nearest name come from.
//! In: a line without its dot, or with its backslash. Out: what the command does, or why not.
//! Invariant: a command is known by its name, another name of it, or a beginning that no other command has.
//! Not here: what the commands do (looks.rs, catalog.rs, files.rs).

use clap::ValueEnum;
use grouse::{function_texts, nearest_names};

use crate::print::Format;

use super::destination::Life;
use super::words::{Arguments, Complaint};
use super::{Shell, Stop, Timer};

/// A dot command.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, as help shows them.
    pub arguments: &'static str,
    /// What its arguments are, for completion.
    pub takes: Takes,
    /// What it does.
    pub help: &'static str,
    run: fn(&mut Shell, &Arguments) -> Result<(), Complaint>,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing that could be completed.
    Nothing,
    /// `on` or `off`.
    Switch,
    /// A format.
    Format,
    /// A file.
    File,
    /// A table or a file.
    Relation,
    /// A command.
    Command,
}

type Run = fn(&mut Shell, &Arguments) -> Result<(), Complaint>;

const fn command(
    (name, arguments): (&'static str, &'static str),
    takes: Takes,
    help: &'static str,
    run: Run,
) -> Command {
    Command {
        name,
        arguments,
        takes,
        help,
        run,
    }
}

/// All commands, by name.
pub static COMMANDS: &[Command] = &[
    command(
        ("bail", "on|off"),
        Takes::Switch,
        "whether a failure ends the rest; scripts have it on",
        Shell::set_bail,
    ),
    command(
        ("cd", "[FOLDER]"),
        Takes::File,
        "another folder, by default the home",
        Shell::change_folder,
    ),
    command(
        ("databases", ""),
        Takes::Nothing,
        "the databases",
        Shell::databases,
    ),
    command(
        ("dump", "[TABLE]"),
        Takes::Relation,
        "statements that make the tables again, with their rows",
        Shell::dump,
    ),
    command(
        ("echo", "on|off"),
        Takes::Switch,
        "each statement before its result",
        Shell::set_echo,
    ),
    command(("exit", "[CODE]"), Takes::Nothing, "leave", leave),
    command(
        ("headers", "on|off"),
        Takes::Switch,
        "names above columns",
        Shell::set_headers,
    ),
    command(
        ("help", "[COMMAND|FUNCTION]"),
        Takes::Command,
        "this text, or what one does",
        help,
    ),
    command(
        (
            "import",
            "[--csv|--json|--parquet|--arrow] [--skip N] FILE TABLE",
        ),
        Takes::File,
        "rows of a file into a table, which is made if there is none",
        Shell::import,
    ),
    command(
        ("indexes", "[TABLE]"),
        Takes::Relation,
        "columns of primary keys and unique ones",
        Shell::indexes,
    ),
    command(
        ("maxrows", "[N]"),
        Takes::Nothing,
        "rows that a table shows, 0 for all",
        Shell::set_max_rows,
    ),
    command(
        ("mode", "[FORMAT [TABLE]]"),
        Takes::Format,
        "how results look; .help mode lists the formats",
        Shell::set_mode,
    ),
    command(
        ("nullvalue", "[TEXT]"),
        Takes::Nothing,
        "the text of NULL",
        Shell::set_null,
    ),
    command(
        ("once", "FILE or |PROGRAM"),
        Takes::File,
        "the next result goes there",
        |shell, arguments| shell.redirect(arguments, Life::Once),
    ),
    command(
        ("open", "FILE [NAME]"),
        Takes::File,
        "a file as a table",
        Shell::open,
    ),
    command(
        ("output", "[FILE or |PROGRAM]"),
        Takes::File,
        "results go there until .output alone",
        |shell, arguments| shell.redirect(arguments, Life::UntilTold),
    ),
    command(
        ("pager", "on|off or PROGRAM"),
        Takes::Switch,
        "results that are longer than the screen, page by page",
        Shell::set_pager,
    ),
    command(
        ("print", "[TEXT]"),
        Takes::Nothing,
        "write a text",
        Shell::print,
    ),
    command(
        ("prompt", "TEXT"),
        Takes::Nothing,
        "what stands before the line that you type",
        Shell::set_prompt,
    ),
    command(("quit", ""), Takes::Nothing, "leave", leave),
    command(
        ("read", "FILE"),
        Takes::File,
        "run the statements of a file",
        Shell::read,
    ),
    command(
        ("schema", "[TABLE|FILE]"),
        Takes::Relation,
        "columns and types",
        Shell::schema,
    ),
    command(
        ("separator", "[COLUMN [ROW]]"),
        Takes::Nothing,
        "what stands between values and after rows of csv, tsv and list",
        Shell::set_separator,
    ),
    command(
        ("shell", "COMMAND"),
        Takes::File,
        "run a command of the system",
        Shell::run_program,
    ),
    command(
        ("show", ""),
        Takes::Nothing,
        "the settings",
        Shell::show_settings,
    ),
    command(
        ("system", "COMMAND"),
        Takes::File,
        "run a command of the system",
        Shell::run_program,
    ),
    command(
        ("tables", "[PATTERN]"),
        Takes::Nothing,
        "the tables of this session, as LIKE has them",
        Shell::list_tables,
    ),
    command(
        ("timer", "on|off"),
        Takes::Switch,
        "the time after each statement",
        Shell::set_timer,
    ),
    command(
        ("width", "[N …]"),
        Takes::Nothing,
        "widths of columns: 0 for their own, negative for values at the right",
        Shell::set_widths,
    ),
];

/// Commands that reach files or run programs without a statement.
const OUTSIDE: [&str; 7] = ["cd", "once", "output", "pager", "read", "shell", "system"];

/// What hands coming from psql type, and what it is here.
const BACKSLASHES: &[(&str, &str)] = &[
    ("?", "help"),
    ("h", "help"),
    ("q", "exit"),
    ("d", "schema"),
    ("d+", "schema"),
    ("dt", "tables"),
    ("dv", "tables"),
    ("di", "indexes"),
    ("l", "databases"),
    ("i", "read"),
    ("o", "output"),
    ("!", "shell"),
    ("cd", "cd"),
    ("echo", "print"),
    ("timing", "timer"),
    ("x", "mode"),
];

/// Runs the command of `line`.
pub fn run(shell: &mut Shell, line: &str) -> Result<(), Complaint> {
    let line = match line.strip_prefix('\\') {
        Some(line) => &backslash(shell, line)?,
        None => line,
    };
    let (name, rest) = split(line);
    let command = find(name)?;
    if OUTSIDE.contains(&command.name) && shell.runner().session().options().is_confined() {
        return Err(Complaint::Text(format!(
            ".{} reaches files or programs, and this session reaches only some files (allow_files, allowed_directories)",
            command.name
        )));
    }
    let done = (command.run)(shell, &Arguments::of(rest));
    done.map_err(|complaint| match complaint {
        Complaint::Usage => Complaint::Text(format!(
            "expected .{} {}: {}",
            command.name, command.arguments, command.help
        )),
        other => other,
    })
}

/// The name, and what stands behind it.
fn split(line: &str) -> (&str, &str) {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match rest.is_empty() {
        true => (name.strip_suffix(';').unwrap_or(name), rest),
        false => (name, rest),
    }
}

/// The command of this name, or of a name that begins so.
fn find(name: &str) -> Result<&'static Command, Complaint> {
    let wanted = name.to_ascii_lowercase();
    if let Some(command) = COMMANDS.iter().find(|command| command.name == wanted) {
        return Ok(command);
    }
    let begins = |command: &&Command| !wanted.is_empty() && command.name.starts_with(&wanted);
    let candidates: Vec<&'static Command> = COMMANDS.iter().filter(begins).collect();
    let names = match candidates.as_slice() {
        [command] => return Ok(command),
        [] => nearest_names(&wanted, COMMANDS.iter().map(|command| command.name)),
        several => several.iter().map(|c| c.name.to_owned()).collect(),
    };
    let meant = names.iter().map(|name| format!(".{name}"));
    let meant = meant.collect::<Vec<_>>().join(", ");
    Err(Complaint::Text(match meant.is_empty() {
        true => format!("there is no command .{name}; .help lists them"),
        false => format!("there is no command .{name}; did you mean {meant}? .help lists all"),
    }))
}

/// The dot command that `\d t` stands for, without its dot.
fn backslash(shell: &Shell, line: &str) -> Result<String, Complaint> {
    let (name, rest) = match line.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => split(line),
    };
    let toggled = match (name, rest.trim()) {
        ("d" | "d+", "") => Some("tables"),
        ("timing", "") if shell.settings().timer == Timer::Always => Some("timer off"),
        ("timing", "") => Some("timer on"),
        ("x", _) if shell.settings().format == Some(Format::Line) => Some("mode table"),
        ("x", _) => Some("mode line"),
        _ => None,
    };
    if let Some(line) = toggled {
        return Ok(line.to_owned());
    }
    match BACKSLASHES.iter().find(|(known, _)| *known == name) {
        Some((_, command)) => Ok(format!("{command} {rest}")),
        None => Err(Complaint::Text(format!(
            "there is no command \\{name}; .help lists those with a dot"
        ))),
    }
}

fn leave(_: &mut Shell, arguments: &Arguments) -> Result<(), Complaint> {
    match arguments.at_most_one()?.map(str::parse) {
        None => Err(Stop::Exit(0).into()),
        Some(Ok(code)) => Err(Stop::Exit(code).into()),
        Some(Err(_)) => Err(Complaint::Usage),
    }
}

fn help(shell: &mut Shell, arguments: &Arguments) -> Result<(), Complaint> {
    let Some(name) = arguments.at_most_one()? else {
        return shell.say(&overview());
    };
    let functions = about_function(name);
    let is_command = COMMANDS.iter().any(|command| command.name == name);
    if !functions.is_empty() && !is_command {
        return shell.say(&functions);
    }
    let command = find(name.trim_start_matches('.'))?;
    let mut text = format!(
        ".{} {}\n  {}\n",
        command.name, command.arguments, command.help
    );
    if command.takes == Takes::Format {
        for format in Format::value_variants() {
            text += &format!("  {:<10}{}\n", format.name(), format.help());
        }
    }
    shell.say(&(text + &functions))
}

/// What the functions of this name do, with examples; nothing if there is none.
fn about_function(name: &str) -> String {
    let meant = function_texts().iter();
    let meant = meant.filter(|text| text.name.eq_ignore_ascii_case(name));
    let said = meant.map(|text| {
        let also = match text.alias_of {
            Some(other) => format!(" It is {other} under another name."),
            None => String::new(),
        };
        format!(
            "{}  ({} function)\n  {}{also}\n  SELECT {};  -- {}\n",
            text.call,
            text.class.name(),
            text.description,
            text.example,
            text.result
        )
    });
    said.collect()
}

fn overview() -> String {
    let usage = |command: &Command| format!(".{} {}", command.name, command.arguments);
    let usages: Vec<String> = COMMANDS.iter().map(usage).collect();
    let width = usages.iter().map(|usage| usage.chars().count());
    let width = width.filter(|width| *width < 28).max().unwrap_or(0);
    let mut text = String::from(
        "SQL runs when a line ends with `;`. Tab completes, Ctrl-R searches, Ctrl-C stops a query, Ctrl-D leaves.\n",
    );
    for (usage, command) in usages.iter().zip(COMMANDS) {
        if usage.chars().count() > width {
            text += &format!("{usage}\n{:width$}  {}\n", "", command.help);
        } else {
            text += &format!("{usage:width$}  {}\n", command.help);
        }
    }
    text + "psql's \\d, \\dt, \\l, \\i, \\o, \\x, \\timing, \\!, \\? and \\q are known, too.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str) -> String {
        match find(name) {
            Ok(command) => command.name.to_owned(),
            Err(Complaint::Text(text)) => text,
            Err(_) => String::new(),
        }
    }

    #[test]
    fn commands_are_found_by_name_or_beginning() {
        assert_eq!(message("mode"), "mode");
        assert_eq!(message("TABLES"), "tables");
        assert_eq!(message("tab"), "tables");
        assert!(message("s").contains(".schema, .separator, .shell"));
        assert!(message("tabels").contains("did you mean .tables?"));
        assert!(message("frobnicate").ends_with(".help lists them"));
    }

    #[test]
    fn names_are_sorted_and_what_psql_has_leads_to_one() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for name in BACKSLASHES.iter().map(|(_, name)| name).chain(&OUTSIDE) {
            assert!(
                COMMANDS.iter().any(|command| command.name == *name),
                "{name}"
            );
        }
    }

    #[test]
    fn functions_are_explained() {
        let said = about_function("LTRIM");
        assert!(
            said.starts_with("ltrim(text [, characters])  (scalar function)\n"),
            "{said}"
        );
        assert!(
            said.ends_with("SELECT ltrim('xxay', 'x');  -- ay\n"),
            "{said}"
        );
        assert!(about_function("ucase").contains("upper under another name"));
        assert_eq!(about_function("range").matches("SELECT").count(), 2);
        assert_eq!(about_function("frobnicate"), "");
    }

    #[test]
    fn help_names_all() {
        let text = overview();
        for command in COMMANDS {
            assert!(text.contains(&format!(".{}", command.name)));
        }
    }
}
