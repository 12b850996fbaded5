//! Compact keys of several words: the words that are not 0 in all of them, long strings one behind the other.
//!
//! In: keys with their strings as views, and where each comes to lie. Out: any range of them as tables take them, with their
//! hashes.
//! Invariant: what is 0 in all keys is not kept, nor are hashes and views of columns in which a string is long. Views of
//! short strings stay words: they take no more room than a place and the string.
//! Not here: keys of one or two words and of one string (`compact`).
//!
//! Of 1.3 M keys of a string and a number that leaves 12 bytes and the string of 40 and the string. A column per word was tried: six
//! keys of db-benchmark 1.25 of the time. So were hashes that are kept: no faster.

use std::ops::Range;

use arrow::buffer::Buffer;
use grouse_kernels::scatter::scatter;

use super::super::bytes::Arena;
use super::super::fixed_width::{
    FixedWidth, FixedWidthKeys, PackedKeys, set_view, view_of, with_width,
};
use super::super::packed::hash_wide;
use super::super::views::{fetch, is_long, long_bytes};
use super::super::{EncodedKeys, KeyRows};
use super::{CompactKeys, KeyScratch, STRINGS_AHEAD, Strings, StringsBuilder};
use crate::error::Result;

/// Of keys without long strings, so many words of so many are kept at most.
const KEPT_MAX: usize = 3;
const KEPT_OF: usize = 4;

/// Whether keys are worth the time to shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// They are all that waits: pairs of a DISTINCT, distinct rows.
    Nothing,
    /// Aggregates wait beside them. Shortened all the same, they took 1.08 to 1.24 of the time, on memory that was touched, in
    /// four queries of hits, and 0.75 of the bytes.
    Aggregates,
}

/// Keys of several words.
#[derive(Debug)]
pub struct ShortKeys {
    /// Words of a key as tables take it.
    width: usize,
    /// The words at which views begin.
    views: Vec<usize>,
    /// Those of columns with long strings.
    long: Vec<usize>,
    /// Which words are kept.
    kept: Vec<usize>,
    /// Of each key those words.
    words: Vec<u64>,
    /// Of each key the strings of `long`.
    strings: Strings,
    keys: usize,
}

impl ShortKeys {
    /// Keys of several parts, each with the places of its keys among all; of their hashes number `at` belongs to key
    /// `places[at]`; `views` are the words at which views begin. Whole ones where it is not worth while to
    /// shorten them.
    pub(crate) fn of<const N: usize>(
        parts: &[(&FixedWidthKeys<N>, &[u32])],
        (hashes, places): (&[u64], &[u32]),
        views: &[usize],
        beside: Beside,
    ) -> Result<CompactKeys>
    where
        PackedKeys: FixedWidth<N>,
    {
        let SortedKeys {
            keys,
            long,
            buffers,
        } = SortedKeys::of(parts, hashes.len(), views);
        let kept = match beside {
            Beside::Nothing => kept(&keys, &long),
            Beside::Aggregates => None,
        };
        let Some(kept) = kept else {
            let mut sorted_hashes = vec![0; hashes.len()];
            scatter(hashes, places, &mut sorted_hashes);
            let FixedWidthKeys { keys, buffers } = copied(keys, &long, &buffers)?;
            return Ok(CompactKeys::Whole {
                keys: EncodedKeys::of_fixed_width(keys, buffers),
                hashes: sorted_hashes,
                views: views.to_vec(),
            });
        };
        Ok(CompactKeys::Short(Box::new(Self {
            width: N,
            views: views.to_vec(),
            strings: strings(&keys, &long, &buffers)?,
            words: words(&keys, &kept),
            keys: keys.len(),
            long,
            kept,
        })))
    }

    /// No keys, which are of the width of these.
    pub fn none(&self) -> EncodedKeys {
        EncodedKeys::Packed(match self.width {
            4 => PackedKeys::Four(FixedWidthKeys::default()),
            8 => PackedKeys::Eight(FixedWidthKeys::default()),
            _ => PackedKeys::Twelve(FixedWidthKeys::default()),
        })
    }

    /// The words at which views begin.
    pub fn views(&self) -> &[usize] {
        &self.views
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys
    }

    /// Bytes held without the strings' own.
    pub fn own_bytes(&self) -> usize {
        self.words.capacity() * 8 + self.strings.own_bytes()
    }

    /// The strings' bytes.
    pub fn buffers(&self) -> &[Buffer] {
        self.strings.buffers()
    }

    /// The keys of a range and their hashes.
    pub fn open<'a>(
        &self,
        range: Range<usize>,
        scratch: &'a mut KeyScratch,
    ) -> (KeyRows<'a>, &'a [u64]) {
        let KeyScratch { keys, hashes, .. } = scratch;
        // Room that was for keys of another width is begun anew.
        match keys {
            EncodedKeys::Packed(PackedKeys::Four(_)) if self.width == 4 => {}
            EncodedKeys::Packed(PackedKeys::Eight(_)) if self.width == 8 => {}
            EncodedKeys::Packed(PackedKeys::Twelve(_)) if self.width == 12 => {}
            _ => *keys = self.none(),
        }
        if let EncodedKeys::Packed(packed) = keys {
            with_width!(packed, PackedKeys(words) => self.fill(&range, words, hashes));
        }
        (keys.all(), hashes)
    }

    fn fill<const N: usize>(
        &self,
        range: &Range<usize>,
        out: &mut FixedWidthKeys<N>,
        hashes: &mut Vec<u64>,
    ) {
        out.keys.clear();
        out.buffers.clear();
        if !self.long.is_empty() {
            out.buffers.extend_from_slice(self.strings.buffers());
        }
        // Loops of their own where few words are kept.
        match (&self.kept[..], &self.long[..]) {
            (&[one], &[view]) => self.fill_words(&[one], &[view], range, &mut out.keys),
            (&[a, b], &[view]) => self.fill_words(&[a, b], &[view], range, &mut out.keys),
            (kept, long) => self.fill_words(kept, long, range, &mut out.keys),
        }
        hashes.clear();
        hash_wide(&out.keys, &out.buffers, &self.views, hashes);
    }

    #[inline(always)]
    fn fill_words<const N: usize>(
        &self,
        kept: &[usize],
        long: &[usize],
        range: &Range<usize>,
        keys: &mut Vec<[u64; N]>,
    ) {
        let own = |each: usize| range.start * each..range.end * each;
        let mut views = self.strings.views(own(long.len()));
        let mut words = &self.words[own(kept.len())];
        keys.extend(range.clone().map(|_| {
            let (own, others) = words.split_at(kept.len());
            words = others;
            let mut key = [0; N];
            for (&word, &value) in kept.iter().zip(own) {
                key[word] = value;
            }
            for &word in long {
                set_view(&mut key, word, views.next().expect("a string per view"));
            }
            key
        }));
    }
}

/// Keys of all parts in their order. Whole keys move, each a cache line or less; what is kept of them is read in order.
struct SortedKeys<const N: usize> {
    keys: Vec<[u64; N]>,
    /// The views of columns in which a string is long.
    long: Vec<usize>,
    buffers: Vec<Buffer>,
}

impl<const N: usize> SortedKeys<N> {
    fn of(parts: &[(&FixedWidthKeys<N>, &[u32])], all: usize, views: &[usize]) -> Self {
        let mut keys = vec![[0; N]; all];
        let mut has_long = [false; N];
        let mut buffers: Vec<Buffer> = Vec::new();
        for (part, places) in parts {
            let first = (buffers.len() as u128) << 64;
            buffers.extend_from_slice(&part.buffers);
            for (key, &place) in part.keys.iter().zip(*places) {
                let mut key = *key;
                for &word in views {
                    let view = view_of(&key, word);
                    if is_long(view) {
                        has_long[word] = true;
                        set_view(&mut key, word, view + first);
                    }
                }
                keys[place as usize] = key;
            }
        }
        let long = views.iter().copied().filter(|&view| has_long[view]);
        Self {
            keys,
            long: long.collect(),
            buffers,
        }
    }
}

/// The words of no long string that are not 0 in all keys; `None` where keys without them would hardly be shorter.
fn kept<const N: usize>(keys: &[[u64; N]], long: &[usize]) -> Option<Vec<usize>> {
    let mut any = [0; N];
    for key in keys {
        for word in 0..N {
            any[word] |= key[word];
        }
    }
    let is_of_view = |word: usize| long.iter().any(|&view| view == word || view + 1 == word);
    let kept = (0..N).filter(|&word| any[word] != 0 && !is_of_view(word));
    let kept: Vec<usize> = kept.collect();
    (!long.is_empty() || kept.len() * KEPT_OF <= N * KEPT_MAX).then_some(kept)
}

/// The keys with copies of their long strings, which come to lie in the order of the keys while they are warm.
fn copied<const N: usize>(
    mut keys: Vec<[u64; N]>,
    long: &[usize],
    buffers: &[Buffer],
) -> Result<FixedWidthKeys<N>> {
    if long.is_empty() {
        let buffers = Vec::new();
        return Ok(FixedWidthKeys { keys, buffers });
    }
    let mut bytes = 0;
    for key in &keys {
        for view in long.iter().map(|&word| view_of(key, word)) {
            bytes += usize::from(is_long(view)) * view as u32 as usize;
        }
    }
    let mut arena = Arena::with_capacity(bytes);
    for at in 0..keys.len() {
        for &word in long {
            if let Some(ahead) = keys.get(at + STRINGS_AHEAD) {
                fetch(view_of(ahead, word), buffers);
            }
            let view = view_of(&keys[at], word);
            if is_long(view) {
                keys[at][word + 1] = arena.place(long_bytes(view, buffers))?;
            }
        }
    }
    let buffers = arena.into_buffers();
    Ok(FixedWidthKeys { keys, buffers })
}

/// These words of each key.
fn words<const N: usize>(keys: &[[u64; N]], kept: &[usize]) -> Vec<u64> {
    let mut words = Vec::with_capacity(keys.len() * kept.len());
    match *kept {
        [] => {}
        [one] => words.extend(keys.iter().map(|key| key[one])),
        [a, b] => words.extend(keys.iter().flat_map(|key| [key[a], key[b]])),
        [a, b, c] => words.extend(keys.iter().flat_map(|key| [key[a], key[b], key[c]])),
        _ => words.extend(
            keys.iter()
                .flat_map(|key| kept.iter().map(|&word| key[word])),
        ),
    }
    words
}

/// The strings of these views of each key, copied while they are warm.
fn strings<const N: usize>(
    keys: &[[u64; N]],
    long: &[usize],
    buffers: &[Buffer],
) -> Result<Strings> {
    if long.is_empty() {
        return Ok(Strings::default());
    }
    let length = |key: &[u64; N], word: usize| key[word] as u32 as usize;
    let lengths = keys
        .iter()
        .flat_map(|key| long.iter().map(|&word| length(key, word)));
    let mut built = StringsBuilder::checked(keys.len() * long.len(), lengths.sum())?;
    for (at, key) in keys.iter().enumerate() {
        for &word in long {
            if let Some(ahead) = keys.get(at + STRINGS_AHEAD) {
                fetch(view_of(ahead, word), buffers);
            }
            built.push(view_of(key, word), buffers);
        }
    }
    Ok(built.finish(Vec::new()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray};
    use arrow::datatypes::Field;
    use proptest::prelude::*;

    use super::super::super::{DistinctKeys, KeyLayout};
    use crate::keys::TableKind;
    use crate::partition::{Block, Unsorted};

    /// Columns of strings and numbers, sorted into blocks of several parts, and back, with a hash in front of each row.
    fn check(columns: &[ArrayRef]) {
        let rows = columns[0].len();
        let fields = columns.iter().enumerate().map(|(at, column)| {
            Arc::new(Field::new(at.to_string(), column.data_type().clone(), true))
        });
        let layout = KeyLayout::new(&fields.collect::<Vec<_>>(), TableKind::Packed).unwrap();
        assert_eq!(layout.hashed_kind(), "packed");
        let wanted: Vec<usize> = (0..columns.len()).collect();
        let lines_of = |keys: &DistinctKeys| {
            let decoded = layout.decode(keys, 0..keys.hashes.len(), &wanted).unwrap();
            let mut lines: Vec<String> = keys.hashes.iter().map(u64::to_string).collect();
            for column in decoded {
                for (at, line) in lines.iter_mut().enumerate() {
                    *line += &format!(" {:?}", column.slice(at, 1));
                }
            }
            lines.sort();
            lines
        };
        let parts = || {
            [0..rows / 3, rows / 3..rows].map(|range| {
                let some: Vec<_> = columns
                    .iter()
                    .map(|c| c.slice(range.start, range.len()))
                    .collect();
                let mut hashes = Vec::new();
                let keys = layout.encode(&some, range.len(), &mut hashes).unwrap();
                Unsorted {
                    keys,
                    hashes,
                    aggregates: Vec::new(),
                    distinct: false,
                }
            })
        };
        let mut hashes = Vec::new();
        let keys = layout.encode(columns, rows, &mut hashes).unwrap();
        let expected = lines_of(&DistinctKeys { keys, hashes });
        let block = Block::sort(parts().into(), 2, layout.views()).unwrap();
        assert_eq!(lines_of(&block.slice(0..rows).distinct_keys()), expected);
        let by_partition = (0..4).flat_map(|partition| {
            let tuples = block.tuples(&(partition..partition + 1));
            let keys = block.slice(tuples).distinct_keys();
            assert!(
                keys.hashes
                    .iter()
                    .all(|hash| hash >> 62 == partition as u64)
            );
            lines_of(&keys)
        });
        let mut by_partition: Vec<String> = by_partition.collect();
        by_partition.sort();
        assert_eq!(by_partition, expected);
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in(
            rows in proptest::collection::vec(
                (proptest::option::of("[ab]{0,14}"), proptest::option::of(-2i64..2), proptest::option::of("é{0,9}")),
                0..40,
            ),
        ) {
            let strings: ArrayRef = Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.0.as_deref())));
            let short: ArrayRef = Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.0.as_deref().map(|string| &string[..string.len() / 2]))));
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1)));
            let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; rows.len()]));
            let others: ArrayRef = Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.2.as_deref())));
            check(&[strings.clone(), numbers.clone()]);
            check(&[short.clone(), numbers.clone()]);
            check(&[numbers.clone(), strings.clone(), zeros.clone(), others.clone()]);
            check(&[numbers.clone(), zeros.clone(), numbers.clone()]);
            check(&[others, short, strings, numbers, zeros]);
        }
    }
}
