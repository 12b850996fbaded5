//! A value of a row that is a struct, by its place: `SET (a, b) = (SELECT …)` reads its row once.
//!
//! In: structs and a place, counted from 1. Out: the field at that place; NULL where there is no struct.
//! Invariant: the struct is computed where it stands. DataFusion moves `get_field` below the projection that computes the struct,
//! and would compute a struct once for each field.
//! Not here: fields that a query names.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;

/// Name of the function.
pub(crate) const ROW_VALUE: &str = "value of a row";

/// The function, to be registered.
pub(super) fn row_value() -> ScalarUDF {
    ScalarUDF::new_from_impl(RowValue {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RowValue {
    signature: Signature,
}

/// The index of the place.
fn index_of(place: Option<&ScalarValue>) -> Option<usize> {
    match place {
        Some(ScalarValue::Int64(Some(place))) => usize::try_from(place - 1).ok(),
        _ => None,
    }
}

impl ScalarUDFImpl for RowValue {
    function_methods!(ROW_VALUE);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("{ROW_VALUE} of types alone")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let place = args.scalar_arguments.get(1).copied().flatten();
        let field = match (args.arg_fields[0].data_type(), index_of(place)) {
            (DataType::Struct(fields), Some(index)) => fields.get(index),
            _ => None,
        };
        match field {
            Some(field) => {
                let kind = field.data_type().clone();
                Ok(Arc::new(Field::new(ROW_VALUE, kind, true)))
            }
            None => plan_err!("a row has no such value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [rows, ColumnarValue::Scalar(place)] = args.args.as_slice() else {
            return internal_err!("{ROW_VALUE} at a place that is no literal");
        };
        let rows = rows.to_array(args.number_rows)?;
        let Some(index) = index_of(Some(place)) else {
            return internal_err!("{ROW_VALUE} at {place}");
        };
        let values = rows.as_struct().column(index);
        let values = match rows.null_count() {
            0 => Arc::clone(values),
            _ => nullif(values, &is_null(&rows)?)?,
        };
        Ok(ColumnarValue::Array(values))
    }
}
