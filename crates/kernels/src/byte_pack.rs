//! Words without the bytes in which all of a column are alike.
//!
//! In: words of 64 bits. Out: how they differ from the first; of each word the bytes from the lowest to the highest in which
//! any differs; the words again.
//! Invariant: what comes out is what went in. Words are written and read as 8 bytes each, whatever is left of them, so that
//! `SPARE_BYTES` have to lie behind the last.
//! Not here: types, NULLs, where the first word is kept.

/// Bytes behind packed words that are read, and do not count.
pub const SPARE_BYTES: usize = 8;

/// Adds the bits in which words of the rows differ from those of `first`, word by word of a row.
#[inline]
pub fn differing<T: Copy + Into<u64>, const N: usize>(
    rows: &[[T; N]],
    first: &[u64; N],
    bits: &mut [u64; N],
) {
    for row in rows {
        for ((bits, first), word) in bits.iter_mut().zip(first).zip(row) {
            *bits |= first ^ (*word).into();
        }
    }
}

/// Which bytes of words are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytePacking {
    /// The bits that all words have.
    alike: u64,
    /// Where the bytes begin, in bits.
    shift: u32,
    /// How many they are.
    width: usize,
}

impl BytePacking {
    /// For words that differ from `first` in those bits at most.
    pub fn new(first: u64, differing: u64) -> Self {
        if differing == 0 {
            return Self {
                alike: first,
                shift: 0,
                width: 0,
            };
        }
        let lowest = differing.trailing_zeros() / 8;
        let highest = differing.ilog2() / 8;
        Self::from_parts(first, lowest as u8, (highest - lowest + 1) as u8)
            .expect("bytes of one word")
    }

    /// The inverse of [`Self::parts`] for `first` or any other of the words; `None` where there are no such bytes.
    pub fn from_parts(first: u64, lowest: u8, width: u8) -> Option<Self> {
        if lowest > 7 || u32::from(lowest) + u32::from(width) > 8 {
            return None;
        }
        let shift = 8 * u32::from(lowest);
        let width = usize::from(width);
        Some(Self {
            alike: first & !(mask(width) << shift),
            shift,
            width,
        })
    }

    /// The bits that all words have, the lowest byte that is kept, and how many are.
    pub fn parts(self) -> (u64, u8, u8) {
        (self.alike, (self.shift / 8) as u8, self.width as u8)
    }

    /// Bytes that are kept of a word.
    pub fn width(self) -> usize {
        self.width
    }

    /// Appends so many words.
    #[inline]
    pub fn pack(self, words: impl Iterator<Item = u64>, count: usize, out: &mut Vec<u8>) {
        if self.width == 0 {
            return;
        }
        let mut at = out.len();
        let end = at + count * self.width;
        out.resize(end + SPARE_BYTES, 0);
        words.for_each(|word| {
            let kept = (word >> self.shift).to_le_bytes();
            out[at..at + SPARE_BYTES].copy_from_slice(&kept);
            at += self.width;
        });
        assert_eq!(at, end, "as many words as were said");
        out.truncate(end);
    }

    /// The first `count` words of `bytes`, which has `SPARE_BYTES` more than they take.
    #[inline]
    pub fn unpack(self, bytes: &[u8], count: usize) -> impl ExactSizeIterator<Item = u64> {
        assert!(
            count * self.width + SPARE_BYTES <= bytes.len(),
            "spare bytes"
        );
        let mask = mask(self.width);
        (0..count).map(move |at| {
            let kept = bytes[at * self.width..][..SPARE_BYTES].try_into();
            let kept = u64::from_le_bytes(kept.expect("eight bytes"));
            (kept & mask) << self.shift | self.alike
        })
    }
}

fn mask(width: usize) -> u64 {
    match width {
        0 => 0,
        _ => u64::MAX >> (64 - 8 * width),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;

    fn check(words: &[u64]) {
        let rows = words.as_chunks::<1>().0;
        let mut bits = [0];
        differing(rows, &[words[0]], &mut bits);
        let packing = BytePacking::new(words[0], bits[0]);
        let mut packed = vec![7];
        packing.pack(words.iter().copied(), words.len(), &mut packed);
        assert_eq!(packed[1..], naive::byte_pack(words));
        packed.extend([0xa5; SPARE_BYTES]);
        let (alike, lowest, width) = packing.parts();
        assert_eq!(BytePacking::from_parts(alike, lowest, width), Some(packing));
        let found: Vec<u64> = packing.unpack(&packed[1..], words.len()).collect();
        assert_eq!(found, words);
    }

    proptest! {
        #[test]
        fn words_come_out_as_they_went_in(
            words in proptest::collection::vec(any::<u64>(), 1..40),
            mask in any::<u64>(),
            alike in any::<u64>(),
            shift in 0u32..64,
        ) {
            let narrowed = |mask: u64| -> Vec<u64> {
                words.iter().map(|word| word & mask | alike & !mask).collect()
            };
            check(&narrowed(mask));
            check(&narrowed(u64::MAX >> shift));
            check(&narrowed(u64::MAX << shift));
            check(&narrowed(1 << shift));
            check(&narrowed(0));
        }
    }

    #[test]
    fn rows_of_several_words_differ_word_by_word() {
        let rows = [[1u32, 0], [3, 0], [1, 1 << 31]];
        let mut bits = [0; 2];
        differing(&rows[..2], &[1, 0], &mut bits);
        assert_eq!(bits, [2, 0]);
        differing(&rows, &[1, 0], &mut bits);
        assert_eq!(bits, [2, 1 << 31]);
    }

    #[test]
    fn bytes_that_no_word_has_are_refused() {
        for (lowest, width) in [(8, 0), (7, 2), (0, 9), (3, 6)] {
            assert_eq!(BytePacking::from_parts(0, lowest, width), None);
        }
        assert!(BytePacking::from_parts(0, 0, 8).is_some());
    }
}
