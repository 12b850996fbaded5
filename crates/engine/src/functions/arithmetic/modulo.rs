//! `mod(x, y)`: `x % y` as a function.
//!
//! In: two numbers. Out: what is left of x, with the sign of x.
//! Invariant: the operator takes the function's place before the query runs.
//! Not here: the operator, which is DataFusion's.

use datafusion::arrow::compute::kernels::numeric::rem;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, binary_expr,
};

use crate::expr::function_methods::function_methods;

/// The function.
pub(in crate::functions) fn modulo() -> ScalarUDF {
    ScalarUDF::new_from_impl(Mod {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mod {
    signature: Signature,
}

impl ScalarUDFImpl for Mod {
    function_methods!("mod");

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return plan_err!("mod takes two numbers, e.g. mod(7, 2)");
        };
        let operands = BinaryTypeCoercer::new(left, &Operator::Modulo, right);
        let (left, right) = operands.get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        BinaryTypeCoercer::new(&types[0], &Operator::Modulo, &types[1]).get_result_type()
    }

    fn simplify(&self, args: Vec<Expr>, _info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match <[Expr; 2]>::try_from(args) {
            Ok([left, right]) => {
                ExprSimplifyResult::Simplified(binary_expr(left, Operator::Modulo, right))
            }
            Err(args) => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (left, right) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        Ok(ColumnarValue::Array(rem(&left, &right)?))
    }
}
