//! Keywords of `connect` as the engine's options.
//!
//! In: Python keywords. Out: [`SessionOptions`].
//! Invariant: which options there are, and what values they take, is the engine's table alone; here is only text.
//! Not here: `progress`, which is not the engine's business.

use grouse::SessionOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::{raise, wrong_type};

/// Options from keywords; a value of None leaves the default.
pub fn from_keywords(keywords: &Bound<'_, PyDict>) -> PyResult<SessionOptions> {
    let mut options = SessionOptions::default();
    for (name, value) in keywords {
        let name: String = name.extract()?;
        if !value.is_none() {
            options.set(&name, &text(&name, &value)?).map_err(raise)?;
        }
    }
    Ok(options)
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
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
            "option {name} takes a str, an int, a bool or a path, not {}",
            value.get_type().name()?
        ))),
    }
}
