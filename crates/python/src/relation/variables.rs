//! What the names of a statement stand for: tables that came with it, and variables where `sql` was called.
//!
//! In: tables by name; the names in FROM that are no tables, the caller's frame. Out: a table or a query for each of them.
//! Invariant: tables that came with the statement come first, then locals, then globals. The exact name comes before one that
//! differs in case, as SQL has it. A variable that nobody can read is passed over, and the error about the missing table
//! tells of it. Frames of the package itself are nobody's.
//! Not here: reading the data (source.rs).

use std::sync::Arc;

use grouse::Tables;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::borrowed::Borrowed;
use crate::relation::Relation;
use crate::relation::recipe::InnerQuery;
use crate::relation::source::{Lasting, READABLE, readable, table};
use crate::shared::Shared;

/// The statement whose names are looked up.
pub struct Consumer<'a> {
    pub connection: &'a Arc<Shared>,
    pub threads: usize,
    pub lasting: Lasting,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    /// Tables by the names that the statement has for them.
    pub tables: Tables,
    /// Queries of the same connection.
    pub queries: Vec<InnerQuery>,
    /// What to say of variables that were passed over.
    pub notes: Vec<String>,
    borrowed: Vec<Borrowed>,
}

impl Found {
    /// The tables that came with a statement.
    pub fn of(
        py: Python<'_>,
        tables: Option<&Bound<'_, PyDict>>,
        consumer: &Consumer<'_>,
    ) -> PyResult<Found> {
        let mut found = Found::default();
        for (name, object) in tables.into_iter().flatten() {
            found.add(py, &name.extract::<String>()?, &object, consumer)?;
        }
        Ok(found)
    }

    /// Memory behind all of it that may change.
    pub fn borrowed(&mut self) -> Borrowed {
        Borrowed::all(std::mem::take(&mut self.borrowed))
    }

    /// Finds tables for `names` among the variables of the Python code that called us.
    pub fn search(
        &mut self,
        py: Python<'_>,
        names: &[String],
        consumer: &Consumer<'_>,
    ) -> PyResult<()> {
        let missing: Vec<&String> = names.iter().filter(|name| !self.has(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let scopes = scopes(py)?;
        for name in missing {
            let mut other: Option<Bound<'_, PyAny>> = None;
            let values = scopes.iter().map(|scope| lookup(scope, name));
            for value in values.filter_map(Result::transpose) {
                let value = value?;
                if let Some(object) = readable(&value)? {
                    self.add(py, name, &object, consumer)?;
                    other = None;
                    break;
                }
                other.get_or_insert(value);
            }
            if let Some(value) = other {
                let class = value.get_type().name()?;
                self.notes.push(format!(
                    "the variable '{name}' is of type {class}, which cannot be read as a table: that takes {READABLE}"
                ));
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        let mut queries = self.queries.iter().map(|query| &query.name);
        let mut tables = self.tables.keys();
        let is_it = |other: &String| other.to_lowercase() == name.to_lowercase();
        queries.any(is_it) || tables.any(is_it)
    }

    fn add(
        &mut self,
        py: Python<'_>,
        name: &str,
        object: &Bound<'_, PyAny>,
        consumer: &Consumer<'_>,
    ) -> PyResult<()> {
        let relation = object.cast::<Relation>().ok();
        let query = relation.and_then(|relation| relation.get().as_query(name, consumer));
        if let Some(query) = query {
            self.borrowed.push(query.recipe.borrowed.clone());
            self.queries.push(query);
            return Ok(());
        }
        let source = table(py, object, consumer.threads, consumer.lasting)?;
        self.tables.insert(name.to_string(), source.table);
        self.borrowed.push(source.borrowed);
        Ok(())
    }
}

/// Variables of the caller, innermost first; none where no Python code called us.
fn scopes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let Ok(mut frame) = py.import("sys")?.call_method1("_getframe", (0,)) else {
        return Ok(Vec::new());
    };
    while is_ours(&frame)? {
        frame = frame.getattr("f_back")?;
        if frame.is_none() {
            return Ok(Vec::new());
        }
    }
    let mut scopes = vec![frame.getattr("f_locals")?];
    // Up to Python 3.11 a comprehension has a frame of its own; the variables that its author sees are further out.
    while is_expression(&frame)? {
        let outer = frame.getattr("f_back")?;
        if outer.is_none() {
            break;
        }
        frame = outer;
        scopes.push(frame.getattr("f_locals")?);
    }
    scopes.push(frame.getattr("f_globals")?);
    Ok(scopes)
}

/// Whether it is a frame of the package's own Python code.
fn is_ours(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let globals = frame.getattr("f_globals")?;
    let module = globals.call_method1("get", ("__name__",))?;
    let name = module.extract::<String>().unwrap_or_default();
    Ok(name == "grouse" || name.starts_with("grouse."))
}

/// Comprehensions, generator expressions and lambdas: their code has a name such as `<listcomp>`.
fn is_expression(frame: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name: String = frame.getattr("f_code")?.getattr("co_name")?.extract()?;
    Ok(matches!(
        name.as_str(),
        "<listcomp>" | "<setcomp>" | "<dictcomp>" | "<genexpr>" | "<lambda>"
    ))
}

fn lookup<'py>(scope: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if scope.contains(name)? {
        return scope.get_item(name).map(Some);
    }
    for key in scope.call_method0("keys")?.try_iter()? {
        let key = key?;
        if key
            .extract::<String>()
            .is_ok_and(|key| key.to_lowercase() == name)
        {
            return scope.get_item(key).map(Some);
        }
    }
    Ok(None)
}
