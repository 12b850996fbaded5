//! One value of an answer, the same for every engine.
//!
//! In: Arrow arrays, or the text that `duck.py` writes. Out: [`Cell`] with approximate and exact comparison.
//! Invariant: equal SQL values are equal cells, whatever type an engine chose for them (Int32 or Int64, Utf8 or a dictionary,
//! date or timestamp at midnight, decimals of any scale).
//! Not here: rows and whole answers (answer.rs).

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray, types::*};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Floats that differ by no more than this share are the same: sums depend on the order of addition.
pub const FLOAT_TOLERANCE: f64 = 1e-9;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any integer.
    Int(i128),
    /// A decimal: digits and scale, the scale as small as the digits allow.
    Decimal(i128, i8),
    /// A float of any width.
    Float(f64),
    /// Text, and what has no kind of its own here.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A date or a timestamp, in microseconds since 1970.
    Micros(i128),
    /// A list.
    List(Vec<Cell>),
    /// A struct, without names.
    Row(Vec<Cell>),
}

impl Cell {
    /// Bytes that are UTF-8 are text: the session reads BINARY columns as strings, the peers do not.
    fn of_bytes(bytes: Vec<u8>) -> Cell {
        String::from_utf8(bytes).map_or_else(|error| Cell::Bytes(error.into_bytes()), Cell::Text)
    }

    /// The value at `row`.
    pub fn of(array: &ArrayRef, row: usize) -> Cell {
        if array.is_null(row) || array.data_type() == &DataType::Null {
            return Cell::Null;
        }
        match array.data_type() {
            DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_string()),
            DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).to_string()),
            DataType::Utf8View => Cell::Text(array.as_string_view().value(row).to_string()),
            DataType::Binary => Cell::of_bytes(array.as_binary::<i32>().value(row).to_vec()),
            DataType::LargeBinary => Cell::of_bytes(array.as_binary::<i64>().value(row).to_vec()),
            DataType::BinaryView => Cell::of_bytes(array.as_binary_view().value(row).to_vec()),
            DataType::List(_) => list(array.as_list::<i32>().value(row)),
            DataType::LargeList(_) => list(array.as_list::<i64>().value(row)),
            DataType::Struct(_) => Cell::Row(
                array
                    .as_struct()
                    .columns()
                    .iter()
                    .map(|column| Cell::of(column, row))
                    .collect(),
            ),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                Cell::of(dictionary.values(), dictionary.normalized_keys()[row])
            }
            _ => primitive(array, row),
        }
    }

    /// The value that `duck.py` wrote at the start of `text`; what follows it is left there.
    pub fn parse(text: &mut &str) -> Cell {
        let kind = text.chars().next().expect("a cell");
        *text = &text[1..];
        match kind {
            '[' => Cell::List(parse_items(text, ']')),
            '{' => Cell::Row(parse_items(text, '}')),
            kind => {
                let end = text.find([',', ']', '}', ' ']).unwrap_or(text.len());
                let (body, rest) = text.split_at(end);
                *text = rest;
                match kind {
                    'n' => Cell::Null,
                    'b' => Cell::Bool(body == "1"),
                    'i' => Cell::Int(body.parse().expect("an integer")),
                    'd' => decimal_of(body),
                    'f' => Cell::Float(body.parse().expect("a float")),
                    's' => Cell::Text(String::from_utf8(unhex(body)).expect("UTF-8")),
                    'x' => Cell::of_bytes(unhex(body)),
                    't' => Cell::Micros(body.parse().expect("microseconds")),
                    other => panic!("duck.py wrote a cell of kind {other:?}"),
                }
            }
        }
    }

    /// Whether the value, or a value in it, is a float.
    pub fn has_float(&self) -> bool {
        match self {
            Cell::Float(_) => true,
            Cell::List(items) | Cell::Row(items) => items.iter().any(Cell::has_float),
            _ => false,
        }
    }

    /// A text that is equal exactly for equal values without floats.
    pub fn exact_key(&self, key: &mut String) {
        match self {
            Cell::Int(value) => write!(key, "{value}"),
            Cell::Decimal(digits, 0) => write!(key, "{digits}"),
            other => write!(key, "{other:?}"),
        }
        .expect("a string takes all");
        key.push('\u{1f}');
    }

    /// Equal, floats approximately; numbers of different kinds are compared as numbers.
    pub fn is_like(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::List(left), Cell::List(right)) | (Cell::Row(left), Cell::Row(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.is_like(right))
            }
            (Cell::Int(left), Cell::Decimal(right, 0))
            | (Cell::Decimal(left, 0), Cell::Int(right)) => left == right,
            (Cell::Decimal(..), Cell::Decimal(..)) => self == other,
            _ => match (self.number(), other.number()) {
                (Some(left), Some(right)) if self.has_float() || other.has_float() => {
                    floats_alike(left, right)
                }
                _ => self == other,
            },
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Cell::Int(value) => Some(*value as f64),
            Cell::Decimal(digits, scale) => Some(*digits as f64 / 10f64.powi(i32::from(*scale))),
            Cell::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// Equal within [`FLOAT_TOLERANCE`], which is absolute below 1.
fn floats_alike(left: f64, right: f64) -> bool {
    let tolerance = FLOAT_TOLERANCE * left.abs().max(right.abs()).max(1.0);
    // An infinite tolerance would make everything like infinity.
    left == right
        || (left.is_nan() && right.is_nan())
        || (tolerance.is_finite() && (left - right).abs() <= tolerance)
}

fn list(items: ArrayRef) -> Cell {
    Cell::List((0..items.len()).map(|row| Cell::of(&items, row)).collect())
}

fn decimal(mut digits: i128, mut scale: i8) -> Cell {
    while scale > 0 && digits % 10 == 0 {
        digits /= 10;
        scale -= 1;
    }
    Cell::Decimal(digits, scale)
}

fn decimal_of(text: &str) -> Cell {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    match format!("{whole}{fraction}").parse() {
        Ok(digits) => decimal(digits, fraction.len() as i8),
        Err(_) => Cell::Float(text.parse().expect("a number")),
    }
}

fn micros(value: i64, unit: &TimeUnit) -> Cell {
    let value = i128::from(value);
    Cell::Micros(match unit {
        TimeUnit::Second => value * 1_000_000,
        TimeUnit::Millisecond => value * 1_000,
        TimeUnit::Microsecond => value,
        TimeUnit::Nanosecond => value.div_euclid(1_000),
    })
}

fn primitive(array: &ArrayRef, row: usize) -> Cell {
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    match array.data_type() {
        DataType::Int8 => Cell::Int(value!(Int8Type).into()),
        DataType::Int16 => Cell::Int(value!(Int16Type).into()),
        DataType::Int32 => Cell::Int(value!(Int32Type).into()),
        DataType::Int64 => Cell::Int(value!(Int64Type).into()),
        DataType::UInt8 => Cell::Int(value!(UInt8Type).into()),
        DataType::UInt16 => Cell::Int(value!(UInt16Type).into()),
        DataType::UInt32 => Cell::Int(value!(UInt32Type).into()),
        DataType::UInt64 => Cell::Int(value!(UInt64Type).into()),
        DataType::Float32 => Cell::Float(value!(Float32Type).into()),
        DataType::Float64 => Cell::Float(value!(Float64Type)),
        DataType::Decimal128(_, scale) => decimal(value!(Decimal128Type), *scale),
        DataType::Date32 => Cell::Micros(i128::from(value!(Date32Type)) * 86_400_000_000),
        DataType::Timestamp(unit, _) => micros(
            match unit {
                TimeUnit::Second => value!(TimestampSecondType),
                TimeUnit::Millisecond => value!(TimestampMillisecondType),
                TimeUnit::Microsecond => value!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => value!(TimestampNanosecondType),
            },
            unit,
        ),
        kind => {
            let options = FormatOptions::default();
            let text = ArrayFormatter::try_new(array, &options)
                .expect("a printable type")
                .value(row)
                .to_string();
            if kind.is_decimal() {
                decimal_of(&text)
            } else {
                Cell::Text(text)
            }
        }
    }
}

fn parse_items(text: &mut &str, end: char) -> Vec<Cell> {
    let mut items = Vec::new();
    while !text.starts_with(end) {
        items.push(Cell::parse(text));
        *text = text.strip_prefix(',').unwrap_or(text);
    }
    *text = &text[1..];
    items
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_duck_py_writes() {
        let mut text = "[i1,n,{s6869,d1.50}] f0.1";
        assert_eq!(
            Cell::parse(&mut text),
            Cell::List(vec![
                Cell::Int(1),
                Cell::Null,
                Cell::Row(vec![Cell::Text("hi".to_string()), Cell::Decimal(15, 1)])
            ])
        );
        assert_eq!(text, " f0.1");
    }

    #[test]
    fn numbers_of_different_kinds() {
        assert!(Cell::Int(3).is_like(&Cell::Decimal(3, 0)));
        assert!(Cell::Int(3).is_like(&Cell::Float(3.0 + 1e-12)));
        assert!(!Cell::Float(3.0).is_like(&Cell::Float(3.0 + 1e-6)));
        assert!(!Cell::Int(3).is_like(&Cell::Int(4)));
        assert!(!Cell::Null.is_like(&Cell::Float(0.0)));
        assert!(Cell::Float(f64::NAN).is_like(&Cell::Float(f64::NAN)));
        assert!(!Cell::Float(f64::INFINITY).is_like(&Cell::Float(1.0)));
        assert!(!Cell::Float(f64::INFINITY).is_like(&Cell::Float(f64::NEG_INFINITY)));
    }
}
