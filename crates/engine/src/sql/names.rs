//! Names that may be meant where an error says that there is none of a name.
//!
//! In: an error, what the session has registered. Out: the same error with the nearest names that do exist.
//! Invariant: names that the error has already stay.
//! Not here: names that the text itself shows (place.rs); how near names are (error.rs).

use datafusion::prelude::SessionContext;

use crate::error::{Error, nearest_names};
use crate::scan::call::function_names;

/// Adds the names that may be meant, which only the session knows.
pub(crate) fn with_names(error: Error, context: &SessionContext, tables: &[String]) -> Error {
    match error {
        Error::UnknownTable {
            name,
            nearest,
            position,
        } if nearest.is_empty() => {
            let mut nearest = nearest_names(&name, tables.iter().map(String::as_str));
            if std::path::Path::new(&name).is_file() {
                nearest.insert(0, format!("'{name}' (a file, in quotes)"));
            }
            Error::UnknownTable {
                name,
                nearest,
                position,
            }
        }
        Error::UnknownFunction { name, position, .. } if is_of_windows(context, &name) => {
            let message = format!("'{name}' is a function of windows: write {name}(…) OVER (…)");
            Error::Planning { message, position }
        }
        Error::UnknownFunction {
            name,
            nearest,
            position,
        } if nearest.is_empty() => {
            let names = functions(context);
            let nearest = nearest_names(&name, names.iter().map(String::as_str));
            Error::UnknownFunction {
                name,
                nearest,
                position,
            }
        }
        other => other,
    }
}

fn is_of_windows(context: &SessionContext, name: &str) -> bool {
    let state = context.state_ref();
    state.read().window_functions().contains_key(name)
}

/// Names of all functions.
fn functions(context: &SessionContext) -> Vec<String> {
    let state = context.state_ref();
    let state = state.read();
    let scalar = state.scalar_functions().keys();
    let aggregate = state.aggregate_functions().keys();
    let window = state.window_functions().keys();
    let table = state.table_functions().keys();
    let host = scalar.chain(aggregate).chain(window).chain(table).cloned();
    host.chain(function_names().map(str::to_string)).collect()
}
