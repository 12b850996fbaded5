//! How rows compare: a 64-bit code that orders most of them, and what decides between equal codes.
//!
//! In: the key columns of a batch. Out: codes and an order of entries.
//! Invariant: a row that comes first never has the greater code. One fixed-width key of at most 8 bytes is told by code
//! and class. All others are kept as bytes whose order is the rows', made only for rows that the codes do not rule out.
//! Floats and
//! intervals are compared in their canonical form.
//! Not here: which rows are compared (slots.rs).

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows as Encoded, SortField};

use super::slots::RankedRow;
use super::{Candidate, SortKey, TopRows};
use crate::error::Result;
use crate::keys::is_bytes;
use crate::keys::row::canonical_values;
use crate::states::byte_values::with_byte_values;
use crate::states::fixed::values_of;

/// The sign bit of a code.
const SIGN: u64 = 1 << 63;

/// Classes of rows with equal codes.
const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

/// What decides between rows of equal codes.
enum Ties {
    /// NULL against a value.
    Class(Option<NullBuffer>),
    /// All keys as bytes.
    Bytes {
        converter: RowConverter,
        /// Keys of the batch's candidates.
        candidates: Encoded,
        /// Keys of the rows that are kept.
        kept: Keys,
    },
}

/// Byte strings one after the other.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..self.ends[at]]
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.start(self.ends.len()));
    }
}

/// The order of a query's rows.
pub(super) struct Ranking {
    order: Vec<SortKey>,
    ties: Ties,
    codes: Vec<u64>,
}

impl Ranking {
    /// True if all keys have an order.
    pub(super) fn supports(shape: &TopRows) -> bool {
        is_exact(shape) || RowConverter::supports_fields(&sort_fields(shape))
    }

    /// The order of `shape`, which is supported.
    pub(super) fn new(shape: &TopRows) -> Self {
        let ties = if is_exact(shape) {
            Ties::Class(None)
        } else {
            let converter = RowConverter::new(sort_fields(shape)).expect("checked by `supports`");
            Ties::Bytes {
                candidates: converter.empty_rows(0, 0),
                converter,
                kept: Keys::default(),
            }
        };
        Self {
            order: shape.order.clone(),
            ties,
            codes: Vec::new(),
        }
    }

    /// Codes of a batch's rows.
    pub(super) fn load(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        self.codes.clear();
        let Some(first) = self.order.first() else {
            self.codes.resize(rows, 0);
            return Ok(());
        };
        let column = canonical_values(&columns[first.column])?;
        append_codes(&column, first.options.descending, &mut self.codes)?;
        let nulls = column
            .logical_nulls()
            .filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = &nulls {
            let code = match first.options.nulls_first {
                true => 0,
                false => u64::MAX,
            };
            for row in (!nulls.inner()).set_indices() {
                self.codes[row] = code;
            }
        }
        if let Ties::Class(held) = &mut self.ties {
            *held = nulls;
        }
        Ok(())
    }

    pub(super) fn codes(&self) -> &[u64] {
        &self.codes
    }

    /// Makes the keys of the rows that codes do not rule out.
    pub(super) fn encode(&mut self, columns: &[ArrayRef], rows: &[Candidate]) -> Result<()> {
        let Ties::Bytes {
            converter,
            candidates,
            ..
        } = &mut self.ties
        else {
            return Ok(());
        };
        let rows = UInt32Array::from_iter_values(rows.iter().map(|candidate| candidate.row));
        let keys = self
            .order
            .iter()
            .map(|key| canonical_values(&take(&columns[key.column], &rows, None)?))
            .collect::<Result<Vec<_>>>()?;
        candidates.clear();
        converter.append(candidates, &keys)?;
        Ok(())
    }

    /// Candidate number `at`, which is `row` of the batch, as the kept row of the next number.
    pub(super) fn push(&mut self, at: usize, row: usize, kept: u32) -> RankedRow {
        let class = match &mut self.ties {
            Ties::Class(nulls) if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => {
                match self.order[0].options.nulls_first {
                    true => NULL_FIRST,
                    false => NULL_LAST,
                }
            }
            Ties::Class(_) => VALUE,
            Ties::Bytes {
                candidates,
                kept: keys,
                ..
            } => {
                debug_assert_eq!(keys.ends.len(), kept as usize, "one key per kept row");
                keys.push(candidates.row(at).data());
                VALUE
            }
        };
        RankedRow {
            code: self.codes[row],
            kept,
            class,
        }
    }

    /// Takes the last `push` back.
    pub(super) fn pop(&mut self) {
        if let Ties::Bytes { kept, .. } = &mut self.ties {
            kept.pop();
        }
    }

    /// The order of two rows that are kept.
    #[inline]
    pub(super) fn compare(&self, a: &RankedRow, b: &RankedRow) -> Ordering {
        let by_code = (a.code, a.class).cmp(&(b.code, b.class));
        match &self.ties {
            Ties::Class(_) => by_code,
            Ties::Bytes { kept, .. } => {
                by_code.then_with(|| kept.get(a.kept as usize).cmp(kept.get(b.kept as usize)))
            }
        }
    }

    /// Keeps the given rows, in this order.
    pub(super) fn keep(&mut self, rows: &[u32]) {
        if let Ties::Bytes { kept, .. } = &mut self.ties {
            let mut live = Keys::default();
            rows.iter()
                .for_each(|row| live.push(kept.get(*row as usize)));
            *kept = live;
        }
    }

    /// Keeps no row.
    pub(super) fn clear(&mut self) {
        self.keep(&[]);
    }

    pub(super) fn bytes(&self) -> usize {
        let codes = self.codes.capacity() * size_of::<u64>();
        match &self.ties {
            Ties::Class(_) => codes,
            Ties::Bytes {
                converter,
                candidates,
                kept,
            } => {
                let keys = kept.bytes.capacity() + kept.ends.capacity() * size_of::<usize>();
                codes + converter.size() + candidates.size() + keys
            }
        }
    }
}

fn sort_fields(shape: &TopRows) -> Vec<SortField> {
    let field = |key: &SortKey| {
        let data_type = shape.columns[key.column].data_type();
        SortField::new_with_options(data_type.clone(), key.options)
    };
    shape.order.iter().map(field).collect()
}

/// True if code and class tell the order.
fn is_exact(shape: &TopRows) -> bool {
    use DataType::{
        Boolean, Date32, Date64, Decimal32, Decimal64, Duration, Float32, Float64, Time32, Time64,
        Timestamp,
    };
    match shape.order.as_slice() {
        [] => true,
        [key] => match shape.columns[key.column].data_type() {
            Boolean | Date32 | Date64 | Decimal32(..) | Decimal64(..) | Duration(_) | Float32
            | Float64 | Time32(_) | Time64(_) | Timestamp(..) => true,
            other => other.is_integer(),
        },
        _ => false,
    }
}

/// Codes of a column's values, whatever they are where it is NULL.
fn append_codes(column: &ArrayRef, descending: bool, codes: &mut Vec<u64>) -> Result<()> {
    use DataType::*;
    let flip = if descending { u64::MAX } else { 0 };
    macro_rules! fixed {
        ($native:ty, $code:expr) => {
            extend(codes, &values_of::<$native>(column)?, flip, $code)
        };
    }
    match column.data_type() {
        Int8 => fixed!(i8, |value| signed(i64::from(value))),
        Int16 => fixed!(i16, |value| signed(i64::from(value))),
        Int32 | Date32 | Time32(_) | Decimal32(..) => {
            fixed!(i32, |value| signed(i64::from(value)));
        }
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => {
            fixed!(i64, signed);
        }
        Decimal128(..) => fixed!(i128, |value: i128| signed(
            value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        )),
        Boolean | UInt8 => fixed!(u8, u64::from),
        UInt16 => fixed!(u16, u64::from),
        UInt32 => fixed!(u32, u64::from),
        UInt64 => fixed!(u64, |value| value),
        Float32 => fixed!(f32, |value: f32| u64::from(float32(value))),
        Float64 => fixed!(f64, float64),
        other if is_bytes(other) => {
            with_byte_values!(column, |value| codes
                .extend((0..column.len()).map(|row| prefix(value(row)) ^ flip)));
        }
        // The keys' bytes decide alone.
        _ => codes.resize(column.len(), 0),
    }
    Ok(())
}

fn extend<N: Copy>(codes: &mut Vec<u64>, values: &[N], flip: u64, code: impl Fn(N) -> u64) {
    codes.extend(values.iter().map(|value| code(*value) ^ flip));
}

fn signed(value: i64) -> u64 {
    value as u64 ^ SIGN
}

fn float64(value: f64) -> u64 {
    let bits = value.to_bits();
    // Negative values flip all bits, others the sign; without a branch, loops stay in vectors.
    bits ^ ((bits as i64 >> 63) as u64 | SIGN)
}

fn float32(value: f32) -> u32 {
    let bits = value.to_bits();
    bits ^ ((bits as i32 >> 31) as u32 | 1 << 31)
}

/// The first 8 bytes.
fn prefix(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, Float64Array, StringArray};
    use arrow::compute::SortOptions;

    use super::*;

    fn codes(column: ArrayRef, options: SortOptions) -> Vec<u64> {
        let mut codes = vec![];
        append_codes(&column, options.descending, &mut codes).unwrap();
        codes
    }

    #[test]
    fn codes_follow_the_total_order() {
        let floats = [-f64::NAN, -1.5, -0.0, 0.0, 1e-300, f64::INFINITY, f64::NAN];
        let descending = SortOptions::default().desc();
        let columns: [ArrayRef; 3] = [
            Arc::new(Float64Array::from(floats.to_vec())),
            Arc::new(Float32Array::from(vec![-f32::NAN, -2.0, -0.0, 0.0, 3.5])),
            Arc::new(StringArray::from(vec!["", "a", "aa", "abcdefgh", "b"])),
        ];
        for column in columns {
            assert!(codes(Arc::clone(&column), SortOptions::default()).is_sorted_by(|a, b| a < b));
            assert!(codes(column, descending).is_sorted_by(|a, b| a > b));
        }
    }
}
