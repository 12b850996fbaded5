//! What the command line comes to: which files become tables, what runs before all else, what then, and whether a person is asked.
//! In: [`Args`]. Out: [`Startup`], and the run of it.
//! Invariant: flags win over the file that runs at the start. What looks like a file is one, so that a wrong name is not read as SQL.
//! Not here: what an argument is called (args.rs).

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use crate::args::{Args, Step};
use crate::prompt;
use crate::report::{self, Origin};
use crate::shell::{Shell, Stop};

/// What is to be done, in order.
pub struct Startup {
    init: Option<PathBuf>,
    tables: Vec<String>,
    first: Vec<String>,
    locks: bool,
    work: Vec<Work>,
}

#[derive(Debug, PartialEq, Eq)]
enum Work {
    Sql(String),
    Script(PathBuf),
    StandardInput,
    Prompt,
}

/// What an argument by itself is.
#[derive(Debug, PartialEq, Eq)]
enum Argument {
    Sql,
    Script,
    Table,
}

impl Startup {
    /// What these arguments ask for, or why that cannot be.
    pub fn of(args: &Args) -> Result<Startup, String> {
        let (mut tables, mut work) = (Vec::new(), Vec::new());
        for step in &args.steps {
            match step {
                Step::Command(sql) => work.push(Work::Sql(sql.clone())),
                Step::File(path) if path == Path::new("-") => work.push(Work::StandardInput),
                Step::File(path) => work.push(script(path)?),
                Step::Input(text) => match kind_of(text) {
                    Argument::Sql => work.push(Work::Sql(text.clone())),
                    Argument::Script => work.push(script(Path::new(text))?),
                    Argument::Table => tables.push(text.clone()),
                },
            }
        }
        if work.is_empty() {
            work.push(match io::stdin().is_terminal() {
                true => Work::Prompt,
                false => Work::StandardInput,
            });
        }
        let is_read = work
            .iter()
            .any(|work| matches!(work, Work::StandardInput | Work::Prompt));
        if is_read && tables.iter().any(|table| table == "-") {
            return Err(
                "`-` takes standard input for the table stdin: write the SQL as an argument, with -c or -f".to_owned(),
            );
        }
        Ok(Startup {
            init: init_file(args),
            tables,
            first: args.first.clone(),
            locks: false,
            work,
        })
    }

    /// The same, with options that stay from the work on if `locks` says so.
    pub fn locking(self, locks: bool) -> Startup {
        Startup { locks, ..self }
    }

    /// Whether a person is asked.
    pub fn is_prompt(&self) -> bool {
        self.work == [Work::Prompt]
    }

    /// Does it.
    pub fn run(&self, shell: &mut Shell, args: &Args) -> Result<(), Stop> {
        if let Some(path) = &self.init {
            match script_run(shell, path) {
                // A person can put it right.
                Err(Stop::Failed) if self.is_prompt() => {}
                other => other?,
            }
            let settings = shell.settings_mut();
            settings.format = args.format().or(settings.format);
            settings.rows_max = args.max_rows.or(settings.rows_max);
        }
        for path in &self.tables {
            let name = shell.add_table(path)?;
            if self.is_prompt() {
                prompt::tell(&format!("The table {name} is {path}."));
            }
        }
        for sql in &self.first {
            shell.feed(sql.as_bytes(), &Origin::Typed)?;
        }
        if self.locks {
            lock(shell)?;
        }
        for work in &self.work {
            match work {
                Work::Sql(sql) => shell.feed(sql.as_bytes(), &Origin::Typed)?,
                Work::Script(path) => script_run(shell, path)?,
                Work::StandardInput => {
                    let origin = Origin::File("standard input".to_owned());
                    shell.feed(io::stdin().lock(), &origin)?;
                }
                Work::Prompt => prompt::run(shell)?,
            }
        }
        Ok(())
    }
}

/// No statement changes an option any more.
fn lock(shell: &Shell) -> Result<(), Stop> {
    let locked = shell.runner().plan("SET lock_options = on");
    locked.map(drop).map_err(|_| {
        report::message("the options of this session cannot be locked");
        Stop::Failed
    })
}

/// A script that is there; one that is not is an error of the command line.
fn script(path: &Path) -> Result<Work, String> {
    let found = match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => Ok(Work::Script(path.to_owned())),
        Err(error) => Err(error),
    };
    found.map_err(|error: io::Error| format!("cannot read {}: {error}", path.display()))
}

fn script_run(shell: &mut Shell, path: &Path) -> Result<(), Stop> {
    shell.run_file(path).unwrap_or_else(|message| {
        report::message(&message);
        Err(Stop::Failed)
    })
}

fn kind_of(text: &str) -> Argument {
    let path = Path::new(text);
    let is_script = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("sql"));
    let is_there = text == "-" || path.exists();
    let is_one_word = !text.contains(|c: char| c.is_whitespace() || "'\"();,".contains(c));
    let is_command = text.starts_with('\\')
        || text
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    let is_named_so = is_one_word && !is_command && text.contains(['.', '/']);
    match (is_there || is_named_so, is_script) {
        (false, _) => Argument::Sql,
        (true, true) => Argument::Script,
        (true, false) => Argument::Table,
    }
}

/// `--init`, or `grouse/init.sql` in `$XDG_CONFIG_HOME`, by default `~/.config`, if there is one.
fn init_file(args: &Args) -> Option<PathBuf> {
    if args.no_init {
        return None;
    }
    if args.init.is_some() {
        return args.init.clone();
    }
    let folder = prompt::folder("XDG_CONFIG_HOME", ".config")?;
    Some(folder.join("init.sql")).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_sql_unless_they_look_like_files() {
        for (text, kind) in [
            ("SELECT 1", Argument::Sql),
            ("SELECT*FROM'a.csv'", Argument::Sql),
            ("help", Argument::Sql),
            (".tables", Argument::Sql),
            ("\\d", Argument::Sql),
            ("FROM numbers(3)", Argument::Sql),
            ("orders.csv", Argument::Table),
            ("visits/*.parquet", Argument::Table),
            ("s3://bucket/visits", Argument::Table),
            ("-", Argument::Table),
            ("report.SQL", Argument::Script),
        ] {
            assert_eq!(kind_of(text), kind, "{text}");
        }
    }
}
