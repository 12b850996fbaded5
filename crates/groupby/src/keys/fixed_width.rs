//! Fixed-width keys: one to twelve machine words of 8 bytes, in one of five widths, and the views in them.
//!
//! In: words. Out: keys, told apart word by word; the view that begins at a word.
//! Invariant: code for all widths is written once, and compiled once per width: nothing asks for it per row.
//! Not here: the tables of such keys.

use std::ops::Range;

use arrow::buffer::Buffer;

/// Keys of `N` words and what their long strings point into.
#[derive(Debug, Clone)]
pub struct FixedWidthKeys<const N: usize> {
    /// One key per row.
    pub keys: Vec<[u64; N]>,
    /// What longer views point into.
    pub buffers: Vec<Buffer>,
}

impl<const N: usize> Default for FixedWidthKeys<N> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            buffers: Vec::new(),
        }
    }
}

impl<const N: usize> FixedWidthKeys<N> {
    /// Some of them.
    pub fn rows(&self, range: Range<usize>) -> FixedWidthRows<'_, N> {
        FixedWidthRows {
            keys: &self.keys[range],
            buffers: &self.buffers,
        }
    }

    /// Keys whose strings are where those of these are.
    pub fn with_keys(&self, keys: Vec<[u64; N]>) -> Self {
        let buffers = self.buffers.clone();
        Self { keys, buffers }
    }
}

/// Neighbouring keys of `N` words.
#[derive(Debug, Clone, Copy)]
pub struct FixedWidthRows<'a, const N: usize> {
    /// One key per row.
    pub keys: &'a [[u64; N]],
    /// What longer views point into.
    pub buffers: &'a [Buffer],
}

impl<const N: usize> FixedWidthRows<'_, N> {
    /// Some of them.
    pub fn part(self, range: Range<usize>) -> Self {
        Self {
            keys: &self.keys[range],
            buffers: self.buffers,
        }
    }
}

/// Keys of one of the widths that there are tables for.
#[derive(Debug, Clone)]
pub enum PackedKeys {
    /// Up to 8 bytes.
    One(FixedWidthKeys<1>),
    /// Up to 16 bytes.
    Two(FixedWidthKeys<2>),
    /// Up to 32 bytes, strings as views.
    Four(FixedWidthKeys<4>),
    /// Up to 64 bytes, strings as views.
    Eight(FixedWidthKeys<8>),
    /// Up to 96 bytes, strings as views.
    Twelve(FixedWidthKeys<12>),
}

/// Some of them.
#[derive(Debug, Clone, Copy)]
pub enum PackedRows<'a> {
    /// See `PackedKeys::One`.
    One(FixedWidthRows<'a, 1>),
    /// See `PackedKeys::Two`.
    Two(FixedWidthRows<'a, 2>),
    /// See `PackedKeys::Four`.
    Four(FixedWidthRows<'a, 4>),
    /// See `PackedKeys::Eight`.
    Eight(FixedWidthRows<'a, 8>),
    /// See `PackedKeys::Twelve`.
    Twelve(FixedWidthRows<'a, 12>),
}

/// Evaluates `$body` with `$keys`, which are of one width.
macro_rules! with_width {
    ($packed:expr, $kind:ident($keys:pat) => $body:expr) => {
        match $packed {
            $kind::One($keys) => $body,
            $kind::Two($keys) => $body,
            $kind::Four($keys) => $body,
            $kind::Eight($keys) => $body,
            $kind::Twelve($keys) => $body,
        }
    };
}
pub(crate) use with_width;

/// The same, of what `$body` makes, which is of the same width.
macro_rules! map_width {
    ($packed:expr, $from:ident($keys:pat) => $to:ident($body:expr)) => {
        match $packed {
            $from::One($keys) => $to::One($body),
            $from::Two($keys) => $to::Two($body),
            $from::Four($keys) => $to::Four($body),
            $from::Eight($keys) => $to::Eight($body),
            $from::Twelve($keys) => $to::Twelve($body),
        }
    };
}
pub(crate) use map_width;

/// The variant for keys of `N` words; a layout makes keys of one width, so that no other is met.
pub trait FixedWidth<const N: usize>: Sized {
    /// Keys of that width.
    fn of(keys: FixedWidthKeys<N>) -> Self;
    /// The same back.
    fn fixed_width(&self) -> &FixedWidthKeys<N>;
    /// Some keys of that width.
    fn rows_of(rows: PackedRows<'_>) -> FixedWidthRows<'_, N>;
}

macro_rules! fixed_width {
    ($($words:literal $variant:ident),*) => {$(
        impl FixedWidth<$words> for PackedKeys {
            fn of(keys: FixedWidthKeys<$words>) -> Self {
                Self::$variant(keys)
            }

            fn fixed_width(&self) -> &FixedWidthKeys<$words> {
                match self {
                    Self::$variant(keys) => keys,
                    _ => unreachable!("the layout made keys of another width"),
                }
            }

            fn rows_of(rows: PackedRows<'_>) -> FixedWidthRows<'_, $words> {
                match rows {
                    PackedRows::$variant(keys) => keys,
                    _ => unreachable!("the layout made keys of another width"),
                }
            }
        }
    )*};
}
fixed_width!(1 One, 2 Two, 4 Four, 8 Eight, 12 Twelve);

/// The view whose first word is `word`.
#[inline(always)]
pub(crate) fn view_of<const N: usize>(key: &[u64; N], word: usize) -> u128 {
    u128::from(key[word + 1]) << 64 | u128::from(key[word])
}

/// Writes a view at `word`.
#[inline(always)]
pub(crate) fn set_view<const N: usize>(key: &mut [u64; N], word: usize, view: u128) {
    key[word] = view as u64;
    key[word + 1] = (view >> 64) as u64;
}

/// Compares all words at once; `==` on arrays of this size calls out to compare bytes.
#[inline(always)]
pub(crate) fn is_equal<const N: usize>(one: &[u64; N], other: &[u64; N]) -> bool {
    let mut difference = 0;
    for word in 0..N {
        difference |= one[word] ^ other[word];
    }
    difference == 0
}
