//! Names that may be meant where an error says that there is none of a name.
//!
//! In: an error, what the session has registered. Out: the same error with the nearest names that do exist.
//! Invariant: names that the error has already stay.
//! Not here: names that the text itself shows (place.rs); how near names are (error/mod.rs).

use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, nearest_names};
use crate::functions::planned_as;
use crate::scan::call::function_names;
use crate::sql::dialect::DIALECT;

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
        Error::UnknownFunction { name, position, .. } if is_of_tables(context, &name) => {
            let message = format!("'{name}' gives a table: write FROM {name}(…)");
            Error::Planning { message, position }
        }
        Error::UnknownFunction { name, position, .. } if name == "cast" => {
            let message = "'cast' is written CAST(x AS type)".to_string();
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

fn is_of_tables(context: &SessionContext, name: &str) -> bool {
    let state = context.state_ref();
    let is_ours = function_names().any(|ours| ours == name);
    is_ours || state.read().table_functions().contains_key(name)
}

/// The error with functions under the names that stand in the text: DataFusion names an alias by the function that it is of.
pub(crate) fn with_written_names(
    mut error: Error,
    functions: &dyn FunctionRegistry,
    text: &str,
) -> Error {
    let message = match &mut error {
        Error::Type { message, .. }
        | Error::Planning { message, .. }
        | Error::Execution(message)
        | Error::Unsupported { message } => message,
        _ => return error,
    };
    let calls = calls(text);
    for (function, form) in OPERATORS {
        let call = format!("function '{function}'");
        if message.contains(&call) && !calls.iter().any(|written| written == function) {
            let what = message.split("; it is written").next().unwrap_or(message);
            *message = what.replace(&call, form);
        }
    }
    for written in calls {
        let Some(name) = planned_as(&written).or_else(|| own_name(functions, &written)) else {
            continue;
        };
        let name = name.as_str();
        let begins_so = message.strip_prefix(name);
        if let Some(rest) = begins_so.filter(|rest| rest.starts_with(' ')) {
            *message = format!("'{written}'{rest}");
        } else if name != written && message.contains(&format!("'{name}'")) {
            let forms = format!("it is written {name}(");
            *message = message
                .replace(&forms, &format!("it is written {written}("))
                .replace(&format!(" or {name}("), &format!(" or {written}("))
                .replace(&format!("'{name}'"), &format!("'{written}'"));
        }
    }
    error
}

/// Functions that have a form of their own, and the form.
const OPERATORS: [(&str, &str); 2] = [("array_element", "x[i]"), ("array_slice", "x[i:j]")];

/// The name that a function has itself, of which the written one may be an alias.
fn own_name(functions: &dyn FunctionRegistry, written: &str) -> Option<String> {
    let scalar = functions.udf(written).map(|of| of.name().to_owned());
    let lambdas = || {
        functions
            .higher_order_function(written)
            .map(|of| of.name().to_owned())
    };
    let aggregate = || functions.udaf(written).map(|of| of.name().to_owned());
    scalar.or_else(|_| lambdas()).or_else(|_| aggregate()).ok()
}

/// Names in front of parentheses.
fn calls(text: &str) -> Vec<String> {
    let Ok(tokens) = Tokenizer::new(&DIALECT, text).tokenize() else {
        return Vec::new();
    };
    let calls = tokens.windows(2).filter_map(|two| match two {
        [Token::Word(word), Token::LParen] => Some(word.value.to_lowercase()),
        _ => None,
    });
    calls.collect()
}

/// Names of all functions.
fn functions(context: &SessionContext) -> Vec<String> {
    let state = context.state_ref();
    let state = state.read();
    let scalar = state.scalar_functions().keys();
    let aggregate = state.aggregate_functions().keys();
    let window = state.window_functions().keys();
    let table = state.table_functions().keys();
    let datafusion = scalar.chain(aggregate).chain(window).chain(table).cloned();
    datafusion
        .chain(function_names().map(str::to_string))
        .collect()
}
