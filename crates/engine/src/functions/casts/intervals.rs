//! Intervals as people write them: `1 day 2 hours`, `1.5 months`, `2 days 1:30:00`, `1 day ago`, `47`.
//!
//! In: a text. Out: months, days and nanoseconds.
//! Invariant: nothing is left out. Of a part of a month 30 days are one, and of a part of a day the time is kept. A part of a
//! year or of a longer unit is rounded to months, as in PostgreSQL. DataFusion cuts 0.05 months to one day.
//! Not here: units of time by name (scalar/units.rs).

use crate::functions::scalar::Unit;

/// Digits behind a point that are read.
const PLACES_MAX: usize = 18;

pub(in crate::functions) const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Months, days and nanoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    months: i128,
    days: i128,
    nanos: i128,
}

/// A number: units, and what they have to be divided by.
type Ratio = (i128, i128);

impl Interval {
    /// The interval of a text; `None` if it is none. A number without a unit counts seconds, in front of a time days.
    pub(crate) fn read(text: &str) -> Option<Interval> {
        let mut text = text.trim().to_ascii_lowercase();
        let is_ago = text.ends_with(" ago");
        if is_ago {
            text.truncate(text.len() - " ago".len());
        }
        let text = text.strip_prefix('@').unwrap_or(&text);
        let words: Vec<&str> = text
            .split_whitespace()
            .flat_map(numbers_and_units)
            .collect();
        let mut interval = Interval::default();
        let mut rest = words.as_slice();
        if rest.is_empty() {
            return None;
        }
        while let [first, others @ ..] = rest {
            rest = others;
            if first.contains(':') {
                interval.nanos = interval.nanos.checked_add(time(first)?)?;
                continue;
            }
            let number = ratio(first)?;
            let unit = match rest {
                [] => "seconds",
                [next, ..] if next.contains(':') => "days",
                [unit, others @ ..] => {
                    rest = others;
                    unit
                }
            };
            interval.add(number, unit)?;
        }
        match is_ago {
            true => interval.negated(),
            false => interval.fits().then_some(interval),
        }
    }

    /// The same into the past.
    pub(crate) fn negated(&self) -> Option<Interval> {
        let negated = Interval {
            months: -self.months,
            days: -self.days,
            nanos: -self.nanos,
        };
        negated.fits().then_some(negated)
    }

    /// The interval as DataFusion reads it.
    pub(crate) fn plain(&self) -> String {
        let Interval {
            months,
            days,
            nanos,
        } = self;
        format!("{months} months {days} days {nanos} nanoseconds")
    }

    fn fits(&self) -> bool {
        i32::try_from(self.months).is_ok()
            && i32::try_from(self.days).is_ok()
            && i64::try_from(self.nanos).is_ok()
    }

    fn add(&mut self, (number, by): Ratio, unit: &str) -> Option<()> {
        let nanos = match unit {
            "nanosecond" | "nanoseconds" | "ns" => 1,
            unit => {
                let unit = Unit::of_interval(unit)?;
                match unit {
                    Unit::Month => {
                        self.months += number / by;
                        return self.add_days(number % by * 30, by);
                    }
                    Unit::Week => return self.add_days(number.checked_mul(7)?, by),
                    Unit::Day => return self.add_days(number, by),
                    unit => match unit.micros() {
                        Some(micros) => i128::from(micros) * 1_000,
                        None => {
                            let months = number.checked_mul(unit.months().into())?;
                            self.months += rounded(months, by);
                            return Some(());
                        }
                    },
                }
            }
        };
        let whole = (number / by).checked_mul(nanos)?;
        self.nanos = self.nanos.checked_add(whole + number % by * nanos / by)?;
        Some(())
    }

    /// Days, with what is a part of one as a time.
    fn add_days(&mut self, number: i128, by: i128) -> Option<()> {
        self.days += number / by;
        self.nanos = self
            .nanos
            .checked_add(number % by * i128::from(NANOS_PER_DAY) / by)?;
        Some(())
    }
}

/// `1y`, `2mon3d` and `-5h` as numbers and units.
fn numbers_and_units(word: &str) -> Vec<&str> {
    if word.contains(':') {
        return vec![word];
    }
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let mut parts = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c: char| is_digit(c) != is_digit(first))
            .unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

/// `-1.5` as -15 by 10.
fn ratio(text: &str) -> Option<Ratio> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, places) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("{whole}{places}");
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number || places.len() > PLACES_MAX || whole.len() > PLACES_MAX {
        return None;
    }
    let number: i128 = digits.parse().ok()?;
    let number = if text.starts_with('-') {
        -number
    } else {
        number
    };
    Some((number, 10_i128.pow(places.len() as u32)))
}

/// The nanoseconds of `1:30`, `-1:30:00.5`.
fn time(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let parts: Vec<&str> = unsigned.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let whole = |text: &str| match text.bytes().all(|digit| digit.is_ascii_digit()) {
        true => text.parse::<i64>().ok(),
        false => None,
    };
    let (hours, minutes) = (
        whole(hours)?,
        whole(minutes).filter(|minutes| *minutes < 60)?,
    );
    let (seconds, by) =
        ratio(seconds).filter(|(seconds, by)| *seconds >= 0 && seconds / by < 60)?;
    let nanos = (i128::from(hours) * 60 + i128::from(minutes)) * 60 * 1_000_000_000
        + seconds * 1_000_000_000 / by;
    Some(if text.starts_with('-') { -nanos } else { nanos })
}

/// The nearest whole number, of two the even one.
fn rounded(number: i128, by: i128) -> i128 {
    let (whole, rest) = (number.div_euclid(by), number.rem_euclid(by));
    match (rest * 2).cmp(&by) {
        std::cmp::Ordering::Less => whole,
        std::cmp::Ordering::Greater => whole + 1,
        std::cmp::Ordering::Equal => whole + whole.rem_euclid(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_strings() {
        const HOUR: i128 = 3_600_000_000_000;
        let read = |text: &str| {
            let interval = Interval::read(text)?;
            Some((interval.months, interval.days, interval.nanos))
        };
        for (text, months, days, nanos) in [
            ("0.05 month", 0, 1, 12 * HOUR),
            ("-1.5 months", -1, -15, 0),
            ("1.55 years", 19, 0, 0),
            ("1.5 weeks", 0, 10, 12 * HOUR),
            ("1:30", 0, 0, HOUR * 3 / 2),
            ("2 days -1:30:00.5", 0, 2, -(HOUR * 3 / 2 + 500_000_000)),
            ("1 02:00:00", 0, 1, 2 * HOUR),
            ("1y2mon 3d", 14, 3, 0),
            ("@ 1 day ago", 0, -1, 0),
            ("47.5", 0, 0, 47_500_000_000),
            ("2 millennia 1 ns", 24_000, 0, 1),
            ("1 day 1 day", 0, 2, 0),
        ] {
            assert_eq!(read(text), Some((months, days, nanos)), "{text}");
        }
        for text in [
            "",
            "1 dow",
            "abc",
            "1 day x",
            "1:60",
            "999999999 years",
            "1,5 days",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
