//! Types as SQL writes them: what DESCRIBE and SUMMARIZE say.
//!
//! In: Arrow types. Out: `BIGINT`, `VARCHAR`, `INTEGER[]`, `STRUCT(a INTEGER)`.
//! Invariant: the name says what values there are, not how they are laid out: a dictionary is its values.
//! Not here: names under columns of a printed table (types.rs); types that users write (short_forms.rs).

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};

/// The name of a type in SQL.
pub(crate) fn type_name(data_type: &DataType) -> String {
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
        Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn nested_types() {
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let fields = vec![
            Field::new("a", DataType::Utf8View, true),
            Field::new("B c", DataType::List(item), true),
        ];
        let name = type_name(&DataType::Struct(fields.into()));
        assert_eq!(name, "STRUCT(a VARCHAR, \"B c\" INTEGER[])");
    }
}
