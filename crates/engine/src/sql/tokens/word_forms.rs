//! Words that say nothing here, or say it otherwise: `TABLE t`, `TRUNCATE t`, `AS MATERIALIZED (…)`, `LIMIT 1 WITH TIES`,
//! `LATERAL unnest(l)`, `SUMMARIZE TABLE t`. And `INTERVAL (3) DAY`, `WITH NO DATA`, `= ANY ((SELECT …) UNION (SELECT
//! …))`.
//!
//! In: tokens. Out: `SELECT * FROM t`, `DELETE FROM t`, `AS (…)`, `FETCH FIRST 1 ROWS WITH TIES`, `unnest(l)`,
//! `SUMMARIZE t`. And `INTERVAL 3 DAY`, `SELECT * FROM (…) LIMIT 0`, `= ANY (SELECT * FROM (…))`.
//! Invariant: a word that is a name stays.
//! Not here: forms that need a call to stand for them (query_forms.rs, table_forms.rs).

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::{Tokens, Written, closing, is_one_of, is_token, next_outside, word_at};

/// Words that one of these forms has.
pub(super) const WORDS: [&str; 9] = [
    "ANY",
    "ALL",
    "SOME",
    "TABLE",
    "TRUNCATE",
    "MATERIALIZED",
    "TIES",
    "LATERAL",
    "INTERVAL",
];

pub(super) fn rewrite(tokens: Tokens) -> Tokens {
    let tokens = quantified_sets(without_data(tokens));
    let mut written: Tokens = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match form(&tokens, at) {
            Some((form, used)) => {
                written.extend(Written::at(token.span).sql(form).tokens);
                at += used;
            }
            None => {
                written.push(token.clone());
                at += 1;
            }
        }
    }
    written
}

/// `CREATE TABLE t AS query WITH NO DATA` has the query's columns, and no rows; WITH DATA says nothing.
fn without_data(mut tokens: Tokens) -> Tokens {
    let end = tokens
        .iter()
        .rposition(|token| !matches!(token.token, Token::SemiColon | Token::EOF))
        .map_or(0, |last| last + 1);
    let is = |from_end: usize, word: &str| {
        end >= from_end && is_one_of(&tokens, end - from_end, &[word])
    };
    let words = match (is(1, "DATA"), is(2, "WITH"), is(2, "NO") && is(3, "WITH")) {
        (true, true, _) => 2,
        (true, _, true) => 3,
        _ => return tokens,
    };
    let begins = next_outside(&tokens, 0, |at| is_one_of(&tokens, at, &["AS"]));
    if !is_one_of(&tokens, 0, &["CREATE"]) || begins >= end {
        return tokens;
    }
    let span = tokens[begins].span;
    let mut end = end - words;
    tokens.drain(end..end + words);
    if words == 3 {
        let limit = Written::at(span).sql(") LIMIT 0").tokens;
        tokens.splice(end..end, limit);
        end = begins + 1;
        tokens.splice(end..end, Written::at(span).sql("SELECT * FROM (").tokens);
    }
    tokens
}

/// `= ANY ((SELECT …) UNION (SELECT …))`: behind ANY and ALL the parser takes a parenthesis for that of a value.
fn quantified_sets(mut tokens: Tokens) -> Tokens {
    // From the last to the first, so that places before stay.
    for at in (1..tokens.len()).rev() {
        let is_compared = matches!(
            tokens[at - 1].token,
            Token::Eq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq
        );
        let open = at + 1;
        let is_quantifier = is_compared && is_one_of(&tokens, at, &["ANY", "ALL", "SOME"]);
        if !is_quantifier
            || !is_token(&tokens, open, &Token::LParen)
            || !is_token(&tokens, open + 1, &Token::LParen)
        {
            continue;
        }
        let behind = closing(&tokens, open + 1) + 1;
        if is_one_of(&tokens, behind, &["UNION", "EXCEPT", "INTERSECT", "MINUS"]) {
            let end = closing(&tokens, open);
            let span = tokens[open].span;
            tokens.splice(end..end, Written::at(span).sql(")").tokens);
            let query = Written::at(span).sql("SELECT * FROM (").tokens;
            tokens.splice(open + 1..open + 1, query);
        }
    }
    tokens
}

/// What stands for the tokens at a place, and how many they are.
fn form(tokens: &[TokenWithSpan], at: usize) -> Option<(&'static str, usize)> {
    let is = |place: usize, word: &str| is_one_of(tokens, place, &[word]);
    let is_name = |place: usize| word_at(tokens, place).is_some();
    let is_open = |place: usize| is_token(tokens, place, &Token::LParen);
    if at == 0 && is(0, "TABLE") && is_name(1) {
        return Some(("SELECT * FROM", 1));
    }
    if is(at, "TABLE") && at > 0 && is(at - 1, "SUMMARIZE") && is_name(at + 1) {
        return Some(("", 1));
    }
    if at == 0 && is(0, "TRUNCATE") {
        let words = if is(1, "TABLE") && is_name(2) { 2 } else { 1 };
        let is_all = matches!(
            tokens.get(words + 1).map(|token| &token.token),
            None | Some(Token::SemiColon | Token::EOF)
        );
        return (is_all && is_name(words)).then_some(("DELETE FROM", words));
    }
    if is(at, "AS") && is(at + 1, "MATERIALIZED") && is_open(at + 2) {
        return Some(("AS", 2));
    }
    if is(at, "AS") && is(at + 1, "NOT") && is(at + 2, "MATERIALIZED") && is_open(at + 3) {
        return Some(("AS", 3));
    }
    let is_list = is_one_of(tokens, at + 1, &["UNNEST", "RANGE", "GENERATE_SERIES"]);
    if is(at, "LATERAL") && is_list && is_open(at + 2) {
        return Some(("", 1));
    }
    let is_number = |place: usize| {
        matches!(
            tokens.get(place).map(|token| &token.token),
            Some(Token::Number(..))
        )
    };
    // In parentheses the parser takes a number for the precision of the type.
    let in_interval = |open: usize| {
        let is_whole = matches!(
            tokens.get(open + 1).map(|token| &token.token),
            Some(Token::Number(digits, _)) if digits.bytes().all(|digit| digit.is_ascii_digit())
        );
        is_open(open)
            && is(open.wrapping_sub(1), "INTERVAL")
            && is_whole
            && is_token(tokens, open + 2, &Token::RParen)
            && is_name(open + 3)
    };
    if in_interval(at) || at >= 2 && in_interval(at - 2) {
        return Some(("", 1));
    }
    // The number, and what follows it, stay where they are.
    if is(at, "LIMIT") && is_number(at + 1) && is(at + 2, "WITH") && is(at + 3, "TIES") {
        return Some(("FETCH FIRST", 1));
    }
    if at >= 2 && is(at, "WITH") && is(at + 1, "TIES") && is(at - 2, "LIMIT") && is_number(at - 1) {
        return Some(("ROWS WITH TIES", 2));
    }
    None
}
