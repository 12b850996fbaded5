//! Patterns of LIKE in strings.
//!
//! In: a pattern; strings in UTF-8, one behind the other or as Arrow's views. `%` stands for any text, `_` for any character, `\`
//! before a character for just that one. Out: true of each that is as the pattern says.
//! Invariant: of a pattern that is free on both sides, strings without its longest word are left out in one pass first.
//! Not here: patterns without any text of their own, letters beyond ASCII in another case, NULL.

use crate::view::Place;
use crate::word::{LetterCase, Word};

/// A pattern.
#[derive(Debug, Clone)]
pub struct LikePattern {
    /// What stands between its `%`.
    parts: Vec<Part>,
    /// Whether a string begins with the first part, and ends with the last.
    is_start_fixed: bool,
    is_end_fixed: bool,
    case: LetterCase,
    /// Whatever fits has this word.
    longest: Option<Word>,
}

/// Neighbouring characters of a pattern.
#[derive(Debug, Clone, Default)]
struct Part {
    /// Text in lower case where that is the same, as is the text that it is looked for in.
    pieces: Vec<Piece>,
    /// The first text, and the characters before it.
    first: Option<(usize, Word)>,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Vec<u8>),
    /// So many characters.
    Any(usize),
}

impl LikePattern {
    /// A pattern; `None` if it has no text.
    pub fn new(pattern: &str, case: LetterCase) -> Option<LikePattern> {
        let mut parts = match case {
            LetterCase::AsWritten => parsed(pattern),
            LetterCase::Any => parsed(&pattern.to_ascii_lowercase()),
        };
        let has_any_text = parts.len() > 1;
        let is_free = |part: Option<&Part>| part.is_some_and(|part| part.pieces.is_empty());
        let is_start_fixed = !(has_any_text && is_free(parts.first()));
        let is_end_fixed = !(has_any_text && is_free(parts.last()));
        parts.retain(|part| !part.pieces.is_empty());
        parts.iter_mut().for_each(Part::find_first);
        let strings = parts.iter().flat_map(|part| &part.pieces);
        let strings = strings.filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_slice()),
            Piece::Any(_) => None,
        });
        let longest = Word::new(strings.max_by_key(|text| text.len())?, case);
        Some(LikePattern {
            // A look at a string's start or end is less than a search.
            longest: (!is_start_fixed && !is_end_fixed).then_some(longest),
            parts,
            is_start_fixed,
            is_end_fixed,
            case,
        })
    }

    /// `%word%`, whatever characters the word has; `None` if it has none.
    pub fn containing(word: &str) -> Option<LikePattern> {
        let mut pattern = String::from("%");
        for character in word.chars() {
            pattern.extend(['\\', character]);
        }
        pattern.push('%');
        LikePattern::new(&pattern, LetterCase::AsWritten)
    }

    /// The word that strings contain, if the pattern says no more.
    pub fn only_word(&self) -> Option<&[u8]> {
        let is_fixed = self.is_start_fixed || self.is_end_fixed;
        match self.parts.as_slice() {
            [part] if !is_fixed => match part.pieces.as_slice() {
                [Piece::Text(word)] => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a string has to begin with the pattern's first characters.
    pub fn is_start_fixed(&self) -> bool {
        self.is_start_fixed
    }

    /// Whether the text of each view fits; longer ones lie in `buffers`.
    ///
    /// # Panics
    /// If a view points outside of them.
    pub fn in_views(&self, views: &[u128], buffers: &[&[u8]]) -> Vec<bool> {
        let found = match &self.longest {
            Some(word) => word.in_views(views, buffers),
            None => vec![true; views.len()],
        };
        let mut lowered = Vec::new();
        self.narrowed(found, |row| {
            let view = views[row];
            match Place::of(view) {
                Some(Place { buffer, start, end }) => {
                    self.fits(&buffers[buffer][start..end], &mut lowered)
                }
                None => {
                    let bytes = (view >> 32).to_le_bytes();
                    self.fits(&bytes[..view as u32 as usize], &mut lowered)
                }
            }
        })
    }

    /// Whether each string fits; the first begins at the first offset, each ends where the next begins.
    ///
    /// # Panics
    /// If an offset is outside of `bytes`.
    pub fn in_strings<O: Copy + Into<i64>>(&self, offsets: &[O], bytes: &[u8]) -> Vec<bool> {
        let found = match &self.longest {
            Some(word) => word.in_strings(offsets, bytes),
            None => vec![true; offsets.len().saturating_sub(1)],
        };
        let at = |row: usize| -> usize {
            let offset: i64 = offsets[row].into();
            offset as usize
        };
        let mut lowered = Vec::new();
        self.narrowed(found, |row| {
            self.fits(&bytes[at(row)..at(row + 1)], &mut lowered)
        })
    }

    /// Of the rows that may fit those that do.
    fn narrowed(&self, mut found: Vec<bool>, mut fits: impl FnMut(usize) -> bool) -> Vec<bool> {
        if self.only_word().is_none() {
            for (row, found) in found.iter_mut().enumerate() {
                *found = *found && fits(row);
            }
        }
        found
    }

    fn fits(&self, text: &[u8], lowered: &mut Vec<u8>) -> bool {
        self.fitted(self.case.of(text, lowered)).is_some()
    }

    fn fitted(&self, mut text: &[u8]) -> Option<()> {
        let mut parts = self.parts.as_slice();
        if self.is_start_fixed {
            let (first, others) = parts.split_first()?;
            text = &text[first.end_from(text, 0)?..];
            if others.is_empty() && self.is_end_fixed {
                return text.is_empty().then_some(());
            }
            parts = others;
        }
        if self.is_end_fixed {
            let (last, others) = parts.split_last()?;
            text = &text[..last.start_before(text)?];
            parts = others;
        }
        for part in parts {
            text = &text[part.end_of_next(text)?..];
        }
        Some(())
    }
}

/// The parts of a pattern, those without a character among them.
fn parsed(pattern: &str) -> Vec<Part> {
    let mut parts = vec![Part::default()];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let pieces = &mut parts.last_mut().expect("one at least").pieces;
        let literal = match character {
            '%' => {
                parts.push(Part::default());
                continue;
            }
            '_' => {
                match pieces.last_mut() {
                    Some(Piece::Any(characters)) => *characters += 1,
                    _ => pieces.push(Piece::Any(1)),
                }
                continue;
            }
            '\\' => characters.next().unwrap_or('\\'),
            literal => literal,
        };
        if !matches!(pieces.last(), Some(Piece::Text(_))) {
            pieces.push(Piece::Text(Vec::new()));
        }
        if let Some(Piece::Text(text)) = pieces.last_mut() {
            text.extend_from_slice(literal.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    parts
}

impl Part {
    /// Knows its first text.
    fn find_first(&mut self) {
        let (before, text) = match self.pieces.as_slice() {
            [Piece::Text(text), ..] => (0, text),
            [Piece::Any(before), Piece::Text(text), ..] => (*before, text),
            _ => return,
        };
        self.first = Some((before, Word::new(text, LetterCase::AsWritten)));
    }

    /// Where it ends if it is at byte `at` of a text.
    fn end_from(&self, text: &[u8], at: usize) -> Option<usize> {
        end_of(&self.pieces, text, at)
    }

    /// Where it begins if a text ends with it.
    fn start_before(&self, text: &[u8]) -> Option<usize> {
        let mut end = text.len();
        for piece in self.pieces.iter().rev() {
            match piece {
                Piece::Text(wanted) => {
                    let start = end.checked_sub(wanted.len())?;
                    (text[start..end] == *wanted).then_some(())?;
                    end = start;
                }
                Piece::Any(characters) => end = start_of_characters(text, end, *characters)?,
            }
        }
        Some(end)
    }

    /// Where its first place in a text ends. No place that begins later ends earlier: all have as many characters.
    fn end_of_next(&self, text: &[u8]) -> Option<usize> {
        let Some((before, word)) = &self.first else {
            return self.end_from(text, 0);
        };
        // A place of the word has so many characters before it.
        let mut from = 0;
        for _ in 0..*before {
            from = end_of_character(text, from)?;
        }
        let behind = &self.pieces[usize::from(*before > 0)..];
        loop {
            let at = from + word.find(&text[from..])?.start;
            let end = end_of(behind, text, at);
            if end.is_some() {
                return end;
            }
            from = at + 1;
        }
    }
}

/// Where pieces end that begin at `at`; `None` if they are not there.
fn end_of(pieces: &[Piece], text: &[u8], mut at: usize) -> Option<usize> {
    for piece in pieces {
        match piece {
            Piece::Text(wanted) => {
                let end = at + wanted.len();
                (text.get(at..end)? == wanted).then_some(())?;
                at = end;
            }
            Piece::Any(characters) => {
                for _ in 0..*characters {
                    at = end_of_character(text, at)?;
                }
            }
        }
    }
    Some(at)
}

/// The byte behind the character that begins at `at`; `None` at the end.
fn end_of_character(text: &[u8], at: usize) -> Option<usize> {
    let behind = text.get(at + 1..)?;
    let others = behind.iter().take_while(|byte| is_continuing(**byte));
    Some(at + 1 + others.count())
}

/// Where so many characters before `end` begin; `None` if there are fewer.
fn start_of_characters(text: &[u8], end: usize, characters: usize) -> Option<usize> {
    let mut start = end;
    for _ in 0..characters {
        let continuing = text[..start].iter().rev();
        let others = continuing.take_while(|byte| is_continuing(**byte)).count();
        start = start.checked_sub(others + 1)?;
    }
    Some(start)
}

/// Bytes of UTF-8 that begin no character.
fn is_continuing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;
    use crate::view::view_of;

    fn check(strings: &[String], pattern: &str) {
        let mut bytes = b"ab".to_vec();
        let (mut offsets, mut views) = (vec![2i64], Vec::new());
        for text in strings {
            views.push(view_of(text.as_bytes(), 0, bytes.len()));
            bytes.extend_from_slice(text.as_bytes());
            offsets.push(bytes.len() as i64);
        }
        for case in [LetterCase::AsWritten, LetterCase::Any] {
            let Some(like) = LikePattern::new(pattern, case) else {
                let is_free = |at: char| at == '%' || at == '_';
                assert!(pattern.chars().all(is_free), "{pattern}");
                continue;
            };
            let expected: Vec<bool> = strings
                .iter()
                .map(|text| match case {
                    LetterCase::AsWritten => naive::like(text, pattern),
                    LetterCase::Any => {
                        naive::like(&text.to_ascii_lowercase(), &pattern.to_ascii_lowercase())
                    }
                })
                .collect();
            assert_eq!(like.in_views(&views, &[&bytes]), expected, "{pattern}");
            assert_eq!(like.in_strings(&offsets, &bytes), expected, "{pattern}");
        }
    }

    fn text_of(alphabet: &'static [char]) -> impl Fn(Vec<prop::sample::Index>) -> String {
        move |places| places.iter().map(|at| *at.get(alphabet)).collect()
    }

    proptest! {
        #[test]
        fn equals_the_naive_one(
            strings in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..30), 0..40),
            pattern in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        ) {
            let strings: Vec<String> =
                strings.into_iter().map(text_of(&['a', 'b', 'B', 'é', '\u{20ac}', '%', '\\'])).collect();
            check(&strings, &text_of(&['a', 'A', 'b', 'é', '%', '%', '%', '_', '\\'])(pattern));
        }
    }

    #[test]
    fn any_characters_are_of_the_part() {
        let strings = ["", "a", "éa", "xéa", "aéa", "aéaaéa", "a%b", "ab"].map(String::from);
        for pattern in [
            "%_a%", "%__a", "_a", "a_a", "a_a%", "%a_a%a", "a%a", "%a\\%b%", "a\\", "%a__%",
        ] {
            check(&strings, pattern);
        }
    }

    #[test]
    fn a_word_may_have_signs_of_patterns() {
        let like = LikePattern::containing("a%_\\").expect("a word");
        assert_eq!(like.only_word(), Some(&b"a%_\\"[..]));
        assert_eq!(like.in_strings(&[0i32, 3, 8], b"a%_xa%_\\"), [false, true]);
        assert!(LikePattern::containing("").is_none());
        assert!(
            LikePattern::new("%a_%", LetterCase::Any).is_some_and(|of| of.only_word().is_none())
        );
    }
}
