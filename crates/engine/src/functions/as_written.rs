//! A value under the name of the text that made it.
//!
//! In: an expression and its text. Out: the expression's value, in a column of that name.
//! Invariant: it is gone before execution; only names see it. DataFusion leaves casts out of names, so that `sum(x)` and
//! `sum(CAST(x AS DOUBLE))` would be one.
//! Not here: which casts are named (sql/naming/named_casts.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;

/// Its name in a parsed statement.
pub(crate) const AS_WRITTEN: &str = "__as_written";

/// The function.
pub(super) fn as_written() -> ScalarUDF {
    ScalarUDF::new_from_impl(AsWritten {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AsWritten {
    signature: Signature,
}

impl AsWritten {
    fn text(args: &[Expr]) -> Option<&str> {
        match args {
            [_, Expr::Literal(text, _)] => text.try_as_str().flatten(),
            _ => None,
        }
    }
}

impl ScalarUDFImpl for AsWritten {
    function_methods!(AS_WRITTEN);

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(AsWritten::text(args).unwrap_or(AS_WRITTEN).to_string())
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        self.schema_name(args)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(args.swap_remove(0)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.len() {
            2 => Ok(args.args.swap_remove(0)),
            other => exec_err!("{AS_WRITTEN} takes a value and its text, not {other} arguments"),
        }
    }
}
