//! Scalar functions that a caller has registered, beside those of SQL.
//!
//! In: a function of DataFusion's with its name. Out: a session in which statements call it.
//! Invariant: no function, macro or form of SQL loses its name to one; only what a caller has registered can be removed.
//! Not here: what the functions compute; Python's (crates/python).

use std::collections::BTreeMap;

use datafusion::logical_expr::{ScalarUDF, Volatility};
use parking_lot::Mutex;

use super::Session;
use crate::error::{Error, Result};
use crate::scan::reserved_words::is_reserved;

/// The functions of a session's caller, by name, with how steady their values are.
#[derive(Debug, Default)]
pub(super) struct CallerFunctions(Mutex<BTreeMap<String, Volatility>>);

impl CallerFunctions {
    /// Names of those that have another value each time.
    pub fn volatile(&self) -> Vec<String> {
        let functions = self.0.lock();
        let volatile = functions
            .iter()
            .filter(|(_, volatility)| **volatility == Volatility::Volatile);
        volatile.map(|(name, _)| name.clone()).collect()
    }
}

impl Session {
    /// Makes a function visible in SQL. Its name is a word in lower case that no function has.
    pub async fn register_function(&self, function: ScalarUDF) -> Result<()> {
        let name = function.name().to_owned();
        let is_word = |character: char| character.is_ascii_lowercase() || character == '_';
        let is_name =
            name.starts_with(is_word) && name.chars().all(|it| is_word(it) || it.is_ascii_digit());
        if !is_name {
            return Err(refused(format!(
                "'{name}' cannot be the name of a function: it has to be a word of letters a to z, digits and _"
            )));
        }
        if self.shared.caller_functions.0.lock().contains_key(&name) {
            return Err(refused(format!(
                "function '{name}' exists; remove it first"
            )));
        }
        if self.is_callable(&name).await {
            return Err(refused(format!(
                "SQL has a function '{name}'; take another name"
            )));
        }
        if is_reserved(&name) || !self.is_written_anywhere(&name).await {
            return Err(refused(format!(
                "'{name}' is a word of SQL's grammar; take another name"
            )));
        }
        let volatility = function.signature().volatility;
        let mut functions = self.shared.caller_functions.0.lock();
        self.context().register_udf(function);
        functions.insert(name, volatility);
        Ok(())
    }

    /// Removes a function that was registered.
    pub fn deregister_function(&self, name: &str) -> Result<()> {
        let mut functions = self.shared.caller_functions.0.lock();
        let name = name.to_lowercase();
        if functions.remove(&name).is_none() {
            return Err(refused(format!("no function '{name}' was registered")));
        }
        self.context().deregister_udf(&name);
        Ok(())
    }

    /// Whether a call of this name means something: of functions, macros, forms of SQL. The planner knows them all.
    async fn is_callable(&self, name: &str) -> bool {
        for arguments in ["", "NULL", "NULL, TRUE"] {
            if !self
                .is_unknown(name, &format!("SELECT {name}({arguments})"))
                .await
            {
                return true;
            }
        }
        false
    }

    /// Whether a call of this name is a call wherever an expression may stand, and not the begin of a clause.
    async fn is_written_anywhere(&self, name: &str) -> bool {
        let sql = format!(
            "SELECT 1 + {name}(a), {name}(a) FROM (SELECT 1 AS a) AS t WHERE {name}(a) = 1 ORDER BY {name}(a)"
        );
        self.is_unknown(name, &sql).await
    }

    /// Whether all that is wrong with a query is that no function has this name.
    async fn is_unknown(&self, name: &str, sql: &str) -> bool {
        match self.query(sql).await {
            Ok(_) => false,
            Err(error) => match error.kind() {
                Error::UnknownFunction { name: of, .. } => of.eq_ignore_ascii_case(name),
                _ => false,
            },
        }
    }
}

fn refused(message: String) -> Error {
    Error::invalid("function", message)
}
