//! Values as SQL literals.
//! In: the columns of a batch. Out: the literal of one value after the other.
//! Invariant: the engine reads a literal as the value that it was written for. Strings double their quotes, times and intervals name
//! their type, bytes are `X'…'`. Long decimals and floats that no digits stand for are casts. Nested values are `[…]`, `{…}`, `MAP {…}`.
//! Not here: text for people and for other formats (cells.rs).

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use grouse::type_name;

use super::PrintError;

/// Digits that a double holds: a decimal of more would lose some on its way through one.
const DIGITS_OF_DOUBLE: u8 = 15;

/// A column with its values in the form that literals are made of.
pub struct LiteralColumn {
    values: ArrayRef,
    /// The type before: a timestamp is a string in `values`.
    data_type: DataType,
}

impl LiteralColumn {
    /// The columns of `batch`.
    pub fn columns(batch: &RecordBatch) -> Result<Vec<LiteralColumn>, PrintError> {
        let columns = batch.columns().iter().map(|column| {
            let flat = match column.data_type() {
                DataType::RunEndEncoded(_, values) => cast(column, values.data_type())?,
                DataType::Dictionary(_, values) => cast(column, values)?,
                _ => column.clone(),
            };
            let values =
                grouse::written(&flat).map_err(|error| ArrowError::ExternalError(error.into()))?;
            let data_type = flat.data_type().clone();
            Ok(LiteralColumn { values, data_type })
        });
        Ok(columns.collect::<Result<_, ArrowError>>()?)
    }

    /// The writer of its literals, made once per batch.
    pub fn literals(&self) -> Result<Literals<'_>, PrintError> {
        Ok(Literals::new(self.values.as_ref(), &self.data_type)?)
    }
}

/// Writes the literals of a column.
pub struct Literals<'a> {
    nulls: Option<NullBuffer>,
    form: LiteralForm<'a>,
}

enum LiteralForm<'a> {
    /// The text is the literal.
    Plain(ArrayFormatter<'a>),
    /// Digits where there are any, else a cast to this type.
    Float(ArrayFormatter<'a>, String),
    /// The text in quotes, between these two.
    Quoted(String, ArrayFormatter<'a>, String),
    List(OffsetBuffer<i32>, Box<Literals<'a>>),
    Struct(Vec<(&'a str, Literals<'a>)>),
    Map(OffsetBuffer<i32>, Box<[Literals<'a>; 2]>),
}

impl<'a> Literals<'a> {
    /// For `array`, whose values were of `data_type`.
    fn new(array: &'a dyn Array, data_type: &DataType) -> Result<Self, ArrowError> {
        let nulls = array.logical_nulls();
        let form = match (array.data_type(), data_type) {
            (DataType::List(_), _) => LiteralForm::list(array, data_type)?,
            (DataType::Struct(_), DataType::Struct(fields)) => {
                let array = array.as_struct();
                let names = array.column_names().into_iter();
                let columns = names.zip(array.columns()).zip(fields);
                let columns = columns.map(|((name, column), field)| {
                    Ok((name, Literals::new(column, field.data_type())?))
                });
                LiteralForm::Struct(columns.collect::<Result<_, ArrowError>>()?)
            }
            (DataType::Map(..), DataType::Map(entries, _)) => {
                let array = array.as_map();
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(ArrowError::SchemaError("a map without entries".to_owned()));
                };
                let keys = Literals::new(array.keys(), fields[0].data_type())?;
                let values = Literals::new(array.values(), fields[1].data_type())?;
                LiteralForm::Map(array.offsets().clone(), [keys, values].into())
            }
            _ => LiteralForm::scalar(array, data_type)?,
        };
        Ok(Literals { nulls, form })
    }

    /// Appends the literal of a value.
    pub fn push(&self, row: usize, sql: &mut String) -> Result<(), PrintError> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            sql.push_str("NULL");
            return Ok(());
        }
        match &self.form {
            LiteralForm::Plain(text) => text.value(row).write(sql)?,
            LiteralForm::Float(text, type_name) => {
                let text = text.value(row).to_string();
                match text.ends_with(|c: char| c.is_ascii_digit()) {
                    true => sql.push_str(&text),
                    false => {
                        let _ = write!(sql, "CAST('{text}' AS {type_name})");
                    }
                }
            }
            LiteralForm::Quoted(before, text, after) => {
                sql.push_str(before);
                push_quoted(&text.value(row).try_to_string()?, '\'', sql);
                sql.push_str(after);
            }
            LiteralForm::List(offsets, items) => {
                sql.push('[');
                for (nth, item) in range(offsets, row).enumerate() {
                    separate(nth, sql);
                    items.push(item, sql)?;
                }
                sql.push(']');
            }
            LiteralForm::Struct(fields) => {
                sql.push('{');
                for (nth, (name, values)) in fields.iter().enumerate() {
                    separate(nth, sql);
                    push_quoted(name, '\'', sql);
                    sql.push_str(": ");
                    values.push(row, sql)?;
                }
                sql.push('}');
            }
            LiteralForm::Map(offsets, entries) => {
                let [keys, values] = entries.as_ref();
                sql.push_str("MAP {");
                for (nth, entry) in range(offsets, row).enumerate() {
                    separate(nth, sql);
                    keys.push(entry, sql)?;
                    sql.push_str(": ");
                    values.push(entry, sql)?;
                }
                sql.push('}');
            }
        }
        Ok(())
    }
}

impl<'a> LiteralForm<'a> {
    fn list(array: &'a dyn Array, data_type: &DataType) -> Result<Self, ArrowError> {
        use DataType::{FixedSizeList, LargeList, List, ListView};
        let array = array.as_list::<i32>();
        let item = match data_type {
            List(item) | LargeList(item) | FixedSizeList(item, _) | ListView(item) => {
                item.data_type().clone()
            }
            _ => array.value_type(),
        };
        let items = Literals::new(array.values().as_ref(), &item)?;
        Ok(LiteralForm::List(array.offsets().clone(), items.into()))
    }

    fn scalar(array: &'a dyn Array, data_type: &DataType) -> Result<Self, ArrowError> {
        use DataType::*;
        let text = ArrayFormatter::try_new(array, &FormatOptions::new().with_display_error(false))?;
        let typed = |name: &str, text| LiteralForm::Quoted(format!("{name} "), text, String::new());
        Ok(match data_type {
            Boolean | Null => LiteralForm::Plain(text),
            other if other.is_integer() => LiteralForm::Plain(text),
            Float16 | Float32 | Float64 => LiteralForm::Float(text, type_name(data_type)),
            Decimal32(digits, _)
            | Decimal64(digits, _)
            | Decimal128(digits, _)
            | Decimal256(digits, _) => match *digits <= DIGITS_OF_DOUBLE {
                true => LiteralForm::Plain(text),
                false => LiteralForm::Quoted(
                    "CAST(".to_owned(),
                    text,
                    format!(" AS {})", type_name(data_type)),
                ),
            },
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => {
                LiteralForm::Quoted("X".to_owned(), text, String::new())
            }
            Date32 | Date64 => typed("DATE", text),
            Time32(_) | Time64(_) => typed("TIME", text),
            Timestamp(_, None) => typed("TIMESTAMP", text),
            Timestamp(_, Some(_)) => typed("TIMESTAMP WITH TIME ZONE", text),
            Interval(_) | Duration(_) => typed("INTERVAL", text),
            Dictionary(_, values) => return LiteralForm::scalar(array, values),
            _ => LiteralForm::Quoted(String::new(), text, String::new()),
        })
    }
}

/// `", "` before all but the first.
fn separate(nth: usize, sql: &mut String) {
    if nth > 0 {
        sql.push_str(", ");
    }
}

fn range(offsets: &OffsetBuffer<i32>, row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Appends `text` in quotes, with those within it doubled.
pub fn push_quoted(text: &str, quote: char, sql: &mut String) {
    sql.push(quote);
    for c in text.chars() {
        if c == quote {
            sql.push(quote);
        }
        sql.push(c);
    }
    sql.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
        ListArray, StringArray, StructArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Int32Type};

    #[track_caller]
    fn check(array: ArrayRef, expected: &[&str]) {
        let rows = array.len();
        let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let columns = LiteralColumn::columns(&batch).unwrap();
        let literals = columns[0].literals().unwrap();
        let found: Vec<String> = (0..rows)
            .map(|row| {
                let mut sql = String::new();
                literals.push(row, &mut sql).unwrap();
                sql
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn scalars() {
        check(
            Arc::new(Int64Array::from(vec![Some(-1), None])),
            &["-1", "NULL"],
        );
        check(Arc::new(BooleanArray::from(vec![true])), &["true"]);
        check(Arc::new(StringArray::from(vec!["it's"])), &["'it''s'"]);
        check(
            Arc::new(Float64Array::from(vec![
                0.5,
                1e300,
                f64::NAN,
                f64::NEG_INFINITY,
            ])),
            &[
                "0.5",
                "1e300",
                "CAST('NaN' AS DOUBLE)",
                "CAST('-inf' AS DOUBLE)",
            ],
        );
        check(
            Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\x00a")])),
            &["X'0061'"],
        );
        check(Arc::new(Date32Array::from(vec![1])), &["DATE '1970-01-02'"]);
        check(
            Arc::new(TimestampMicrosecondArray::from(vec![1_500_000])),
            &["TIMESTAMP '1970-01-01 00:00:01.5'"],
        );
    }

    #[test]
    fn decimals_keep_their_digits() {
        let decimals = |digits| {
            let values = Decimal128Array::from(vec![-1234]);
            Arc::new(values.with_precision_and_scale(digits, 2).unwrap())
        };
        check(decimals(10), &["-12.34"]);
        check(decimals(20), &["CAST('-12.34' AS DECIMAL(20,2))"]);
    }

    #[test]
    fn nested_values() {
        let rows = vec![Some(vec![Some(1), None]), None, Some(vec![])];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(rows);
        check(Arc::new(lists), &["[1, NULL]", "NULL", "[]"]);
        let field = Arc::new(Field::new("it's", DataType::Date32, true));
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![0]));
        check(
            Arc::new(StructArray::from(vec![(field, dates)])),
            &["{'it''s': DATE '1970-01-01'}"],
        );
    }
}
