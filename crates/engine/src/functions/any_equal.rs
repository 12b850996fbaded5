//! `x = ANY (list)`: whether a list has a value.
//!
//! In: a list and a value. Out: true where an element is equal; NULL where none is and the value or an element is NULL.
//! Invariant: an empty list has no value, not even NULL. Elements are compared in canonical form, in which the planner
//! hands them over.
//! Not here: `array_has`, which asks for the same and takes a NULL for a value that is not equal.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, make_comparator};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

use crate::expr::function_methods::function_methods;

/// The name that the parsed statement calls.
pub(crate) const ANY_EQUAL: &str = "= any";

/// The function.
pub(super) fn any_equal() -> ScalarUDF {
    ScalarUDF::new_from_impl(AnyEqual {
        signature: Signature::array_and_element(Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AnyEqual {
    signature: Signature,
}

impl ScalarUDFImpl for AnyEqual {
    function_methods!(ANY_EQUAL);

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [list, value] => Ok(format!(
                "{} = ANY({})",
                value.schema_name(),
                list.schema_name()
            )),
            _ => Ok(ANY_EQUAL.to_string()),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (lists, values) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        if lists.data_type().is_null() {
            let unknown = BooleanArray::new_null(rows);
            return Ok(ColumnarValue::Array(Arc::new(unknown)));
        }
        let lists = as_large_list(&lists)?;
        let lists = lists.as_list::<i64>();
        let values = cast(&values, lists.values().data_type())?;
        let elements = lists.values();
        let order = make_comparator(elements, &values, SortOptions::default())?;
        let known = |row: usize| {
            if lists.is_null(row) {
                return None;
            }
            let (start, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
            let mut elements_at = start as usize..end as usize;
            if values.is_null(row) {
                return elements_at.is_empty().then_some(false);
            }
            let is_equal = |at: usize| elements.is_valid(at) && order(at, row).is_eq();
            if elements_at.clone().any(is_equal) {
                return Some(true);
            }
            (!elements_at.any(|at| elements.is_null(at))).then_some(false)
        };
        let found: BooleanArray = (0..rows).map(known).collect();
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

fn as_large_list(lists: &ArrayRef) -> Result<ArrayRef> {
    match lists.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let item = Field::clone(item);
            Ok(cast(lists, &DataType::LargeList(Arc::new(item)))?)
        }
        other => plan_err!("= ANY takes a list or a subquery, not {other}"),
    }
}
