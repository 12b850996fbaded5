//! Where in a statement stands what an error names: a call, a literal, an operator, a clause, a type.
//!
//! In: an error without a place, the tokens of the statement. Out: the token that it is about.
//! Invariant: of several that it may be about, none; while a statement is planned, the first of those that the message has in
//! quotes. A message of a run has values of rows in quotes, which may stand in the text by chance. A literal counts there as what
//! a call or a cast takes.
//! Not here: names without a match and syntax (place.rs).

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::Error;

/// When an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// While the statement was planned.
    Planned,
    /// While its rows were computed.
    Run,
}

type TokenSlice<'a> = &'a [TokenWithSpan];

/// The token that an error is about.
pub(super) fn place_of(error: &Error, when: When, tokens: TokenSlice<'_>) -> Option<usize> {
    match error {
        Error::DivideByZero => only(tokens, |at| divides(tokens, at)),
        Error::Overflow { aggregate, message } => overflow(aggregate, message, tokens),
        Error::Invalid { name, message } => {
            let last = name.rsplit(' ').next().unwrap_or(name);
            let literal = quoted(message).find_map(|quoted| literal(quoted, tokens));
            literal
                .or_else(|| parameter(message, tokens))
                .or_else(|| word(last, tokens))
        }
        Error::Io { path, .. } => literal(path, tokens),
        Error::Execution(message)
        | Error::Type { message, .. }
        | Error::Planning { message, .. }
        | Error::Unsupported { message } => {
            let message = message.replace("''", "'");
            match when {
                When::Planned => in_text(&message, tokens),
                When::Run => in_run(&message, tokens),
            }
        }
        _ => None,
    }
}

/// The only token that `is_it`; none of several.
fn only(tokens: TokenSlice<'_>, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    let mut found = (0..tokens.len()).filter(|&at| is_it(at));
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

fn first(tokens: TokenSlice<'_>, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    (0..tokens.len()).find(|&at| is_it(at))
}

/// What a message of planning names: what it has in quotes, a call first, then a text, then a word; else what else it speaks of.
fn in_text(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let call = |quoted| {
        let name = name_of_call(quoted);
        first(tokens, |at| is_call(tokens, at, |call| is_same(call, name)))
    };
    let last = |quoted| {
        let name = name_of_call(quoted);
        word(name.rsplit('.').next().unwrap_or(name), tokens)
    };
    let bare = without_quoted(message);
    quoted(message)
        .find_map(call)
        .or_else(|| quoted(message).find_map(|quoted| literal(quoted, tokens)))
        .or_else(|| quoted(message).find_map(last))
        .or_else(|| spoken_of(message, tokens))
        .or_else(|| operator(&bare, tokens))
        .or_else(|| called_in_words(&bare, tokens))
        .or_else(|| clause(&bare, tokens))
        .or_else(|| cast_to(&bare, tokens))
        .or_else(|| parameter(&bare, tokens))
        .or_else(|| number(&bare, tokens))
}

/// What a message of a run names: a call, and the literal that it takes; else a cast or an operator.
fn in_run(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let bare = without_quoted(message);
    let call = quoted(message).find_map(|quoted| only_call(quoted, tokens));
    let taken = |at: usize| {
        let end = closing(tokens, at + 1);
        let own = |quoted| {
            only(&tokens[..end], |within| {
                within > at && is_literal(tokens, within, quoted)
            })
        };
        quoted(message).find_map(own).unwrap_or(at)
    };
    let cast = |quoted| {
        only(tokens, |at| {
            is_literal(tokens, at, quoted) && is_cast(tokens, at)
        })
    };
    call.or_else(|| called_in_words(&bare, tokens))
        .map(taken)
        .or_else(|| quoted(message).find_map(cast))
        .or_else(|| cast_to(&bare, tokens))
        .or_else(|| spoken_of(&bare, tokens))
        .or_else(|| operator(&bare, tokens))
}

/// An overflow of an aggregate, or of arithmetic, which shows the operation.
fn overflow(aggregate: &str, message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    if aggregate != "arithmetic" {
        return only_call(aggregate, tokens);
    }
    let operation = message.split(';').next().unwrap_or(message);
    operator(operation, tokens).or_else(|| called_in_words(operation, tokens))
}

/// The only call of a function, which a message has with or without its arguments.
fn only_call(quoted: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let name = name_of_call(quoted);
    only(tokens, |at| is_call(tokens, at, |call| is_same(call, name)))
}

/// What has no name in the text.
fn spoken_of(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    type IsIt = fn(TokenSlice<'_>, usize) -> bool;
    const SPOKEN_OF: [(&str, IsIt); 9] = [
        ("'*'", is_star),
        ("subquery has", opens_query),
        ("has no fields", |tokens, at| {
            is(tokens, at, &Token::LBracket)
        }),
        ("x[i]", |tokens, at| is(tokens, at, &Token::LBracket)),
        ("a list has values", opens_list),
        ("argument", is_any_call),
        ("percentile", is_any_call),
        ("the minus", |tokens, at| is(tokens, at, &Token::Minus)),
        ("be compared", compares),
    ];
    let what = message.split(';').next().unwrap_or(message);
    let spoken_of = SPOKEN_OF.iter().filter(|(words, _)| what.contains(words));
    spoken_of
        .flat_map(|(_, is_it)| only(tokens, |at| is_it(tokens, at)))
        .next()
}

/// What a message has in quotes.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('\'').skip(1).step_by(2)
}

/// A message without what it has in quotes; with it, where a quote is none.
fn without_quoted(message: &str) -> String {
    match message.matches('\'').count() % 2 {
        0 => message.split('\'').step_by(2).collect(),
        _ => message.to_owned(),
    }
}

fn name_of_call(quoted: &str) -> &str {
    quoted.split('(').next().unwrap_or(quoted)
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

fn is(tokens: TokenSlice<'_>, at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|found| found.token == *token)
}

fn is_word(tokens: TokenSlice<'_>, at: usize, is_it: impl Fn(&str) -> bool) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(word)) if is_it(&word.value))
}

fn is_call(tokens: TokenSlice<'_>, at: usize, is_it: impl Fn(&str) -> bool) -> bool {
    is(tokens, at + 1, &Token::LParen) && is_word(tokens, at, is_it)
}

/// Words that stand before a parenthesis without being a call.
const NO_CALLS: [&str; 17] = [
    "AND", "AS", "BY", "FILTER", "FROM", "GROUP", "IN", "JOIN", "NOT", "ON", "OR", "OVER",
    "SELECT", "USING", "VALUES", "WHERE", "WHEN",
];

fn is_any_call(tokens: TokenSlice<'_>, at: usize) -> bool {
    let is_name = |word: &str| !NO_CALLS.contains(&word.to_uppercase().as_str());
    is_call(tokens, at, is_name)
}

/// `(*)` of another call than `count`.
fn is_star(tokens: TokenSlice<'_>, at: usize) -> bool {
    is(tokens, at + 1, &Token::LParen)
        && is(tokens, at + 2, &Token::Mul)
        && is(tokens, at + 3, &Token::RParen)
        && is_word(tokens, at, |word| !is_same(word, "count"))
}

fn opens_query(tokens: TokenSlice<'_>, at: usize) -> bool {
    is(tokens, at, &Token::LParen) && is_word(tokens, at + 1, |word| is_same(word, "SELECT"))
}

/// `[` outside any other.
fn opens_list(tokens: TokenSlice<'_>, at: usize) -> bool {
    let count = |of: &Token| {
        tokens[..at]
            .iter()
            .filter(|token| token.token == *of)
            .count()
    };
    is(tokens, at, &Token::LBracket) && count(&Token::LBracket) == count(&Token::RBracket)
}

fn divides(tokens: TokenSlice<'_>, at: usize) -> bool {
    let is_sign = |at| is(tokens, at, &Token::Div) || is(tokens, at, &Token::DuckIntDiv);
    let is_second = at > 0 && is(tokens, at - 1, &Token::Div);
    is_sign(at) && !is_second
        || is(tokens, at, &Token::Mod)
        || is_call(tokens, at, |name| {
            is_same(name, "mod") || is_same(name, "div")
        })
}

fn compares(tokens: TokenSlice<'_>, at: usize) -> bool {
    use Token::{Eq, Gt, GtEq, Lt, LtEq, Neq};
    let words = ["IN", "BETWEEN"];
    matches!(tokens[at].token, Eq | Gt | GtEq | Lt | LtEq | Neq)
        || is_word(tokens, at, |word| {
            words.iter().any(|one| is_same(one, word))
        })
}

/// The first word of this name.
pub(super) fn word(name: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    first(tokens, |at| is_word(tokens, at, |word| is_same(word, name)))
}

fn literal(text: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    first(tokens, |at| is_literal(tokens, at, text))
}

fn is_literal(tokens: TokenSlice<'_>, at: usize, text: &str) -> bool {
    matches!(&tokens[at].token, Token::SingleQuotedString(literal) if literal == text)
}

/// Whether a cast takes the token: `'x'::T`, `CAST('x'`, `DATE 'x'`.
fn is_cast(tokens: TokenSlice<'_>, at: usize) -> bool {
    let casts = ["CAST", "TRY_CAST"];
    let is_named = |before: usize| {
        is_word(tokens, before, |word| {
            casts.iter().any(|one| is_same(one, word))
        })
    };
    let is_opened = at >= 2 && is(tokens, at - 1, &Token::LParen) && is_named(at - 2);
    is_opened || is(tokens, at + 1, &Token::DoubleColon)
}

/// Where the parenthesis at `open` closes.
fn closing(tokens: TokenSlice<'_>, open: usize) -> usize {
    let mut depth = 0_usize;
    let closes = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    };
    let length = tokens[open..].iter().position(closes);
    length.map_or(tokens.len(), |length| open + length)
}

/// The words of a message.
fn words(message: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = message.split(move |letter| !is_part(letter));
    words.filter(|word| word.len() > 1)
}

/// The only call whose function the message names.
fn called_in_words(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let is_named = |call: &str| words(message).any(|word| is_same(word, call));
    only(tokens, |at| {
        is_any_call(tokens, at) && is_word(tokens, at, is_named)
    })
}

/// The clause that a message names.
fn clause(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let clauses = [
        "ORDER BY", "GROUP BY", "LIMIT", "OFFSET", "WHERE", "HAVING", "QUALIFY", "NOT", "ON",
        "VALUES", "OVER",
    ];
    let named = clauses.into_iter().find(|clause| {
        let first = message.find(clause).map(|at| at + clause.len());
        first.is_some_and(|end| !message[end..].starts_with(char::is_alphanumeric))
    })?;
    only(tokens, |at| {
        let mut words = named.split(' ').enumerate();
        words.all(|(nth, word)| is_word(tokens, at + nth, |written| is_same(written, word)))
    })
}

/// The type of a cast that a message names.
fn cast_to(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let is_named = |written: &str| {
        let written = written.to_uppercase();
        let name = SYNONYMS.iter().find(|(synonym, _)| *synonym == written);
        let name = name.map_or(written.as_str(), |(_, name)| name);
        words(message).any(|word| word == name)
    };
    only(tokens, |at| {
        let behind_colons = at > 0 && is(tokens, at - 1, &Token::DoubleColon);
        let behind_as = at > 0 && is_word(tokens, at - 1, |word| is_same(word, "AS"));
        let ends = is(tokens, at + 1, &Token::RParen) || is(tokens, at + 1, &Token::LParen);
        (behind_colons || behind_as && ends) && is_word(tokens, at, is_named)
    })
}

/// Other names of types, and those that messages have.
const SYNONYMS: [(&str, &str); 11] = [
    ("INT", "INTEGER"),
    ("INT4", "INTEGER"),
    ("INT8", "BIGINT"),
    ("LONG", "BIGINT"),
    ("INT2", "SMALLINT"),
    ("TEXT", "VARCHAR"),
    ("STRING", "VARCHAR"),
    ("BOOL", "BOOLEAN"),
    ("FLOAT8", "DOUBLE"),
    ("FLOAT4", "REAL"),
    ("NUMERIC", "DECIMAL"),
];

/// The operator that a message has between two types or values.
fn operator(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    const OPERATORS: [&str; 23] = [
        "+", "-", "*", "/", "%", "||", "=", "<", ">", "<=", ">=", "!=", "AND", "OR", "LIKE",
        "ILIKE", "BETWEEN", "IN", "~", "&", "|", "<<", ">>",
    ];
    let written = OPERATORS
        .iter()
        .find(|operator| message.contains(&format!(" {operator} ")))?;
    only(tokens, |at| {
        let text = tokens[at].token.to_string();
        is_same(&text, written) || (*written == "!=" && text == "<>")
    })
}

/// The parameter that a message names, `$1`, which may be written `?`.
fn parameter(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    let (_, name) = message.split_once('$')?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &name[..end.unwrap_or(name.len())];
    let is_mark = |at: usize, mark: &str| matches!(&tokens[at].token, Token::Placeholder(written) if written == mark);
    let named = first(tokens, |at| is_mark(at, &format!("${name}")));
    let nth = || name.parse::<usize>().ok()?.checked_sub(1);
    let mut marks = (0..tokens.len()).filter(|&at| is_mark(at, "?"));
    named.or_else(|| nth().and_then(|nth| marks.nth(nth)))
}

/// The number that a message says is wrong.
fn number(message: &str, tokens: TokenSlice<'_>) -> Option<usize> {
    const BEFORE: [&str; 6] = ["not", "of", "no", "month", "day", "year"];
    let words: Vec<&str> = message
        .split([' ', ';', ',', ':'])
        .filter(|word| !word.is_empty())
        .collect();
    let wrong = words.windows(2).filter(|two| BEFORE.contains(&two[0]));
    let wrong: Vec<&str> = wrong.map(|two| two[1]).collect();
    only(
        tokens,
        |at| matches!(&tokens[at].token, Token::Number(digits, _) if wrong.contains(&digits.as_str())),
    )
}
