//! Statements: a script cut into statements, one statement parsed and prepared for DataFusion.
//!
//! In: SQL text as a user writes it.
//! Out: [`Statement`]s with their place in the script; for one of them what to do: an option, or SQL for DataFusion.
//! Invariant: every error of the tokenizer or parser carries line and column.
//! Not here: names of tables and columns (session/mod.rs), files behind table functions (scan/).

use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, ResetStatement, Statement as DataFusionStatement};
use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Ident, ObjectName, ObjectNamePart, Query, Set, SetExpr,
    Statement as SqlStatement, TableAlias, TableAliasColumnDef, TableFactor, Value, ValueWithSpan,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::error::{Error, Position, Result};
use crate::runtime::datafusion_options::reset_value;
use crate::runtime::fixed_options::{check_fixed, is_fixed};
use crate::runtime::options::{OptionSpec, unknown_option};
use crate::scan::call::FileCall;
use crate::scan::constraints::Constraints;
use crate::scan::location::is_location;
use crate::sql::ast::text as literal;
use crate::sql::changes::{assigned_lists, constraints, inserted_rows, leading_with};
use crate::sql::copy::{self, Columns};
use crate::sql::dialect::DIALECT;
use crate::sql::fixes::brackets::bracket_operands;
use crate::sql::fixes::expressions::say_what_is_meant;
use crate::sql::fixes::far_timestamps::far_timestamp;
use crate::sql::fixes::text_orders::order_strings;
use crate::sql::fixes::typed_values::give_types;
use crate::sql::fixes::{dotted_fields, inner_tables, inner_values, long_chains};
use crate::sql::naming::headers;
use crate::sql::prepared::{self, Prepared};
use crate::sql::sequences::{self, SequenceChange};
use crate::sql::short_forms::ShortForms;
use crate::sql::tokens::nesting::NESTING_MAX;
use crate::sql::tokens::token_forms::{tokenizer_error, tokens_of};
use crate::sql::tokens::{self, Tokens, Written, is_one_of, is_token, word_at};
use crate::sql::walk::{done, visit};
use crate::sql::{clauses, compare_rows, composite_groups, name_shared_tables, order_windows};

/// One statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The text without the semicolon.
    pub text: String,
    /// Where it starts in the script, in bytes.
    pub offset: usize,
    /// Where it starts in the script.
    pub start: Position,
}

/// Cuts a script at its semicolons; comments and empty statements fall away.
pub(crate) fn split(text: &str) -> Result<Vec<Statement>> {
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(tokenizer_error)?;
    let mut lines = LineStarts::new(text);
    let mut statements = Vec::new();
    let mut open: Option<(Location, Location)> = None;
    let mut close = |open: &mut Option<(Location, Location)>| {
        let Some((start, end)) = open.take() else {
            return;
        };
        let (offset, end) = (lines.offset(start), lines.offset(end));
        statements.push(Statement {
            text: text[offset..end].to_string(),
            offset,
            start: Position {
                line: start.line,
                column: start.column,
            },
        });
    };
    for token in &tokens {
        match &token.token {
            Token::SemiColon => close(&mut open),
            Token::Whitespace(_) | Token::EOF => {}
            _ => {
                let start = open.map_or(token.span.start, |(start, _)| start);
                open = Some((start, token.span.end));
            }
        }
    }
    close(&mut open);
    Ok(statements)
}

/// Byte offsets of the tokenizer's (line, column in characters) locations.
struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        LineStarts {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    fn offset(&mut self, at: Location) -> usize {
        let line = usize::try_from(at.line)
            .unwrap_or(1)
            .clamp(1, self.starts.len());
        let start = self.starts[line - 1];
        let characters = usize::try_from(at.column).unwrap_or(1).saturating_sub(1);
        let rest = &self.text[start..];
        rest.char_indices()
            .nth(characters)
            .map_or(self.text.len(), |(at, _)| start + at)
    }
}

/// What one statement asks for.
#[derive(Debug)]
pub(crate) enum Request {
    /// `SET option = value` for an option of ours.
    SetOption { name: String, value: String },
    /// `RESET option` for an option of ours.
    ResetOption { name: String },
    /// An option that is what the statement says.
    Nothing,
    /// `SET VARIABLE name = value`, or `RESET VARIABLE name` without one.
    SetVariable {
        name: String,
        value: Option<Box<DataFusionRequest>>,
    },
    /// `PREPARE name(type, …) AS statement`, with what it prepares.
    Prepare {
        name: String,
        prepared: Prepared,
        request: Box<Request>,
    },
    /// `DROP MACRO name`.
    DropMacro { name: String, missing: Missing },
    /// `CREATE SEQUENCE` and `DROP SEQUENCE`.
    ChangeSequence(SequenceChange),
    /// Everything else: DataFusion plans it.
    DataFusion(Box<DataFusionRequest>),
}

/// What is done where there is nothing to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is an error.
    Error,
    /// Nothing, as IF EXISTS says.
    Nothing,
}

/// A statement for DataFusion, with the file functions that were taken out of it.
#[derive(Debug)]
pub(crate) struct DataFusionRequest {
    pub statement: DataFusionStatement,
    pub files: Vec<FileCall>,
    pub columns: Columns,
    /// What the rows of a table that is made have to keep.
    pub constraints: Option<Constraints>,
}

/// Parses exactly one statement.
pub(crate) fn parse(text: &str) -> Result<Request> {
    let tokens = tokens_of(text)?;
    match of_definitions(&tokens, text)? {
        Some(request) => Ok(request),
        None => parse_tokens(tokens, text),
    }
}

/// What changes the session's own definitions and the parser does not know.
fn of_definitions(tokens: &[TokenWithSpan], text: &str) -> Result<Option<Request>> {
    let is_code = |token: &&TokenWithSpan| {
        !matches!(
            token.token,
            Token::Whitespace(_) | Token::SemiColon | Token::EOF
        )
    };
    if !is_one_of_first(tokens, &["SET", "RESET", "CREATE", "DROP", "PREPARE"]) {
        return Ok(None);
    }
    let tokens: Tokens = tokens.iter().filter(is_code).cloned().collect();
    let slice = |part: &[TokenWithSpan]| match part {
        [first, ..] => {
            let mut lines = LineStarts::new(text);
            let start = lines.offset(first.span.start);
            let end = part
                .last()
                .map_or(start, |last| lines.offset(last.span.end));
            text[start..end].to_string()
        }
        [] => String::new(),
    };
    if let Some((name, prepared, inner)) = prepared::of(&tokens, slice)? {
        let request = Box::new(parse_tokens(inner.to_vec(), text)?);
        return Ok(Some(Request::Prepare {
            name,
            prepared,
            request,
        }));
    }
    if let Some(change) = sequences::of(&tokens)? {
        return Ok(Some(Request::ChangeSequence(change)));
    }
    if is_one_of(&tokens, 0, &["CREATE"]) {
        return Ok(None);
    }
    let name_at = |at: usize| word_at(&tokens, at).map(|word| word.value.clone());
    if is_one_of(&tokens, 1, &["VARIABLE"]) {
        let Some(name) = name_at(2) else {
            return Ok(None);
        };
        let value = match is_one_of(&tokens, 0, &["SET"]) {
            false => None,
            true if is_token(&tokens, 3, &Token::Eq) || is_one_of(&tokens, 3, &["TO"]) => {
                let select = Written::at(tokens[0].span).sql("SELECT").copy(&tokens[4..]);
                match parse_tokens(select.tokens, text)? {
                    Request::DataFusion(request) => Some(request),
                    _ => return Ok(None),
                }
            }
            true => return Ok(None),
        };
        return Ok(Some(Request::SetVariable { name, value }));
    }
    if is_one_of(&tokens, 0, &["DROP"]) && is_one_of(&tokens, 1, &["MACRO"]) {
        let table = usize::from(is_one_of(&tokens, 2, &["TABLE"]) && tokens.len() > 3);
        let exists =
            is_one_of(&tokens, 2 + table, &["IF"]) && is_one_of(&tokens, 3 + table, &["EXISTS"]);
        let at = 2 + table + if exists { 2 } else { 0 };
        let missing = if exists {
            Missing::Nothing
        } else {
            Missing::Error
        };
        if let (Some(name), true) = (name_at(at), tokens.len() == at + 1) {
            return Ok(Some(Request::DropMacro { name, missing }));
        }
    }
    Ok(None)
}

fn is_one_of_first(tokens: &[TokenWithSpan], words: &[&str]) -> bool {
    let first = tokens
        .iter()
        .position(|token| !matches!(token.token, Token::Whitespace(_)));
    first.is_some_and(|first| is_one_of(tokens, first, words))
}

fn parse_tokens(tokens: Tokens, text: &str) -> Result<Request> {
    let copy::Rewritten { tokens, columns } = copy::rewrite(tokens)?;
    let mut statements = DFParserBuilder::new(tokens::rewrite(tokens)?)
        .with_dialect(&DIALECT)
        .with_recursion_limit(NESTING_MAX)
        .build()
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| at_the_end(Error::from(error), text))?;
    let mut statement = match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => statement,
        (Some(_), false) => return Err(one_statement_only(text)),
        (None, _) => {
            let message = "there is no statement".to_string();
            return Err(Error::Syntax {
                message,
                line: 1,
                column: 1,
            });
        }
    };
    // Before all else: what clones, shows or drops a statement walks down its chains.
    long_chains::bracket(&mut statement)?;
    match statement {
        DataFusionStatement::Statement(sql) => match *sql {
            SqlStatement::Set(Set::SingleAssignment {
                scope: None | Some(ContextModifier::Session | ContextModifier::Global),
                hivevar: false,
                variable,
                values,
            }) => set(variable, values),
            SqlStatement::Set(Set::SetTimeZone {
                local: false,
                value,
            }) => set(
                ObjectName(vec![ObjectNamePart::Identifier(Ident::new(TIME_ZONE))]),
                vec![value],
            ),
            SqlStatement::ShowVariable { variable } => datafusion(show(variable)?),
            other => datafusion(DataFusionStatement::Statement(Box::new(other))),
        },
        DataFusionStatement::Reset(ResetStatement::Variable(variable)) => reset(variable),
        other => datafusion(other),
    }
    .map(|request| match request {
        Request::DataFusion(datafusion) => Request::DataFusion(Box::new(DataFusionRequest {
            columns,
            ..*datafusion
        })),
        other => other,
    })
}

/// The parser gives no position where the text ended too early.
fn at_the_end(error: Error, text: &str) -> Error {
    match error {
        Error::Syntax { message, .. } if message.ends_with("found: EOF") => {
            let text = text.trim_end();
            let last_line = text.rsplit('\n').next().unwrap_or_default();
            Error::Syntax {
                message,
                line: text.matches('\n').count() as u64 + 1,
                column: last_line.chars().count() as u64 + 1,
            }
        }
        other => other,
    }
}

fn one_statement_only(text: &str) -> Error {
    let second = split(text)
        .ok()
        .and_then(|statements| statements.get(1).map(|second| second.start));
    let at = second.unwrap_or(Position { line: 1, column: 1 });
    let message = "a second statement starts here; run one at a time".to_string();
    Error::Syntax {
        message,
        line: at.line,
        column: at.column,
    }
}

/// SQL's name of the session's time zone.
const TIME_ZONE: &str = "timezone";

fn is_of_datafusion(option: &str) -> bool {
    option.starts_with("datafusion.") || option == TIME_ZONE || option == "time.zone"
}

fn set(variable: ObjectName, values: Vec<Expr>) -> Result<Request> {
    let name = plain_name(&variable);
    if is_of_datafusion(&name) {
        let assignment = Set::SingleAssignment {
            scope: None,
            hivevar: false,
            variable,
            values,
        };
        return datafusion(DataFusionStatement::Statement(Box::new(SqlStatement::Set(
            assignment,
        ))));
    }
    if is_fixed(&name) {
        let values: Vec<String> = values.iter().map(option_value).collect();
        check_fixed(&name, &values)?;
        return Ok(Request::Nothing);
    }
    match values.as_slice() {
        [value] => Ok(Request::SetOption {
            name,
            value: option_value(value),
        }),
        _ => Err(Error::invalid(name, "an option takes one value")),
    }
}

fn reset(variable: ObjectName) -> Result<Request> {
    let name = plain_name(&variable);
    match OptionSpec::find(&name) {
        Some(_) => Ok(Request::ResetOption { name }),
        None if is_fixed(&name) => Ok(Request::Nothing),
        None if !is_of_datafusion(&name) => Err(unknown_option(&name)),
        None if let Some((datafusion, value)) = reset_value(&name) => {
            let parts = datafusion.split('.').map(Ident::new);
            let parts = parts.map(ObjectNamePart::Identifier).collect();
            set(ObjectName(parts), vec![literal(value)])
        }
        None => {
            let statement = DataFusionStatement::Reset(ResetStatement::Variable(variable));
            Ok(Request::DataFusion(Box::new(DataFusionRequest {
                statement,
                files: Vec::new(),
                columns: Columns::AsWritten,
                constraints: None,
            })))
        }
    }
}

/// `SHOW threads` shows what DataFusion knows as `grouse.threads`.
fn show(mut variable: Vec<Ident>) -> Result<DataFusionStatement> {
    if let [name] = variable.as_slice() {
        let lower = name.value.to_lowercase();
        match OptionSpec::find(&lower) {
            Some(spec) => variable = vec![Ident::new("grouse"), Ident::new(spec.name)],
            None if lower == "all" || is_of_datafusion(&lower) => {
                variable = vec![Ident::new(lower)]
            }
            None => return Err(unknown_option(&name.value)),
        }
    }
    let show = SqlStatement::ShowVariable { variable };
    Ok(DataFusionStatement::Statement(Box::new(show)))
}

fn plain_name(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part.as_ident() {
        Some(ident) => ident.value.to_lowercase(),
        None => part.to_string().to_lowercase(),
    });
    parts.collect::<Vec<_>>().join(".")
}

fn option_value(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match value.value.clone().into_string() {
            Some(text) => text,
            None => value.value.to_string(),
        },
        Expr::Identifier(ident) => ident.value.clone(),
        other => other.to_string(),
    }
}

fn datafusion(mut statement: DataFusionStatement) -> Result<Request> {
    leading_with::move_inside(&mut statement)?;
    inserted_rows::name_table(&mut statement);
    assigned_lists::set_one_by_one(&mut statement)?;
    // Also before rewrites that put a clause together as text: `- -1` would begin a comment.
    bracket_operands(&mut statement);
    headers::name_items(&mut statement);
    done(visit(&mut statement, &mut ShortForms))?;
    dotted_fields::rewrite(&mut statement)?;
    let constraints = constraints::take(&mut statement)?;
    clauses::rewrite(&mut statement)?;
    composite_groups(&mut statement)?;
    say_what_is_meant(&mut statement);
    order_windows(&mut statement)?;
    compare_rows(&mut statement)?;
    order_strings(&mut statement);
    inner_tables::name_inner_tables(&mut statement);
    name_shared_tables(&mut statement)?;
    inner_values::set_apart(&mut statement)?;
    bracket_operands(&mut statement);
    let mut preparation = Preparation {
        is_inserted: false,
        files: Vec::new(),
        question_marks: 0,
    };
    match visit(&mut statement, &mut preparation) {
        ControlFlow::Continue(()) => {
            let files = preparation.files;
            Ok(Request::DataFusion(Box::new(DataFusionRequest {
                statement,
                files,
                columns: Columns::AsWritten,
                constraints,
            })))
        }
        ControlFlow::Break(error) => Err(error),
    }
}

/// Rewrites what DataFusion does not know: `read_csv('…')`, upper-case table functions, `?` parameters, far
/// timestamps.
struct Preparation {
    files: Vec<FileCall>,
    question_marks: usize,
    /// Whether the next query's values take the types of the table's columns.
    is_inserted: bool,
}

impl VisitorMut for Preparation {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Error> {
        self.is_inserted = match statement {
            SqlStatement::Insert(_) => true,
            SqlStatement::CreateTable(table) => !table.columns.is_empty(),
            _ => false,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name, alias, args, ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(arguments) = args else {
            mark_quoted_path(name);
            return ControlFlow::Continue(());
        };
        if arguments.settings.is_some() {
            return ControlFlow::Break(Error::unsupported_clause(
                "SETTINGS; set an option by SET name = value before",
            ));
        }
        let function = plain_name(name);
        match FileCall::from_arguments(&function, &arguments.args) {
            Ok(Some(call)) => {
                let quoted = Ident::with_quote('"', call.table_name());
                *name = ObjectName(vec![ObjectNamePart::Identifier(quoted)]);
                *args = None;
                alias.get_or_insert_with(|| alias_named(&function));
                self.files.push(call);
            }
            // DataFusion looks table functions up as written; SQL does not care about case.
            Ok(None) => {
                if matches!(function.as_str(), "range" | "generate_series") {
                    let alias = alias.get_or_insert_with(|| alias_named(&function));
                    name_column(alias, &function);
                }
                *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(function))]);
            }
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let is_inserted = std::mem::take(&mut self.is_inserted);
        if let SetExpr::Values(values) = query.body.as_mut()
            && !is_inserted
        {
            give_types(values);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        far_timestamp(expr);
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Error> {
        if let Value::Placeholder(mark) = &mut value.value
            && mark == "?"
        {
            self.question_marks += 1;
            *mark = format!("${}", self.question_marks);
        }
        ControlFlow::Continue(())
    }
}

/// `FROM 'data'` is the folder `data`: in single quotes a name that exists on disk, or has a dot, is a path.
fn mark_quoted_path(name: &mut ObjectName) {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() else {
        return;
    };
    let is_quoted = ident.quote_style == Some('\'');
    let may_be_path = || ident.value.contains('.') || std::path::Path::new(&ident.value).exists();
    if is_quoted && !is_location(&ident.value) && may_be_path() {
        ident.value = format!("./{}", ident.value);
    }
}

/// The one column of a table is named for the function that made it, unless it is named here.
fn name_column(alias: &mut TableAlias, function: &str) {
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: Ident::new(function),
            data_type: None,
        });
    }
}

fn alias_named(name: &str) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::new(name),
        columns: Vec::new(),
        at: None,
    }
}
