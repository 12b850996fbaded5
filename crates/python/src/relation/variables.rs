//! Python variables as tables: names in FROM that are no tables are looked up where `sql` was called.
//!
//! In: the names, the caller's frame. Out: a table for each name that a variable with Arrow data stands behind.
//! Invariant: locals come before globals, the exact name before one that differs in case, as SQL has it. A variable
//! without Arrow data is passed over, and the error about the missing table gets a note about it.
//! Not here: reading the data (source.rs).

use grouse::Tables;
use pyo3::prelude::*;

use crate::borrowed::Borrowed;
use crate::relation::source::{Lasting, holds_arrow, table};

/// What was found.
#[derive(Default)]
pub struct Variables {
    /// Tables by the names that the statement has for them.
    pub tables: Tables,
    /// What to say of variables that were passed over.
    pub notes: Vec<String>,
    /// Memory behind the tables that may change.
    pub borrowed: Borrowed,
}

/// Finds tables for `names` among the variables of the Python code that called us.
pub fn find(
    py: Python<'_>,
    names: &[String],
    threads: usize,
    lasting: Lasting,
) -> PyResult<Variables> {
    let (mut tables, mut notes) = (Tables::new(), Vec::new());
    let mut borrowed = Vec::new();
    let Some(scopes) = scopes(py)? else {
        return Ok(Variables::default());
    };
    for name in names {
        let mut other: Option<Bound<'_, PyAny>> = None;
        for value in scopes
            .iter()
            .filter_map(|scope| lookup(scope, name).transpose())
        {
            let value = value?;
            if holds_arrow(&value)? {
                let source = table(py, &value, threads, lasting)?;
                tables.insert(name.clone(), source.table);
                borrowed.push(source.borrowed);
                break;
            }
            other.get_or_insert(value);
        }
        if let Some(value) = other.filter(|_| !tables.contains_key(name)) {
            let class = value.get_type().name()?;
            notes.push(format!("the variable '{name}' is a {class}, which has no __arrow_c_stream__ and so cannot be read"));
        }
    }
    Ok(Variables {
        tables,
        notes,
        borrowed: Borrowed::all(borrowed),
    })
}

/// Variables of the caller, innermost first; None where no Python code called us.
fn scopes(py: Python<'_>) -> PyResult<Option<Vec<Bound<'_, PyAny>>>> {
    let Ok(mut frame) = py.import("sys")?.call_method1("_getframe", (0,)) else {
        return Ok(None);
    };
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
    Ok(Some(scopes))
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
