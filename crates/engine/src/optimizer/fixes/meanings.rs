//! Expressions with the meaning that SQL gives them.
//!
//! In: a plan before DataFusion's type coercion. Out: the same plan, with what SQL says. A cast to an integer or to a timestamp
//! of fewer digits rounds and one to FLOAT is checked; shifts lose no bits. LIKE has any escape, SIMILAR TO matches whole
//! strings, and formats of dates have the letters of PostgreSQL, too. A string beside numbers in a CASE is a number, a day and an
//! interval with hours are a timestamp, and a year has 31,557,600 seconds.
//! Invariant: names stay. Casts that DataFusion adds are not touched, and it adds none to integers that would round. A day and a
//! literal interval of whole days stay a day, which scans can compare.
//! Not here: the functions (functions/); casts of and to strings (own_casts.rs); which type a literal has (decimals.rs).

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::math::expr_fn::round;
use datafusion::functions_nested::expr_fn::{array_compact, make_array};
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunctionParams};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, Like, LogicalPlan, Operator, WindowFrameBound,
    binary_expr, lit, when,
};

use super::{each_named, each_plan};
use crate::functions::{
    NEAR_SECONDS, WHOLE_QUOTIENT, between, half_to_even, interval_of_span, is_coarser,
    like_pattern, near_seconds, nearest_times, operation_on_bits, part_of_interval, plain_quotient,
    similar_pattern, with_sql_format, within_float,
};
use crate::optimizer::fixes::types::compared::in_scope;

/// DataFusion's own escape in LIKE.
const BACKSLASH: char = '\\';

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let schema = in_scope(&plan)?;
        each_named(plan, |part| in_part(part, &schema))
    })
}

fn in_part(mut part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut part {
        Expr::Cast(cast) => {
            let to = cast.field.data_type().clone();
            narrowed(&mut cast.expr, &to, false, schema) || rounded(&mut cast.expr, &to, schema)?
        }
        Expr::TryCast(cast) => {
            let to = cast.field.data_type().clone();
            narrowed(&mut cast.expr, &to, true, schema) || rounded(&mut cast.expr, &to, schema)?
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) if expr.is_volatile() => {
            let [expr, low, high] = [expr, low, high].map(|expr| std::mem::take(&mut **expr));
            let between = between(expr, low, high);
            let between = if *negated { !between } else { between };
            return Ok(Transformed::yes(between));
        }
        Expr::Like(like) => escaped(like),
        Expr::SimilarTo(like) => return Ok(Transformed::yes(similar(like))),
        Expr::BinaryExpr(binary) => match on_bits(binary, schema)? {
            Some(operation) => return Ok(Transformed::yes(operation)),
            None => with_time(binary, schema)?,
        },
        Expr::WindowFunction(window) => in_lists(&mut window.params, schema)?,
        Expr::ScalarFunction(call) if call.func.name() == WHOLE_QUOTIENT => {
            let plain = plain_quotient(call, schema);
            return Ok(plain.map_or_else(|| Transformed::no(part), Transformed::yes));
        }
        Expr::ScalarFunction(call) if is_far(call, schema) => {
            let seconds = cast(call.args.remove(0), DataType::Float64);
            call.args = vec![near_seconds(seconds)];
            true
        }
        Expr::ScalarFunction(call) if is_padding(call) => {
            let length = cast(std::mem::take(&mut call.args[1]), DataType::Int64);
            let length = when(length.clone().lt(lit(0_i64)), lit(0_i64)).otherwise(length)?;
            // A length that is none is an error of this cast.
            call.args[1] = cast(cast(length, DataType::Int32), DataType::Int64);
            true
        }
        Expr::ScalarFunction(call) if has_items(call, schema) => {
            let lists = call.args.iter().map(|list| list.clone().is_not_null());
            let are_lists = lists.reduce(Expr::and).unwrap_or_default();
            let items = call.args.remove(1);
            call.args.push(array_compact(items));
            return Ok(Transformed::yes(when(are_lists, part).end()?));
        }
        Expr::Case(case) => {
            let whens = case.when_then_expr.iter_mut().map(|(_, then)| then);
            let branches = whens.chain(case.else_expr.as_mut());
            as_branches(branches.map(|branch| branch.as_mut()), schema)?
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "nvl" | "ifnull" | "coalesce") => {
            as_branches(call.args.iter_mut(), schema)?
        }
        Expr::ScalarFunction(call) => match extracted(call, schema) {
            Some(part) => return Ok(Transformed::yes(part)),
            None => match with_sql_format(call)? {
                Some(formatted) => return Ok(Transformed::yes(formatted)),
                None => false,
            },
        },
        _ => false,
    };
    Ok(Transformed::new_transformed(part, changed))
}

/// Gives strings as they stand in the text the type of the other branches of a CASE.
pub(super) fn as_branches<'a>(
    branches: impl Iterator<Item = &'a mut Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let mut literals = Vec::new();
    let mut types = Vec::new();
    for branch in branches {
        match &*branch {
            Expr::Literal(value, _) if value.data_type().is_string() => literals.push(branch),
            other => types.push(other.get_type(schema)?),
        }
    }
    types.retain(|of| !of.is_null());
    let is_read = |of: &DataType| of.is_numeric() || of.is_temporal() || *of == DataType::Boolean;
    if literals.is_empty() || types.is_empty() || !types.iter().all(is_read) {
        return Ok(false);
    }
    let Some(common) = type_union_resolution(&types) else {
        return Ok(false);
    };
    for literal in literals {
        *literal = cast(std::mem::take(literal), common.clone());
    }
    Ok(true)
}

/// Whether a call pads to a length that rows have: DataFusion reserves memory for a negative or endless one.
fn is_padding(call: &ScalarFunction) -> bool {
    matches!(call.func.name(), "lpad" | "rpad")
        && call.args.len() > 1
        && !matches!(call.args[1], Expr::Literal(..))
}

/// Refuses a cast of an integer to bytes: DataFusion takes the bytes that it has in memory.
fn check_bytes(expr: &Expr, to: &DataType, schema: &DFSchema) -> Result<()> {
    match expr.get_type(schema) {
        Ok(of) if to.is_binary() && of.is_integer() => {
            plan_err!("Unsupported CAST from {of} to {to}")
        }
        _ => Ok(()),
    }
}

/// Checks a double that is cast to FLOAT.
fn narrowed(expr: &mut Expr, to: &DataType, is_try: bool, schema: &DFSchema) -> bool {
    let is_double = || {
        expr.get_type(schema)
            .is_ok_and(|of| of == DataType::Float64)
    };
    let is_narrowed = *to == DataType::Float32 && is_double();
    if is_narrowed {
        *expr = within_float(std::mem::take(expr), is_try);
    }
    is_narrowed
}

/// Rounds what is cast to an integer: a float to the nearest, of two to the even one, a decimal, and a literal with a point,
/// away from zero. So is a timestamp that is cast to one of fewer digits.
fn rounded(expr: &mut Expr, to: &DataType, schema: &DFSchema) -> Result<bool> {
    check_bytes(expr, to, schema)?;
    if matches!(to, DataType::Timestamp(..)) {
        let is_cut = expr.get_type(schema).is_ok_and(|of| is_coarser(&of, to));
        if is_cut {
            *expr = nearest_times(std::mem::take(expr), to);
        }
        return Ok(is_cut);
    }
    if !to.is_integer() {
        return Ok(false);
    }
    let of = match expr.get_type(schema) {
        Ok(of) if of.is_floating() || of.is_decimal() => of,
        _ => return Ok(false),
    };
    let inner = std::mem::take(expr);
    *expr = match of {
        DataType::Float16 => half_to_even(cast(inner, DataType::Float32)),
        _ if of.is_floating() && is_written(&inner) => round(vec![inner]),
        _ if of.is_floating() => half_to_even(inner),
        DataType::Decimal256(..) => cast(inner, DataType::Decimal256(76, 0)),
        _ => cast(inner, DataType::Decimal128(38, 0)),
    };
    Ok(true)
}

/// True of a number as it stands in the text, which people mean as a decimal.
fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(_)), _) => true,
        Expr::Negative(inner) => is_written(inner),
        _ => false,
    }
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

fn escaped(like: &mut Like) -> bool {
    let Some(escape) = like.escape_char.filter(|escape| *escape != BACKSLASH) else {
        return false;
    };
    like.escape_char = None;
    *like.pattern = like_pattern(std::mem::take(&mut *like.pattern), escape);
    true
}

fn similar(like: &Like) -> Expr {
    let escape = like.escape_char.unwrap_or(BACKSLASH);
    let pattern = similar_pattern((*like.pattern).clone(), escape);
    let op = match (like.negated, like.case_insensitive) {
        (false, false) => Operator::RegexMatch,
        (false, true) => Operator::RegexIMatch,
        (true, false) => Operator::RegexNotMatch,
        (true, true) => Operator::RegexNotIMatch,
    };
    binary_expr((*like.expr).clone(), op, pattern)
}

/// An operation on bits that is not DataFusion's.
fn on_bits(binary: &BinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    use Operator::{BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, BitwiseXor};
    let BinaryExpr { left, op, right } = binary;
    match op {
        BitwiseAnd | BitwiseOr | BitwiseXor | BitwiseShiftLeft | BitwiseShiftRight => {
            let types = [left.get_type(schema)?, right.get_type(schema)?];
            operation_on_bits(left, *op, right, types.each_ref())
        }
        _ => Ok(None),
    }
}

/// Makes the day of `day + interval` a timestamp, if the interval may have hours: DataFusion would leave them out.
fn with_time(binary: &mut BinaryExpr, schema: &DFSchema) -> Result<bool> {
    let BinaryExpr { left, op, right } = binary;
    let is_day = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of == DataType::Date32);
    let has_time = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => {
            interval.nanoseconds != 0
        }
        Expr::Literal(..) => false,
        other => {
            let of = other.get_type(schema);
            of.is_ok_and(|of| matches!(of, DataType::Interval(_) | DataType::Duration(_)))
        }
    };
    let day = match op {
        // The right side first: long sums grow on the left, and each look at their type is a walk.
        Operator::Plus | Operator::Minus if has_time(right) && is_day(left) => left,
        Operator::Plus if is_day(right) && has_time(left) => right,
        _ => return Ok(false),
    };
    let to = DataType::Timestamp(TimeUnit::Microsecond, None);
    **day = cast(std::mem::take(&mut **day), to);
    Ok(true)
}

/// Makes sort keys of a window lists of one value where DataFusion has no frames over their type, but over lists.
fn in_lists(window: &mut WindowFunctionParams, schema: &DFSchema) -> Result<bool> {
    use DataType::{Binary, BinaryView, Duration, FixedSizeBinary, Interval, LargeBinary, Struct};
    let has_offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            !offset.is_null()
        }
        WindowFrameBound::CurrentRow => false,
    };
    let frame = &window.window_frame;
    if has_offset(&frame.start_bound) || has_offset(&frame.end_bound) {
        return Ok(false);
    }
    let mut changed = false;
    for key in &mut window.order_by {
        let no_frames = matches!(
            key.expr.get_type(schema),
            Ok(Interval(_)
                | Duration(_)
                | Struct(_)
                | Binary
                | LargeBinary
                | BinaryView
                | FixedSizeBinary(_))
        );
        if no_frames {
            let value = std::mem::take(&mut key.expr);
            let list = make_array(vec![value.clone()]);
            key.expr = when(value.is_not_null(), list).end()?;
            changed = true;
        }
    }
    Ok(changed)
}

/// True of `to_timestamp(x)` of a number: an integer DataFusion takes for a clock of the session's zone.
fn is_far(call: &ScalarFunction, schema: &DFSchema) -> bool {
    let [seconds] = call.args.as_slice() else {
        return false;
    };
    let is_checked = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.name() == NEAR_SECONDS);
    let is_number = || seconds.get_type(schema).is_ok_and(|of| of.is_numeric());
    call.func.name() == "to_timestamp" && !is_checked(seconds) && is_number()
}

/// True of functions that look for the items of one list in another, to which DataFusion takes a NULL list for an empty one,
/// and NULL for an item.
fn has_items(call: &ScalarFunction, schema: &DFSchema) -> bool {
    let is_list = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_list());
    let is_compact = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.func.name() == "array_compact");
    matches!(call.func.name(), "array_has_any" | "array_has_all")
        && matches!(call.args.as_slice(), [list, items] if is_list(list) && is_list(items) && !is_compact(items))
}

/// `extract(part FROM interval)`; what lies between two timestamps is one.
fn extracted(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [Expr::Literal(name, _), interval] = call.args.as_slice() else {
        return None;
    };
    let part = name.try_as_str().flatten()?;
    if call.func.name() != "date_part" {
        return None;
    }
    match interval.get_type(schema).ok()? {
        DataType::Interval(_) => part_of_interval(part, interval.clone()),
        DataType::Duration(_) => {
            let interval = interval_of_span(interval.clone());
            let of_interval = part_of_interval(part, interval.clone());
            let of_datafusion = || {
                let name = Expr::Literal(name.clone(), None);
                call.func.call(vec![name, interval])
            };
            Some(of_interval.unwrap_or_else(of_datafusion))
        }
        _ => None,
    }
}
