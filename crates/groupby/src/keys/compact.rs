//! Compact keys, in which blocks wait for the merge: what can be computed again is not kept.
//!
//! In: encoded keys with their hashes, in the order of the block. Out: any range of them as they were.
//! Invariant: what comes out is what went in. Hashes of words and strings are made anew, which is cheaper than 8 bytes of
//! memory that nobody touched before. A key that is NULL as a whole looks like zero or the empty string, so the places of
//! NULLs are kept.
//! Not here: the hash itself (`layout`, kernels), the tables.

mod short;

use std::ops::Range;

use arrow::buffer::Buffer;
use grouse_kernels::hash::{NULL_HASH, hash_packed};

use super::bytes;
use super::fixed_width::{PackedRows, with_width};
use super::views::{is_long, with_bytes};
use super::{DistinctKeys, EncodedKeys, KeyRows};
use crate::error::{Error, Result};
pub(crate) use short::{Beside, ShortKeys};

/// Bytes behind the last string: a short one is read and written as 16 bytes, whatever its length.
const SPARE_BYTES: usize = 16;

/// Keys with their hashes.
#[derive(Debug)]
pub enum CompactKeys {
    /// As tables take them, with their hashes: none, or several words that would hardly be shorter.
    Whole {
        /// The keys.
        keys: EncodedKeys,
        /// One per key.
        hashes: Vec<u64>,
        /// The words at which views begin.
        views: Vec<usize>,
    },
    /// One or two words each.
    FixedWidth {
        /// The words.
        keys: EncodedKeys,
        /// Places of NULLs, ascending.
        nulls: Vec<u32>,
    },
    /// Several words, strings among them.
    Short(Box<ShortKeys>),
    /// Strings, one behind the other.
    Strings(Strings),
}

/// Strings, each of which ends where the next begins.
#[derive(Debug)]
pub struct Strings {
    /// Where each begins; one more than there are strings.
    starts: Vec<u32>,
    /// The strings and `SPARE_BYTES`.
    bytes: Buffer,
    /// Places of NULLs, ascending.
    nulls: Vec<u32>,
}

/// Strings between asking for one and copying it: they lie where the scan left them.
pub(crate) const STRINGS_AHEAD: usize = 16;

/// Scratch memory for what compact keys do not keep.
#[derive(Debug)]
pub struct KeyScratch {
    hashes: Vec<u64>,
    views: Vec<u128>,
    keys: EncodedKeys,
}

impl Default for KeyScratch {
    fn default() -> Self {
        Self {
            hashes: Vec::new(),
            views: Vec::new(),
            keys: EncodedKeys::None(0),
        }
    }
}

impl CompactKeys {
    /// Keys of one or two words that are in their order already; of their hashes number `at` belongs to key `places[at]`.
    pub fn fixed_width(keys: EncodedKeys, hashes: &[u64], places: &[u32]) -> Self {
        Self::FixedWidth {
            keys,
            nulls: nulls(hashes, places),
        }
    }

    /// No keys, as a page of these has them.
    pub fn none(&self) -> Self {
        match self {
            Self::Whole { keys, views, .. } => Self::Whole {
                keys: keys.none(),
                hashes: Vec::new(),
                views: views.clone(),
            },
            Self::FixedWidth { keys, .. } => Self::FixedWidth {
                keys: keys.none(),
                nulls: Vec::new(),
            },
            Self::Short(short) => Self::Whole {
                keys: short.none(),
                hashes: Vec::new(),
                views: short.views().to_vec(),
            },
            Self::Strings(_) => Self::Strings(Strings::default()),
        }
    }

    /// The words at which the views of keys of several words begin.
    pub fn views(&self) -> &[usize] {
        match self {
            Self::Whole { views, .. } => views,
            Self::Short(short) => short.views(),
            Self::FixedWidth { .. } | Self::Strings(_) => &[],
        }
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole { keys, .. } | Self::FixedWidth { keys, .. } => keys.len(),
            Self::Short(short) => short.len(),
            Self::Strings(strings) => strings.len(),
        }
    }

    /// Bytes held without the buffers, which may be shared.
    pub fn own_bytes(&self) -> usize {
        match self {
            Self::Whole { keys, hashes, .. } => keys.own_bytes() + hashes.capacity() * 8,
            Self::FixedWidth { keys, nulls } => keys.own_bytes() + nulls.capacity() * 4,
            Self::Short(short) => short.own_bytes(),
            Self::Strings(strings) => strings.own_bytes(),
        }
    }

    /// What keys point into.
    pub fn buffers(&self) -> &[Buffer] {
        match self {
            Self::Whole { keys, .. } | Self::FixedWidth { keys, .. } => keys.buffers(),
            Self::Short(short) => short.buffers(),
            Self::Strings(strings) => strings.buffers(),
        }
    }

    /// The keys of a range and their hashes; what they do not keep comes into `scratch`.
    pub fn open<'a>(
        &'a self,
        range: Range<usize>,
        scratch: &'a mut KeyScratch,
    ) -> (KeyRows<'a>, &'a [u64]) {
        match self {
            Self::Whole { keys, hashes, .. } => (keys.rows(range.clone()), &hashes[range]),
            Self::Short(short) => short.open(range, scratch),
            Self::FixedWidth { keys, nulls } => {
                let rows = keys.rows(range.clone());
                scratch.hashes.clear();
                let KeyRows::Packed(words) = rows else {
                    unreachable!("keys of one or two words")
                };
                with_width!(words, PackedRows(words) => hash_packed(words.keys, &mut scratch.hashes));
                mark(places(nulls, &range), &mut scratch.hashes);
                (rows, &scratch.hashes)
            }
            Self::Strings(strings) => strings.open(range, scratch),
        }
    }

    /// The keys of a range as a table would give them.
    pub fn distinct(&self, range: Range<usize>) -> DistinctKeys {
        let mut scratch = KeyScratch::default();
        let (keys, hashes) = self.open(range, &mut scratch);
        DistinctKeys {
            keys: keys.to_owned(),
            hashes: hashes.to_vec(),
        }
    }

    /// Places of NULLs in a range, counted from its start, where hashes do not tell them.
    pub fn nulls(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let nulls: &[u32] = match self {
            Self::Whole { .. } | Self::Short(_) => &[],
            Self::FixedWidth { nulls, .. } | Self::Strings(Strings { nulls, .. }) => nulls,
        };
        places(nulls, range)
    }
}

impl Default for Strings {
    /// None.
    fn default() -> Self {
        StringsBuilder::new(0, 0).finish(Vec::new())
    }
}

impl Strings {
    /// Number of strings.
    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn own_bytes(&self) -> usize {
        (self.starts.capacity() + self.nulls.capacity()) * 4
    }

    fn buffers(&self) -> &[Buffer] {
        std::slice::from_ref(&self.bytes)
    }

    /// Views of the strings of a range, the longer ones into their bytes as the only buffer.
    fn views(&self, range: Range<usize>) -> impl Iterator<Item = u128> {
        let starts = self.starts[range.start..=range.end].windows(2);
        starts.map(|pair| view_in(&self.bytes, pair[0], pair[1] - pair[0]))
    }

    /// The strings of a range, one behind the other.
    pub fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[self.starts[range.start] as usize..self.starts[range.end] as usize]
    }

    /// The lengths of the strings of a range.
    pub fn lengths(&self, range: &Range<usize>) -> impl Iterator<Item = u32> {
        let starts = self.starts[range.start..=range.end].windows(2);
        starts.map(|pair| pair[1] - pair[0])
    }

    fn open<'a>(
        &'a self,
        range: Range<usize>,
        scratch: &'a mut KeyScratch,
    ) -> (KeyRows<'a>, &'a [u64]) {
        let buffers = self.buffers();
        let KeyScratch { hashes, views, .. } = scratch;
        views.clear();
        views.extend(self.views(range.clone()));
        hashes.clear();
        hashes.extend(views.iter().map(|&view| bytes::hash_one(view, buffers)));
        mark(places(&self.nulls, &range), hashes);
        (KeyRows::Bytes(views, buffers), hashes)
    }
}

/// The view of the string of so many bytes at `start`.
#[inline(always)]
fn view_in(bytes: &[u8], start: u32, length: u32) -> u128 {
    let first: [u8; SPARE_BYTES] = bytes[start as usize..][..SPARE_BYTES]
        .try_into()
        .expect("as many bytes behind the last string");
    let first = u128::from_le_bytes(first);
    match length {
        0..=12 => u128::from(length) | (first & ((1 << (8 * length)) - 1)) << 32,
        _ => u128::from(length) | u128::from(first as u32) << 32 | u128::from(start) << 96,
    }
}

/// Strings one behind the other, as they come.
pub(crate) struct StringsBuilder {
    starts: Vec<u32>,
    bytes: Vec<u8>,
}

impl StringsBuilder {
    /// Room for strings of so many bytes, of which a block has no more than 4 GiB.
    pub(crate) fn checked(strings: usize, bytes: usize) -> Result<Self> {
        u32::try_from(bytes)
            .map_err(|_| Error::TooLarge("4 GiB of text in keys of one block".to_string()))?;
        Ok(Self::new(strings, bytes))
    }

    /// Room for so many strings, whose bytes are fewer than 4 GiB.
    pub(crate) fn new(strings: usize, bytes: usize) -> Self {
        assert!(u32::try_from(bytes).is_ok(), "places of 32 bits");
        let mut starts = Vec::with_capacity(strings + 1);
        starts.push(0);
        Self {
            starts,
            bytes: Vec::with_capacity(bytes + SPARE_BYTES),
        }
    }

    /// The string of a view.
    #[inline(always)]
    pub(crate) fn push(&mut self, view: u128, buffers: &[Buffer]) {
        if is_long(view) {
            with_bytes(view, buffers, |bytes| self.bytes.extend_from_slice(bytes));
        } else if view as u32 > 0 {
            let end = self.bytes.len() + view as u32 as usize;
            self.bytes.extend_from_slice(&(view >> 32).to_le_bytes());
            self.bytes.truncate(end);
        }
        self.starts.push(self.bytes.len() as u32);
    }

    /// Strings of these lengths.
    pub(crate) fn extend(&mut self, lengths: impl Iterator<Item = u32>, bytes: &[u8]) {
        let ends = ends(self.bytes.len(), lengths);
        self.starts.extend(ends.map(|end| end as u32));
        self.bytes.extend_from_slice(bytes);
        let end = self.starts.last().map(|end| *end as usize);
        assert_eq!(end, Some(self.bytes.len()), "the lengths of these bytes");
    }

    /// The strings, of which those at `nulls` are NULL.
    pub(crate) fn finish(mut self, nulls: Vec<u32>) -> Strings {
        self.bytes.extend_from_slice(&[0; SPARE_BYTES]);
        Strings {
            starts: self.starts,
            bytes: Buffer::from_vec(self.bytes),
            nulls,
        }
    }
}

/// Where strings of these lengths end, the first of which begins at `start`.
pub(crate) fn ends(
    start: usize,
    lengths: impl Iterator<Item = u32>,
) -> impl Iterator<Item = usize> {
    lengths.scan(start, |end, length| {
        *end += length as usize;
        Some(*end)
    })
}

/// Of hashes that come to `places` those of NULL, ascending.
pub(crate) fn nulls(hashes: &[u64], places: &[u32]) -> Vec<u32> {
    let pairs = hashes.iter().zip(places);
    let nulls = pairs.filter(|(hash, _)| **hash == NULL_HASH);
    let mut nulls: Vec<u32> = nulls.map(|(_, place)| *place).collect();
    nulls.sort_unstable();
    nulls
}

/// Places of NULLs in a range, counted from its start.
pub(crate) fn places(nulls: &[u32], range: &Range<usize>) -> impl Iterator<Item = usize> {
    let Range { start, end } = *range;
    let first = nulls.partition_point(|&place| (place as usize) < start);
    let from_first = nulls[first..].iter().map(|&place| place as usize);
    from_first
        .take_while(move |&place| place < end)
        .map(move |place| place - start)
}

fn mark(nulls: impl Iterator<Item = usize>, hashes: &mut [u64]) {
    for place in nulls {
        hashes[place] = NULL_HASH;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ByteKeys, PackedKeys};
    use super::*;
    use proptest::prelude::*;

    /// Keys as a layout gives them, NULL being zero and a hash of its own.
    fn check(keys: EncodedKeys, is_null: &[bool], from: usize) {
        let rows = keys.len();
        let mut hashes = Vec::new();
        match &keys {
            EncodedKeys::Packed(packed) => {
                with_width!(packed, PackedKeys(words) => hash_packed(&words.keys, &mut hashes));
            }
            EncodedKeys::Bytes(keys) => bytes::hash(keys, &mut hashes),
            _ => unreachable!("the forms below"),
        }
        mark((0..rows).filter(|row| is_null[*row]), &mut hashes);
        let places: Vec<u32> = (0..rows as u32).rev().collect();
        let reversed: Vec<u64> = hashes.iter().rev().copied().collect();
        let compact = match &keys {
            EncodedKeys::Bytes(keys) => {
                let mut strings = StringsBuilder::new(rows, 1000);
                keys.views
                    .iter()
                    .for_each(|&view| strings.push(view, &keys.buffers));
                CompactKeys::Strings(strings.finish(nulls(&reversed, &places)))
            }
            keys => CompactKeys::fixed_width(keys.clone(), &reversed, &places),
        };
        assert_eq!(compact.len(), rows);
        let range = from.min(rows)..rows;
        let found = compact.distinct(range.clone());
        assert_eq!(found.hashes, hashes[range.clone()]);
        match (found.keys, keys) {
            (EncodedKeys::Packed(found), EncodedKeys::Packed(keys)) => {
                let words = |keys: &PackedKeys| -> Vec<Vec<u64>> {
                    with_width!(keys, PackedKeys(words) => words.keys.iter().map(|key| key.to_vec()).collect())
                };
                assert_eq!(words(&found), words(&keys)[range]);
            }
            (EncodedKeys::Bytes(found), EncodedKeys::Bytes(keys)) => {
                let strings = |keys: &ByteKeys, range: Range<usize>| -> Vec<Vec<u8>> {
                    let views = keys.views[range].iter();
                    views
                        .map(|&view| with_bytes(view, &keys.buffers, <[u8]>::to_vec))
                        .collect()
                };
                assert_eq!(
                    strings(&found, 0..range.len()),
                    strings(&keys, range.clone())
                );
                // Tables compare what is inline as it is.
                let short = |view: &u128| (!is_long(*view)).then_some(*view);
                let shorts = |views: &[u128]| views.iter().map(short).collect::<Vec<_>>();
                assert_eq!(shorts(&found.views), shorts(&keys.views[range]));
            }
            _ => unreachable!("one layout"),
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in(
            words in proptest::collection::vec(proptest::option::of(0u64..3), 0..50),
            strings in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..30)), 0..30),
            from in 0usize..50,
        ) {
            let is_null: Vec<bool> = words.iter().map(Option::is_none).collect();
            let of = words.iter().map(|word| word.unwrap_or(0));
            let keys = of.clone().map(|word| [word; 1]);
            check(EncodedKeys::of_fixed_width(keys.collect(), Vec::new()), &is_null, from);
            check(EncodedKeys::of_fixed_width(of.map(|word| [word; 2]).collect(), Vec::new()), &is_null, from);
            let is_null: Vec<bool> = strings.iter().map(Option::is_none).collect();
            let column = arrow::array::BinaryViewArray::from_iter(strings.iter().map(|string| Some(string.as_deref().unwrap_or_default())));
            let column: arrow::array::ArrayRef = std::sync::Arc::new(column);
            check(EncodedKeys::Bytes(bytes::encode(&column).expect("strings")), &is_null, from);
        }
    }
}
