//! Which of a query's aggregates have native states.
//!
//! In: the host's physical aggregate. Out: native states with the columns they read, or `None`: the host's own run.
//! Invariant: an aggregate is known by its implementation, not by its name alone: a user's function that is called
//! `count` stays the user's.
//! Not here: the states (`grouse_groupby::states`).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::approx_distinct::approx_distinct_udaf;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use grouse_groupby::states::{self, Aggregate, Extreme};

use crate::functions::with_native_states;

/// An aggregate with native states.
pub(crate) struct Native {
    /// Its states.
    pub aggregate: Arc<dyn Aggregate>,
    /// The argument columns that they read.
    pub columns: Vec<Arc<dyn PhysicalExpr>>,
}

/// Functions with native states whose implementations are not the host's constants.
static OURS: LazyLock<Vec<AggregateUDF>> = LazyLock::new(|| {
    let mut ours = with_native_states();
    // The host's sum wraps where it does not fit; the native one, as ours, says so.
    ours.push(sum_udaf().as_ref().clone());
    ours.push(approx_distinct_udaf().as_ref().clone());
    ours
});

/// Of these, the approximate counts.
const SKETCHES: [&str; 2] = ["uniq", "approx_distinct"];

/// The native form of `expression`, whose arguments are evaluated on batches of `schema`.
pub(crate) fn native(
    expression: &AggregateFunctionExpr,
    schema: &Schema,
) -> Result<Option<Native>> {
    let columns = expression.expressions();
    let types = columns
        .iter()
        .map(|column| column.data_type(schema))
        .collect::<Result<Vec<_>>>()?;
    let name = expression
        .human_display()
        .unwrap_or_else(|| expression.name());
    let function = expression.fun();
    if is(function, &min_udaf()) || is(function, &max_udaf()) {
        // DISTINCT and ORDER BY change nothing, here and in sketches.
        let extreme = extreme_of(function.name());
        return Ok(with_columns(
            states::min_max(name, extreme, &types[0]),
            columns,
        ));
    }
    if SKETCHES.contains(&function.name()) && OURS.contains(function) {
        return Ok(with_columns(states::uniq(name, &types), columns));
    }
    if expression.is_distinct() || !expression.order_bys().is_empty() {
        return Ok(None);
    }
    if is(function, &count_udaf()) {
        return Ok(counted(columns, schema)?
            .and_then(|columns| with_columns(states::count(name), columns)));
    }
    let field = expression.field();
    let result = field.data_type();
    let aggregate = if is(function, &avg_udaf()) {
        states::avg(name, &types[0], result)
    } else if !OURS.contains(function) {
        None
    } else if function.name() == "sum" {
        states::sum(name, &types[0], result)
    } else {
        best(function.name(), name, &types)
    };
    Ok(with_columns(aggregate, columns))
}

/// `max_by(x, y)` or `min_by(x, y)`.
fn best(function: &str, name: &str, types: &[DataType]) -> Option<Arc<dyn Aggregate>> {
    let [value, by] = types else { return None };
    states::arg_extreme(
        name,
        extreme_of(function.trim_end_matches("_by")),
        value,
        by,
    )
}

fn extreme_of(name: &str) -> Extreme {
    match name {
        "min" => Extreme::Min,
        _ => Extreme::Max,
    }
}

fn is(function: &AggregateUDF, known: &Arc<AggregateUDF>) -> bool {
    function == known.as_ref()
}

fn with_columns(
    aggregate: Option<Arc<dyn Aggregate>>,
    columns: Vec<Arc<dyn PhysicalExpr>>,
) -> Option<Native> {
    aggregate.map(|aggregate| Native { aggregate, columns })
}

/// The columns whose NULLs `count` leaves out: none for `count(*)`; `None` where that is not a matter of columns.
fn counted(
    columns: Vec<Arc<dyn PhysicalExpr>>,
    schema: &Schema,
) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
    let mut nullable = Vec::with_capacity(columns.len());
    for column in columns {
        match column.downcast_ref::<Literal>().map(Literal::value) {
            Some(ScalarValue::Null) => return Ok(None),
            Some(value) if value.is_null() => return Ok(None),
            Some(_) => {}
            None if column.nullable(schema)? => nullable.push(column),
            None => {}
        }
    }
    Ok(Some(nullable))
}
