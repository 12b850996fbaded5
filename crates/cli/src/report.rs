//! Errors for a person: the message, the line of the SQL that it is about, and a caret under the place.
//! In: an engine error whose position counts from the statement, and the text that the statement stands in.
//! Out: lines on standard error.
//! Invariant: one form for all inputs; control characters of a query's data do not reach the terminal.

use std::io::Write;

use grouse::{Error, Position};
use unicode_width::UnicodeWidthStr;

use crate::script::Text;

/// Terminal cells of SQL shown around the place of an error.
const EXCERPT_CHARS_MAX: usize = 100;

/// Where SQL came from, as errors name it.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The command line or the prompt: the user sees it.
    Typed,
    /// A file or standard input.
    File(String),
}

impl Origin {
    /// How it is named.
    pub fn name(&self) -> &str {
        match self {
            Origin::Typed => "what was typed",
            Origin::File(name) => name,
        }
    }
}

/// Writes `error: message`.
pub fn message(text: &str) {
    write(&format!("error: {}", harmless(text)));
}

/// Writes something that is no error.
pub fn note(text: &str) {
    write(text);
}

/// Writes an engine error. Its position counts from the start of `text.sql`.
pub fn failure(error: &Error, text: &Text, origin: &Origin) {
    let excerpt = error
        .position()
        .and_then(|at| excerpt(&text.sql, at, text.line));
    let at_line = Position {
        line: text.line as u64,
        column: 1,
    };
    let error = error.clone().moved_to(at_line).to_string();
    let mut lines = match origin {
        Origin::Typed => format!("error: {}", harmless(&error)),
        Origin::File(name) => format!("error: {}: {}", harmless(name), harmless(&error)),
    };
    if let Some(excerpt) = excerpt {
        lines.push('\n');
        lines.push_str(&excerpt);
    }
    write(&lines);
}

/// Writes what is to be known of a statement that is done.
pub fn warnings(sentences: &[String]) {
    for sentence in sentences {
        write(&format!("warning: {}", harmless(sentence)));
    }
}

fn write(text: &str) {
    // Where standard error is closed there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The line of the error with a caret below, numbered as in the input that starts at `first_line`.
fn excerpt(sql: &str, at: Position, first_line: usize) -> Option<String> {
    let line_index = usize::try_from(at.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
    let line: Vec<char> = sql.lines().nth(line_index)?.chars().map(one_cell).collect();
    let column = column.min(line.len());
    let start = if line.len() <= EXCERPT_CHARS_MAX {
        0
    } else {
        let latest = line.len() - EXCERPT_CHARS_MAX;
        column.saturating_sub(EXCERPT_CHARS_MAX / 2).min(latest)
    };
    let end = line.len().min(start + EXCERPT_CHARS_MAX);
    let shown: String = line[start..end].iter().collect();
    let before: String = line[start..column].iter().collect();
    let (cut_before, cut_after) = (
        if start > 0 { "…" } else { "" },
        if end < line.len() { "…" } else { "" },
    );
    let label = format!("{:>4} | ", first_line + line_index);
    let indent = " ".repeat(label.width() + cut_before.width() + before.width());
    Some(format!("{label}{cut_before}{shown}{cut_after}\n{indent}^"))
}

/// Tabs and control characters as blanks, so that the caret stands where it should.
fn one_cell(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Without control characters other than line ends; a tab is a blank.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() && c != '\n' => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_no_harm() {
        assert_eq!(harmless("a\tb\nc\u{1b}[0m"), "a b\nc\u{fffd}[0m");
    }

    fn check(sql: &str, line: u64, column: u64, first_line: usize, expected: &str) {
        let found = excerpt(sql, Position { line, column }, first_line);
        assert_eq!(found.as_deref().unwrap_or(""), expected);
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        check("select x", 1, 8, 1, "   1 | select x\n              ^");
        check("select\n\tx", 2, 2, 10, "  11 |  x\n        ^");
        check(
            "select '日本', x",
            1,
            14,
            1,
            "   1 | select '日本', x\n                      ^",
        );
        check("select", 1, 99, 1, "   1 | select\n             ^");
        check("select", 7, 1, 1, "");
        check("select", 0, 0, 1, "");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let sql = format!("select {}x{}", "a, ".repeat(100), ", b".repeat(100));
        let found = excerpt(
            &sql,
            Position {
                line: 1,
                column: 308,
            },
            1,
        )
        .unwrap();
        let (shown, caret) = found.split_once('\n').unwrap();
        assert_eq!(shown.chars().count(), 7 + 2 + EXCERPT_CHARS_MAX);
        assert_eq!(shown.chars().nth(caret.chars().count() - 1), Some('x'));
    }
}
