//! Arrow types -> the names shown under column names.
//! Invariant: the name says what values look like, not how they are laid out: a dictionary is its values.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

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
        Timestamp(unit, zone) => return timestamp_name(*unit, zone.as_deref()),
        Duration(_) => "duration",
        Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime | IntervalUnit::MonthDayNano) => {
            "interval"
        }
        Decimal32(digits, scale) | Decimal64(digits, scale) => {
            return decimal_name(*digits, *scale);
        }
        Decimal128(digits, scale) | Decimal256(digits, scale) => {
            return decimal_name(*digits, *scale);
        }
        _ => return nested_name(data_type),
    };
    name.to_owned()
}

/// Whether values of this type stand at the right of their column.
pub fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        DataType::RunEndEncoded(_, values) => is_number(values.data_type()),
        other => other.is_numeric(),
    }
}

/// Whether values of this type may be cut off: part of a number or a date would be a wrong one.
pub fn may_be_cut(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => may_be_cut(values),
        DataType::RunEndEncoded(_, values) => may_be_cut(values.data_type()),
        other => !(other.is_numeric() || other.is_temporal() || *other == DataType::Boolean),
    }
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

fn decimal_name(digits: u8, scale: i8) -> String {
    format!("decimal({digits},{scale})")
}

fn nested_name(data_type: &DataType) -> String {
    use DataType::*;
    let of = |field: &Field| type_name(field.data_type());
    match data_type {
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) => {
            format!("list({})", of(item))
        }
        FixedSizeList(item, len) => format!("list({}, {len})", of(item)),
        Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|f| format!("{} {}", f.name(), of(f)))
                .collect();
            format!("struct({})", fields.join(", "))
        }
        Map(entries, _) => match entries.data_type() {
            Struct(fields) => {
                let types: Vec<String> = fields.iter().map(|f| of(f)).collect();
                format!("map({})", types.join(", "))
            }
            other => format!("map({})", type_name(other)),
        },
        Dictionary(_, values) => type_name(values),
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
        let name = type_name(&DataType::Struct(fields.into()));
        assert_eq!(name, "struct(a varchar, b list(double))");
        let codes = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        assert_eq!(type_name(&codes), "varchar");
    }
}
