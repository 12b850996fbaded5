//! Types as SQL writes them, for the options that name types, and maps, for CAST and DDL.
//!
//! In: `'BIGINT'`, `'DECIMAL(10, 2)'`, `'STRUCT(a INTEGER, b VARCHAR[])'`. Out: the Arrow type.
//! Invariant: a type that is not known is an error with its name.
//! Not here: other types in CAST and DDL, which DataFusion plans; names of types in results (types.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields, TimeUnit,
};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, StructField, TimezoneInfo,
};
use datafusion::sql::sqlparser::dialect::DuckDbDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Digits of DECIMAL without any.
const DECIMAL_DEFAULT: (u8, i8) = (18, 3);

/// The type that a text names; `Err` = what is wrong with it.
pub(crate) fn sql_type(text: &str) -> Result<DataType, String> {
    let dialect = DuckDbDialect {};
    let unknown = || format!("'{text}' is no type");
    let mut parser = Parser::new(&dialect)
        .try_with_sql(text)
        .map_err(|_| unknown())?;
    let parsed = parser.parse_data_type().map_err(|_| unknown())?;
    let is_whole = parser.peek_token().token == datafusion::sql::sqlparser::tokenizer::Token::EOF;
    is_whole
        .then(|| converted(&parsed))
        .flatten()
        .ok_or_else(unknown)
}

fn converted(parsed: &SqlType) -> Option<DataType> {
    use SqlType::*;
    Some(match parsed {
        Boolean | Bool => DataType::Boolean,
        TinyInt(_) => DataType::Int8,
        SmallInt(_) | Int2(_) => DataType::Int16,
        Int(_) | Integer(_) | Int4(_) | MediumInt(_) => DataType::Int32,
        BigInt(_) | Int8(_) | Int64 => DataType::Int64,
        UTinyInt => DataType::UInt8,
        USmallInt => DataType::UInt16,
        UBigInt | UInt64 => DataType::UInt64,
        HugeInt => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        Real | Float4 => DataType::Float32,
        Double(_) | DoublePrecision | Float8 | Float64 => DataType::Float64,
        Float(ExactNumberInfo::None) => DataType::Float32,
        Decimal(digits) | Numeric(digits) | Dec(digits) => decimal(digits)?,
        Varchar(_) | CharVarying(_) | CharacterVarying(_) | Char(_) | Character(_) | Text
        | String(_) | JSON | Uuid => DataType::Utf8,
        Blob(_) | Bytea | Binary(_) | Varbinary(_) => DataType::Binary,
        Date => DataType::Date32,
        Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Time64(unit(*digits)?)
        }
        Datetime(digits)
        | Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp(unit(*digits)?, None)
        }
        Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::Timestamp(unit(*digits)?, Some(Arc::from("+00:00")))
        }
        Array(ArrayElemTypeDef::SquareBracket(item, None)) => {
            DataType::List(Arc::new(Field::new_list_field(converted(item)?, true)))
        }
        Struct(fields, _) => DataType::Struct(struct_fields(fields)?),
        Map(key, value) => map(converted(key)?, converted(value)?),
        Custom(name, parts) if let [key, value] = parts.as_slice() => {
            let is_map = name.to_string().eq_ignore_ascii_case("map");
            is_map.then_some(())?;
            map(sql_type(key).ok()?, sql_type(value).ok()?)
        }
        Custom(name, arguments) if arguments.is_empty() => custom(&name.to_string())?,
        _ => return None,
    })
}

fn map(key: DataType, value: DataType) -> DataType {
    let parts = [
        Field::new("key", key, false),
        Field::new("value", value, true),
    ];
    let entry = Field::new(
        "entries",
        DataType::Struct(parts.into_iter().collect()),
        false,
    );
    DataType::Map(Arc::new(entry), false)
}

/// What DataFusion's planner does not know: `MAP(VARCHAR, INTEGER)`.
#[derive(Debug)]
pub(crate) struct MapTypes;

impl TypePlanner for MapTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> datafusion::error::Result<Option<FieldRef>> {
        let planned = converted(sql_type).filter(|planned| matches!(planned, DataType::Map(..)));
        Ok(planned.map(|planned| Arc::new(Field::new("", planned, true))))
    }
}

/// Names that the parser does not know.
fn custom(name: &str) -> Option<DataType> {
    Some(match name.to_ascii_lowercase().as_str() {
        "uinteger" | "uint4" => DataType::UInt32,
        "ubigint" | "uint8" => DataType::UInt64,
        "usmallint" | "uint2" => DataType::UInt16,
        "utinyint" | "uint1" => DataType::UInt8,
        "int1" => DataType::Int8,
        "timestamp_s" => DataType::Timestamp(TimeUnit::Second, None),
        "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("+00:00"))),
        "hugeint" => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        "string" | "json" => DataType::Utf8,
        _ => return None,
    })
}

fn struct_fields(fields: &[StructField]) -> Option<Fields> {
    let fields = fields.iter().map(|field| {
        let name = field.field_name.as_ref()?;
        Some(Field::new(&name.value, converted(&field.field_type)?, true))
    });
    fields.collect::<Option<Vec<Field>>>().map(Fields::from)
}

fn decimal(digits: &ExactNumberInfo) -> Option<DataType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => DECIMAL_DEFAULT,
        ExactNumberInfo::Precision(precision) => (u8::try_from(*precision).ok()?, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => {
            (u8::try_from(*precision).ok()?, i8::try_from(*scale).ok()?)
        }
    };
    let fits = scale >= 0 && u8::try_from(scale).ok()? <= precision && precision > 0;
    match fits && precision <= DECIMAL256_MAX_PRECISION {
        false => None,
        true if precision <= DECIMAL128_MAX_PRECISION => {
            Some(DataType::Decimal128(precision, scale))
        }
        true => Some(DataType::Decimal256(precision, scale)),
    }
}

/// The unit that holds so many digits of a second.
fn unit(digits: Option<u64>) -> Option<TimeUnit> {
    Some(match digits {
        Some(0) => TimeUnit::Second,
        Some(1..=3) => TimeUnit::Millisecond,
        None | Some(4..=6) => TimeUnit::Microsecond,
        Some(7..=9) => TimeUnit::Nanosecond,
        Some(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("INT", "Int32"),
            ("bigint", "Int64"),
            ("VARCHAR", "Utf8"),
            ("DECIMAL(10, 2)", "Decimal128(10, 2)"),
            ("DOUBLE", "Float64"),
            ("DATE", "Date32"),
            ("TIMESTAMP", "Timestamp(µs)"),
            ("TIMESTAMPTZ", "Timestamp(µs, \"+00:00\")"),
            ("UINTEGER", "UInt32"),
            ("INTEGER[]", "List(Int32)"),
            ("BOOLEAN", "Boolean"),
        ] {
            assert_eq!(
                sql_type(text).map(|kind| kind.to_string()),
                Ok(expected.to_string()),
                "{text}"
            );
        }
        let nested = sql_type("STRUCT(a INTEGER, b VARCHAR[])").unwrap();
        assert!(matches!(nested, DataType::Struct(fields) if fields.len() == 2));
        for no in ["", "nonsense", "INT INT", "DECIMAL(100,2)", "DECIMAL(2,3)"] {
            assert!(sql_type(no).is_err(), "{no}");
        }
    }
}
