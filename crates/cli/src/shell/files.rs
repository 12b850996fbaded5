//! Commands about files and programs: scripts, rows of files, files as tables.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::Command;

use crate::report::Origin;

use super::catalog::{quoted, without_place};
use super::words::{Arguments, Complaint};
use super::{Shell, Stop};

/// Files that may be read one by the other: one that reads itself is an error.
const DEPTH_MAX: usize = 16;

impl Shell {
    pub(super) fn read(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let path = Path::new(arguments.one()?);
        if self.depth == DEPTH_MAX {
            return Err(Complaint::Text(format!(
                "{} is read within {DEPTH_MAX} files: one of them reads itself",
                path.display()
            )));
        }
        self.depth += 1;
        let ran = self.run_file(path);
        self.depth -= 1;
        ran.map_err(Complaint::Text)?.map_err(Complaint::Stop)
    }

    /// Runs a script. The outer error says why it cannot be read.
    pub fn run_file(&mut self, path: &Path) -> Result<Result<(), Stop>, String> {
        let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(file),
        });
        let file = opened.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let origin = Origin::File(path.display().to_string());
        Ok(self.feed(BufReader::new(file), &origin))
    }

    pub(super) fn open(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let (path, name) = match arguments.words.as_slice() {
            [path] => (path, table_name(path)),
            [path, name] => (path, name.clone()),
            _ => return Err(Complaint::Usage),
        };
        self.make_view(&name, &quoted(path, '\''))
    }

    /// A file, glob or folder as a table by its name; gives the table's name.
    pub fn add_table(&mut self, path: &str) -> Result<String, Stop> {
        let (wanted, relation) = match path {
            "-" => ("stdin".to_owned(), "read_csv('/dev/stdin')".to_owned()),
            path => (table_name(path), quoted(path, '\'')),
        };
        let tables = self.runner.session().tables();
        let is_free = |name: &String| !tables.iter().any(|table| table.eq_ignore_ascii_case(name));
        let numbered = (2..).map(|n| format!("{wanted}_{n}"));
        let name = std::iter::once(wanted.clone())
            .chain(numbered)
            .find(is_free);
        let name = name.unwrap_or(wanted);
        let made = self.make_view(&name, &relation);
        made.map_err(|complaint| self.complain(complaint))?;
        Ok(name)
    }

    fn make_view(&self, name: &str, relation: &str) -> Result<(), Complaint> {
        let name = quoted(name, '"');
        let statement = format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM {relation}");
        self.runner.rows(&statement).map_err(without_place)?;
        Ok(())
    }

    /// `.import orders.csv orders`
    pub(super) fn import(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let (mut reader, mut skip, mut names) = (None, None, Vec::new());
        let mut words = arguments.words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--csv" => reader = Some("read_csv"),
                "--json" => reader = Some("read_json"),
                "--parquet" => reader = Some("read_parquet"),
                "--arrow" => reader = Some("read_arrow"),
                "--skip" => {
                    let rows = words.next().and_then(|word| word.parse::<u64>().ok());
                    skip = Some(rows.ok_or(Complaint::Usage)?);
                }
                _ => names.push(word.as_str()),
            }
        }
        let [file, table] = names.as_slice() else {
            return Err(Complaint::Usage);
        };
        let path = quoted(file, '\'');
        let source = match (reader, skip) {
            (None, None) => path,
            (Some(reader), None) => format!("{reader}({path})"),
            (None | Some("read_csv"), Some(rows)) => format!("read_csv({path}, skip => {rows})"),
            (Some(_), Some(_)) => {
                return Err(Complaint::Text("--skip is for CSV files".to_owned()));
            }
        };
        let tables = self.runner.session().tables();
        let known = tables
            .iter()
            .find(|known| known.eq_ignore_ascii_case(table));
        let statement = match known {
            Some(known) => format!("INSERT INTO {} SELECT * FROM {source}", quoted(known, '"')),
            None => format!(
                "CREATE TABLE {} AS SELECT * FROM {source}",
                quoted(table, '"')
            ),
        };
        self.runner.rows(&statement).map_err(without_place)?;
        Ok(())
    }

    pub(super) fn change_folder(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let home = || std::env::var("HOME").unwrap_or_else(|_| "/".to_owned());
        let folder = arguments.at_most_one()?.map_or_else(home, str::to_owned);
        std::env::set_current_dir(&folder)
            .map_err(|error| Complaint::Text(format!("cannot go to {folder}: {error}")))
    }

    pub(super) fn run_program(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        if arguments.line.is_empty() {
            return Err(Complaint::Usage);
        }
        // What has been written comes first.
        self.show(true)?;
        let status = {
            let _elsewhere = self.runner.interrupts().elsewhere();
            Command::new("sh").args(["-c", &arguments.line]).status()?
        };
        match status.success() {
            true => Ok(()),
            false => Err(Complaint::Text(format!("{}: {status}", arguments.line))),
        }
    }
}

/// The table that a file is: `orders` of `data/orders.csv.gz`, `visits` of `visits/*.parquet`.
fn table_name(path: &str) -> String {
    let is_remote = path.contains("://");
    let path = match is_remote {
        true => path.split(['?', '#']).next().unwrap_or(path),
        false => path,
    };
    let is_pattern =
        |part: &&str| part.is_empty() || part.contains(['*', '[', '?']) || part.ends_with(':');
    let mut parts = path.rsplit('/').skip_while(is_pattern);
    let part = parts.next().unwrap_or("");
    let stem = [".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz"]
        .iter()
        .find_map(|ending| part.strip_suffix(ending))
        .unwrap_or(part);
    let stem = match stem.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => stem,
    };
    match stem.trim_matches('.') {
        "" => "data".to_owned(),
        stem => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_after_their_files() {
        for (path, name) in [
            ("orders.csv", "orders"),
            ("/data/orders.csv.gz", "orders"),
            ("visits/*.parquet", "visits"),
            ("visits/", "visits"),
            ("*.csv", "data"),
            ("./", "data"),
            ("a.b.csv", "a.b"),
            (".hidden", "hidden"),
            ("https://host/x/orders.csv?token=a/b.c", "orders"),
            ("s3://bucket/*.parquet", "bucket"),
        ] {
            assert_eq!(table_name(path), name, "{path}");
        }
    }
}
