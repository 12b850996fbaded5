//! Truth values looked up by code.
//!
//! In: a code per row, a truth value per code. Out: a bit per row.
//! Invariant: bits past the last row are 0.
//! Not here: what is true of a value, NULLs.

use crate::truths;

/// The bits of `truths[code]` for each of `codes`, 64 to a word, the first lowest.
///
/// # Panics
/// If a code is no index of `truths`.
pub fn bits(codes: &[i32], truths: &[bool]) -> Vec<u64> {
    truths::words(codes, |code| truths[*code as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    #[test]
    fn equals_the_naive_one() {
        let truths: Vec<bool> = (0..37).map(|at| at % 3 == 0 || at > 30).collect();
        for rows in [0, 1, 63, 64, 65, 128, 1000] {
            let codes: Vec<i32> = (0..rows).map(|row| row * 7 % 37).collect();
            let found = bits(&codes, &truths);
            assert_eq!(found, naive::bits(&codes, &truths), "{rows} rows");
        }
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_code_without_a_value_is_no_row() {
        bits(&[0, -1], &[true]);
    }
}
