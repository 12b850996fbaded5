//! Places of a few bytes in a text.
//!
//! In: 64 bytes of a text. Out: a bit for each that is one of three, the first lowest.
//! Invariant: none but that.
//! Not here: what the places mean.

use crate::booleans;

/// The bytes of `block` that are one of `wanted`.
#[inline(always)]
pub fn places(block: &[u8; 64], wanted: [u8; 3]) -> u64 {
    let [a, b, c] = wanted;
    booleans::word(&block.map(|byte| (byte == a) | (byte == b) | (byte == c)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;

    proptest! {
        #[test]
        fn equals_the_naive_one(bytes in prop::collection::vec(0u8..6, 64), wanted: [u8; 3]) {
            let block: [u8; 64] = bytes.try_into().unwrap();
            let wanted = wanted.map(|byte| byte % 8);
            prop_assert_eq!(places(&block, wanted), naive::places(&block, wanted));
        }
    }
}
