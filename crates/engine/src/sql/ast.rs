//! Pieces of parsed statements: made by hand, or parsed from text in which they are short to write.
//!
//! In: names, literals, SQL text of ours. Out: expressions and queries of the parser.
//! Invariant: names are quoted, so that they mean what they say; text that we write parses.
//! Not here: what users write (statement.rs).

use datafusion::sql::parser::DFParserBuilder;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, TableWithJoins, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Span, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position, Result};
use crate::sql::dialect::DIALECT;

/// Nesting that rewritten text may have: it wraps what a user wrote.
const NESTING_MAX: usize = 400;

/// Lines that a user's text may have. Places of text of ours lie behind them: names in it are told apart by their places, too.
pub(crate) const LINES_MAX: u64 = 1 << 40;

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// A cast.
pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// The one SELECT that a query consists of.
pub(crate) fn select_of(query: &mut Query) -> Option<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

/// The name of a column that stands alone, `b` of `a.b`.
pub(crate) fn column_name(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// The name that an item of a select list has without its text: its alias or that of its column.
pub(crate) fn item_name(item: &SelectItem) -> Option<&Ident> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias),
        SelectItem::UnnamedExpr(expr) => column_name(expr),
        _ => None,
    }
}

/// A name of one part as the parser has names of tables and functions.
pub(crate) fn object(name: Ident) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(name)])
}

/// A text in single quotes.
pub(crate) fn text(value: &str) -> Expr {
    Expr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(value.to_string()),
        span: Span::empty(),
    })
}

/// A whole number.
pub(crate) fn number(value: i64) -> Expr {
    Expr::Value(ValueWithSpan {
        value: Value::Number(value.to_string(), false),
        span: Span::empty(),
    })
}

/// A call of a function.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: object(Ident::new(name)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The name of a function, in lower case, if it has one part.
pub(crate) fn function_name(function: &Function) -> Option<String> {
    name_of(&function.name)
}

/// A name in lower case, if it has one part.
pub(crate) fn name_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name.value.to_lowercase()),
        _ => None,
    }
}

/// The arguments of a plain call: no DISTINCT, no ORDER BY, no names, no `*`.
pub(crate) fn plain_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return None;
    }
    let plain = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    plain.collect()
}

/// The values of `row(1, 'x')` or `(1, 'x')`.
pub(crate) fn written_row(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Tuple(values) => Some(values.iter().collect()),
        Expr::Function(function) => match function_name(function)?.as_str() {
            "row" | "struct" => plain_arguments(function),
            _ => None,
        },
        _ => None,
    }
}

/// The names of the fields of a struct that is written, `{'a': 1}` or `row(1, 2)`; `None` of another expression.
pub(crate) fn written_struct(expr: &Expr) -> Option<Vec<String>> {
    let numbered = |fields: usize| (0..fields).map(|at| format!("c{at}")).collect();
    match expr {
        Expr::Nested(inner) => written_struct(inner),
        Expr::Dictionary(fields) => {
            let names = fields.iter().map(|field| field.key.value.clone());
            Some(names.collect())
        }
        Expr::Struct { values, fields } if fields.is_empty() => Some(numbered(values.len())),
        Expr::Function(function) => {
            let arguments = plain_arguments(function)?;
            match function_name(function)?.as_str() {
                "named_struct" => {
                    let names = arguments.iter().step_by(2);
                    let names = names.map(|name| literal_text(name).map(str::to_owned));
                    names.collect()
                }
                _ => written_row(expr).map(|values| numbered(values.len())),
            }
        }
        _ => written_row(expr).map(|values| numbered(values.len())),
    }
}

/// The value of a text literal.
pub(crate) fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Nested(inner) => literal_text(inner),
        _ => None,
    }
}

/// The query that `text` is.
pub(crate) fn parse_query(text: &str) -> Result<Box<Query>> {
    match parse_statement(text)? {
        DataFusionStatement::Statement(statement) => match *statement {
            SqlStatement::Query(query) => Ok(query),
            _ => Err(no_query(text)),
        },
        _ => Err(no_query(text)),
    }
}

/// A query that is nothing but another one.
pub(crate) fn around(query: Query) -> Query {
    Query {
        with: None,
        body: Box::new(SetExpr::Query(Box::new(query))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// The statement that `text` is.
pub(crate) fn parse_statement(text: &str) -> Result<DataFusionStatement> {
    let mut parser = DFParserBuilder::new(tokens_of(text)?)
        .with_dialect(&DIALECT)
        .with_recursion_limit(NESTING_MAX)
        .build()?;
    let mut statements = parser.parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(no_query(text)),
    }
}

/// The tokens of text of ours, which differ in their places from one another and from those of the user's text.
fn tokens_of(text: &str) -> Result<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&DIALECT, text).tokenize_with_location();
    let mut tokens = tokens.map_err(|_| no_query(text))?;
    for token in &mut tokens {
        token.span.start.line += LINES_MAX;
        token.span.end.line += LINES_MAX;
    }
    Ok(tokens)
}

fn no_query(text: &str) -> Error {
    Error::Internal(format!("rewritten SQL is no query: {text}"))
}

/// The expression that `text` is.
pub(crate) fn parse_expr(text: &str) -> Result<Expr> {
    let mut parser = DFParserBuilder::new(tokens_of(text)?)
        .with_dialect(&DIALECT)
        .with_recursion_limit(NESTING_MAX)
        .build()?;
    parser.parser.parse_expr().map_err(|error| {
        Error::Internal(format!("rewritten SQL is no expression: {text}: {error}"))
    })
}

/// The tables of a FROM, those of its joins too.
pub(crate) fn factors(from: &[TableWithJoins]) -> impl Iterator<Item = &TableFactor> {
    from.iter().flat_map(|table| {
        let joined = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation).chain(joined)
    })
}

/// The place in the user's text; none of what it does not have.
pub(crate) fn position_of(at: Location) -> Option<Position> {
    (1..=LINES_MAX).contains(&at.line).then_some(Position {
        line: at.line,
        column: at.column,
    })
}

/// A query as a table of FROM.
pub(crate) fn derived(query: Box<Query>, alias: Option<Ident>) -> TableFactor {
    TableFactor::Derived {
        lateral: false,
        subquery: query,
        alias: alias.map(|name| datafusion::sql::sqlparser::ast::TableAlias {
            explicit: true,
            name,
            columns: Vec::new(),
            at: None,
        }),
        sample: None,
    }
}
