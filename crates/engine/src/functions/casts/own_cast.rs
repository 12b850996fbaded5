//! Casts of ours as functions: what they have in common.
//!
//! In: the values of one argument. Out: values of the type that the cast names; of one value one value.
//! Invariant: a cast does not show in names, as none of DataFusion's does: the columns of grouping sets keep theirs.
//! Not here: what each cast makes of a value.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::functions::null_as_args;
use crate::wire::{Portable, WireReader, WireValue};

/// A cast to a type.
pub(in crate::functions) trait OwnCast:
    Debug + PartialEq + Eq + Hash + Send + Sync + 'static
{
    /// As plans show it.
    fn name(&self) -> &'static str;

    fn to(&self) -> &DataType;

    /// Whether it is NULL of what cannot be cast.
    fn is_try(&self) -> bool {
        false
    }

    fn compute(&self, values: &ArrayRef) -> Result<ArrayRef>;
}

/// The cast of a value.
pub(super) fn own_cast(cast: impl OwnCast, value: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(CastFunction { cast, signature }).call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct CastFunction<C> {
    cast: C,
    signature: Signature,
}

impl<C: OwnCast> ScalarUDFImpl for CastFunction<C> {
    function_methods!();

    fn name(&self) -> &str {
        self.cast.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args[0].schema_name().to_string())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.cast.to().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let to = self.cast.to().clone();
        match self.cast.is_try() {
            true => Ok(Arc::new(Field::new(self.name(), to, true))),
            false => Ok(null_as_args(self.name(), to, &args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(self.cast.compute(values)?)),
            [ColumnarValue::Scalar(value)] => {
                let values = self.cast.compute(&value.to_array()?)?;
                Ok(ScalarValue::try_from_array(&values, 0)?.into())
            }
            _ => internal_err!("{} of {} values", self.name(), args.args.len()),
        }
    }
}

impl<C: OwnCast + Portable> Portable for CastFunction<C> {
    const KIND: &'static str = C::KIND;

    fn apart(&self) -> Vec<WireValue> {
        self.cast.apart()
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        Ok(CastFunction {
            cast: C::whole(values)?,
            signature: Signature::any(1, Volatility::Immutable),
        })
    }
}
