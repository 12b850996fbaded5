//! One of two values per row.
//!
//! In: a bit per row, the values where it is set, those where it is not. Out: a value per row.
//! Invariant: bits past the last row are not read as rows.
//! Not here: NULLs.

/// Where values come from.
#[derive(Debug, Clone, Copy)]
pub enum Side<'a, T> {
    /// A value per row.
    Column(&'a [T]),
    /// The same value for all rows.
    Value(T),
}

/// A value that can be selected.
pub trait Selected: Copy {
    /// For each of `rows` rows the value of `set` or, where its bit in `words` (64 to a word, the first lowest) is 0, of
    /// `unset`.
    ///
    /// # Panics
    /// If `words` or a side has fewer than `rows` values.
    fn select(words: &[u64], rows: usize, set: Side<'_, Self>, unset: Side<'_, Self>) -> Vec<Self>;
}

/// One loop per width, compiled here.
macro_rules! selected {
    ($($word:ty),*) => {
        $(impl Selected for $word {
            fn select(words: &[u64], rows: usize, set: Side<'_, Self>, unset: Side<'_, Self>) -> Vec<Self> {
                match (set, unset) {
                    (Side::Column(set), Side::Column(unset)) => {
                        let (set, unset) = (&set[..rows], &unset[..rows]);
                        each(words, rows, |row| set[row], |row| unset[row])
                    }
                    (Side::Column(set), Side::Value(unset)) => {
                        let set = &set[..rows];
                        each(words, rows, |row| set[row], |_| unset)
                    }
                    (Side::Value(set), Side::Column(unset)) => {
                        let unset = &unset[..rows];
                        each(words, rows, |_| set, |row| unset[row])
                    }
                    (Side::Value(set), Side::Value(unset)) => each(words, rows, |_| set, |_| unset),
                }
            }
        })*
    };
}

selected!(u8, u16, u32, u64, i128);

/// Both sides are read, so that no branch depends on a bit.
#[inline(always)]
fn each<T: Copy>(
    words: &[u64],
    rows: usize,
    set: impl Fn(usize) -> T,
    unset: impl Fn(usize) -> T,
) -> Vec<T> {
    let words = &words[..rows.div_ceil(64)];
    let mut values = Vec::with_capacity(rows);
    for (at, word) in words.iter().enumerate() {
        let first = at * 64;
        let here = (rows - first).min(64);
        values.extend((0..here).map(|bit| {
            let (set, unset) = (set(first + bit), unset(first + bit));
            if word >> bit & 1 == 1 { set } else { unset }
        }));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;

    fn check<T: Selected + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for rows in [0usize, 1, 63, 64, 65, 128, 1000] {
            let words: Vec<u64> = (0..rows.div_ceil(64) as u64)
                .map(|word: u64| (word + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
                .collect();
            let a: Vec<T> = (0..rows).map(&value).collect();
            let b: Vec<T> = (0..rows).map(|row| value(row + 77)).collect();
            let sides = [
                (Side::Column(&a[..]), Side::Column(&b[..])),
                (Side::Column(&a[..]), Side::Value(value(5))),
                (Side::Value(value(6)), Side::Column(&b[..])),
                (Side::Value(value(6)), Side::Value(value(5))),
            ];
            for (set, unset) in sides {
                let found = T::select(&words, rows, set, unset);
                assert_eq!(
                    found,
                    naive::select(&words, rows, set, unset),
                    "{rows} rows"
                );
            }
        }
    }

    #[test]
    fn equals_the_naive_one() {
        check(|row| row as u8);
        check(|row| row as u16 * 3);
        check(|row| row as u32 * 5);
        check(|row| row as u64 * 7);
        check(|row| row as i128 * -11);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_row_without_a_value_is_none() {
        u32::select(&[0], 2, Side::Column(&[1]), Side::Value(2));
    }
}
