//! Samples as people write them, in the one form that the parser takes; the types of structs.
//!
//! In: tokens from TABLESAMPLE or SAMPLE on: `10%`, `10 PERCENT`, `1000 ROWS`, `reservoir(1000 ROWS)`,
//! `10% (bernoulli, 42)`, `BERNOULLI(10) REPEATABLE (42)`, `SAMPLE 0.1`.
//! Out: `TABLESAMPLE [BERNOULLI | SYSTEM] (n PERCENT | ROWS) [REPEATABLE (seed)]`; a reservoir of a percentage has
//! `reservoir(n)` for n.
//! Invariant: what is written in another form stays as it is, for the parser to judge.
//! Not here: what a sample is (sql/fixes/samples.rs).

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::token_forms::{after, keyword_of};

/// The function that stands for a percentage of which a reservoir is exactly as large.
pub(crate) const RESERVOIR: &str = "reservoir";

/// A sample that was read from tokens.
pub(super) struct SampleClause {
    method: Option<Method>,
    quantity: TokenWithSpan,
    unit: SampleUnit,
    seed: Option<TokenWithSpan>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Bernoulli,
    System,
    Reservoir,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SampleUnit {
    Rows,
    Percent,
}

impl SampleClause {
    /// The sample whose keyword stands at `at`, and the place after it.
    pub(super) fn parse(tokens: &[TokenWithSpan], at: usize) -> Option<(SampleClause, usize)> {
        let is_sample = keyword_of(tokens.get(at)?) == Some(Keyword::SAMPLE);
        let mut reader = TokenReader {
            tokens,
            at: after(tokens, at),
        };
        let mut method = reader.method();
        let parenthesized = reader.skip(&Token::LParen);
        if method.is_some() && !parenthesized {
            return None;
        }
        let quantity = reader.number()?;
        let unit = reader.unit();
        if parenthesized && !reader.skip(&Token::RParen) {
            return None;
        }
        let mut seed = None;
        if !parenthesized && reader.skip(&Token::LParen) {
            method = Some(reader.method()?);
            if reader.skip(&Token::Comma) {
                seed = Some(reader.number()?);
            }
            if !reader.skip(&Token::RParen) {
                return None;
            }
        }
        if reader.skip_word(Keyword::REPEATABLE) || reader.skip_word(Keyword::SEED) {
            if !reader.skip(&Token::LParen) {
                return None;
            }
            seed = Some(reader.number()?);
            if !reader.skip(&Token::RParen) {
                return None;
            }
        }
        let (quantity, unit) = match unit {
            Some(unit) => (quantity, unit),
            None if is_sample && !parenthesized => fraction(quantity),
            // PostgreSQL's percentages, DuckDB's rows; a number alone in parentheses may be either.
            None => match (method, parenthesized) {
                (Some(Method::Bernoulli | Method::System), _) => (quantity, SampleUnit::Percent),
                (Some(Method::Reservoir), _) | (None, false) => (quantity, SampleUnit::Rows),
                (None, true) => return None,
            },
        };
        let sample = SampleClause {
            method,
            quantity,
            unit,
            seed,
        };
        Some((sample, reader.at))
    }

    /// The sample in the form that the parser takes.
    pub(super) fn tokens(self) -> Vec<TokenWithSpan> {
        let span = self.quantity.span;
        let at = |token| TokenWithSpan::new(token, span);
        let word = |text| at(Token::make_keyword(text));
        let mut tokens = vec![at(Token::Whitespace(
            datafusion::sql::sqlparser::tokenizer::Whitespace::Space,
        ))];
        tokens.push(word("TABLESAMPLE"));
        match self.method {
            Some(Method::Bernoulli) => tokens.push(word("BERNOULLI")),
            Some(Method::System) => tokens.push(word("SYSTEM")),
            Some(Method::Reservoir) | None => {}
        }
        tokens.push(at(Token::LParen));
        let exact = self.method == Some(Method::Reservoir) && self.unit == SampleUnit::Percent;
        match exact {
            true => tokens.extend([
                at(Token::make_word(RESERVOIR, Some('"'))),
                at(Token::LParen),
                self.quantity,
                at(Token::RParen),
            ]),
            false => tokens.push(self.quantity),
        }
        tokens.push(match self.unit {
            SampleUnit::Rows => word("ROWS"),
            SampleUnit::Percent => word("PERCENT"),
        });
        tokens.push(at(Token::RParen));
        if let Some(seed) = self.seed {
            tokens.extend([
                word("REPEATABLE"),
                at(Token::LParen),
                seed,
                at(Token::RParen),
            ]);
        }
        tokens
    }
}

/// ClickHouse's `SAMPLE 0.1` is a tenth; `SAMPLE 1000` is that many rows.
fn fraction(quantity: TokenWithSpan) -> (TokenWithSpan, SampleUnit) {
    let value = match &quantity.token {
        Token::Number(digits, _) => digits.parse::<f64>().ok(),
        _ => None,
    };
    match value {
        Some(value) if value > 0.0 && value < 1.0 => {
            let percent = Token::Number(format!("{}", value * 100.0), false);
            (
                TokenWithSpan::new(percent, quantity.span),
                SampleUnit::Percent,
            )
        }
        _ => (quantity, SampleUnit::Rows),
    }
}

struct TokenReader<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
}

impl TokenReader<'_> {
    fn next(&mut self) {
        self.at = after(self.tokens, self.at);
    }

    fn peek(&self) -> Option<&TokenWithSpan> {
        self.tokens.get(self.at)
    }

    fn skip(&mut self, token: &Token) -> bool {
        let found = self.peek().is_some_and(|next| next.token == *token);
        if found {
            self.next();
        }
        found
    }

    fn skip_word(&mut self, keyword: Keyword) -> bool {
        let found = self.peek().and_then(keyword_of) == Some(keyword);
        if found {
            self.next();
        }
        found
    }

    fn method(&mut self) -> Option<Method> {
        let Token::Word(word) = &self.peek()?.token else {
            return None;
        };
        let method = match word.value.to_lowercase().as_str() {
            "bernoulli" => Method::Bernoulli,
            "system" => Method::System,
            "reservoir" => Method::Reservoir,
            _ => return None,
        };
        self.next();
        Some(method)
    }

    fn number(&mut self) -> Option<TokenWithSpan> {
        let token = self.peek()?.clone();
        let Token::Number(digits, _) = &token.token else {
            return None;
        };
        let plain = Token::Number(digits.replace('_', ""), false);
        self.next();
        Some(TokenWithSpan::new(plain, token.span))
    }

    fn unit(&mut self) -> Option<SampleUnit> {
        if self.skip(&Token::Mod) || self.skip_word(Keyword::PERCENT) {
            Some(SampleUnit::Percent)
        } else if self.skip_word(Keyword::ROWS) || self.skip_word(Keyword::ROW) {
            Some(SampleUnit::Rows)
        } else {
            None
        }
    }
}

/// Whether `STRUCT(` at `at` begins a type, `STRUCT(name type, …)`, and no value, `struct(a, b AS c)`.
pub(super) fn opens_struct_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    use Keyword::{
        AND, AS, AT, BETWEEN, COLLATE, DIV, ESCAPE, FILTER, ILIKE, IN, IS, LIKE, NOT, OPERATOR, OR,
        OVER, REGEXP, RLIKE, SIMILAR, XOR,
    };
    let operators = [
        AND, AS, AT, BETWEEN, COLLATE, DIV, ESCAPE, FILTER, ILIKE, IN, IS, LIKE, NOT, OPERATOR, OR,
        OVER, REGEXP, RLIKE, SIMILAR, XOR,
    ];
    let open = after(tokens, at);
    let name = after(tokens, open);
    let kind = after(tokens, name);
    let is_word = |at: usize| {
        matches!(
            tokens.get(at).map(|token| &token.token),
            Some(Token::Word(_))
        )
    };
    let opens = tokens
        .get(open)
        .is_some_and(|token| token.token == Token::LParen);
    let type_follows = tokens
        .get(kind)
        .and_then(keyword_of)
        .is_none_or(|keyword| !operators.contains(&keyword));
    opens && is_word(name) && is_word(kind) && type_follows
}
