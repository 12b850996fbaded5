//! Tokens that the parser does not take, as tokens that it does.
//!
//! In: the text of a statement. Out: its tokens, each at its place in the text. Numbers of base 10 without underscores,
//! `STRUCT(a INT)` as `STRUCT<a INT>`, `GROUP BY DISTINCT` with a marker that clauses/ reads. EXCLUDE of a window with a marker
//! among its partitions, samples in one form behind the table they are of. `SELECT *` for a FROM that comes first and has a
//! WHERE.
//! Invariant: a text without these forms keeps its tokens.
//! Not here: samples (token_forms/samples.rs); conveniences (tokens.rs).

mod samples;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{
    Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError,
};

use crate::error::{Error, Result};
use crate::functions::Exclusion;
use crate::sql::dialect::DIALECT;
use crate::sql::fixes::exclusions;
use crate::sql::tokens::nesting;
use crate::sql::tokens::word_names::name_words;
pub(crate) use samples::RESERVOIR;
use samples::SampleClause;

/// The first key of `GROUP BY DISTINCT …`.
pub(crate) const GROUP_DISTINCT: &str = "group by distinct";

/// `@x`, the absolute value, as an operator before its operand; the tokenizer takes `@x` and `@(x` for words.
fn absolute(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let operand = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => {
            let operand = word.value.strip_prefix('@')?;
            (!operand.starts_with('@')).then(|| operand.to_owned())
        }
        _ => None,
    };
    let mut split = Vec::with_capacity(tokens.len());
    for token in tokens {
        let Some(operand) = operand(&token) else {
            split.push(token);
            continue;
        };
        split.push(TokenWithSpan::new(Token::AtSign, token.span));
        let operand = Tokenizer::new(&DIALECT, &operand).tokenize();
        let operand = operand.map_err(tokenizer_error)?.into_iter();
        split.extend(operand.map(|part| TokenWithSpan::new(part, token.span)));
    }
    Ok(split)
}

/// The tokens of a statement as the parser takes them.
pub(crate) fn tokens_of(text: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let tokens = tokens.map_err(tokenizer_error)?;
    nesting::check(&tokens)?;
    let mut tokens = absolute(tokens)?;
    name_words(&mut tokens);
    let mut writer = TokenWriter {
        tokens: &tokens,
        out: Vec::with_capacity(tokens.len()),
        scopes: vec![Parenthesised::new(Token::RParen, 0)],
    };
    let mut at = 0;
    while at < tokens.len() {
        at = writer.take(at)?;
    }
    Ok(writer.out)
}

/// The tokenizer's error with its place.
pub(crate) fn tokenizer_error(error: TokenizerError) -> Error {
    syntax(error.message, error.location)
}

fn syntax(message: impl Into<String>, at: Location) -> Error {
    Error::Syntax {
        message: message.into(),
        line: at.line.max(1),
        column: at.column.max(1),
    }
}

fn stray_underscore(digits: &str, at: Location) -> Error {
    let message = format!("an underscore in a number stands between two digits, after {digits}");
    syntax(message, at)
}

/// `1_000` as 1000; underscores stand between digits.
fn plain(token: &TokenWithSpan, digits: &str) -> Result<TokenWithSpan> {
    if !digits.contains('_') {
        return Ok(token.clone());
    }
    if digits.ends_with('_') || digits.contains("__") || digits.contains("_.") {
        return Err(stray_underscore(digits, token.span.start));
    }
    let plain = Token::Number(digits.replace('_', ""), false);
    Ok(TokenWithSpan::new(plain, token.span))
}

/// Whether `0x1F` was written, and not `X'1F'`.
fn is_hex_number(token: &TokenWithSpan, digits: &str) -> bool {
    let columns = token.span.end.column - token.span.start.column;
    columns == digits.len() as u64 + 2
}

/// `0b101` and `0o17`; any other word needs a space before it, as in PostgreSQL.
fn based(token: &TokenWithSpan, digits: &str, word: &str) -> Result<TokenWithSpan> {
    let (base, rest) = word.split_at_checked(1).unwrap_or((word, ""));
    match (digits, base) {
        ("0", "b" | "B") => whole(token, rest, 2),
        ("0", "o" | "O") => whole(token, rest, 8),
        _ => {
            let message =
                format!("{digits}{word} is neither a number nor a name; write {digits} {word}");
            Err(syntax(message, token.span.start))
        }
    }
}

/// A whole number written in another base.
fn whole(token: &TokenWithSpan, digits: &str, base: u32) -> Result<TokenWithSpan> {
    let Ok(value) = u128::from_str_radix(digits, base) else {
        let message = format!("{digits} is no number of base {base} within 128 bits");
        return Err(syntax(message, token.span.start));
    };
    let number = Token::Number(value.to_string(), false);
    Ok(TokenWithSpan::new(number, token.span))
}

/// What lies between two parentheses.
struct Parenthesised {
    /// What closes it: a STRUCT type has angle brackets.
    closing: Token,
    /// Where it begins among the tokens that are written.
    start: usize,
    /// The keyword that it begins with.
    first: Option<Keyword>,
    /// Whether nothing was written since it began, or since UNION.
    fresh: bool,
    /// Whether a SELECT waits for its FROM.
    select: bool,
    from: Option<FromClause>,
    last: Option<Keyword>,
}

/// The FROM clause of a scope's last query.
struct FromClause {
    /// Whether it came before its SELECT.
    first: bool,
    /// Whether it has more than one table.
    joined: bool,
    /// Where it ends, among the tokens that are written.
    end: Option<usize>,
}

impl Parenthesised {
    fn new(closing: Token, start: usize) -> Parenthesised {
        Parenthesised {
            closing,
            start,
            first: None,
            fresh: true,
            select: false,
            from: None,
            last: None,
        }
    }

    /// Whether a FROM here begins a query.
    fn begins_query(&self) -> bool {
        use Keyword::{CREATE, DELETE, DESC, DESCRIBE, EXPLAIN, INSERT, WITH};
        let with_query = [WITH, CREATE, EXPLAIN, DESCRIBE, DESC, INSERT];
        let has_query = self.first.is_some_and(|first| with_query.contains(&first));
        self.fresh || has_query && self.last != Some(DELETE)
    }
}

struct TokenWriter<'a> {
    tokens: &'a [TokenWithSpan],
    out: Vec<TokenWithSpan>,
    scopes: Vec<Parenthesised>,
}

impl TokenWriter<'_> {
    /// Writes the token at `at` and what belongs to it; the place of the next.
    fn take(&mut self, at: usize) -> Result<usize> {
        let token = &self.tokens[at];
        match &token.token {
            Token::Whitespace(_) => self.out.push(token.clone()),
            Token::Number(digits, _) => return self.number(at, digits),
            Token::HexStringLiteral(digits) if is_hex_number(token, digits) => {
                self.note(None);
                self.out.push(whole(token, digits, 16)?);
            }
            Token::Word(word) if word.quote_style.is_none() => return self.keyword(at),
            Token::LParen => {
                self.note(None);
                self.out.push(token.clone());
                self.scopes
                    .push(Parenthesised::new(Token::RParen, self.out.len()));
            }
            Token::RParen => self.close(token),
            Token::SemiColon => {
                self.end_from();
                self.out.push(token.clone());
                self.scopes = vec![Parenthesised::new(Token::RParen, self.out.len())];
            }
            Token::Comma => {
                if let Some(from) = self.scope().from.as_mut() {
                    from.joined |= from.end.is_none();
                }
                self.note(None);
                self.out.push(token.clone());
            }
            _ => {
                self.note(None);
                self.out.push(token.clone());
            }
        }
        Ok(at + 1)
    }

    fn scope(&mut self) -> &mut Parenthesised {
        if self.scopes.is_empty() {
            self.scopes
                .push(Parenthesised::new(Token::RParen, self.out.len()));
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The scope has one more token.
    fn note(&mut self, keyword: Option<Keyword>) {
        let scope = self.scope();
        if scope.fresh && scope.first.is_none() {
            scope.first = keyword;
        }
        scope.fresh = false;
        scope.last = keyword;
    }

    fn close(&mut self, token: &TokenWithSpan) {
        self.end_from();
        let closing = match self.scopes.len() {
            0 | 1 => Token::RParen,
            _ => self
                .scopes
                .pop()
                .map_or(Token::RParen, |scope| scope.closing),
        };
        self.out.push(TokenWithSpan::new(closing, token.span));
    }

    /// `1_000` and `0b101`; the place behind.
    fn number(&mut self, at: usize, digits: &str) -> Result<usize> {
        self.note(None);
        let token = &self.tokens[at];
        let glued = match self.tokens.get(at + 1).map(|next| &next.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.value.as_str()),
            _ => None,
        };
        match glued {
            Some(word) if word.starts_with('_') => Err(stray_underscore(digits, token.span.end)),
            Some(word) => {
                self.out.push(based(token, digits, word)?);
                Ok(at + 2)
            }
            None => {
                self.out.push(plain(token, digits)?);
                Ok(at + 1)
            }
        }
    }

    fn keyword(&mut self, at: usize) -> Result<usize> {
        use Keyword::*;
        let token = &self.tokens[at];
        if self.is_method(at) {
            self.note(None);
            self.out.push(plain_name(token));
            return Ok(at + 1);
        }
        let keyword = keyword_of(token).unwrap_or(NoKeyword);
        match keyword {
            SELECT => {
                self.end_from_before_select();
                let scope = self.scope();
                scope.select = scope.from.is_none();
            }
            FROM if self.scope().last != Some(DISTINCT) => self.from(),
            INSERT | UPDATE | DELETE | MERGE if self.is_behind_with() => {
                self.scope().first = Some(keyword);
            }
            JOIN | ARRAY => {
                if let Some(from) = self.scope().from.as_mut() {
                    from.joined |= from.end.is_none();
                }
            }
            WHERE | GROUP | HAVING | WINDOW | QUALIFY | PREWHERE => self.select_all(token.span),
            ORDER | LIMIT | OFFSET | FETCH | CONNECT | SETTINGS | FORMAT => self.end_from(),
            UNION | EXCEPT | INTERSECT if !self.scope().select => {
                self.end_from();
                let scope = self.scope();
                (scope.from, scope.fresh, scope.last) = (None, true, Some(keyword));
                self.out.push(token.clone());
                return Ok(at + 1);
            }
            ALL | DISTINCT if self.scope().fresh && self.scope().last.is_some() => {
                self.out.push(token.clone());
                return Ok(at + 1);
            }
            TABLESAMPLE | SAMPLE if self.in_from() => {
                if let Some((sample, next)) = SampleClause::parse(self.tokens, at) {
                    self.note(Some(keyword));
                    self.out.extend(sample.tokens());
                    return Ok(next);
                }
            }
            USING if self.word_after(at) == Some(SAMPLE) => return self.using_sample(at),
            EXCLUDE if self.ends_frame() => {
                return self.exclusion(at);
            }
            NoKeyword if self.ends_interval() && unit_of(token).is_some() => {
                self.note(None);
                self.out.extend(unit_of(token));
                return Ok(at + 1);
            }
            STRUCT if samples::opens_struct_type(self.tokens, at) => {
                return Ok(self.struct_type(at));
            }
            _ => {}
        }
        self.note(Some(keyword));
        self.out.push(token.clone());
        match keyword {
            BY => Ok(self.group_by_distinct(at).unwrap_or(at + 1)),
            _ => Ok(at + 1),
        }
    }

    /// Whether the word at `at` is the name of a call behind a dot, as in `'ab'.substring(1)`.
    fn is_method(&self, at: usize) -> bool {
        let is_behind_dot = at > 0 && self.tokens[at - 1].token == Token::Period;
        let next = self.tokens.get(at + 1).map(|token| &token.token);
        is_behind_dot && next == Some(&Token::LParen)
    }

    /// Whether INTERVAL and its value were written last, with or without parentheses.
    fn ends_interval(&self) -> bool {
        let mut depth = 0_usize;
        let is_code = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let mut codes = self.out.iter().rev().filter(is_code);
        let ends_value = codes.find(|token| {
            match token.token {
                Token::RParen => depth += 1,
                Token::LParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        ends_value.is_some() && codes.next().and_then(keyword_of) == Some(Keyword::INTERVAL)
    }

    /// Whether a statement may begin here that has its common tables before it.
    fn is_behind_with(&mut self) -> bool {
        let last = before(&self.out, self.out.len());
        let is_closed = last.is_some_and(|last| self.out[last].token == Token::RParen);
        let scope = self.scope();
        let is_open = !scope.select && scope.from.is_none();
        is_closed && is_open && scope.first == Some(Keyword::WITH)
    }

    fn in_from(&mut self) -> bool {
        let from = self.scope().from.as_ref();
        from.is_some_and(|from| from.end.is_none())
    }

    fn from(&mut self) {
        let scope = self.scope();
        let first = !scope.select && scope.begins_query();
        if scope.select || first {
            scope.select = false;
            scope.from = Some(FromClause {
                first,
                joined: false,
                end: None,
            });
        }
    }

    fn end_from(&mut self) {
        let end = self.out.len();
        if let Some(from) = self.scope().from.as_mut() {
            from.end.get_or_insert(end);
        }
    }

    fn end_from_before_select(&mut self) {
        self.end_from();
        if let Some(from) = self.scope().from.as_mut() {
            from.first = false;
        }
    }

    /// `FROM t WHERE …` reads all columns.
    fn select_all(&mut self, span: Span) {
        self.end_from();
        let Some(from) = self.scope().from.as_mut() else {
            return;
        };
        if std::mem::take(&mut from.first) {
            let words = [Token::make_keyword("SELECT"), Token::Mul];
            self.out.extend(at_span(words, span));
        }
    }

    /// The keyword after a token.
    fn word_after(&self, at: usize) -> Option<Keyword> {
        keyword_of(self.tokens.get(after(self.tokens, at))?)
    }

    /// Whether the frame of a window may end here: OVER, or AS in WINDOW, has the parentheses.
    fn ends_frame(&mut self) -> bool {
        use Keyword::{AS, FOLLOWING, OVER, PRECEDING, ROW};
        let Parenthesised { start, last, .. } = *self.scope();
        let is_bound = matches!(last, Some(ROW | PRECEDING | FOLLOWING));
        let opening = start.checked_sub(1);
        let before = opening.and_then(|opening| before(&self.out, opening));
        let keyword = before.and_then(|before| keyword_of(&self.out[before]));
        is_bound && matches!(keyword, Some(OVER | AS))
    }

    /// EXCLUDE behind a window's frame; NO OTHERS leaves nothing out.
    fn exclusion(&mut self, at: usize) -> Result<usize> {
        let word = |at: usize| match self.tokens.get(at).map(|token| &token.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_uppercase(),
            _ => String::new(),
        };
        let first = after(self.tokens, at);
        let second = after(self.tokens, first);
        let (exclusion, last) = match (word(first).as_str(), word(second).as_str()) {
            ("NO", "OTHERS") => (None, second),
            ("CURRENT", "ROW") => (Some(Exclusion::CurrentRow), second),
            ("GROUP", _) => (Some(Exclusion::Group), first),
            ("TIES", _) => (Some(Exclusion::Ties), first),
            _ => {
                let message = "EXCLUDE takes CURRENT ROW, GROUP, TIES or NO OTHERS";
                return Err(syntax(message, self.tokens[at].span.start));
            }
        };
        self.note(Some(Keyword::EXCLUDE));
        if let Some(exclusion) = exclusion {
            self.mark_window(exclusion, self.tokens[at].span);
        }
        Ok(last + 1)
    }

    /// Puts the mark of EXCLUDE before the keys of PARTITION BY, behind the name of another window.
    fn mark_window(&mut self, exclusion: Exclusion, span: Span) {
        let start = self.scope().start;
        let first = after(&self.out, start - 1);
        let by = after(&self.out, first);
        let keyword = |at: usize| self.out.get(at).and_then(keyword_of);
        let mut mark = exclusions::mark(exclusion).to_vec();
        let place = match (keyword(first), keyword(by)) {
            (Some(Keyword::PARTITION), Some(Keyword::BY)) => {
                mark.push(Token::Comma);
                by + 1
            }
            (first_word, _) => {
                let words = ["PARTITION", "BY"];
                mark.splice(0..0, words.map(Token::make_keyword));
                match first_word {
                    Some(Keyword::ORDER | Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS) => {
                        first
                    }
                    _ => first + 1,
                }
            }
        };
        let mark = mark.into_iter();
        let mark = mark.map(|token| TokenWithSpan::new(token, span));
        self.out.splice(place..place, mark);
    }

    /// `USING SAMPLE 10%` after the other clauses of a query is a sample of what its FROM yields.
    fn using_sample(&mut self, at: usize) -> Result<usize> {
        let start = self.tokens[at].span.start;
        let Some((sample, next)) = SampleClause::parse(self.tokens, after(self.tokens, at)) else {
            let message = "USING SAMPLE takes a number of rows or a percentage: USING SAMPLE 1000 ROWS, \
                           USING SAMPLE 10%, USING SAMPLE 10% (bernoulli, 42)";
            return Err(syntax(message, start));
        };
        self.end_from();
        match self.scope().from.as_ref() {
            Some(FromClause {
                joined: false,
                end: Some(end),
                ..
            }) => {
                let end = *end;
                self.out.splice(end..end, sample.tokens());
                Ok(next)
            }
            Some(_) => Err(Error::UnsupportedClause {
                message: "USING SAMPLE of several tables; write FROM (SELECT … FROM a JOIN b …) USING SAMPLE …"
                    .to_string(),
                position: Some(crate::error::Position {
                    line: start.line,
                    column: start.column,
                }),
            }),
            None => Err(syntax("USING SAMPLE needs a FROM before it", start)),
        }
    }

    /// `STRUCT(a INT)` is `STRUCT<a INT>`.
    fn struct_type(&mut self, at: usize) -> usize {
        self.note(Some(Keyword::STRUCT));
        self.out.push(self.tokens[at].clone());
        let open = after(self.tokens, at);
        if let Some(token) = self.tokens.get(open) {
            self.out.push(TokenWithSpan::new(Token::Lt, token.span));
        }
        self.scopes
            .push(Parenthesised::new(Token::Gt, self.out.len()));
        open + 1
    }

    /// `GROUP BY DISTINCT a, b` is `GROUP BY "group by distinct", a, b`.
    fn group_by_distinct(&mut self, at: usize) -> Option<usize> {
        let next = after(self.tokens, at);
        let token = self.tokens.get(next)?;
        let is_group = before(self.tokens, at)
            .is_some_and(|before| keyword_of(&self.tokens[before]) == Some(Keyword::GROUP));
        if !is_group || keyword_of(token) != Some(Keyword::DISTINCT) {
            return None;
        }
        let marker = [Token::make_word(GROUP_DISTINCT, Some('"')), Token::Comma];
        self.out.extend(at_span(marker, token.span));
        Some(next + 1)
    }
}

/// The word as a name, whatever keyword it is elsewhere.
fn plain_name(token: &TokenWithSpan) -> TokenWithSpan {
    let mut token = token.clone();
    if let Token::Word(word) = &mut token.token {
        word.keyword = Keyword::NoKeyword;
    }
    token
}

/// A unit of time in the plural that the parser takes for an alias, in the singular.
fn unit_of(token: &TokenWithSpan) -> Option<TokenWithSpan> {
    const UNITS: [(&str, &str); 4] = [
        ("quarters", "QUARTER"),
        ("decades", "DECADE"),
        ("centuries", "CENTURY"),
        ("millennia", "MILLENNIUM"),
    ];
    let Token::Word(word) = &token.token else {
        return None;
    };
    let mut units = UNITS.iter();
    let (_, unit) = units.find(|(plural, _)| word.value.eq_ignore_ascii_case(plural))?;
    Some(TokenWithSpan::new(Token::make_keyword(unit), token.span))
}

/// The keyword of a word without quotes.
fn keyword_of(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The place of the next token that is no space.
fn after(tokens: &[TokenWithSpan], at: usize) -> usize {
    let rest = tokens.iter().enumerate().skip(at + 1);
    let mut words = rest.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    words.next().map_or(tokens.len(), |(place, _)| place)
}

/// The place of the token before that is no space.
fn before(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    (0..at)
        .rev()
        .find(|&place| !matches!(tokens[place].token, Token::Whitespace(_)))
}

fn at_span<const N: usize>(tokens: [Token; N], span: Span) -> impl Iterator<Item = TokenWithSpan> {
    tokens
        .into_iter()
        .map(move |token| TokenWithSpan::new(token, span))
}
