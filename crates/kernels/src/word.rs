//! Words in strings: which of them contain one.
//!
//! In: strings one behind the other, or Arrow's views of them. Out: true of each that has the word, or one of the words, somewhere.
//! Invariant: bytes between strings are searched as well where strings lie one behind the other, as in a page of a file.
//! A place that is not whole in one string counts for none.
//! Not here: patterns (like.rs), letters beyond ASCII in another case, NULL.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind, packed};
use memchr::memmem::Finder;

use crate::view::Place;

/// Which letters of ASCII are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// None.
    AsWritten,
    /// `a` and `A`.
    Any,
}

impl LetterCase {
    /// The text in which letters that are the same are equal.
    #[inline]
    pub(crate) fn of<'a>(self, text: &'a [u8], lowered: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            LetterCase::AsWritten => text,
            LetterCase::Any => {
                lowered.clear();
                lowered.extend_from_slice(text);
                lowered.make_ascii_lowercase();
                lowered
            }
        }
    }
}

fn in_case(word: &[u8], case: LetterCase) -> Vec<u8> {
    case.of(word, &mut Vec::new()).to_vec()
}

/// Strings of so many bytes are searched at once, or one longer string: a copy of them in lower case stays in the near cache.
const RUN_BYTES_MAX: usize = 16 << 10;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Word {
    /// In lower case where letters are the same in either case, as are then the strings that it searches.
    searcher: Searcher,
    case: LetterCase,
}

/// How it is looked for.
#[derive(Debug, Clone)]
enum Searcher {
    One(Box<Finder<'static>>),
    /// Any of several words, none of which has another one in it.
    AnyOf(Box<packed::Searcher>),
    /// Of so many that the one with vectors does not take them.
    AnyOfMany(AhoCorasick),
}

impl Word {
    /// These bytes; without any, all strings contain them.
    pub fn new(bytes: &[u8], case: LetterCase) -> Word {
        let finder = Finder::new(&in_case(bytes, case)).into_owned();
        Word {
            searcher: Searcher::One(Box::new(finder)),
            case,
        }
    }

    /// Any of several words; `None` where the searcher does not take them.
    pub fn any_of(words: &[&[u8]], case: LetterCase) -> Option<Word> {
        let mut words: Vec<Vec<u8>> = words.iter().map(|word| in_case(word, case)).collect();
        words.sort_by_key(Vec::len);
        let mut shortest: Vec<Vec<u8>> = Vec::new();
        for word in words {
            // Whatever has this word has the shorter one.
            let mut shorter = shortest.iter().map(Finder::new);
            if shorter.all(|shorter| shorter.find(&word).is_none()) {
                shortest.push(word);
            }
        }
        if let [word] = shortest.as_slice() {
            return Some(Word::new(word, case));
        }
        // Both look for the leftmost place. None has another one in it, so the word there is the only one that begins there.
        let searcher = match packed::Searcher::new(&shortest) {
            Some(packed) => Searcher::AnyOf(Box::new(packed)),
            None => {
                let mut searcher = AhoCorasick::builder();
                let searcher = searcher.match_kind(MatchKind::LeftmostFirst);
                Searcher::AnyOfMany(searcher.build(shortest).ok()?)
            }
        };
        Some(Word { searcher, case })
    }

    /// Whether the text of each view contains it; longer ones lie in `buffers`.
    ///
    /// # Panics
    /// If a view points outside of them.
    pub fn in_views(&self, views: &[u128], buffers: &[&[u8]]) -> Vec<bool> {
        let mut found = vec![false; views.len()];
        let mut lowered = Vec::new();
        let mut row = 0;
        while let Some(&view) = views.get(row) {
            let Some(first) = Place::of(view) else {
                found[row] = self.is_inline(view);
                row += 1;
                continue;
            };
            let (from, mut last) = (row, first);
            row += 1;
            while let Some(&view) = views.get(row) {
                match Place::of(view) {
                    None => found[row] = self.is_inline(view),
                    Some(next)
                        if next.follows(&last) && next.end - first.start <= RUN_BYTES_MAX =>
                    {
                        last = next;
                    }
                    Some(_) => break,
                }
                row += 1;
            }
            let text = &buffers[first.buffer][first.start..last.end];
            let strings = views[from..row].iter().zip(&mut found[from..row]);
            let strings = strings.filter_map(|(view, found)| {
                let place = Place::of(*view)?;
                Some((place.start - first.start..place.end - first.start, found))
            });
            self.search(text, strings, &mut lowered);
        }
        found
    }

    /// Whether each string contains it; the first begins at the first offset, each ends where the next begins.
    ///
    /// # Panics
    /// If an offset is outside of `bytes`.
    pub fn in_strings<O: Copy + Into<i64>>(&self, offsets: &[O], bytes: &[u8]) -> Vec<bool> {
        let at = |offset: O| -> usize {
            let offset: i64 = offset.into();
            offset as usize
        };
        let mut found = vec![false; offsets.len().saturating_sub(1)];
        let mut lowered = Vec::new();
        let mut row = 0;
        while row < found.len() {
            let (from, start) = (row, at(offsets[row]));
            row += 1;
            while row < found.len() && at(offsets[row + 1]) - start <= RUN_BYTES_MAX {
                row += 1;
            }
            let text = &bytes[start..at(offsets[row])];
            let strings = offsets[from..=row].windows(2).zip(&mut found[from..row]);
            let strings =
                strings.map(|(ends, found)| (at(ends[0]) - start..at(ends[1]) - start, found));
            self.search(text, strings, &mut lowered);
        }
        found
    }

    /// Searches strings at these places of `all`, one behind the other.
    fn search<'a>(
        &self,
        all: &[u8],
        mut strings: impl Iterator<Item = (Range<usize>, &'a mut bool)>,
        lowered: &mut Vec<u8>,
    ) {
        let all = self.case.of(all, lowered);
        let mut text = strings.next();
        let mut at = 0;
        while let Some(hit) = self.find(&all[at..]) {
            let (start, end) = (at + hit.start, at + hit.end);
            at = start;
            // The one that ends behind it; a word without bytes is also in one that has none.
            while text.as_ref().is_some_and(|(of, _)| of.end < end) {
                text = strings.next();
            }
            let Some((of, found)) = &mut text else {
                return;
            };
            if of.start <= start {
                **found = true;
                at = of.end;
                text = strings.next();
            } else {
                at += 1;
            }
            if at > all.len() {
                return;
            }
        }
    }

    /// Whether a text contains it that follows its length in its view, zeros behind it.
    #[inline(always)]
    fn is_inline(&self, view: u128) -> bool {
        let length = view as u32 as usize;
        let mut bytes = (view >> 32).to_le_bytes();
        if self.case == LetterCase::Any {
            bytes.make_ascii_lowercase();
        }
        match &self.searcher {
            Searcher::One(finder) => {
                let word = finder.needle();
                let Some(last) = length.checked_sub(word.len()) else {
                    return false;
                };
                (0..=last).any(|at| bytes[at..at + word.len()] == *word)
            }
            Searcher::AnyOf(searcher) => searcher.find(&bytes[..length]).is_some(),
            Searcher::AnyOfMany(searcher) => searcher.is_match(&bytes[..length]),
        }
    }

    /// Where it is first in a text, which is in lower case where that is the same.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        match &self.searcher {
            Searcher::One(finder) => {
                let start = finder.find(text)?;
                Some(start..start + finder.needle().len())
            }
            Searcher::AnyOf(searcher) => {
                let found = searcher.find(text)?;
                Some(found.start()..found.end())
            }
            Searcher::AnyOfMany(searcher) => Some(searcher.find(text)?.range()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;
    use crate::view::{GAP_MAX, view_of};

    /// Views of strings that lie behind each other in buffers of some strings each, `gap` bytes of `a` between them.
    fn laid_out(strings: &[Vec<u8>], gap: usize, each: usize) -> (Vec<u128>, Vec<Vec<u8>>) {
        let mut buffers = vec![];
        let mut views = vec![];
        for some in strings.chunks(each) {
            let mut buffer = vec![];
            for text in some {
                views.push(view_of(text, buffers.len(), buffer.len()));
                buffer.extend_from_slice(text);
                buffer.resize(buffer.len() + gap, b'a');
            }
            buffers.push(buffer);
        }
        (views, buffers)
    }

    proptest! {
        #[test]
        fn equals_the_naive_one(
            strings in prop::collection::vec(prop::collection::vec(prop_oneof![b'a'..b'c', b'A'..b'C'], 0..40), 0..60),
            words in prop::collection::vec(prop::collection::vec(b'a'..b'd', 0..14), 1..4),
            (gap, each) in (prop_oneof![0usize..6, Just(GAP_MAX), Just(GAP_MAX + 1)], 1usize..20),
            order in prop::collection::vec(0usize..60, 0..30),
        ) {
            let (views, buffers) = laid_out(&strings, gap, each);
            let buffers: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            // In the order of memory, and in any.
            let any: Vec<usize> = order.into_iter().filter(|&row| row < strings.len()).collect();
            for case in [LetterCase::AsWritten, LetterCase::Any] {
                let text = |row: usize| match case {
                    LetterCase::AsWritten => strings[row].clone(),
                    LetterCase::Any => strings[row].to_ascii_lowercase(),
                };
                let of_one = Word::new(words[0], case);
                let of_all = Word::any_of(&words, case).expect("few bytes");
                for (word, wanted) in [(of_one, &words[..1]), (of_all, &words[..])] {
                    let has = |row: &usize| wanted.iter().any(|word| naive::contains(&text(*row), word));
                    for rows in [(0..strings.len()).collect(), any.clone()] {
                        let picked: Vec<u128> = rows.iter().map(|&row| views[row]).collect();
                        let expected: Vec<bool> = rows.iter().map(has).collect();
                        prop_assert_eq!(word.in_views(&picked, &buffers), expected);
                    }
                    let mut offsets = vec![3i32];
                    let mut bytes = b"abc".to_vec();
                    for text in &strings {
                        bytes.extend_from_slice(text);
                        offsets.push(bytes.len() as i32);
                    }
                    bytes.extend_from_slice(b"abc");
                    let expected: Vec<bool> = (0..strings.len()).map(|row| has(&row)).collect();
                    prop_assert_eq!(word.in_strings(&offsets, &bytes), expected);
                }
            }
        }
    }

    #[test]
    fn strings_of_more_bytes_than_a_run_are_whole() {
        let mut strings = vec![
            vec![b'b'; RUN_BYTES_MAX - 1],
            b"aC".to_vec(),
            vec![b'b'; 3 * RUN_BYTES_MAX],
        ];
        strings[2].extend_from_slice(b"Ac and more");
        let (views, buffers) = laid_out(&strings, 0, 3);
        let word = Word::new(b"Ac", LetterCase::Any);
        assert_eq!(word.in_views(&views, &[&buffers[0]]), [false, true, true]);
        let ends = strings.iter().scan(0, |end, text| {
            *end += text.len() as i64;
            Some(*end)
        });
        let offsets: Vec<i64> = [0].into_iter().chain(ends).collect();
        assert_eq!(word.in_strings(&offsets, &buffers[0]), [false, true, true]);
    }

    #[test]
    fn without_offsets_there_are_no_strings() {
        let word = Word::new(b"a", LetterCase::AsWritten);
        assert!(word.in_strings::<i64>(&[], b"a").is_empty());
        assert!(word.in_strings(&[1i64], b"a").is_empty());
    }
}
