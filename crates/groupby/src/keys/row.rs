//! Keys of any types as one byte string per row, without the bytes that a value does not need.
//!
//! ```text
//! numbers of up to 8 bytes | numbers of 16 bytes | byte strings | sizes (4 bits a column)
//! ```
//!
//! In: key columns. Out: views into one buffer per batch.
//! Invariant: equal keys have equal bytes; a number is as short as its value, a NULL has no bytes.
//! Columns that are neither of fixed width nor byte strings (nested types, 256-bit decimals) go
//! through Arrow's row format, NULLs too, and are one byte string each.
//! Not here: tables, keys that can be packed (`packed`), one string (`bytes`).

mod decode;
mod nested;
mod numbers;

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{DataType, FieldRef};
use arrow::row::{RowConverter, SortField};

use super::ByteKeys;
use super::bytes;
use super::columns::{fixed_width, is_bytes};
use super::views::{is_long, long_bytes, view};
use crate::error::{Error, Result};

pub use nested::{canonical_values, has_floats, has_forms, has_interval_forms};

/// Rows encoded at a time: their numbers stay in the core's own cache.
const TILE_ROWS: usize = 1024;
/// The size of a NULL.
const NULL: u64 = 15;
/// Sizes of byte strings: up to this, they are lengths.
const SHORT_MAX: u64 = 12;
/// The size of a byte string whose length is a byte in front of it.
const LENGTH_1: u64 = 13;
/// The size of a byte string whose length is four bytes in front of it.
const LENGTH_4: u64 = 14;
/// The size of a number of more than 8 bytes, which takes 16.
const WHOLE: u64 = 9;
/// Bits of one size.
const SIZE_BITS: u32 = 4;
/// Bytes of the longest length in front of a byte string.
const LENGTH_BYTES_MAX: usize = 4;
/// Numbers and short strings are written whole; what follows them in the row overwrites the rest.
const SLACK_BYTES: usize = 16;

/// How the columns of a row lie in its bytes.
#[derive(Debug)]
pub struct RowLayout {
    /// In the order of the row.
    places: Vec<RowColumn>,
    /// Of the places, the first are numbers of up to 8 bytes.
    numbers: usize,
    /// The next are numbers of 16 bytes.
    wides: usize,
}

#[derive(Debug)]
struct RowColumn {
    /// Which key column this is.
    column: usize,
    data_type: DataType,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// A number of up to 8 bytes.
    Number,
    /// A number of 16 bytes.
    Wide,
    /// A byte string.
    Bytes,
    /// A byte string in Arrow's row format.
    Nested(RowConverter),
}

impl RowLayout {
    /// Fails for types that Arrow's row format does not know.
    pub fn new(fields: &[FieldRef]) -> Result<Self> {
        let place = |(column, field): (usize, &FieldRef)| {
            let data_type = field.data_type().clone();
            let form = match fixed_width(&data_type) {
                Some(16) => Form::Wide,
                Some(_) => Form::Number,
                None if is_bytes(&data_type) => Form::Bytes,
                None => Form::Nested(RowConverter::new(vec![SortField::new(data_type.clone())])?),
            };
            Ok(RowColumn {
                column,
                data_type,
                form,
            })
        };
        let mut places: Vec<RowColumn> = fields
            .iter()
            .enumerate()
            .map(place)
            .collect::<Result<_>>()?;
        places.sort_by_key(|place| match place.form {
            Form::Number => 0,
            Form::Wide => 1,
            Form::Bytes | Form::Nested(_) => 2,
        });
        let count = |is: fn(&Form) -> bool| places.iter().filter(|place| is(&place.form)).count();
        Ok(Self {
            numbers: count(|form| matches!(form, Form::Number)),
            wides: count(|form| matches!(form, Form::Wide)),
            places,
        })
    }

    /// Bytes of the sizes of a row.
    fn sizes_bytes(&self) -> usize {
        self.places.len().div_ceil(2)
    }

    /// Encodes the columns of `rows` rows into one buffer.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize) -> Result<ByteKeys> {
        let inputs = self
            .places
            .iter()
            .map(|place| Input::new(place, &columns[place.column]))
            .collect::<Result<Vec<_>>>()?;
        let has_nulls = inputs.iter().any(|input| input.nulls.is_some());
        let mut tile = Tile::new(self);
        let mut out = Written {
            buffer: Vec::new(),
            end: 0,
            keys: Vec::with_capacity(rows),
        };
        for start in (0..rows).step_by(TILE_ROWS) {
            let range = start..(start + TILE_ROWS).min(rows);
            out.make_room(tile.bytes_max(&inputs, range.clone()), rows)?;
            tile.load(&inputs, range.clone());
            match has_nulls {
                true => tile.write::<true>(&inputs, range, &mut out),
                false => tile.write::<false>(&inputs, range, &mut out),
            }
        }
        out.buffer.truncate(out.end);
        Ok(ByteKeys {
            views: out.keys,
            buffers: vec![Buffer::from_vec(out.buffer)],
        })
    }
}

/// Rows that are encoded.
struct Written {
    /// Their bytes, and room.
    buffer: Vec<u8>,
    /// Where the room begins.
    end: usize,
    /// Their views.
    keys: Vec<u128>,
}

impl Written {
    /// Makes room for a tile of at most `bytes_max`, one of those that hold `rows` rows in all.
    fn make_room(&mut self, bytes_max: usize, rows: usize) -> Result<()> {
        if u32::try_from(self.end + bytes_max).is_err() {
            return Err(Error::TooLarge(format!(
                "the keys of one batch take more than {} bytes; they end at 4 GiB",
                self.end
            )));
        }
        if self.keys.len() == TILE_ROWS {
            // The other tiles take about as much as the first.
            let rest = self.end * (rows - TILE_ROWS) / TILE_ROWS;
            self.buffer.reserve_exact(rest + rest / 16 + bytes_max);
        }
        let end = self.buffer.len().max(self.end + bytes_max);
        self.buffer.resize(end, 0);
        Ok(())
    }
}

/// A key column, ready to be read row by row.
struct Input {
    source: ColumnValues,
    nulls: Option<NullBuffer>,
}

enum ColumnValues {
    Number(ArrayData),
    Wide(ArrayData),
    Bytes(ByteKeys),
}

impl Input {
    fn new(place: &RowColumn, column: &ArrayRef) -> Result<Self> {
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        Ok(match &place.form {
            Form::Number => Self {
                source: ColumnValues::Number(column.to_data()),
                nulls,
            },
            Form::Wide => Self {
                source: ColumnValues::Wide(column.to_data()),
                nulls,
            },
            Form::Bytes => Self {
                source: ColumnValues::Bytes(bytes::encode(column)?),
                nulls,
            },
            // Arrow's row format holds NULL itself.
            Form::Nested(converter) => Self {
                source: ColumnValues::Bytes(nested::encode(converter, column)?),
                nulls: None,
            },
        })
    }

    #[inline(always)]
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

/// The numbers of some rows, column by column.
struct Tile {
    /// Numbers of up to 8 bytes.
    numbers: Vec<[u64; TILE_ROWS]>,
    /// Numbers of 16 bytes.
    wides: Vec<[u128; TILE_ROWS]>,
    sizes_bytes: usize,
}

impl Tile {
    fn new(layout: &RowLayout) -> Self {
        Self {
            numbers: vec![[0; TILE_ROWS]; layout.numbers],
            wides: vec![[0; TILE_ROWS]; layout.wides],
            sizes_bytes: layout.sizes_bytes(),
        }
    }

    /// What the rows in `range` take at most, with what is written beyond their end.
    fn bytes_max(&self, inputs: &[Input], range: Range<usize>) -> usize {
        let fixed = self.sizes_bytes + 8 * self.numbers.len() + 16 * self.wides.len();
        let strings: usize = inputs
            .iter()
            .map(|input| match &input.source {
                ColumnValues::Bytes(keys) => keys.views[range.clone()]
                    .iter()
                    .map(|&view| LENGTH_BYTES_MAX + view as u32 as usize)
                    .sum(),
                ColumnValues::Number(_) | ColumnValues::Wide(_) => 0,
            })
            .sum();
        fixed * range.len() + strings + SLACK_BYTES
    }

    /// Reads the numbers of the rows in `range`; those under NULLs do not count.
    fn load(&mut self, inputs: &[Input], range: Range<usize>) {
        let (mut numbers, mut wides) = (self.numbers.iter_mut(), self.wides.iter_mut());
        for input in inputs {
            match &input.source {
                ColumnValues::Number(data) => {
                    let out = numbers.next().expect("a place for each");
                    numbers::load(data, range.start, &mut out[..range.len()]);
                }
                ColumnValues::Wide(data) => {
                    let out = wides.next().expect("a place for each");
                    numbers::load_wide(data, range.start, &mut out[..range.len()]);
                }
                ColumnValues::Bytes(_) => {}
            }
        }
    }

    /// Writes the bytes of the rows in `range`, and their views. Without `NULLS` there are none.
    fn write<const NULLS: bool>(&self, inputs: &[Input], range: Range<usize>, out: &mut Written) {
        let (numbers, others) = inputs.split_at(self.numbers.len());
        let (wides, strings) = others.split_at(self.wides.len());
        let (mut at, buffer) = (out.end, out.buffer.as_mut_slice());
        for row in 0..range.len() {
            let (from, source_row) = (at, range.start + row);
            let mut sizes = RowSizes::default();
            for (input, column) in numbers.iter().zip(&self.numbers) {
                if NULLS && input.is_null(source_row) {
                    sizes.push(NULL);
                    continue;
                }
                let bytes = numbers::bytes(column[row]);
                put(buffer, at, column[row].to_le_bytes());
                sizes.push(bytes);
                at += bytes as usize;
            }
            for (input, column) in wides.iter().zip(&self.wides) {
                if NULLS && input.is_null(source_row) {
                    sizes.push(NULL);
                    continue;
                }
                let size = wide_size(column[row]);
                put(buffer, at, column[row].to_le_bytes());
                sizes.push(size);
                at += number_bytes(size);
            }
            for input in strings {
                let ColumnValues::Bytes(keys) = &input.source else {
                    unreachable!("strings come last")
                };
                if NULLS && input.is_null(source_row) {
                    sizes.push(NULL);
                    continue;
                }
                let size = string_size(keys.views[source_row]);
                sizes.push(size);
                at = put_string(buffer, at, size, keys.views[source_row], &keys.buffers);
            }
            at = sizes.put(buffer, at);
            out.keys.push(view(&buffer[from..at], 0, from as u32));
        }
        out.end = at;
    }
}

/// The sizes of one row, on their way to its end.
#[derive(Default)]
struct RowSizes {
    /// Whole words, for rows of many columns.
    words: Vec<u64>,
    word: u64,
    shift: u32,
}

impl RowSizes {
    #[inline(always)]
    fn push(&mut self, size: u64) {
        if self.shift == u64::BITS {
            self.words.push(std::mem::take(&mut self.word));
            self.shift = 0;
        }
        self.word |= size << self.shift;
        self.shift += SIZE_BITS;
    }

    /// Writes them at `at`; gives their end.
    #[inline(always)]
    fn put(self, buffer: &mut [u8], mut at: usize) -> usize {
        for word in self.words {
            put(buffer, at, word.to_le_bytes());
            at += 8;
        }
        put(buffer, at, self.word.to_le_bytes());
        at + self.shift.div_ceil(8) as usize
    }
}

fn wide_size(value: u128) -> u64 {
    u64::try_from(value).map_or(WHOLE, numbers::bytes)
}

#[inline(always)]
fn string_size(view: u128) -> u64 {
    match u64::from(view as u32) {
        short if short <= SHORT_MAX => short,
        long if long <= 0xff => LENGTH_1,
        _ => LENGTH_4,
    }
}

/// Bytes of a number of this size.
#[inline(always)]
fn number_bytes(size: u64) -> usize {
    match size {
        NULL => 0,
        WHOLE => 16,
        bytes => bytes as usize,
    }
}

#[inline(always)]
fn put<const N: usize>(buffer: &mut [u8], at: usize, bytes: [u8; N]) {
    buffer[at..at + N].copy_from_slice(&bytes);
}

/// Writes a byte string with the length that its size does not tell; gives its end.
#[inline(always)]
fn put_string(buffer: &mut [u8], at: usize, size: u64, view: u128, buffers: &[Buffer]) -> usize {
    let length = view as u32 as usize;
    let at = match size {
        LENGTH_1 => {
            buffer[at] = length as u8;
            at + 1
        }
        LENGTH_4 => {
            put(buffer, at, (length as u32).to_le_bytes());
            at + 4
        }
        _ => at,
    };
    if is_long(view) {
        buffer[at..at + length].copy_from_slice(long_bytes(view, buffers));
    } else {
        put(buffer, at, (view >> 32).to_le_bytes());
    }
    at + length
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array,
        Int8Array, Int32Array, Int64Array, StringArray, StringViewArray, UInt64Array,
    };
    use arrow::datatypes::{Field, FieldRef};

    use super::TILE_ROWS;
    use crate::keys::TableKind;
    use crate::keys::{DistinctKeys, KeyLayout};

    /// More columns than sizes in a word; every size that a value can have.
    fn columns() -> Vec<ArrayRef> {
        let lengths = [0, 1, 11, 12, 13, 254, 255, 256, 257, 70_000];
        let strings = || lengths.map(|length| Some("x".repeat(length)));
        let numbers = [
            0,
            1,
            -1,
            127,
            -128,
            255,
            1 << 31,
            1 << 62,
            i64::MAX,
            i64::MIN,
        ];
        let edges = numbers.map(Some);
        let wide = numbers.map(|n| Some(i128::from(n) << 60)).into_iter();
        let three = || -> [ArrayRef; 3] {
            [
                Arc::new(Int64Array::from_iter(edges)),
                Arc::new(UInt64Array::from_iter(edges.map(|n| n.map(|n| n as u64)))),
                Arc::new(Int32Array::from_iter(edges.map(|n| n.map(|n| n as i32)))),
            ]
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringViewArray::from_iter(strings())),
            Arc::new(StringArray::from_iter(strings())),
            Arc::new(BinaryArray::from_iter(strings())),
            Arc::new(Int8Array::from_iter(edges.map(|n| n.map(|n| n as i8)))),
            Arc::new(Decimal128Array::from_iter(wide)),
            Arc::new(Decimal128Array::from_iter(edges.map(|n| n.map(i128::from)))),
            Arc::new(Float64Array::from_iter(
                edges.map(|n| n.map(|n| n as f64 / 3.0)),
            )),
            Arc::new(Float32Array::from_iter(edges.map(|n| n.map(|n| n as f32)))),
            Arc::new(BooleanArray::from_iter(edges.map(|n| n.map(|n| n > 0)))),
        ];
        (0..3).for_each(|_| columns.extend(three()));
        columns
    }

    fn layout(columns: &[ArrayRef]) -> KeyLayout {
        let field = |column: &ArrayRef| -> FieldRef {
            Arc::new(Field::new("k", column.data_type().clone(), true))
        };
        let fields: Vec<FieldRef> = columns.iter().map(field).collect();
        KeyLayout::new(&fields, TableKind::Row).expect("types that rows know")
    }

    fn decoded(layout: &KeyLayout, columns: &[ArrayRef], wanted: &[usize]) -> Vec<ArrayRef> {
        let (rows, mut hashes) = (columns[0].len(), Vec::new());
        let keys = layout.encode(columns, rows, &mut hashes).expect("encoded");
        let keys = DistinctKeys { keys, hashes };
        layout.decode(&keys, 0..rows, wanted).expect("decoded")
    }

    #[test]
    fn values_of_every_size_come_back() {
        let columns = columns();
        let all: Vec<usize> = (0..columns.len()).collect();
        assert!(columns.len() > 16, "sizes of one word would do");
        assert_eq!(decoded(&layout(&columns), &columns, &all), columns);
    }

    #[test]
    fn nulls_come_back_and_what_lies_under_them_does_not_count() {
        let columns: Vec<ArrayRef> = columns()
            .iter()
            .map(|column| {
                let every_other = BooleanArray::from_iter((0..10).map(|row| Some(row % 2 == 0)));
                arrow::compute::nullif(column, &every_other).expect("half of them")
            })
            .collect();
        let layout = layout(&columns);
        let all: Vec<usize> = (0..columns.len()).collect();
        assert_eq!(decoded(&layout, &columns, &all), columns);
        let nothing: Vec<ArrayRef> = columns.iter().map(|c| c.slice(0, 3)).collect();
        let mut hashes = Vec::new();
        layout.encode(&nothing, 3, &mut hashes).expect("encoded");
        assert!(hashes[0] == hashes[2] && hashes[0] != hashes[1]);
    }

    #[test]
    fn columns_come_in_the_order_in_which_they_are_asked_for() {
        let columns = columns();
        let wanted = [16, 0, 7];
        let expected = wanted.map(|column| columns[column].clone());
        assert_eq!(decoded(&layout(&columns), &columns, &wanted), expected);
        assert!(decoded(&layout(&columns), &columns, &[]).is_empty());
    }

    #[test]
    fn rows_beyond_one_tile_follow_each_other() {
        let rows = 2 * TILE_ROWS as i64 + 7;
        let string = |row: i64| "y".repeat((row * row % 400) as usize);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row * row))),
            Arc::new(StringViewArray::from_iter_values((0..rows).map(string))),
        ];
        assert_eq!(decoded(&layout(&columns), &columns, &[0, 1]), columns);
    }
}
