//! What stands behind the name of a command.
//! In: the rest of its line. Out: words, without their quotes, or why the command cannot take them.
//! Invariant: `'…'` is taken as it is, `"…"` with backslash escapes; a `;` at the end of the last word is dropped.

use std::io;

use crate::print::PrintError;
use crate::run::Failure;

use super::Stop;

/// The arguments of a command.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    /// All of it, as it was typed.
    pub line: String,
    /// Its words.
    pub words: Vec<String>,
}

/// Why a command did not do what it should.
pub enum Complaint {
    /// Its arguments are not those that it takes.
    Usage,
    /// For this reason.
    Text(String),
    /// The engine or the output failed.
    Failure(Failure),
    /// It ends the pieces.
    Stop(Stop),
}

impl From<Failure> for Complaint {
    fn from(failure: Failure) -> Self {
        Complaint::Failure(failure)
    }
}

impl From<io::Error> for Complaint {
    fn from(error: io::Error) -> Self {
        Complaint::Failure(Failure::Print(PrintError::Io(error)))
    }
}

impl From<Stop> for Complaint {
    fn from(stop: Stop) -> Self {
        Complaint::Stop(stop)
    }
}

/// The arguments are not those that the command takes; whoever calls it says which these are.
#[derive(Debug, PartialEq, Eq)]
pub struct NotTaken;

impl From<NotTaken> for Complaint {
    fn from(_: NotTaken) -> Self {
        Complaint::Usage
    }
}

impl Arguments {
    /// The words of `line`.
    pub fn of(line: &str) -> Arguments {
        let line = line.trim();
        let bare = line.strip_suffix(';').filter(|bare| {
            // `.separator ;` means it.
            !bare.ends_with(char::is_whitespace) && !bare.is_empty()
        });
        Arguments {
            line: line.to_owned(),
            words: words(bare.unwrap_or(line)),
        }
    }

    /// No word.
    pub fn none(&self) -> Result<(), NotTaken> {
        if self.words.is_empty() {
            Ok(())
        } else {
            Err(NotTaken)
        }
    }

    /// One word.
    pub fn one(&self) -> Result<&str, NotTaken> {
        match self.words.as_slice() {
            [word] => Ok(word),
            _ => Err(NotTaken),
        }
    }

    /// One word or none.
    pub fn at_most_one(&self) -> Result<Option<&str>, NotTaken> {
        match self.words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word)),
            _ => Err(NotTaken),
        }
    }

    /// `on` or `off`.
    pub fn switch(&self) -> Result<bool, NotTaken> {
        match self.one()?.to_ascii_lowercase().as_str() {
            "on" | "yes" | "true" | "1" => Ok(true),
            "off" | "no" | "false" | "0" => Ok(false),
            _ => Err(NotTaken),
        }
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    while let Some(&first) = characters.peek() {
        if first.is_whitespace() {
            characters.next();
            continue;
        }
        let mut word = String::new();
        if first == '\'' || first == '"' {
            characters.next();
            while let Some(c) = characters.next_if(|c| *c != first) {
                word.push(c);
                if c == '\\' && first == '"' {
                    word.extend(characters.next());
                }
            }
            characters.next();
        } else {
            while let Some(c) = characters.next_if(|c| !c.is_whitespace()) {
                word.push(c);
            }
        }
        words.push(if first == '"' { unescaped(&word) } else { word });
    }
    words
}

/// With `\t`, `\n`, `\r` and `\\` as the characters that they stand for.
pub fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match characters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(Arguments::of(line).words, expected);
    }

    #[test]
    fn words_and_quotes() {
        check("", &[]);
        check(" a  b ", &["a", "b"]);
        check("'my file.csv' t", &["my file.csv", "t"]);
        check(
            "'a\\tb' \"a\\tb\" \"say \\\"x\\\"\"",
            &["a\\tb", "a\tb", "say \"x\""],
        );
        check("'not closed", &["not closed"]);
        check("''", &[""]);
    }

    #[test]
    fn a_semicolon_at_the_end_is_dropped_unless_it_is_meant() {
        check("csv;", &["csv"]);
        check(";", &[";"]);
        check("a ;", &["a", ";"]);
    }

    #[test]
    fn switches() {
        assert_eq!(Arguments::of("ON").switch(), Ok(true));
        assert_eq!(Arguments::of("off;").switch(), Ok(false));
        assert_eq!(Arguments::of("maybe").switch(), Err(NotTaken));
        assert_eq!(Arguments::of("on off").switch(), Err(NotTaken));
    }
}
