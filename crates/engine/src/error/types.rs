//! Names of types: as SQL writes them, and as people read them under column names and in `Relation.types`.
//!
//! In: Arrow types. Out: `BIGINT`, `STRUCT(a INTEGER)`; short names, `int64`, `struct(a int32)`.
//! Invariant: the name says what values look like, not how they are laid out: a dictionary is its values.
//! Not here: what `CAST` takes, which is DataFusion's.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};

/// The name of a type, such as `int64`, `varchar` or `list(double)`.
pub fn sql_name(data_type: &DataType) -> String {
    use DataType::*;
    let name = match data_type {
        Null => "null",
        Boolean => "boolean",
        Int8 => "int8",
        Int16 => "int16",
        Int32 => "int32",
        Int64 => "int64",
        UInt8 => "uint8",
        UInt16 => "uint16",
        UInt32 => "uint32",
        UInt64 => "uint64",
        Float16 => "half",
        Float32 => "float",
        Float64 => "double",
        Utf8 | LargeUtf8 | Utf8View => "varchar",
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => "binary",
        Date32 | Date64 => "date",
        Time32(_) | Time64(_) => "time",
        Timestamp(unit, zone) => return timestamp_name(*unit, zone.as_deref()),
        Duration(_) => "duration",
        Interval(_) => "interval",
        Decimal32(digits, scale)
        | Decimal64(digits, scale)
        | Decimal128(digits, scale)
        | Decimal256(digits, scale) => return format!("decimal({digits},{scale})"),
        _ => return nested_name(data_type),
    };
    name.to_owned()
}

fn timestamp_name(unit: TimeUnit, zone: Option<&str>) -> String {
    let name = match unit {
        TimeUnit::Second => "timestamp(0)",
        TimeUnit::Millisecond => "timestamp(3)",
        TimeUnit::Microsecond => "timestamp(6)",
        TimeUnit::Nanosecond => "timestamp(9)",
    };
    match zone {
        Some(zone) => format!("{name} {zone}"),
        None => name.to_owned(),
    }
}

/// The name of a type as SQL writes it, such as `BIGINT`, `VARCHAR` or `DOUBLE[]`: what `typeof` and DESCRIBE say, and errors.
pub fn type_name(data_type: &DataType) -> String {
    use DataType::*;
    let of = |field: &Field| type_name(field.data_type());
    let name = match data_type {
        Null => "NULL",
        Boolean => "BOOLEAN",
        Int8 => "TINYINT",
        Int16 => "SMALLINT",
        Int32 => "INTEGER",
        Int64 => "BIGINT",
        UInt8 => "UTINYINT",
        UInt16 => "USMALLINT",
        UInt32 => "UINTEGER",
        UInt64 => "UBIGINT",
        Float16 | Float32 => "FLOAT",
        Float64 => "DOUBLE",
        Utf8 | LargeUtf8 | Utf8View => "VARCHAR",
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => "BLOB",
        Date32 | Date64 => "DATE",
        Time32(_) | Time64(_) => "TIME",
        Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        // DataFusion's own are of nanoseconds, most files' of microseconds.
        Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None) => "TIMESTAMP",
        Duration(_) | Interval(_) => "INTERVAL",
        Decimal32(digits, scale)
        | Decimal64(digits, scale)
        | Decimal128(digits, scale)
        | Decimal256(digits, scale) => return format!("DECIMAL({digits},{scale})"),
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) => {
            return format!("{}[]", of(item));
        }
        FixedSizeList(item, length) => return format!("{}[{length}]", of(item)),
        Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field_name(field.name()), of(field)))
                .collect();
            return format!("STRUCT({})", fields.join(", "));
        }
        Map(entries, _) => {
            let types: Vec<String> = match entries.data_type() {
                Struct(fields) => fields.iter().map(|field| of(field)).collect(),
                other => vec![type_name(other)],
            };
            return format!("MAP({})", types.join(", "));
        }
        Dictionary(_, values) => return type_name(values),
        RunEndEncoded(_, values) => return of(values),
        Union(..) => "UNION",
    };
    name.to_string()
}

/// A field's name, in quotes where SQL needs them.
fn field_name(name: &str) -> String {
    let is_plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_'
    };
    match name.chars().all(is_plain) && name.starts_with(|first: char| !first.is_ascii_digit()) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

fn nested_name(data_type: &DataType) -> String {
    use DataType::*;
    let of = |field: &Field| sql_name(field.data_type());
    match data_type {
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) => {
            format!("list({})", of(item))
        }
        FixedSizeList(item, length) => format!("list({}, {length})", of(item)),
        Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), of(field)))
                .collect();
            format!("struct({})", fields.join(", "))
        }
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => {
                let types: Vec<String> = fields.iter().map(|field| of(field)).collect();
                format!("map({})", types.join(", "))
            }
            other => format!("map({})", sql_name(other)),
        },
        Dictionary(_, values) => sql_name(values),
        RunEndEncoded(_, values) => of(values),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn nested_types_are_named_by_what_they_hold() {
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let fields = vec![
            Field::new("a", DataType::Utf8View, true),
            Field::new("b", DataType::List(item), true),
        ];
        let name = sql_name(&DataType::Struct(fields.into()));
        assert_eq!(name, "struct(a varchar, b list(double))");
        let codes = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        assert_eq!(sql_name(&codes), "varchar");
    }

    #[test]
    fn nested_types_as_sql_writes_them() {
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let fields = vec![
            Field::new("a", DataType::Utf8View, true),
            Field::new("B c", DataType::List(item), true),
        ];
        let name = type_name(&DataType::Struct(fields.into()));
        assert_eq!(name, "STRUCT(a VARCHAR, \"B c\" INTEGER[])");
    }
}
