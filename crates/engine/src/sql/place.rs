//! Where in a statement an error is, and what was meant, as far as the text itself tells.
//!
//! In: an error of a statement and its text. Out: the same error with a place and a hint.
//! Invariant: a place that DataFusion knows stays; a hint is only given where it names what stands in the text.
//! Not here: names that the session knows (names.rs); which token a message is about (named_places.rs).

mod names;
mod named_places;

use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position};
use crate::scan::format::is_extension;
use crate::sql::ast::LINES_MAX;
use crate::sql::dialect::DIALECT;
use crate::sql::place::named_places::{When, place_of, word};
use crate::sql::place::names::{with_names, with_written_names};

/// Words that begin a clause or join its parts.
const KEYWORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "GROUP BY",
    "ORDER",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "OFFSET",
    "BY",
    "JOIN",
    "LEFT",
    "RIGHT",
    "INNER",
    "OUTER",
    "CROSS",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "DISTINCT",
    "BETWEEN",
    "CREATE",
    "TABLE",
    "INSERT",
    "INTO",
    "VALUES",
    "DELETE",
    "UPDATE",
    "WITH",
    "QUALIFY",
    "WINDOW",
    "PARTITION",
    "OVER",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "EXPLAIN",
    "DESCRIBE",
    "COPY",
    "USING",
    "LIKE",
    "FILTER",
    "NULL",
    "NULLS",
    "AND",
    "NOT",
    "AS",
    "ON",
];

/// The error of planning a statement as it is told: with names that may be meant, those that are written, and its place.
pub(crate) fn told(error: Error, context: &SessionContext, tables: &[String], text: &str) -> Error {
    let error = with_names(error, context, tables);
    let state = context.state_ref();
    let error = with_written_names(error, &*state.read(), text);
    placed(error, When::Planned, text)
}

/// The error of a run as it is told.
pub(crate) fn told_of_run(error: Error, functions: &dyn FunctionRegistry, text: &str) -> Error {
    let error = with_written_names(error, functions, text);
    placed(error, When::Run, text)
}

/// The error with what the text of the statement says of it.
fn placed(error: Error, when: When, text: &str) -> Error {
    let mut error = error.within_lines(LINES_MAX);
    let Ok(tokens) = Tokenizer::new(&DIALECT, text).tokenize_with_location() else {
        return error;
    };
    let is_code = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_) | Token::EOF);
    let tokens: Vec<TokenWithSpan> = tokens.into_iter().filter(is_code).collect();
    let found = place_of(&error, when, &tokens).map(|at| start(&tokens[at]));
    match &mut error {
        Error::Type { position, .. } | Error::Planning { position, .. } => {
            *position = position.or(found);
        }
        Error::UnknownFunction { name, position, .. } => {
            *position = position.or_else(|| named(name, &tokens));
        }
        _ => {}
    }
    match error {
        Error::Syntax {
            message,
            line,
            column,
        } => syntax(message, Position { line, column }, &tokens),
        Error::Unsupported { message } if found.is_some() => Error::UnsupportedClause {
            message,
            position: found,
        },
        Error::UnknownTable {
            name,
            nearest,
            position,
        } => unknown_table(name, nearest, position, &tokens),
        Error::UnknownColumn {
            name,
            nearest,
            position,
        } => unknown_column(name, nearest, position, &tokens),
        other if other.position().is_none() => other.at(found),
        other => other,
    }
}

/// A name with the ending of a file is one without its quotes.
fn unknown_table(
    name: String,
    mut nearest: Vec<String>,
    position: Option<Position>,
    tokens: &[TokenWithSpan],
) -> Error {
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_lowercase());
    let is_file = ending.is_some_and(|ending| is_extension(&ending));
    let is_quoted = |token: &TokenWithSpan| matches!(&token.token, Token::SingleQuotedString(text) if *text == name);
    if is_file && nearest.is_empty() && !tokens.iter().any(is_quoted) {
        nearest.push(format!("'{name}' (a file, in quotes)"));
    }
    let first = name.split('.').next().unwrap_or(&name);
    let position = position.or_else(|| named(first, tokens));
    Error::UnknownTable {
        name,
        nearest,
        position,
    }
}

/// A name in double quotes that no column has is a text.
fn unknown_column(
    name: String,
    mut nearest: Vec<String>,
    position: Option<Position>,
    tokens: &[TokenWithSpan],
) -> Error {
    let last = name.rsplit('.').next().unwrap_or(&name);
    let position = position
        .or_else(|| qualified(&name, tokens))
        .or_else(|| named(last, tokens));
    let here = position.and_then(|position| at(position, tokens));
    if let Some(Token::Word(word)) = here.map(|at| &tokens[at].token)
        && word.quote_style == Some('"')
    {
        nearest.insert(0, format!("'{}' (text takes single quotes)", word.value));
    }
    Error::UnknownColumn {
        name,
        nearest,
        position,
    }
}

/// The token at a place.
fn at(position: Position, tokens: &[TokenWithSpan]) -> Option<usize> {
    tokens.iter().position(|token| start(token) >= position)
}

fn start(token: &TokenWithSpan) -> Position {
    let Location { line, column } = token.span.start;
    Position { line, column }
}

/// The place of a word.
fn named(name: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    word(name, tokens).map(|at| start(&tokens[at]))
}

/// The place of a name of two parts, `a.b`.
fn qualified(name: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let (table, column) = name.rsplit_once('.')?;
    let table = table.rsplit('.').next().unwrap_or(table);
    let is = |token: &TokenWithSpan, name: &str| matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
    let mut threes = tokens.windows(3);
    let found = threes.find(|three| {
        is(&three[0], table) && three[1].token == Token::Period && is(&three[2], column)
    });
    found.map(|three| start(&three[0]))
}

/// A syntax error with what may have been meant.
fn syntax(message: String, place: Position, tokens: &[TokenWithSpan]) -> Error {
    let here = at(place, tokens).unwrap_or(tokens.len());
    let (message, place) = match hint(&message, here, tokens) {
        Some((hint, place)) => (format!("{message}; {hint}"), place),
        None => (message, place),
    };
    Error::Syntax {
        message,
        line: place.line,
        column: place.column,
    }
}

/// Statements about databases, with what stands for them here.
const OF_DATABASES: [(&str, &str); 6] = [
    (
        "EXPORT",
        "COPY (SELECT … FROM t) TO 't.parquet' writes one table",
    ),
    (
        "IMPORT",
        "files are read in FROM: SELECT … FROM 't.parquet'",
    ),
    (
        "ATTACH",
        "there are no other databases; files are read in FROM: SELECT … FROM 't.parquet'",
    ),
    ("DETACH", "there are no other databases"),
    (
        "ABORT",
        "each statement takes effect by itself; there are no transactions",
    ),
    (
        "CHECKPOINT",
        "tables of a session lie in memory; COPY t TO 't.parquet' writes one",
    ),
];

fn hint(message: &str, here: usize, tokens: &[TokenWithSpan]) -> Option<(String, Position)> {
    if let Some(first) = tokens.first()
        && let Token::Word(word) = &first.token
        && let Some((_, instead)) = OF_DATABASES
            .iter()
            .find(|(statement, _)| word.value.eq_ignore_ascii_case(statement))
    {
        return Some(((*instead).to_owned(), start(first)));
    }
    // A misspelt keyword is mostly read as an alias: the error is one word later.
    for token in [here.checked_sub(1), Some(here)].into_iter().flatten() {
        if is_name_place(token, tokens) {
            continue;
        }
        if let Some(keyword) = tokens.get(token).and_then(misspelt) {
            return Some((format!("did you mean {keyword}?"), start(&tokens[token])));
        }
    }
    if let Some((path, place)) = path_without_quotes(here, tokens) {
        return Some((format!("a path stands in single quotes: '{path}'"), place));
    }
    if message.contains("found: EOF")
        && let Some(open) = unclosed(tokens)
    {
        let place = end(tokens).unwrap_or(open);
        return Some((format!("the parenthesis at {open} is not closed"), place));
    }
    let place = tokens.get(here).map(start)?;
    if message.contains("Expected: )")
        && matches!(&tokens[here].token, Token::Word(word) if is_keyword(&word.value.to_uppercase()))
        && let Some(open) = unclosed(&tokens[..here])
    {
        return Some((format!("the parenthesis at {open} is not closed"), place));
    }
    if message.contains("end of statement") && closes_nothing(&tokens[..=here]) {
        return Some(("this parenthesis was never opened".to_owned(), place));
    }
    for token in here + 1..tokens.len() {
        if let Some(keyword) = misspelt(&tokens[token]).filter(|_| !is_name_place(token, tokens)) {
            return Some((format!("did you mean {keyword}?"), start(&tokens[token])));
        }
    }
    missing_comma(message, here, tokens)
}

/// A comma that may be missing before a name, a number, a text or a call.
fn missing_comma(
    message: &str,
    here: usize,
    tokens: &[TokenWithSpan],
) -> Option<(String, Position)> {
    let is_missing = ["end of statement", "Expected: )", "Expected: ,"];
    let before = here.checked_sub(1)?;
    // `f(x) g(y)`: the second name is read as an alias.
    let is_call = tokens[here].token == Token::LParen;
    let (before, at) = match is_call {
        true => (before.checked_sub(1)?, before),
        false => (before, here),
    };
    let is_operand = |token: &Token| match token {
        Token::Word(word) => !is_keyword(&word.value.to_uppercase()),
        token => matches!(token, Token::Number(..) | Token::SingleQuotedString(_)),
    };
    let ends = tokens[before].token == Token::RParen || is_operand(&tokens[before].token);
    let is_missing = is_missing.iter().any(|expected| message.contains(expected));
    (is_missing && ends && is_operand(&tokens[at].token)).then(|| {
        let hint = format!("is a comma missing before {}?", tokens[at].token);
        (hint, start(&tokens[at]))
    })
}

/// True behind what a name has to follow: there a word like a keyword is a name.
fn is_name_place(token: usize, tokens: &[TokenWithSpan]) -> bool {
    const BEFORE_NAMES: [&str; 12] = [
        "FROM", "JOIN", "INTO", "TABLE", "UPDATE", "SELECT", "BY", "AS", "WHERE", "AND", "OR", "ON",
    ];
    match token.checked_sub(1).map(|before| &tokens[before].token) {
        None | Some(Token::RParen | Token::Mul | Token::SemiColon) => false,
        Some(Token::Number(..) | Token::SingleQuotedString(_)) => false,
        Some(Token::Word(word)) => BEFORE_NAMES.contains(&word.value.to_uppercase().as_str()),
        Some(_) => true,
    }
}

/// The keyword that a word nearly is.
fn misspelt(token: &TokenWithSpan) -> Option<&'static str> {
    let Token::Word(word) = &token.token else {
        return None;
    };
    let written = word.value.to_uppercase();
    if word.quote_style.is_some() || written.len() < 2 || is_keyword(&written) {
        return None;
    }
    let edits_max = if written.len() < 5 { 1 } else { 2 };
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let near = KEYWORDS
        .iter()
        .map(|keyword| (strsim::damerau_levenshtein(keyword, &written), *keyword));
    // Of short words only letters that have changed places.
    let near = near.filter(|(edits, keyword)| {
        *edits <= edits_max && (keyword.len() > 3 || letters(keyword) == letters(&written))
    });
    let is_begun = |keyword: &str| keyword.starts_with(&written);
    near.min_by_key(|(edits, keyword)| (*edits, !is_begun(keyword), *keyword))
        .map(|(_, keyword)| keyword)
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
        || ["AS", "ON", "OR", "AND", "NOT", "IN", "IS", "ASC", "DESC"].contains(&word)
}

/// A path that is written without quotes around the place: words, dots, slashes and minuses without blanks between them.
fn path_without_quotes(here: usize, tokens: &[TokenWithSpan]) -> Option<(String, Position)> {
    let is_part = |token: &Token| {
        matches!(
            token,
            Token::Word(_)
                | Token::Period
                | Token::Div
                | Token::Minus
                | Token::Number(..)
                | Token::Mul
                | Token::Colon
                | Token::Tilde
        )
    };
    let touches = |left: usize| tokens[left].span.end == tokens[left + 1].span.start;
    let mut first = here.min(tokens.len().checked_sub(1)?);
    while first > 0 && is_part(&tokens[first - 1].token) && touches(first - 1) {
        first -= 1;
    }
    let mut last = first;
    while last + 1 < tokens.len() && is_part(&tokens[last + 1].token) && touches(last) {
        last += 1;
    }
    let path: String = tokens[first..=last]
        .iter()
        .map(|token| token.token.to_string())
        .collect();
    let after_from = first > 0
        && matches!(&tokens[first - 1].token, Token::Word(word) if ["FROM", "JOIN"].contains(&word.value.to_uppercase().as_str()));
    let ending = path
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_lowercase());
    let is_path = ending.is_some_and(|ending| is_extension(&ending)) || path.contains('/');
    (after_from && is_path && last > first).then(|| (path, start(&tokens[first])))
}

/// The last parenthesis that is open at the end.
fn unclosed(tokens: &[TokenWithSpan]) -> Option<Position> {
    let mut open = Vec::new();
    for token in tokens {
        match token.token {
            Token::LParen => open.push(start(token)),
            Token::RParen => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// True if the last token closes a parenthesis that is not open.
fn closes_nothing(tokens: &[TokenWithSpan]) -> bool {
    let count = |of: &Token| tokens.iter().filter(|token| token.token == *of).count();
    tokens
        .last()
        .is_some_and(|last| last.token == Token::RParen)
        && count(&Token::RParen) > count(&Token::LParen)
}

fn end(tokens: &[TokenWithSpan]) -> Option<Position> {
    let Location { line, column } = tokens.last()?.span.end;
    Some(Position { line, column })
}
