//! Options of a database and a connection as the engine's options.
//!
//! In: ADBC's keys and values. Out: [`SessionOptions`] of a new session; the statement that changes one of a session.
//! Invariant: which options there are, and what values they take, is the engine's table alone. A key is its name in SQL SET,
//! with or without `grouse.` before it.
//! Not here: options of ADBC itself beside the address (connection.rs, statement.rs).

use adbc_core::options::{OptionDatabase, OptionValue};
use grouse::{OptionSpec, SessionOptions};

use crate::error::{Result, adbc, invalid, not_found, not_implemented};

/// The option of a database for statements that nobody answers for; as the keyword of Python's `connect`.
const SAFE: &str = "safe";

/// Addresses that mean this process.
const HERE: &[&str] = &["", ":memory:", "grouse://"];

/// The options of a new database.
pub fn session_options(
    given: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
) -> Result<SessionOptions> {
    let mut texts = Vec::new();
    let mut is_safe = false;
    for (key, value) in given {
        match key {
            OptionDatabase::Uri => texts.push(("cluster".to_string(), text("uri", &value)?)),
            OptionDatabase::Username | OptionDatabase::Password => {
                return Err(not_implemented("user names and passwords"));
            }
            other => {
                let name = other.as_ref().to_string();
                let value = text(&name, &value)?;
                match name.strip_prefix("grouse.").unwrap_or(&name) {
                    SAFE => is_safe = boolean(&name, &value)?,
                    _ => texts.push((name, value)),
                }
            }
        }
    }
    let mut options = SessionOptions::default();
    if is_safe {
        options.close();
    }
    for (name, value) in texts {
        let is_here = name == "cluster" && HERE.contains(&value.as_str());
        if !is_here {
            options.set(&name, &value).map_err(adbc)?;
        }
    }
    Ok(options)
}

/// The statement that gives an option of a session another value.
pub fn set_statement(name: &str, value: &OptionValue) -> Result<String> {
    let spec = spec(name)?;
    let value = text(name, value)?.replace('\'', "''");
    Ok(format!("SET {} = '{value}'", spec.name))
}

/// The value of an option of a session.
pub fn value(options: &SessionOptions, name: &str) -> Result<String> {
    let value = options.get(spec(name)?.name).map_err(adbc)?;
    value.ok_or_else(|| not_found(format!("option {name} is not set")))
}

/// The same as a number.
pub fn number<N: std::str::FromStr>(name: &str, value: &str) -> Result<N> {
    let number = value.parse();
    number.map_err(|_| {
        invalid(
            name,
            &format!("'{value}' is no number; read it as a string"),
        )
    })
}

fn spec(name: &str) -> Result<&'static OptionSpec> {
    OptionSpec::find(name).ok_or_else(|| not_implemented(&format!("option '{name}'")))
}

/// The text of a value, as SQL SET takes it.
pub fn text(name: &str, value: &OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text.clone()),
        OptionValue::Int(number) => Ok(number.to_string()),
        OptionValue::Double(number) => Ok(number.to_string()),
        _ => Err(invalid(name, "it takes a string or a number, not bytes")),
    }
}

/// A value of ADBC's two, as SQL writes them too.
pub fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" => Ok(true),
        "false" | "0" | "off" => Ok(false),
        _ => Err(invalid(
            name,
            &format!("'{value}' is neither true nor false"),
        )),
    }
}

/// An error unless a part of ADBC that there is no choice of has the value that it always has.
pub fn check_fixed(name: &str, value: &OptionValue, fixed: &str, what: &str) -> Result<()> {
    match text(name, value)? == fixed {
        true => Ok(()),
        false => Err(not_implemented(what)),
    }
}
