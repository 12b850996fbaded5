//! Columns: fields of one column as an Arrow array.
//!
//! In: a table of fields, a column's type and the forms of its values.
//! Out: an array, and the rows whose text is no value of the type.
//! Invariant: such a row is NULL in the array and never unnoticed: who asks decides whether it fails or leaves the row out.
//! Not here: what a text means (values.rs).

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::builder::{PrimitiveBuilder, StringBuilder};
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, BooleanBuilder, NullArray, StringArray,
};
use arrow::compute::kernels::cast_utils::parse_decimal;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use super::grammar::Grammar;
use super::records::Table;
use super::values::{self, DateForm};
use crate::blobs::cast_text;

/// How the values of a file are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forms {
    /// Strings that are NULL.
    pub nulls: Vec<String>,
    /// Before the fraction of a number.
    pub decimal: u8,
    /// How dates and timestamps are written where the query says so.
    pub date: Option<DateForm>,
    /// How timestamps are written; without it, as in ISO 8601.
    pub timestamp: Option<DateForm>,
}

impl Default for Forms {
    fn default() -> Forms {
        Forms {
            nulls: vec![String::new()],
            decimal: b'.',
            date: None,
            timestamp: None,
        }
    }
}

impl Forms {
    /// Whether an unquoted field stands for NULL.
    pub fn is_null(&self, text: &str) -> bool {
        match self.nulls.as_slice() {
            [one] => one == text,
            many => many.iter().any(|null| null == text),
        }
    }
}

/// One column of a table.
pub struct Cells<'a> {
    /// The records.
    pub table: &'a Table,
    /// The place of the column among the fields that are kept.
    pub slot: usize,
    /// The text that the records point into.
    pub text: &'a str,
    /// How it is written.
    pub grammar: &'a Grammar,
    /// How values are written.
    pub forms: &'a Forms,
}

impl<'a> Cells<'a> {
    /// The text of a row; `None` = NULL.
    pub fn text(&self, row: usize) -> Option<Cow<'a, str>> {
        let value = self.table.value(row, self.slot, self.text, self.grammar);
        value.filter(|value| !self.forms.is_null(value))
    }
}

/// An array and the rows that are no values.
pub type Built = (ArrayRef, Vec<usize>);

/// The array of a column.
pub fn built(cells: &Cells<'_>, kind: &DataType, date: &DateForm) -> Result<Built, ArrowError> {
    let decimal = cells.forms.decimal;
    let timestamp = |unit| move |text: &str| values::in_unit(values::timestamp(text, date)?, unit);
    Ok(match kind {
        DataType::Utf8 => strings(cells),
        DataType::Boolean => booleans(cells),
        DataType::Int8 => integers::<Int8Type>(cells),
        DataType::Int16 => integers::<Int16Type>(cells),
        DataType::Int32 => integers::<Int32Type>(cells),
        DataType::Int64 => primitives::<Int64Type>(cells, kind, values::integer),
        DataType::UInt8 => integers::<UInt8Type>(cells),
        DataType::UInt16 => integers::<UInt16Type>(cells),
        DataType::UInt32 => integers::<UInt32Type>(cells),
        DataType::UInt64 => primitives::<UInt64Type>(cells, kind, |text| {
            u64::try_from(values::wide_integer(text)?).ok()
        }),
        DataType::Float32 => primitives::<Float32Type>(cells, kind, |text| {
            values::with_point(text, decimal)?.parse().ok()
        }),
        DataType::Float64 => {
            primitives::<Float64Type>(cells, kind, |text| values::double(text, decimal))
        }
        DataType::Decimal128(precision, scale) => {
            primitives::<Decimal128Type>(cells, kind, |text| {
                let text = values::with_point(text, decimal)?;
                parse_decimal::<Decimal128Type>(&text, *precision, *scale).ok()
            })
        }
        DataType::Date32 => primitives::<Date32Type>(cells, kind, |text| values::date(text, date)),
        DataType::Time64(TimeUnit::Nanosecond) => {
            primitives::<Time64NanosecondType>(cells, kind, values::time)
        }
        DataType::Time64(unit) => primitives::<Time64MicrosecondType>(cells, kind, |text| {
            values::time_in_unit(values::time(text)?, *unit)
        }),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => primitives::<TimestampSecondType>(cells, kind, timestamp(*unit)),
            TimeUnit::Millisecond => {
                primitives::<TimestampMillisecondType>(cells, kind, timestamp(*unit))
            }
            TimeUnit::Microsecond => {
                primitives::<TimestampMicrosecondType>(cells, kind, timestamp(*unit))
            }
            TimeUnit::Nanosecond => {
                primitives::<TimestampNanosecondType>(cells, kind, timestamp(*unit))
            }
        },
        DataType::Null => (Arc::new(NullArray::new(cells.table.rows())), Vec::new()),
        other => cast(cells, other)?,
    })
}

fn strings(cells: &Cells<'_>) -> Built {
    let rows = cells.table.rows();
    let mut builder = StringBuilder::with_capacity(rows, rows * 8);
    for row in 0..rows {
        builder.append_option(cells.text(row));
    }
    (Arc::new(builder.finish()), Vec::new())
}

fn booleans(cells: &Cells<'_>) -> Built {
    let rows = cells.table.rows();
    let (mut builder, mut bad) = (BooleanBuilder::with_capacity(rows), Vec::new());
    for row in 0..rows {
        let text = cells.text(row);
        let value = text.as_deref().and_then(values::boolean);
        if text.is_some() && value.is_none() {
            bad.push(row);
        }
        builder.append_option(value);
    }
    (Arc::new(builder.finish()), bad)
}

fn integers<T>(cells: &Cells<'_>) -> Built
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64>,
{
    primitives::<T>(cells, &T::DATA_TYPE, |text| {
        T::Native::try_from(values::integer(text)?).ok()
    })
}

fn primitives<T: ArrowPrimitiveType>(
    cells: &Cells<'_>,
    kind: &DataType,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Built {
    let rows = cells.table.rows();
    let mut builder = PrimitiveBuilder::<T>::with_capacity(rows).with_data_type(kind.clone());
    let mut bad = Vec::new();
    for row in 0..rows {
        let text = cells.text(row);
        let value = text.as_deref().and_then(&parse);
        if text.is_some() && value.is_none() {
            bad.push(row);
        }
        builder.append_option(value);
    }
    (Arc::new(builder.finish()), bad)
}

/// A type that has no loop of its own is what a cast of the text says.
fn cast(cells: &Cells<'_>, kind: &DataType) -> Result<Built, ArrowError> {
    let rows = 0..cells.table.rows();
    let strings: StringArray = rows.clone().map(|row| cells.text(row)).collect();
    let values = cast_text(&strings, kind)?;
    let bad = rows.filter(|row| strings.is_valid(*row) && values.is_null(*row));
    let bad = bad.collect();
    Ok((values, bad))
}

/// The rows that are in none of the lists.
pub fn good_rows(rows: usize, bad: &[usize]) -> BooleanArray {
    let mut good = vec![true; rows];
    for row in bad {
        good[*row] = false;
    }
    BooleanArray::from(good)
}
