//! One 64-bit hash per key row, the same on every machine.
//!
//! In: packed words, string views, bytes. Out: `u64` whose high bits name the partition and whose
//! low bits the slot.
//! Invariant: fixed seeds and little-endian reads, so that a hash may cross disk and machines. Who knows the seeds can
//! choose keys of one hash: a table that meets such keys hashes them once more by seeds of its own (`Seeds::random`).
//! Not here: who notices such keys (`groupby/keys/guarded`).
//!
//! The primitive is the folded 64x64 -> 128-bit multiply. Tried and rejected: two folds per word
//! (better avalanche on paper, the same probe lengths on sequential and strided keys).

use std::hash::{BuildHasher, RandomState};

/// What keys are mixed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds([u64; 4]);

/// Hash of a key that is NULL as a whole. Such a key is stored as zero words; that a zero key
/// hashes to something else tells the two apart (see `null_and_zero_differ`).
pub const NULL_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// High half times low half of the 128-bit product, folded by xor.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Seeds {
    /// Those of hashes that cross disk and machines.
    pub const FIXED: Self = Self([
        0x2d35_8dcc_aa6c_78a5,
        0x8bb8_4b93_962e_acc9,
        0x4b33_a62e_d433_d4a3,
        0x4d5a_2da5_1de1_aa47,
    ]);

    /// Seeds that nobody can know who chooses keys.
    pub fn random() -> Self {
        let secret = RandomState::new();
        let [zero, one, two, three] = [0u64, 1, 2, 3].map(|at| secret.hash_one(at));
        // Words are multiplied by the last: by an odd number none is lost.
        Self([zero, one, two, three | 1])
    }

    /// Hash of one packed key of `N` words.
    #[inline(always)]
    pub const fn hash_words<const N: usize>(self, words: &[u64; N]) -> u64 {
        let Self([zero, one, two, three]) = self;
        let mut hash = zero;
        let mut at = 0;
        while at + 2 <= N {
            hash = fold(
                words[at] ^ one ^ hash,
                words[at + 1] ^ two ^ hash.rotate_left(32),
            );
            at += 2;
        }
        if at < N {
            hash = fold(words[at] ^ hash, three);
        }
        hash
    }

    /// Hash of a byte string. Strings of up to 12 bytes are hashed as their Arrow view, longer ones 16 bytes at a time
    /// with an overlapping last block.
    #[inline(always)]
    pub fn hash_bytes(self, bytes: &[u8]) -> u64 {
        if bytes.len() <= 12 {
            return self.hash_view(inline_view(bytes));
        }
        let Self([zero, one, two, _]) = self;
        let mut hash = zero ^ (bytes.len() as u64);
        if bytes.len() >= 16 {
            let last = bytes.len() - 16;
            let mut at = 0;
            while at < last {
                hash = fold(word(bytes, at) ^ one, word(bytes, at + 8) ^ hash);
                at += 16;
            }
            return fold(word(bytes, last) ^ two, word(bytes, last + 8) ^ hash);
        }
        fold(word(bytes, 0) ^ two, word(bytes, bytes.len() - 8) ^ hash)
    }

    /// Hash of an inline view (a string of up to 12 bytes with its length).
    #[inline(always)]
    pub const fn hash_view(self, view: u128) -> u64 {
        self.hash_words(&[view as u64, (view >> 64) as u64])
    }
}

/// Hash of one packed key of `N` words.
#[inline(always)]
pub const fn hash_words<const N: usize>(words: &[u64; N]) -> u64 {
    Seeds::FIXED.hash_words(words)
}

/// Hashes of packed keys, appended to `hashes`.
pub fn hash_packed<const N: usize>(keys: &[[u64; N]], hashes: &mut Vec<u64>) {
    hashes.extend(keys.iter().map(hash_words));
}

/// Hash of a byte string, see `Seeds::hash_bytes`.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    Seeds::FIXED.hash_bytes(bytes)
}

/// Hash of an inline view, see `Seeds::hash_view`.
#[inline(always)]
pub const fn hash_view(view: u128) -> u64 {
    Seeds::FIXED.hash_view(view)
}

/// The hash once more through the multiplier, for sketches: they count zeros in it, and hashes of
/// sequential keys are spread more evenly than chance would.
#[inline(always)]
pub const fn mix(hash: u64) -> u64 {
    let Seeds([_, one, two, _]) = Seeds::FIXED;
    fold(hash ^ one, two)
}

/// The Arrow view of a string of up to 12 bytes: length, then the bytes, zero-padded.
#[inline]
pub fn inline_view(bytes: &[u8]) -> u128 {
    debug_assert!(bytes.len() <= 12, "an inline view holds up to 12 bytes");
    let mut view = [0u8; 16];
    view[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    view[4..4 + bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(view)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn null_and_zero_differ() {
        let tag = |hash: u64| (hash >> 24) as u32;
        assert_ne!(tag(NULL_HASH), tag(hash_words(&[0u64; 1])));
        assert_ne!(tag(NULL_HASH), tag(hash_words(&[0u64; 2])));
        assert_ne!(tag(NULL_HASH), tag(hash_words(&[0u64; 4])));
        assert_ne!(tag(NULL_HASH), tag(hash_bytes(b"")));
    }

    /// Hashes cross disk and machines: these values are part of the format.
    #[test]
    fn hashes_never_change() {
        assert_eq!(hash_words(&[1u64]), 0x9d53_ed2a_13b8_8902);
        assert_eq!(hash_words(&[1u64, 2]), 0x58bf_231d_b78f_3b82);
        assert_eq!(mix(1), 0x36f3_8b27_09f3_6b75);
        assert_eq!(hash_bytes(b"grouse"), 0x5e43_09b8_95c6_713b);
        assert_eq!(hash_bytes(b"the quick brown grouse"), 0xece0_fff2_ec29_0355);
    }

    /// Keys of one hash by the fixed seeds, words and strings, have others by seeds that nobody knows.
    #[test]
    fn secret_seeds_tell_chosen_keys_apart() {
        let Seeds([zero, one, two, _]) = Seeds::FIXED;
        let ours = Seeds::random();
        assert_ne!(ours, Seeds::random());
        let pairs: Vec<[u64; 2]> = (0..1000).map(|at| [zero ^ one, at]).collect();
        let mut strings: Vec<Vec<u8>> = Vec::new();
        for at in 0..1000u64 {
            let blocks = [at, at, one, at, 7, 7];
            strings.push(blocks.iter().flat_map(|word| word.to_le_bytes()).collect());
        }
        let cancelled = two ^ zero.rotate_left(32);
        let views = (0..1000u128).map(|at| u128::from(cancelled) << 64 | at << 32 | 12);
        let of = |seeds: Seeds| {
            let pairs = pairs.iter().map(|pair| seeds.hash_words(pair));
            let strings = strings.iter().map(|string| seeds.hash_bytes(string));
            let views = views.clone().map(|view| seeds.hash_view(view));
            [pairs.collect(), strings.collect(), views.collect()]
                .map(|hashes: HashSet<u64>| hashes.len())
        };
        assert_eq!(of(Seeds::FIXED), [1, 1, 1]);
        assert!(
            of(ours).iter().all(|hashes| *hashes > 990),
            "{:?}",
            of(ours)
        );
    }

    /// Chi-square-like bound: sequential, strided and shifted keys fill partitions evenly.
    #[test]
    fn structured_keys_spread_over_high_and_low_bits() {
        for step in [1u64, 2, 7, 64, 1000, 1 << 20, 1 << 32, 1 << 48] {
            let mut high = [0u32; 256];
            let mut low = [0u32; 256];
            for at in 0..256u64 * 64 {
                let hash = hash_words(&[at.wrapping_mul(step)]);
                high[(hash >> 56) as usize] += 1;
                low[(hash & 255) as usize] += 1;
            }
            for (name, counts) in [("high", high), ("low", low)] {
                let worst = counts.iter().max().expect("256 counts");
                assert!(
                    *worst < 64 * 3,
                    "step {step}: {name} bits give {worst} of 64 expected"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_equal_the_naive_twin(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(hash_bytes(&bytes), crate::naive::hash_bytes(&bytes));
        }

        #[test]
        fn mixes_equal_the_naive_twin(hash in any::<u64>()) {
            prop_assert_eq!(mix(hash), crate::naive::mix(hash));
        }

        #[test]
        fn words_equal_the_naive_twin(words in any::<[u64; 4]>()) {
            prop_assert_eq!(hash_words(&words), crate::naive::hash_words(&words));
        }
    }
}
