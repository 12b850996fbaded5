//! The value of a subquery that has to have one row at most.
//!
//! In: a value and how many rows there were. Out: the value.
//! Invariant: more rows than one are an error, never a choice.
//! Not here: who counts the rows (joined.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::max;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

/// `value`, if `rows` is one or NULL.
pub(in crate::optimizer::fixes) fn one_row(value: Expr, rows: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(OneRow::new())));
    FUNCTION.call(vec![value, rows])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct OneRow {
    signature: Signature,
}

impl OneRow {
    fn new() -> OneRow {
        OneRow {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for OneRow {
    function_methods!("one_row");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = args.args.as_slice() else {
            return exec_err!("one_row takes a value and a number of rows");
        };
        let rows = rows.to_array(args.number_rows)?;
        match max(rows.as_primitive::<Int64Type>()) {
            Some(rows) if rows > 1 => exec_err!(
                "a subquery that stands for a value has {rows} rows; an aggregate or LIMIT 1 makes it one"
            ),
            _ => Ok(value.clone()),
        }
    }
}

portable!(OneRow, "one_row" => OneRow::new);
