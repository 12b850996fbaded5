//! Where a clause is written.
//!
//! In: the text of a statement, the words of a clause, a place before it. Out: the place of the first of these words.
//! Invariant: a place that is found is of the clause's own words; else it is the one that was given.
//! Not here: places of names and values, which the parser keeps.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::Position;
use crate::sql::ast::position_of;
use crate::sql::dialect::DIALECT;

/// The place of `clause`, whose words in capitals are those of the text, at or after `near`.
pub(super) fn of(text: &str, clause: &str, near: Location) -> Option<Position> {
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .unwrap_or_default();
    let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<&TokenWithSpan> = tokens.iter().filter(is_word).collect();
    let words: Vec<&str> = clause
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .take_while(|word| {
            word.chars()
                .all(|character| !character.is_ascii_lowercase())
        })
        .collect();
    let found = || {
        let starts = tokens.windows(words.len().max(1)).filter(|window| {
            let pairs = window.iter().zip(&words);
            !words.is_empty() && pairs.clone().all(|(token, word)| is(token, word))
        });
        let places: Vec<Location> = starts.map(|window| window[0].span.start).collect();
        let after = places.iter().find(|&&place| place >= near);
        after.or(places.first()).copied()
    };
    let at = found().unwrap_or(near);
    position_of(at)
}

fn is(token: &TokenWithSpan, word: &str) -> bool {
    match &token.token {
        Token::Word(written) => {
            written.quote_style.is_none() && written.value.eq_ignore_ascii_case(word)
        }
        _ => false,
    }
}
