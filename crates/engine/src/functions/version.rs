//! `version()`: which grouse this is.
//!
//! In: nothing. Out: `grouse 0.1.0`.
//! Invariant: the version is that of the crate.
//! Not here: versions of DataFusion and Arrow, which Cargo.lock knows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Version {
    signature: Signature,
}

impl Version {
    pub fn new() -> Version {
        Version {
            signature: Signature::nullary(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Version {
    function_methods!("version");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let version = concat!("grouse ", env!("CARGO_PKG_VERSION"));
        Ok(ColumnarValue::Scalar(ScalarValue::from(version)))
    }
}
