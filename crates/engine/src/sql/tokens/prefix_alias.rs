//! Prefix aliases: `SELECT x: a + 1 FROM t: numbers(3)` becomes `SELECT a + 1 AS x FROM numbers(3) AS t`.
//!
//! In: tokens. Out: tokens with the alias behind what it names.
//! Invariant: only a name that begins an item of a select list or of FROM, with a colon behind it, is an alias.
//! Not here: colons in braces, in slices and of lambdas.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::{Tokens, Written, closes, is_one_of, is_token, opens, word_at};

/// Words behind which neither a select list nor FROM goes on.
const ENDS: [&str; 16] = [
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "INTO",
    "PREWHERE",
    "SAMPLE",
    "USING",
];

/// Words between two tables.
const JOINS: [&str; 14] = [
    "JOIN",
    "LEFT",
    "RIGHT",
    "INNER",
    "FULL",
    "CROSS",
    "NATURAL",
    "ASOF",
    "POSITIONAL",
    "SEMI",
    "ANTI",
    "ON",
    "OUTER",
    "TABLESAMPLE",
];

/// What a bracket, or the statement, is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum BracketClause {
    #[default]
    Other,
    Select,
    From,
}

/// One bracket, or the statement.
#[derive(Debug, Default)]
struct Bracket {
    part: BracketClause,
    /// An item may begin at the next token.
    begins: bool,
    alias: Option<TokenWithSpan>,
}

pub(super) fn rewrite(tokens: Tokens) -> Tokens {
    if !tokens.iter().any(|token| token.token == Token::Colon) {
        return tokens;
    }
    let mut written: Tokens = Vec::with_capacity(tokens.len());
    let mut levels = vec![Bracket::default()];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(level) = levels.last_mut() else {
            return tokens;
        };
        let next = next_part(&tokens, at, level.part);
        let ends = closes(&token.token) || token.token == Token::SemiColon || next.is_some();
        if ends && let Some(alias) = level.alias.take() {
            written.extend(Written::at(alias.span).sql("AS").copy(&[alias]).tokens);
        }
        if level.begins
            && level.part != BracketClause::Other
            && word_at(&tokens, at).is_some()
            && is_token(&tokens, at + 1, &Token::Colon)
        {
            level.alias = Some(token.clone());
            level.begins = false;
            at += 2;
            continue;
        }
        let is_quantifier = level.begins && is_one_of(&tokens, at, &["DISTINCT", "ALL", "LATERAL"]);
        match next {
            Some(part) => {
                level.part = part;
                level.begins = true;
            }
            None if !is_quantifier => level.begins = false,
            None => {}
        }
        if opens(&token.token) {
            levels.push(Bracket::default());
        } else if closes(&token.token) && levels.len() > 1 {
            levels.pop();
        }
        written.push(token.clone());
        at += 1;
    }
    if let Some(alias) = levels.into_iter().next().and_then(|level| level.alias) {
        written.extend(Written::at(alias.span).sql("AS").copy(&[alias]).tokens);
    }
    written
}

/// The part that begins behind the token, if one does; a new item of the same part is one as well.
fn next_part(tokens: &[TokenWithSpan], at: usize, part: BracketClause) -> Option<BracketClause> {
    let before = |words: &[&str]| at > 0 && is_one_of(tokens, at - 1, words);
    if is_one_of(tokens, at, &["SELECT"]) {
        return Some(BracketClause::Select);
    }
    match part {
        BracketClause::Other => is_one_of(tokens, at, &["FROM"])
            .then_some(BracketClause::From)
            .filter(|_| at == 0 || is_token(tokens, at - 1, &Token::LParen)),
        _ if is_token(tokens, at, &Token::Comma) => Some(part),
        // `a IS DISTINCT FROM b` and `WITHIN GROUP` belong to an item.
        BracketClause::Select if is_one_of(tokens, at, &["FROM"]) && !before(&["DISTINCT"]) => {
            Some(BracketClause::From)
        }
        BracketClause::From if is_one_of(tokens, at, &JOINS) => Some(BracketClause::From),
        _ if is_one_of(tokens, at, &ENDS) && !before(&["WITHIN"]) => Some(BracketClause::Other),
        _ => None,
    }
}
