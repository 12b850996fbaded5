//! Made-up words, so that text columns have the length and the repetition of real ones.
//!
//! In: bits. Out: words of two to four syllables, Latin for addresses, Cyrillic for titles.
//! Invariant: the word list is a function of nothing, the same in every process.

use std::sync::LazyLock;

use crate::random::Bits;

/// Words of each script; a power of two keeps the draw cheap.
const WORDS: u64 = 8_192;
const STREAM: u64 = 0x776f_7264;

const LATIN: [&str; 24] = [
    "ba", "co", "de", "fa", "go", "hi", "ka", "lo", "ma", "ne", "or", "pa", "ra", "se", "ti", "un",
    "va", "wi", "yo", "za", "st", "tre", "gal", "mir",
];
const CYRILLIC: [&str; 24] = [
    "ба", "во", "го", "да", "ел", "жи", "за", "ин", "ка", "ло", "мо", "на", "ов", "по", "ра", "ст",
    "ти", "ур", "ход", "це", "ча", "ше", "ны", "яр",
];

/// Which alphabet a word is written in.
#[derive(Clone, Copy)]
pub enum Script {
    /// One byte a letter
    Latin,
    /// Two bytes a letter in UTF-8
    Cyrillic,
}

static LATIN_WORDS: LazyLock<Vec<String>> = LazyLock::new(|| words(&LATIN));
static CYRILLIC_WORDS: LazyLock<Vec<String>> = LazyLock::new(|| words(&CYRILLIC));

fn words(syllables: &[&str; 24]) -> Vec<String> {
    (0..WORDS)
        .map(|id| {
            let mut bits = Bits::of(STREAM, id);
            let count = 2 + bits.below(3);
            let mut word = String::new();
            for _ in 0..count {
                bits = bits.next();
                word.push_str(syllables[bits.below(24) as usize]);
            }
            word
        })
        .collect()
}

/// One word.
pub fn word(script: Script, bits: Bits) -> &'static str {
    let list = match script {
        Script::Latin => &*LATIN_WORDS,
        Script::Cyrillic => &*CYRILLIC_WORDS,
    };
    &list[(bits.0 % WORDS) as usize]
}

/// Appends `count` words, `between` them, and returns the bits that were not used.
pub fn push_words(
    text: &mut String,
    script: Script,
    mut bits: Bits,
    count: u64,
    between: char,
) -> Bits {
    for index in 0..count {
        if index > 0 {
            text.push(between);
        }
        text.push_str(word(script, bits));
        bits = bits.next();
    }
    bits
}
