//! Names of column types, as `Relation.types` and tables for people show them.
//!
//! In: Arrow types. Out: short names.
//! Invariant: the name says what values look like, not how they are laid out: a dictionary is its values.

use arrow::datatypes::{DataType, Field, TimeUnit};

/// The name of a type, such as `int64`, `varchar` or `list(double)`.
pub fn type_name(data_type: &DataType) -> String {
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
        Duration(_) => "duration",
        Interval(_) => "interval",
        Timestamp(unit, zone) => return timestamp_name(*unit, zone.as_deref()),
        Decimal32(digits, scale)
        | Decimal64(digits, scale)
        | Decimal128(digits, scale)
        | Decimal256(digits, scale) => return format!("decimal({digits},{scale})"),
        _ => return nested_name(data_type),
    };
    name.to_owned()
}

fn timestamp_name(unit: TimeUnit, zone: Option<&str>) -> String {
    let digits = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    zone.map_or(format!("timestamp({digits})"), |zone| {
        format!("timestamp({digits}) {zone}")
    })
}

fn nested_name(data_type: &DataType) -> String {
    use DataType::*;
    let of = |field: &Field| type_name(field.data_type());
    let all = |fields: &arrow::datatypes::Fields, name: fn(&Field) -> String| {
        fields
            .iter()
            .map(|field| name(field))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match data_type {
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) => {
            format!("list({})", of(item))
        }
        FixedSizeList(item, length) => format!("list({}, {length})", of(item)),
        Struct(fields) => {
            format!(
                "struct({})",
                all(fields, |field| format!(
                    "{} {}",
                    field.name(),
                    type_name(field.data_type())
                ))
            )
        }
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => format!("map({})", all(fields, |field| type_name(field.data_type()))),
            other => format!("map({})", type_name(other)),
        },
        Dictionary(_, values) => type_name(values),
        RunEndEncoded(_, values) => of(values),
        other => other.to_string().to_lowercase(),
    }
}
