//! Keywords of `connect` as the engine's options.
//!
//! In: Python keywords. Out: [`SessionOptions`]; `safe` closes a session before the others are set.
//! Invariant: which options there are, and what values they take, is the engine's table alone; here is only text.
//! Not here: `progress`, which is not the engine's business.

use grouse::SessionOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{raise, wrong_type};

/// Options from keywords; a value of None leaves the default.
pub fn from_keywords(keywords: &Bound<'_, PyDict>) -> PyResult<SessionOptions> {
    let mut options = SessionOptions::default();
    if is_safe(keywords)? {
        options.close();
    }
    for (name, value) in keywords {
        let name: String = name.extract()?;
        if name != SAFE && !value.is_none() {
            options.set(&name, &text(&name, &value)?).map_err(raise)?;
        }
    }
    Ok(options)
}

/// The keyword of a connection for statements that nobody answers for.
const SAFE: &str = "safe";

/// Whether the keywords ask for such a connection.
pub fn is_safe(keywords: &Bound<'_, PyDict>) -> PyResult<bool> {
    match keywords.get_item(SAFE)?.filter(|value| !value.is_none()) {
        None => Ok(false),
        Some(value) => value.extract().map_err(|_| {
            let kind = value.get_type().name();
            kind.map_or_else(
                |error| error,
                |kind| wrong_type(format!("option safe takes a bool, not {kind}")),
            )
        }),
    }
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(several) = value.cast::<PyList>() {
        let values = several.iter().map(|one| text(name, &one));
        return Ok(values.collect::<PyResult<Vec<String>>>()?.join(":"));
    }
    if let Ok(boolean) = value.extract::<bool>() {
        return Ok(boolean.to_string());
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.to_string());
    }
    // A str as it is, a path object as its text.
    let path = value.py().import("os")?.call_method1("fspath", (value,));
    match path.as_ref().map(|path| path.cast::<PyString>()) {
        Ok(Ok(path)) => path.extract(),
        _ => Err(wrong_type(format!(
            "option {name} takes a str, an int, a bool, a path or a list of paths, not {}",
            value.get_type().name()?
        ))),
    }
}
