//! Prepared statements: `PREPARE p(INT) AS …`, `EXECUTE p(1)`, `DEALLOCATE p`.
//!
//! In: the tokens of PREPARE; a parsed EXECUTE or DEALLOCATE. Out: the statement as it is written, with the types of its
//! parameters; the query of the values that it gets.
//! Invariant: a statement is planned with its values, as one with literals in their places would be.
//! DataFusion plans it without, and then `? + ?` has no type.
//! Not here: values in the places of parameters (params.rs).

use std::collections::HashMap;

use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, Statement as SqlStatement,
};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::sql::params::Params;
use crate::sql::tokens::{closing, error_at, is_one_of, is_token, next_outside, word_at};

/// A statement that waits for its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// As it is written.
    pub text: String,
    /// The types of `$1`, `$2`, …, as far as they are declared.
    types: Vec<String>,
}

/// EXECUTE, or EXPLAIN of one.
pub(crate) struct ExecuteStatement<'a> {
    /// What stands in front of EXECUTE.
    pub prefix: String,
    /// The name of the prepared statement.
    pub name: String,
    arguments: &'a [Expr],
}

/// Name and statement of PREPARE, and the tokens of what is prepared; `None` of another statement. `slice` gives the text that some
/// tokens stand for.
pub(super) fn of(
    tokens: &[TokenWithSpan],
    slice: impl Fn(&[TokenWithSpan]) -> String,
) -> Result<Option<(String, Prepared, &[TokenWithSpan])>> {
    let Some(name) = word_at(tokens, 1).filter(|_| is_one_of(tokens, 0, &["PREPARE"])) else {
        return Ok(None);
    };
    let (mut types, mut at) = (Vec::new(), 2);
    if is_token(tokens, at, &Token::LParen) {
        let end = closing(tokens, at);
        at += 1;
        while at < end {
            let next = next_outside(tokens, at, |at| is_token(tokens, at, &Token::Comma));
            types.push(slice(&tokens[at..next]));
            at = next + 1;
        }
        at = end + 1;
    }
    match tokens.get(at + 1..) {
        Some(inner) if is_one_of(tokens, at, &["AS"]) && !inner.is_empty() => {
            let text = slice(inner);
            Ok(Some((
                key(name.value.as_str()),
                Prepared { text, types },
                inner,
            )))
        }
        _ => {
            let last = tokens.get(at).or(tokens.last());
            let message = "expected AS and a statement: PREPARE name(type, …) AS …";
            Err(last.map_or_else(
                || Error::Internal("PREPARE without tokens".to_string()),
                |last| error_at(last, message),
            ))
        }
    }
}

/// The EXECUTE that a statement is.
pub(crate) fn execution(statement: &DataFusionStatement) -> Option<ExecuteStatement<'_>> {
    match statement {
        DataFusionStatement::Statement(sql) => match sql.as_ref() {
            SqlStatement::Execute {
                name: Some(name),
                parameters,
                ..
            } => Some(ExecuteStatement {
                prefix: String::new(),
                name: last_name(name),
                arguments: parameters,
            }),
            _ => None,
        },
        DataFusionStatement::Explain(explain) => {
            let inner = execution(&explain.statement)?;
            let (whole, part) = (explain.to_string(), explain.statement.to_string());
            let prefix = whole.strip_suffix(&part)?.to_owned();
            Some(ExecuteStatement { prefix, ..inner })
        }
        _ => None,
    }
}

/// The name in a DEALLOCATE.
pub(crate) fn deallocated(statement: &DataFusionStatement) -> Option<&Ident> {
    match statement {
        DataFusionStatement::Statement(sql) => match sql.as_ref() {
            SqlStatement::Deallocate { name, .. } => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The error of a name that stands for no prepared statement.
pub(crate) fn unknown(name: &str) -> Error {
    Error::Execution(format!("there is no prepared statement '{name}'"))
}

/// Names of prepared statements are the same in any case.
pub(crate) fn key(name: &str) -> String {
    name.to_lowercase()
}

fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or_else(|| name.to_string(), |ident| ident.value.clone())
}

/// An argument and the name of its parameter, if it has one: `name := value`.
fn named(argument: &Expr) -> (Option<&str>, &Expr) {
    match argument {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        } => match left.as_ref() {
            Expr::Identifier(name) => (Some(name.value.as_str()), right),
            _ => (None, argument),
        },
        _ => (None, argument),
    }
}

impl ExecuteStatement<'_> {
    /// The query of the arguments' values, each of the type that its parameter has; `None` if there are none.
    pub(crate) fn values(&self, prepared: &Prepared) -> Result<Option<String>> {
        let (given, declared) = (self.arguments.len(), prepared.types.len());
        if declared > 0 && given != declared {
            return Err(Error::planning(format!(
                "'{}' takes {declared} values and gets {given}",
                self.name
            )));
        }
        let values = self.arguments.iter().enumerate();
        let values = values.map(|(place, argument)| {
            let (_, value) = named(argument);
            match prepared.types.get(place) {
                Some(of) => format!("CAST({value} AS {of}) AS v{place}"),
                None => format!("{value} AS v{place}"),
            }
        });
        let values: Vec<String> = values.collect();
        Ok((!values.is_empty()).then(|| format!("SELECT {}", values.join(", "))))
    }

    /// The values as parameters, by name if the arguments have names.
    pub(crate) fn params(&self, values: Vec<ScalarValue>) -> Result<Params> {
        let names = self.arguments.iter().map(|argument| named(argument).0);
        let names: Vec<&str> = names.flatten().collect();
        match (names.len(), values.len()) {
            (0, 0) => Ok(Params::None),
            (0, _) => Ok(Params::Positional(values)),
            (named, all) if named == all => {
                let names = names.into_iter().map(str::to_owned);
                Ok(Params::Named(names.zip(values).collect::<HashMap<_, _>>()))
            }
            _ => Err(Error::planning(
                "either all values of EXECUTE have names or none",
            )),
        }
    }
}
