//! Keys of any types as one byte string per row, without the bytes that a value does not need.
//!
//! ```text
//! sizes (4 bits a column) | numbers of up to 8 bytes | numbers of 16 bytes | byte strings
//! ```
//!
//! In: key columns. Out: views into one buffer per batch.
//! Invariant: equal keys have equal bytes; a number is as short as its value, a NULL has no bytes.
//! Columns that are neither of fixed width nor byte strings (nested types, 256-bit decimals) go
//! through Arrow's row format, NULLs too, and are one byte string each.
//! Not here: tables, keys that can be packed (`packed`), one string (`bytes`).
//!
//! Nanoseconds of one core for a row of `lineitem` (16 columns, 75 bytes; 171 at full width): see
//! `bench/queries/tpch.sql`, t10. Most of the gain are pages that nobody has to clear.

mod decode;
mod nested;
mod numbers;

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{DataType, FieldRef};
use arrow::row::{RowConverter, SortField};

use super::ByteKeys;
use super::bytes::{self, is_long, long_bytes, view};
use super::packed::fixed_width;
use crate::error::{Error, Result};

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
/// Sizes in one word.
const SIZES_PER_WORD: usize = 16;
/// Numbers and short strings are written whole; what follows them in the row overwrites the rest.
const SLACK_BYTES: usize = 16;

/// How the columns of a row lie in its bytes.
#[derive(Debug)]
pub struct RowLayout {
    /// In the order of the row.
    places: Vec<Place>,
    /// Of the places, the first are numbers of up to 8 bytes.
    numbers: usize,
    /// The next are numbers of 16 bytes.
    wides: usize,
}

#[derive(Debug)]
struct Place {
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
                None if bytes::is_bytes(&data_type) => Form::Bytes,
                None => Form::Nested(RowConverter::new(vec![SortField::new(data_type.clone())])?),
            };
            Ok(Place {
                column,
                data_type,
                form,
            })
        };
        let mut places: Vec<Place> = fields
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
        let mut tile = Tile::new(self);
        let mut keys = Vec::with_capacity(rows);
        let mut buffer = Vec::new();
        let mut end = 0;
        for start in (0..rows).step_by(TILE_ROWS) {
            let range = start..(start + TILE_ROWS).min(rows);
            let bytes = tile.measure(&inputs, range.clone());
            if u32::try_from(end + bytes).is_err() {
                return Err(Error::TooLarge(format!(
                    "the keys of one batch take more than {end} bytes; they end at 4 GiB"
                )));
            }
            if buffer.is_empty() {
                // The other tiles take about as much.
                buffer.reserve((bytes * rows / range.len()) * 17 / 16 + tile.slack_bytes());
            }
            buffer.resize(end + bytes + tile.slack_bytes(), 0);
            end = tile.write(&inputs, range, &mut buffer, end, &mut keys);
        }
        buffer.truncate(end);
        Ok(ByteKeys {
            views: keys,
            buffers: vec![Buffer::from_vec(buffer)],
        })
    }
}

/// A key column, ready to be read row by row.
struct Input {
    source: Source,
    nulls: Option<NullBuffer>,
}

enum Source {
    Number(ArrayData),
    Wide(ArrayData),
    Bytes(ByteKeys),
}

impl Input {
    fn new(place: &Place, column: &ArrayRef) -> Result<Self> {
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        Ok(match &place.form {
            Form::Number => Self {
                source: Source::Number(column.to_data()),
                nulls,
            },
            Form::Wide => Self {
                source: Source::Wide(column.to_data()),
                nulls,
            },
            Form::Bytes => Self {
                source: Source::Bytes(bytes::encode(column)?),
                nulls,
            },
            // Arrow's row format holds NULL itself.
            Form::Nested(converter) => Self {
                source: Source::Bytes(nested::encode(converter, column)?),
                nulls: None,
            },
        })
    }
}

/// What some rows need until their bytes are written.
struct Tile {
    /// The sizes of each row's columns, some words per row.
    sizes: Vec<u64>,
    sizes_words: usize,
    sizes_bytes: usize,
    /// Numbers of up to 8 bytes, column by column.
    numbers: Vec<[u64; TILE_ROWS]>,
    /// Numbers of 16 bytes, column by column.
    wides: Vec<[u128; TILE_ROWS]>,
}

impl Tile {
    fn new(layout: &RowLayout) -> Self {
        let sizes_words = layout.places.len().div_ceil(SIZES_PER_WORD);
        Self {
            sizes: vec![0; TILE_ROWS * sizes_words],
            sizes_words,
            sizes_bytes: layout.sizes_bytes(),
            numbers: vec![[0; TILE_ROWS]; layout.numbers],
            wides: vec![[0; TILE_ROWS]; layout.wides],
        }
    }

    /// How far a write may reach beyond what is kept of it.
    fn slack_bytes(&self) -> usize {
        SLACK_BYTES + 8 * self.sizes_words
    }

    /// Reads numbers, and sizes of all columns; gives the bytes of the rows in `range`.
    fn measure(&mut self, inputs: &[Input], range: Range<usize>) -> usize {
        self.sizes.fill(0);
        let mut bytes = self.sizes_bytes * range.len();
        let (mut numbers, mut wides) = (self.numbers.iter_mut(), self.wides.iter_mut());
        for (at, input) in inputs.iter().enumerate() {
            let mut sizes = Sizes {
                sizes: self.sizes[at / SIZES_PER_WORD..]
                    .iter_mut()
                    .step_by(self.sizes_words),
                shift: at % SIZES_PER_WORD * 4,
                bytes: 0,
            };
            let nulls = input
                .nulls
                .as_ref()
                .map(|n| n.slice(range.start, range.len()));
            match &input.source {
                Source::Number(data) => {
                    let out = &mut numbers.next().expect("a place for each")[..range.len()];
                    numbers::load(data, range.start, out);
                    clear(out, nulls.as_ref());
                    sizes.add(out, nulls.as_ref(), |&value| (numbers::bytes(value), 0));
                }
                Source::Wide(data) => {
                    let out = &mut wides.next().expect("a place for each")[..range.len()];
                    numbers::load_wide(data, range.start, out);
                    clear(out, nulls.as_ref());
                    sizes.add(out, nulls.as_ref(), |&value| wide_size(value));
                }
                Source::Bytes(keys) => {
                    let views = &keys.views[range.clone()];
                    sizes.add(views, nulls.as_ref(), |&view| string_size(view));
                }
            }
            bytes += sizes.bytes;
        }
        bytes
    }

    /// Writes the bytes of the rows in `range` from `at` on, and their views; gives the end.
    fn write(
        &self,
        inputs: &[Input],
        range: Range<usize>,
        buffer: &mut [u8],
        mut at: usize,
        keys: &mut Vec<u128>,
    ) -> usize {
        let strings: Vec<(&[u128], &[Buffer])> = inputs
            .iter()
            .filter_map(|input| match &input.source {
                Source::Bytes(keys) => Some((&keys.views[range.clone()], keys.buffers.as_slice())),
                Source::Number(_) | Source::Wide(_) => None,
            })
            .collect();
        for (row, sizes) in self.sizes.chunks_exact(self.sizes_words).enumerate() {
            if row == range.len() {
                break;
            }
            let from = at;
            for (word, sizes) in sizes.iter().enumerate() {
                put(buffer, from + 8 * word, sizes.to_le_bytes());
            }
            at += self.sizes_bytes;
            let mut place = 0..;
            let mut next = || size_at(sizes, place.next().expect("endless"));
            for column in &self.numbers {
                put(buffer, at, column[row].to_le_bytes());
                at += number_bytes(next());
            }
            for column in &self.wides {
                put(buffer, at, column[row].to_le_bytes());
                at += number_bytes(next());
            }
            for (views, buffers) in &strings {
                at = put_string(buffer, at, next(), views[row], buffers);
            }
            keys.push(view(&buffer[from..at], 0, from as u32));
        }
        at
    }
}

/// The sizes of one column, row by row.
struct Sizes<I> {
    sizes: I,
    shift: usize,
    /// Bytes of the column so far.
    bytes: usize,
}

impl<'a, I: Iterator<Item = &'a mut u64>> Sizes<I> {
    /// `size` gives a value's size and its bytes beyond that size.
    fn add<T>(
        &mut self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        size: impl Fn(&T) -> (u64, usize),
    ) {
        let mut bytes = 0;
        for (row, (value, sizes)) in values.iter().zip(&mut self.sizes).enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                *sizes |= NULL << self.shift;
                continue;
            }
            let (size, beyond) = size(value);
            *sizes |= size << self.shift;
            bytes += size as usize + beyond;
        }
        self.bytes = bytes;
    }
}

/// Whatever lies under a NULL must not tell two NULLs apart.
fn clear<T: Default>(values: &mut [T], nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls else { return };
    for (value, valid) in values.iter_mut().zip(nulls.inner().iter()) {
        if !valid {
            *value = T::default();
        }
    }
}

fn wide_size(value: u128) -> (u64, usize) {
    match u64::try_from(value) {
        Ok(value) => (numbers::bytes(value), 0),
        Err(_) => (WHOLE, 16 - WHOLE as usize),
    }
}

fn string_size(view: u128) -> (u64, usize) {
    let length = view as u32;
    match u64::from(length) {
        short if short <= SHORT_MAX => (short, 0),
        long if long <= 0xff => (LENGTH_1, 1 + length as usize - LENGTH_1 as usize),
        _ => (
            LENGTH_4,
            (4 + length as usize).saturating_sub(LENGTH_4 as usize),
        ),
    }
}

/// The size of column `place` of a row.
#[inline(always)]
fn size_at(sizes: &[u64], place: usize) -> u64 {
    sizes[place / SIZES_PER_WORD] >> (place % SIZES_PER_WORD * 4) & 15
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
        NULL => return at,
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
