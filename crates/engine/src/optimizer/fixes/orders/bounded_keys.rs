//! Keys of sorts and windows that compare results of functions. DataFusion takes the bounds of such a result for those of NULL
//! and does not compare them with bounds of another type. Then it does not know that its own sort is the one that it asks for.
//!
//! In: a logical plan. Out: the same plan, in which such keys have `bounded` around operands of comparisons, AND, OR and NOT.
//! It says of a value that it may be any of its type.
//! Invariant: values and names stay.
//! Not here: which plans need an order.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::columns::is_comparison;
use crate::expr::function_methods::function_methods;
use crate::optimizer::fixes::each_named;
use crate::optimizer::fixes::types::compared::in_scope;
use crate::wire::portable;

/// The rule, which comes last: no other one shall look into the keys.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
            let schema = in_scope(&plan)?;
            each_named(plan, |part| in_part(part, &schema))
        }
        _ => Ok(Transformed::no(plan)),
    }
}

fn in_part(mut part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let operands = match &mut part {
        Expr::BinaryExpr(binary)
            if is_comparison(binary.op) || matches!(binary.op, Operator::And | Operator::Or) =>
        {
            vec![binary.left.as_mut(), binary.right.as_mut()]
        }
        Expr::Not(operand) => vec![operand.as_mut()],
        _ => return Ok(Transformed::no(part)),
    };
    let mut changed = false;
    for operand in operands {
        let is_known = match operand {
            Expr::Column(_) | Expr::Literal(..) => true,
            Expr::ScalarFunction(call) => call.func.inner().is::<Bounded>(),
            _ => false,
        };
        if !is_known {
            let bounded = ScalarUDF::new_from_impl(Bounded::new(operand.get_type(schema)?));
            *operand = bounded.call(vec![std::mem::take(operand)]);
            changed = true;
        }
    }
    Ok(Transformed::new_transformed(part, changed))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct Bounded {
    of: DataType,
    signature: Signature,
}

impl Bounded {
    fn new(of: DataType) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Self { of, signature }
    }
}

impl ScalarUDFImpl for Bounded {
    function_methods!("bounded");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(FieldRef::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }

    fn evaluate_bounds(&self, _: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(&self.of)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs[0].sort_properties)
    }
}

portable!(Bounded, "bounded", of: data_type => Bounded::new);
