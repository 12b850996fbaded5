//! PIVOT: values of a column become columns of aggregates.
//!
//! In: `t PIVOT (sum(x) FOR c IN ('a', 'b'))`, or the call that query_forms.rs puts for `PIVOT t ON c USING sum(x) GROUP BY k`.
//! Out: one grouping by the other columns, its aggregates once for each value, with FILTER.
//! Invariant: without a list the values are those of the input, sorted, without NULL; rows of other values keep their groups.
//! Not here: UNPIVOT (unpivot.rs).

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, Ident, PivotValueSource, Query, SelectItem, SetExpr,
    TableAlias, TableFactor, Value, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{
    derived, function_name, parse_expr, parse_query, plain_arguments, quoted, text,
};
use crate::sql::expand::{Catalog, Column, Scope, arguments_of};
use crate::sql::tokens::query_forms::PIVOT;
use crate::sql::tokens::table_forms::GROUP;
use crate::sql::walk::{Walk, each_up};

/// More columns than anyone reads; each is an aggregate.
const COLUMNS_MAX: usize = 10_000;

/// One column that is turned, with the values that become columns.
struct Turned {
    expr: Expr,
    /// A condition and a name for each.
    values: Vec<(Expr, String)>,
}

/// An aggregate, with its part of the names of columns.
struct Aggregate {
    expr: Expr,
    alias: Option<String>,
}

struct Pivot {
    source: Query,
    turned: Vec<Turned>,
    aggregates: Vec<Aggregate>,
    /// Items of the select list that are keys.
    keys: Vec<SelectItem>,
}

pub(super) fn expand(factor: &TableFactor, scope: &Scope<'_>) -> Result<Option<TableFactor>> {
    if let TableFactor::Pivot { alias, .. } = factor {
        let pivot = standard(factor, scope)?;
        let mut pivoted = derived(parse_query(&pivot.sql(scope.catalog)?)?, None);
        set_alias(&mut pivoted, alias.clone());
        return Ok(Some(pivoted));
    }
    let Some(queries) = arguments_of(factor, PIVOT) else {
        return Ok(None);
    };
    let [source, on, using, group] = queries.as_slice() else {
        return Ok(None);
    };
    let pivot = simplified(source, [on, using, group], scope)?;
    Ok(Some(derived(
        parse_query(&pivot.sql(scope.catalog)?)?,
        None,
    )))
}

pub(super) fn set_alias(factor: &mut TableFactor, to: Option<TableAlias>) {
    if let TableFactor::Derived { alias, .. } = factor {
        *alias = to;
    }
}

/// `PIVOT t ON c USING sum(x) GROUP BY k`.
fn simplified(source: &Query, [on, using, group]: [&Query; 3], scope: &Scope<'_>) -> Result<Pivot> {
    let mut turned = Vec::new();
    for item in items(on) {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            return Err(Error::unsupported("PIVOT ON takes columns and expressions"));
        };
        turned.push(match expr {
            Expr::InList {
                expr,
                list,
                negated: false,
            } => {
                let list = list.iter().map(|value| (value.clone(), None));
                listed(expr, list.collect())?
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: false,
            } => queried(expr, subquery, scope)?,
            expr => found(expr, source, scope)?,
        });
    }
    let mut aggregates = Vec::new();
    for item in items(using) {
        aggregates.push(match item {
            SelectItem::UnnamedExpr(expr) => Aggregate {
                expr: expr.clone(),
                alias: None,
            },
            SelectItem::ExprWithAlias { expr, alias } => Aggregate {
                expr: expr.clone(),
                alias: Some(alias.value.clone()),
            },
            _ => return Err(Error::unsupported("PIVOT USING takes aggregates")),
        });
    }
    if aggregates.is_empty() && !(turned.is_empty() && has_group(group)) {
        aggregates.push(Aggregate {
            expr: parse_expr("count(*)")?,
            alias: None,
        });
    }
    let mut keys: Vec<SelectItem> = items(group).to_vec();
    if keys.is_empty() && !turned.is_empty() {
        // All columns that are not turned and in no aggregate.
        keys = other_columns(source, &turned, &aggregates, scope)?;
    }
    Ok(Pivot {
        source: source.clone(),
        turned,
        aggregates,
        keys,
    })
}

/// The items behind the mark that begins a list.
pub(super) fn items(list: &Query) -> &[SelectItem] {
    match list.body.as_ref() {
        SetExpr::Select(select) => select.projection.get(1..).unwrap_or_default(),
        _ => &[],
    }
}

fn has_group(list: &Query) -> bool {
    !items(list).is_empty()
}

/// `t PIVOT (sum(x) AS s FOR c IN ('a' AS b))`.
fn standard(factor: &TableFactor, scope: &Scope<'_>) -> Result<Pivot> {
    let TableFactor::Pivot {
        table,
        aggregate_functions,
        value_column,
        value_source,
        default_on_null,
        ..
    } = factor
    else {
        return Err(Error::unsupported("PIVOT"));
    };
    let [expr] = value_column.as_slice() else {
        return Err(Error::unsupported("PIVOT FOR with several columns"));
    };
    let group = match default_on_null {
        None => None,
        Some(expr) => match keys_of(expr) {
            Some(keys) => Some(keys),
            None => {
                let message = "DEFAULT ON NULL in PIVOT; write coalesce around the columns";
                return Err(Error::unsupported(message));
            }
        },
    };
    let source = *parse_query(&format!("SELECT * FROM {table}"))?;
    let turned = match value_source {
        PivotValueSource::List(list) => {
            let list = list
                .iter()
                .map(|ExprWithAlias { expr, alias }| (expr.clone(), alias.clone()));
            listed(expr, list.collect())?
        }
        PivotValueSource::Any(order) if order.is_empty() => found(expr, &source, scope)?,
        PivotValueSource::Any(_) => return Err(Error::unsupported("PIVOT IN (ANY ORDER BY …)")),
        PivotValueSource::Subquery(query) => queried(expr, query, scope)?,
    };
    let turned = vec![turned];
    let aggregates: Vec<Aggregate> = aggregate_functions
        .iter()
        .map(|aggregate| Aggregate {
            expr: aggregate.expr.clone(),
            alias: aggregate.alias.as_ref().map(|alias| alias.value.clone()),
        })
        .collect();
    let keys = match group {
        Some(keys) => keys,
        None => other_columns(&source, &turned, &aggregates, scope)?,
    };
    Ok(Pivot {
        source,
        turned,
        aggregates,
        keys,
    })
}

/// The keys of GROUP BY, which table_forms.rs has put into a call.
fn keys_of(expr: &Expr) -> Option<Vec<SelectItem>> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let is_group = function_name(function).as_deref() == Some(GROUP);
    let keys = plain_arguments(function).filter(|_| is_group)?;
    Some(
        keys.into_iter()
            .cloned()
            .map(SelectItem::UnnamedExpr)
            .collect(),
    )
}

/// Columns of the source that neither what is turned nor an aggregate names.
fn other_columns(
    source: &Query,
    turned: &[Turned],
    aggregates: &[Aggregate],
    scope: &Scope<'_>,
) -> Result<Vec<SelectItem>> {
    let mut used = PivotNames::default();
    let all = turned.iter().map(|one| &one.expr);
    for expr in all.chain(aggregates.iter().map(|one| &one.expr)) {
        let _: ControlFlow<()> = expr.clone().walk(&mut used);
    }
    let columns = scope.columns(source.clone())?;
    let other = columns.iter().filter(|column| !used.has(column));
    Ok(other
        .map(|column| SelectItem::UnnamedExpr(Expr::Identifier(quoted(column.name()))))
        .collect())
}

/// Names in expressions.
#[derive(Default)]
pub(super) struct PivotNames {
    names: Vec<String>,
}

impl PivotNames {
    pub(super) fn has(&self, column: &Column) -> bool {
        self.names.iter().any(|name| column.has_name(name))
    }
}

impl VisitorMut for PivotNames {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.names.push(name.value.clone()),
            Expr::CompoundIdentifier(parts) => {
                self.names
                    .extend(parts.iter().map(|part| part.value.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Values that the statement lists.
fn listed(expr: &Expr, list: Vec<(Expr, Option<Ident>)>) -> Result<Turned> {
    let mut values = Vec::new();
    for (value, alias) in list {
        let (is_null, own) = match &value {
            Expr::Value(literal) => match &literal.value {
                Value::SingleQuotedString(text) => (false, text.clone()),
                Value::Null => (true, "NULL".to_string()),
                other => (false, other.to_string()),
            },
            Expr::UnaryOp { .. } | Expr::TypedString(_) | Expr::Cast { .. } => {
                (false, value.to_string())
            }
            Expr::Identifier(name) => (false, name.value.clone()),
            _ => return Err(Error::unsupported("PIVOT IN takes literals")),
        };
        // DuckDB takes a name for a text here.
        let value = match value {
            Expr::Identifier(name) => text(&name.value),
            value => value,
        };
        let condition = match is_null {
            true => Expr::IsNull(Box::new(expr.clone())),
            false => Expr::BinaryOp {
                left: Box::new(expr.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(value),
            },
        };
        values.push((condition, alias.map_or(own, |alias| alias.value)));
    }
    Ok(Turned {
        expr: expr.clone(),
        values,
    })
}

/// The values that a query has, in its order.
fn queried(expr: &Expr, query: &Query, scope: &Scope<'_>) -> Result<Turned> {
    let query = format!(
        "SELECT CAST(\"value of\" AS VARCHAR) AS \"text of value\", typeof(\"value of\") AS \"type of value\" FROM ({query}) AS \"values\"(\"value of\") WHERE \"value of\" IS NOT NULL"
    );
    named(expr, strings_of(scope, &query, expr)?)
}

/// The values that the source has.
fn found(expr: &Expr, source: &Query, scope: &Scope<'_>) -> Result<Turned> {
    let from = match source_alias(source) {
        Some(alias) => format!("({source}) AS {alias}"),
        None => format!("({source})"),
    };
    let values = values_of(scope, &format!("SELECT * FROM {from}"), expr)?;
    named(expr, values)
}

/// Distinct values as strings, in the order of the values.
fn values_of(scope: &Scope<'_>, from: &str, expr: &Expr) -> Result<Vec<TypedValue>> {
    let from = from.strip_prefix("SELECT * FROM ").unwrap_or(from);
    let query = format!(
        "SELECT CAST(\"value of\" AS VARCHAR) AS \"text of value\", typeof(\"value of\") AS \"type of value\" FROM (SELECT DISTINCT {expr} AS \"value of\" FROM {from}) AS \"values\" WHERE \"value of\" IS NOT NULL ORDER BY \"value of\""
    );
    strings_of(scope, &query, expr)
}

/// A value as a string, and its type.
type TypedValue = (String, String);

/// Types whose values may be equal while their strings are not: `-0.0`, `24 hours`.
const COMPARED_AS_VALUES: [&str; 3] = ["DOUBLE", "FLOAT", "INTERVAL"];

/// The strings and types of a query, each string once.
fn strings_of(scope: &Scope<'_>, query: &str, expr: &Expr) -> Result<Vec<TypedValue>> {
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for batch in scope.rows(*parse_query(query)?)? {
        let strings = |column: usize| {
            let strings = cast(batch.column(column), &DataType::Utf8);
            strings.map_err(|error| Error::Internal(error.to_string()))
        };
        let (values, types) = (strings(0)?, strings(1)?);
        let both = values
            .as_string::<i32>()
            .iter()
            .zip(types.as_string::<i32>());
        let both = both.filter_map(|(text, kind)| Some((text?.to_string(), kind?.to_string())));
        found.extend(both.filter(|(text, _)| known.insert(text.clone())));
    }
    match found.len() <= COLUMNS_MAX {
        true => Ok(found),
        false => Err(Error::unsupported(format!(
            "PIVOT ON {expr} with {} values; at most {COLUMNS_MAX} become columns: list those that are wanted with IN",
            found.len()
        ))),
    }
}

fn named(expr: &Expr, values: Vec<TypedValue>) -> Result<Turned> {
    let condition = |value: &str, kind: &str| {
        let value = text(value);
        parse_expr(&match COMPARED_AS_VALUES.contains(&kind) {
            true => format!("({expr}) = CAST({value} AS {kind})"),
            false => format!("CAST({expr} AS VARCHAR) = {value}"),
        })
    };
    let values = values
        .into_iter()
        .map(|(value, kind)| Ok((condition(&value, &kind)?, value)));
    Ok(Turned {
        expr: expr.clone(),
        values: values.collect::<Result<_>>()?,
    })
}

/// The name that columns of the source are qualified with.
pub(super) fn source_alias(source: &Query) -> Option<String> {
    let SetExpr::Select(select) = source.body.as_ref() else {
        return None;
    };
    let [table] = select.from.as_slice() else {
        return None;
    };
    let alias = match &table.relation {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => alias.name.to_string(),
        TableFactor::Table { name, .. } => name.0.last()?.as_ident()?.to_string(),
        _ => return None,
    };
    (table.joins.is_empty() && !alias.starts_with('\'')).then_some(alias)
}

impl Pivot {
    /// The grouping, as text.
    fn sql(&self, catalog: &dyn Catalog) -> Result<String> {
        let mut items: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let combined = self.combined()?;
        if combined.len().saturating_mul(self.aggregates.len()) > COLUMNS_MAX {
            return Err(Error::unsupported("PIVOT with more than 10000 columns"));
        }
        let has_names = self.aggregates.len() > 1;
        for (conditions, name) in &combined {
            for aggregate in &self.aggregates {
                let mut expr = aggregate.expr.clone();
                filter(&mut expr, conditions, catalog)?;
                let own = aggregate
                    .alias
                    .clone()
                    .unwrap_or_else(|| aggregate.expr.to_string());
                let name = match (name.is_empty(), has_names || aggregate.alias.is_some()) {
                    (true, _) => own,
                    (false, true) => format!("{name}_{own}"),
                    (false, false) => name.clone(),
                };
                items.push(format!("{expr} AS {}", quoted(&name)));
            }
        }
        let keys: Vec<String> = (1..=self.keys.len())
            .map(|place| place.to_string())
            .collect();
        let group = match keys.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {}", keys.join(", ")),
        };
        let alias =
            source_alias(&self.source).map_or_else(String::new, |alias| format!(" AS {alias}"));
        Ok(format!(
            "SELECT {} FROM ({}){alias}{group}",
            items.join(", "),
            self.source
        ))
    }

    /// Each combination of values, with its name.
    fn combined(&self) -> Result<Vec<(Vec<Expr>, String)>> {
        let mut combined: Vec<(Vec<Expr>, String)> = vec![(Vec::new(), String::new())];
        for turned in &self.turned {
            if combined.len().saturating_mul(turned.values.len()) > COLUMNS_MAX {
                return Err(Error::unsupported("PIVOT with more than 10000 columns"));
            }
            let mut next = Vec::new();
            for (conditions, name) in &combined {
                for (condition, value) in &turned.values {
                    let mut conditions = conditions.clone();
                    conditions.push(condition.clone());
                    let name = match name.is_empty() {
                        true => value.clone(),
                        false => format!("{name}_{value}"),
                    };
                    next.push((conditions, name));
                }
            }
            combined = next;
        }
        Ok(combined)
    }
}

/// Every aggregate within the expression sees only rows that fulfil all conditions.
fn filter(expr: &mut Expr, conditions: &[Expr], catalog: &dyn Catalog) -> Result<()> {
    let all = conditions
        .iter()
        .cloned()
        .map(|one| Expr::Nested(Box::new(one)));
    let Some(condition) = all.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    }) else {
        return Ok(());
    };
    let mut count = 0;
    let ControlFlow::Continue(()) = expr.walk(&mut each_up(|expr| {
        if let Expr::Function(function) = expr
            && function.over.is_none()
            && function_name(function).is_some_and(|name| catalog.is_aggregate(&name))
        {
            count += 1;
            let condition = match function.filter.take() {
                Some(own) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(own)),
                    op: BinaryOperator::And,
                    right: Box::new(condition.clone()),
                },
                None => condition.clone(),
            };
            function.filter = Some(Box::new(condition));
        }
    }));
    match count {
        0 => Err(Error::unsupported(format!(
            "{expr} in PIVOT, which is no aggregate"
        ))),
        _ => Ok(()),
    }
}
