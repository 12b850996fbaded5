//! Literals with a point within lists and structs that are compared with lists and structs of integers of 64 bits.
//!
//! In: two operands before DataFusion's type coercion. Out: the same as lists and structs of decimals, where a literal is beyond
//! the integers that doubles tell apart.
//! Invariant: [9007199254740993] is not [9007199254740992.0], though both are one list of doubles.
//! Not here: literals that stand beside integers themselves (beside_integers.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::optimizer::fixes::types::beside_integers::{
    BETWEEN, MAKE_LIST, among_integers, cast, is_wide,
};

/// Makes a struct of its arguments, of which every second one is a value.
const MAKE_STRUCT: &str = "named_struct";

/// Two lists or structs that are compared: where one has integers and the other far literals with a point, both have decimals.
/// False if they are left to DataFusion.
pub(super) fn compared(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let [left, right] = operands else {
        return false;
    };
    if !is_made(left) && !is_made(right) {
        return false;
    }
    let kind_of = |expr: &Expr| expr.get_type(schema).ok();
    let (Some(of_left), Some(of_right)) = (kind_of(left), kind_of(right)) else {
        return false;
    };
    let kind = match (
        decimal_parts(right, &of_left),
        decimal_parts(left, &of_right),
    ) {
        (None, None) => return false,
        (Some(kind), None) | (None, Some(kind)) => kind,
        // What is an integer here and a literal there, and the other way round.
        (Some(kind), Some(_)) => decimal_parts(left, &kind).unwrap_or(kind),
    };
    for operand in [left, right] {
        write_decimals(operand, &kind);
        **operand = cast(std::mem::take(*operand), kind.clone());
    }
    true
}

/// Whether it is a list or a struct whose parts are written.
fn is_made(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else {
        return false;
    };
    matches!(call.func.name(), MAKE_LIST | MAKE_STRUCT)
}

/// The type of integers with decimals in those places where far literals of `expr` stand beside them; none without any.
fn decimal_parts(expr: &Expr, kind: &DataType) -> Option<DataType> {
    if is_wide(kind) {
        let (_, is_needed) = among_integers(expr)?;
        return is_needed.then_some(BETWEEN);
    }
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    match kind {
        DataType::List(item) if call.func.name() == MAKE_LIST => {
            let mut items = call.args.iter();
            let of = items.find_map(|part| decimal_parts(part, item.data_type()))?;
            let item = item.as_ref().clone().with_data_type(of);
            Some(DataType::List(Arc::new(item)))
        }
        DataType::Struct(fields) if call.func.name() == MAKE_STRUCT => {
            let mut changed = false;
            let parts = call.args.iter().skip(1).step_by(2);
            let fields = fields.iter().zip(parts).map(|(field, part)| {
                let of = decimal_parts(part, field.data_type());
                changed |= of.is_some();
                let of = of.unwrap_or_else(|| field.data_type().clone());
                Arc::new(field.as_ref().clone().with_data_type(of))
            });
            let fields = fields.collect();
            changed.then_some(DataType::Struct(fields))
        }
        _ => None,
    }
}

/// Literals as decimals, where the type has some for them.
fn write_decimals(expr: &mut Expr, kind: &DataType) {
    if *kind == BETWEEN {
        if let Some((number, _)) = among_integers(expr) {
            *expr = Expr::Literal(number.narrowest(), None);
        }
        return;
    }
    let Expr::ScalarFunction(call) = expr else {
        return;
    };
    match kind {
        DataType::List(item) if call.func.name() == MAKE_LIST => {
            for part in &mut call.args {
                write_decimals(part, item.data_type());
            }
        }
        DataType::Struct(fields) if call.func.name() == MAKE_STRUCT => {
            let parts = call.args.iter_mut().skip(1).step_by(2);
            for (field, part) in fields.iter().zip(parts) {
                write_decimals(part, field.data_type());
            }
        }
        _ => {}
    }
}
