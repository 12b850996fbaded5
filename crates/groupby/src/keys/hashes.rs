//! The hashes of keys that wait for the merge: kept where a string would have to be read again, else made anew from the
//! keys' words, which is a multiplication or two for 8 bytes less per record.
//!
//! In: encoded keys and their hashes, in one order. Out: the hashes of any range of them.
//! Invariant: what comes out is what went in; words do not tell the key that is NULL as a whole from zero, so that the
//! places of NULLs are kept.
//! Not here: the hash itself (`layout`, kernels).

use std::ops::Range;

use grouse_kernels::hash::{NULL_HASH, hash_packed};

use super::{EncodedKeys, KeyRows};

/// One hash per key.
#[derive(Debug)]
pub enum Hashes {
    /// As they were.
    Kept(Vec<u64>),
    /// What the keys' words hash to, but for NULLs, whose places ascend.
    OfWords {
        /// The places.
        nulls: Vec<u32>,
    },
}

impl Hashes {
    /// None yet, of keys like these.
    pub fn none(keys: &EncodedKeys) -> Self {
        match keys {
            EncodedKeys::Packed1(_) | EncodedKeys::Packed2(_) => {
                Self::OfWords { nulls: Vec::new() }
            }
            _ => Self::Kept(Vec::new()),
        }
    }

    /// The hashes of keys like these, of which number `at` comes to `places[at]`.
    pub fn moved(keys: &EncodedKeys, hashes: &[u64], places: &[u32]) -> Self {
        let mut moved = Self::none(keys);
        match &mut moved {
            Self::Kept(kept) => {
                kept.resize(hashes.len(), 0);
                grouse_kernels::scatter::scatter(hashes, places, kept);
            }
            Self::OfWords { nulls } => {
                let pairs = hashes.iter().zip(places);
                nulls.extend(
                    pairs
                        .filter(|(hash, _)| **hash == NULL_HASH)
                        .map(|(_, place)| place),
                );
                nulls.sort_unstable();
            }
        }
        moved
    }

    /// The hashes of the keys `range`, which are `keys`; `made` is room for them.
    pub fn of<'a>(
        &'a self,
        keys: KeyRows<'_>,
        range: Range<usize>,
        made: &'a mut Vec<u64>,
    ) -> &'a [u64] {
        if let Self::Kept(kept) = self {
            return &kept[range];
        }
        made.clear();
        match keys {
            KeyRows::Packed1(keys) => hash_packed(keys, made),
            KeyRows::Packed2(keys) => hash_packed(keys, made),
            _ => unreachable!("hashes of all other keys are kept"),
        }
        for place in self.nulls(&range) {
            made[place] = NULL_HASH;
        }
        made
    }

    /// Places of NULLs in `range`, counted from its start, where they are told apart from hashes.
    pub fn nulls(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let nulls = match self {
            Self::Kept(_) => &[],
            Self::OfWords { nulls } => nulls.as_slice(),
        };
        let first = nulls.partition_point(|&place| (place as usize) < range.start);
        let Range { start, end } = *range;
        let from_first = nulls[first..].iter().map(|&place| place as usize);
        from_first
            .take_while(move |&place| place < end)
            .map(move |place| place - start)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Kept(hashes) => hashes.capacity() * 8,
            Self::OfWords { nulls } => nulls.capacity() * 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keys of `N` words and their hashes as a layout gives them: NULL is zero words and a hash of its own.
    fn keys<const N: usize>(words: &[Option<u64>]) -> (Vec<[u64; N]>, Vec<u64>) {
        let keys: Vec<[u64; N]> = words.iter().map(|word| [word.unwrap_or(0); N]).collect();
        let mut hashes = Vec::new();
        hash_packed(&keys, &mut hashes);
        for (hash, word) in hashes.iter_mut().zip(words) {
            *hash = word.map_or(NULL_HASH, |_| *hash);
        }
        (keys, hashes)
    }

    fn check(keys: EncodedKeys, hashes: &[u64], places: &[u32], range: Range<usize>) {
        let mut expected = vec![0; hashes.len()];
        for (&hash, &place) in hashes.iter().zip(places) {
            expected[place as usize] = hash;
        }
        let moved = Hashes::moved(&keys, hashes, places);
        let found = moved
            .of(keys.rows(range.clone()), range.clone(), &mut vec![7; 3])
            .to_vec();
        assert_eq!(found, &expected[range]);
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in(
            mut words in proptest::collection::vec(proptest::option::of(0u64..3), 0..50),
            seed in any::<u64>(),
            from in 0usize..50,
        ) {
            let rows = words.len();
            let mut places: Vec<u32> = (0..rows as u32).collect();
            places.sort_by_key(|place| u64::from(*place + 1).wrapping_mul(seed | 1));
            let (_, hashes) = keys::<1>(&words);
            let mut sorted = words.clone();
            for (word, &place) in words.drain(..).zip(&places) {
                sorted[place as usize] = word;
            }
            let range = from.min(rows)..rows;
            check(EncodedKeys::Packed1(keys::<1>(&sorted).0), &hashes, &places, range.clone());
            let two: Vec<_> = places.iter().map(|&place| sorted[place as usize]).collect();
            let (_, hashes) = keys::<2>(&two);
            check(EncodedKeys::Packed2(keys::<2>(&sorted).0), &hashes, &places, range);
        }
    }
}
