//! UUIDs as strings: what `CAST(x AS UUID)` and `TRY_CAST(x AS UUID)` call.
//!
//! In: strings with 32 hexadecimal digits, with or without hyphens and braces, or 16 bytes.
//! Out: the text in small letters with hyphens after 8, 12, 16 and 20 digits, by which equal UUIDs are equal strings.
//! Invariant: a text that is no UUID is an error that shows it, or NULL with TRY_CAST.
//! Not here: making UUIDs; columns of type UUID, which DDL refuses.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::expr::function_methods::function_methods;

/// Names of the functions.
pub(crate) const UUID: &str = "uuid of";
pub(crate) const TRY_UUID: &str = "uuid of or null";

/// What a text that is no UUID gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum InvalidUuid {
    Error,
    Null,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct UuidText {
    otherwise: InvalidUuid,
    signature: Signature,
}

/// Both functions, to be registered.
pub(in crate::functions) fn functions() -> [ScalarUDF; 2] {
    [InvalidUuid::Error, InvalidUuid::Null].map(|otherwise| {
        ScalarUDF::from(UuidText {
            otherwise,
            signature: Signature::any(1, Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for UuidText {
    function_methods!();

    fn name(&self) -> &str {
        match self.otherwise {
            InvalidUuid::Error => UUID,
            InvalidUuid::Null => TRY_UUID,
        }
    }

    /// The cast that it stands for.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let cast = match self.otherwise {
            InvalidUuid::Error => "CAST",
            InvalidUuid::Null => "TRY_CAST",
        };
        let value = args.first().map(|value| value.schema_name().to_string());
        Ok(format!("{cast}({} AS UUID)", value.unwrap_or_default()))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [data_type]
                if data_type.is_string() || data_type.is_null() || data_type.is_binary() =>
            {
                Ok(DataType::Utf8)
            }
            [DataType::Dictionary(_, values)] if values.is_string() => Ok(DataType::Utf8),
            [DataType::FixedSizeBinary(16)] => Ok(DataType::Utf8),
            _ => plan_err!("a UUID is made of a text or of 16 bytes"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return plan_err!("a UUID is made of one value");
        };
        let value = value.to_array(args.number_rows)?;
        let uuids: ArrayRef = match value.data_type() {
            data_type
                if data_type.is_binary() || matches!(data_type, DataType::FixedSizeBinary(_)) =>
            {
                let bytes = cast(&value, &DataType::Binary)?;
                let bytes = bytes.as_binary::<i32>();
                let strings = bytes.iter().map(|bytes| self.uuid(bytes.map(hex)));
                Arc::new(strings.collect::<Result<StringArray>>()?)
            }
            _ => {
                let strings = cast(&value, &DataType::Utf8)?;
                let strings = strings.as_string::<i32>();
                let uuids = strings
                    .iter()
                    .map(|text| self.uuid(text.map(str::to_string)));
                Arc::new(uuids.collect::<Result<StringArray>>()?)
            }
        };
        Ok(ColumnarValue::Array(uuids))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl UuidText {
    fn uuid(&self, text: Option<String>) -> Result<Option<String>> {
        let Some(text) = text else {
            return Ok(None);
        };
        match (canonical(&text), self.otherwise) {
            (Some(uuid), _) => Ok(Some(uuid)),
            (None, InvalidUuid::Null) => Ok(None),
            (None, InvalidUuid::Error) => {
                exec_err!("'{text}' is no UUID; TRY_CAST gives NULL for it")
            }
        }
    }
}

fn canonical(text: &str) -> Option<String> {
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let digits: String = inner
        .unwrap_or(text)
        .chars()
        .filter(|digit| *digit != '-')
        .collect();
    let is_uuid = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let digits = is_uuid.then(|| digits.to_ascii_lowercase())?;
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    Some(parts.join("-"))
}
