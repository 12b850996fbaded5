//! UNPIVOT: columns become rows of a name and a value.
//!
//! In: `t UNPIVOT (v FOR n IN (a, b))`, or the call that query_forms.rs puts for `UNPIVOT t ON a, b INTO NAME n VALUE v`.
//! Out: the other columns beside a list of names and lists of values, unnested.
//! Invariant: rows keep their order; a value that is NULL has a row only where NULLs are included; values of one column have
//! one kind of type.
//! Not here: PIVOT (pivot.rs).

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, NullInclusion, Query, SelectItem,
    TableFactor, WildcardAdditionalOptions,
};

use crate::error::types::type_name;
use crate::error::{Error, Result};
use crate::sql::ast::{call, derived, parse_query, quoted, text};
use crate::sql::expand::columns::{COLUMNS, ChosenColumn, calls_columns, per_column};
use crate::sql::expand::pivot::{PivotNames, items, set_alias, source_alias};
use crate::sql::expand::{Column, Scope, arguments_of};
use crate::sql::tokens::query_forms::UNPIVOT;
use crate::sql::walk::Walk;

/// A value that is stacked: a column, or an expression of one.
struct StackedValue {
    column: Ident,
    expr: Expr,
}

/// Values that make one row, with the name it gets.
struct Stacked {
    /// Where there is none, it is the names of the columns.
    name: Option<String>,
    values: Vec<StackedValue>,
}

impl Stacked {
    fn name(&self, columns: &[Column]) -> Result<String> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => {
                let found = self.values.iter().map(|one| find(&one.column, columns));
                let names: Vec<&str> = found
                    .map(|column| column.map(Column::name))
                    .collect::<Result<_>>()?;
                Ok(names.join("_"))
            }
        }
    }
}

struct Unpivot {
    source: Query,
    stacked: Vec<Stacked>,
    name: Ident,
    values: Vec<Ident>,
    nulls: NullInclusion,
}

pub(super) fn expand(factor: &TableFactor, scope: &Scope<'_>) -> Result<Option<TableFactor>> {
    if let TableFactor::Unpivot {
        table,
        value,
        name,
        columns,
        null_inclusion,
        alias,
    } = factor
    {
        let source = *parse_query(&format!("SELECT * FROM {table}"))?;
        let items = columns
            .iter()
            .map(|one| (one.expr.clone(), one.alias.clone()));
        let unpivot = Unpivot {
            stacked: stacked(items.collect(), &source, scope)?,
            source,
            name: name.clone(),
            values: identifiers(value)?,
            nulls: null_inclusion
                .clone()
                .unwrap_or(NullInclusion::ExcludeNulls),
        };
        let mut unpivoted = derived(parse_query(&unpivot.sql(scope)?)?, None);
        set_alias(&mut unpivoted, alias.clone());
        return Ok(Some(unpivoted));
    }
    let Some(queries) = arguments_of(factor, UNPIVOT) else {
        return Ok(None);
    };
    let [source, on, names] = queries.as_slice() else {
        return Ok(None);
    };
    let columns = items(on).iter().map(|item| match item {
        SelectItem::UnnamedExpr(expr) => Ok((expr.clone(), None)),
        SelectItem::ExprWithAlias { expr, alias } => Ok((expr.clone(), Some(alias.clone()))),
        // `*` and `* EXCLUDE (id)` are COLUMNS of the same.
        SelectItem::Wildcard(options) => Ok((columns_of(options), None)),
        _ => Err(Error::planning(
            "UNPIVOT ON takes columns; write COLUMNS(*) for all",
        )),
    });
    let stacked = stacked(columns.collect::<Result<_>>()?, source, scope)?;
    let mut names = items(names).iter().map(|item| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Ok(name.clone()),
        _ => Err(Error::planning(
            "INTO NAME … VALUE … takes names of columns",
        )),
    });
    let name = names.next().transpose()?.unwrap_or_else(|| quoted("name"));
    let mut values = names.collect::<Result<Vec<Ident>>>()?;
    if values.is_empty() {
        values.push(quoted("value"));
    }
    let unpivot = Unpivot {
        source: (*source).clone(),
        stacked,
        name,
        values,
        nulls: NullInclusion::ExcludeNulls,
    };
    Ok(Some(derived(parse_query(&unpivot.sql(scope)?)?, None)))
}

/// `COLUMNS(*)` with what stands behind the star.
fn columns_of(options: &WildcardAdditionalOptions) -> Expr {
    let mut all = call(COLUMNS, vec![text("")]);
    if let Expr::Function(function) = &mut all
        && let FunctionArguments::List(list) = &mut function.args
    {
        let star = FunctionArgExpr::WildcardWithOptions(options.clone());
        list.args = vec![FunctionArg::Unnamed(star)];
    }
    all
}

fn identifiers(expr: &Expr) -> Result<Vec<Ident>> {
    match expr {
        Expr::Identifier(name) => Ok(vec![name.clone()]),
        Expr::CompoundIdentifier(parts) => Ok(parts.last().cloned().into_iter().collect()),
        Expr::Nested(inner) => identifiers(inner),
        Expr::Tuple(parts) => Ok(parts
            .iter()
            .map(identifiers)
            .collect::<Result<Vec<_>>>()?
            .concat()),
        other => Err(Error::planning(format!(
            "UNPIVOT takes names of columns, not {other}"
        ))),
    }
}

/// The values of one row: names of columns, or expressions of one column each.
fn values_of(expr: &Expr, columns: &[Column]) -> Result<Vec<StackedValue>> {
    match expr {
        Expr::Nested(inner) => return values_of(inner, columns),
        Expr::Tuple(parts) => {
            let values = parts.iter().map(|part| values_of(part, columns));
            return Ok(values
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect());
        }
        _ => {}
    }
    if let Expr::Identifier(_) | Expr::CompoundIdentifier(_) = expr {
        let named = identifiers(expr)?.into_iter();
        let values = named.map(|name| {
            let own = quoted(find(&name, columns)?.name());
            let expr = Expr::Identifier(own);
            Ok(StackedValue { column: name, expr })
        });
        return values.collect();
    }
    let mut names = PivotNames::default();
    let _: ControlFlow<()> = expr.clone().walk(&mut names);
    let used: Vec<&Column> = columns.iter().filter(|column| names.has(column)).collect();
    match used.as_slice() {
        [only] => Ok(vec![StackedValue {
            column: quoted(only.name()),
            expr: expr.clone(),
        }]),
        _ => Err(Error::planning(format!(
            "UNPIVOT takes columns and expressions of one column, not {expr}"
        ))),
    }
}

fn stacked(
    items: Vec<(Expr, Option<Ident>)>,
    source: &Query,
    scope: &Scope<'_>,
) -> Result<Vec<Stacked>> {
    let columns = scope.columns(source.clone())?;
    // The source stands in parentheses: its columns have no table's name.
    let columns: Vec<Column> = columns
        .into_iter()
        .map(|column| Column {
            table: Vec::new(),
            ..column
        })
        .collect();
    let mut stacked = Vec::new();
    for (expr, alias) in items {
        let alias = alias.map(|alias| alias.value);
        if !calls_columns(&mut expr.clone()) {
            let values = values_of(&expr, &columns)?;
            stacked.push(Stacked {
                name: alias,
                values,
            });
            continue;
        }
        for (chosen, expr) in per_column(&expr, &columns, scope)? {
            let Some(ChosenColumn { column, name, .. }) = chosen else {
                continue;
            };
            let column = quoted(&column);
            stacked.push(Stacked {
                name: alias.clone().or(Some(name)),
                values: vec![StackedValue { column, expr }],
            });
        }
    }
    Ok(stacked)
}

impl Unpivot {
    fn sql(&self, scope: &Scope<'_>) -> Result<String> {
        let columns = scope.columns(self.source.clone())?;
        let width = self.values.len();
        for one in &self.stacked {
            if one.values.len() != width {
                return Err(Error::planning(format!(
                    "UNPIVOT stacks {} columns as '{}' into {width}",
                    one.values.len(),
                    one.name(&columns)?
                )));
            }
        }
        let used = self.stacked.iter().flat_map(|one| &one.values);
        let used = used.map(|one| find(&one.column, &columns));
        let used: Vec<&Column> = used.collect::<Result<_>>()?;
        let is_other = |column: &&Column| !used.iter().any(|one| one.has_name(column.name()));
        let mut items: Vec<String> = columns
            .iter()
            .filter(is_other)
            .map(|column| quoted(column.name()).to_string())
            .collect();
        let names: Vec<String> = self
            .stacked
            .iter()
            .map(|one| Ok(text(&one.name(&columns)?).to_string()))
            .collect::<Result<_>>()?;
        items.push(format!("unnest([{}]) AS {}", names.join(", "), self.name));
        for (place, value) in self.values.iter().enumerate() {
            let of_value = self.stacked.iter().filter_map(|one| one.values.get(place));
            let of_value: Vec<&Expr> = of_value.map(|one| &one.expr).collect();
            self.check_types(&of_value, scope)?;
            let list: Vec<String> = of_value.iter().map(ToString::to_string).collect();
            items.push(format!("unnest([{}]) AS {value}", list.join(", ")));
        }
        let query = format!("SELECT {} FROM {}", items.join(", "), self.from());
        let known: Vec<String> = self
            .values
            .iter()
            .map(|value| format!("{value} IS NOT NULL"))
            .collect();
        Ok(match self.nulls {
            NullInclusion::IncludeNulls => query,
            NullInclusion::ExcludeNulls => format!(
                "SELECT * FROM ({query}) AS \"stacked\" WHERE {}",
                known.join(" AND ")
            ),
        })
    }

    /// The source as a table, under the name that its columns may be qualified with.
    fn from(&self) -> String {
        let alias = source_alias(&self.source);
        let alias = alias.map_or_else(String::new, |alias| format!(" AS {alias}"));
        format!("({}){alias}", self.source)
    }

    /// Numbers may be of several types, other values of one.
    fn check_types(&self, values: &[&Expr], scope: &Scope<'_>) -> Result<()> {
        let items = values.iter().enumerate();
        let items: Vec<String> = items
            .map(|(place, value)| format!("{value} AS \"value {place}\""))
            .collect();
        let query = format!("SELECT {} FROM {}", items.join(", "), self.from());
        let columns = scope.columns(*parse_query(&query)?)?;
        let types: Vec<&DataType> = columns.iter().map(Column::data_type).collect();
        let Some((first, others)) = types.split_first() else {
            return Ok(());
        };
        match others.iter().position(|other| !fits(first, other)) {
            None => Ok(()),
            Some(place) => Err(Error::planning(format!(
                "UNPIVOT stacks {} of type {} and {} of type {}; cast them to one type",
                values[0],
                type_name(first),
                values[place + 1],
                type_name(others[place])
            ))),
        }
    }
}

fn find<'a>(name: &Ident, columns: &'a [Column]) -> Result<&'a Column> {
    let found = columns.iter().find(|column| column.has_name(&name.value));
    found.ok_or_else(|| Error::UnknownColumn {
        name: name.value.clone(),
        nearest: crate::error::nearest_names(&name.value, columns.iter().map(Column::name)),
        position: None,
    })
}

/// Whether values of two types stand in one column.
fn fits(a: &DataType, b: &DataType) -> bool {
    let is_text = |data_type: &DataType| {
        data_type.is_string() || matches!(data_type, DataType::Dictionary(..))
    };
    a == b
        || a.is_numeric() && b.is_numeric()
        || is_text(a) && is_text(b)
        || a.is_null()
        || b.is_null()
}
