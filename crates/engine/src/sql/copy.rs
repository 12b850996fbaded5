//! COPY as people write it, in the words that DataFusion knows.
//!
//! In: the tokens of a statement: `COPY t [(a, b)] | (query) TO 'file' (FORMAT csv, …)`, also with DataFusion's own clauses
//! (STORED AS, PARTITIONED BY, OPTIONS), after EXPLAIN too. Or `COPY t [(a, b)] FROM 'file' (…)`.
//! Out: the tokens of DataFusion's COPY of a query, with one option that says all the rest; or of an INSERT.
//! Invariant: a word that is not understood is an error with its place; the format is said or is that of the ending.
//! Not here: what the options mean (copy_options.rs), writing (scan/writes/).

mod copy_options;

use datafusion::execution::context::SessionContext;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, SelectItem, SetExpr, Statement, TableObject,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use crate::error::{Error, Result};
use crate::scan::writes::request::REQUEST;
use crate::sql::copy::copy_options::{CopyOptions, Given, OptionValue};

/// Rewrites a COPY; all other statements stay as they are.
pub(crate) fn rewrite(tokens: Vec<TokenWithSpan>) -> Result<Rewritten> {
    let Some(start) = start_of_copy(&tokens) else {
        return Ok(Rewritten {
            tokens,
            columns: Columns::AsWritten,
        });
    };
    let mut cursor = Cursor {
        tokens: &tokens,
        at: start + 1,
    };
    let copy = Copy::parse(&mut cursor)?;
    let mut rewritten = tokens[..start].to_vec();
    let (copied, columns) = copy.into_tokens(tokens[start].span)?;
    rewritten.extend(copied);
    rewritten.extend_from_slice(&tokens[cursor.at..]);
    Ok(Rewritten {
        tokens: rewritten,
        columns,
    })
}

/// A statement that DataFusion can parse.
pub(crate) struct Rewritten {
    pub tokens: Vec<TokenWithSpan>,
    pub columns: Columns,
}

/// Which columns of a query an INSERT puts into which of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// As the statement has them.
    AsWritten,
    /// Those of the table's names, wherever they stand in the file.
    ByName,
}

/// Where COPY stands, if the statement is one that is not `COPY INTO`.
fn start_of_copy(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut cursor = Cursor { tokens, at: 0 };
    if cursor.take_word("EXPLAIN") {
        if cursor.peek() == &Token::LParen {
            cursor.group()?;
        }
        cursor.take_word("ANALYZE");
        cursor.take_word("VERBOSE");
        if cursor.take_word("FORMAT") {
            cursor.next();
        }
    }
    cursor.skip_space();
    let start = cursor.at;
    let is_copy = cursor.take_word("COPY") && !cursor.take_word("INTO");
    is_copy.then_some(start)
}

/// Reads the columns of the table that a file is copied into from the file by their names.
pub(crate) async fn read_by_name(
    statement: &mut DataFusionStatement,
    context: &SessionContext,
) -> Result<()> {
    let DataFusionStatement::Statement(statement) = statement else {
        return Ok(());
    };
    let Statement::Insert(Insert {
        table: TableObject::TableName(table),
        source: Some(query),
        ..
    }) = statement.as_mut()
    else {
        return Ok(());
    };
    let table = object_name_to_table_reference(table.clone(), true)?;
    let schema = context.table_provider(table).await?.schema();
    if let SetExpr::Select(select) = query.body.as_mut() {
        let names = schema.fields().iter().map(|field| {
            let name = Ident::with_quote('"', field.name());
            SelectItem::UnnamedExpr(Expr::Identifier(name))
        });
        select.projection = names.collect();
    }
    Ok(())
}

/// What is copied.
enum CopySource {
    /// A query, without its parentheses.
    Query(Vec<TokenWithSpan>),
    /// A table and some of its columns, or all.
    Table(Vec<TokenWithSpan>, Vec<TokenWithSpan>),
}

enum Direction {
    To,
    From,
}

struct Copy {
    source: CopySource,
    direction: Direction,
    file: String,
    given: Given,
}

impl Copy {
    /// All that follows the word COPY.
    fn parse(cursor: &mut Cursor<'_>) -> Result<Copy> {
        let source = match cursor.peek() {
            Token::LParen => CopySource::Query(cursor.expect_group()?),
            _ => cursor.table()?,
        };
        let (mut target, mut given) = (None, Given::default());
        loop {
            let place = cursor.place();
            if target.is_none() && cursor.take_word("TO") {
                target = Some((Direction::To, cursor.file()?));
            } else if target.is_none() && cursor.take_word("FROM") {
                target = Some((Direction::From, cursor.file()?));
            } else if cursor.take_word("STORED") {
                cursor.expect_word("AS")?;
                given.stored_as = Some((cursor.option_name()?, place));
            } else if cursor.take_word("PARTITIONED") {
                cursor.expect_word("BY")?;
                given.partitioned_by = Some(cursor.names()?);
            } else if cursor.take_word("OPTIONS") {
                given.datafusion = cursor.options()?;
            } else if matches!(cursor.peek(), Token::LParen) && target.is_some() {
                given.options.extend(cursor.options()?);
            } else if cursor.take_word("WITH") {
                continue;
            } else if target.is_some() && cursor.take_word("CSV") {
                let format = OptionValue::Text("csv".to_owned());
                given.options.push(("format".to_owned(), format, place));
            } else if target.is_some() && cursor.take_word("HEADER") {
                let header = ("header".to_owned(), OptionValue::Nothing, place);
                given.options.push(header);
            } else if target.is_some()
                && let Some(option) = cursor.bare_option()
            {
                given.options.push((option?, cursor.option_value()?, place));
            } else {
                break;
            }
        }
        match (target, cursor.peek()) {
            (Some((direction, file)), Token::EOF | Token::SemiColon) => Ok(Copy {
                source,
                direction,
                file,
                given,
            }),
            (None, _) => Err(cursor.expected("TO 'file' or FROM 'file'")),
            (Some(_), _) => Err(cursor.expected("options in parentheses or the end")),
        }
    }

    fn into_tokens(mut self, span: Span) -> Result<(Vec<TokenWithSpan>, Columns)> {
        let given = std::mem::take(&mut self.given);
        let options = CopyOptions::of(&self.file, given)?;
        match self.direction {
            Direction::To => Ok((self.writing(&options, span)?, Columns::AsWritten)),
            Direction::From => self.reading(&options, span),
        }
    }

    fn writing(self, options: &CopyOptions, span: Span) -> Result<Vec<TokenWithSpan>> {
        let token = |token: Token| TokenWithSpan { token, span };
        let query = match self.source {
            CopySource::Query(query) => query,
            CopySource::Table(name, columns) => select_from(name, columns, span),
        };
        let request = options.request(&self.file)?;
        let mut tokens = words("COPY (", span);
        tokens.extend(query);
        tokens.extend(words(") TO", span));
        tokens.push(token(Token::SingleQuotedString(self.file)));
        tokens.extend(words("STORED AS", span));
        tokens.push(token(Token::make_word(options.stored_as(), None)));
        tokens.extend(words("OPTIONS (", span));
        tokens.push(token(Token::SingleQuotedString(REQUEST.to_string())));
        tokens.push(token(Token::SingleQuotedString(request.to_string())));
        tokens.extend(words(")", span));
        Ok(tokens)
    }

    fn reading(self, options: &CopyOptions, span: Span) -> Result<(Vec<TokenWithSpan>, Columns)> {
        let token = |token: Token| TokenWithSpan { token, span };
        let CopySource::Table(name, columns) = self.source else {
            return Err(Error::Syntax {
                message: "a file is copied into a table, not into a query".to_string(),
                line: span.start.line.max(1),
                column: span.start.column.max(1),
            });
        };
        let by_name = match options.has_names() && columns.is_empty() {
            true => Columns::ByName,
            false => Columns::AsWritten,
        };
        let (function, arguments) = options.reading()?;
        let mut tokens = words("INSERT INTO", span);
        tokens.extend(name);
        if !columns.is_empty() {
            tokens.extend(words("(", span));
            tokens.extend(columns.clone());
            tokens.extend(words(")", span));
        }
        tokens.extend(words("SELECT", span));
        match columns.is_empty() || !options.has_names() {
            true => tokens.extend(words("*", span)),
            false => tokens.extend(columns),
        }
        tokens.extend(words("FROM", span));
        tokens.push(token(Token::make_word(function, None)));
        tokens.extend(words("(", span));
        tokens.push(token(Token::SingleQuotedString(self.file)));
        for (name, value) in arguments {
            tokens.extend(words(",", span));
            tokens.push(token(Token::make_word(&name, None)));
            tokens.push(token(Token::RArrow));
            tokens.push(token(value));
        }
        tokens.extend(words(")", span));
        Ok((tokens, by_name))
    }
}

/// `SELECT columns FROM name`.
fn select_from(
    name: Vec<TokenWithSpan>,
    columns: Vec<TokenWithSpan>,
    span: Span,
) -> Vec<TokenWithSpan> {
    let mut tokens = words("SELECT", span);
    match columns.is_empty() {
        true => tokens.extend(words("*", span)),
        false => tokens.extend(columns),
    }
    tokens.extend(words("FROM", span));
    tokens.extend(name);
    tokens
}

/// Plain words and signs, with blanks between them, as tokens.
fn words(text: &str, span: Span) -> Vec<TokenWithSpan> {
    let tokens = text.split(' ').map(|word| match word {
        "(" => Token::LParen,
        ")" => Token::RParen,
        "," => Token::Comma,
        "*" => Token::Mul,
        word => Token::make_word(word, None),
    });
    tokens.map(|token| TokenWithSpan { token, span }).collect()
}

const END: &Token = &Token::EOF;

/// Reads tokens, without blanks and comments.
struct Cursor<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
}

impl Cursor<'_> {
    fn skip_space(&mut self) {
        while matches!(
            self.tokens.get(self.at).map(|token| &token.token),
            Some(Token::Whitespace(_))
        ) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> &Token {
        self.skip_space();
        self.tokens.get(self.at).map_or(END, |token| &token.token)
    }

    fn place(&mut self) -> Location {
        self.skip_space();
        let here = self.tokens.get(self.at).or(self.tokens.last());
        here.map_or(Location { line: 1, column: 1 }, |token| token.span.start)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Word(found)
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word));
        if is_it {
            self.at += 1;
        }
        is_it
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.take_word(word) {
            true => Ok(()),
            false => Err(self.expected(word)),
        }
    }

    fn expected(&mut self, what: &str) -> Error {
        let place = self.place();
        let found = self.peek().to_string();
        Error::Syntax {
            message: format!("Expected: {what}, found: {found}"),
            line: place.line.max(1),
            column: place.column.max(1),
        }
    }

    /// The tokens between parentheses; `None` = they do not close.
    fn group(&mut self) -> Option<Vec<TokenWithSpan>> {
        self.skip_space();
        let start = self.at + 1;
        let mut depth = 0;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at = at + 1;
                return Some(self.tokens[start..at].to_vec());
            }
        }
        None
    }

    fn expect_group(&mut self) -> Result<Vec<TokenWithSpan>> {
        match self.group() {
            Some(tokens) => Ok(tokens),
            None => {
                self.at = self.tokens.len();
                Err(self.expected(")"))
            }
        }
    }

    /// A name, in parts, and columns behind it.
    fn table(&mut self) -> Result<CopySource> {
        let mut name = Vec::new();
        while matches!(
            self.peek(),
            Token::Word(_) | Token::SingleQuotedString(_) | Token::Period
        ) {
            name.push(self.tokens[self.at].clone());
            self.at += 1;
            let is_open = name.last().is_some_and(|last| last.token == Token::Period);
            if !is_open && self.peek() != &Token::Period {
                break;
            }
        }
        if name.is_empty() {
            return Err(self.expected("a table or a query in parentheses"));
        }
        let columns = match self.peek() {
            Token::LParen => self.expect_group()?,
            _ => Vec::new(),
        };
        Ok(CopySource::Table(name, columns))
    }

    /// The name of a file; PostgreSQL's names of the process's streams are those of their devices.
    fn file(&mut self) -> Result<String> {
        let streams = [
            ("STDIN", "/dev/stdin"),
            ("STDOUT", "/dev/stdout"),
            ("STDERR", "/dev/stderr"),
        ];
        for (name, device) in streams {
            if self.take_word(name) {
                return Ok(device.to_string());
            }
        }
        match self.peek() {
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {}
            _ => return Err(self.expected("a file name in single quotes")),
        }
        match self.next() {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Ok(text),
            _ => Err(self.expected("a file name in single quotes")),
        }
    }

    /// `(a, b)`
    fn names(&mut self) -> Result<Vec<String>> {
        if self.peek() != &Token::LParen {
            return Err(self.expected("("));
        }
        self.at += 1;
        let mut names = Vec::new();
        loop {
            match self.peek() {
                Token::RParen => break,
                Token::Word(_) | Token::SingleQuotedString(_) => names.push(self.option_name()?),
                _ => return Err(self.expected("the name of a column")),
            }
            if self.peek() == &Token::Comma {
                self.at += 1;
            }
        }
        self.at += 1;
        Ok(names)
    }

    /// A word or a string, parts with dots and `::` between them.
    fn option_name(&mut self) -> Result<String> {
        let mut name = match self.peek() {
            Token::Word(_) | Token::SingleQuotedString(_) => text_of(self.next()),
            _ => return Err(self.expected("a name")),
        };
        loop {
            let sign = match self.peek() {
                Token::Period => ".",
                Token::DoubleColon => "::",
                _ => return Ok(name),
            };
            self.at += 1;
            name.push_str(sign);
            match self.peek() {
                Token::Word(_) | Token::SingleQuotedString(_) => {
                    name.push_str(&text_of(self.next()));
                }
                _ => return Err(self.expected("a name")),
            }
        }
    }

    /// `(FORMAT csv, HEADER, DELIMITER ';')`
    fn options(&mut self) -> Result<Vec<(String, OptionValue, Location)>> {
        if self.peek() != &Token::LParen {
            return Err(self.expected("("));
        }
        self.at += 1;
        let mut options = Vec::new();
        while self.peek() != &Token::RParen {
            let place = self.place();
            let name = self.option_name()?;
            if matches!(self.peek(), Token::Eq | Token::Assignment | Token::RArrow) {
                self.at += 1;
            }
            options.push((name, self.option_value()?, place));
            match self.peek() {
                Token::Comma => self.at += 1,
                Token::RParen => {}
                _ => return Err(self.expected("',' or ')' after an option")),
            }
        }
        self.at += 1;
        Ok(options)
    }

    /// `DELIMITER AS '|'`, as PostgreSQL had it before parentheses.
    fn bare_option(&mut self) -> Option<Result<String>> {
        let names = ["DELIMITER", "NULL", "QUOTE", "ESCAPE"];
        let name = names.into_iter().find(|name| self.take_word(name))?;
        self.take_word("AS");
        Some(match self.peek() {
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                Ok(name.to_lowercase())
            }
            _ => Err(self.expected("text in single quotes")),
        })
    }

    fn option_value(&mut self) -> Result<OptionValue> {
        Ok(match self.peek() {
            Token::Comma | Token::RParen => OptionValue::Nothing,
            Token::LParen => OptionValue::List(self.names()?),
            Token::LBracket => {
                self.at += 1;
                let mut values = Vec::new();
                while self.peek() != &Token::RBracket {
                    values.push(self.option_name()?);
                    if self.peek() == &Token::Comma {
                        self.at += 1;
                    }
                }
                self.at += 1;
                OptionValue::List(values)
            }
            Token::Mul => {
                self.at += 1;
                OptionValue::All
            }
            Token::Minus => {
                self.at += 1;
                match self.next() {
                    Token::Number(number, _) => OptionValue::Text(format!("-{number}")),
                    _ => return Err(self.expected("a number")),
                }
            }
            Token::Word(_)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Number(..) => OptionValue::Text(text_of(self.next())),
            _ => return Err(self.expected("a value: a word, a number or a text in single quotes")),
        })
    }
}

fn text_of(token: Token) -> String {
    match token {
        Token::Word(Word { value, .. }) => value,
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::Number(number, _) => number,
        other => other.to_string(),
    }
}
