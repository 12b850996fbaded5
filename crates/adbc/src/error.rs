//! The engine's errors as ADBC's: a status, a SQLSTATE, the engine's own message.
//!
//! In: `grouse::Error`. Out: `adbc_core::error::Error`, with the place in the statement as details `grouse.line` and `grouse.column`.
//! Invariant: one kind of error has one status and one SQLSTATE, whatever its message; a missing thing is NOT_FOUND.
//! Not here: messages, which are the engine's.

use std::path::Path;

use adbc_core::error::{Error as AdbcError, Status};
use grouse::Error;

/// The result of everything here.
pub type Result<T> = adbc_core::error::Result<T>;

/// The path of a failure that does not say where it was.
const PATH_UNKNOWN: &str = "?";

/// What messages say of a table that is there already, and of rows that a constraint forbids; the engine has no class of its own for them.
const ALREADY_EXISTS: &str = "already exists";
const CONSTRAINTS: &[(&str, &str)] = &[
    ("constraint: PRIMARY KEY", "23505"),
    ("constraint: UNIQUE", "23505"),
    ("constraint: FOREIGN KEY", "23503"),
    ("constraint: ", "23514"),
];
/// The SQLSTATE of a refused request for memory.
pub const OUT_OF_MEMORY: &str = "53200";
const NOT_NULL: &str = "its column is NOT NULL";

/// The engine's error for a driver manager.
pub fn adbc(error: Error) -> AdbcError {
    let (status, sqlstate) = class(error.kind());
    let place = error.position();
    let details = place.map(|place| {
        let detail = |name: &str, number: u64| (name.to_string(), number.to_string().into_bytes());
        vec![
            detail("grouse.line", place.line),
            detail("grouse.column", place.column),
        ]
    });
    AdbcError {
        details,
        ..with_state(error.to_string(), status, sqlstate)
    }
}

/// A feature that ADBC knows and this driver does not have.
pub fn not_implemented(what: &str) -> AdbcError {
    with_state(
        format!("not supported: {what}"),
        Status::NotImplemented,
        "0A000",
    )
}

/// An option or argument with a value that is not possible.
pub fn invalid(name: &str, message: &str) -> AdbcError {
    with_state(
        format!("invalid {name}: {message}"),
        Status::InvalidArguments,
        "22023",
    )
}

/// A call that comes before another one that it needs.
pub fn wrong_state(message: &str) -> AdbcError {
    with_state(message.to_string(), Status::InvalidState, "55000")
}

/// Something that is not there.
pub fn not_found(message: String) -> AdbcError {
    with_state(message, Status::NotFound, "42704")
}

/// A table that is there already, or is another one than the data is for.
pub fn already_exists(message: String) -> AdbcError {
    with_state(message, Status::AlreadyExists, "42P07")
}

/// A defect of this program.
pub fn internal(message: String) -> AdbcError {
    adbc(Error::Internal(message))
}

/// A C string cannot have NUL in it.
fn with_state(message: String, status: Status, sqlstate: &str) -> AdbcError {
    let mut error = AdbcError::with_message_and_status(message.replace('\0', "\\0"), status);
    for (place, letter) in error.sqlstate.iter_mut().zip(sqlstate.bytes()) {
        *place = letter as std::os::raw::c_char;
    }
    error
}

fn class(error: &Error) -> (Status, &'static str) {
    match error {
        Error::Syntax { .. } => (Status::InvalidArguments, "42601"),
        Error::UnknownColumn { .. } => (Status::NotFound, "42703"),
        Error::UnknownTable { .. } => (Status::NotFound, "42P01"),
        Error::UnknownFunction { .. } => (Status::NotFound, "42883"),
        Error::AmbiguousColumn { .. } => (Status::InvalidArguments, "42702"),
        Error::Type { .. } => (Status::InvalidArguments, "42804"),
        Error::Unsupported { .. } | Error::UnsupportedClause { .. } => {
            (Status::NotImplemented, "0A000")
        }
        Error::Io { path, .. } if is_missing(path) => (Status::NotFound, "58P01"),
        Error::Io { .. } => (Status::IO, "58030"),
        Error::Format { .. } => (Status::InvalidData, "22000"),
        // ADBC has no status of its own for it. Of this one Python makes OperationalError, as PEP 249 has it.
        Error::OutOfMemory(_) => (Status::IO, OUT_OF_MEMORY),
        Error::Overflow { .. } => (Status::InvalidData, "22003"),
        Error::DivideByZero => (Status::InvalidData, "22012"),
        Error::Cancelled => (Status::Cancelled, "57014"),
        Error::Timeout { .. } => (Status::Timeout, "57014"),
        Error::Invalid { .. } => (Status::InvalidArguments, "22023"),
        Error::Planning { message, .. } => told(message, (Status::InvalidArguments, "42000")),
        Error::Execution(message) => told(message, (Status::InvalidData, "22000")),
        Error::Internal(_) => (Status::Internal, "XX000"),
        // The enum may grow.
        _ => (Status::Unknown, "XX000"),
    }
}

/// The class that only the message tells.
fn told(message: &str, other: (Status, &'static str)) -> (Status, &'static str) {
    if message.ends_with(ALREADY_EXISTS) {
        return (Status::AlreadyExists, "42P07");
    }
    if message.ends_with(NOT_NULL) {
        return (Status::Integrity, "23502");
    }
    let mut constraints = CONSTRAINTS.iter();
    match constraints.find(|(start, _)| message.starts_with(start)) {
        Some((_, sqlstate)) => (Status::Integrity, sqlstate),
        None => other,
    }
}

/// A glob that matches nothing is no file either; what is on a server is not asked for again.
fn is_missing(path: &str) -> bool {
    path != PATH_UNKNOWN && !path.contains("://") && !Path::new(path).exists()
}
