//! Tokens: forms of SQL that the parser does not take become forms that it takes, before it runs.
//!
//! In: the tokens of a statement. Out: tokens that the parser takes. What it has no form for is a call in double quotes,
//! such as `"pivot of"(…)`, that a file of sql/expand turns into a query.
//! Invariant: tokens that the user wrote keep their places, so that errors point at them; a statement without such a form
//! is not touched.
//! Not here: what the calls mean (pivot.rs, summarize.rs, …), forms within expressions that the dialect reads (dialect.rs).

mod word_forms;
mod prefix_alias;
mod lambdas;
pub(in crate::sql) mod change_forms;
pub(in crate::sql) mod table_forms;
pub(in crate::sql) mod query_forms;
mod word_names;
pub(in crate::sql) mod nesting;
pub(in crate::sql) mod token_forms;

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

use crate::error::{Error, Result};

/// The tokens of a statement.
pub(crate) type Tokens = Vec<TokenWithSpan>;

/// Words that begin a form; other forms have a colon, an arrow or a per cent sign.
const WORDS: [&str; 22] = [
    "PIVOT",
    "PIVOT_WIDER",
    "PIVOT_LONGER",
    "UNPIVOT",
    "SUMMARIZE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "PRAGMA",
    "ASOF",
    "POSITIONAL",
    "GLOBAL",
    "PERCENT",
    "NAME",
    "POSITION",
    "COLUMNS",
    "LIKE",
    "GLOB",
    "SIMILAR",
    "FUNCTION",
    "FILTER",
    "ILIKE",
];

/// The tokens in forms that the parser takes.
pub(crate) fn rewrite(tokens: Tokens) -> Result<Tokens> {
    let is_form = tokens.iter().any(|token| may_be_form(&token.token));
    let is_form = is_form || query_forms::has_from_first(&tokens);
    if !is_form && !change_forms::has_form(&tokens) {
        return Ok(tokens);
    }
    let is_code = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Tokens = tokens.into_iter().filter(is_code).collect();
    let tokens = change_forms::rewrite(tokens);
    let tokens = lambdas::rewrite(prefix_alias::rewrite(word_forms::rewrite(tokens)));
    query_forms::rewrite(table_forms::rewrite(tokens)?)
}

fn may_be_form(token: &Token) -> bool {
    match token {
        Token::Colon | Token::Arrow | Token::Mod => true,
        Token::Word(word) if word.quote_style.is_none() => WORDS
            .iter()
            .chain(&word_forms::WORDS)
            .any(|form| word.value.eq_ignore_ascii_case(form)),
        _ => false,
    }
}

/// The word at this place, whether it is quoted or not.
pub(crate) fn word_at(tokens: &[TokenWithSpan], at: usize) -> Option<&Word> {
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => Some(word),
        _ => None,
    }
}

/// Whether one of these words stands at this place, unquoted.
pub(crate) fn is_one_of(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    word_at(tokens, at).is_some_and(|word| {
        word.quote_style.is_none() && words.iter().any(|one| word.value.eq_ignore_ascii_case(one))
    })
}

/// Whether this token stands at this place.
pub(crate) fn is_token(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|found| found.token == *token)
}

pub(crate) fn opens(token: &Token) -> bool {
    matches!(token, Token::LParen | Token::LBracket | Token::LBrace)
}

pub(crate) fn closes(token: &Token) -> bool {
    matches!(token, Token::RParen | Token::RBracket | Token::RBrace)
}

/// The first place from `from` on, outside brackets, of one of these words or commas; else where the bracket around or
/// the statement ends.
pub(crate) fn next_outside(
    tokens: &[TokenWithSpan],
    from: usize,
    is_end: impl Fn(usize) -> bool,
) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        if depth == 0 && (closes(&token.token) || token.token == Token::SemiColon || is_end(at)) {
            return at;
        }
        match &token.token {
            token if opens(token) => depth += 1,
            token if closes(token) => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Where the bracket that opens at `open` closes.
pub(crate) fn closing(tokens: &[TokenWithSpan], open: usize) -> usize {
    next_outside(tokens, open + 1, |_| false)
}

/// Where the bracket that closes at `close` opens.
pub(crate) fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        let token = &tokens.get(at)?.token;
        if closes(token) {
            depth += 1;
        } else if opens(token) {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// New tokens, all at the place of what they stand for.
#[derive(Debug)]
pub(crate) struct Written {
    pub tokens: Tokens,
    span: Span,
}

impl Written {
    pub fn at(span: Span) -> Written {
        Written {
            tokens: Vec::new(),
            span,
        }
    }

    /// Words and signs, with a space between any two.
    pub fn sql(mut self, text: &str) -> Written {
        for part in text.split(' ').filter(|part| !part.is_empty()) {
            let token = match part {
                "(" => Token::LParen,
                ")" => Token::RParen,
                "," => Token::Comma,
                "*" => Token::Mul,
                ":" => Token::Colon,
                "." => Token::Period,
                "=" => Token::Eq,
                number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                    Token::Number(number.to_owned(), false)
                }
                word => Token::make_keyword(word),
            };
            self.tokens.push(TokenWithSpan::new(token, self.span));
        }
        self
    }

    /// A name in double quotes.
    pub fn name(mut self, name: &str) -> Written {
        let token = Token::make_word(name, Some('"'));
        self.tokens.push(TokenWithSpan::new(token, self.span));
        self
    }

    /// A string in single quotes.
    pub fn string(mut self, text: &str) -> Written {
        let token = Token::SingleQuotedString(text.to_owned());
        self.tokens.push(TokenWithSpan::new(token, self.span));
        self
    }

    /// Tokens of the user's.
    pub fn copy(mut self, tokens: &[TokenWithSpan]) -> Written {
        self.tokens.extend_from_slice(tokens);
        self
    }
}

/// An error at a token.
pub(crate) fn error_at(token: &TokenWithSpan, message: &str) -> Error {
    Error::Syntax {
        message: message.to_string(),
        line: token.span.start.line.max(1),
        column: token.span.start.column.max(1),
    }
}
