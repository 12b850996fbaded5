//! What is seen of the values of a JSON column.
//!
//! In: records of a sample, one after the other. Out: the narrowest type that holds all of them.
//! Invariant: fields come in the order in which they were first seen; no type loses a digit of a value that was seen,
//! save those of doubles.
//! Not here: reading (columns.rs).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::TimeUnit;

use super::columns::wide;
use super::cursor::{Cursor, Result};
use super::timestamps::{Temporal, timestamp};
use super::types::JsonType;

/// Objects and arrays that lie deeper are text.
pub const DEPTH_MAX: usize = 32;

/// Digits of a second's fraction that microseconds hold.
const MICRO_DIGITS: u8 = 6;

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    boolean: bool,
    numbers: Numbers,
    strings: Strings,
    object: Option<ObjectShape>,
    array: Option<Box<Shape>>,
    /// Objects and arrays too deep to look into.
    is_deep: bool,
}

#[derive(Debug, Clone, Default)]
struct ObjectShape {
    fields: Vec<(String, Shape)>,
    places: HashMap<String, usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    any: bool,
    negative: bool,
    /// Beyond BIGINT, but within BIGINT UNSIGNED.
    unsigned: bool,
    /// An integer beyond 64 bits that a decimal holds.
    wide: bool,
    /// Anything else.
    double: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Strings {
    plain: bool,
    date: bool,
    time: bool,
    local: bool,
    zoned: bool,
    digits_max: u8,
}

impl Shape {
    /// Looks at the next value.
    pub fn look(&mut self, cursor: &mut Cursor<'_>, depth_left: usize) -> Result<()> {
        match cursor.peek() {
            Some(b'{' | b'[') if depth_left == 0 => {
                self.is_deep = true;
                cursor.skip()
            }
            Some(b'{') => {
                let object = self.object.get_or_insert_default();
                cursor.object(|name, value| object.field(name).look(value, depth_left - 1))
            }
            Some(b'[') => {
                let items = self.array.get_or_insert_default();
                cursor.array(|value| items.look(value, depth_left - 1))
            }
            Some(b'"') => {
                self.strings.look(&cursor.string()?);
                Ok(())
            }
            _ => {
                match cursor.word()? {
                    "null" => {}
                    "true" | "false" => self.boolean = true,
                    number => self.numbers.look(number),
                }
                Ok(())
            }
        }
    }

    /// Whether all that was seen are objects.
    pub fn is_object(&self) -> bool {
        self.object.is_some() && self.kinds() == 1
    }

    /// Whether an object was seen.
    pub fn has_object(&self) -> bool {
        self.object.is_some()
    }

    /// The fields of the objects that were seen, in order.
    pub fn fields(&self, depth_left: usize) -> Vec<(String, JsonType)> {
        let fields = self.object.iter().flat_map(|object| &object.fields);
        fields
            .map(|(name, shape)| (name.clone(), shape.json_type(depth_left)))
            .collect()
    }

    /// How many different kinds of values were seen.
    fn kinds(&self) -> usize {
        let seen = [
            self.boolean,
            self.numbers.any,
            self.strings.any(),
            self.object.is_some(),
            self.array.is_some(),
            self.is_deep,
        ];
        seen.iter().filter(|seen| **seen).count()
    }

    /// The type that holds everything seen; what lies deeper than `depth_left` is JSON text.
    pub fn json_type(&self, depth_left: usize) -> JsonType {
        let is_nested = self.object.is_some() || self.array.is_some() || self.is_deep;
        match self.kinds() {
            // Nothing but NULLs so far: text takes whatever comes.
            0 => JsonType::Text,
            1 if !is_nested && self.boolean => JsonType::Boolean,
            1 if !is_nested && self.numbers.any => self.numbers.json_type(),
            1 if !is_nested => self.strings.json_type(),
            1 if depth_left > 0 => self.nested_type(depth_left - 1),
            _ if is_nested => JsonType::Json,
            _ => JsonType::Text,
        }
    }

    fn nested_type(&self, depth_left: usize) -> JsonType {
        if let Some(items) = &self.array {
            return JsonType::List(Box::new(items.json_type(depth_left)));
        }
        let fields = self.fields(depth_left);
        match fields.is_empty() {
            true => JsonType::Json,
            false => JsonType::Struct(fields),
        }
    }
}

impl ObjectShape {
    fn field(&mut self, name: &str) -> &mut Shape {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => {
                let place = self.fields.len();
                self.places.insert(name.to_string(), place);
                self.fields.push((name.to_string(), Shape::default()));
                place
            }
        };
        &mut self.fields[place].1
    }
}

impl Numbers {
    fn look(&mut self, number: &str) {
        self.any = true;
        self.negative |= number.starts_with('-');
        if number.parse::<i64>().is_ok() {
            return;
        }
        match (number.parse::<u64>().is_ok(), wide(number)) {
            (true, _) => self.unsigned = true,
            (false, Some(_)) => self.wide = true,
            (false, None) => self.double = true,
        }
    }

    fn json_type(self) -> JsonType {
        match (self.double, self.unsigned, self.negative) {
            (true, _, _) => JsonType::Double,
            _ if self.wide => JsonType::Wide,
            (_, true, true) => JsonType::Wide,
            (_, true, false) => JsonType::Unsigned,
            _ => JsonType::Integer,
        }
    }
}

impl Strings {
    fn any(self) -> bool {
        self.plain || self.date || self.time || self.local || self.zoned
    }

    fn look(&mut self, text: &str) {
        // Once there is any other string, the rest may be what it likes.
        match (!self.plain).then(|| timestamp(text)).flatten() {
            None => self.plain = true,
            Some(Temporal::Date(_)) => self.date = true,
            Some(Temporal::Time { digits, .. }) => {
                self.time = true;
                self.digits_max = self.digits_max.max(digits);
            }
            Some(Temporal::Timestamp {
                digits, is_zoned, ..
            }) => {
                self.zoned |= is_zoned;
                self.local |= !is_zoned;
                self.digits_max = self.digits_max.max(digits);
            }
        }
    }

    fn json_type(self) -> JsonType {
        let unit = match self.digits_max > MICRO_DIGITS {
            true => TimeUnit::Nanosecond,
            false => TimeUnit::Microsecond,
        };
        match (self.plain, self.date, self.time, self.local, self.zoned) {
            (false, true, false, false, false) => JsonType::Date,
            (false, false, true, false, false) => JsonType::Time(unit),
            (false, false, false, true, false) => JsonType::Timestamp(unit, None),
            (false, false, false, false, true) => {
                JsonType::Timestamp(unit, Some(Arc::from("+00:00")))
            }
            _ => JsonType::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_of(records: &[&str]) -> String {
        let mut shape = Shape::default();
        for record in records {
            shape.look(&mut Cursor::new(record, 0), DEPTH_MAX).unwrap();
        }
        shape.json_type(DEPTH_MAX).data_type().to_string()
    }

    #[test]
    fn types_hold_what_was_seen() {
        for (records, expected) in [
            (&["1", "-2"][..], "Int64"),
            (&["1", "18446744073709551615"], "UInt64"),
            (&["-1", "18446744073709551615"], "Decimal128(38, 0)"),
            (&["1", "18446744073709551616"], "Decimal128(38, 0)"),
            (&["-1", "18446744073709551616"], "Decimal128(38, 0)"),
            (&["1.5", "18446744073709551616"], "Float64"),
            (&["100000000000000000000000000000000000000"], "Float64"),
            (&["1", "1.5"], "Float64"),
            (&["1", "NaN"], "Float64"),
            (&["true", "null"], "Boolean"),
            (&["true", "1"], "Utf8"),
            (&["1", "{\"a\":1}"], "Utf8"),
            (&["null"], "Utf8"),
            (&["\"2024-01-31\""], "Date32"),
            (&["\"2024-01-31\"", "\"2024-02-30\""], "Utf8"),
            (&["\"2024-01-31\"", "\"2024-01-31 10:00:00\""], "Utf8"),
            (&["\"2024-01-31 10:00:00.1\""], "Timestamp(µs)"),
            (&["\"2024-01-31 10:00:00.1234567\""], "Timestamp(ns)"),
            (&["\"2024-01-31T10:00:00Z\""], "Timestamp(µs, \"+00:00\")"),
            (&["\"10:00:00\""], "Time64(µs)"),
            (&["{}"], "Utf8"),
            (&["[1]", "[1.5]", "[]"], "List(Float64)"),
        ] {
            assert_eq!(type_of(records), expected, "{records:?}");
        }
    }

    #[test]
    fn fields_come_in_the_order_of_the_file() {
        let kind = type_of(&["{\"to\":1,\"from\":\"x\"}", "{\"a\":1,\"from\":\"y\"}"]);
        let order: Vec<usize> = ["to", "from", "a"]
            .iter()
            .map(|name| kind.find(&format!("\"{name}\"")).unwrap())
            .collect();
        assert!(order.is_sorted(), "{kind}");
    }
}
