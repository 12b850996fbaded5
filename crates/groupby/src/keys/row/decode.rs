//! Rows back into columns, those that are asked for.
//!
//! In: rows as views. Out: key columns.
//! Invariant: a column holds no bytes of the rows' buffers, so that a batch of few columns is as
//! small as it looks.
//! Not here: the bytes of a row (`row`), of a number (`numbers`), of nested values (`nested`).

use arrow::array::ArrayRef;
use arrow::buffer::{Buffer, NullBuffer};

use super::super::KeyRows;
use super::super::bytes::{self, Arena};
use super::super::views::with_bytes;
use super::{Form, LENGTH_1, LENGTH_4, NULL, RowColumn, RowLayout, nested, number_bytes, numbers};
use crate::error::Result;

/// Rows and how far into each of them the columns are read.
struct Cursor<'a> {
    rows: &'a [u128],
    buffers: &'a [Buffer],
    at: Vec<u32>,
    sizes_bytes: usize,
}

impl RowLayout {
    /// Of the key columns of these rows those that `wanted` names.
    pub fn decode(&self, keys: KeyRows<'_>, wanted: &[usize]) -> Result<Vec<ArrayRef>> {
        let KeyRows::Bytes(rows, buffers) = keys else {
            unreachable!("byte-string keys")
        };
        let mut cursor = Cursor {
            rows,
            buffers,
            at: vec![0; rows.len()],
            sizes_bytes: self.sizes_bytes(),
        };
        let mut columns = vec![None; self.places.len()];
        let is_wanted = |place: &RowColumn| wanted.contains(&place.column);
        let last = self.places.iter().rposition(is_wanted);
        let places = &self.places[..last.map_or(0, |last| last + 1)];
        for (number, place) in places.iter().enumerate() {
            if is_wanted(place) {
                columns[place.column] = Some(cursor.column(number, place)?);
            } else {
                cursor.skip(number, &place.form);
            }
        }
        let column = |&column: &usize| columns[column].clone().expect("decoded above");
        Ok(wanted.iter().map(column).collect())
    }
}

impl Cursor<'_> {
    /// Calls `each` with the row's number, its bytes from the cursor on and the size of column
    /// `number`; moves by what it gives.
    #[inline(always)]
    fn advance(&mut self, number: usize, mut each: impl FnMut(usize, &[u8], u64) -> usize) {
        let rows = self.rows.iter().zip(&mut self.at).enumerate();
        for (row, (&key, at)) in rows {
            with_bytes(key, self.buffers, |bytes| {
                let sizes = &bytes[bytes.len() - self.sizes_bytes..];
                let size = u64::from(sizes[number / 2] >> (number % 2 * 4) & 15);
                *at += each(row, &bytes[*at as usize..], size) as u32;
            });
        }
    }

    fn skip(&mut self, number: usize, form: &Form) {
        match form {
            Form::Number | Form::Wide => self.advance(number, |_, _, size| number_bytes(size)),
            Form::Bytes | Form::Nested(_) => self.advance(number, |_, bytes, size| {
                let (from, length) = string_at(bytes, size);
                from + length
            }),
        }
    }

    fn column(&mut self, number: usize, place: &RowColumn) -> Result<ArrayRef> {
        let mut valid = Valid::default();
        match &place.form {
            Form::Number => {
                let mut values = vec![0u64; self.rows.len()];
                self.advance(number, |row, bytes, size| {
                    valid.see(row, size);
                    let length = number_bytes(size);
                    values[row] = number_at(bytes, length);
                    length
                });
                numbers::column(&values, valid.nulls(self.rows.len()), &place.data_type)
            }
            Form::Wide => {
                let mut values = vec![0u128; self.rows.len()];
                self.advance(number, |row, bytes, size| {
                    valid.see(row, size);
                    let length = number_bytes(size);
                    let mut value = [0; 16];
                    value[..length].copy_from_slice(&bytes[..length]);
                    values[row] = u128::from_le_bytes(value);
                    length
                });
                numbers::wide_column(&values, valid.nulls(self.rows.len()), &place.data_type)
            }
            Form::Bytes => {
                let (views, buffers) = self.strings(number, &mut valid)?;
                let nulls = valid.nulls(self.rows.len());
                bytes::column(&views, &buffers, nulls, &place.data_type)
            }
            Form::Nested(converter) => {
                let (views, buffers) = self.strings(number, &mut valid)?;
                nested::decode(converter, &views, &buffers)
            }
        }
    }

    /// Copies of the strings of column `number`.
    fn strings(&mut self, number: usize, valid: &mut Valid) -> Result<(Vec<u128>, Vec<Buffer>)> {
        let mut arena = Arena::default();
        let mut views = vec![0u128; self.rows.len()];
        let mut failed = None;
        self.advance(number, |row, bytes, size| {
            valid.see(row, size);
            let (from, length) = string_at(bytes, size);
            match arena.keep(&bytes[from..from + length]) {
                Ok(view) => views[row] = view,
                Err(error) => failed = Some(error),
            }
            from + length
        });
        failed.map_or(Ok((views, arena.into_buffers())), Err)
    }
}

/// Which rows are NULL, if any.
#[derive(Default)]
struct Valid {
    nulls: Vec<usize>,
}

impl Valid {
    #[inline(always)]
    fn see(&mut self, row: usize, size: u64) {
        if size == NULL {
            self.nulls.push(row);
        }
    }

    fn nulls(self, rows: usize) -> Option<NullBuffer> {
        if self.nulls.is_empty() {
            return None;
        }
        let mut valid = vec![true; rows];
        self.nulls.iter().for_each(|&row| valid[row] = false);
        Some(NullBuffer::from(valid))
    }
}

/// A number of up to 8 bytes.
#[inline(always)]
fn number_at(bytes: &[u8], length: usize) -> u64 {
    if let Some(word) = bytes.first_chunk::<8>() {
        let bits = length as u32 * 8;
        return u64::from_le_bytes(*word) & u64::MAX.checked_shr(64 - bits).unwrap_or(0);
    }
    let mut word = [0; 8];
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

/// Where a byte string of this size begins, and its length.
#[inline(always)]
fn string_at(bytes: &[u8], size: u64) -> (usize, usize) {
    match size {
        NULL => (0, 0),
        LENGTH_1 => (1, bytes[0] as usize),
        LENGTH_4 => {
            let length = bytes.first_chunk().expect("four bytes of length");
            (4, u32::from_le_bytes(*length) as usize)
        }
        short => (0, short as usize),
    }
}
