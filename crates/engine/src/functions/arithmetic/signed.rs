//! Lengths and places in lists as BIGINT, so that a greater number can be taken from them.
//!
//! In: DataFusion's functions that count without a sign. Out: the same functions with signed results.
//! Invariant: names, aliases and values are DataFusion's.
//! Not here: aggregates and windows that count (optimizer/fixes/types/signed_counts.rs).

use std::sync::Arc;

use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions_nested::cardinality::cardinality_udf;
use datafusion::functions_nested::dimension::array_ndims_udf;
use datafusion::functions_nested::length::array_length_udf;
use datafusion::functions_nested::position::{array_position_udf, array_positions_udf};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};

use crate::functions::wrapped::as_wrapped;

/// The functions.
pub(in crate::functions) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let of_datafusion = [
        cardinality_udf(),
        array_length_udf(),
        array_ndims_udf(),
        array_position_udf(),
        array_positions_udf(),
    ];
    of_datafusion
        .into_iter()
        .map(|datafusion| ScalarUDF::new_from_impl(Signed { datafusion }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Signed {
    datafusion: Arc<ScalarUDF>,
}

fn signed(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt64 => DataType::Int64,
        DataType::List(item) => {
            let data_type = signed(item.data_type());
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(data_type)))
        }
        other => other.clone(),
    }
}

impl ScalarUDFImpl for Signed {
    as_wrapped!(datafusion: name, aliases, signature, coerce_types);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(signed(&self.datafusion.return_type(types)?))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.datafusion.return_field_from_args(args)?;
        let data_type = signed(field.data_type());
        Ok(Arc::new(Field::clone(&field).with_data_type(data_type)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, wanted) = (args.number_rows, args.return_field.data_type().clone());
        let mut args = args;
        let counted = self.datafusion.return_type(&types_of(&args))?;
        args.return_field = Arc::new(Field::new(self.name(), counted, true));
        let counts = self.datafusion.invoke_with_args(args)?.to_array(rows)?;
        Ok(ColumnarValue::Array(cast(&counts, &wanted)?))
    }
}

fn types_of(args: &ScalarFunctionArgs) -> Vec<DataType> {
    let fields = args.arg_fields.iter();
    fields.map(|field| field.data_type().clone()).collect()
}
