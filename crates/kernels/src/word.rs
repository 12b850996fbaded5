//! A word in strings: which of them contain it.
//!
//! In: Arrow's views of strings. Out: true of each that has the word somewhere.
//! Invariant: bytes between strings are searched as well where strings lie one behind the other, as in a page of a file.
//! A place that is not whole in one string counts for none.
//! Not here: patterns, letters beyond ASCII in another case, NULL.

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use crate::view::Place;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Word {
    finder: Searcher,
}

/// How it is looked for.
#[derive(Debug, Clone)]
enum Searcher {
    AsWritten(Box<Finder<'static>>),
    /// Letters of ASCII in either case; the word is in lower case.
    AnyCase(Box<[u8]>, AhoCorasick),
}

impl Word {
    /// These bytes; without any, all strings contain them.
    pub fn new(bytes: &[u8]) -> Word {
        Word {
            finder: Searcher::AsWritten(Box::new(Finder::new(bytes).into_owned())),
        }
    }

    /// These bytes of ASCII, letters in either case; `None` where the searcher does not take them.
    pub fn in_any_case(bytes: &[u8]) -> Option<Word> {
        let mut searcher = AhoCorasick::builder();
        let searcher = searcher.ascii_case_insensitive(true).build([bytes]).ok()?;
        Some(Word {
            finder: Searcher::AnyCase(bytes.to_ascii_lowercase().into(), searcher),
        })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.finder {
            Searcher::AsWritten(finder) => finder.needle(),
            Searcher::AnyCase(word, _) => word,
        }
    }

    /// Where it begins first in a text.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        match &self.finder {
            Searcher::AsWritten(finder) => finder.find(text),
            Searcher::AnyCase(_, searcher) => Some(searcher.find(text)?.start()),
        }
    }

    /// Whether the text of each view contains it; longer ones lie in `buffers`.
    ///
    /// # Panics
    /// If a view points outside of them.
    pub fn in_views(&self, views: &[u128], buffers: &[&[u8]]) -> Vec<bool> {
        let mut found = vec![false; views.len()];
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
                    Some(next) if next.follows(&last) => last = next,
                    Some(_) => break,
                }
                row += 1;
            }
            let text = &buffers[first.buffer][first.start..last.end];
            self.search(text, first.start, &views[from..row], &mut found[from..row]);
        }
        found
    }

    /// Searches strings that lie one behind the other in `all`, which begins at `offset` of their buffer.
    fn search(&self, all: &[u8], offset: usize, views: &[u128], found: &mut [bool]) {
        let mut strings = views.iter().zip(found).filter_map(|(view, found)| {
            let place = Place::of(*view)?;
            Some((place.start - offset, place.end - offset, found))
        });
        let mut text = strings.next();
        let mut at = 0;
        while let Some(hit) = self.find(&all[at..]) {
            at += hit;
            // The one that ends behind it.
            while text.as_ref().is_some_and(|(_, end, _)| *end <= at) {
                text = strings.next();
            }
            let Some((start, end, found)) = &mut text else {
                return;
            };
            if *start <= at && at + self.bytes().len() <= *end {
                **found = true;
                at = *end;
            } else {
                at += 1;
            }
        }
    }

    /// Whether a text contains it that follows its length in its view, zeros behind it.
    #[inline(always)]
    fn is_inline(&self, view: u128) -> bool {
        let (length, word) = (view as u32 as usize, self.bytes());
        let Some(last) = length.checked_sub(word.len()) else {
            return false;
        };
        let mut bytes = (view >> 32).to_le_bytes();
        if let Searcher::AnyCase(..) = self.finder {
            bytes.make_ascii_lowercase();
        }
        (0..=last).any(|at| bytes[at..at + word.len()] == *word)
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
            word in prop::collection::vec(b'a'..b'c', 0..14),
            (gap, each) in (prop_oneof![0usize..6, Just(GAP_MAX), Just(GAP_MAX + 1)], 1usize..20),
            order in prop::collection::vec(0usize..60, 0..30),
        ) {
            let (views, buffers) = laid_out(&strings, gap, each);
            let buffers: Vec<&[u8]> = buffers.iter().map(Vec::as_slice).collect();
            // In the order of memory, and in any.
            let any: Vec<usize> = order.into_iter().filter(|&row| row < strings.len()).collect();
            for rows in [(0..strings.len()).collect(), any] {
                let picked: Vec<u128> = rows.iter().map(|&row| views[row]).collect();
                let expected: Vec<bool> =
                    rows.iter().map(|&row| naive::contains(&strings[row], &word)).collect();
                prop_assert_eq!(Word::new(&word).in_views(&picked, &buffers), expected);
                let in_any_case = |row: &usize| {
                    naive::contains(&strings[*row].to_ascii_lowercase(), &word)
                };
                let expected: Vec<bool> = rows.iter().map(in_any_case).collect();
                let any_case = Word::in_any_case(&word).expect("few bytes");
                prop_assert_eq!(any_case.in_views(&picked, &buffers), expected);
            }
        }
    }
}
