//! Addresses, titles and search phrases: who is meant, and how it is spelt.
//!
//! In: a `Visit`. Out: ids of page, phrase and referer, and their text.
//! Invariant: one id, one spelling, so that hashes of the id stand for the text.

use std::fmt::Write;

use super::visits::{Layout, Visit};
use crate::random::Bits;
use crate::words::{Script, push_words, word};

/// Of a million rows: pages that hardly anyone else sees.
const DEEP_PAGES: u64 = 75_000;
/// A site has one popular page for this many rows.
const ROWS_PER_PAGE: u64 = 8;
/// Of a million rows: those that came with a search phrase.
const PHRASES: u64 = 132_000;
/// Of a million phrases: those that nobody repeats.
const LONE_PHRASES: u64 = 300_000;
/// A repeated phrase for this many rows of the table.
const ROWS_PER_PHRASE: u64 = 20;

const STREAM_PAGE: u64 = 0x7061_0001;
const STREAM_PHRASE: u64 = 0x7061_0002;
const STREAM_REFERER: u64 = 0x7061_0003;
const STREAM_HOST: u64 = 0x7061_0004;
const STREAM_SPELLING: u64 = 0x7061_0005;

/// One page of one site.
#[derive(Clone, Copy)]
pub struct Page {
    counter: u64,
    /// 0 is the front page; popular pages come first, deep ones far behind.
    number: u64,
}

/// Where a visitor came from.
#[derive(Clone, Copy)]
pub enum Referer {
    /// Typed or bookmarked
    None,
    /// A page of the same site
    Inside(Page),
    /// A search engine, with this phrase
    Search(u64),
    /// Some other site
    Outside(u64),
}

/// The page that a row shows.
pub fn page(layout: &Layout, counter: u64, row: u64) -> Page {
    let bits = Bits::of(STREAM_PAGE, row);
    let rows = layout.counter_rows(counter);
    let popular = 1 + rows / ROWS_PER_PAGE;
    let number = if bits.one_in_million(DEEP_PAGES) {
        popular + bits.next().below(1 << 36)
    } else {
        bits.next().zipf(popular, 1.0)
    };
    Page { counter, number }
}

/// The phrase that led to a row, if it came from a search.
pub fn phrase(layout: &Layout, row: u64) -> Option<u64> {
    let bits = Bits::of(STREAM_PHRASE, row);
    if !bits.one_in_million(PHRASES) {
        return None;
    }
    let bits = bits.next();
    let repeated = 1 + layout.rows() / ROWS_PER_PHRASE;
    Some(if bits.one_in_million(LONE_PHRASES) {
        repeated + row
    } else {
        bits.next().zipf(repeated, 30.0)
    })
}

/// Where the visitor of a row came from.
pub fn referer(layout: &Layout, visit: &Visit) -> Referer {
    if let Some(phrase) = phrase(layout, visit.row) {
        return Referer::Search(phrase);
    }
    let bits = Bits::of(STREAM_REFERER, visit.row);
    let inside = |row| Referer::Inside(page(layout, visit.counter, row));
    match (visit.step, bits.below(100)) {
        (0, 0..45) | (1.., 0..8) => Referer::None,
        (0, 45..75) => Referer::Outside(bits.next().zipf(1 << 22, 50.0)),
        (0, _) => inside(visit.row ^ 1),
        (1.., _) => inside(visit.row - 1),
    }
}

impl Page {
    /// 64 bits that stand for the page.
    pub fn bits(self) -> Bits {
        Bits(Bits::of(self.counter, self.number).0 ^ STREAM_SPELLING)
    }

    /// The address, 40 to 150 bytes.
    pub fn push_url(self, text: &mut String) {
        text.push_str("http://");
        push_host(text, self.counter);
        text.push('/');
        if self.number == 0 {
            return;
        }
        let bits = self.bits();
        let depth = 1 + bits.below(3);
        let bits = push_words(text, Script::Latin, bits.next(), depth, '/');
        let number = self.number;
        // Writing to a `String` cannot fail.
        let _ = match bits.below(4) {
            0 => write!(text, "/{number}.html"),
            1 => write!(text, "/{}-{number}", word(Script::Latin, bits.next())),
            2 => write!(text, "/index.php?id={number}"),
            _ => write!(text, "/?page={number}"),
        };
        self.push_parameters(text, bits.next());
    }

    fn push_parameters(self, text: &mut String, bits: Bits) {
        if bits.one_in_million(1_500) {
            text.push_str("&utm_source=google");
        } else if bits.below(100) < 60 {
            text.push_str("&from=");
            let bits = push_words(text, Script::Latin, bits.next(), 2, '_');
            let _ = write!(text, "&lang=ru&session={:016x}", bits.0);
        }
    }

    /// The title: two neighbouring pages share one, the front page has the site's name.
    pub fn push_title(self, text: &mut String) {
        let shared = Page {
            counter: self.counter,
            number: self.number.div_ceil(2),
        };
        let bits = shared.bits().next();
        if bits.below(100) < 12 {
            return;
        }
        let count = 3 + bits.below(7);
        let rest = push_words(text, Script::Cyrillic, bits.next(), count, ' ');
        text.push_str(match rest.below(1_000) {
            0 => " - Google | ",
            1..500 => " - ",
            _ => " | ",
        });
        push_host(text, self.counter);
    }
}

impl Referer {
    /// 64 bits that stand for the referer; 0 for none.
    pub fn bits(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Inside(page) => page.bits().0,
            Self::Search(phrase) => Bits::of(STREAM_PHRASE, phrase).next().0,
            Self::Outside(place) => Bits::of(STREAM_REFERER, place).next().0,
        }
    }

    /// The address, empty for none.
    pub fn push_url(self, text: &mut String) {
        match self {
            Self::None => {}
            Self::Inside(page) => page.push_url(text),
            Self::Search(phrase) => {
                text.push_str(match phrase % 10 {
                    0..7 => "http://yandex.example/yandsearch?lr=213&text=",
                    7 | 8 => "http://google.example/search?hl=ru&q=",
                    _ => "http://mail.example/search?q=",
                });
                push_phrase(text, phrase, '+');
            }
            Self::Outside(place) => {
                let counter = Bits::of(STREAM_REFERER, place).zipf(100_000, 10.0);
                Page {
                    counter: counter + 1_000_000,
                    number: place,
                }
                .push_url(text);
            }
        }
    }
}

/// The words of a phrase, `between` them.
pub fn push_phrase(text: &mut String, phrase: u64, between: char) {
    let bits = Bits::of(STREAM_PHRASE, phrase);
    let count = 2 + bits.below(4);
    push_words(text, Script::Cyrillic, bits.next(), count, between);
}

fn push_host(text: &mut String, counter: u64) {
    let bits = Bits::of(STREAM_HOST, counter);
    let rest = push_words(text, Script::Latin, bits, 2, '-');
    text.push_str(match rest.below(10) {
        0..7 => ".ru",
        7 | 8 => ".com",
        _ => ".ua",
    });
}
