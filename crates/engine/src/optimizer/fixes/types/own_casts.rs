//! Casts and quotients that SQL means in another way than DataFusion, also those that DataFusion's type coercion adds.
//!
//! In: a plan whose types are known. Out: the same plan, with functions of ours in the place of casts. Strings become dates,
//! timestamps, intervals, bytes and lists; timestamps, intervals, bytes, lists and structs become strings. Parts of lists and
//! structs are cast as they are alone, and `array_to_string` writes them so. Quotients of decimals are rounded, long decimals
//! become the nearest double. Differences of timestamps become intervals with days, timestamps with a zone go by its clock, codes
//! are cast by the values that rows have.
//! Invariant: names stay.
//! Not here: the functions (functions/); numbers that are rounded (meanings.rs), because type coercion never rounds.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast,
};

use crate::functions::{
    Halves, date_of_number, decimal_quotient, interval_of_span, is_bytes_cast, is_long_decimal,
    is_nested_cast, is_span_cast, is_text_cast, is_written_here, is_zone_cast, is_zone_sum,
    nearest_double, nested_cast, read_strings, text_cast, text_of_bytes, text_of_value, zone_cast,
    zone_sum,
};
use crate::optimizer::fixes::types::compared::in_scope;
use crate::optimizer::fixes::{each_named, each_plan};

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, |plan| {
        let schema = in_scope(&plan)?;
        let plan = each_named(plan, |part| in_part(part, &schema))?;
        plan.transform_data(|plan| in_grouping_sets(plan, &schema))
    })
}

/// The columns of grouping sets, too: a cast of ours has the name that the cast had, but for those of bytes and of decimals to
/// booleans, which stay.
fn in_grouping_sets(plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
    let stays = |part: &Expr| match part {
        Expr::Cast(cast) => {
            let of = cast.expr.get_type(schema);
            let to = cast.field.data_type();
            let is_renamed = |of: &DataType| *to == DataType::Boolean && of.is_decimal();
            of.is_ok_and(|of| is_bytes_cast(&of, to) || is_renamed(&of))
        }
        _ => false,
    };
    plan.map_expressions(|expr| match expr {
        Expr::GroupingSet(_) => expr.transform_up(|part| match stays(&part) {
            true => Ok(Transformed::no(part)),
            false => in_part(part, schema),
        }),
        other => Ok(Transformed::no(other)),
    })
}

fn in_part(mut part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::ScalarFunction(call) = &mut part
        && call.func.name() == "array_to_string"
    {
        let written = call
            .args
            .first_mut()
            .map(|list| with_items_written(list, schema));
        return Ok(Transformed::new_transformed(part, written.unwrap_or(false)));
    }
    if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &mut part
        && *op == Operator::Divide
        && [&left, &right].iter().all(|side| is_decimal(side, schema))
    {
        // Of operands that had no type when the division was planned; its type is settled since.
        let of =
            Expr::BinaryExpr(BinaryExpr::new(left.clone(), *op, right.clone())).get_type(schema)?;
        let [left, right] = [left, right].map(|side| std::mem::take(side.as_mut()));
        let quotient = decimal_quotient(left, right).cast_to(&of, schema)?;
        return Ok(Transformed::yes(quotient));
    }
    if let Expr::BinaryExpr(binary) = &mut part {
        let sum = zoned_sum(binary, schema);
        return Ok(sum.map_or_else(|| Transformed::no(part), Transformed::yes));
    }
    let (expr, field, is_try) = match &mut part {
        Expr::Cast(cast) => (&mut cast.expr, &cast.field, false),
        Expr::TryCast(cast) => (&mut cast.expr, &cast.field, true),
        _ => return Ok(Transformed::no(part)),
    };
    let to = field.data_type();
    let is_unpacked = unpack(expr, to, schema);
    if let Expr::Literal(text, _) = expr.as_ref()
        && is_text_cast(&text.data_type(), to)
    {
        // As DataFusion does with casts of its own: what cannot be read is known while the statement is planned.
        let value = read_strings(&text.to_array()?, to, is_try)?;
        let value = ScalarValue::try_from_array(&value, 0)?;
        return Ok(Transformed::yes(Expr::Literal(value, None)));
    }
    let own = own_cast(expr, to, is_try, schema);
    Ok(own.map_or_else(
        || Transformed::new_transformed(part, is_unpacked),
        Transformed::yes,
    ))
}

/// Makes values of codes whose cast may fail, for DataFusion casts all values of a dictionary, also those that no row has. Whether it
/// did so.
fn unpack(expr: &mut Expr, to: &DataType, schema: &DFSchema) -> bool {
    let Ok(DataType::Dictionary(_, values)) = expr.get_type(schema) else {
        return false;
    };
    let never_fails = *values == *to || values.is_string() && to.is_string();
    if never_fails || matches!(to, DataType::Dictionary(..)) {
        return false;
    }
    let codes = std::mem::take(expr);
    *expr = Expr::Cast(Cast::new(Box::new(codes), *values));
    true
}

fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of.is_decimal())
}

/// A list whose items are no strings as one of what they are as strings; whether it has become one.
fn with_items_written(list: &mut Expr, schema: &DFSchema) -> bool {
    let item = match list.get_type(schema) {
        Ok(DataType::List(item)) => item,
        _ => return false,
    };
    let kind = item.data_type();
    if kind.is_string() || kind.is_null() || kind.is_nested() {
        return false;
    }
    let to = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let own = own_cast(list, &to, false, schema);
    *list = own.unwrap_or_else(|| {
        let list = std::mem::take(list);
        Expr::Cast(Cast::new(Box::new(list), to.clone()))
    });
    true
}

fn own_cast(expr: &mut Expr, to: &DataType, is_try: bool, schema: &DFSchema) -> Option<Expr> {
    let of = expr.get_type(schema).ok()?;
    let mut take = || std::mem::take(expr);
    if of == *to {
        return None;
    }
    if is_text_cast(&of, to) {
        return Some(text_cast(take(), to.clone(), is_try));
    }
    if is_zone_cast(&of, to) {
        return Some(zone_cast(take(), to.clone(), is_try));
    }
    if to.is_string() && is_written_here(&of) {
        return Some(text_of_value(take(), to.clone()));
    }
    if is_bytes_cast(&of, to) && !is_try {
        return Some(text_of_bytes(take(), to.clone()));
    }
    if *to == DataType::Float64 && is_long_decimal(&of) {
        return Some(nearest_double(take()));
    }
    if *to == DataType::Date32 && of.is_integer() {
        return Some(date_of_number(take(), is_try));
    }
    if is_span_cast(&of, to) {
        return Some(interval_of_span(take()));
    }
    match (&of, to) {
        (of, DataType::Boolean) if of.is_decimal() => {
            let zero = ScalarValue::new_zero(of).ok()?;
            return Some(take().not_eq(Expr::Literal(zero, None)));
        }
        // TRUE is 1, as of integers, which are all that DataFusion casts it to.
        (DataType::Boolean, to) if to.is_decimal() => {
            let one = cast(take(), DataType::Int32);
            return Some(match is_try {
                true => Expr::TryCast(TryCast::new(Box::new(one), to.clone())),
                false => cast(one, to.clone()),
            });
        }
        _ => {}
    }
    if !is_nested_cast(&of, to) {
        return None;
    }
    let halves = match is_written(expr) {
        true => Halves::Away,
        false => Halves::Even,
    };
    Some(nested_cast(
        std::mem::take(expr),
        to.clone(),
        is_try,
        halves,
    ))
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

/// A timestamp with a zone and an interval, added or subtracted.
fn zoned_sum(binary: &mut BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let is_minus = binary.op == Operator::Minus;
    if !is_minus && binary.op != Operator::Plus {
        return None;
    }
    // The right side first: long sums grow on the left, and each look at their type is a walk.
    let right = binary.right.get_type(schema).ok()?;
    let is_right = matches!(right, DataType::Timestamp(..)) && !is_minus;
    if !is_right && !matches!(right, DataType::Interval(_)) {
        return None;
    }
    let left = binary.left.get_type(schema).ok()?;
    let (timestamp, interval) = match (is_zone_sum(&left, &right), is_zone_sum(&right, &left)) {
        (true, _) => (&mut binary.left, &mut binary.right),
        (_, true) if is_right => (&mut binary.right, &mut binary.left),
        _ => return None,
    };
    let [timestamp, interval] = [timestamp, interval].map(|side| std::mem::take(&mut **side));
    Some(zone_sum(timestamp, interval, is_minus))
}

/// True of a list or struct of numbers as they stand in the text.
fn is_written(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !matches!(value, ScalarValue::List(_) | ScalarValue::Struct(_)),
        Expr::Negative(inner) => is_written(inner),
        Expr::Cast(cast) => is_written(&cast.expr),
        Expr::ScalarFunction(call) => {
            matches!(call.func.name(), "make_array" | "named_struct")
                && call.args.iter().all(is_written)
        }
        _ => false,
    }
}
