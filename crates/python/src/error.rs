//! The engine's errors as Python exceptions.
//!
//! In: `grouse::Error`. Out: an instance of the class of the same name in grouse/errors.py, fields as attributes.
//! Invariant: one variant, one class: `Error::Xyz` is `grouse.XyzError` (and a missing file a subclass of `IoError`); an error
//! with a place is what it is without one.
//! Not here: messages, which are the engine's.

use std::path::Path;

use grouse::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception for `error`.
pub fn raise(error: Error) -> PyErr {
    Python::attach(|py| build(py, &error).unwrap_or_else(|failure| failure))
}

/// An argument that is not possible.
pub fn invalid(name: &str, message: impl Into<String>) -> PyErr {
    raise(Error::Invalid {
        name: name.to_string(),
        message: message.into(),
    })
}

/// A value of a type that is not possible.
pub fn wrong_type(message: impl Into<String>) -> PyErr {
    raise(Error::Type {
        message: message.into(),
        position: None,
    })
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = py
        .import("grouse.errors")?
        .getattr(class_name(error.kind()))?;
    let exception = class.call1((error.to_string(),))?;
    let fields = PyDict::new(py);
    if let Some(position) = error.position() {
        fields.set_item("line", position.line)?;
        fields.set_item("column", position.column)?;
    }
    add_fields(error.kind(), &fields)?;
    for (name, value) in fields {
        exception.setattr(name.cast::<pyo3::types::PyString>()?, value)?;
    }
    Ok(PyErr::from_value(exception))
}

fn class_name(error: &Error) -> &'static str {
    match error {
        Error::Syntax { .. } => "SyntaxError",
        Error::UnknownColumn { .. } => "UnknownColumnError",
        Error::AmbiguousColumn { .. } => "AmbiguousColumnError",
        Error::UnknownTable { .. } => "UnknownTableError",
        Error::UnknownFunction { .. } => "UnknownFunctionError",
        Error::Type { .. } => "TypeError",
        Error::Planning { .. } => "PlanningError",
        Error::Unsupported { .. } | Error::UnsupportedClause { .. } => "UnsupportedError",
        Error::Io { path, .. } if is_missing(path) => "FileNotFoundError",
        Error::Io { .. } => "IoError",
        Error::Format { .. } => "FormatError",
        Error::OutOfMemory(_) => "OutOfMemoryError",
        Error::Overflow { .. } => "OverflowError",
        Error::DivideByZero => "DivideByZeroError",
        Error::Cancelled => "CancelledError",
        Error::Timeout { .. } => "TimeoutError",
        Error::Invalid { .. } => "InvalidError",
        Error::Execution(_) => "ExecutionError",
        Error::Internal(_) => "InternalError",
        // The enum may grow; a test compares its variants with the classes.
        _ => "Error",
    }
}

/// The path of a failure that does not say where it was.
const PATH_UNKNOWN: &str = "?";

/// A glob that matches nothing is no file either; what is on a server we do not ask again.
fn is_missing(path: &str) -> bool {
    path != PATH_UNKNOWN && !path.contains("://") && !Path::new(path).exists()
}

fn add_fields(error: &Error, fields: &Bound<'_, PyDict>) -> PyResult<()> {
    match error {
        Error::UnknownColumn { name, nearest, .. }
        | Error::UnknownTable { name, nearest, .. }
        | Error::UnknownFunction { name, nearest, .. } => {
            fields.set_item("name", name)?;
            fields.set_item("nearest", nearest)
        }
        Error::AmbiguousColumn {
            name, candidates, ..
        } => {
            fields.set_item("name", name)?;
            fields.set_item("candidates", candidates)
        }
        Error::Io { path, .. } => fields.set_item("path", path),
        Error::Format { path, line, .. } => {
            fields.set_item("path", path)?;
            fields.set_item("line", line)
        }
        Error::OutOfMemory(out) => {
            fields.set_item("operator", &out.operator)?;
            fields.set_item("asked_bytes", out.asked_bytes)?;
            fields.set_item("held_bytes", out.held_bytes)?;
            fields.set_item("used_bytes", out.used_bytes)?;
            fields.set_item("limit_bytes", out.limit_bytes)
        }
        Error::Overflow { aggregate, .. } => fields.set_item("aggregate", aggregate),
        Error::Invalid { name, .. } => fields.set_item("name", name),
        _ => Ok(()),
    }
}
