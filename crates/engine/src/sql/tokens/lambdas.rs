//! Lambdas: `x -> x + 1` as an argument of a function becomes `lambda x : x + 1`.
//!
//! In: tokens. Out: tokens in which an arrow is JSON's operator everywhere.
//! Invariant: an arrow is a lambda only behind a name, or names in parentheses, that begin an argument of a call.
//! Not here: the functions that take lambdas; the form with the keyword, which the dialect reads.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::{Tokens, Written, closes, is_one_of, is_token, opening, opens, word_at};

/// Words before a parenthesis that is no call.
const NO_CALLS: [&str; 25] = [
    "IN", "VALUES", "SELECT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "WHEN", "THEN", "ELSE",
    "AS", "FROM", "HAVING", "CASE", "ANY", "ALL", "SOME", "EXISTS", "USING", "OVER", "QUALIFY",
    "BETWEEN", "LIKE",
];

pub(super) fn rewrite(tokens: Tokens) -> Tokens {
    if !tokens.iter().any(|token| token.token == Token::Arrow) {
        return tokens;
    }
    let mut written: Tokens = Vec::with_capacity(tokens.len());
    let mut calls: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.token == Token::Arrow
            && calls.last() == Some(&true)
            && let Some(names) = parameters(&written)
        {
            let open = names.start;
            let lambda = Written::at(token.span).sql("LAMBDA");
            let is_list = is_token(&written, open, &Token::LParen);
            let names: Vec<TokenWithSpan> = match is_list {
                true => written[open + 1..names.end - 1].to_vec(),
                false => written[names].to_vec(),
            };
            written.truncate(open);
            written.extend(lambda.copy(&names).sql(":").tokens);
            continue;
        }
        if opens(&token.token) {
            calls.push(token.token == Token::LParen && is_call(&tokens, at));
        } else if closes(&token.token) {
            calls.pop();
        }
        written.push(token.clone());
    }
    written
}

fn is_call(tokens: &[TokenWithSpan], open: usize) -> bool {
    let Some(before) = open.checked_sub(1) else {
        return false;
    };
    word_at(tokens, before).is_some() && !is_one_of(tokens, before, &NO_CALLS)
}

/// The names at the end of `written` that begin an argument.
fn parameters(written: &[TokenWithSpan]) -> Option<std::ops::Range<usize>> {
    let last = written.len().checked_sub(1)?;
    let start = match is_token(written, last, &Token::RParen) {
        true => {
            let open = opening(written, last)?;
            let is_name = |at: usize| match (at - open) % 2 {
                1 => word_at(written, at).is_some(),
                _ => is_token(written, at, &Token::Comma),
            };
            (last - open).is_multiple_of(2).then_some(())?;
            (open + 1..last).all(is_name).then_some(open)?
        }
        false => word_at(written, last).map(|_| last)?,
    };
    let before = start.checked_sub(1)?;
    let begins =
        is_token(written, before, &Token::LParen) || is_token(written, before, &Token::Comma);
    begins.then_some(start..written.len())
}
