//! Columns that JSON values are read into.
//!
//! In: records, one after the other. Out: arrays.
//! Invariant: no value is silently another one. A value that its column does not hold to the last digit, an unknown
//! field and a field that is there twice are errors. They are left out where the user asked for that.
//! Not here: finding records (splitter.rs), files (source.rs).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder,
    Int64Builder, ListArray, PrimitiveArray, StringArray, StringBuilder, StructArray,
    UInt64Builder, new_null_array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, Int64Type, TimeUnit};
use arrow::error::ArrowError;

use super::cursor::{Cursor, Result};
use super::timestamps::{Temporal, in_unit, timestamp};
use super::types::{JsonType, struct_fields};
use crate::blobs::cast_text;

/// Integers up to here are the same as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What happens to values that no column has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// They are errors.
    Strict,
    /// Fields that the table does not know are passed: the user named those that are wanted.
    Named,
    /// They are NULL, and unknown fields are passed.
    Lenient,
}

/// One column.
pub enum Column {
    /// Booleans.
    Boolean(BooleanBuilder),
    /// Integers.
    Integer(Int64Builder),
    /// Unsigned integers.
    Unsigned(UInt64Builder),
    /// Integers of 64 bits with and without a sign.
    Wide(Decimal128Builder),
    /// Doubles.
    Double(Float64Builder),
    /// Strings.
    Text(StringBuilder),
    /// JSON as it is written.
    Json(StringBuilder),
    /// Dates.
    Date(Date32Builder),
    /// Times and timestamps: how many units, which are given their type in the end.
    Temporal(Int64Builder, TimeUnit, DataType),
    /// Objects.
    Object(Box<Object>),
    /// Arrays.
    List(Box<List>),
    /// Text that is cast to a type, and the name of the type.
    Cast(StringBuilder, DataType, String),
}

/// Objects of which some fields are read.
pub struct Object {
    /// The names of all fields that the table knows, and where those that are read have their column.
    names: Vec<(String, Option<usize>)>,
    /// Where a name stands among many; empty where they are few.
    places: HashMap<String, usize>,
    columns: Vec<(Field, Column)>,
    /// The record in which a field was seen last, from 1.
    seen: Vec<usize>,
    rows: usize,
    records: usize,
    nulls: NullBufferBuilder,
    strictness: Strictness,
}

/// Arrays.
pub struct List {
    items: Column,
    item_type: DataType,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    strictness: Strictness,
}

impl Column {
    /// An empty column of this type.
    pub fn new(kind: &JsonType, strictness: Strictness) -> Column {
        match kind {
            JsonType::Boolean => Column::Boolean(BooleanBuilder::new()),
            JsonType::Integer => Column::Integer(Int64Builder::new()),
            JsonType::Unsigned => Column::Unsigned(UInt64Builder::new()),
            JsonType::Wide => {
                Column::Wide(Decimal128Builder::new().with_data_type(kind.data_type()))
            }
            JsonType::Double => Column::Double(Float64Builder::new()),
            JsonType::Text => Column::Text(StringBuilder::new()),
            JsonType::Json => Column::Json(StringBuilder::new()),
            JsonType::Date => Column::Date(Date32Builder::new()),
            JsonType::Time(unit) | JsonType::Timestamp(unit, _) => {
                Column::Temporal(Int64Builder::new(), *unit, kind.data_type())
            }
            JsonType::Struct(fields) => {
                let all: Vec<usize> = (0..fields.len()).collect();
                Column::Object(Box::new(Object::new(fields, &all, strictness)))
            }
            JsonType::List(item) => Column::List(Box::new(List {
                items: Column::new(item, strictness),
                item_type: item.data_type(),
                offsets: vec![0],
                nulls: NullBufferBuilder::new(0),
                strictness,
            })),
            JsonType::Cast(to, name) => {
                Column::Cast(StringBuilder::new(), to.clone(), name.clone())
            }
        }
    }

    fn append_null(&mut self) {
        match self {
            Column::Boolean(values) => values.append_null(),
            Column::Integer(values) | Column::Temporal(values, ..) => values.append_null(),
            Column::Unsigned(values) => values.append_null(),
            Column::Wide(values) => values.append_null(),
            Column::Double(values) => values.append_null(),
            Column::Text(values) | Column::Json(values) | Column::Cast(values, ..) => {
                values.append_null();
            }
            Column::Date(values) => values.append_null(),
            Column::Object(object) => object.append_null(),
            Column::List(list) => list.end_null(),
        }
    }

    /// Takes the next value; `Ok(false)` = it does not fit, nothing was appended, and the value was passed.
    fn append(&mut self, cursor: &mut Cursor<'_>) -> Result<bool> {
        let first = cursor.peek();
        if first == Some(b'n') && cursor.clone().word().is_ok_and(|word| word == "null") {
            cursor.word()?;
            self.append_null();
            return Ok(true);
        }
        match (self, first) {
            (Column::Json(values), _) => values.append_value(cursor.raw()?),
            (Column::Text(values) | Column::Cast(values, ..), Some(b'"')) => {
                values.append_value(cursor.string()?);
            }
            (Column::Text(values) | Column::Cast(values, ..), _) => {
                values.append_value(cursor.raw()?);
            }
            (Column::Object(object), Some(b'{')) => object.append(cursor)?,
            (Column::List(list), Some(b'[')) => list.append(cursor)?,
            (column, Some(b'"')) => return Ok(column.append_string(&cursor.string()?)),
            (_, Some(b'{' | b'[')) => {
                cursor.skip()?;
                return Ok(false);
            }
            (column, _) => return Ok(column.append_word(cursor.word()?)),
        }
        Ok(true)
    }

    /// A string for a column that is not of text.
    fn append_string(&mut self, text: &str) -> bool {
        match (self, timestamp(text)) {
            (Column::Date(values), Some(Temporal::Date(days))) => {
                values.append_value(days);
                true
            }
            (Column::Temporal(values, unit, kind), Some(timestamp)) => {
                let is_zoned_type = matches!(kind, DataType::Timestamp(_, Some(_)));
                let value = match (timestamp, &*kind) {
                    (Temporal::Time { seconds, nanos, .. }, DataType::Time64(_)) => {
                        in_unit(seconds, nanos, *unit)
                    }
                    (
                        Temporal::Timestamp {
                            seconds,
                            nanos,
                            is_zoned,
                            ..
                        },
                        DataType::Timestamp(..),
                    ) if is_zoned == is_zoned_type => in_unit(seconds, nanos, *unit),
                    _ => None,
                };
                if let Some(value) = value {
                    values.append_value(value);
                }
                value.is_some()
            }
            _ => false,
        }
    }

    /// A number or a boolean for a column that is not of text.
    fn append_word(&mut self, word: &str) -> bool {
        match self {
            Column::Integer(values) => match integer(word) {
                Some(value) => values.append_value(value),
                None => return false,
            },
            Column::Double(values) if !matches!(word, "true" | "false") => {
                match word.parse::<f64>() {
                    Ok(value) => values.append_value(value),
                    Err(_) => return false,
                }
            }
            Column::Boolean(values) if matches!(word, "true" | "false") => {
                values.append_value(word == "true");
            }
            Column::Unsigned(values) => match word.parse::<u64>() {
                Ok(value) => values.append_value(value),
                Err(_) => match whole(word).and_then(|value| u64::try_from(value).ok()) {
                    Some(value) => values.append_value(value),
                    None => return false,
                },
            },
            Column::Wide(values) => match wide(word).or_else(|| whole(word).map(i128::from)) {
                Some(value) => values.append_value(value),
                None => return false,
            },
            _ => return false,
        }
        true
    }

    /// Takes the next value or says why not.
    fn append_or_refuse(
        &mut self,
        name: &str,
        strictness: Strictness,
        cursor: &mut Cursor<'_>,
    ) -> Result<()> {
        cursor.peek();
        let start = cursor.clone();
        if self.append(cursor)? {
            return Ok(());
        }
        if strictness == Strictness::Lenient {
            self.append_null();
            return Ok(());
        }
        let value = start.clone().raw()?;
        let shown: String = value.chars().take(SHOWN_CHARS).collect();
        let kind = self.kind_name();
        start.bad(format!(
            "{shown} in column '{name}' is no {kind}, which all values of the sample are; sample_size => -1 looks at all rows before the type is chosen, columns => {{'{name}': 'VARCHAR', …}} chooses it, ignore_errors => true makes it NULL"
        ))
    }

    fn kind_name(&self) -> String {
        let name = match self {
            Column::Boolean(_) => "boolean",
            Column::Integer(_) => "BIGINT",
            Column::Unsigned(_) => "BIGINT UNSIGNED",
            Column::Wide(_) => "integer",
            Column::Double(_) => "number",
            Column::Text(_) | Column::Json(_) => "text",
            Column::Date(_) => "date",
            Column::Temporal(_, _, DataType::Time64(_)) => "TIME",
            Column::Temporal(_, _, DataType::Timestamp(_, Some(_))) => "TIMESTAMP WITH TIME ZONE",
            Column::Temporal(..) => "TIMESTAMP",
            Column::Object(_) => "object",
            Column::List(_) => "array",
            Column::Cast(_, _, name) => name,
        };
        name.to_string()
    }

    fn finish(&mut self) -> std::result::Result<ArrayRef, ArrowError> {
        Ok(match self {
            Column::Boolean(values) => Arc::new(values.finish()),
            Column::Integer(values) => Arc::new(values.finish()),
            Column::Unsigned(values) => Arc::new(values.finish()),
            Column::Wide(values) => Arc::new(values.finish()),
            Column::Double(values) => Arc::new(values.finish()),
            Column::Text(values) | Column::Json(values) => Arc::new(values.finish()),
            Column::Date(values) => Arc::new(values.finish()),
            Column::Temporal(values, _, kind) => {
                let values: PrimitiveArray<Int64Type> = values.finish();
                cast(&values, kind)?
            }
            Column::Object(object) => {
                let (rows, nulls) = (object.rows, object.nulls.finish());
                let (fields, arrays) = object.finish()?;
                Arc::new(StructArray::try_new_with_length(
                    fields, arrays, nulls, rows,
                )?)
            }
            Column::List(list) => list.finish()?,
            Column::Cast(values, kind, name) => cast_all(&values.finish(), kind, name)?,
        })
    }
}

/// The strings as values of a type.
fn cast_all(
    strings: &StringArray,
    kind: &DataType,
    name: &str,
) -> std::result::Result<ArrayRef, ArrowError> {
    let values = cast_text(strings, kind)?;
    let mut rows = 0..strings.len();
    match rows.find(|&row| values.is_null(row) && strings.is_valid(row)) {
        None => Ok(values),
        Some(row) => {
            let shown: String = strings.value(row).chars().take(SHOWN_CHARS).collect();
            Err(ArrowError::CastError(format!("'{shown}' is no {name}")))
        }
    }
}

/// Fields among which a name is searched one by one.
const SEARCHED_MAX: usize = 16;

/// Characters of a value that an error shows.
const SHOWN_CHARS: usize = 60;

/// An integer, also one that is written as `1.0` or `1e3`.
fn integer(word: &str) -> Option<i64> {
    word.parse().ok().or_else(|| whole(word))
}

/// An integer that a decimal of the most digits holds.
pub(super) fn wide(word: &str) -> Option<i128> {
    let value: i128 = word.parse().ok()?;
    let digits = u32::from(DECIMAL128_MAX_PRECISION);
    (value.unsigned_abs() < 10u128.pow(digits)).then_some(value)
}

fn whole(word: &str) -> Option<i64> {
    let value: f64 = word.parse().ok()?;
    // The cast of a whole number in these bounds is exact.
    (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
}

impl Object {
    /// Objects with these fields, of which those at `wanted` are read, in that order.
    pub fn new(fields: &[(String, JsonType)], wanted: &[usize], strictness: Strictness) -> Object {
        let mut names: Vec<(String, Option<usize>)> = fields
            .iter()
            .map(|(name, _)| (name.clone(), None))
            .collect();
        let typed = struct_fields(fields);
        let mut columns = Vec::with_capacity(wanted.len());
        for (place, &field) in wanted.iter().enumerate() {
            names[field].1 = Some(place);
            let column = Column::new(&fields[field].1, strictness);
            columns.push((typed[field].as_ref().clone(), column));
        }
        let places = match names.len() > SEARCHED_MAX {
            true => (names.iter().enumerate())
                .map(|(place, (name, _))| (name.clone(), place))
                .collect(),
            false => HashMap::new(),
        };
        Object {
            seen: vec![0; names.len()],
            names,
            places,
            columns,
            rows: 0,
            records: 0,
            nulls: NullBufferBuilder::new(0),
            strictness,
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One more row, which is NULL in all columns.
    pub fn append_null(&mut self) {
        for (_, column) in &mut self.columns {
            column.append_null();
        }
        self.nulls.append_null();
        self.rows += 1;
    }

    /// Takes an object, whose `{` is next.
    pub fn append(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.records += 1;
        let (record, mut expected) = (self.records, 0);
        let Object {
            names,
            places,
            columns,
            seen,
            strictness,
            ..
        } = self;
        let strictness = *strictness;
        cursor.object(|name, value| {
            // Mostly the fields of all records come in the same order.
            let found = match names.get(expected) {
                Some((next, _)) if next == name => Some(expected),
                _ if places.is_empty() => names.iter().position(|(known, _)| known == name),
                _ => places.get(name).copied(),
            };
            let Some(found) = found else {
                return unknown(name, strictness, value);
            };
            expected = found + 1;
            if std::mem::replace(&mut seen[found], record) == record {
                if strictness == Strictness::Lenient {
                    return value.skip();
                }
                return value.bad(format!("the record has two fields '{name}'"));
            }
            match names[found].1 {
                Some(place) => columns[place].1.append_or_refuse(name, strictness, value),
                None => value.skip(),
            }
        })?;
        for ((_, place), seen) in self.names.iter().zip(&self.seen) {
            if let Some(place) = place
                && *seen != record
            {
                self.columns[*place].1.append_null();
            }
        }
        self.nulls.append_non_null();
        self.rows += 1;
        Ok(())
    }

    /// Takes a value of any kind as the only field.
    pub fn append_value(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        for (field, column) in &mut self.columns {
            column.append_or_refuse(field.name(), self.strictness, &mut cursor.clone())?;
        }
        self.rows += 1;
        cursor.skip()
    }

    /// The columns, which begin anew.
    pub fn finish(&mut self) -> std::result::Result<(Fields, Vec<ArrayRef>), ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.nulls = NullBufferBuilder::new(0);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (field, column) in &mut self.columns {
            let array = column
                .finish()
                .map_err(|error| named(&error, field.name()))?;
            debug_assert_eq!(array.len(), rows, "{}", field.name());
            arrays.push(array);
        }
        let fields = self.columns.iter().map(|(field, _)| field.clone());
        Ok((fields.collect(), arrays))
    }
}

fn named(error: &ArrowError, name: &str) -> ArrowError {
    let message = match error {
        ArrowError::CastError(text) | ArrowError::ParseError(text) => text.clone(),
        other => other.to_string(),
    };
    ArrowError::JsonError(format!("in column '{name}': {message}"))
}

fn unknown(name: &str, strictness: Strictness, value: &mut Cursor<'_>) -> Result<()> {
    match strictness {
        Strictness::Strict => value.bad(format!(
            "the record has a field '{name}', which no record of the sample has; sample_size => -1 looks at all rows before the columns are chosen, columns => {{…}} chooses them, ignore_errors => true leaves it out"
        )),
        Strictness::Named | Strictness::Lenient => value.skip(),
    }
}

impl List {
    fn append(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let (items, strictness) = (&mut self.items, self.strictness);
        let mut count = 0;
        cursor.array(|value| {
            count += 1;
            items.append_or_refuse("[]", strictness, value)
        })?;
        self.end(count, cursor)?;
        self.nulls.append_non_null();
        Ok(())
    }

    fn end(&mut self, count: i32, cursor: &Cursor<'_>) -> Result<()> {
        let last = self.offsets.last().copied().unwrap_or_default();
        match last.checked_add(count) {
            Some(end) => self.offsets.push(end),
            None => return cursor.bad("more elements than a list column holds"),
        }
        Ok(())
    }

    fn end_null(&mut self) {
        self.offsets
            .push(self.offsets.last().copied().unwrap_or_default());
        self.nulls.append_null();
    }

    fn finish(&mut self) -> std::result::Result<ArrayRef, ArrowError> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let nulls = self.nulls.finish();
        let items = match offsets.last() {
            Some(0) => new_null_array(&self.item_type, 0),
            _ => self.items.finish()?,
        };
        let field = Arc::new(Field::new_list_field(self.item_type.clone(), true));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
    }
}
