//! Aggregates by another name, and those that stand for an expression of others: `list`, `count_if`, `geomean`, `max(x, n)`.
//!
//! In: a call as the planner has it, over groups or over a window. Out: the expression, under the name that was written.
//! Invariant: what remains in the plan are DataFusion's aggregates and ours, so that native states are found for them.
//! Not here: aggregates with states of their own (statistics.rs); names of scalar functions (scalar/).

use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::common::{DFSchema, Result, ScalarValue, not_impl_err, plan_err};
use datafusion::functions::core::expr_fn::{get_field, named_struct, nullif};
use datafusion::functions::math::expr_fn::{exp, ln, sqrt};
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::bit_and_or_xor::bit_xor_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::{first_value_udaf, last_value_udaf};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::functions_nested::expr_fn::{
    array_concat, array_slice, array_to_string, make_array,
};
use datafusion::functions_window::nth_value::{first_value_udwf, last_value_udwf};
use datafusion::logical_expr::expr::{
    AggregateFunction, NullTreatment, Sort, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawFieldAccessExpr, RawWindowExpr,
};
use datafusion::logical_expr::{
    AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, GetFieldAccess, WindowFunctionDefinition,
    cast, lit, when,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::functions::aggregates::recomputed::over_frame;
use crate::functions::aggregates::{ordered_set, percentile_cont, statistics};
use crate::functions::as_written::as_written;
use crate::functions::backward_slices::slice;
use crate::functions::scalar::{
    interval_by, interval_times, json_entries, json_extract, json_extract_string, list_in_order,
    to_json, value_of_key,
};
use crate::functions::wrapped::as_wrapped;
use crate::functions::{Frequent, exact_avg, exact_sum};

/// Names, and the aggregates that they are.
fn names() -> Vec<(&'static str, Arc<AggregateUDF>)> {
    let (sum, avg) = (Arc::new(exact_sum()), Arc::new(exact_avg()));
    vec![
        ("list", array_agg_udaf()),
        ("first", first_value_udaf()),
        ("arbitrary", first_value_udaf()),
        ("last", last_value_udaf()),
        ("variance", var_samp_udaf()),
        ("group_concat", string_agg_udaf()),
        ("listagg", string_agg_udaf()),
        ("sum_no_overflow", sum),
        ("mean", Arc::clone(&avg)),
        ("approx_quantile", approx_percentile_cont_udaf()),
        ("reservoir_quantile", approx_percentile_cont_udaf()),
        ("count_if", count_udaf()),
        ("countif", count_udaf()),
        ("count_star", count_udaf()),
        ("geomean", Arc::clone(&avg)),
        ("geometric_mean", Arc::clone(&avg)),
        ("wavg", Arc::clone(&avg)),
        ("weighted_avg", avg),
        ("sem", var_pop_udaf()),
        ("quantile", percentile_disc()),
        ("json_group_array", array_agg_udaf()),
        ("json_group_object", array_agg_udaf()),
    ]
}

/// Grouped, other aggregates take its place (optimizer/fixes/grouping/composed.rs).
fn percentile_disc() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(ordered_set::PercentileDisc::new()))
}

/// The functions of these names, so that the planner knows them.
pub(in crate::functions) fn functions() -> Vec<AggregateUDF> {
    let named = |(name, inner)| AggregateUDF::from(Named { name, inner });
    names().into_iter().map(named).collect()
}

/// The aggregate that a name is.
pub(in crate::functions) fn of_name(name: &str) -> Option<Arc<AggregateUDF>> {
    let mut names = names().into_iter();
    names
        .find(|(one, _)| *one == name)
        .map(|(_, function)| function)
}

/// An aggregate under another name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    name: &'static str,
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Named {
    as_wrapped!(
        inner: signature, return_type, return_field, coerce_types, accumulator,
        state_fields, supports_null_handling_clause, supports_within_group_clause
    );

    fn name(&self) -> &str {
        self.name
    }
}

/// The planner that puts aggregates in the place of names, and functions in the place of the arrows of JSON.
#[derive(Debug)]
pub struct StandingFunctions;

impl ExprPlanner for StandingFunctions {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_interval = |expr: &Expr| {
            let of = expr.get_type(schema);
            of.is_ok_and(|of| matches!(of, DataType::Interval(_) | DataType::Duration(_)))
        };
        if matches!(raw.op, BinaryOperator::StringConcat) {
            let is_null = |side: &Expr| matches!(side, Expr::Literal(value, _) if value.is_null());
            let list_type = |list: &Expr, other: &Expr| {
                let kind = list.get_type(schema).ok().filter(DataType::is_list);
                kind.filter(|_| is_null(other))
            };
            // DataFusion would put a NULL into the list.
            let kind = list_type(&raw.left, &raw.right).or(list_type(&raw.right, &raw.left));
            if let Some(kind) = kind {
                let null = cast(lit(ScalarValue::Null), kind);
                return Ok(PlannerResult::Planned(null));
            }
            let is_list = |side: &Expr| side.get_type(schema).is_ok_and(|kind| kind.is_list());
            let may_be_null = |side: &Expr| side.nullable(schema).unwrap_or(true);
            let sides = [&raw.left, &raw.right];
            // DataFusion would take a NULL for a list without items.
            if sides.iter().all(|side| is_list(side)) && sides.iter().any(|side| may_be_null(side))
            {
                let is_null = raw.left.clone().is_null().or(raw.right.clone().is_null());
                let joined = array_concat(vec![raw.left, raw.right]);
                let joined = when(is_null, lit(ScalarValue::Null)).otherwise(joined)?;
                return Ok(PlannerResult::Planned(joined));
            }
        }
        if matches!(raw.op, BinaryOperator::Divide) && is_interval(&raw.left) {
            let divided = interval_by().call(vec![raw.left, raw.right]);
            return Ok(PlannerResult::Planned(divided));
        }
        if matches!(raw.op, BinaryOperator::Multiply) {
            let factors = match (is_interval(&raw.left), is_interval(&raw.right)) {
                (true, false) => vec![raw.left, raw.right],
                (false, true) => vec![raw.right, raw.left],
                _ => return Ok(PlannerResult::Original(raw)),
            };
            return Ok(PlannerResult::Planned(interval_times().call(factors)));
        }
        let function = match raw.op {
            BinaryOperator::Arrow => json_extract(),
            BinaryOperator::LongArrow => json_extract_string(),
            _ => return Ok(PlannerResult::Original(raw)),
        };
        Ok(PlannerResult::Planned(
            function.call(vec![raw.left, raw.right]),
        ))
    }

    /// A map's value of a key, which DataFusion compares by its type and its bits; a field by its place; a part of a list.
    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let key = match &raw.field_access {
            GetFieldAccess::ListIndex { key } => key.as_ref().clone(),
            GetFieldAccess::NamedStructField { name } => lit(name.clone()),
            GetFieldAccess::ListRange {
                start,
                stop,
                stride,
            } => {
                let bounds = [start, stop, stride].map(|bound| bound.as_ref().clone());
                return Ok(PlannerResult::Planned(slice(raw.expr, bounds)));
            }
        };
        let written = format!("{}[{}]", raw.expr.schema_name(), key.schema_name());
        let value = match raw.expr.get_type(schema) {
            Ok(DataType::Map(entries, _)) => {
                let of_key = match (entries.data_type(), &key) {
                    (DataType::Struct(fields), Expr::Literal(value, _))
                        if value.is_null() || value.data_type().is_string() =>
                    {
                        cast(key, fields[0].data_type().clone())
                    }
                    _ => key,
                };
                value_of_key(raw.expr, of_key)
            }
            Ok(DataType::Struct(fields)) => match unnamed_field(&fields, &key) {
                Some(name) => get_field(raw.expr, name),
                None => return Ok(PlannerResult::Original(raw)),
            },
            _ => return Ok(PlannerResult::Original(raw)),
        };
        Ok(PlannerResult::Planned(value.alias(written)))
    }

    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let call = Call {
            name: raw.func.name().to_owned(),
            args: raw.args.clone(),
            filter: raw.filter.as_deref().cloned(),
            is_window: false,
        };
        let over = |function: Arc<AggregateUDF>, one: One| {
            let order = raw.order_by.clone();
            Expr::AggregateFunction(AggregateFunction::new_udf(
                function,
                one.args,
                raw.distinct,
                one.filter.or(call.filter.clone()).map(Box::new),
                if one.order.is_empty() {
                    order
                } else {
                    one.order
                },
                raw.null_treatment,
            ))
        };
        let written = |raw: &RawAggregateExpr| {
            over(Arc::clone(&raw.func), One::of(raw.args.clone()))
                .schema_name()
                .to_string()
        };
        let planned = match (call.name.as_str(), raw.order_by.as_slice()) {
            // DataFusion's any_value takes no order; with one it is the first value of that order.
            ("any_value", [_, ..]) => Some(Expr::AggregateFunction(AggregateFunction::new_udf(
                first_value_udaf(),
                raw.args.clone(),
                raw.distinct,
                raw.filter.clone(),
                raw.order_by.clone(),
                Some(NullTreatment::IgnoreNulls),
            ))),
            ("mode", [key]) if !key.asc && raw.args.first() == Some(&key.expr) => {
                let mode = AggregateUDF::from(Frequent::mode_descending());
                Some(over(Arc::new(mode), One::of(raw.args.clone())))
            }
            _ => call.stands_for(&over)?,
        };
        Ok(match planned {
            Some(planned) => PlannerResult::Planned(planned.alias(written(&raw))),
            None => PlannerResult::Original(raw),
        })
    }

    fn plan_window(&self, raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        let function = match &raw.func_def {
            WindowFunctionDefinition::AggregateUDF(function) => function,
            WindowFunctionDefinition::WindowUDF(function) => {
                return Ok(match of_rows(function.name(), &raw)? {
                    Some(value) => PlannerResult::Planned(value.alias(written_window(raw))),
                    None => PlannerResult::Original(raw),
                });
            }
        };
        let call = Call {
            name: function.name().to_owned(),
            args: raw.args.clone(),
            filter: raw.filter.as_deref().cloned(),
            is_window: true,
        };
        let plain = |function: Arc<AggregateUDF>, one: One| {
            Expr::from(WindowFunction {
                fun: WindowFunctionDefinition::AggregateUDF(over_frame(
                    function,
                    &raw.window_frame,
                )),
                params: WindowFunctionParams {
                    args: one.args,
                    partition_by: raw.partition_by.clone(),
                    order_by: raw.order_by.clone(),
                    window_frame: raw.window_frame.clone(),
                    filter: one.filter.or(call.filter.clone()).map(Box::new),
                    null_treatment: raw.null_treatment,
                    distinct: raw.distinct,
                },
            })
        };
        let over = |function: Arc<AggregateUDF>, one: One| match raw.order_by.as_slice() {
            [key] if raw.distinct && one.args.first() == Some(&key.expr) => {
                in_order_of_values(key, call.filter.as_ref(), function, one, &plain)
            }
            _ => plain(function, one),
        };
        let written = plain(Arc::clone(function), One::of(raw.args.clone()));
        let row_of_frame = match call.name.as_str() {
            "first" | "arbitrary" => Some(first_value_udwf()),
            "last" => Some(last_value_udwf()),
            _ => None,
        };
        if let (Some(function), Expr::WindowFunction(mut window)) = (row_of_frame, written.clone())
        {
            window.fun = WindowFunctionDefinition::WindowUDF(function);
            let named = Expr::WindowFunction(window).alias(written.schema_name().to_string());
            return Ok(PlannerResult::Planned(named));
        }
        let planned = call.stands_for(&over)?.or_else(|| {
            let whole = over(Arc::clone(function), One::of(raw.args.clone()));
            (whole != written).then_some(whole)
        });
        Ok(match planned {
            Some(planned) => {
                PlannerResult::Planned(planned.alias(written.schema_name().to_string()))
            }
            None => {
                let function = over_frame(Arc::clone(function), &raw.window_frame);
                PlannerResult::Original(RawWindowExpr {
                    func_def: WindowFunctionDefinition::AggregateUDF(function),
                    ..raw
                })
            }
        })
    }
}

/// `array_agg` or `string_agg` of DISTINCT values over a window that has these in order: DataFusion gives them in any.
fn in_order_of_values(
    key: &Sort,
    filter: Option<&Expr>,
    function: Arc<AggregateUDF>,
    mut one: One,
    over: Over,
) -> Expr {
    match function.name() {
        "array_agg" => list_in_order(over(function, one), key),
        "string_agg" if one.args.len() == 2 => {
            let is_there = one.args[0].clone().is_not_null();
            one.filter = Some(match one.filter.take().or(filter.cloned()) {
                Some(filter) => filter.and(is_there),
                None => is_there,
            });
            let between = match one.args.remove(1) {
                Expr::Literal(text, _) if text.is_null() => lit(""),
                other => other,
            };
            let list = list_in_order(over(array_agg_udaf(), one), key);
            cast(array_to_string(list, between), DataType::LargeUtf8)
        }
        _ => over(function, one),
    }
}

/// What a window function stands for, if it is not what it says.
fn of_rows(name: &str, raw: &RawWindowExpr) -> Result<Option<Expr>> {
    match own_row(name, &raw.args)? {
        None => with_default(name, raw),
        value => Ok(value),
    }
}

/// The value of `lag(x, 0)`, which DataFusion looks for in other rows where NULLs are left out; an error of `nth_value(x, 0)`.
fn own_row(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    let [value, Expr::Literal(count, _), ..] = args else {
        return Ok(None);
    };
    let count = match count.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(Some(count)) => count,
        _ => return Ok(None),
    };
    match name {
        "lag" | "lead" if count == 0 => Ok(Some(value.clone())),
        "nth_value" if count < 1 => {
            plan_err!("nth_value counts rows from 1 on, not from {count}")
        }
        _ => Ok(None),
    }
}

/// `lag(x, n, y)` whose default is no literal, as DataFusion wants it: a row that is not there has no struct.
fn with_default(name: &str, raw: &RawWindowExpr) -> Result<Option<Expr>> {
    let [value, count, default] = raw.args.as_slice() else {
        return Ok(None);
    };
    let is_constant = default.column_refs().is_empty() && !default.is_volatile();
    let ignores_nulls = raw.null_treatment == Some(NullTreatment::IgnoreNulls);
    if !matches!(name, "lag" | "lead") || is_constant || ignores_nulls {
        return Ok(None);
    }
    let mut there = raw.clone();
    there.args = vec![
        named_struct(vec![lit("value"), value.clone()]),
        count.clone(),
    ];
    let there = window(there);
    let found = get_field(there.clone(), "value");
    Ok(Some(
        when(there.is_null(), default.clone()).otherwise(found)?,
    ))
}

/// The name of a window function's column.
fn written_window(raw: RawWindowExpr) -> String {
    window(raw).schema_name().to_string()
}

fn window(raw: RawWindowExpr) -> Expr {
    let window = WindowFunction {
        fun: raw.func_def,
        params: WindowFunctionParams {
            args: raw.args,
            partition_by: raw.partition_by,
            order_by: raw.order_by,
            window_frame: raw.window_frame,
            filter: raw.filter,
            null_treatment: raw.null_treatment,
            distinct: raw.distinct,
        },
    };
    Expr::from(window)
}

/// A call of an aggregate.
struct Call {
    name: String,
    args: Vec<Expr>,
    filter: Option<Expr>,
    is_window: bool,
}

/// One of the aggregates that a call stands for: its arguments, and its filter and order where they are not the call's.
struct One {
    args: Vec<Expr>,
    filter: Option<Expr>,
    order: Vec<datafusion::logical_expr::SortExpr>,
}

impl One {
    fn of(args: Vec<Expr>) -> One {
        One {
            args,
            filter: None,
            order: Vec::new(),
        }
    }
}

/// What makes an aggregate of the call's groups or window.
type Over<'a> = &'a dyn Fn(Arc<AggregateUDF>, One) -> Expr;

impl Call {
    /// The expression that the call stands for; `None` if it is what it says.
    fn stands_for(&self, over: Over) -> Result<Option<Expr>> {
        let sum = || Arc::new(exact_sum());
        let avg = || Arc::new(exact_avg());
        let args = || One::of(self.args.clone());
        // DataFusion leaves casts out of names: without a name of its own `geomean(x)` would be another's.
        let double = |expr: &Expr| {
            let written = format!("CAST({} AS DOUBLE)", expr.schema_name());
            let number = cast(expr.clone(), DataType::Float64);
            as_written().call(vec![number, lit(written)])
        };
        Ok(Some(match (self.name.as_str(), self.args.as_slice()) {
            ("min" | "max" | "min_by" | "max_by", [.., n]) if self.has_count() => {
                return self.first_of_order(n, over).map(Some);
            }
            ("group_concat" | "listagg" | "string_agg", [x]) => {
                over(string_agg_udaf(), One::of(vec![x.clone(), lit(",")]))
            }
            ("count_if" | "countif", [x]) => {
                let held = cast(x.clone(), DataType::Boolean);
                let filter = match &self.filter {
                    Some(filter) => filter.clone().and(held),
                    None => held,
                };
                let mut one = One::of(vec![lit(1_i64)]);
                one.filter = Some(filter);
                over(count_udaf(), one)
            }
            // DataFusion's says 0 of a frame that all rows have left.
            ("bit_xor", [x]) if self.is_window => {
                let count = over(count_udaf(), One::of(vec![x.clone()]));
                when(count.gt(lit(0_i64)), over(bit_xor_udaf(), args())).end()?
            }
            ("count_star", []) => over(count_udaf(), One::of(vec![lit(1_i64)])),
            ("geomean" | "geometric_mean", [x]) => exp(over(avg(), One::of(vec![ln(double(x))]))),
            ("wavg" | "weighted_avg", [x, weight]) => {
                let weighed = double(x) * double(weight);
                let weights = when(x.clone().is_not_null(), double(weight)).end()?;
                over(sum(), One::of(vec![weighed])) / over(sum(), One::of(vec![weights]))
            }
            ("sem", [x]) => {
                let count = cast(over(count_udaf(), args()), DataType::Float64);
                let count = nullif(count, lit(0.0));
                sqrt(over(var_pop_udaf(), One::of(vec![double(x)])) / count)
            }
            ("json_group_array", [_]) => to_json().call(vec![over(array_agg_udaf(), args())]),
            ("json_group_object", [name, value]) => {
                let entry =
                    named_struct(vec![lit("name"), name.clone(), lit("value"), value.clone()]);
                json_entries().call(vec![over(array_agg_udaf(), One::of(vec![entry]))])
            }
            (
                "quantile" | "percentile_disc" | "percentile_cont" | "approx_quantile",
                [x, shares],
            ) => match (list_items(shares), self.name.as_str()) {
                (Some(shares), _) => self.each_share(x, shares, over)?,
                (None, "quantile") => over(self.discrete(), args()),
                (None, "percentile_disc") if self.is_window => over(self.discrete(), args()),
                (None, name) => match of_name(name) {
                    Some(function) => over(function, args()),
                    None => return Ok(None),
                },
            },
            (name, _) => match of_name(name) {
                Some(function) => over(function, args()),
                None => return Ok(None),
            },
        }))
    }

    /// True of `min(x, n)` and `max_by(x, y, n)`.
    fn has_count(&self) -> bool {
        let without = if self.name.ends_with("_by") { 2 } else { 1 };
        self.args.len() == without + 1
    }

    /// The n least or greatest, as the beginning of an ordered list.
    fn first_of_order(&self, n: &Expr, over: Over) -> Result<Expr> {
        if !n.column_refs().is_empty() {
            return plan_err!("'{}' takes a literal as its number of values", self.name);
        }
        let (x, by) = (&self.args[0], &self.args[self.args.len() - 2]);
        let filter = by.clone().is_not_null();
        let filter = match &self.filter {
            Some(given) => given.clone().and(filter),
            None => filter,
        };
        let one = One {
            args: vec![x.clone()],
            filter: Some(filter),
            order: vec![by.clone().sort(self.name.starts_with("min"), false)],
        };
        let listed = over(array_agg_udaf(), one);
        if self.is_window {
            return not_impl_err!("{}(x, n) over a window", self.name);
        }
        Ok(array_slice(
            listed,
            lit(1_i64),
            cast(n.clone(), DataType::Int64),
            None,
        ))
    }

    /// `percentile_disc`, over a window the one that has states.
    fn discrete(&self) -> Arc<AggregateUDF> {
        match self.is_window {
            true => Arc::new(statistics::quantile()),
            false => percentile_disc(),
        }
    }

    /// A list of the quantiles of several shares; NULL where no value has one.
    fn each_share(&self, x: &Expr, shares: Vec<Expr>, over: Over) -> Result<Expr> {
        let function = match self.name.as_str() {
            "percentile_cont" => Arc::new(percentile_cont::percentile_cont()),
            "approx_quantile" => approx_percentile_cont_udaf(),
            _ => self.discrete(),
        };
        let one = |share| over(Arc::clone(&function), One::of(vec![x.clone(), share]));
        let (quantiles, is_empty) = match shares.is_empty() {
            // Without an aggregate there would be a list for each row.
            true => (vec![one(lit(0.5))], true),
            false => (shares.into_iter().map(one).collect::<Vec<Expr>>(), false),
        };
        let has_values = quantiles[0].clone().is_not_null();
        let list = make_array(quantiles);
        let list = match is_empty {
            true => array_slice(list, lit(1_i64), lit(0_i64), None),
            false => list,
        };
        when(has_values, list).end()
    }
}

/// The name of the field at a place, counted from 1, of a struct whose fields nobody has named. Those of `row(1, 2)` are c0
/// and c1, those of `list_zip` 1 and 2.
fn unnamed_field<'a>(fields: &'a Fields, place: &Expr) -> Option<&'a str> {
    let have_names = |before: &str, first: usize| {
        let mut places = fields.iter().enumerate();
        places.all(|(at, field)| *field.name() == format!("{before}{}", at + first))
    };
    let Expr::Literal(ScalarValue::Int64(Some(place)), _) = place else {
        return None;
    };
    let at = usize::try_from(place.checked_sub(1)?).ok()?;
    let is_unnamed = have_names("c", 0) || have_names("", 1);
    let field = fields.get(at).filter(|_| is_unnamed)?;
    Some(field.name())
}

/// The items of a list that is written in the query.
fn list_items(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => Some(call.args.clone()),
        Expr::Literal(ScalarValue::List(list), _) => {
            let items = list.value(0);
            let item = |at| {
                Some(Expr::Literal(
                    ScalarValue::try_from_array(&items, at).ok()?,
                    None,
                ))
            };
            (0..items.len()).map(item).collect()
        }
        _ => None,
    }
}
