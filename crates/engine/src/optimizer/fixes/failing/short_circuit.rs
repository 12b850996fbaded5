//! AND and OR that compute a condition for the rows that need it.
//!
//! In: a physical plan before predicates are pushed. Out: the same plan, in which a condition that can fail is computed for
//! rows alone that the others have not decided. Filters have a node of its own above theirs for it; elsewhere it stands in
//! AND and OR.
//! Invariant: values are SQL's; conditions that cannot fail come first, others in the order of the query. A filter that can
//! fail says that it is volatile, so that nothing moves it below a join or merges it with what comes before it.
//! Not here: which expressions can fail (fallible.rs); the logical plan (held_filters.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::expr::plan_expressions::exchanged;
use crate::optimizer::fixes::failing::fallible::can_fail_now;
use crate::optimizer::fixes::failing::guarded_joins::Whole;
use crate::wire::{PortableExpression, WireReader, WireValue};

/// The rule.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let is_loop = node.is::<NestedLoopJoinExec>();
        let node = exchanged(node, &|expr, schema| match guarded(expr, schema)? {
            guarded if is_loop && guarded.transformed => {
                Ok(Transformed::yes(Arc::new(Whole::new(guarded.data)) as _))
            }
            guarded => Ok(guarded),
        })?;
        match apart(&node.data)? {
            Some(filters) => Ok(Transformed::yes(filters)),
            None => Ok(node),
        }
    })
    .data()
}

/// The filter in two, of which the upper one has the conditions that can fail; `None` where there is none.
fn apart(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else {
        return Ok(None);
    };
    let schema = filter.input().schema();
    let parts = conditions(filter.predicate());
    let (fallible, sure): (Vec<_>, Vec<_>) = parts
        .into_iter()
        .partition(|part| can_fail_now(part, &schema) || reads_fallible(part, filter.input()));
    let is_having = sure.is_empty() && fallible.len() == 1 && reads_aggregates(filter);
    if fallible.is_empty() || is_having || is_pinned(filter.predicate()) {
        return Ok(None);
    }
    let pinned = Arc::new(ShortCircuit {
        op: Operator::And,
        parts: fallible,
        place: Mobility::Pinned,
    });
    let mut builder = FilterExecBuilder::from(filter).with_predicate(pinned);
    if !sure.is_empty() {
        let below = FilterExec::try_new(conjunction(sure), Arc::clone(filter.input()))?;
        builder = builder.with_input(Arc::new(below));
    }
    Ok(Some(Arc::new(builder.build()?)))
}

/// Whether a condition reads a column that an expression which can fail makes below. That is in its place when the condition
/// comes below it, and rows that a filter there leaves out would be computed with the others.
fn reads_fallible(condition: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    let columns = collect_columns(condition);
    let mut read: Vec<usize> = columns.iter().map(Column::index).collect();
    let mut node = input;
    while let (false, [below]) = (read.is_empty(), node.children().as_slice()) {
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let schema = below.schema();
            let mut read_below = Vec::new();
            for place in read {
                let Some(projected) = projection.expr().get(place) else {
                    return true;
                };
                if can_fail_now(&projected.expr, &schema) {
                    return !reads_window(&projected.expr, below);
                }
                let columns = collect_columns(&projected.expr);
                read_below.extend(columns.iter().map(Column::index));
            }
            read = read_below;
        } else if let Some(filter) = node.downcast_ref::<FilterExec>()
            && let Some(projection) = filter.projection()
        {
            let places = read
                .iter()
                .filter_map(|&place| projection.get(place).copied());
            read = places.collect();
        } else if node.schema().fields() != below.schema().fields() {
            return false;
        }
        node = below;
    }
    false
}

/// Whether an expression reads what a window has computed directly below, which nothing moves below the window.
fn reads_window(expr: &Arc<dyn PhysicalExpr>, below: &Arc<dyn ExecutionPlan>) -> bool {
    if !below.is::<BoundedWindowAggExec>() && !below.is::<WindowAggExec>() {
        return false;
    }
    let inputs = below.children();
    let width = inputs
        .first()
        .map_or(0, |input| input.schema().fields().len());
    let columns = collect_columns(expr);
    columns.iter().any(|column| column.index() >= width)
}

/// Whether the one condition of a filter is of what an aggregation directly below has computed: nothing moves that, and our
/// operator may hold its groups against it.
fn reads_aggregates(filter: &FilterExec) -> bool {
    let Some(aggregation) = filter.input().downcast_ref::<AggregateExec>() else {
        return false;
    };
    let keys = aggregation.schema().fields().len() - aggregation.aggr_expr().len();
    let columns = collect_columns(filter.predicate());
    columns.iter().any(|column| column.index() >= keys)
}

/// The conditions that all have to hold.
fn conditions(predicate: &Arc<dyn PhysicalExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate).into_iter();
    let parts = parts.flat_map(|part| match part.downcast_ref::<ShortCircuit>() {
        Some(all) if all.op == Operator::And => all.parts.clone(),
        _ => vec![Arc::clone(part)],
    });
    parts.collect()
}

fn is_pinned(predicate: &Arc<dyn PhysicalExpr>) -> bool {
    let own = predicate.downcast_ref::<ShortCircuit>();
    own.is_some_and(|own| own.place == Mobility::Pinned)
}

/// The expression with AND and OR guarded where a part can fail.
fn guarded(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    if !can_fail_now(&expr, schema) {
        return Ok(Transformed::no(expr));
    }
    expr.transform_up(|part| {
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(part));
        };
        let op = *binary.op();
        if !matches!(op, Operator::And | Operator::Or) || !can_fail_now(&part, schema) {
            return Ok(Transformed::no(part));
        }
        let sides = [binary.left(), binary.right()].into_iter();
        let parts = sides.flat_map(|side| match side.downcast_ref::<ShortCircuit>() {
            Some(same) if same.op == op && same.place == Mobility::Free => same.parts.clone(),
            _ => vec![Arc::clone(side)],
        });
        let (fallible, mut parts): (Vec<_>, Vec<_>) =
            parts.partition(|part| can_fail_now(part, schema));
        parts.extend(fallible);
        let guarded = ShortCircuit {
            op,
            parts,
            place: Mobility::Free,
        };
        Ok(Transformed::yes(Arc::new(guarded)))
    })
}

/// Whether other rules may move an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mobility {
    /// It is a part of another.
    Free,
    /// It is a filter's, which stays where it is; a row for which a condition is NULL is left out.
    Pinned,
}

/// AND or OR, part after part for the rows that are not decided.
#[derive(Debug)]
pub(in crate::optimizer) struct ShortCircuit {
    op: Operator,
    parts: Vec<Arc<dyn PhysicalExpr>>,
    place: Mobility,
}

impl PartialEq for ShortCircuit {
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Arc<dyn PhysicalExpr>, &Arc<dyn PhysicalExpr>)| one.eq(other);
        self.op == other.op
            && self.place == other.place
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(same)
    }
}

impl Eq for ShortCircuit {}

impl Hash for ShortCircuit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.op.hash(state);
        self.place.hash(state);
        self.parts.hash(state);
    }
}

impl fmt::Display for ShortCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            if place > 0 {
                write!(f, " {} ", self.op)?;
            }
            match part.is::<BinaryExpr>() || part.is::<ShortCircuit>() {
                true if self.parts.len() > 1 => write!(f, "({part})")?,
                _ => write!(f, "{part}")?,
            }
        }
        Ok(())
    }
}

impl ShortCircuit {
    /// The rows that a part's values leave undecided.
    fn undecided(&self, before: &BooleanBuffer, values: &BooleanArray) -> BooleanBuffer {
        let holds = match values.nulls() {
            Some(nulls) => values.values() & nulls.inner(),
            None => values.values().clone(),
        };
        match (self.op, self.place) {
            (Operator::And, Mobility::Pinned) => before & &holds,
            (Operator::And, Mobility::Free) => {
                let fails = match values.nulls() {
                    Some(nulls) => &!values.values() & nulls.inner(),
                    None => !values.values(),
                };
                before & &!&fails
            }
            _ => before & &!&holds,
        }
    }
}

impl PhysicalExpr for ShortCircuit {
    fn data_type(&self, _input_schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        for part in &self.parts {
            if part.nullable(input_schema)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let nullable = self.nullable(input_schema)?;
        Ok(Arc::new(Field::new(
            self.to_string(),
            DataType::Boolean,
            nullable,
        )))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if let [only] = self.parts.as_slice() {
            return only.evaluate(batch);
        }
        let rows = batch.num_rows();
        let is_and = self.op == Operator::And;
        let mut undecided = BooleanBuffer::new_set(rows);
        let start = if is_and {
            BooleanBuffer::new_set(rows)
        } else {
            BooleanBuffer::new_unset(rows)
        };
        let mut result = BooleanArray::new(start, None);
        for part in &self.parts {
            let left = undecided.count_set_bits();
            if left == 0 {
                break;
            }
            let selection = BooleanArray::new(undecided.clone(), None);
            let values = match left == rows {
                true => part.evaluate(batch)?,
                false => part.evaluate_selection(batch, &selection)?,
            };
            let values = values.into_array(rows)?;
            let values = values.as_boolean();
            let both = match is_and {
                true => and_kleene(&result, values)?,
                false => or_kleene(&result, values)?,
            };
            result = zip(&selection, &both, &result)?.as_boolean().clone();
            undecided = self.undecided(&undecided, values);
        }
        Ok(ColumnarValue::Array(Arc::new(result)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.parts.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if children.len() != self.parts.len() {
            return internal_err!("AND and OR keep their parts");
        }
        Ok(Arc::new(ShortCircuit {
            op: self.op,
            parts: children,
            place: self.place,
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }

    fn is_volatile_node(&self) -> bool {
        self.place == Mobility::Pinned
    }
}

impl PortableExpression for ShortCircuit {
    const KIND: &'static str = "short_circuit";

    fn apart(&self) -> Vec<WireValue> {
        let is_and = self.op == Operator::And;
        let is_pinned = self.place == Mobility::Pinned;
        vec![is_and.into(), is_pinned.into()]
    }

    fn whole(
        parts: Vec<Arc<dyn PhysicalExpr>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let op = match values.flag()? {
            true => Operator::And,
            false => Operator::Or,
        };
        let place = match values.flag()? {
            true => Mobility::Pinned,
            false => Mobility::Free,
        };
        Ok(Arc::new(ShortCircuit { op, parts, place }))
    }
}
