//! All rows of a table in memory, put in the place of those that it has.
//!
//! In: a table, its rows as a statement has read them, the rows that are to be there. Out: the table with these, or an error.
//! Invariant: the rows keep the table's rules, and none that another statement has written meanwhile is lost.
//! Not here: how the rows come about (sql/changes/changed_rows.rs).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::{HashSet, Result};
use datafusion::logical_expr::Expr;

use super::checked_table::{CheckedTable, Rules, append, held, nullable, with_schema};
use crate::scan::constraints::{Constraints, KeyKind};

/// Rows of a table, as they are at one time.
type TableRows = Vec<Vec<RecordBatch>>;

/// What becomes of the rows of a table.
pub(crate) struct NewRows<'a> {
    /// All of them afterwards.
    pub all: Vec<RecordBatch>,
    /// Those before, of which some stay and keep the rules as they did.
    pub before: &'a [RecordBatch],
    /// Places of those that do not stay.
    pub gone: HashSet<usize>,
    /// Those that have not been there.
    pub new: Vec<RecordBatch>,
}

impl NewRows<'_> {
    /// Rows that are all new.
    pub(crate) fn all_new(rows: Vec<RecordBatch>) -> Self {
        NewRows {
            new: rows.clone(),
            all: rows,
            before: &[],
            gone: HashSet::new(),
        }
    }
}

/// A table whose rows can be replaced.
pub(crate) struct Replaceable<'a> {
    rows: &'a MemTable,
    rules: Option<&'a Rules>,
    retired: Option<&'a AtomicBool>,
}

impl<'a> Replaceable<'a> {
    /// `None` of a view and of files.
    pub(crate) fn of(table: &'a Arc<dyn TableProvider>) -> Option<Self> {
        if let Some(table) = table.downcast_ref::<CheckedTable>() {
            return Some(Replaceable {
                rows: &table.rows,
                rules: Some(&table.rules),
                retired: Some(&table.retired),
            });
        }
        let rows = table.downcast_ref::<MemTable>()?;
        Some(Replaceable {
            rows,
            rules: None,
            retired: None,
        })
    }

    /// The columns, all of which may be NULL: rows are held against the rules when they are put in.
    pub(crate) fn schema(&self) -> SchemaRef {
        nullable(&self.rows.schema())
    }

    /// Places of the columns of each key.
    pub(crate) fn keys(&self) -> &[(Vec<usize>, KeyKind)] {
        self.rules.map_or(&[], Rules::keys)
    }

    /// What the rows have to keep, if anything.
    pub(crate) fn constraints(&self) -> Option<Constraints> {
        self.rules
            .map(|rules| rules.constraints(&self.rows.schema()))
    }

    /// What columns have by default, with their names.
    pub(crate) fn defaults(&self) -> Vec<(String, Expr)> {
        let schema = self.rows.schema();
        let names = schema.fields().iter().map(|field| field.name());
        let defaults = names.filter_map(|name| {
            let default = self.rows.get_column_default(name)?;
            Some((name.clone(), default.clone()))
        });
        defaults.collect()
    }

    /// The rows that are there now.
    pub(crate) async fn rows(&self) -> TableRows {
        let mut rows = Vec::with_capacity(self.rows.batches.len());
        for part in &self.rows.batches {
            rows.push(part.read().await.clone());
        }
        rows
    }

    /// Puts rows behind those that are there now. False of a table that has lost its name.
    pub(crate) async fn append(&self, rows: RecordBatch) -> Result<bool> {
        append(self.rows, self.rules, self.retired, vec![rows]).await
    }

    /// Whether the table has lost its name; asked while it is held.
    fn is_retired(&self) -> bool {
        self.retired
            .is_some_and(|retired| retired.load(Ordering::Acquire))
    }

    /// Gives its name to another table, made of the `old` rows, by `swap`. False if others are there now.
    pub(crate) async fn give_name(
        &self,
        old: &TableRows,
        swap: impl FnOnce() -> Result<()> + Send,
    ) -> Result<bool> {
        let parts = held(self.rows).await;
        if self.is_retired() || !are_same(parts.iter().map(|part| part.as_slice()), old) {
            return Ok(false);
        }
        swap()?;
        if let Some(retired) = self.retired {
            retired.store(true, Ordering::Release);
        }
        Ok(true)
    }

    /// Whether the rows are those.
    pub(crate) async fn are_still(&self, old: &TableRows) -> bool {
        are_same(self.rows().await.iter().map(Vec::as_slice), old)
    }

    /// Puts new rows in the place of the `old` ones. False if others are there now, which another statement has written.
    pub(crate) async fn replace(&self, old: &TableRows, new: NewRows<'_>) -> Result<bool> {
        if let Some(rules) = self.rules {
            rules.check_change(new.before, &new.gone, &new.new)?;
        }
        let mut new = Some(with_schema(new.all, &self.rows.schema())?);
        let mut parts = held(self.rows).await;
        if self.is_retired() || !are_same(parts.iter().map(|part| part.as_slice()), old) {
            return Ok(false);
        }
        for part in &mut parts {
            **part = new.take().unwrap_or_default();
        }
        Ok(true)
    }
}

/// Whether the parts of a table are the same memory.
fn are_same<'a>(now: impl ExactSizeIterator<Item = &'a [RecordBatch]>, then: &TableRows) -> bool {
    now.len() == then.len()
        && now.zip(then).all(|(now, then)| {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| is_one(now, then))
        })
}

/// Whether two batches are the same memory.
fn is_one(a: &RecordBatch, b: &RecordBatch) -> bool {
    let columns = a.columns().iter().zip(b.columns());
    a.num_rows() == b.num_rows() && columns.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
}
