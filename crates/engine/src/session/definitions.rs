//! Statements that change what a session has defined: macros and sequences.
//!
//! In: CREATE and DROP of these. Out: the session with the definition, or without it.
//! Invariant: nothing else of the statement is planned.
//! Not here: what the definitions mean (sql/definitions.rs, functions/sequences.rs); prepared statements (prepared.rs).

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;

use super::Session;
use crate::error::{Error, Result};
use crate::session::query::Query;
use crate::sql::definitions::Replace;
use crate::sql::sequences::SequenceChange;
use crate::sql::statement::Missing;

impl Session {
    /// Whether the statement was `CREATE MACRO`, which is done then.
    pub(super) fn defines(&self, statement: &DataFusionStatement) -> Result<bool> {
        let DataFusionStatement::Statement(statement) = statement else {
            return Ok(false);
        };
        let SqlStatement::CreateMacro {
            or_replace,
            name,
            args,
            definition,
            ..
        } = statement.as_ref()
        else {
            return Ok(false);
        };
        let replace = if *or_replace {
            Replace::Yes
        } else {
            Replace::No
        };
        let parameters = args.clone().unwrap_or_default();
        let definitions = &self.shared.definitions;
        definitions.create_macro(name, parameters, definition.clone(), replace)?;
        Ok(true)
    }

    /// Drops a macro.
    pub(super) fn drop_macro(&self, name: &str, missing: Missing) -> Result<Query> {
        match self.shared.definitions.drop_macro(name) || missing == Missing::Nothing {
            true => Ok(self.nothing()),
            false => Err(missing_one("macro", name)),
        }
    }

    /// Makes or drops a sequence.
    pub(super) fn change_sequence(&self, change: SequenceChange) -> Result<Query> {
        let sequences = &self.shared.sequences;
        match change {
            SequenceChange::Create {
                name,
                numbers,
                existing,
            } => {
                let made = sequences.create(&name, numbers, existing);
                made.map_err(|message| Error::planning(message))?;
            }
            SequenceChange::Drop { name, missing } => {
                if !sequences.remove(&name) && missing == Missing::Error {
                    return Err(missing_one("sequence", &name));
                }
            }
        }
        Ok(self.nothing())
    }
}

fn missing_one(kind: &str, name: &str) -> Error {
    Error::planning(format!("{kind} '{name}' does not exist"))
}
