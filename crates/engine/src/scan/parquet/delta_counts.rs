//! How many strings a Parquet page claims to have, where its encoding counts them in the page.
//!
//! In: the values of a page in DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY.
//! Out: the count, if no part of the page claims more values than the page's header.
//! Invariant: a decoder makes room for as many strings as a part claims before it reads one; no such part passes here.
//! Not here: the strings.

use datafusion::parquet::basic::Encoding;

use crate::scan::parquet::page_headers::unsigned;

/// The most values that a part of the page claims; `None` if that is more than `values`, or no count.
pub(super) fn claimed(mut page: &[u8], encoding: Encoding, values: u64) -> Option<u64> {
    match encoding {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => count(page, values),
        Encoding::DELTA_BYTE_ARRAY => {
            // Lengths of what each string has in common with the last one, then the rests.
            let prefixes = pass_numbers(&mut page, values)?;
            Some(prefixes.max(count(page, values)?))
        }
        _ => Some(0),
    }
}

/// The count at the beginning of numbers in DELTA_BINARY_PACKED.
fn count(mut page: &[u8], values: u64) -> Option<u64> {
    let _block = unsigned(&mut page)?;
    let _parts = unsigned(&mut page)?;
    unsigned(&mut page).filter(|count| *count <= values)
}

/// The same, and the numbers are passed.
fn pass_numbers(page: &mut &[u8], values: u64) -> Option<u64> {
    let block = unsigned(page)?;
    let parts = usize::try_from(unsigned(page)?).ok()?;
    let count = unsigned(page).filter(|count| *count <= values)?;
    let _first = unsigned(page)?;
    let each = block.checked_div(parts as u64).filter(|each| *each > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _least = unsigned(page)?;
        let (widths, rest) = page.split_at_checked(parts)?;
        *page = rest;
        for width in widths {
            // Parts behind the last number have no bytes.
            if left == 0 {
                break;
            }
            let bytes = each.checked_mul(u64::from(*width))?.div_ceil(8);
            *page = page.get(usize::try_from(bytes).ok()?..)?;
            left = left.saturating_sub(each);
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_page_has_is_refused() {
        // Blocks of 128 in 4 parts, three numbers, the first of them 0; then a block of which one part has bytes.
        let numbers = [&[128, 1, 4, 3, 0, 0, 8, 0, 0, 0][..], &[0; 32]].concat();
        let page = [numbers.as_slice(), &[128, 1, 4, 3, 0]].concat();
        for encoding in [
            Encoding::DELTA_BYTE_ARRAY,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
        ] {
            assert_eq!(claimed(&page, encoding, 3), Some(3));
            assert_eq!(claimed(&page, encoding, 2), None);
            assert_eq!(claimed(&[], encoding, 2), None);
        }
        let long = [numbers.as_slice(), &[128, 1, 4, 255, 255, 255, 127, 0]].concat();
        assert_eq!(claimed(&long, Encoding::DELTA_BYTE_ARRAY, 3), None);
        assert_eq!(claimed(&long, Encoding::PLAIN, 3), Some(0));
        // No part has a value: it would be passed for ever.
        assert_eq!(
            claimed(&[0, 4, 3, 0, 0], Encoding::DELTA_BYTE_ARRAY, 3),
            None
        );
        assert_eq!(
            claimed(&[8, 0, 3, 0, 0], Encoding::DELTA_BYTE_ARRAY, 3),
            None
        );
    }
}
