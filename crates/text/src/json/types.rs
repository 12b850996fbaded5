//! Types of JSON values.
//!
//! In: what was seen of a column, or the type that a user gives it. Out: how it is read, and its Arrow type.
//! Invariant: the Arrow type follows from this one.
//! Not here: which values were seen (shape.rs).

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, TimeUnit};

/// How the values of a column are read.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonType {
    /// true and false.
    Boolean,
    /// Integers that fit 64 bits with a sign.
    Integer,
    /// Integers that fit 64 bits without one.
    Unsigned,
    /// Integers that a decimal holds, and 64 bits do not.
    Wide,
    /// Numbers of which some have a fraction, an exponent or more digits.
    Double,
    /// Strings; what is none is text as it is written.
    Text,
    /// Everything as it is written, strings with their quotes.
    Json,
    /// Strings that are dates.
    Date,
    /// Strings that are times of a day.
    Time(TimeUnit),
    /// Strings that are timestamps, and their zone.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Objects with these fields.
    Struct(Vec<(String, JsonType)>),
    /// Arrays.
    List(Box<JsonType>),
    /// Another type, which the text of each value is cast to, and its name in SQL.
    Cast(DataType, String),
}

/// The name of a type in SQL.
pub type TypeName = fn(&DataType) -> String;

impl JsonType {
    /// How values of a type are read.
    pub fn of(kind: &DataType, name: TypeName) -> JsonType {
        match kind {
            DataType::Boolean => JsonType::Boolean,
            DataType::Int64 => JsonType::Integer,
            DataType::UInt64 => JsonType::Unsigned,
            DataType::Float64 => JsonType::Double,
            DataType::Utf8 => JsonType::Text,
            DataType::Date32 => JsonType::Date,
            DataType::Time64(unit) => JsonType::Time(*unit),
            DataType::Timestamp(unit, zone) => JsonType::Timestamp(*unit, zone.clone()),
            DataType::Struct(fields) => JsonType::Struct(
                fields
                    .iter()
                    .map(|field| (field.name().clone(), JsonType::of(field.data_type(), name)))
                    .collect(),
            ),
            DataType::List(item) => JsonType::List(Box::new(JsonType::of(item.data_type(), name))),
            other => JsonType::Cast(other.clone(), name(other)),
        }
    }

    /// The type of the column's values.
    pub fn data_type(&self) -> DataType {
        match self {
            JsonType::Boolean => DataType::Boolean,
            JsonType::Integer => DataType::Int64,
            JsonType::Unsigned => DataType::UInt64,
            JsonType::Wide => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            JsonType::Double => DataType::Float64,
            JsonType::Text | JsonType::Json => DataType::Utf8,
            JsonType::Date => DataType::Date32,
            JsonType::Time(unit) => DataType::Time64(*unit),
            JsonType::Timestamp(unit, zone) => DataType::Timestamp(*unit, zone.clone()),
            JsonType::Struct(fields) => DataType::Struct(struct_fields(fields)),
            JsonType::List(item) => {
                DataType::List(Arc::new(Field::new_list_field(item.data_type(), true)))
            }
            JsonType::Cast(kind, _) => kind.clone(),
        }
    }
}

/// The fields of an object.
pub fn struct_fields(fields: &[(String, JsonType)]) -> Fields {
    fields
        .iter()
        .map(|(name, kind)| Field::new(name, kind.data_type(), true))
        .collect()
}
