//! Types under other names: HUGEINT, BLOB, FLOAT(53), UTINYINT, INT64, TIMESTAMP_MS, GUID.
//!
//! In: a type as it is written. Out: the same under the name that DataFusion has for it, also within lists and structs.
//! Invariant: a type that is no other's name stays.
//! Not here: JSON, UUID and UHUGEINT, whose values are checked (short_forms.rs).

use datafusion::sql::sqlparser::ast::{DataType, ExactNumberInfo, TimezoneInfo};

use crate::error::{Error, Result};

/// Types that DataFusion has under another name: integers of 128 bits are decimals of 38 digits.
pub(super) fn known_type(data_type: &mut DataType) {
    use datafusion::sql::sqlparser::ast::ArrayElemTypeDef::{
        AngleBracket, Parenthesis, SquareBracket,
    };
    let known = match data_type {
        DataType::HugeInt => Some(huge()),
        DataType::Blob(None) => Some(DataType::Bytea),
        DataType::CharVarying(_) | DataType::CharacterVarying(_) => Some(DataType::Varchar(None)),
        // Of more than 24 bits a float is one of 64.
        DataType::Float(ExactNumberInfo::Precision(bits)) if *bits > 24 => {
            Some(DataType::Double(ExactNumberInfo::None))
        }
        DataType::Float(ExactNumberInfo::Precision(_)) => Some(DataType::Real),
        DataType::UTinyInt => Some(DataType::TinyIntUnsigned(None)),
        DataType::USmallInt => Some(DataType::SmallIntUnsigned(None)),
        DataType::UBigInt => Some(DataType::BigIntUnsigned(None)),
        DataType::Int16 => Some(DataType::SmallInt(None)),
        DataType::Int32 => Some(DataType::Integer(None)),
        DataType::Int64 => Some(DataType::BigInt(None)),
        DataType::Int128 => Some(huge()),
        DataType::UInt8 => Some(DataType::TinyIntUnsigned(None)),
        DataType::UInt16 => Some(DataType::SmallIntUnsigned(None)),
        DataType::UInt32 => Some(DataType::IntegerUnsigned(None)),
        DataType::UInt64 => Some(DataType::BigIntUnsigned(None)),
        DataType::Float32 => Some(DataType::Real),
        DataType::Float64 => Some(DataType::Double(ExactNumberInfo::None)),
        DataType::Varbinary(_) | DataType::Binary(_) => Some(DataType::Bytea),
        DataType::Datetime(digits) => Some(DataType::Timestamp(*digits, TimezoneInfo::None)),
        DataType::Dec(digits) => Some(DataType::Decimal(*digits)),
        DataType::Nvarchar(_) => Some(DataType::Varchar(None)),
        DataType::Signed => Some(DataType::Integer(None)),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => named_type(&name.to_string()),
        DataType::Array(AngleBracket(inner) | SquareBracket(inner, _) | Parenthesis(inner)) => {
            known_type(inner);
            None
        }
        DataType::Struct(fields, _) => {
            for field in fields {
                known_type(&mut field.field_type);
            }
            None
        }
        _ => None,
    };
    if let Some(known) = known {
        *data_type = known;
    }
}

/// The type of a name that the parser does not know.
pub(in crate::sql) fn named_type(name: &str) -> Option<DataType> {
    match name.to_lowercase().as_str() {
        "hugeint" | "int128" => Some(huge()),
        "uinteger" => Some(DataType::IntegerUnsigned(None)),
        "long" | "oid" => Some(DataType::BigInt(None)),
        "short" => Some(DataType::SmallInt(None)),
        "int1" => Some(DataType::TinyInt(None)),
        "signed" => Some(DataType::Integer(None)),
        "logical" => Some(DataType::Boolean),
        "bpchar" => Some(DataType::Varchar(None)),
        "guid" => Some(DataType::Uuid),
        "timestamp_s" => Some(timestamp(0)),
        "timestamp_ms" => Some(timestamp(3)),
        "timestamp_us" => Some(timestamp(6)),
        "timestamp_ns" => Some(timestamp(9)),
        _ => None,
    }
}

/// Whether a type is UHUGEINT: decimals that are checked to have no sign. Nobody would check those within other types.
pub(super) fn is_unsigned_huge(data_type: &DataType) -> Result<bool> {
    use datafusion::sql::sqlparser::ast::ArrayElemTypeDef::{
        AngleBracket, Parenthesis, SquareBracket,
    };
    let parts: Vec<&DataType> = match data_type {
        DataType::UHugeInt => return Ok(true),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            return Ok(name.to_string().eq_ignore_ascii_case("uhugeint"));
        }
        DataType::Array(AngleBracket(inner) | SquareBracket(inner, _) | Parenthesis(inner)) => {
            vec![inner]
        }
        DataType::Struct(fields, _) => fields.iter().map(|field| &field.field_type).collect(),
        DataType::Map(key, value) => vec![key, value],
        _ => Vec::new(),
    };
    for part in parts {
        if is_unsigned_huge(part)? {
            return Err(Error::unsupported(format!(
                "UHUGEINT within {data_type}; HUGEINT has the same digits"
            )));
        }
    }
    Ok(false)
}

/// A timestamp of so many digits behind the second.
fn timestamp(digits: u64) -> DataType {
    DataType::Timestamp(Some(digits), TimezoneInfo::None)
}

/// Integers of 128 bits.
pub(super) fn huge() -> DataType {
    DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, 0))
}
