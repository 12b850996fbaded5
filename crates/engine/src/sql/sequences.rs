//! `CREATE SEQUENCE s START 10 INCREMENT BY 5` and `DROP SEQUENCE s`.
//!
//! In: the tokens of a statement. Out: the sequence that is made, or the name of one that goes.
//! Invariant: options come in any order, each once; limits hold the start, and a step is not zero.
//! Not here: the numbers (functions/sequences.rs); options that are not listed, which the parser or planned/ refuse.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::functions::{AfterLast, OldSequence, SequenceNumbers};
use crate::sql::statement::Missing;
use crate::sql::tokens::{error_at, is_one_of, is_token, word_at};

/// A change of the session's sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SequenceChange {
    Create {
        name: String,
        numbers: SequenceNumbers,
        existing: OldSequence,
    },
    Drop {
        name: String,
        missing: Missing,
    },
}

/// The change that a statement is, of whose tokens none is a space.
pub(super) fn of(tokens: &[TokenWithSpan]) -> Result<Option<SequenceChange>> {
    match is_one_of(tokens, 0, &["DROP"]) {
        true => Ok(dropped(tokens)),
        false => created(tokens),
    }
}

/// Passes words that stand one after the other at `at`, if they all do.
fn pass(tokens: &[TokenWithSpan], at: &mut usize, words: &[&str]) -> bool {
    let mut places = (*at..).zip(words);
    let are_there = places.all(|(place, word)| is_one_of(tokens, place, &[word]));
    if are_there {
        *at += words.len();
    }
    are_there
}

fn dropped(tokens: &[TokenWithSpan]) -> Option<SequenceChange> {
    let mut at = 0;
    if !pass(tokens, &mut at, &["DROP", "SEQUENCE"]) {
        return None;
    }
    let missing = match pass(tokens, &mut at, &["IF", "EXISTS"]) {
        true => Missing::Nothing,
        false => Missing::Error,
    };
    let name = word_at(tokens, at)?.value.clone();
    (tokens.len() == at + 1).then_some(SequenceChange::Drop { name, missing })
}

fn created(tokens: &[TokenWithSpan]) -> Result<Option<SequenceChange>> {
    let mut at = 0;
    if !pass(tokens, &mut at, &["CREATE"]) {
        return Ok(None);
    }
    let replaces = pass(tokens, &mut at, &["OR", "REPLACE"]);
    // A sequence lives as long as the session anyway.
    let _ = pass(tokens, &mut at, &["TEMP"]) || pass(tokens, &mut at, &["TEMPORARY"]);
    if !pass(tokens, &mut at, &["SEQUENCE"]) {
        return Ok(None);
    }
    let keeps = pass(tokens, &mut at, &["IF", "NOT", "EXISTS"]);
    let existing = match (replaces, keeps) {
        (false, false) => OldSequence::Error,
        (true, false) => OldSequence::Replace,
        (false, true) => OldSequence::Keep,
        (true, true) => return Ok(None),
    };
    let Some(name) = word_at(tokens, at).map(|word| word.value.clone()) else {
        return Ok(None);
    };
    let Some(options) = SequenceOptions::read(tokens, at + 1)? else {
        return Ok(None);
    };
    let numbers = options.numbers(&name)?;
    Ok(Some(SequenceChange::Create {
        name,
        numbers,
        existing,
    }))
}

/// The options as they are written.
#[derive(Debug, Default)]
struct SequenceOptions {
    start: Option<i64>,
    increment: Option<i64>,
    /// `Some(None)` is NO MINVALUE.
    least: Option<Option<i64>>,
    greatest: Option<Option<i64>>,
    after_last: Option<AfterLast>,
}

impl SequenceOptions {
    /// The options from `at` on; `None` where one is none of a sequence.
    fn read(tokens: &[TokenWithSpan], mut at: usize) -> Result<Option<SequenceOptions>> {
        let mut options = SequenceOptions::default();
        while at < tokens.len() {
            let first = at;
            let is_new = if pass(tokens, &mut at, &["START"]) {
                pass(tokens, &mut at, &["WITH"]);
                options.start.replace(number(tokens, &mut at)?).is_none()
            } else if pass(tokens, &mut at, &["INCREMENT"]) {
                pass(tokens, &mut at, &["BY"]);
                options
                    .increment
                    .replace(number(tokens, &mut at)?)
                    .is_none()
            } else if pass(tokens, &mut at, &["NO", "MINVALUE"]) {
                options.least.replace(None).is_none()
            } else if pass(tokens, &mut at, &["MINVALUE"]) {
                let least = number(tokens, &mut at)?;
                options.least.replace(Some(least)).is_none()
            } else if pass(tokens, &mut at, &["NO", "MAXVALUE"]) {
                options.greatest.replace(None).is_none()
            } else if pass(tokens, &mut at, &["MAXVALUE"]) {
                let greatest = number(tokens, &mut at)?;
                options.greatest.replace(Some(greatest)).is_none()
            } else if pass(tokens, &mut at, &["NO", "CYCLE"]) {
                options.after_last.replace(AfterLast::Error).is_none()
            } else if pass(tokens, &mut at, &["CYCLE"]) {
                options.after_last.replace(AfterLast::Again).is_none()
            } else {
                return Ok(None);
            };
            if !is_new {
                return Err(error_at(&tokens[first], "an option that is given twice"));
            }
        }
        Ok(Some(options))
    }

    fn numbers(self, name: &str) -> Result<SequenceNumbers> {
        let increment = self.increment.unwrap_or(1);
        let (lower, upper) = match increment > 0 {
            true => (1, i64::MAX),
            false => (i64::MIN, -1),
        };
        let least = self.least.flatten().unwrap_or(lower);
        let greatest = self.greatest.flatten().unwrap_or(upper);
        let first = if increment > 0 { least } else { greatest };
        let start = self.start.unwrap_or(first);
        let wrong = |why: String| Error::planning(format!("sequence '{name}': {why}"));
        if increment == 0 {
            return Err(wrong("INCREMENT is 0".to_string()));
        }
        if least >= greatest {
            return Err(wrong(format!(
                "MINVALUE {least} is not less than MAXVALUE {greatest}"
            )));
        }
        if !(least..=greatest).contains(&start) {
            return Err(wrong(format!(
                "START {start} is not from MINVALUE {least} to MAXVALUE {greatest}"
            )));
        }
        Ok(SequenceNumbers {
            start,
            increment,
            least,
            greatest,
            after_last: self.after_last.unwrap_or(AfterLast::Error),
        })
    }
}

/// The whole number at `at`, which is passed.
fn number(tokens: &[TokenWithSpan], at: &mut usize) -> Result<i64> {
    let sign = match (
        is_token(tokens, *at, &Token::Minus),
        is_token(tokens, *at, &Token::Plus),
    ) {
        (true, _) => "-",
        (_, true) => "+",
        _ => "",
    };
    let place = *at + sign.len();
    let found = match tokens.get(place).map(|token| &token.token) {
        Some(Token::Number(digits, _)) => format!("{sign}{digits}").parse::<i64>().ok(),
        _ => None,
    };
    *at = place + 1;
    let wrong =
        |token: &TokenWithSpan| error_at(token, "an option of a sequence is a whole number");
    found.ok_or_else(|| {
        let token = tokens.get(place).or(tokens.last());
        token.map_or_else(
            || Error::Internal("a sequence without tokens".to_string()),
            wrong,
        )
    })
}
