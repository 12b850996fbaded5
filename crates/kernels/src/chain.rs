//! Patterns of few choices, held against a text from its first byte on: literals, sets of bytes, groups.
//!
//! In: steps, some strings. Out: which of the strings begin with them, and where their groups lie.
//! Invariant: what is found is what trying everything, longer and earlier choices first, finds. A run takes all bytes of
//! its set at once, which is right where nothing that follows it can begin with one of them: other chains are not made.
//! Not here: reading patterns; characters, of which a set holds all bytes or none.

use std::hint::select_unpredictable;
use std::ops::Range;

use memchr::memchr;

use crate::view::{INLINE_MAX, around};

/// Steps that leave more ways to go are not tried one after the other.
const WAYS_MAX: usize = 64;
/// So many of them leave two ways or more, at most.
const FORKS_MAX: usize = WAYS_MAX.ilog2() as usize;
/// Bytes that are compared at once.
const BLOCK: usize = 32;

/// Some of the 256 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteSet {
    has: Box<[bool; 256]>,
    /// The only byte that is not in it.
    all_but: Option<u8>,
}

impl ByteSet {
    /// The bytes of which `has` is true.
    pub fn new(has: impl Fn(u8) -> bool) -> Self {
        let has: Box<[bool; 256]> = Box::new(std::array::from_fn(|byte| has(byte as u8)));
        let mut others = (0..=255u8).filter(|&byte| !has[usize::from(byte)]);
        let all_but = others.next().filter(|_| others.next().is_none());
        Self { has, all_but }
    }

    /// True of its bytes.
    #[inline(always)]
    pub fn has(&self, byte: u8) -> bool {
        self.has[usize::from(byte)]
    }

    /// How many bytes `text` begins with that are in the set.
    #[inline(always)]
    fn leading(&self, text: &[u8]) -> usize {
        let end = match self.all_but {
            Some(byte) => first(byte, text),
            None => text.iter().position(|&byte| !self.has(byte)),
        };
        end.unwrap_or(text.len())
    }

    /// True if it has all bytes of `text`.
    #[inline(always)]
    fn has_all(&self, text: &[u8]) -> bool {
        match self.all_but {
            Some(byte) => !has(byte, text),
            None => text.iter().all(|&byte| self.has(byte)),
        }
    }

    fn meets(&self, other: &ByteSet) -> bool {
        (0..=255).any(|byte| self.has(byte) && other.has(byte))
    }
}

/// Where `byte` first is, mostly near: all places of a block at once, since where a run ends no processor foretells.
#[inline(always)]
fn first(byte: u8, text: &[u8]) -> Option<usize> {
    let Some(near) = text.first_chunk() else {
        return memchr(byte, text);
    };
    match places(byte, near) {
        0 => memchr(byte, &text[BLOCK..]).map(|at| BLOCK + at),
        places => Some(places.trailing_zeros() as usize),
    }
}

/// A bit for each byte of a block: the lowest one that is set is that of the first byte that equals `byte`; those above it
/// mean nothing.
#[inline(always)]
fn places(byte: u8, block: &[u8; BLOCK]) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Brings the low bits of all bytes together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = block.as_chunks::<8>().0.iter().enumerate();
    words.fold(0, |places, (number, word)| {
        let differing = u64::from_le_bytes(*word) ^ (ONES * u64::from(byte));
        let equal = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        let equal = (equal >> 7).wrapping_mul(GATHER) >> 56;
        places | (equal as u32) << (8 * number)
    })
}

/// Whether `byte` is somewhere: the first block and, over what follows, the last one are enough for most strings.
#[inline(always)]
fn has(byte: u8, text: &[u8]) -> bool {
    let is_in = |block: &[u8; BLOCK]| {
        block
            .iter()
            .fold(false, |any, &other| any | (other == byte))
    };
    let (Some(start), Some(end)) = (text.first_chunk(), text.last_chunk()) else {
        return memchr(byte, text).is_some();
    };
    is_in(start) | is_in(end)
        || text.len() > 2 * BLOCK && text[BLOCK..].as_chunks().0.iter().any(is_in)
}

/// Some bytes that a text is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    bytes: Box<[u8]>,
    /// The first eight of them as a word, zeros behind fewer, and the bits that they have there.
    word: u64,
    mask: u64,
}

impl Literal {
    /// These bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        let mut mask = [0; 8];
        for (at, byte) in bytes.iter().take(8).enumerate() {
            (word[at], mask[at]) = (*byte, u8::MAX);
        }
        Self {
            bytes: bytes.into(),
            word: u64::from_le_bytes(word),
            mask: u64::from_le_bytes(mask),
        }
    }

    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if `text` begins with them. By the C library's comparison, which reads behind short ones under a mask, it took 35
    /// instead of 2 ns on a virtual machine with 64-byte vectors.
    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        match self.bytes.len() {
            0 => true,
            1..=8 => self.length_of_first(text) > 0,
            _ => text.starts_with(&self.bytes),
        }
    }

    /// How many bytes they are if `text` is as long and begins with the first eight of them, else 0: a number that no branch
    /// depends on.
    #[inline(always)]
    fn length_of_first(&self, text: &[u8]) -> usize {
        let first = match text.first_chunk::<8>() {
            Some(first) => u64::from_le_bytes(*first),
            None => short_word(text),
        };
        let begins = (first & self.mask == self.word) & (self.bytes.len() <= text.len());
        select_unpredictable(begins, self.bytes.len(), 0)
    }
}

/// Fewer than eight bytes with zeros behind them.
#[cold]
fn short_word(text: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..text.len()].copy_from_slice(text);
    u64::from_le_bytes(word)
}

/// What a text has to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainStep {
    /// These bytes.
    Literal(Literal),
    /// Bytes of a set, at least so many.
    Run(ByteSet, usize),
    /// One of these, the first that leads to a match.
    OneOf(Box<[Literal]>),
    /// A group begins here.
    Open(usize),
    /// A group ends here.
    Close(usize),
    /// No further byte.
    End,
}

/// Strings that are held against a chain at once.
pub const STRINGS_MAX: usize = 64;

/// Steps in which each run ends where its bytes do.
#[derive(Debug)]
pub struct Chain {
    steps: Vec<ChainStep>,
    groups: usize,
}

/// What a chain has found in some strings.
#[derive(Debug)]
pub struct Found {
    /// Where in each text the steps so far end.
    ends: [usize; STRINGS_MAX],
    /// True of a text that does not go on with one of them.
    missed: [bool; STRINGS_MAX],
    /// The two ends of each group.
    places: Vec<[usize; STRINGS_MAX]>,
    /// The same of one text.
    places_of_one: Vec<usize>,
}

impl Found {
    /// Where the match ends with which a text begins, if it does.
    #[inline]
    pub fn end(&self, text: usize) -> Option<usize> {
        (!self.missed[text]).then_some(self.ends[text])
    }

    /// Where a group lies in a text that has matched.
    #[inline]
    pub fn group(&self, text: usize, group: usize) -> Range<usize> {
        self.places[2 * group][text]..self.places[2 * group + 1][text]
    }
}

impl Chain {
    /// Steps with groups of numbers below `groups`, each with its two ends; `None` where a run could have to end early, or
    /// where there are too many ways.
    ///
    /// # Panics
    /// If a group has another number.
    pub fn new(steps: Vec<ChainStep>, groups: usize) -> Option<Self> {
        let mut ways = 1usize;
        for (at, step) in steps.iter().enumerate() {
            match step {
                ChainStep::OneOf(strings) => ways = ways.saturating_mul(strings.len().max(1)),
                ChainStep::Run(set, _) if may_end_early(set, &steps[at + 1..]) => return None,
                ChainStep::Open(group) | ChainStep::Close(group) => {
                    assert!(*group < groups, "a group")
                }
                ChainStep::Run(..) | ChainStep::Literal(_) | ChainStep::End => {}
            }
        }
        (ways <= WAYS_MAX).then_some(Self { steps, groups })
    }

    /// Nothing found yet.
    pub fn found(&self) -> Found {
        Found {
            ends: [0; STRINGS_MAX],
            missed: [false; STRINGS_MAX],
            places: vec![[0; STRINGS_MAX]; 2 * self.groups],
            places_of_one: vec![0; 2 * self.groups],
        }
    }

    /// True where the bytes that long strings lie in show that a last run, as `.*$`, ends where the strings do. One pass over all of
    /// them takes a fifth of the time that a look at each one takes.
    ///
    /// # Panics
    /// If a view points outside of the buffers.
    pub fn is_clear(&self, views: &[u128], buffers: &[&[u8]]) -> bool {
        let [.., ChainStep::Run(set, _), ChainStep::End] = self.steps.as_slice() else {
            return false;
        };
        let (Some(byte), Some(bytes)) = (set.all_but, around(views, buffers)) else {
            return false;
        };
        memchr(byte, bytes).is_none()
    }

    /// Holds each of the strings against the chain. All strings take a step before the next one is taken, each the first choice;
    /// only those that this leads nowhere are tried one by one. Text by text it took twice as long: no processor foretells
    /// which step comes next.
    ///
    /// Where `are_clear` says so, a last run holds in all strings of more than 12 bytes.
    ///
    /// # Panics
    /// If there are more than [`STRINGS_MAX`] strings, or if `found` is not of this chain.
    pub fn matched(&self, strings: &[&[u8]], are_clear: bool, found: &mut Found) {
        assert!(
            strings.len() <= STRINGS_MAX,
            "more strings than are taken at once"
        );
        assert_eq!(
            found.places.len(),
            2 * self.groups,
            "two places for each group"
        );
        found.ends = [0; STRINGS_MAX];
        found.missed = [false; STRINGS_MAX];
        let clear_from = if are_clear {
            INLINE_MAX + 1
        } else {
            usize::MAX
        };
        for (number, step) in self.steps.iter().enumerate() {
            let is_last = matches!(self.steps.get(number + 1), Some(ChainStep::End));
            // What `is_clear` says is of the very last run.
            let holds_from = match number + 2 == self.steps.len() {
                true => clear_from,
                false => usize::MAX,
            };
            found.step(step, is_last.then_some(holds_from), strings);
        }
        for (at, text) in strings.iter().enumerate() {
            if found.missed[at]
                && let Some(end) = follow(&self.steps, text, &mut found.places_of_one)
            {
                (found.ends[at], found.missed[at]) = (end, false);
                for (places, place) in found.places.iter_mut().zip(&found.places_of_one) {
                    places[at] = *place;
                }
            }
        }
    }
}

impl Found {
    /// One step of all strings. The `last` but for the end of the text comes with the length of those that it holds in.
    #[inline(always)]
    fn step(&mut self, step: &ChainStep, last: Option<usize>, strings: &[&[u8]]) {
        let ends = self.ends.iter_mut().zip(&mut self.missed);
        // Those that have missed a step go on from where they are.
        let each = strings.iter().zip(ends);
        match (step, last) {
            (ChainStep::Literal(literal), _) => each.for_each(|(text, (end, missed))| {
                let begins = literal.begins(&text[*end..]);
                *end += usize::from(begins) * literal.bytes.len();
                *missed |= !begins;
            }),
            // Where exactly it ends otherwise does not matter.
            (ChainStep::Run(set, min), Some(clear_from)) => {
                each.for_each(|(text, (end, missed))| {
                    let left = &text[*end..];
                    let holds = text.len() >= clear_from || set.has_all(left);
                    *missed |= left.len() < *min || !holds;
                    *end = text.len();
                })
            }
            (ChainStep::Run(set, min), None) => each.for_each(|(text, (end, missed))| {
                let length = set.leading(&text[*end..]);
                *end += length;
                *missed |= length < *min;
            }),
            // Which of the two it is no processor foretells: both ways are the same instructions.
            (ChainStep::OneOf(ways), _) if is_optional(ways) => {
                let way = &ways[0];
                each.for_each(|(text, (end, _))| *end += way.length_of_first(&text[*end..]));
            }
            (ChainStep::OneOf(ways), _) => each.for_each(|(text, (end, missed))| {
                let left = &text[*end..];
                match ways.iter().find(|way| way.begins(left)) {
                    Some(way) => *end += way.bytes.len(),
                    None => *missed = true,
                }
            }),
            (ChainStep::Open(group), _) => self.places[2 * group] = self.ends,
            (ChainStep::Close(group), _) => self.places[2 * group + 1] = self.ends,
            (ChainStep::End, _) => {
                each.for_each(|(text, (end, missed))| *missed |= *end < text.len())
            }
        }
    }
}

/// A step of which other choices are left.
#[derive(Clone, Copy, Default)]
struct Fork {
    number: usize,
    at: usize,
    /// The first of its strings that was not tried.
    next: usize,
}

/// All steps of one text; of several ways the first that leads to the end.
fn follow(steps: &[ChainStep], text: &[u8], places: &mut [usize]) -> Option<usize> {
    let (mut forks, mut open) = ([Fork::default(); FORKS_MAX], 0);
    let (mut number, mut at, mut next) = (0, 0, 0);
    while let Some(step) = steps.get(number) {
        let left = &text[at..];
        let end = match step {
            ChainStep::Literal(literal) => literal.begins(left).then(|| at + literal.bytes.len()),
            ChainStep::Run(set, min) => match steps.get(number + 1) {
                // Where exactly it ends otherwise does not matter.
                Some(ChainStep::End) => {
                    (left.len() >= *min && set.has_all(left)).then_some(text.len())
                }
                _ => Some(set.leading(left))
                    .filter(|length| length >= min)
                    .map(|length| at + length),
            },
            ChainStep::OneOf(strings) => {
                let mut ways = strings[next..].iter();
                let way = ways.find(|one| one.begins(left));
                way.map(|one| {
                    if ways.len() > 0 {
                        let next = strings.len() - ways.len();
                        forks[open] = Fork { number, at, next };
                        open += 1;
                    }
                    at + one.bytes.len()
                })
            }
            ChainStep::Open(group) => {
                places[2 * group] = at;
                Some(at)
            }
            ChainStep::Close(group) => {
                places[2 * group + 1] = at;
                Some(at)
            }
            ChainStep::End => left.is_empty().then_some(at),
        };
        match end {
            Some(end) => (number, at, next) = (number + 1, end, 0),
            None => {
                open = open.checked_sub(1)?;
                Fork { number, at, next } = forks[open];
            }
        }
    }
    Some(at)
}

/// True of some bytes, eight at most, or none.
fn is_optional(ways: &[Literal]) -> bool {
    matches!(ways, [way, none] if way.bytes.len() <= 8 && none.bytes.is_empty())
}

/// True if `steps` can begin with a byte of `set`.
fn may_end_early(set: &ByteSet, steps: &[ChainStep]) -> bool {
    let begins = |text: &Literal| text.bytes.first().is_some_and(|&byte| set.has(byte));
    for step in steps {
        let (meets, may_be_empty) = match step {
            ChainStep::Literal(literal) => (begins(literal), literal.bytes.is_empty()),
            ChainStep::Run(next, min) => (set.meets(next), *min == 0),
            ChainStep::OneOf(strings) => (
                strings.iter().any(begins),
                strings.iter().any(|text| text.bytes.is_empty()),
            ),
            ChainStep::Open(_) | ChainStep::Close(_) => (false, true),
            ChainStep::End => (false, false),
        };
        if meets || !may_be_empty {
            return meets;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::naive;
    use crate::view::view_of;

    fn literal(text: &str) -> ChainStep {
        ChainStep::Literal(Literal::new(text.as_bytes()))
    }

    fn one_of(strings: &[&str]) -> ChainStep {
        ChainStep::OneOf(
            strings
                .iter()
                .map(|text| Literal::new(text.as_bytes()))
                .collect(),
        )
    }

    fn but(byte: u8) -> ByteSet {
        ByteSet::new(|other| other != byte)
    }

    /// The site of an address: `^https?://(?:www\.)?([^/]+)/.*$`.
    fn site() -> Chain {
        let steps = vec![
            literal("http"),
            one_of(&["s", ""]),
            literal("://"),
            one_of(&["www.", ""]),
            ChainStep::Open(0),
            ChainStep::Run(but(b'/'), 1),
            ChainStep::Close(0),
            literal("/"),
            ChainStep::Run(but(b'\n'), 0),
            ChainStep::End,
        ];
        Chain::new(steps, 1).expect("runs that end where their bytes do")
    }

    #[test]
    fn groups_lie_where_they_matched() {
        let found = |text: &str| {
            let (chain, mut found) = (site(), site().found());
            chain.matched(&[b"http://x/", text.as_bytes(), b""], false, &mut found);
            assert_eq!(found.end(0), Some(9));
            assert_eq!(found.end(2), None);
            found.end(1).map(|_| text[found.group(1, 0)].to_string())
        };
        assert_eq!(found("https://www.a.org/b/c"), Some("a.org".to_string()));
        assert_eq!(found("http://a.org/"), Some("a.org".to_string()));
        assert_eq!(found("http://www./x"), Some("www.".to_string()));
        assert_eq!(found("http://www.a"), None);
        assert_eq!(found("http:///"), None);
        assert_eq!(found("http://a/b\nc"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn only_the_last_run_is_clear() {
        let steps = vec![
            ChainStep::Run(but(b'a'), 0),
            ChainStep::End,
            ChainStep::Run(but(b'b'), 0),
            ChainStep::End,
        ];
        let chain = Chain::new(steps, 0).expect("runs that end where their bytes do");
        let (page, mut found) = ([b'a'; 16], chain.found());
        let is_clear = chain.is_clear(&[view_of(&page, 0, 0)], &[&page]);
        chain.matched(&[&page], is_clear, &mut found);
        assert!(is_clear);
        assert_eq!(found.end(0), None);
    }

    #[test]
    fn bytes_are_found_wherever_they_are() {
        // What interprets the test needs minutes for a part of them.
        let step = if cfg!(miri) { 19 } else { 1 };
        for length in (0..=100).step_by(step) {
            for place in (0..=length).step_by(step) {
                for (byte, other) in [(b'/', b'.'), (0x00, 0x80), (0x80, 0x00), (0xff, 0x7f)] {
                    // One more and one less than it, before and behind.
                    let mut text = vec![other; length];
                    for (at, one) in text.iter_mut().enumerate() {
                        *one = [other, byte.wrapping_add(1), byte.wrapping_sub(1)][at % 3];
                    }
                    assert_eq!(first(byte, &text), None, "{length}");
                    assert!(!has(byte, &text), "{length}");
                    if place < length {
                        text[place] = byte;
                        text[length - 1] = byte;
                        assert_eq!(first(byte, &text), Some(place), "{length}");
                        assert!(has(byte, &text), "{length}, {place}");
                        text[length - 1] = other;
                        text[place] = byte;
                        assert!(has(byte, &text), "{length}, {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn runs_that_may_have_to_end_early_are_refused() {
        let followed = |next: Vec<ChainStep>| {
            let run = ChainStep::Run(ByteSet::new(|byte| byte.is_ascii_lowercase()), 0);
            Chain::new([vec![run], next].concat(), 1)
        };
        assert!(followed(vec![literal("a")]).is_none());
        assert!(followed(vec![literal("1a")]).is_some());
        assert!(followed(vec![one_of(&["", "1"]), literal("a")]).is_none());
        assert!(followed(vec![ChainStep::Open(0), ChainStep::Close(0), literal("a")]).is_none());
        assert!(followed(vec![ChainStep::Run(but(b'a'), 0)]).is_none());
        assert!(followed(vec![ChainStep::End, literal("a")]).is_some());
        let many = vec![one_of(&["a", "b", "c", ""]); 4];
        assert!(Chain::new(many, 0).is_none());
    }

    fn steps() -> impl Strategy<Value = Vec<ChainStep>> {
        let text = || "[ab/]{0,2}|[ab]{7,10}";
        let step = prop_oneof![
            text().prop_map(|text| literal(&text)),
            (any::<[bool; 4]>(), 0..3usize).prop_map(|(has, min)| {
                let set = ByteSet::new(|byte| match byte {
                    b'a' => has[0],
                    b'b' => has[1],
                    b'/' => has[2],
                    _ => has[3],
                });
                ChainStep::Run(set, min)
            }),
            prop::collection::vec(text(), 1..4).prop_map(|strings| {
                one_of(&strings.iter().map(String::as_str).collect::<Vec<_>>())
            }),
            (0..2usize).prop_map(ChainStep::Open),
            (0..2usize).prop_map(ChainStep::Close),
            Just(ChainStep::End),
        ];
        prop::collection::vec(step, 0..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn equals_the_naive_one(
            steps in steps(),
            strings in prop::collection::vec("[ab/c]{0,8}|[ab]{6,12}|[ab]{20,50}[ab/c]{0,20}", 0..4),
            gap in prop_oneof![Just(b'a'), Just(b'/'), Just(0)],
        ) {
            if let Some(chain) = Chain::new(steps.clone(), 2) {
                let mut found = chain.found();
                let strings: Vec<&[u8]> = strings.iter().map(|text| text.as_bytes()).collect();
                let mut page = Vec::new();
                let views = strings.iter().map(|text| {
                    page.extend_from_slice(&[gap; 4]);
                    page.extend_from_slice(text);
                    view_of(text, 0, page.len() - text.len())
                });
                let views: Vec<u128> = views.collect();
                let are_clear = chain.is_clear(&views, &[&page]);
                chain.matched(&strings, are_clear, &mut found);
                for (at, text) in strings.iter().enumerate() {
                    let mut expected = vec![0; 4];
                    let end = naive::chain(&steps, text, 0, &mut expected);
                    prop_assert_eq!(found.end(at), end);
                    for group in 0..2 {
                        let opens = steps.contains(&ChainStep::Open(group));
                        let closes = steps.contains(&ChainStep::Close(group));
                        if end.is_some() && opens && closes {
                            let places = expected[2 * group]..expected[2 * group + 1];
                            prop_assert_eq!(found.group(at, group), places);
                        }
                    }
                }
            }
        }
    }
}
