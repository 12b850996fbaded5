//! RETURNING: what a statement gives of the rows that it has changed.
//!
//! In: the select list of the clause. Out: the query of it over a table that only the statement sees.
//! Invariant: a list is one value a row; aggregates are refused where the query is planned (session/returned_rows.rs).
//! Not here: which rows these are.

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Ident, SelectItem};

use crate::error::Result;
use crate::sql::ast::{parse_statement, quoted};

/// The table of the rows that are returned.
pub(crate) const RETURNED: &str = "hidden: returned";

/// The column of MERGE that says what was done with a row; `*` is without it.
pub(crate) const MERGE_ACTION: &str = "merge_action";

/// The clause.
#[derive(Debug, Clone)]
pub(crate) struct Returning {
    /// The name that the statement has for its table.
    alias: Ident,
    items: Vec<SelectItem>,
}

impl Returning {
    pub(super) fn new(alias: &Ident, items: &[SelectItem]) -> Returning {
        Returning {
            alias: alias.clone(),
            items: items.to_vec(),
        }
    }

    /// The query of the items.
    pub(crate) fn query(&self) -> Result<DataFusionStatement> {
        self.query_without(None)
    }

    /// The same, in which a star leaves out a column.
    pub(crate) fn query_without(&self, hidden: Option<&str>) -> Result<DataFusionStatement> {
        let items = self.items.iter().map(|item| {
            let is_star = match item {
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    options.opt_exclude.is_none() && options.opt_except.is_none()
                }
                _ => false,
            };
            match hidden {
                Some(hidden) if is_star => format!("{item} EXCLUDE ({})", quoted(hidden)),
                _ => item.to_string(),
            }
        });
        let items = items.collect::<Vec<_>>().join(", ");
        let alias = &self.alias;
        parse_statement(&format!(
            "SELECT {items} FROM {} AS {alias}",
            quoted(RETURNED)
        ))
    }
}
