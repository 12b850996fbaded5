//! The progress bar: one line on the terminal of standard error while a query runs.
//! In: the engine's snapshots. Out: `42% ████░░░░░░  8 s left, 12.3 M rows, 45.1 M rows/s, 1.20 M groups, 512 MB`.
//! Invariant: nothing is drawn where standard error is no terminal or before `DELAY`. The line is gone when the query
//! is done and before any result is written to the same terminal. It never wraps.
//! Not here: how progress is measured.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use grouse::Progress;

/// A query that is done by then needs no bar.
const DELAY: Duration = Duration::from_millis(200);
/// Time between two drawings.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// What has to be read, and how long it has to run, before anything is said about the rest.
const SHARE_FOR_GUESS: f64 = 0.02;
const TIME_FOR_GUESS: Duration = Duration::from_secs(1);
/// Terminal cells of the bar itself.
const BAR_CELLS: usize = 20;
/// Carriage return, erase the line.
const ERASE: &[u8] = b"\r\x1b[2K";

/// Draws and erases the bar.
pub struct Bar {
    place: Place,
    started: Instant,
}

enum Place {
    Nowhere,
    Terminal { drawn: bool },
}

impl Bar {
    /// A bar for a query that starts now.
    pub fn start() -> Bar {
        let is_terminal = std::io::stderr().is_terminal();
        let place = if is_terminal {
            Place::Terminal { drawn: false }
        } else {
            Place::Nowhere
        };
        Bar {
            place,
            started: Instant::now(),
        }
    }

    /// Draws the state of the query, over what was drawn before.
    pub fn draw(&mut self, progress: &Progress) {
        let elapsed = self.started.elapsed();
        if let Place::Terminal { drawn } = &mut self.place
            && elapsed >= DELAY
        {
            let width = terminal_size::terminal_size_of(std::io::stderr());
            let width = width.map_or(80, |(width, _)| usize::from(width.0));
            let mut text = ERASE.to_vec();
            text.extend_from_slice(line(progress, elapsed, width.saturating_sub(1)).as_bytes());
            // A bar that cannot be drawn is no reason to fail.
            let _ = std::io::stderr().write_all(&text);
            *drawn = true;
        }
    }

    /// Takes the bar off the terminal.
    pub fn erase(&mut self) {
        if let Place::Terminal { drawn } = &mut self.place
            && *drawn
        {
            let _ = std::io::stderr().write_all(ERASE);
            *drawn = false;
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.erase();
    }
}

/// The line for a terminal of this width; what does not fit is left out from the end.
fn line(progress: &Progress, elapsed: Duration, width: usize) -> String {
    let mut line = match progress.input_share {
        Some(share) => share_and_bar(share.clamp(0.0, 1.0)),
        None => format!("{:.1} s", elapsed.as_secs_f64()),
    };
    let mut length = line.chars().count();
    let rows_per_second = progress.input_rows as f64 / elapsed.as_secs_f64().max(1e-9);
    let facts = [
        progress.input_share.and_then(|share| left(share, elapsed)),
        (progress.input_rows > 0).then(|| format!("{} rows", scaled(progress.input_rows as f64))),
        (progress.input_rows > 0).then(|| format!("{} rows/s", scaled(rows_per_second))),
        (progress.groups > 0).then(|| format!("{} groups", scaled(progress.groups as f64))),
        (progress.memory_bytes > 0).then(|| format!("{}B", scaled(progress.memory_bytes as f64))),
        (progress.spilled_bytes > 0)
            .then(|| format!("{}B on disk", scaled(progress.spilled_bytes as f64))),
    ];
    for (nth, fact) in facts.into_iter().flatten().enumerate() {
        let fact = format!("{}{fact}", if nth == 0 { "  " } else { ", " });
        length += fact.chars().count();
        if length > width {
            break;
        }
        line.push_str(&fact);
    }
    line.chars().take(width).collect()
}

/// `8 s left`, if the input goes on as it went; nothing while that would be a guess.
fn left(share: f64, elapsed: Duration) -> Option<String> {
    let is_known = (SHARE_FOR_GUESS..1.0).contains(&share) && elapsed >= TIME_FOR_GUESS;
    let seconds = (elapsed.as_secs_f64() * (1.0 - share) / share).ceil();
    is_known.then(|| match seconds as u64 {
        seconds @ ..=99 => format!("{seconds} s left"),
        seconds @ ..=5_999 => format!("{} min left", seconds.div_ceil(60)),
        seconds => format!("{} h left", seconds.div_ceil(3_600)),
    })
}

/// ` 42% ████████░░░░░░░░░░░░`
fn share_and_bar(share: f64) -> String {
    let full = (share * BAR_CELLS as f64) as usize;
    let (full, rest) = ("█".repeat(full), "░".repeat(BAR_CELLS - full));
    format!("{:3}% {full}{rest}", (share * 100.0) as u32)
}

/// `999`, `1.23 k`, `45.6 M`: three digits and a unit of a thousand; ends with a blank where a unit may follow.
fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let unit = UNITS[unit];
    if unit.is_empty() {
        format!("{value:.0}")
    } else {
        format!("{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (999.0, "999"),
            (1_000.0, "1.00 k"),
            (9_999.0, "10.0 k"),
            (45_600_000.0, "45.6 M"),
            (999_999_999.0, "1.00 G"),
            (5e15, "5000 T"),
        ] {
            assert_eq!(scaled(value), expected);
        }
    }

    #[test]
    fn the_time_left_is_said_once_it_is_known() {
        let after = |share, seconds| left(share, Duration::from_secs(seconds));
        assert_eq!(after(0.5, 8).as_deref(), Some("8 s left"));
        assert_eq!(after(0.1, 30).as_deref(), Some("5 min left"));
        assert_eq!(after(0.02, 3_600).as_deref(), Some("49 h left"));
        for (share, seconds) in [(0.0, 8), (0.01, 8), (0.5, 0), (1.0, 8)] {
            assert_eq!(after(share, seconds), None);
        }
    }

    #[test]
    fn the_bar_fills() {
        assert_eq!(share_and_bar(0.0), format!("  0% {}", "░".repeat(20)));
        assert_eq!(
            share_and_bar(0.5),
            format!(" 50% {}{}", "█".repeat(10), "░".repeat(10))
        );
        assert_eq!(share_and_bar(1.0), format!("100% {}", "█".repeat(20)));
    }

    #[test]
    fn the_line_never_wraps() {
        let progress = Progress {
            input_rows: 123_456_789,
            input_share: Some(0.42),
            groups: 1_200_000,
            memory_bytes: 512_000_000,
            spilled_bytes: 1_000_000_000,
            ..Progress::default()
        };
        let second = Duration::from_secs(1);
        let whole = " 42% ████████░░░░░░░░░░░░  2 s left, 123 M rows, 123 M rows/s, 1.20 M groups, 512 MB, 1.00 GB on disk";
        assert_eq!(line(&progress, second, 200), whole);
        for width in 0..200 {
            let line = line(&progress, second, width);
            assert!(
                whole.starts_with(&line) && line.chars().count() <= width,
                "{width}: {line}"
            );
        }
        assert_eq!(line(&Progress::default(), second, 80), "1.0 s");
    }
}
