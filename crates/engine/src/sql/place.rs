//! Where in a statement an error is, and what was meant, as far as the text itself tells.
//!
//! In: an error of planning or parsing and the statement. Out: the same error with a place and a hint.
//! Invariant: a place that DataFusion knows stays; a hint is only given where it names what stands in the text.
//! Not here: names that the session knows (session.rs).

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position};
use crate::sql::dialect::DIALECT;

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

/// Endings of files that one reads.
const ENDINGS: &[&str] = &[
    "csv", "tsv", "json", "ndjson", "jsonl", "parquet", "arrow", "feather", "gz", "zst",
];

/// The error with what the text of the statement says of it.
pub(crate) fn placed(error: Error, text: &str) -> Error {
    let Ok(tokens) = Tokenizer::new(&DIALECT, text).tokenize_with_location() else {
        return error;
    };
    let tokens: Vec<TokenWithSpan> = tokens
        .into_iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
        .collect();
    match error {
        Error::Syntax {
            message,
            line,
            column,
        } => syntax(message, Position { line, column }, &tokens),
        Error::Type {
            message,
            position: None,
        } => {
            let position = place_of(&message, &tokens);
            Error::Type { message, position }
        }
        Error::Planning {
            message,
            position: None,
        } => {
            let position = place_of(&message, &tokens);
            Error::Planning { message, position }
        }
        Error::Unsupported { message } => match place_of(&message, &tokens) {
            None => Error::Unsupported { message },
            position => Error::UnsupportedClause { message, position },
        },
        Error::Execution(message) => {
            match called(&message, &tokens).or_else(|| called_in_words(&message, &tokens)) {
                None => Error::Execution(message),
                position => Error::Planning { message, position },
            }
        }
        Error::UnknownFunction {
            name,
            nearest,
            position: None,
        } => {
            let position = named(&name, &tokens);
            Error::UnknownFunction {
                name,
                nearest,
                position,
            }
        }
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
    let is_file = ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()));
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
    let position = position.or_else(|| named(last, tokens));
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
    let is_named = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
    tokens.iter().find(is_named).map(start)
}

/// The place of what a message has in quotes: a call first, then a text, then a word; else of the only operator that it names.
fn place_of(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let quoted: Vec<&str> = quoted(message).collect();
    let names = quoted
        .iter()
        .map(|quoted| quoted.split('(').next().unwrap_or(quoted));
    let text = || {
        quoted.iter().find_map(|quoted| {
            let is_text = |token: &&TokenWithSpan| matches!(&token.token, Token::SingleQuotedString(text) if text == quoted);
            tokens.iter().find(is_text).map(start)
        })
    };
    let last = |name: &str| named(name.rsplit('.').next().unwrap_or(name), tokens);
    let word = || names.clone().find_map(last);
    called(message, tokens)
        .or_else(text)
        .or_else(word)
        .or_else(|| operator(message, tokens))
        .or_else(|| called_in_words(message, tokens))
        .or_else(|| clause(message, tokens))
        .or_else(|| cast_to(message, tokens))
}

/// The words of a message.
fn words(message: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = message.split(move |letter| !is_part(letter));
    words.filter(|word| word.len() > 1)
}

/// The only call of the statement, if the message names its function.
fn called_in_words(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let mut calls = tokens.windows(2).filter_map(|two| match &two[0].token {
        Token::Word(word) if two[1].token == Token::LParen => {
            let mut named = words(message);
            named
                .any(|named| named.eq_ignore_ascii_case(&word.value))
                .then(|| start(&two[0]))
        }
        _ => None,
    });
    calls.next().filter(|_| calls.next().is_none())
}

/// The clause that a message names, where the statement has it once.
fn clause(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let clauses = [
        "ORDER BY", "GROUP BY", "LIMIT", "OFFSET", "WHERE", "HAVING", "QUALIFY", "NOT",
    ];
    let named = clauses.into_iter().find(|clause| {
        let first = message.find(clause).map(|at| at + clause.len());
        first.is_some_and(|end| !message[end..].starts_with(char::is_alphanumeric))
    })?;
    let named: Vec<&str> = named.split(' ').collect();
    let is_word =
        |(token, word): (&TokenWithSpan, &&str)| token.token.to_string().eq_ignore_ascii_case(word);
    let mut found = tokens
        .windows(named.len())
        .filter(|window| window.iter().zip(&named).all(is_word));
    let first = found.next().map(|window| start(&window[0]));
    first.filter(|_| found.next().is_none())
}

/// The type of a cast that a message names, where the statement has it once.
fn cast_to(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let mut found = tokens.windows(2).filter(|two| {
        let is_cast = match &two[0].token {
            Token::DoubleColon => true,
            Token::Word(word) => word.value.eq_ignore_ascii_case("AS"),
            _ => false,
        };
        is_cast
            && matches!(&two[1].token, Token::Word(word)
                if words(message).any(|named| named == word.value.to_uppercase()))
    });
    let first = found.next().map(|two| start(&two[1]));
    first.filter(|_| found.next().is_none())
}

/// What a message has in quotes.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('\'').skip(1).step_by(2)
}

/// The place of a call that a message has in quotes.
fn called(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    quoted(message).find_map(|quoted| {
        let name = quoted.split('(').next().unwrap_or(quoted);
        let mut calls = tokens.windows(2).filter(|two| {
            let is_named =
                matches!(&two[0].token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
            is_named && two[1].token == Token::LParen
        });
        calls.next().map(|two| start(&two[0]))
    })
}

/// The operator between two types, where the statement has it once.
fn operator(message: &str, tokens: &[TokenWithSpan]) -> Option<Position> {
    let operators = [
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " || ",
        " = ",
        " < ",
        " > ",
        " <= ",
        " >= ",
        " != ",
        " AND ",
        " OR ",
        " LIKE ",
        " ILIKE ",
        " BETWEEN ",
        " IN ",
        " ~ ",
        " & ",
        " | ",
        " << ",
        " >> ",
    ];
    let written = operators
        .iter()
        .find(|operator| message.contains(*operator))?
        .trim();
    let is_it = |token: &&TokenWithSpan| {
        let text = token.token.to_string();
        text.eq_ignore_ascii_case(written) || (written == "!=" && text == "<>")
    };
    let mut found = tokens.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(start(only)),
        _ => None,
    }
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

fn hint(message: &str, here: usize, tokens: &[TokenWithSpan]) -> Option<(String, Position)> {
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
    let is_path =
        ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) || path.contains('/');
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
