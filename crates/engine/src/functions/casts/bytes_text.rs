//! Bytes as strings: what a cast of BLOB to VARCHAR makes of them.
//!
//! In: bytes. Out: the same bytes as text.
//! Invariant: bytes that are not UTF-8 are an error that shows the value. DataFusion's says where in the array they are, and
//! takes that for damage of the file that they come from.
//! Not here: TRY_CAST, which is NULL for them; text that a file declares (scan/error_location.rs).

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use grouse_text::blobs::write_bytes;

use crate::expr::function_methods::function_methods;
use crate::functions::null_as_args;
use crate::wire::portable;

/// Bytes of a value that an error shows.
const SHOWN_BYTES_MAX: usize = 40;

/// True of such casts.
pub(crate) fn is_bytes_cast(of: &DataType, to: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(of, Binary | LargeBinary | BinaryView | FixedSizeBinary(_)) && to.is_string()
}

/// The cast.
pub(crate) fn text_of_bytes(bytes: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(TextOfBytes { to, signature }).call(vec![bytes])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct TextOfBytes {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for TextOfBytes {
    function_methods!("text of bytes");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), self.to.clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let strict = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let text = cast_with_options(&values, &DataType::Binary, &strict);
        match text.and_then(|bytes| cast_with_options(&bytes, &self.to, &strict)) {
            Ok(text) => Ok(ColumnarValue::Array(text)),
            Err(error) => match other_bytes(&values)? {
                Some(shown) => exec_err!(
                    "the bytes {shown} are not UTF-8, which text has to be; TRY_CAST gives NULL for them, hex(…) their digits"
                ),
                None => Err(error.into()),
            },
        }
    }
}

portable!(TextOfBytes, "text_of_bytes", to: data_type;
    signature: Signature::any(1, Volatility::Immutable));

/// The first value that is not UTF-8, as strings write bytes.
fn other_bytes(values: &ArrayRef) -> Result<Option<String>> {
    let values = cast(values, &DataType::Binary)?;
    let mut values = values.as_binary::<i32>().iter().flatten();
    let found = values.find(|value| std::str::from_utf8(value).is_err());
    Ok(found.map(|value| {
        let mut shown = String::new();
        write_bytes(&value[..value.len().min(SHOWN_BYTES_MAX)], &mut shown);
        match value.len() > SHOWN_BYTES_MAX {
            true => shown + "…",
            false => shown,
        }
    }))
}
