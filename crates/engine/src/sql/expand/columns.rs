//! Many columns at once: `COLUMNS('regex')`, `COLUMNS(*)`, `* RENAME (a AS b)`, `* ILIKE 'a%'`, `s.*` of a struct.
//!
//! In: a SELECT, the columns of its FROM. Out: the SELECT with one item for each column; a condition for all of them.
//! Invariant: an item has the name of its column, or the alias that is written; a pattern that no column has is an error.
//! Not here: `*` alone and with EXCLUDE, which DataFusion plans; it drops what REPLACE says of columns that are not there.

use std::ops::ControlFlow;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Ident, LambdaFunction, ObjectName, OrderByExpr,
    OrderByKind, Query, RenameSelectItem, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, Subscript, TableFactor, TableWithJoins, VisitorMut, WildcardAdditionalOptions,
};

use crate::error::{Error, Result};
use crate::sql::ast::{factors, function_name, literal_text, parse_query, quoted, text};
use crate::sql::expand::{Column, Scope};
use crate::sql::tokens::table_forms::UNPACKED;
use crate::sql::walk::{Walk, each, first};

/// The function that stands for columns.
pub(super) const COLUMNS: &str = "columns";

/// A column that is chosen: its name in the result, and what it is.
#[derive(Debug, Clone)]
pub(crate) struct ChosenColumn {
    /// The column's own name.
    pub column: String,
    pub name: String,
    pub expr: Expr,
}

pub(super) fn expand(select: &mut Select, scope: &Scope<'_>) -> Result<()> {
    let tables = names_in_from(&select.from);
    let has_columns = select.projection.iter().any(|item| is_short(item, &tables))
        || conditions(select).into_iter().any(calls_columns);
    if !has_columns {
        return Ok(());
    }
    let columns = scope.columns_from(&select.from)?;
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match is_short(&item, &tables) {
            true => items.extend(expanded(item, &columns, scope)?),
            false => items.push(item),
        }
    }
    select.projection = items;
    for condition in conditions(select) {
        if calls_columns(condition) {
            let each = per_column(condition, &columns, scope)?;
            let all = each
                .into_iter()
                .map(|(_, expr)| Expr::Nested(Box::new(expr)));
            let all = all.reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::And,
                right: Box::new(right),
            });
            *condition = all.unwrap_or_else(|| condition.clone());
        }
    }
    Ok(())
}

/// `ORDER BY COLUMNS('a|b')` orders by each of the columns.
pub(super) fn in_order(query: &mut Query, scope: &Scope<'_>) -> Result<()> {
    let (Some(order_by), SetExpr::Select(select)) = (&mut query.order_by, query.body.as_ref())
    else {
        return Ok(());
    };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else {
        return Ok(());
    };
    if !keys.iter_mut().any(|key| calls_columns(&mut key.expr)) {
        return Ok(());
    }
    let columns = scope.columns_from(&select.from)?;
    let mut each = Vec::new();
    for key in keys.iter() {
        let exprs = per_column(&key.expr, &columns, scope)?;
        each.extend(exprs.into_iter().map(|(_, expr)| OrderByExpr {
            expr,
            ..key.clone()
        }));
    }
    *keys = each;
    Ok(())
}

fn conditions(select: &mut Select) -> Vec<&mut Expr> {
    let all = [
        &mut select.selection,
        &mut select.prewhere,
        &mut select.having,
        &mut select.qualify,
    ];
    all.into_iter().flatten().collect()
}

/// Names that tables of FROM go by, in lower case.
fn names_in_from(from: &[TableWithJoins]) -> Vec<String> {
    let mut names = Vec::new();
    for factor in factors(from) {
        names_of(factor, &mut names);
    }
    names
}

fn names_of(factor: &TableFactor, names: &mut Vec<String>) {
    let alias = match factor {
        TableFactor::Table { name, alias, .. } => {
            let last = name.0.last().and_then(|part| part.as_ident());
            names.extend(last.map(|name| name.value.to_lowercase()));
            alias
        }
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            names.extend(names_in_from(std::slice::from_ref(table_with_joins)));
            alias
        }
        TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias,
        _ => return,
    };
    names.extend(alias.iter().map(|alias| alias.name.value.to_lowercase()));
}

/// Whether an item is one that is expanded here.
fn is_short(item: &SelectItem, tables: &[String]) -> bool {
    match item {
        SelectItem::Wildcard(options) => renames(options),
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(name),
            options,
        ) => {
            let last = name.0.last().and_then(|part| part.as_ident());
            let is_table = last.is_some_and(|name| tables.contains(&name.value.to_lowercase()));
            renames(options) || !is_table
        }
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            calls_columns(&mut expr.clone())
        }
        _ => false,
    }
}

fn renames(options: &WildcardAdditionalOptions) -> bool {
    let replaces = options.opt_replace.is_some();
    options.opt_rename.is_some() || options.opt_ilike.is_some() || replaces
}

pub(super) fn calls_columns(expr: &mut Expr) -> bool {
    expr.walk_outside_queries(&mut first(|expr| call_of(expr).is_some()))
        .is_break()
}

/// How a call stands for columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// One after the other.
    Each,
    /// All as arguments of one call.
    Unpacked,
}

fn call_of(expr: &Expr) -> Option<(&Function, Use)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    match function_name(function)?.as_str() {
        COLUMNS => Some((function, Use::Each)),
        UNPACKED => Some((function, Use::Unpacked)),
        _ => None,
    }
}

fn expanded(item: SelectItem, columns: &[Column], scope: &Scope<'_>) -> Result<Vec<SelectItem>> {
    let named = |chosen: ChosenColumn| SelectItem::ExprWithAlias {
        expr: chosen.expr,
        alias: quoted(&chosen.name),
    };
    Ok(match item {
        SelectItem::Wildcard(options) => {
            let all = columns.iter().collect();
            with_options(all, &options, scope)?
                .into_iter()
                .map(named)
                .collect()
        }
        SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(name),
            options,
        ) => match of_table(&name, columns) {
            of_table if !of_table.is_empty() && renames(&options) => {
                with_options(of_table, &options, scope)?
                    .into_iter()
                    .map(named)
                    .collect()
            }
            of_table if of_table.is_empty() => match fields_of(&name, columns) {
                Some(fields) => as_options_say(fields, &options, scope)?
                    .into_iter()
                    .map(named)
                    .collect(),
                None => vec![SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                )],
            },
            _ => vec![SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            )],
        },
        SelectItem::UnnamedExpr(expr) => {
            let each = per_column(&expr, columns, scope)?.into_iter();
            each.map(|(chosen, expr)| match chosen {
                Some(chosen) => SelectItem::ExprWithAlias {
                    expr,
                    alias: quoted(&chosen.name),
                },
                None => SelectItem::UnnamedExpr(expr),
            })
            .collect()
        }
        SelectItem::ExprWithAlias { expr, alias } => {
            let pattern = pattern_in(&expr);
            let mut items = Vec::new();
            for (chosen, expr) in per_column(&expr, columns, scope)? {
                let alias = match (&chosen, &pattern) {
                    (Some(chosen), Some(pattern)) if alias.value.contains('\\') => {
                        quoted(&with_groups(&alias.value, pattern, &chosen.column, scope)?)
                    }
                    _ => alias.clone(),
                };
                items.push(SelectItem::ExprWithAlias { expr, alias });
            }
            items
        }
        other => vec![other],
    })
}

fn of_table<'a>(name: &ObjectName, columns: &'a [Column]) -> Vec<&'a Column> {
    let last = name.0.last().and_then(|part| part.as_ident());
    let is_of = |column: &&Column| {
        let table = column.table.last();
        last.zip(table)
            .is_some_and(|(name, table)| table.eq_ignore_ascii_case(&name.value))
    };
    columns.iter().filter(is_of).collect()
}

/// The fields of a column that is a struct.
fn fields_of(name: &ObjectName, columns: &[Column]) -> Option<Vec<ChosenColumn>> {
    let names: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
    let names = names?;
    let column = columns.iter().find(|column| match names.as_slice() {
        [only] => column.has_name(&only.value),
        [table, only] => {
            column.has_name(&only.value)
                && column
                    .table
                    .last()
                    .is_some_and(|own| own.eq_ignore_ascii_case(&table.value))
        }
        _ => false,
    })?;
    let DataType::Struct(fields) = column.data_type() else {
        return None;
    };
    let chosen = fields.iter().map(|field| ChosenColumn {
        column: field.name().clone(),
        name: field.name().clone(),
        expr: Expr::CompoundFieldAccess {
            root: Box::new(column.expr()),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index {
                index: text(field.name()),
            })],
        },
    });
    Some(chosen.collect())
}

/// Columns as the options behind `*` leave them.
fn with_options(
    columns: Vec<&Column>,
    options: &WildcardAdditionalOptions,
    scope: &Scope<'_>,
) -> Result<Vec<ChosenColumn>> {
    let chosen = columns.into_iter().map(|column| ChosenColumn {
        column: column.name().to_string(),
        name: column.name().to_string(),
        expr: column.expr(),
    });
    as_options_say(chosen.collect(), options, scope)
}

fn as_options_say(
    mut chosen: Vec<ChosenColumn>,
    options: &WildcardAdditionalOptions,
    scope: &Scope<'_>,
) -> Result<Vec<ChosenColumn>> {
    let names: Vec<String> = chosen.iter().map(|one| one.column.clone()).collect();
    for name in excluded(options) {
        let before = chosen.len();
        chosen.retain(|one| !one.column.eq_ignore_ascii_case(&name));
        if chosen.len() == before {
            return Err(unknown(&name, &names));
        }
    }
    for item in options
        .opt_replace
        .iter()
        .flat_map(|replace| &replace.items)
    {
        let name = &item.column_name.value;
        match find(&mut chosen, name) {
            Some(one) => one.expr = item.expr.clone(),
            None => return Err(unknown(name, &names)),
        }
    }
    let renamed = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => std::slice::from_ref(one),
        Some(RenameSelectItem::Multiple(all)) => all.as_slice(),
        None => &[],
    };
    for rename in renamed {
        match find(&mut chosen, &rename.ident.value) {
            Some(one) => one.name.clone_from(&rename.alias.value),
            None => return Err(unknown(&rename.ident.value, &names)),
        }
    }
    match &options.opt_ilike {
        Some(ilike) => {
            let condition = format!("name ILIKE {}", text(&ilike.pattern));
            keep(chosen, "name", &condition, scope)
        }
        None => Ok(chosen),
    }
}

fn find<'a>(chosen: &'a mut [ChosenColumn], name: &str) -> Option<&'a mut ChosenColumn> {
    chosen
        .iter_mut()
        .find(|one| one.column.eq_ignore_ascii_case(name))
}

fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    let last = |name: &ObjectName| {
        let ident = name.0.last().and_then(|part| part.as_ident());
        ident.map(|ident| ident.value.clone())
    };
    let mut names: Vec<String> = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => last(name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(last).collect(),
        None => Vec::new(),
    };
    if let Some(ExceptSelectItem {
        first_element,
        additional_elements,
    }) = &options.opt_except
    {
        let except = std::iter::once(first_element).chain(additional_elements);
        names.extend(except.map(|name| name.value.clone()));
    }
    names
}

fn unknown(name: &str, names: &[String]) -> Error {
    Error::UnknownColumn {
        name: name.to_string(),
        nearest: crate::error::nearest_names(name, names.iter().map(String::as_str)),
        position: None,
    }
}

/// An expression once for each column that its COLUMNS stand for.
pub(super) fn per_column(
    expr: &Expr,
    columns: &[Column],
    scope: &Scope<'_>,
) -> Result<Vec<(Option<ChosenColumn>, Expr)>> {
    let mut calls = ColumnsCalls::default();
    let _: ControlFlow<()> = expr.clone().walk(&mut calls);
    let mut unpacked = expr.clone();
    if let Some(call) = calls.unpacked.first() {
        let all = chosen_by(call, columns, scope)?;
        let ControlFlow::Continue(()) = unpacked.walk(&mut each(|expr| unpack(expr, &all)));
    }
    let Some(first) = calls.each.first() else {
        return Ok(vec![(None, unpacked)]);
    };
    if calls.each.iter().any(|other| other.args != first.args) {
        let message = "COLUMNS with different columns in one expression; write one item for each";
        return Err(Error::unsupported(message));
    }
    let chosen = chosen_by(first, columns, scope)?;
    let each = chosen.into_iter().map(|one| {
        let mut expr = unpacked.clone();
        let ControlFlow::Continue(()) = expr.walk(&mut each(|expr| {
            if matches!(call_of(expr), Some((_, Use::Each))) {
                *expr = one.expr.clone();
            }
        }));
        (Some(one), expr)
    });
    Ok(each.collect())
}

/// All calls of COLUMNS within an expression.
#[derive(Default)]
struct ColumnsCalls {
    each: Vec<Function>,
    unpacked: Vec<Function>,
}

impl VisitorMut for ColumnsCalls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match call_of(expr) {
            Some((call, Use::Each)) => self.each.push(call.clone()),
            Some((call, Use::Unpacked)) => self.unpacked.push(call.clone()),
            None => {}
        }
        ControlFlow::Continue(())
    }
}

/// The regular expression of the COLUMNS in an expression, if it is one.
fn pattern_in(expr: &Expr) -> Option<String> {
    let mut calls = ColumnsCalls::default();
    let _: ControlFlow<()> = expr.clone().walk(&mut calls);
    let FunctionArguments::List(list) = &calls.each.first()?.args else {
        return None;
    };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => {
            literal_text(expr).map(str::to_string)
        }
        _ => None,
    }
}

/// The columns that a call of COLUMNS stands for.
fn chosen_by(call: &Function, columns: &[Column], scope: &Scope<'_>) -> Result<Vec<ChosenColumn>> {
    let all = || {
        with_options(
            columns.iter().collect(),
            &WildcardAdditionalOptions::default(),
            scope,
        )
    };
    let FunctionArguments::List(list) = &call.args else {
        return Err(no_columns(call));
    };
    let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else {
        return Err(no_columns(call));
    };
    let chosen = match argument {
        FunctionArgExpr::Wildcard => all()?,
        FunctionArgExpr::WildcardWithOptions(options) => {
            with_options(columns.iter().collect(), options, scope)?
        }
        FunctionArgExpr::QualifiedWildcard(name) => {
            let of_table = of_table(name, columns);
            with_options(of_table, &WildcardAdditionalOptions::default(), scope)?
        }
        FunctionArgExpr::Expr(Expr::Lambda(LambdaFunction { params, body, .. })) => {
            let parameter = params
                .iter()
                .next()
                .map(|parameter| parameter.name.to_string());
            let parameter = parameter.ok_or_else(|| no_columns(call))?;
            keep(all()?, &parameter, &body.to_string(), scope)?
        }
        FunctionArgExpr::Expr(Expr::Array(array)) => {
            let of_all: Vec<String> = columns.iter().map(|one| one.name().to_string()).collect();
            let mut all = all()?;
            let mut names = Vec::new();
            for name in &array.elem {
                let name = literal_text(name).ok_or_else(|| no_columns(call))?;
                let found = find(&mut all, name).ok_or_else(|| unknown(name, &of_all))?;
                names.push(found.column.clone());
            }
            // The order is that of the tables.
            all.retain(|one| names.contains(&one.column));
            all
        }
        FunctionArgExpr::Expr(expr) => {
            let pattern = literal_text(expr).ok_or_else(|| no_columns(call))?;
            let condition = format!("regexp_like(name, {})", text(pattern));
            keep(all()?, "name", &condition, scope)?
        }
    };
    match chosen.is_empty() {
        true => Err(no_columns(call)),
        false => Ok(chosen),
    }
}

fn no_columns(call: &Function) -> Error {
    Error::planning(format!(
        "{call} stands for no column; COLUMNS takes *, a regular expression, a list of names or a lambda of the name"
    ))
}

/// Those whose name, as `parameter`, fulfils a condition.
fn keep(
    chosen: Vec<ChosenColumn>,
    parameter: &str,
    condition: &str,
    scope: &Scope<'_>,
) -> Result<Vec<ChosenColumn>> {
    if chosen.is_empty() {
        return Ok(chosen);
    }
    let rows: Vec<String> = chosen
        .iter()
        .enumerate()
        .map(|(place, one)| format!("({place}, {})", text(&one.column)))
        .collect();
    let query = format!(
        "SELECT CAST(\"place of\" AS BIGINT) FROM (VALUES {}) AS \"names\"(\"place of\", {parameter}) WHERE {condition} ORDER BY 1",
        rows.join(", ")
    );
    let mut kept = Vec::new();
    for batch in scope.catalog.rows(*parse_query(&query)?)? {
        let places = batch.column(0).as_primitive::<Int64Type>();
        let places = places
            .values()
            .iter()
            .filter_map(|place| usize::try_from(*place).ok());
        kept.extend(places.filter_map(|place| chosen.get(place).cloned()));
    }
    Ok(kept)
}

/// `\1` and the like in an alias are the groups of the pattern in the column's name.
fn with_groups(alias: &str, pattern: &str, column: &str, scope: &Scope<'_>) -> Result<String> {
    let alias = alias.replace("\\0", "\\1");
    let (pattern, alias) = match alias.contains("\\1") && !pattern.contains('(') {
        true => (format!("({pattern})"), alias),
        false => (pattern.to_string(), alias),
    };
    let query = format!(
        "SELECT CAST(regexp_replace({}, {}, {}) AS VARCHAR)",
        text(column),
        text(&format!("(?s)^.*?(?:{pattern}).*$")),
        text(&alias)
    );
    let rows = scope.catalog.rows(*parse_query(&query)?)?;
    let first = rows.first().and_then(|batch| {
        let name = datafusion::arrow::compute::cast(batch.column(0), &DataType::Utf8).ok()?;
        name.as_string_opt::<i32>()
            .map(|names| names.value(0).to_string())
    });
    first.ok_or_else(|| Error::Internal("an alias without a value".to_string()))
}

/// Puts all columns in the place of an argument.
fn unpack(expr: &mut Expr, columns: &[ChosenColumn]) {
    let all = || columns.iter().map(|one| one.expr.clone());
    match expr {
        Expr::Function(function) => {
            if let FunctionArguments::List(list) = &mut function.args {
                let arguments = std::mem::take(&mut list.args);
                list.args = arguments
                    .into_iter()
                    .flat_map(|argument| match &argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))
                            if matches!(call_of(inner), Some((_, Use::Unpacked))) =>
                        {
                            all()
                                .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)))
                                .collect()
                        }
                        _ => vec![argument],
                    })
                    .collect();
            }
        }
        Expr::Array(array) => {
            let elements = std::mem::take(&mut array.elem);
            array.elem = elements
                .into_iter()
                .flat_map(|element| match call_of(&element) {
                    Some((_, Use::Unpacked)) => all().collect(),
                    _ => vec![element],
                })
                .collect();
        }
        _ => {}
    }
}
