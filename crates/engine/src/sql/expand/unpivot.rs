//! UNPIVOT: columns become rows of a name and a value.
//!
//! In: `t UNPIVOT (v FOR n IN (a, b))`, or the call that query_forms.rs puts for `UNPIVOT t ON a, b INTO NAME n VALUE v`.
//! Out: the other columns beside a list of names and lists of values, unnested.
//! Invariant: rows keep their order; a value that is NULL has a row only where NULLs are included; values of one column have
//! one kind of type.
//! Not here: PIVOT (pivot.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{Expr, Ident, NullInclusion, Query, SelectItem, TableFactor};

use crate::error::types::type_name;
use crate::error::{Error, Result};
use crate::sql::ast::{derived, function_name, parse_query, quoted, text};
use crate::sql::expand::columns::chosen_by;
use crate::sql::expand::pivot::{items, set_alias};
use crate::sql::expand::{Column, Scope, arguments_of};
use crate::sql::tokens::query_forms::UNPIVOT;

/// Columns that make one row, with the name it gets.
struct Stacked {
    /// Where there is none, it is the names of the columns.
    name: Option<String>,
    columns: Vec<Ident>,
}

impl Stacked {
    fn name(&self, columns: &[Column]) -> Result<String> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => {
                let found = self.columns.iter().map(|name| find(name, columns));
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
        _ => Err(invalid(
            "UNPIVOT ON takes columns; write COLUMNS(*) for all",
        )),
    });
    let stacked = stacked(columns.collect::<Result<_>>()?, source, scope)?;
    let mut names = items(names).iter().map(|item| match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Ok(name.clone()),
        _ => Err(invalid("INTO NAME … VALUE … takes names of columns")),
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
        other => Err(invalid(&format!(
            "UNPIVOT takes names of columns, not {other}"
        ))),
    }
}

fn stacked(
    items: Vec<(Expr, Option<Ident>)>,
    source: &Query,
    scope: &Scope<'_>,
) -> Result<Vec<Stacked>> {
    let mut stacked = Vec::new();
    for (expr, alias) in items {
        if let Expr::Function(function) = &expr
            && function_name(function).as_deref() == Some("columns")
        {
            let columns = scope.columns(source.clone())?;
            let chosen = chosen_by(function, &columns, scope)?;
            stacked.extend(chosen.into_iter().map(|one| Stacked {
                columns: vec![quoted(&one.column)],
                name: Some(one.name),
            }));
            continue;
        }
        let columns = identifiers(&expr)?;
        let name = alias.map(|alias| alias.value);
        stacked.push(Stacked { name, columns });
    }
    Ok(stacked)
}

impl Unpivot {
    fn sql(&self, scope: &Scope<'_>) -> Result<String> {
        let columns = scope.columns(self.source.clone())?;
        let width = self.values.len();
        for one in &self.stacked {
            if one.columns.len() != width {
                return Err(invalid(&format!(
                    "UNPIVOT stacks {} columns as '{}' into {width}",
                    one.columns.len(),
                    one.name(&columns)?
                )));
            }
        }
        let named = |name: &Ident| find(name, &columns);
        let used = self.stacked.iter().flat_map(|one| &one.columns);
        let used: Vec<&Column> = used.map(named).collect::<Result<_>>()?;
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
            let of_value = self.stacked.iter().filter_map(|one| one.columns.get(place));
            let of_value: Vec<&Column> = of_value.map(named).collect::<Result<_>>()?;
            check_types(&of_value)?;
            let list: Vec<String> = of_value
                .iter()
                .map(|column| quoted(column.name()).to_string())
                .collect();
            items.push(format!("unnest([{}]) AS {value}", list.join(", ")));
        }
        let query = format!("SELECT {} FROM ({})", items.join(", "), self.source);
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
}

fn find<'a>(name: &Ident, columns: &'a [Column]) -> Result<&'a Column> {
    let found = columns.iter().find(|column| column.has_name(&name.value));
    found.ok_or_else(|| Error::UnknownColumn {
        name: name.value.clone(),
        nearest: crate::error::nearest_names(&name.value, columns.iter().map(Column::name)),
        position: None,
    })
}

/// Numbers may be of several types, other values of one.
fn check_types(columns: &[&Column]) -> Result<()> {
    let Some((first, others)) = columns.split_first() else {
        return Ok(());
    };
    let is_text = |data_type: &DataType| {
        data_type.is_string() || matches!(data_type, DataType::Dictionary(..))
    };
    let fits = |other: &&&Column| {
        let (a, b) = (first.data_type(), other.data_type());
        a == b
            || a.is_numeric() && b.is_numeric()
            || is_text(a) && is_text(b)
            || a.is_null()
            || b.is_null()
    };
    match others.iter().find(|other| !fits(other)) {
        None => Ok(()),
        Some(other) => Err(invalid(&format!(
            "UNPIVOT stacks '{}' of type {} and '{}' of type {}; cast them to one type in a subquery",
            first.name(),
            type_name(first.data_type()),
            other.name(),
            type_name(other.data_type())
        ))),
    }
}

fn invalid(message: &str) -> Error {
    Error::Planning {
        message: message.to_string(),
        position: None,
    }
}
