//! Forms within expressions that the parser asks the dialect for: lambdas, list comprehensions, GLOB, grouping sets, VALUES behind
//! ANY and ALL, `TIMESTAMP_MS '…'`.
//!
//! In: the parser before an operand or an operator. Out: the expression, or nothing where the parser knows better.
//! Invariant: nothing is read unless the tokens ahead say that it is such a form.
//! Not here: forms that tokens.rs has put in others; operators that are words (operator_words.rs); what functions do with lambdas.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, LambdaFunction, LambdaFunctionParameter, LambdaSyntax,
    OneOrManyWithParens, Subscript, TypedString, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use crate::sql::ast::{call, literal_text, text};
use crate::sql::dialect::operator_words;
use crate::sql::fixes::composite_groups::columns_of;
use crate::sql::short_forms::known_types::named_type;
use crate::sql::walk::{Walk, each};

/// JSON's arrows bind more tightly than comparisons and arithmetic, less tightly than casts.
const ARROW: u8 = 45;

/// An operand that begins with LAMBDA, `@` or `~`, is a list comprehension, or a literal of a type that the parser does not know.
pub(in crate::sql) fn prefix(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
) -> Option<Result<Expr, ParserError>> {
    match &parser.peek_token_ref().token {
        Token::AtSign => {
            let operand = behind_sign(dialect, parser);
            Some(operand.map(|operand| call("abs", vec![operand])))
        }
        Token::Tilde => {
            let operand = behind_sign(dialect, parser);
            Some(operand.map(|operand| Expr::UnaryOp {
                op: UnaryOperator::BitwiseNot,
                expr: Box::new(operand),
            }))
        }
        Token::Word(word) if is(word, "LAMBDA") && is_lambda(parser) => Some(lambda(parser)),
        Token::Word(word) if word.quote_style.is_none() && is_text(parser, 1) => {
            let data_type = named_type(&word.value)?;
            parser.advance_token();
            let value = parser.parse_value();
            Some(value.map(|value| {
                Expr::TypedString(TypedString {
                    data_type,
                    value,
                    uses_odbc_syntax: false,
                })
            }))
        }
        Token::LBracket if is_comprehension(parser) => Some(comprehension(parser)),
        Token::LParen if parser.peek_nth_token_ref(1).token == Token::RParen => {
            (0..2).for_each(|_| parser.advance_token());
            Some(Ok(Expr::Tuple(Vec::new())))
        }
        Token::LParen if begins_values(parser) => {
            parser.advance_token();
            Some(parser.parse_query().and_then(|query| {
                parser.expect_token(&Token::RParen)?;
                Ok(Expr::Subquery(query))
            }))
        }
        Token::Word(word) if word.keyword == Keyword::VALUES && is_set(parser) => {
            Some(parser.parse_query().map(Expr::Subquery))
        }
        _ => grouping(parser),
    }
}

/// The operand of a sign that binds as operators on bits do, behind which a sum may stand: `~5 + 1` is `~(5 + 1)`.
fn behind_sign(dialect: &dyn Dialect, parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.parse_subexpr(dialect.prec_value(Precedence::Pipe))
}

/// Whether a text in single quotes is the token at `nth`.
fn is_text(parser: &Parser<'_>, nth: usize) -> bool {
    let token = &parser.peek_nth_token_ref(nth).token;
    matches!(token, Token::SingleQuotedString(_))
}

/// Whether `VALUES (` stands behind `ANY (`, `ALL (` or `SOME (`, where the parser looks for SELECT alone.
fn is_set(parser: &Parser<'_>) -> bool {
    let tokens = (0..parser.index()).rev();
    let tokens = tokens.map(|at| &parser.token_at(at).token);
    let mut before = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
    let is_open = before.next() == Some(&Token::LParen);
    let is_quantified = matches!(before.next(), Some(Token::Word(word))
        if matches!(word.keyword, Keyword::ANY | Keyword::ALL | Keyword::SOME));
    is_open && is_quantified && parser.peek_nth_token_ref(1).token == Token::LParen
}

/// Whether `(VALUES (` follows.
fn begins_values(parser: &Parser<'_>) -> bool {
    let is_values = matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::VALUES);
    is_values && parser.peek_nth_token_ref(2).token == Token::LParen
}

/// Whether an expression goes on with this token, and no query in parentheses does.
pub(in crate::sql) fn goes_on(token: &Token) -> bool {
    use Keyword::{EXCEPT, FETCH, FOR, INTERSECT, LIMIT, MINUS, OFFSET, ORDER, UNION};
    match token {
        Token::RParen | Token::EOF => false,
        Token::Word(word) => !matches!(
            word.keyword,
            EXCEPT | FETCH | FOR | INTERSECT | LIMIT | MINUS | OFFSET | ORDER | UNION
        ),
        _ => true,
    }
}

/// A form of grouping over its elements.
type GroupingForm = fn(Vec<Vec<Expr>>) -> Expr;

/// `GROUPING SETS (…)`, `CUBE (…)`, `ROLLUP (…)`. The parser takes a parenthesis that begins an element for a list of columns, and
/// so does not read `ROLLUP ((a + b) * 2)`.
fn grouping(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let keyword = |nth: usize| match &parser.peek_nth_token_ref(nth).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let (form, words): (GroupingForm, usize) = match keyword(0) {
        Keyword::GROUPING if keyword(1) == Keyword::SETS => (Expr::GroupingSets, 2),
        Keyword::CUBE => (Expr::Cube, 1),
        Keyword::ROLLUP => (Expr::Rollup, 1),
        _ => return None,
    };
    if parser.peek_nth_token_ref(words).token != Token::LParen {
        return None;
    }
    (0..=words).for_each(|_| parser.advance_token());
    let elements = parser.parse_comma_separated(|parser| parser.parse_expr().map(columns_of));
    Some(elements.and_then(|elements| {
        parser.expect_token(&Token::RParen)?;
        Ok(form(elements))
    }))
}

/// The precedence of operators of ours, and of those that bind otherwise than the parser's.
pub(in crate::sql) fn precedence(dialect: &dyn Dialect, parser: &Parser<'_>) -> Option<u8> {
    match &parser.peek_token_ref().token {
        Token::Arrow | Token::LongArrow | Token::HashArrow | Token::HashLongArrow => Some(ARROW),
        // Below sums, from left to right: 'n' || x + 1, and 1 | 2 & 4 is (1 | 2) & 4.
        Token::StringConcat
        | Token::Pipe
        | Token::Ampersand
        | Token::ShiftLeft
        | Token::ShiftRight
        | Token::Sharp => Some(dialect.prec_value(Precedence::Pipe)),
        Token::Word(word) if is(word, "GLOB") => {
            let pattern = &parser.peek_nth_token_ref(1).token;
            let is_pattern = matches!(pattern, Token::SingleQuotedString(_) | Token::LParen);
            is_pattern.then(|| dialect.prec_value(Precedence::Like))
        }
        Token::Word(word) if is(word, "ISNULL") || is(word, "NOTNULL") => {
            Some(dialect.prec_value(Precedence::Is))
        }
        _ => operator_words::precedence(dialect, parser),
    }
}

/// `a GLOB 'x*'`.
pub(in crate::sql) fn infix(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
    expr: &Expr,
) -> Option<Result<Expr, ParserError>> {
    match &parser.peek_token_ref().token {
        Token::Word(word) if is(word, "GLOB") => {}
        Token::Word(word) if is(word, "ISNULL") => {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(expr.clone()))));
        }
        Token::Word(word) if is(word, "NOTNULL") => {
            parser.advance_token();
            return Some(Ok(Expr::IsNotNull(Box::new(expr.clone()))));
        }
        _ => return operator_words::infix(dialect, parser, expr),
    }
    parser.advance_token();
    let pattern = parser.parse_subexpr(dialect.prec_value(Precedence::Like));
    Some(pattern.and_then(|pattern| glob(expr.clone(), &pattern)))
}

fn is(word: &Word, text: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text)
}

/// Whether names, with commas between them, and a colon stand behind LAMBDA.
fn is_lambda(parser: &Parser<'_>) -> bool {
    let mut at = 1;
    loop {
        let is_name = matches!(parser.peek_nth_token_ref(at).token, Token::Word(_));
        match parser.peek_nth_token_ref(at + 1).token {
            Token::Colon => return is_name,
            Token::Comma if is_name => at += 2,
            _ => return false,
        }
    }
}

fn lambda(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.advance_token();
    let mut names = vec![parser.parse_identifier()?];
    while parser.consume_token(&Token::Comma) {
        names.push(parser.parse_identifier()?);
    }
    parser.expect_token(&Token::Colon)?;
    let body = parser.parse_expr()?;
    Ok(lambda_of(names, body))
}

/// A lambda with these parameters.
pub(crate) fn lambda_of(names: Vec<Ident>, body: Expr) -> Expr {
    let known = names.clone();
    let mut parameters: Vec<LambdaFunctionParameter> = names
        .into_iter()
        .map(|name| LambdaFunctionParameter {
            name,
            data_type: None,
        })
        .collect();
    let params = match (parameters.pop(), parameters.is_empty()) {
        (Some(only), true) => OneOrManyWithParens::One(only),
        (last, _) => {
            parameters.extend(last);
            OneOrManyWithParens::Many(parameters)
        }
    };
    let mut body = body;
    let ControlFlow::Continue(()) = body.walk(&mut each(|expr| index_fields(expr, &known)));
    Expr::Lambda(LambdaFunction {
        params,
        body: Box::new(body),
        syntax: LambdaSyntax::LambdaKeyword,
    })
}

/// Whether FOR stands within the brackets that open here.
fn is_comprehension(parser: &Parser<'_>) -> bool {
    let mut depth = 0_usize;
    for at in parser.index().. {
        match &parser.token_at(at).token {
            Token::LBracket | Token::LParen | Token::LBrace => depth += 1,
            Token::RBracket | Token::RParen | Token::RBrace if depth <= 1 => return false,
            Token::RBracket | Token::RParen | Token::RBrace => depth -= 1,
            Token::Word(word) if depth == 1 && word.keyword == Keyword::FOR => return true,
            Token::EOF => return false,
            _ => {}
        }
    }
    false
}

/// `[x * 2 FOR x IN list IF x > 1]` is what list_transform does with what list_filter leaves.
fn comprehension(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LBracket)?;
    let element = parser.parse_expr()?;
    parser.expect_keyword(Keyword::FOR)?;
    let mut names = vec![parser.parse_identifier()?];
    if parser.consume_token(&Token::Comma) {
        names.push(parser.parse_identifier()?);
    }
    parser.expect_keyword(Keyword::IN)?;
    let mut list = parser.parse_expr()?;
    if parser.parse_keyword(Keyword::IF) {
        if names.len() > 1 {
            // A place would be counted in the list before or after it.
            let message = "a list comprehension takes a place or IF, not both".to_string();
            return Err(ParserError::ParserError(message));
        }
        let condition = parser.parse_expr()?;
        let condition = lambda_of(names.clone(), condition);
        list = call("array_filter", vec![list, condition]);
    }
    parser.expect_token(&Token::RBracket)?;
    let is_itself = matches!(&element, Expr::Identifier(ident) if ident.value == names[0].value);
    Ok(match is_itself {
        true => list,
        false => call("array_transform", vec![list, lambda_of(names, element)]),
    })
}

fn glob(expr: Expr, pattern: &Expr) -> Result<Expr, ParserError> {
    let Some(pattern) = literal_text(pattern) else {
        let message = "the pattern of GLOB has to be a text in single quotes".to_string();
        return Err(ParserError::ParserError(message));
    };
    Ok(call(
        "regexp_like",
        vec![expr, text(&regex_of_glob(pattern))],
    ))
}

/// `*` and `?` stand for anything and for one character, `[a-c]` and `[!a]` for one of, or not of, a set.
fn regex_of_glob(pattern: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match set(rest.as_str()) {
                Some((set, length)) => {
                    regex.push_str(&set);
                    rest = rest.as_str()[length..].chars();
                }
                None => regex.push_str("\\["),
            },
            '\\' => match rest.next() {
                Some(escaped) => regex.push_str(&regex_syntax::escape(&escaped.to_string())),
                None => regex.push_str("\\\\"),
            },
            other => regex.push_str(&regex_syntax::escape(&other.to_string())),
        }
    }
    regex.push('$');
    regex
}

/// The set that begins `text`, behind its bracket, as a regular expression; with its length in bytes.
fn set(text: &str) -> Option<(String, usize)> {
    let is_negated = text.starts_with('!') || text.starts_with('^');
    let start = usize::from(is_negated);
    // A bracket that comes first is one of the set.
    let first = text.get(start..)?.chars().next()?;
    let end = start + first.len_utf8() + text.get(start + first.len_utf8()..)?.find(']')?;
    let members: String = text[start..end]
        .chars()
        .flat_map(|member| match member {
            '-' => vec!['-'],
            '\\' | '[' | ']' | '^' | '&' | '~' => vec!['\\', member],
            _ => vec![member],
        })
        .collect();
    let sign = if is_negated { "^" } else { "" };
    Some((format!("[{sign}{members}]"), end + 1))
}

/// `x.a` within a lambda of x, which the planner takes for a column of a table x.
fn index_fields(expr: &mut Expr, parameters: &[Ident]) {
    if let Expr::CompoundIdentifier(parts) = expr
        && let Some(first) = parts.first()
        && parameters
            .iter()
            .any(|known| known.value.eq_ignore_ascii_case(&first.value))
    {
        let fields = parts.iter().skip(1).map(|field| {
            AccessExpr::Subscript(Subscript::Index {
                index: text(&field.value),
            })
        });
        *expr = Expr::CompoundFieldAccess {
            root: Box::new(Expr::Identifier(first.clone())),
            access_chain: fields.collect(),
        };
    }
}
