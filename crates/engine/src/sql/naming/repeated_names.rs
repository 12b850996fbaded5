//! A name that a SELECT gives to two columns: `SELECT a, a`, `SELECT *, a`, `SELECT a, sum(b) AS a`.
//!
//! In: DataFusion's error that a name is there twice, and the parsed statement. Out: the statement with `_1` after the
//! name of the later one, as DuckDB names the columns of a table that is made so. Or with the text of its cast, of
//! which DataFusion takes no notice in names. DataFusion can be asked again.
//! Invariant: a statement that DataFusion plans is never touched; the column that is named first keeps its name. Each
//! renaming makes a name unique within its SELECT, so asking again comes to an end.
//! Not here: names that differ by their table only, as of a join; DataFusion lets those be.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Select, SelectItem,
    VisitorMut,
};

use crate::functions::AT_TIME_ZONE;
use crate::sql::walk::{Walk, each_up, visit};

/// How DataFusion's error about a projection begins.
const PROJECTION: &str = "Projections require unique expression names";

/// What DataFusion's errors about names of all plans have in common.
const UNIQUE: &str = "require unique expression names";

/// Renames what `error` complains about; false if it is about something else, or nothing is left to rename.
pub fn rename_repeated(statement: &mut Statement, error: &DataFusionError) -> bool {
    let Some(name) = repeated(error.find_root()) else {
        return false;
    };
    // Beside `*` it is not known which names there are, but for the one that DataFusion has met twice.
    [None, Some(name)].into_iter().any(|beside_wildcard| {
        let mut renaming = RepeatedNames {
            beside_wildcard,
            renamed: false,
        };
        let ControlFlow::Continue(()) = visit(statement, &mut renaming);
        renaming.renamed
    })
}

/// Gives the second of two items that have one name for DataFusion, and two strings, its text as its name: `1.0` and `1.00`,
/// `s.x` and `s['x']`. False if there is no such item.
pub fn rename_place(statement: &mut Statement, error: &DataFusionError) -> bool {
    let DataFusionError::Plan(message) = error.find_root() else {
        return false;
    };
    let places = message.split(" at position ").skip(1);
    let places = places.filter_map(|rest| rest.split(' ').next()?.parse().ok());
    let places: Vec<usize> = places.collect();
    let (true, [first, second]) = (message.starts_with(PROJECTION), places.as_slice()) else {
        return false;
    };
    let mut naming = NamingPlace {
        first: *first,
        second: *second,
        renamed: false,
    };
    let ControlFlow::Continue(()) = visit(statement, &mut naming);
    naming.renamed
}

/// Names the item at a place. The error does not say in which SELECT it is: it may be any that has items there.
struct NamingPlace {
    first: usize,
    second: usize,
    renamed: bool,
}

impl VisitorMut for NamingPlace {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let items = &mut select.projection;
        if items.iter().any(is_wildcard) || self.first >= items.len() {
            return ControlFlow::Continue(());
        }
        let taken: Vec<_> = items
            .iter()
            .filter_map(|item| name_of(item, Casts::Kept))
            .collect();
        let Some(item @ SelectItem::UnnamedExpr(_)) = items.get_mut(self.second) else {
            return ControlFlow::Continue(());
        };
        if let Some(text) = name_of(item, Casts::Kept) {
            let is_taken = |name: &String| {
                let same = taken
                    .iter()
                    .filter(|taken| taken.eq_ignore_ascii_case(name));
                same.count() > usize::from(*name == text)
            };
            let numbered = (1..).map(|number| format!("{text}_{number}"));
            let mut names = std::iter::once(text.clone()).chain(numbered);
            let free = names.find(|name| !is_taken(name));
            name_item(item, free.unwrap_or_else(|| text.clone()));
            self.renamed = true;
        }
        ControlFlow::Continue(())
    }
}

/// Whether the error says that a name is there twice, of whatever kind of plan.
pub fn is_repeated(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::Plan(message) => message.contains(UNIQUE),
        error => repeated(error).is_some(),
    }
}

/// The name that is there twice, in lower case.
fn repeated(error: &DataFusionError) -> Option<String> {
    let name = match error {
        DataFusionError::Plan(message) if message.starts_with(PROJECTION) => {
            let quoted: Vec<&str> = message.split('"').collect();
            // The expression of the second column, with its alias.
            let second = quoted.get(3)?;
            let alias = second.rsplit_once(" AS ").map(|(_, alias)| alias);
            let column = || {
                second
                    .rsplit_once('.')
                    .map_or(*second, |(_, column)| column)
            };
            alias.unwrap_or_else(column).to_owned()
        }
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::AmbiguousReference { field } => field.name.clone(),
            SchemaError::DuplicateQualifiedField { name, .. }
            | SchemaError::DuplicateUnqualifiedField { name } => name.clone(),
            SchemaError::FieldNotFound { .. } => return None,
        },
        _ => return None,
    };
    Some(name.to_lowercase())
}

struct RepeatedNames {
    /// The name that an item beside a wildcard must not have.
    beside_wildcard: Option<String>,
    renamed: bool,
}

impl VisitorMut for RepeatedNames {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let has_wildcard = select.projection.iter().any(is_wildcard);
        if has_wildcard {
            taken.extend(self.beside_wildcard.clone());
        }
        for item in &mut select.projection {
            let bare = name_of(item, Casts::Left).zip(name_of(item, Casts::Kept));
            let Some((name, text)) = bare else {
                continue;
            };
            if !taken.insert(name.to_lowercase()) {
                let numbered = (1..).map(|number| format!("{name}_{number}"));
                let mut names = std::iter::once(text).chain(numbered);
                let free = names.find(|free| taken.insert(free.to_lowercase()));
                name_item(item, free.unwrap_or(name));
                self.renamed = true;
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

/// Whether the name of an expression tells its casts: DataFusion's does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Casts {
    Left,
    Kept,
}

/// The name of the column that an item makes; that of an expression is its text without the names of tables.
fn name_of(item: &SelectItem, casts: Casts) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => {
            let mut expr = expr.clone();
            let ControlFlow::Continue(()) = expr.walk(&mut each_up(|expr| unqualify(expr, casts)));
            Some(match &expr {
                Expr::Identifier(column) => column.value.clone(),
                other => other.to_string(),
            })
        }
        _ => None,
    }
}

fn name_item(item: &mut SelectItem, name: String) {
    if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
        *item = SelectItem::ExprWithAlias {
            expr: expr.clone(),
            alias: Ident::with_quote('"', name),
        };
    }
}

/// The value and the zone of our call for AT TIME ZONE, which is no more in a name than a cast.
pub(in crate::sql) fn zoned(function: &Function) -> Option<[Expr; 2]> {
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [value, zone] = list.args.as_slice() else {
        return None;
    };
    let plain = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    (name.value == AT_TIME_ZONE).then_some([plain(value)?, plain(zone)?])
}

/// Takes the names of tables out of an expression, and perhaps its casts.
fn unqualify(expr: &mut Expr, casts: Casts) {
    let inner = match expr {
        Expr::CompoundIdentifier(parts) => parts.pop().map(Expr::Identifier),
        Expr::Nested(inner) => Some(inner.as_ref().clone()),
        Expr::Cast { expr, .. } if casts == Casts::Left => Some(expr.as_ref().clone()),
        Expr::TypedString(text) if casts == Casts::Left => Some(Expr::Value(text.value.clone())),
        Expr::Function(function) => zoned(function).map(|[value, zone]| match casts {
            Casts::Left => value,
            Casts::Kept => Expr::AtTimeZone {
                timestamp: Box::new(value),
                time_zone: Box::new(zone),
            },
        }),
        _ => None,
    };
    if let Some(inner) = inner {
        *expr = inner;
    }
}
