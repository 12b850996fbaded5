//! Conditions of outer joins that can fail, computed for the rows that the other conditions leave.
//!
//! In: a join on its way through DataFusion's `extract_equijoin_predicate`; a nested loop join of a physical plan, whose
//! condition is guarded (short_circuit.rs). Out: the join, in which a key that can fail is a CASE of the conditions of its side:
//! no row matches where one of them does not hold. The physical one has a condition that DataFusion computes no part of below the
//! join.
//! Invariant: the join's rows are the same.
//! Not here: inner joins, whose conditions are filters (held_filters.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Join, JoinType, Operator, binary_expr,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::optimizer::fixes::failing::fallible::can_fail;
use crate::wire::{PortableExpression, WireReader, WireValue};

/// The join with guarded keys; `None` if none has need of it.
pub(in crate::optimizer::fixes) fn with_guarded_keys(join: &Join) -> Result<Option<Join>> {
    let Some(filter) = &join.filter else {
        return Ok(None);
    };
    if join.join_type == JoinType::Inner {
        return Ok(None);
    }
    let schema = join.left.schema().join(join.right.schema())?;
    let (fallible, sure): (Vec<_>, Vec<_>) = split_conjunction(filter)
        .into_iter()
        .partition(|condition| can_fail(condition, &schema));
    let mut changed = false;
    let guarded = fallible.into_iter().map(|condition| {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else {
            return condition.clone();
        };
        if *op != Operator::Eq {
            return condition.clone();
        }
        let sides = [left, right].map(|side| guarded(side, &sure, join));
        changed |= sides.iter().any(Option::is_some);
        let [new_left, new_right] = sides;
        let left = new_left.unwrap_or_else(|| left.as_ref().clone());
        binary_expr(
            left,
            *op,
            new_right.unwrap_or_else(|| right.as_ref().clone()),
        )
    });
    let guarded: Vec<Expr> = guarded.collect();
    let all = sure
        .iter()
        .map(|condition| (*condition).clone())
        .chain(guarded);
    let filter = conjunction(all);
    Ok(changed.then(|| Join {
        filter,
        ..join.clone()
    }))
}

/// A key as a CASE of the conditions that read its side alone.
fn guarded(key: &Expr, conditions: &[&Expr], join: &Join) -> Option<Expr> {
    let reads = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
    };
    let inputs = [&join.left, &join.right].into_iter();
    let mut schemas = inputs.map(|input| input.schema());
    let schema = schemas.find(|schema| reads(key, schema))?;
    let is_case = matches!(key, Expr::Case(_));
    if is_case || !can_fail(key, schema) {
        return None;
    }
    let own = conditions
        .iter()
        .filter(|condition| reads(condition, schema));
    let when = conjunction(own.map(|condition| (*condition).clone()))?;
    Some(Expr::Case(Case {
        expr: None,
        when_then_expr: vec![(Box::new(when), Box::new(key.clone()))],
        else_expr: None,
    }))
}

/// A condition that has columns and no parts to those who ask.
#[derive(Debug)]
pub(in crate::optimizer) struct Whole {
    condition: Arc<dyn PhysicalExpr>,
    columns: Vec<Arc<dyn PhysicalExpr>>,
}

impl Whole {
    pub(in crate::optimizer::fixes) fn new(condition: Arc<dyn PhysicalExpr>) -> Whole {
        let mut columns: Vec<Column> = collect_columns(&condition).into_iter().collect();
        columns.sort_by_key(Column::index);
        let columns = columns.into_iter().map(|column| Arc::new(column) as _);
        Whole {
            columns: columns.collect(),
            condition,
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PartialEq for Whole {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Whole {}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl PhysicalExpr for Whole {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.columns.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if children.len() != self.columns.len() {
            return internal_err!("a condition keeps its columns");
        }
        let condition = Arc::clone(&self.condition);
        let condition = condition.transform_up(|part| {
            let at = self.columns.iter().position(|column| **column == *part);
            Ok(match at {
                Some(at) => Transformed::yes(Arc::clone(&children[at])),
                None => Transformed::no(part),
            })
        });
        Ok(Arc::new(Whole::new(condition.data()?)))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}

impl PortableExpression for Whole {
    const KIND: &'static str = "whole_condition";

    fn apart(&self) -> Vec<WireValue> {
        // The codec knows the columns that an expression is over.
        let over = Arc::new(Schema::empty());
        vec![WireValue::Expression(Arc::clone(&self.condition), over)]
    }

    fn whole(
        _: Vec<Arc<dyn PhysicalExpr>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Whole::new(values.expression()?)))
    }
}
