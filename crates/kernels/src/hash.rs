//! One 64-bit hash per key row, the same on every machine.
//!
//! In: packed words, string views, bytes. Out: `u64` whose high bits name the partition and whose
//! low bits the slot.
//! Invariant: fixed seeds and little-endian reads, so that a hash may cross disk and machines.
//! Not here: protection against chosen keys; a flood costs time, never a wrong answer.
//!
//! The primitive is the folded 64x64 -> 128-bit multiply. Tried and rejected: two folds per word
//! (better avalanche on paper, the same probe lengths on sequential and strided keys).

const SEED_0: u64 = 0x2d35_8dcc_aa6c_78a5;
const SEED_1: u64 = 0x8bb8_4b93_962e_acc9;
const SEED_2: u64 = 0x4b33_a62e_d433_d4a3;
const SEED_3: u64 = 0x4d5a_2da5_1de1_aa47;

/// Hash of a key that is NULL as a whole. Such a key is stored as zero words; that a zero key
/// hashes to something else tells the two apart (see `null_and_zero_differ`).
pub const NULL_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// High half times low half of the 128-bit product, folded by xor.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128) * (b as u128);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of one packed key of `N` words.
#[inline(always)]
pub const fn hash_words<const N: usize>(words: &[u64; N]) -> u64 {
    let mut hash = SEED_0;
    let mut at = 0;
    while at + 2 <= N {
        hash = fold(
            words[at] ^ SEED_1 ^ hash,
            words[at + 1] ^ SEED_2 ^ hash.rotate_left(32),
        );
        at += 2;
    }
    if at < N {
        hash = fold(words[at] ^ hash, SEED_3);
    }
    hash
}

/// Hashes of packed keys, appended to `hashes`.
pub fn hash_packed<const N: usize>(keys: &[[u64; N]], hashes: &mut Vec<u64>) {
    hashes.extend(keys.iter().map(hash_words));
}

/// Hash of a byte string. Strings of up to 12 bytes are hashed as their Arrow view, longer ones
/// 16 bytes at a time with an overlapping last block.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    if bytes.len() <= 12 {
        return hash_view(inline_view(bytes));
    }
    let mut hash = SEED_0 ^ (bytes.len() as u64);
    if bytes.len() >= 16 {
        let last = bytes.len() - 16;
        let mut at = 0;
        while at < last {
            hash = fold(word(bytes, at) ^ SEED_1, word(bytes, at + 8) ^ hash);
            at += 16;
        }
        return fold(word(bytes, last) ^ SEED_2, word(bytes, last + 8) ^ hash);
    }
    fold(word(bytes, 0) ^ SEED_2, word(bytes, bytes.len() - 8) ^ hash)
}

/// Hash of an inline view (a string of up to 12 bytes with its length).
#[inline(always)]
pub const fn hash_view(view: u128) -> u64 {
    hash_words(&[view as u64, (view >> 64) as u64])
}

/// The hash once more through the multiplier, for sketches: they count zeros in it, and hashes of
/// sequential keys are spread more evenly than chance would.
#[inline(always)]
pub const fn mix(hash: u64) -> u64 {
    fold(hash ^ SEED_1, SEED_2)
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
