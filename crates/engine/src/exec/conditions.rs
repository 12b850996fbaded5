//! What has to hold of the groups that a node yields: HAVING, and what a sort with LIMIT above it still wants.
//!
//! In: predicates over all columns of a node. Out: of finished groups, which of them leave.
//! Invariant: predicates see values of the plan's types, and NULL is not true; what changes while the query runs (the worst
//! row that a sort keeps) is looked at once per task and only ever leaves more groups out.
//! Not here: where predicates come from (node.rs).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt};
use grouse_groupby::Condition;

use super::program::{as_type, without_nulls};

/// Predicates, all of which have to hold.
pub(super) struct Conditions {
    /// Over the columns that it reads alone.
    predicate: Arc<dyn PhysicalExpr>,
    reads: Vec<usize>,
    schema: SchemaRef,
}

impl Conditions {
    /// Those of `predicates` over the columns `all`; `None` if there are none.
    pub fn new(predicates: &[Arc<dyn PhysicalExpr>], all: &Schema) -> Result<Option<Conditions>> {
        let Some(predicate) = conjunction_opt(predicates.iter().cloned()) else {
            return Ok(None);
        };
        let mut reads: Vec<usize> = collect_columns(&predicate)
            .iter()
            .map(Column::index)
            .collect();
        reads.sort_unstable();
        reads.dedup();
        let place = |column: usize| reads.iter().position(|read| *read == column);
        let predicate = with_columns_at(predicate, |column| place(column).expect("it is read"))?;
        Ok(Some(Conditions {
            predicate,
            schema: Arc::new(all.project(&reads)?),
            reads,
        }))
    }

    fn evaluate(&self, columns: Vec<ArrayRef>, groups: usize) -> Result<BooleanBuffer> {
        let columns = columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| as_type(column, field.data_type()));
        let batch = RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &RecordBatchOptions::new().with_row_count(Some(groups)),
        )?;
        let truths = self.predicate.evaluate(&batch)?.into_array(groups)?;
        Ok(without_nulls(truths.as_boolean()).values().clone())
    }
}

impl Condition for Conditions {
    fn reads(&self) -> &[usize] {
        &self.reads
    }

    fn holds(
        &self,
        columns: Vec<ArrayRef>,
        groups: usize,
    ) -> grouse_groupby::Result<BooleanBuffer> {
        let holds = self.evaluate(columns, groups);
        holds.map_err(|error| grouse_groupby::Error::Host(Box::new(error)))
    }
}

/// An expression that reads each column from another place.
pub(super) fn with_columns_at(
    expression: Arc<dyn PhysicalExpr>,
    place: impl Fn(usize) -> usize,
) -> Result<Arc<dyn PhysicalExpr>> {
    let moved = expression.transform_down(|expression| {
        Ok(match expression.downcast_ref::<Column>() {
            Some(column) => {
                let place = place(column.index());
                Transformed::yes(Arc::new(Column::new(column.name(), place)) as _)
            }
            None => Transformed::no(expression),
        })
    });
    moved.data()
}
