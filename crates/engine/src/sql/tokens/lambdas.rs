//! Lambdas: `x -> x + 1` as an argument of `list_transform` becomes `lambda x : x + 1`.
//!
//! In: tokens. Out: tokens in which an arrow is JSON's operator everywhere.
//! Invariant: an arrow is a lambda only behind a name, or names in parentheses, that begin an argument. The function is one that
//! takes lambdas, and has one; so `list_transform(j -> 'a', x -> x)` is read.
//! Not here: what these functions do (short_forms.rs); the form with the keyword, which the dialect reads.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::{Tokens, Written, closes, is_token, opening, opens, word_at};

/// Functions that take a lambda behind a list.
const TAKE_LAMBDAS: [&str; 16] = [
    "list_transform",
    "array_transform",
    "list_apply",
    "array_apply",
    "apply",
    "list_filter",
    "array_filter",
    "filter",
    "list_reduce",
    "array_reduce",
    "reduce",
    "any_match",
    "array_any_match",
    "list_any_match",
    "array_first",
    "list_first",
];

/// What takes a lambda of the names of columns, and nothing before it.
const COLUMNS: &str = "COLUMNS";

/// What an arrow is between the brackets that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrows {
    /// JSON's operator.
    Json,
    /// A lambda's, in any argument but the first.
    LambdaBehindComma,
    /// A lambda's.
    Lambda,
}

pub(super) fn rewrite(tokens: Tokens) -> Tokens {
    if !tokens.iter().any(|token| token.token == Token::Arrow) {
        return tokens;
    }
    let mut written: Tokens = Vec::with_capacity(tokens.len());
    let mut open: Vec<Arrows> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.token == Token::Arrow
            && let Some(arrows) = open.last_mut()
            && let Some(names) = parameters(&written, *arrows)
        {
            // One lambda a call.
            *arrows = Arrows::Json;
            let begin = names.start;
            let lambda = Written::at(token.span).sql("LAMBDA");
            let is_list = is_token(&written, begin, &Token::LParen);
            let names: Vec<TokenWithSpan> = match is_list {
                true => written[begin + 1..names.end - 1].to_vec(),
                false => written[names].to_vec(),
            };
            written.truncate(begin);
            written.extend(lambda.copy(&names).sql(":").tokens);
            continue;
        }
        if opens(&token.token) {
            open.push(arrows_within(&tokens, at));
        } else if closes(&token.token) {
            open.pop();
        }
        written.push(token.clone());
    }
    written
}

/// What arrows are within the bracket that opens here.
fn arrows_within(tokens: &[TokenWithSpan], open: usize) -> Arrows {
    let Some(name) = open.checked_sub(1) else {
        return Arrows::Json;
    };
    let is_call = is_token(tokens, open, &Token::LParen);
    let is = |names: &[&str]| {
        word_at(tokens, name).is_some_and(|word| {
            let mut names = names.iter();
            names.any(|one| word.value.eq_ignore_ascii_case(one))
        })
    };
    // `l.filter(x -> x > 1)` has its list before the dot.
    let is_method = name > 0 && is_token(tokens, name - 1, &Token::Period);
    match is_call {
        true if is(&[COLUMNS]) || is_method && is(&TAKE_LAMBDAS) => Arrows::Lambda,
        true if is(&TAKE_LAMBDAS) => Arrows::LambdaBehindComma,
        _ => Arrows::Json,
    }
}

/// The names at the end of `written` that begin an argument which may be a lambda.
fn parameters(written: &[TokenWithSpan], arrows: Arrows) -> Option<std::ops::Range<usize>> {
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
    let begins = match arrows {
        Arrows::Json => false,
        Arrows::LambdaBehindComma => is_token(written, before, &Token::Comma),
        Arrows::Lambda => {
            is_token(written, before, &Token::LParen) || is_token(written, before, &Token::Comma)
        }
    };
    begins.then_some(start..written.len())
}
