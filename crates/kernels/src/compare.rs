//! Values compared with one value.
//!
//! In: a value per row, the value they are compared with. Out: a bit per row.
//! Invariant: bits past the last row are 0.
//! Not here: NULLs; integers of more than two bytes, for which DataFusion's loop is as fast; strings of more than 12 bytes.

use crate::booleans;
use crate::hash::inline_view;
use crate::view::INLINE_MAX;

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// A value that can be compared.
pub trait Compared: Copy {
    /// True of rows whose value stands so to `with`, 64 to a word, the first lowest.
    fn compared(rows: &[Self], comparison: Comparison, with: Self) -> Vec<u64>;
}

/// One loop per type and comparison, compiled here.
macro_rules! compared {
    ($($integer:ty),*) => {
        $(impl Compared for $integer {
            fn compared(rows: &[Self], comparison: Comparison, with: Self) -> Vec<u64> {
                match comparison {
                    Comparison::Equal => booleans::words(rows, |row| *row == with),
                    Comparison::NotEqual => booleans::words(rows, |row| *row != with),
                    Comparison::Less => booleans::words(rows, |row| *row < with),
                    Comparison::LessOrEqual => booleans::words(rows, |row| *row <= with),
                    Comparison::Greater => booleans::words(rows, |row| *row > with),
                    Comparison::GreaterOrEqual => booleans::words(rows, |row| *row >= with),
                }
            }
        })*
    };
}

compared!(i8, u8, i16, u16);

/// Strings of more bytes are not in their views.
pub const SHORT_BYTES_MAX: usize = INLINE_MAX;

/// True of views of a text of up to [`SHORT_BYTES_MAX`] bytes; of all others if not `equal`.
///
/// # Panics
/// If the text is longer.
pub fn views_equal(views: &[u128], text: &[u8], equal: bool) -> Vec<u64> {
    assert!(
        text.len() <= SHORT_BYTES_MAX,
        "a text of {} bytes",
        text.len()
    );
    if text.is_empty() {
        // The length alone says so, a load of 4 bytes.
        return match equal {
            true => booleans::words(views, |view| *view as u32 == 0),
            false => booleans::words(views, |view| *view as u32 != 0),
        };
    }
    let wanted = inline_view(text);
    match equal {
        true => booleans::words(views, |view| *view == wanted),
        false => booleans::words(views, |view| *view != wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::view::view_of;

    const COMPARISONS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

    fn check<T: Compared + PartialOrd + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        for rows in [0usize, 1, 63, 64, 65, 128, 1000] {
            let values: Vec<T> = (0..rows).map(&value).collect();
            for with in (0..300).step_by(43).map(&value) {
                for comparison in COMPARISONS {
                    let found = T::compared(&values, comparison, with);
                    let expected = naive::compared(&values, comparison, with);
                    assert_eq!(found, expected, "{rows} rows {comparison:?} {with:?}");
                }
            }
        }
    }

    #[test]
    fn equals_the_naive_one() {
        check(|row| (row * 43) as i8);
        check(|row| (row * 43) as u8);
        check(|row| (row * 0x2B43) as i16);
        check(|row| (row * 0x2B43) as u16);
    }

    #[test]
    fn views_equal_strings() {
        let strings = [
            "",
            "\0",
            "a",
            "b",
            "aa",
            "twelve bytes",
            "twelve byteS",
            "thirteen byte",
        ];
        let held: Vec<&str> = strings.into_iter().cycle().take(200).collect();
        let mut offset = 0;
        let views = held.iter().map(|text| {
            offset += text.len();
            view_of(text.as_bytes(), 3, offset)
        });
        let views: Vec<u128> = views.collect();
        for text in strings
            .into_iter()
            .filter(|text| text.len() <= SHORT_BYTES_MAX)
        {
            for equal in [true, false] {
                for rows in [0, 1, 64, 200] {
                    let comparison = if equal {
                        Comparison::Equal
                    } else {
                        Comparison::NotEqual
                    };
                    let found = views_equal(&views[..rows], text.as_bytes(), equal);
                    let expected = naive::compared(&held[..rows], comparison, text);
                    assert_eq!(found, expected, "{rows} rows, {text:?}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a text of 13 bytes")]
    fn a_long_text_is_in_no_view() {
        views_equal(&[], b"thirteen byte", true);
    }
}
