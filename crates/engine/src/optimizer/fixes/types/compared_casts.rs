//! A cast that loses digits or can fail is done before its result is compared.
//!
//! In: a plan on its way through DataFusion's `simplify_expressions`. Out: the same plan; in what is compared, casts between
//! numbers that lose digits or have no room for some values are calls of a function that casts.
//! Invariant: names and types stay, and so does a cast that keeps each value, which DataFusion moves to the literal. `v::INT = 2`
//! over 1.50 is true, and `v = 2` is not. `v::TINYINT > 5` over 300 is an error, and `v > 5` is true.
//! Not here: casts from floats and of dates and times, which DataFusion does not move where they lose something.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::columns::is_comparison;
use crate::expr::function_methods::function_methods;
use crate::optimizer::fixes::each_named;
use crate::optimizer::fixes::failing::fallible::holds;
use crate::optimizer::fixes::types::compared::in_scope;
use crate::wire::portable;

/// The plan with casts that DataFusion leaves where they are.
pub(in crate::optimizer::fixes) fn kept(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut found = false;
    plan.apply_expressions(|expr| {
        found = found || expr.exists(|part| Ok(is_cast(part)))?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !found {
        return Ok(Transformed::no(plan));
    }
    let schema = in_scope(&plan)?;
    each_named(plan, |part| match compares(&part) {
        true => {
            part.map_children(|operand| operand.transform_up(|part| Ok(kept_cast(part, &schema))))
        }
        false => Ok(Transformed::no(part)),
    })
}

fn is_cast(expr: &Expr) -> bool {
    let to = match expr {
        Expr::Cast(cast) => cast.field.data_type(),
        Expr::TryCast(cast) => cast.field.data_type(),
        _ => return false,
    };
    to.is_integer() || to.is_decimal()
}

fn compares(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_comparison(*op),
        Expr::InList(_) | Expr::Between(_) => true,
        Expr::Case(case) => case.expr.is_some(),
        _ => false,
    }
}

fn kept_cast(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (inner, to, is_try) = match &part {
        Expr::Cast(cast) => (&cast.expr, &cast.field, false),
        Expr::TryCast(cast) => (&cast.expr, &cast.field, true),
        _ => return Transformed::no(part),
    };
    let to = to.data_type();
    match inner.get_type(schema) {
        Ok(of) if loses_digits(&of, to) || lacks_room(&of, to) && !is_count(&of, to, is_try) => {
            let cast = KeptCast {
                to: to.clone(),
                is_try,
                signature: Signature::any(1, Volatility::Immutable),
            };
            let cast = ScalarUDF::new_from_impl(cast);
            Transformed::yes(cast.call(vec![inner.as_ref().clone()]))
        }
        _ => Transformed::no(part),
    }
}

/// True of row numbers and counts that are signed: none comes near the end of BIGINT, and a filter of row numbers is to be seen as one.
fn is_count(of: &DataType, to: &DataType, is_try: bool) -> bool {
    !is_try && matches!((of, to), (DataType::UInt64, DataType::Int64))
}

/// Places behind the point.
fn places(number: &DataType) -> Option<i8> {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256};
    match number {
        Decimal32(_, places)
        | Decimal64(_, places)
        | Decimal128(_, places)
        | Decimal256(_, places) => Some(*places),
        other => other.is_integer().then_some(0),
    }
}

fn loses_digits(of: &DataType, to: &DataType) -> bool {
    let places = [of, to].map(places);
    matches!(places, [Some(of), Some(to)] if to < of)
}

/// Whether a number may have more digits before the point than its new type.
fn lacks_room(of: &DataType, to: &DataType) -> bool {
    if places(of).is_none() || places(to).is_none() {
        return false;
    }
    if of.is_integer() && to.is_integer() {
        return !holds(of, to);
    }
    // Of an integer the greatest has as many digits, but not all numbers of so many.
    let digits = |integer: &DataType, spare: u8| match integer {
        DataType::Int8 | DataType::UInt8 => 3 - spare,
        DataType::Int16 | DataType::UInt16 => 5 - spare,
        DataType::Int32 | DataType::UInt32 => 10 - spare,
        DataType::Int64 => 19 - spare,
        _ => 20 - spare,
    };
    let whole = |number: &DataType, spare| match number {
        DataType::Decimal32(digits, places)
        | DataType::Decimal64(digits, places)
        | DataType::Decimal128(digits, places)
        | DataType::Decimal256(digits, places) => i16::from(*digits) - i16::from(*places),
        integer => digits(integer, spare).into(),
    };
    whole(of, 0) > whole(to, 1) || to.is_unsigned_integer() && !of.is_unsigned_integer()
}

/// A cast that DataFusion does not see as one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct KeptCast {
    to: DataType,
    is_try: bool,
    signature: Signature,
}

impl ScalarUDFImpl for KeptCast {
    function_methods!();

    fn name(&self) -> &str {
        match self.is_try {
            true => "try_cast",
            false => "cast",
        }
    }

    /// That of what is cast, as DataFusion has it for casts.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.is_try || args.arg_fields[0].is_nullable();
        let field = Field::new(self.name(), self.to.clone(), nullable);
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut options = DEFAULT_CAST_OPTIONS;
        options.safe = self.is_try;
        args.args[0].cast_to(&self.to, Some(&options))
    }
}

portable!(KeptCast, "kept_cast", to: data_type, is_try: flag;
    signature: Signature::any(1, Volatility::Immutable));
