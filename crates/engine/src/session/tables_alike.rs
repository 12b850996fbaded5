//! CREATE TABLE … LIKE.
//!
//! In: what sql/changes/tables_alike.rs makes of a statement. Out: the table.
//! Invariant: what the other table does not have, as a view or a file, the new one does not have either.
//! Not here: tables of queries (scan/checked_table.rs).

use std::sync::Arc;

use datafusion::logical_expr::{DdlStatement, LogicalPlan};

use super::row_changes::reference;
use super::{Planning, Session};
use crate::error::{Error, Result};
use crate::scan::checked_table;
use crate::scan::constraints::Constraints;
use crate::scan::replaced_rows::Replaceable;
use crate::scan::schema::with_own_tables;
use crate::session::query::Query;
use crate::sql::changes::tables_alike::{KeptParts, TableAlike};
use crate::sql::params::Params;

impl Session {
    /// Makes a table with the columns of another one.
    pub(super) async fn create_alike(
        &self,
        planning: &Planning<'_>,
        alike: TableAlike,
    ) -> Result<Query> {
        let TableAlike { of, kept, made } = alike;
        let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut made)) =
            self.planned(planning, made, &Params::None).await?
        else {
            return Err(Error::Internal("a CREATE TABLE that is none".to_string()));
        };
        let table = self.context().table_provider(reference(&of)).await?;
        let mut constraints = Constraints::default();
        if let Some(rows) = Replaceable::of(&table) {
            let all = rows.constraints().unwrap_or_default();
            constraints = match kept {
                KeptParts::All => all,
                KeptParts::NotNull | KeptParts::Defaults => Constraints {
                    not_null: all.not_null,
                    ..Constraints::default()
                },
            };
            if kept != KeptParts::NotNull {
                made.column_defaults = rows.defaults();
            }
        }
        let made = checked_table::create(self.context(), made, Some(&constraints));
        with_own_tables(Arc::default(), made).await?;
        Ok(self.nothing())
    }
}
