//! `identity(x)`: of values that are equal but not the same, such as -0.0 and 0.0, a month and 30 days, what tells them apart.
//!
//! In: values of a type that has several forms. Out: numbers or bytes of one form each, and the values back.
//! Invariant: two identities are equal if and only if the values have the same form; NULL stays NULL.
//! Not here: the form that equal values share (canonical.rs); who needs identities (optimizer/fixes/unnested).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type,
};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use grouse_groupby::keys::row::has_forms;

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

/// The name of the function that gives identities, and of the one that gives the values back.
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const IDENTIFIED: &str = "identified";

/// An array with the bits of `$values` as values of another type of that width.
macro_rules! same_bits {
    ($values:expr, $to:ty) => {
        $values.unary::<_, $to>(|value| {
            <$to as ArrowPrimitiveType>::Native::from_ne_bytes(value.to_ne_bytes())
        })
    };
}

/// The identity of a value of type `of`; `None` where equal values are the same, or their type has no identities.
pub(crate) fn identity(value: Expr, of: &DataType) -> Option<Expr> {
    static FUNCTION: LazyLock<ScalarUDF> = LazyLock::new(|| {
        ScalarUDF::new_from_impl(Identity {
            signature: Signature::any(1, Volatility::Immutable),
        })
    });
    let field = SortField::new(of.clone());
    let has_identity = has_forms(of) && RowConverter::supports_fields(&[field]);
    has_identity.then(|| FUNCTION.call(vec![value]))
}

/// The value of type `of` whose identity `identity` is.
pub(crate) fn identified(identity: Expr, of: &DataType) -> Expr {
    let function = ScalarUDF::new_from_impl(Identified {
        of: of.clone(),
        signature: Signature::any(1, Volatility::Immutable),
    });
    function.call(vec![identity])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Identity {
    signature: Signature,
}

impl ScalarUDFImpl for Identity {
    function_methods!(IDENTITY);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types[0] {
            DataType::Float16 => DataType::Int16,
            DataType::Float32 => DataType::Int32,
            DataType::Float64 => DataType::Int64,
            _ => DataType::Binary,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        macro_rules! bits {
            ($from:ty, $to:ty) => {
                Arc::new(same_bits!(values.as_primitive::<$from>(), $to))
            };
        }
        Ok(ColumnarValue::Array(match values.data_type() {
            DataType::Float16 => bits!(Float16Type, Int16Type),
            DataType::Float32 => bits!(Float32Type, Int32Type),
            DataType::Float64 => bits!(Float64Type, Int64Type),
            _ => bytes(&values)?,
        }))
    }
}

portable!(Identity, "identity"; signature: Signature::any(1, Volatility::Immutable));

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Identified {
    of: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Identified {
    function_methods!(IDENTIFIED);

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.of.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let identities = args.args[0].to_array(args.number_rows)?;
        macro_rules! value {
            ($from:ty, $to:ty) => {
                Arc::new(same_bits!(identities.as_primitive::<$from>(), $to))
            };
        }
        Ok(ColumnarValue::Array(match self.of {
            DataType::Float16 => value!(Int16Type, Float16Type),
            DataType::Float32 => value!(Int32Type, Float32Type),
            DataType::Float64 => value!(Int64Type, Float64Type),
            _ => values(identities.as_binary(), &self.of)?,
        }))
    }
}

portable!(Identified, "identified", of: data_type;
    signature: Signature::any(1, Volatility::Immutable));

fn bytes(values: &ArrayRef) -> Result<ArrayRef> {
    let field = SortField::new(values.data_type().clone());
    let rows = RowConverter::new(vec![field])?.convert_columns(&[Arc::clone(values)])?;
    let (offsets, bytes, _) = rows.try_into_binary()?.into_parts();
    let bytes = BinaryArray::try_new(offsets, bytes, values.logical_nulls())?;
    Ok(Arc::new(bytes))
}

fn values(identities: &BinaryArray, of: &DataType) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(of.clone())])?;
    let null = converter.convert_columns(&[new_null_array(of, 1)])?;
    let parser = converter.parser();
    let rows = identities.iter().map(|identity| match identity {
        Some(bytes) => parser.parse(bytes),
        None => null.row(0),
    });
    let columns = converter.convert_rows(rows)?;
    // Dictionaries come back as their values.
    Ok(cast(&columns[0], of)?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, IntervalMonthDayNanoArray, ListArray};
    use datafusion::arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn values_come_back_in_their_forms() {
        let month = IntervalMonthDayNano::new(1, 0, 0);
        let days = IntervalMonthDayNano::new(0, 30, 0);
        let intervals: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![
            Some(month),
            None,
            Some(days),
        ]));
        let identities = bytes(&intervals).unwrap();
        let identities = identities.as_binary::<i32>();
        assert_ne!(identities.value(0), identities.value(2));
        let back = values(identities, intervals.data_type()).unwrap();
        assert_eq!(&back, &intervals);
    }

    #[test]
    fn zeros_in_lists_keep_their_signs() {
        let items = vec![Some(vec![Some(-0.0), Some(0.0), None]), None];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(items));
        let back = values(bytes(&lists).unwrap().as_binary(), lists.data_type()).unwrap();
        let items: &Float64Array = back.as_list::<i32>().values().as_primitive();
        assert!(items.value(0).is_sign_negative() && items.value(1).is_sign_positive());
        assert!(items.is_null(2) && back.is_null(1));
    }
}
