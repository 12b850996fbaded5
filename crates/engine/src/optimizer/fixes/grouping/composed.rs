//! Aggregates that are composed of others.
//!
//! In: an aggregation before DataFusion's type coercion. Out: one of aggregates that DataFusion and our operator have, under a
//! projection that makes of them what the query asks for.
//! Invariant: names and order of the columns stay. FILTER is that of the query.
//!
//! - `median` and `avg` of days: of their microseconds; `percentile_disc`: an element of `array_agg(x ORDER BY x)`;
//! - `string_agg(DISTINCT i, ',' ORDER BY i)` of no text: the text of `array_agg(DISTINCT i ORDER BY i)`. So several in different orders;
//! - `array_agg(DISTINCT l ORDER BY l)` of lists and structs: `list_sort(array_agg(DISTINCT l))`;
//! - `regr_r2`: of `regr_sxx`, `regr_syy` and `regr_sxy`, 1 where y is constant and x is not;
//! - `grouping` of more than 31 columns: of two, as BIGINT; `sum` and `avg` of narrow decimals: of wide ones;
//! - `count(DISTINCT *)`: `count(DISTINCT (all, columns))`; `sum(x ORDER BY y)` and `avg` of exact numbers: `sum(x)`, `avg(x)`;
//! - the same of floats, `string_agg` and `nth_value` in another order than one before: of `array_agg` in that order.
//!
//! Not here: the same over windows, but for `regr_r2` (signed_counts.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::core::r#struct;
use datafusion::functions::math::expr_fn::ceil;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::grouping::grouping_udaf;
use datafusion::functions_aggregate::median::median_udaf;
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::functions_aggregate::regr::{
    regr_r2_udaf, regr_sxx_udaf, regr_sxy_udaf, regr_syy_udaf,
};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::functions_nested::expr_fn::{array_element, array_length, array_to_string};
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, NullTreatment, Sort,
};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Cast, Expr, ExprSchemable, LogicalPlan, Projection, lit, when,
};
use grouse_groupby::keys::decoded;

use crate::functions::{
    is_exact_avg, is_exact_sum, is_median, is_percentile_disc, is_product, is_whole_row,
    list_in_order, mean_from_first, product_from_first, sum_from_first, temporal_median,
    with_middle,
};
use crate::optimizer::fixes::{AggregatesBelow, bare, each_plan, under_names};

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let composed = match &plan {
            LogicalPlan::Aggregate(aggregate) => composed(aggregate)?,
            _ => None,
        };
        Ok(composed.map_or_else(|| Transformed::no(plan), Transformed::yes))
    })
}

fn composed(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let mut parts = AggregateParts::default();
    let mut columns = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut changed = false;
    let has_orders = has_orders(aggregate);
    for expr in &aggregate.aggr_expr {
        let whole = match bare_all(expr) {
            Expr::AggregateFunction(call) if has_orders && is_ordered_text(call) => {
                Some(of_list(call, schema, &mut parts)?)
            }
            Expr::AggregateFunction(call) => match sorted_list(call, schema, &mut parts) {
                None => of_parts(call, schema, &mut parts)?,
                sorted => sorted,
            },
            _ => None,
        };
        changed |= whole.is_some();
        columns.push(whole.unwrap_or_else(|| parts.below.column(expr.clone())));
    }
    match changed {
        true => under_names(aggregate, parts.below, columns)?
            .map(without_grouping_id)
            .transpose(),
        false => Ok(None),
    }
}

fn is_ordered_text(call: &AggregateFunction) -> bool {
    *call.func == *string_agg_udaf() && !call.params.order_by.is_empty()
}

/// Whether strings are put together in more than one order, which DataFusion does not plan.
fn has_orders(aggregate: &Aggregate) -> bool {
    let calls = aggregate.aggr_expr.iter().map(bare_all);
    let mut orders = calls.filter_map(|expr| match expr {
        Expr::AggregateFunction(call) if is_ordered_text(call) => Some(&call.params.order_by),
        _ => None,
    });
    let first = orders.next();
    orders.any(|order| Some(order) != first)
}

/// `string_agg` as the text of a list, for which the order is a wish.
fn of_list(
    call: &AggregateFunction,
    schema: &DFSchema,
    parts: &mut AggregateParts,
) -> Result<Expr> {
    let [value, between] = call.params.args.as_slice() else {
        return plan_err!("string_agg takes a value and what stands between two of them");
    };
    if let Some(joined) = joined(call, &value.get_type(schema)?, parts)? {
        return Ok(joined);
    }
    let is_text = value.get_type(schema)?.is_string();
    let value = match is_text {
        true => value.clone(),
        false => cast(value.clone(), DataType::Utf8),
    };
    let values = parts.column(values_in_order(call, value));
    let joined = array_to_string(values, between.clone());
    Ok(cast(joined, DataType::LargeUtf8))
}

/// The projection without the number of the grouping set, which DataFusion has not resolved `grouping()` to yet: what it makes
/// of the aggregation below has no such column.
fn without_grouping_id(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else {
        return Ok(plan);
    };
    let is_id = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == Aggregate::INTERNAL_GROUPING_ID);
    let mut columns = projection.expr;
    columns.retain(|expr| !is_id(expr));
    let projection = Projection::try_new(columns, projection.input)?;
    Ok(LogicalPlan::Projection(projection))
}

fn bare_all(expr: &Expr) -> &Expr {
    match bare(expr) {
        inner @ Expr::Alias(_) => bare_all(inner),
        inner => inner,
    }
}

/// The aggregates that others are made of.
#[derive(Default)]
struct AggregateParts {
    below: AggregatesBelow,
    number: usize,
    /// The order that DataFusion brings the input into for `string_agg` and `nth_value`: there can be one.
    order: Vec<Sort>,
}

impl AggregateParts {
    /// The column of `call`, which has a name of its own.
    fn column(&mut self, call: AggregateFunction) -> Expr {
        self.number += 1;
        let name = format!("__part_{}", self.number);
        self.below.column(Expr::AggregateFunction(call).alias(name))
    }

    /// True of a call that wants its input in another order than one before it.
    fn is_other_order(&mut self, call: &AggregateFunction) -> bool {
        let order = &call.params.order_by;
        if self.order.is_empty() {
            self.order.clone_from(order);
        }
        !order.is_empty() && self.order != *order
    }
}

/// Aggregates whose result does not depend on the order of their rows, for which DataFusion would nevertheless sort them.
const ORDERLESS: [&str; 14] = [
    "avg",
    "sum",
    "count",
    "corr",
    "covar_pop",
    "covar_samp",
    "median",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
    "approx_distinct",
    "approx_median",
    "uniq",
];

/// The call as an expression over its parts; `None` where it stays as it is.
fn of_parts(
    call: &AggregateFunction,
    schema: &DFSchema,
    parts: &mut AggregateParts,
) -> Result<Option<Expr>> {
    let args = call.params.args.as_slice();
    let Some(first) = args.first() else {
        return Ok(None);
    };
    let first_type = first.get_type(schema);
    let is = |function: &AggregateUDF| *call.func == *function;
    if is_median(&call.func) {
        return Ok(Some(middle(call, median_udaf(), &first_type?, parts)));
    }
    if is_exact_avg(&call.func)
        && let Ok(values) = &first_type
        && temporal_median(values).is_some()
    {
        return Ok(Some(middle(call, Arc::clone(&call.func), values, parts)));
    }
    if is_percentile_disc(&call.func) {
        return percentile_disc(call, parts).map(Some);
    }
    if is(&string_agg_udaf()) {
        let whole = joined(call, &first_type?, parts)?;
        return Ok(match whole {
            None if parts.is_other_order(call) => strings_in_order(call, parts),
            whole => whole,
        });
    }
    if is(&nth_value_udaf()) {
        return Ok(match parts.is_other_order(call) {
            true => element_in_order(call, parts),
            false => None,
        });
    }
    if let Ok(values) = &first_type
        && let Some(total) = total_in_order(call, values, parts)?
    {
        return Ok(Some(total));
    }
    if ORDERLESS.contains(&call.func.name()) && !call.params.order_by.is_empty() {
        return without_order(call, schema, parts).map(Some);
    }
    if is(&regr_r2_udaf()) && !call.params.distinct {
        let part = |func| {
            parts.column(AggregateFunction {
                func,
                ..call.clone()
            })
        };
        return Ok(Some(determination(part)));
    }
    if is(&grouping_udaf()) && args.len() > GROUPING_BITS {
        return grouping(call, parts).map(Some);
    }
    if call.params.distinct && is_whole_row(first) {
        let columns = schema.columns().into_iter().map(Expr::Column).collect();
        let row = r#struct().call(columns);
        return Ok(Some(parts.column(with_args(call, vec![row]))));
    }
    match (call.func.name(), first_type) {
        ("sum" | "avg", Ok(narrow)) => Ok(wide_decimal(&narrow).map(|wide| {
            let arg = cast(first.clone(), wide);
            parts.column(with_args(call, vec![arg]))
        })),
        _ => Ok(None),
    }
}

/// A call that does not depend on the order of rows, without one.
fn without_order(
    call: &AggregateFunction,
    schema: &DFSchema,
    parts: &mut AggregateParts,
) -> Result<Expr> {
    let mut call = call.clone();
    call.params.order_by.clear();
    let whole = of_parts(&call, schema, parts)?;
    Ok(whole.unwrap_or_else(|| parts.column(call)))
}

fn with_args(call: &AggregateFunction, args: Vec<Expr>) -> AggregateFunction {
    let params = AggregateFunctionParams {
        args,
        ..call.params.clone()
    };
    AggregateFunction {
        func: Arc::clone(&call.func),
        params,
    }
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

fn wide_decimal(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            Some(DataType::Decimal128(*precision, *scale))
        }
        _ => None,
    }
}

/// Our `median` by DataFusion's, and any such aggregate of dates and times by that of their numbers.
fn middle(
    call: &AggregateFunction,
    function: Arc<AggregateUDF>,
    values: &DataType,
    parts: &mut AggregateParts,
) -> Expr {
    let mut arg = call.params.args[0].clone();
    let result = temporal_median(values);
    if let Some(result) = &result {
        // Numbers of 64 bits between which the mean is exact.
        arg = cast(cast(arg, result.clone()), DataType::Int64);
        arg = cast(arg, DataType::Decimal128(20, 1));
    } else if values.is_decimal() {
        arg = cast(arg, with_middle(values));
    }
    let mut part = with_args(call, vec![arg]);
    part.func = function;
    let middle = parts.column(part);
    match result {
        // Rounded, where a cast to an integer would cut.
        Some(result) => {
            let whole = cast(middle, DataType::Decimal128(20, 0));
            cast(cast(whole, DataType::Int64), result)
        }
        None => middle,
    }
}

/// The element of the ordered values at the fraction of their number.
fn percentile_disc(call: &AggregateFunction, parts: &mut AggregateParts) -> Result<Expr> {
    let [value, fraction] = call.params.args.as_slice() else {
        return plan_err!("percentile_disc takes a share and one ORDER BY");
    };
    let fraction = match fraction {
        Expr::Literal(fraction, _) => fraction.cast_to(&DataType::Float64).ok(),
        _ => None,
    };
    let fraction = match fraction {
        Some(ScalarValue::Float64(Some(fraction))) if (0.0..=1.0).contains(&fraction) => fraction,
        _ => return plan_err!("percentile_disc takes a share between 0 and 1, e.g. 0.5"),
    };
    if call.params.distinct {
        return plan_err!("percentile_disc takes no DISTINCT");
    }
    let values = parts.column(values_in_order(call, value.clone()));
    let place = match fraction > 0.0 {
        true => {
            let number = cast(array_length(values.clone()), DataType::Float64);
            cast(ceil(lit(fraction) * number), DataType::Int64)
        }
        false => lit(1_i64),
    };
    Ok(array_element(values, place))
}

/// `array_agg(x ORDER BY x)` of the values that are there.
fn values_in_order(call: &AggregateFunction, value: Expr) -> AggregateFunction {
    let is_there = value.clone().is_not_null();
    let filter = match call.params.filter.as_deref() {
        Some(filter) => filter.clone().and(is_there),
        None => is_there,
    };
    let mut order_by = call.params.order_by.clone();
    if order_by.is_empty() {
        order_by.push(value.clone().sort(true, false));
    }
    AggregateFunction::new_udf(
        array_agg_udaf(),
        vec![value],
        call.params.distinct,
        Some(Box::new(filter)),
        order_by,
        None,
    )
}

/// `array_agg(DISTINCT l ORDER BY l)` of lists and structs, which DataFusion sorts as if NULL inside of them were nothing.
fn sorted_list(
    call: &AggregateFunction,
    schema: &DFSchema,
    parts: &mut AggregateParts,
) -> Option<Expr> {
    let params = &call.params;
    let is_distinct = *call.func == *array_agg_udaf() && params.distinct;
    let (true, [value], [key]) = (
        is_distinct,
        params.args.as_slice(),
        params.order_by.as_slice(),
    ) else {
        return None;
    };
    let is_nested = value.get_type(schema).is_ok_and(|of| of.is_nested());
    if key.expr != *value || !is_nested {
        return None;
    }
    let mut unsorted = call.clone();
    unsorted.params.order_by.clear();
    Some(list_in_order(parts.column(unsorted), key))
}

/// `string_agg(DISTINCT x, ',' ORDER BY x)` where x is no text: DataFusion would order by another x than it joins.
fn joined(
    call: &AggregateFunction,
    values: &DataType,
    parts: &mut AggregateParts,
) -> Result<Option<Expr>> {
    let [value, between] = call.params.args.as_slice() else {
        return Ok(None);
    };
    let is_text = |of: &DataType| of.is_string() || of.is_null();
    let is_ordered_by_it = matches!(call.params.order_by.as_slice(), [key] if key.expr == *value);
    if !call.params.distinct || !is_ordered_by_it || is_text(values) {
        return Ok(None);
    }
    let text = |expr: Expr| cast(expr, DataType::Utf8);
    if matches!(values, DataType::Dictionary(_, of) if is_text(of)) {
        let mut plain = with_args(call, vec![text(value.clone()), between.clone()]);
        plain.params.order_by[0].expr = text(value.clone());
        return Ok(Some(parts.column(plain)));
    }
    let values = parts.column(values_in_order(call, value.clone()));
    let joined = array_to_string(values, between.clone());
    Ok(Some(cast(joined, DataType::LargeUtf8)))
}

/// `sum(x ORDER BY y)` and `avg(x ORDER BY y)` of floats, and `product(x ORDER BY y)`, by `array_agg(x ORDER BY y)`. The sums of
/// other numbers are exact in any order.
fn total_in_order(
    call: &AggregateFunction,
    values: &DataType,
    parts: &mut AggregateParts,
) -> Result<Option<Expr>> {
    let AggregateFunctionParams {
        args,
        distinct,
        order_by,
        ..
    } = &call.params;
    let values = decoded(values);
    let total = match values.is_floating() {
        true if is_exact_sum(&call.func) => sum_from_first,
        true if is_exact_avg(&call.func) => mean_from_first,
        _ if values.is_numeric() && is_product(&call.func) => product_from_first,
        _ => return Ok(None),
    };
    let [value] = args.as_slice() else {
        return Ok(None);
    };
    let is_by_value = matches!(order_by.as_slice(), [key] if key.expr == *value);
    if order_by.is_empty() {
        return Ok(None);
    }
    if *distinct && !is_by_value {
        return plan_err!(
            "with DISTINCT, {} is ordered by its argument alone",
            call.func.name()
        );
    }
    let double = cast(value.clone(), DataType::Float64);
    let mut listed = with_args(call, vec![double.clone()]);
    listed.func = array_agg_udaf();
    if *distinct {
        listed.params.order_by[0].expr = double;
    }
    Ok(Some(total(parts.column(listed))))
}

/// `string_agg(x, ',' ORDER BY y)` by `array_agg(x ORDER BY y)`.
fn strings_in_order(call: &AggregateFunction, parts: &mut AggregateParts) -> Option<Expr> {
    let [value, between] = call.params.args.as_slice() else {
        return None;
    };
    let between = match between {
        Expr::Literal(text, _) if text.is_null() => lit(""),
        other => other.clone(),
    };
    let values = parts.column(values_in_order(call, value.clone()));
    Some(cast(array_to_string(values, between), DataType::LargeUtf8))
}

/// `nth_value(x, n ORDER BY y)` by `array_agg(x ORDER BY y)`.
fn element_in_order(call: &AggregateFunction, parts: &mut AggregateParts) -> Option<Expr> {
    let [value, place] = call.params.args.as_slice() else {
        return None;
    };
    let mut values = match call.params.null_treatment {
        Some(NullTreatment::IgnoreNulls) => values_in_order(call, value.clone()),
        _ => with_args(call, vec![value.clone()]),
    };
    values.func = array_agg_udaf();
    values.params.null_treatment = None;
    Some(array_element(parts.column(values), place.clone()))
}

/// `regr_r2`, whose parts `part` calls.
pub(in crate::optimizer::fixes) fn determination(
    mut part: impl FnMut(Arc<AggregateUDF>) -> Expr,
) -> Expr {
    let squares_x = part(regr_sxx_udaf());
    let squares_y = part(regr_syy_udaf());
    let products = part(regr_sxy_udaf());
    let zero = || lit(0.0_f64);
    let share = products.clone() / squares_x.clone() * (products / squares_y.clone());
    let null = lit(ScalarValue::Float64(None));
    let mut cases = when(squares_x.eq(zero()), null.clone())
        .when(squares_y.clone().eq(zero()), lit(1.0_f64))
        .when(squares_y.is_not_null(), share);
    cases
        .otherwise(null)
        .unwrap_or_else(|_| lit(ScalarValue::Float64(None)))
}

/// Columns that one `grouping` of DataFusion tells apart.
const GROUPING_BITS: usize = 31;

fn grouping(call: &AggregateFunction, parts: &mut AggregateParts) -> Result<Expr> {
    let args = &call.params.args;
    if args.len() > 2 * GROUPING_BITS {
        return plan_err!(
            "grouping takes at most {} columns, not {}; call it for some of them",
            2 * GROUPING_BITS,
            args.len()
        );
    }
    let (high, low) = args.split_at(args.len() - GROUPING_BITS);
    let mut bits = |args: &[Expr]| {
        let part = parts.column(with_args(call, args.to_vec()));
        cast(part, DataType::Int64)
    };
    Ok(bits(high) * lit(1_i64 << GROUPING_BITS) + bits(low))
}
