//! What `*` is in `count(DISTINCT *)`: the whole row.
//!
//! In: nothing. Out: a mark, in whose place all columns come while the query is planned (optimizer/fixes/grouping/composed.rs).
//! Invariant: it shows as `*` in names, and nobody else can call it: its name is none that SQL has without quotes.
//! Not here: where the text has a `*` (sql/distinct_rows.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;

/// The name that the parsed statement calls.
pub(crate) const WHOLE_ROW: &str = "*row";

/// The function.
pub(super) fn whole_row() -> ScalarUDF {
    ScalarUDF::new_from_impl(WholeRow {
        signature: Signature::nullary(Volatility::Immutable),
    })
}

/// True of a call of it.
pub(crate) fn is_whole_row(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(ScalarFunction { func, .. }) if func.inner().is::<WholeRow>())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeRow {
    signature: Signature,
}

impl ScalarUDFImpl for WholeRow {
    function_methods!(WHOLE_ROW);

    fn schema_name(&self, _args: &[Expr]) -> Result<String> {
        Ok("*".to_string())
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("DISTINCT * is for count alone, in groupings: count(DISTINCT *)")
    }
}
