//! Characters of strings, counted without decoding them.
//!
//! In: strings in UTF-8, as Arrow's views. Out: how many characters each has: every byte begins one that does not continue one.
//! Not here: whether they are UTF-8.

use crate::prefetch::prefetch;
use crate::view::{Place, around};

const BLOCK: usize = 32;
/// Strings that are looked at once for other characters than those of one byte.
const STRINGS: usize = 64;
/// After some that have others only one time in so many.
const TURNS: usize = 8;
/// Strings between the one that is counted and the one that is asked for.
const AHEAD: usize = 16;

/// Characters of the text of each view; longer ones lie in `buffers`.
///
/// # Panics
/// If a view points outside of them.
pub fn of_views(views: &[u128], buffers: &[&[u8]]) -> Vec<i32> {
    let mut counts = Vec::with_capacity(views.len());
    let mut are_ascii = true;
    for (turn, block) in views.chunks(STRINGS).enumerate() {
        if are_ascii || turn.is_multiple_of(TURNS) {
            are_ascii = around(block, buffers).is_some_and(is_ascii);
        }
        for &view in block {
            let characters = match Place::of(view) {
                None => characters_inline(view),
                Some(Place { start, end, .. }) if are_ascii => end - start,
                Some(Place { buffer, start, end }) => {
                    let ahead = views.get(counts.len() + AHEAD);
                    if let Some(ahead) = ahead.and_then(|&view| Place::of(view)) {
                        prefetch(buffers[ahead.buffer], ahead.start);
                    }
                    characters(&buffers[buffer][start..end])
                }
            };
            counts.push(characters as i32);
        }
    }
    counts
}

/// True where all bytes are characters.
#[inline(always)]
fn is_ascii(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) < 0x80
}

/// Characters of a text.
#[inline(always)]
fn characters(text: &[u8]) -> usize {
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    let mut continuing = 0;
    for block in blocks {
        // At most as many as a byte can count.
        let of_block: u8 = block.iter().map(|&byte| u8::from(continues(byte))).sum();
        continuing += usize::from(of_block);
    }
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        continuing += continuing_in(u64::from_le_bytes(*word));
    }
    continuing += match (text.last_chunk::<8>(), rest.len()) {
        (_, 0) => 0,
        // The last bytes of eight, those before shifted out.
        (Some(last), left) => continuing_in(u64::from_le_bytes(*last) >> (8 * (8 - left))),
        (None, _) => rest.iter().filter(|&&byte| continues(byte)).count(),
    };
    text.len() - continuing
}

/// Characters of a text that follows its length in its view, zeros behind it.
#[inline(always)]
fn characters_inline(view: u128) -> usize {
    let bytes = view >> 32;
    view as u32 as usize - continuing_in(bytes as u64) - continuing_in((bytes >> 64) as u64)
}

fn continues(byte: u8) -> bool {
    (byte as i8) < -0x40
}

/// Bytes that begin with the bits 10.
#[inline(always)]
fn continuing_in(word: u64) -> usize {
    ((word >> 7) & !(word >> 6) & 0x0101_0101_0101_0101).count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive;
    use crate::view::view_of;

    #[test]
    fn equals_the_naive_one() {
        let text =
            "aé€𝄞 ж\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10ffff} plain ascii, and some more of it"
                .repeat(3);
        let ends: Vec<usize> = (0..=text.len())
            .filter(|&at| text.is_char_boundary(at))
            .step_by(if cfg!(miri) { 13 } else { 1 })
            .collect();
        for (from, &start) in ends.iter().enumerate() {
            for &end in &ends[from..] {
                let some = &text.as_bytes()[start..end];
                let view = view_of(some, 1, start);
                let found = of_views(&[view], &[b"", text.as_bytes()]);
                assert_eq!(found, [naive::characters(some) as i32], "{start}..{end}");
            }
        }
    }

    /// Pages of strings, some of which have characters of several bytes in some of their blocks.
    #[test]
    fn blocks_of_strings_equal_the_naive_one() {
        let rows = if cfg!(miri) {
            3 * STRINGS
        } else {
            40 * STRINGS
        };
        for (every, other) in [(usize::MAX, ""), (1, "é"), (50, "ж"), (700, "€")] {
            let (mut page, mut views, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            for row in 0..rows {
                let mut text = "abc".repeat(row * 7 % 19);
                if row % every == every - 1 {
                    text.push_str(other);
                }
                page.extend_from_slice(&[0; 4]);
                views.push(view_of(text.as_bytes(), 0, page.len()));
                page.extend_from_slice(text.as_bytes());
                expected.push(naive::characters(text.as_bytes()) as i32);
            }
            assert_eq!(
                of_views(&views, &[&page]),
                expected,
                "{other} in every {every}"
            );
            views.reverse();
            expected.reverse();
            assert_eq!(of_views(&views, &[&page]), expected, "backwards");
        }
    }
}
