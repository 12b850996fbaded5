//! Names that a person may mean: tables, columns, functions, files.
//! In: the session, and what is typed. Out: lists of names.
//! Invariant: a Tab waits for columns for a moment only, and never runs more than the planning of `SELECT * FROM relation`. What a
//! relation has is asked once per statement that runs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use grouse::Session;
use tokio::runtime::Runtime;

/// How long a Tab waits for the columns of one relation.
const PATIENCE: Duration = Duration::from_millis(300);

/// Knows names.
pub struct Names {
    session: Session,
    runtime: Option<Runtime>,
    columns: RefCell<HashMap<String, Vec<String>>>,
}

impl Names {
    /// Those of this session.
    pub fn new(session: Session) -> Names {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        Names {
            session,
            runtime: runtime.ok(),
            columns: RefCell::default(),
        }
    }

    /// A statement has run: relations may have other columns.
    pub fn forget(&self) {
        self.columns.borrow_mut().clear();
    }

    /// Tables and views.
    pub fn tables(&self) -> Vec<String> {
        self.session.tables()
    }

    /// Functions that give a value.
    pub fn functions(&self) -> Vec<String> {
        let state = self.session.context().state_ref();
        let state = state.read();
        let names = (state.scalar_functions().keys())
            .chain(state.aggregate_functions().keys())
            .chain(state.window_functions().keys());
        names.filter(|name| is_plain(name)).cloned().collect()
    }

    /// Functions that give rows.
    pub fn table_functions(&self) -> Vec<String> {
        let state = self.session.context().state_ref();
        let state = state.read();
        let names = state.table_functions().keys();
        names.filter(|name| is_plain(name)).cloned().collect()
    }

    /// The columns of what stands behind FROM; none if that is nothing yet, takes too long, or is on another machine.
    pub fn columns(&self, relation: &str) -> Vec<String> {
        if relation.contains("://") {
            return Vec::new();
        }
        if let Some(known) = self.columns.borrow().get(relation) {
            return known.clone();
        }
        let found = self.planned(relation).unwrap_or_default();
        let mut columns = self.columns.borrow_mut();
        columns.insert(relation.to_owned(), found.clone());
        found
    }

    fn planned(&self, relation: &str) -> Option<Vec<String>> {
        let (session, text) = (self.session.clone(), format!("SELECT * FROM {relation}"));
        let mut planning = self
            .session
            .handle()
            .spawn(async move { session.query(&text).await });
        let in_time = async {
            let planned = tokio::time::timeout(PATIENCE, &mut planning).await;
            planning.abort();
            planned
        };
        let planned = self.runtime.as_ref()?.block_on(in_time).ok()?.ok()?.ok()?;
        // What there is to be said of the file is said when it is read.
        let _ = self.session.take_warnings();
        let schema = planned.schema();
        Some(schema.fields().iter().map(|f| f.name().clone()).collect())
    }
}

/// Files and folders whose path begins with `prefix`; a folder ends with `/`. Hidden ones have to be asked for.
pub fn files(prefix: &str) -> Vec<String> {
    let (folder, start) = match prefix.rfind('/') {
        Some(at) => prefix.split_at(at + 1),
        None => ("", prefix),
    };
    let entries = fs::read_dir(if folder.is_empty() { "." } else { folder });
    let names = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_meant =
            name.starts_with(start) && (!name.starts_with('.') || start.starts_with('.'));
        let is_folder = || fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir());
        is_meant.then(|| format!("{folder}{name}{}", if is_folder() { "/" } else { "" }))
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Whether SQL takes the name without quotes.
pub fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "ab.csv", ".hidden", "b.csv"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("alone")).unwrap();
        let folder = folder.path().display();
        let named = |start: &str| {
            let found = files(&format!("{folder}/{start}"));
            found
                .iter()
                .map(|path| path.replace(&format!("{folder}/"), ""))
                .collect::<Vec<_>>()
        };
        assert_eq!(named("a"), ["a.csv", "ab.csv", "alone/"]);
        assert_eq!(named("."), [".hidden"]);
        assert_eq!(named("").len(), 4);
        assert_eq!(named("x"), [""; 0]);
    }
}
