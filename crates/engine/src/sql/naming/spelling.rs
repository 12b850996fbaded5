//! Spelling: names that differ from those of tables and columns in nothing but case.
//!
//! In: a parsed statement, the columns of its tables; DataFusion's error about a column that it does not find.
//! Out: the statement with that identifier spelled as the column is, in quotes, so that DataFusion can be asked again.
//! Since planning costs milliseconds, all others come with it that can mean nothing but a column in another case. Those are
//! respelled before DataFusion is asked where one has capitals.
//! Invariant: an unquoted name that DataFusion resolves is never touched: exact names, aliases and quoted names keep their
//! meaning. Each respelling uses up an unquoted identifier, so asking again comes to an end. Why DataFusion is asked for
//! the others: it folds case and resolves names in one pass without a hook. Its errors know the place and the columns in
//! scope, through aliases, subqueries and joins; to know them before would be to write its resolution twice.
//! Not here: table names, which the catalog looks up (scan/schema.rs); fields of structs.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    Select, SelectItem, TableFactor, TableWithJoins, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

use crate::error::Position;
use crate::error::from_datafusion::position;
use crate::error::only_other_case;
use crate::sql::walk::{each, first, visit};

/// A column that DataFusion does not find.
#[derive(Debug)]
pub(crate) struct UnknownColumn {
    column: Column,
    in_scope: Vec<Column>,
    /// Where its first part is written, if DataFusion says so.
    place: Option<Position>,
}

/// All columns that an error of planning complains about; none if it is about something else.
pub(crate) fn unknown_columns(error: &DataFusionError) -> Vec<UnknownColumn> {
    let mut unknown = Vec::new();
    collect(error, None, &mut unknown);
    unknown
}

fn collect(error: &DataFusionError, place: Option<Position>, unknown: &mut Vec<UnknownColumn>) {
    match error {
        DataFusionError::Context(_, inner) => collect(inner, place, unknown),
        DataFusionError::Shared(inner) => collect(inner, place, unknown),
        DataFusionError::Diagnostic(diagnostic, inner) => {
            collect(inner, diagnostic.span.map(position).or(place), unknown)
        }
        DataFusionError::Collection(errors) => {
            for error in errors {
                collect(error, place, unknown);
            }
        }
        DataFusionError::SchemaError(inner, _) => {
            if let SchemaError::FieldNotFound {
                field,
                valid_fields,
            } = inner.as_ref()
            {
                unknown.push(UnknownColumn {
                    column: field.as_ref().clone(),
                    in_scope: valid_fields.clone(),
                    place: field.spans().first().map(position).or(place),
                });
            }
        }
        _ => {}
    }
}

impl UnknownColumn {
    /// How the column is spelled that is meant: one in scope, or else one of any table of the statement. The scope
    /// that DataFusion reports is the innermost one, and the column may be one of the query around it.
    fn spelling<'a>(&'a self, columns: &'a [String]) -> Option<&'a str> {
        let name = self.column.name.as_str();
        let guess = self.place.is_none();
        if guess && columns.iter().any(|column| column == name) {
            // Some mention of this name is exact, and it is not known which.
            return None;
        }
        let in_scope = self.in_scope.iter().filter(|column| self.may_be(column));
        only_other_case(name, in_scope.map(|column| column.name.as_str()))
            .or_else(|| only_other_case(name, columns.iter().map(String::as_str)))
    }

    /// Whether the table before the dot, if there is one, is that of `other`.
    fn may_be(&self, other: &Column) -> bool {
        match (&self.column.relation, &other.relation) {
            (Some(table), Some(other)) => table.table() == other.table(),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }
}

/// Respells what `unknown` complains about; `columns` are those of all tables of the statement. False if nothing is left
/// to respell.
pub(crate) fn respell(
    statement: &mut Statement,
    unknown: &[UnknownColumn],
    columns: &[String],
) -> bool {
    let mut respelled = false;
    for one in unknown {
        let Some(spelling) = one.spelling(columns) else {
            continue;
        };
        let mut respelling = Respelling {
            place: one.place,
            name: one.column.name.to_lowercase(),
            spelling,
        };
        respelled |= visit(statement, &mut respelling).is_break();
    }
    respelled
}

/// Whether a name that may be a column's has capitals: DataFusion folds them, and finds no column with capitals.
pub(crate) fn has_capitals(statement: &mut Statement) -> bool {
    let mut capitals = first(|expr| {
        matches!(expr, Expr::Identifier(ident)
            if ident.quote_style.is_none() && ident.value.chars().any(char::is_uppercase))
    });
    visit(statement, &mut capitals).is_break()
}

/// Respells every unquoted identifier that only a column can answer to. That is a column of one spelling, in no table
/// written as DataFusion folds it. No other word or text of the statement (an alias, a field, a function) folds to the
/// same. False if there is none.
pub(crate) fn respell_plain(statement: &mut Statement, columns: &[String]) -> bool {
    let mut mentions = Mentions::default();
    if visit(statement, &mut mentions).is_break() {
        return false;
    }
    let Some(words) = words(&statement.to_string()) else {
        return false;
    };
    let spelling = |(name, count): (String, usize)| {
        let column = only_other_case(&name, columns.iter().map(String::as_str))?;
        (words.get(&name) == Some(&count)).then(|| (name, column.to_string()))
    };
    let spellings: HashMap<_, _> = mentions.counts.into_iter().filter_map(spelling).collect();
    let respelled = !spellings.is_empty();
    let ControlFlow::Continue(()) = visit(
        statement,
        &mut each(|expr| {
            if let Expr::Identifier(ident) = expr
                && ident.quote_style.is_none()
                && let Some(spelling) = spellings.get(&ident.value.to_lowercase())
            {
                ident.value.clone_from(spelling);
                ident.quote_style = Some('"');
            }
        }),
    );
    respelled
}

/// How often each word and each text stands in a printed statement, in lower case; none if parts of it read as a comment
/// or name columns by themselves.
fn words(text: &str) -> Option<HashMap<String, usize>> {
    let mut words: HashMap<String, usize> = HashMap::new();
    for token in Tokenizer::new(&GenericDialect {}, text).tokenize().ok()? {
        let word = match token {
            // Its columns have names that nobody wrote.
            Token::Word(word) if word.keyword == Keyword::VALUES => return None,
            Token::Word(word) => word.value,
            // An alias may stand in single quotes.
            Token::SingleQuotedString(text) => text,
            Token::Whitespace(Whitespace::Space | Whitespace::Newline | Whitespace::Tab) => {
                continue;
            }
            Token::Whitespace(_) => return None,
            _ => continue,
        };
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    Some(words)
}

/// How often each name stands alone and unquoted, in lower case. Breaks at tables whose columns no catalog knows and at
/// fields of structs.
#[derive(Default)]
struct Mentions {
    counts: HashMap<String, usize>,
}

impl VisitorMut for Mentions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { args: None, .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::CompoundFieldAccess { .. }) {
            return ControlFlow::Break(());
        }
        if let Expr::Identifier(ident) = expr
            && ident.quote_style.is_none()
        {
            *self.counts.entry(ident.value.to_lowercase()).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Finds the identifier and respells it: the one at the place, or, where DataFusion names none, the first that is not
/// quoted. It names none below `-x`, `NOT x` and `x || y`, in USING and in EXCLUDE.
struct Respelling<'a> {
    place: Option<Position>,
    /// In lower case.
    name: String,
    spelling: &'a str,
}

impl Respelling<'_> {
    /// Breaks once the identifier is found.
    fn offer(&self, ident: &mut Ident, start: Position) -> ControlFlow<()> {
        let is_here = self.place.is_none_or(|place| place == start);
        if !is_here || ident.quote_style.is_some() || ident.value.to_lowercase() != self.name {
            return ControlFlow::Continue(());
        }
        ident.value = self.spelling.to_string();
        ident.quote_style = Some('"');
        ControlFlow::Break(())
    }

    fn offer_name(&self, name: &mut ObjectName) -> ControlFlow<()> {
        match name.0.as_mut_slice() {
            [ObjectNamePart::Identifier(ident)] => {
                let start = start(ident);
                self.offer(ident, start)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn offer_using(&self, table: &mut TableWithJoins) -> ControlFlow<()> {
        for join in &mut table.joins {
            if let Some(JoinConstraint::Using(names)) = constraint(&mut join.join_operator) {
                for name in names {
                    self.offer_name(name)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn offer_exclude(&self, options: &mut WildcardAdditionalOptions) -> ControlFlow<()> {
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.offer_name(name),
            Some(ExcludeSelectItem::Multiple(names)) => {
                for name in names {
                    self.offer_name(name)?;
                }
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }
}

fn start(ident: &Ident) -> Position {
    Position {
        line: ident.span.start.line,
        column: ident.span.start.column,
    }
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

impl VisitorMut for Respelling<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item
            {
                self.offer_exclude(options)?;
            }
        }
        for table in &mut select.from {
            self.offer_using(table)?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.offer_using(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                let start = start(ident);
                self.offer(ident, start)
            }
            Expr::CompoundIdentifier(parts) => match parts.as_mut_slice() {
                [] => ControlFlow::Continue(()),
                [ident] => {
                    let start = start(ident);
                    self.offer(ident, start)
                }
                [first, .., last] => self.offer(last, start(first)),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    #[test]
    fn other_case() {
        fn check(name: &str, names: &[&str], expected: Option<&str>) {
            assert_eq!(only_other_case(name, names.iter().copied()), expected);
        }
        check("userid", &["UserID", "URL"], Some("UserID"));
        check("userid", &["UserID", "UserID"], Some("UserID"));
        check("userid", &["UserID", "userid"], None);
        check("userid", &["userid", "UserID"], None);
        check("userid", &["UserID", "USERID"], None);
        check("user", &["UserID"], None);
    }

    #[test]
    fn plain_names() {
        fn check(text: &str, expected: &str) {
            let mut statements = DFParser::parse_sql(text).unwrap();
            let statement = statements.front_mut().unwrap();
            let columns = ["UserID", "URL", "Title", "title"].map(String::from);
            assert_eq!(respell_plain(statement, &columns), text != expected);
            assert_eq!(statement.to_string(), expected);
        }
        check(
            "SELECT UserID, count(url) FROM t GROUP BY userid ORDER BY max(USERID)",
            "SELECT \"UserID\", count(\"URL\") FROM t GROUP BY \"UserID\" ORDER BY max(\"UserID\")",
        );
        for kept in [
            "SELECT a.UserID FROM t AS a WHERE UserID = 1",
            "SELECT UserID AS userid FROM t ORDER BY UserID",
            "SELECT UserID FROM (SELECT 1 AS \"userid\") AS s",
            "SELECT Title, \"userid\" FROM t",
            "SELECT UserID FROM numbers(3)",
            "SELECT 1 AS 'userid' FROM t ORDER BY UserID",
            "SELECT UserID FROM t, (VALUES (7)) AS v",
            "SELECT UserID FROM t, (VALUES (7) UNION ALL VALUES (8)) AS v",
            "SELECT s.UserID[1] FROM t",
        ] {
            check(kept, kept);
        }
    }
}
