//! Parts of a join's conditions that stay in their place, since they can fail and come after a condition.
//!
//! In: the filter of a nested-loop join. Out: the same filter, in which each such part says that it is volatile.
//! Invariant: values stay. DataFusion computes what reads one side alone below the join, where no condition is looked at:
//! `ON a.y <> 0 AND a.x / a.y > b.z` would divide by zero.
//! Not here: which parts can fail (fallible.rs), AND and OR that leave rows out (short_circuit.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CaseExpr;

use super::fallible::part_can_fail_now;
use super::short_circuit::ShortCircuit;

/// The filter with what can fail, below AND, OR and CASE, held in its place.
pub(super) fn held(
    filter: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    filter.transform_down(|part| {
        if !part.is::<ShortCircuit>() && !part.is::<CaseExpr>() {
            return Ok(Transformed::no(part));
        }
        let mut held = part.transform_up(|part| {
            Ok(match part_can_fail_now(&part, schema) {
                true => Transformed::yes(Arc::new(Held(part)) as Arc<dyn PhysicalExpr>),
                false => Transformed::no(part),
            })
        })?;
        held.tnr = TreeNodeRecursion::Jump;
        Ok(held)
    })
}

/// An expression that no rule moves.
#[derive(Debug)]
struct Held(Arc<dyn PhysicalExpr>);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Eq for Held {}

impl Hash for Held {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl PhysicalExpr for Held {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.0.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.0.nullable(input_schema)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.0.return_field(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(part), true) => Ok(Arc::new(Held(part))),
            _ => internal_err!("a part that stays has one expression"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }

    fn is_volatile_node(&self) -> bool {
        true
    }
}
