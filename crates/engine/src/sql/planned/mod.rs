//! What of a statement DataFusion plans; all else is an error that names the clause and its place.
//!
//! In: a parsed statement as it goes to DataFusion, its text, the functions of the session.
//! Out: nothing, or the first clause that nobody would plan.
//! Invariant: what is planned is listed here, by destructuring each structure of the parser field by field, never with `..`.
//! A field that a new version of the parser has does not compile until someone has decided. Of enumerations the planned
//! variants are listed; all others are refused.
//! Not here: clauses that have another form (clauses/); names and types, which DataFusion judges.

mod place;
mod query;
mod relation;
mod recursion;
mod expr;
mod function;
mod statement;
mod table;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::error::{Error, Result};
use crate::sql::ast::position_of;

/// Refuses a statement with a clause that DataFusion would drop.
pub(crate) fn check(
    statement: &DataFusionStatement,
    text: &str,
    state: &SessionState,
) -> Result<()> {
    let mut walk = StatementWalk {
        state,
        near: Location { line: 0, column: 0 },
    };
    walk.datafusion_statement(statement).map_err(|refusal| {
        let Refusal {
            clause,
            advice,
            near,
        } = *refusal;
        let message = match advice.is_empty() {
            true => clause.clone(),
            false => format!("{clause}; {advice}"),
        };
        Error::UnsupportedClause {
            message,
            position: place::of(text, &clause, near),
        }
    })
}

/// A clause that nobody plans.
struct Refusal {
    clause: String,
    /// What to do instead; may be empty.
    advice: &'static str,
    /// A place before the clause.
    near: Location,
}

type Checked = std::result::Result<(), Box<Refusal>>;

/// Goes through a statement in the order of its text.
struct StatementWalk<'a> {
    state: &'a SessionState,
    /// The last place that was passed.
    near: Location,
}

/// What a name in front of parentheses is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalledKind {
    Scalar,
    Aggregate,
    Window,
    Unknown,
}

impl StatementWalk<'_> {
    fn refuse(&self, clause: impl Into<String>, advice: &'static str) -> Checked {
        Err(Box::new(Refusal {
            clause: clause.into(),
            advice,
            near: self.near,
        }))
    }

    /// A clause that must not be there.
    fn absent(&self, part: &dyn Absent, clause: &str, advice: &'static str) -> Checked {
        match part.is_absent() {
            true => Ok(()),
            false => self.refuse(clause, advice),
        }
    }

    /// Clauses none of which may be there.
    fn none_of(&self, parts: &[(&dyn Absent, &str)], advice: &'static str) -> Checked {
        match parts.iter().find(|(part, _)| !part.is_absent()) {
            Some((_, clause)) => self.refuse(*clause, advice),
            None => Ok(()),
        }
    }

    fn each<T>(&mut self, parts: &[T], mut check: impl FnMut(&mut Self, &T) -> Checked) -> Checked {
        parts.iter().try_for_each(|part| check(self, part))
    }

    fn maybe<T>(
        &mut self,
        part: &Option<T>,
        check: impl FnOnce(&mut Self, &T) -> Checked,
    ) -> Checked {
        part.as_ref().map_or(Ok(()), |part| check(self, part))
    }

    fn pass(&mut self, at: Location) {
        if position_of(at).is_some() {
            self.near = at;
        }
    }

    fn ident(&mut self, ident: &Ident) {
        let Ident {
            value: _,
            quote_style: _,
            span,
        } = ident;
        self.pass(span.start);
    }

    fn name(&mut self, name: &ObjectName) -> Checked {
        let ObjectName(parts) = name;
        self.each(parts, |walk, part| match part {
            ObjectNamePart::Identifier(ident) => {
                walk.ident(ident);
                Ok(())
            }
            ObjectNamePart::Function(_) => walk.refuse("a function in a name", ""),
        })
    }

    /// What the session has under a function's name.
    fn kind(&self, name: &str) -> CalledKind {
        let state = self.state;
        if state.scalar_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name)
            || matches!(name, "unnest" | "unnest_outer")
        {
            CalledKind::Scalar
        } else if state.aggregate_functions().contains_key(name) {
            CalledKind::Aggregate
        } else if state.window_functions().contains_key(name) {
            CalledKind::Window
        } else {
            CalledKind::Unknown
        }
    }
}

/// Whether a part of a statement was not written.
trait Absent {
    fn is_absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn is_absent(&self) -> bool {
        !*self
    }
}
