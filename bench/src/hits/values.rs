//! From a column's source to its array, for one batch.
//!
//! In: a `Column`, its number (its stream of random bits) and the batch's visits.
//! Out: one array without NULLs. Invariant: a value depends on its row and column alone.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, Int16Array, Int32Array, Int64Array, UInt16Array};

use super::columns::{Column, Kind, Known, Of, Source, Text};
use super::pages::{page, phrase, push_phrase, referer};
use super::visits::{Layout, Visit};
use crate::random::Bits;
use crate::words::{Script, push_words};

const SECONDS_PER_DAY: u64 = 86_400;
/// Between two rows of a visit, at most.
const SECONDS_PER_STEP: u64 = 45;
/// A visit that starts later could run past its day.
const VISIT_START_END: u64 = SECONDS_PER_DAY - 64 * SECONDS_PER_STEP;
const REGIONS: u64 = 9_040;
/// A prime: multiplying by anything below it spreads the ids without collisions.
const REGION_ID_END: u64 = 131_071;
/// Of a million rows: those that repeat the row before.
const REPEATED_WATCH: u64 = 5;
/// Of a million users: those on a telephone.
const MOBILE_USERS: u64 = 56_000;
const PHONE_MODELS: u64 = 166;
const STREAM_WATCH: u64 = 0x7661_0001;
const STREAM_TIME: u64 = 0x7661_0002;
const STREAM_MOBILE: u64 = 0x7661_0003;
const STREAM_SCREEN: u64 = 0x7661_0004;

/// Widths and heights that go together.
const SCREENS: [(i64, i64); 12] = [
    (1366, 768),
    (1920, 1080),
    (1280, 1024),
    (1280, 800),
    (1024, 768),
    (1600, 900),
    (1440, 900),
    (1680, 1050),
    (320, 480),
    (1368, 768),
    (768, 1024),
    (0, 0),
];

/// The values of one column.
pub fn fill(column: &Column, stream: u64, layout: &Layout, visits: &[Visit]) -> ArrayRef {
    let number = |visit: &Visit| number(&column.source, stream, layout, visit);
    match column.kind {
        Kind::Short => Arc::new(Int16Array::from_iter_values(
            visits.iter().map(|visit| number(visit) as i16),
        )),
        Kind::Int => Arc::new(Int32Array::from_iter_values(
            visits.iter().map(|visit| number(visit) as i32),
        )),
        Kind::Long => Arc::new(Int64Array::from_iter_values(visits.iter().map(number))),
        Kind::Date => Arc::new(UInt16Array::from_iter_values(
            visits.iter().map(|visit| visit.day as u16),
        )),
        Kind::Bytes => Arc::new({
            let mut builder = BinaryBuilder::with_capacity(visits.len(), visits.len() * 16);
            let mut text = String::new();
            for visit in visits {
                text.clear();
                push_text(&mut text, &column.source, stream, (layout, visit));
                builder.append_value(&text);
            }
            builder.finish()
        }),
    }
}

/// The bits of whatever the value belongs to.
fn bits(of: Of, stream: u64, visit: &Visit) -> Bits {
    let id = match of {
        Of::Row => visit.row,
        Of::Visit => visit.bits.0,
        Of::User => visit.user,
        Of::Counter => visit.counter,
    };
    Bits::of(stream, id)
}

fn number(source: &Source, stream: u64, layout: &Layout, visit: &Visit) -> i64 {
    match *source {
        Source::Fixed(value) => value,
        Source::Rare(of, per_million, distinct) => {
            let bits = bits(of, stream, visit);
            if bits.one_in_million(per_million) {
                1 + bits.next().zipf(distinct, 1.0) as i64
            } else {
                0
            }
        }
        Source::Skewed(of, distinct, first) => {
            first + bits(of, stream, visit).zipf(distinct, 3.0) as i64
        }
        Source::Uniform(of, low, high) => {
            low + bits(of, stream, visit).below((high - low) as u64) as i64
        }
        Source::Pick(of, choices) => *pick(choices, bits(of, stream, visit)),
        Source::Known(known) => derived(known, layout, visit),
        Source::Word(..) | Source::PickText(..) | Source::Text(_) => {
            unreachable!("a text source in a number column")
        }
    }
}

/// Weights are in percent and sum to 100.
fn pick<T>(choices: &'static [(T, u64)], bits: Bits) -> &'static T {
    let mut left = bits.below(100);
    for (value, percent) in choices {
        if left < *percent {
            return value;
        }
        left -= percent;
    }
    unreachable!("weights sum to 100")
}

fn derived(known: Known, layout: &Layout, visit: &Visit) -> i64 {
    match known {
        Known::Watch => watch_id(visit.row),
        Known::EventTime => event_time(visit) as i64,
        Known::LocalTime => event_time(visit) as i64 + 3_600 * 4,
        Known::ClientTime => {
            let drift = Bits::of(STREAM_TIME, visit.user).zipf(7_200, 5.0);
            event_time(visit) as i64 + drift as i64
        }
        Known::Counter => i64::from(layout.counter_id(visit.counter)),
        Known::User => layout.user_id(visit.user) as i64,
        Known::Region => {
            let region = Bits::of(STREAM_WATCH, visit.user).zipf(REGIONS, 1.0);
            ((region * 12_347 + 228) % REGION_ID_END + 1) as i64
        }
        Known::ClientIp => {
            // One visit in seven is made from elsewhere.
            let home = Bits::of(STREAM_TIME, visit.user).next();
            let elsewhere = visit.bits.below(7) == 0;
            i64::from(if elsewhere {
                visit.bits.next().0
            } else {
                home.0
            } as i32)
        }
        Known::FirstSeen => {
            let bits = Bits::of(STREAM_MOBILE, visit.user).next();
            if bits.below(5) == 0 {
                0
            } else {
                (bits.next().0 >> 1) as i64
            }
        }
        Known::UrlHash => page(layout, visit.counter, visit.row).bits().0 as i64,
        Known::RefererHash => referer(layout, visit).bits() as i64,
        Known::Width => screen(visit).0,
        Known::Height => screen(visit).1,
        Known::Mobile => i64::from(phone(visit).is_some()),
        Known::Phone => phone(visit).map_or(0, |model| 1 + model as i64 % 44),
        Known::SearchEngine => {
            phrase(layout, visit.row).map_or(0, |phrase| 2 + (phrase % 10) as i64 / 7)
        }
        Known::Traffic => match phrase(layout, visit.row) {
            Some(_) => 2,
            None => *pick(&[(-1, 40), (0, 10), (1, 25), (3, 10), (6, 15)], visit.bits),
        },
    }
}

fn watch_id(row: u64) -> i64 {
    let bits = Bits::of(STREAM_WATCH, row);
    let repeats = row > 0 && bits.one_in_million(REPEATED_WATCH);
    let bits = if repeats {
        Bits::of(STREAM_WATCH, row - 1)
    } else {
        bits
    };
    (bits.next().0 >> 1) as i64
}

fn event_time(visit: &Visit) -> u64 {
    let started = visit.bits.next().next().below(VISIT_START_END);
    let within = Bits::of(STREAM_TIME, visit.row).below(SECONDS_PER_STEP);
    visit.day * SECONDS_PER_DAY + started + visit.step * SECONDS_PER_STEP + within
}

fn screen(visit: &Visit) -> (i64, i64) {
    let bits = Bits::of(STREAM_SCREEN, visit.user);
    SCREENS[bits.zipf(SCREENS.len() as u64, 2.0) as usize]
}

fn phone(visit: &Visit) -> Option<u64> {
    let bits = Bits::of(STREAM_MOBILE, visit.user);
    bits.one_in_million(MOBILE_USERS)
        .then(|| bits.next().zipf(PHONE_MODELS, 1.0))
}

fn push_text(text: &mut String, source: &Source, stream: u64, at: (&Layout, &Visit)) {
    let (layout, visit) = at;
    match *source {
        Source::PickText(of, choices) => {
            text.push_str(pick::<&str>(choices, bits(of, stream, visit)))
        }
        Source::Word(of, per_million, distinct) => {
            let bits = bits(of, stream, visit);
            if bits.one_in_million(per_million) {
                let word = Bits::of(stream, bits.next().zipf(distinct, 1.0));
                push_words(text, Script::Latin, word, 2, '_');
            }
        }
        Source::Text(Text::Url) => page(layout, visit.counter, visit.row).push_url(text),
        Source::Text(Text::Title) => page(layout, visit.counter, visit.row).push_title(text),
        Source::Text(Text::Referer) => referer(layout, visit).push_url(text),
        Source::Text(Text::OriginalUrl) => {
            if bits(Of::Row, stream, visit).below(10) == 0 {
                page(layout, visit.counter, visit.row).push_url(text);
            }
        }
        Source::Text(Text::Phrase) => {
            if let Some(phrase) = phrase(layout, visit.row) {
                push_phrase(text, phrase, ' ');
            }
        }
        Source::Text(Text::PhoneModel) => {
            if let Some(model) = phone(visit) {
                push_words(text, Script::Latin, Bits::of(STREAM_MOBILE, model), 1, ' ');
                text.push_str(&model.to_string());
            }
        }
        Source::Fixed(_)
        | Source::Rare(..)
        | Source::Skewed(..)
        | Source::Uniform(..)
        | Source::Pick(..)
        | Source::Known(_) => unreachable!("a number source in a text column"),
    }
}
