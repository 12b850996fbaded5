//! SUMMARIZE: one row of figures for each column of a table or query.
//!
//! In: the call that query_forms.rs puts for it. Out: one grouping without keys, its results stacked column by column.
//! Invariant: the input is read once; figures that a type does not have are NULL.
//! Not here: DESCRIBE, which reads nothing.

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::error::types::type_name;
use crate::error::{Error, Result};
use crate::sql::ast::{derived, parse_query, quoted, text};
use crate::sql::expand::{Column, Scope, arguments_of};
use crate::sql::tokens::query_forms::SUMMARIZE;

/// Names of the figures, in their order, behind name and type.
const FIGURES: [&str; 10] = [
    "min",
    "max",
    "approx_unique",
    "avg",
    "std",
    "q25",
    "q50",
    "q75",
    "count",
    "null_percentage",
];

pub(super) fn expand(factor: &TableFactor, scope: &Scope<'_>) -> Result<Option<TableFactor>> {
    let Some(queries) = arguments_of(factor, SUMMARIZE) else {
        return Ok(None);
    };
    let [query] = queries.as_slice() else {
        return Ok(None);
    };
    let columns = scope.columns((*query).clone())?;
    if columns.is_empty() {
        return Err(Error::planning("SUMMARIZE of what has no columns"));
    }
    let mut aggregates = Vec::new();
    for (number, column) in columns.iter().enumerate() {
        let figures = figures(number, column).into_iter().enumerate();
        aggregates.extend(figures.map(|(place, figure)| format!("{figure} AS f{number}_{place}")));
    }
    let stacked = FIGURES.iter().enumerate().map(|(place, name)| {
        let all: Vec<String> = (0..columns.len())
            .map(|number| format!("f{number}_{place}"))
            .collect();
        format!("unnest([{}]) AS \"{name}\"", all.join(", "))
    });
    let listed = |each: &dyn Fn(&Column) -> String, name: &str| {
        let all: Vec<String> = columns.iter().map(each).collect();
        format!("unnest([{}]) AS {name}", all.join(", "))
    };
    let mut items = vec![
        listed(&|column| text(column.name()).to_string(), "column_name"),
        listed(
            &|column| text(&type_name(column.data_type())).to_string(),
            "column_type",
        ),
    ];
    items.extend(stacked);
    let names: Vec<String> = (0..columns.len())
        .map(|number| format!("c{number}"))
        .collect();
    let text = format!(
        "SELECT {} FROM (SELECT {} FROM ({query}) AS \"summarized\"({})) AS \"figures\"",
        items.join(", "),
        aggregates.join(", "),
        names.join(", ")
    );
    Ok(Some(derived(parse_query(&text)?, None)))
}

/// The figures of a column, in the order of [`FIGURES`].
fn figures(number: usize, column: &Column) -> Vec<String> {
    let name = quoted(&format!("c{number}")).to_string();
    let data_type = column.data_type();
    let none = || "CAST(NULL AS VARCHAR)".to_string();
    let text = |figure: &str| format!("CAST({figure} AS VARCHAR)");
    let of = |figure: String, has: bool| if has { text(&figure) } else { none() };
    let (is_number, is_flat) = (data_type.is_numeric(), !data_type.is_nested());
    let (minimum, maximum) = match data_type {
        DataType::Boolean => (format!("bool_and({name})"), format!("bool_or({name})")),
        _ => (format!("min({name})"), format!("max({name})")),
    };
    let number = format!("CAST({name} AS DOUBLE)");
    let quantile = |share: &str| match data_type.is_integer() {
        true => of(
            format!(
                "CAST(round(approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {number})) AS BIGINT)"
            ),
            true,
        ),
        false => of(
            format!("approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {number})"),
            is_number,
        ),
    };
    vec![
        of(minimum, is_flat),
        of(maximum, is_flat),
        match is_flat {
            true => format!("CAST(approx_distinct({name}) AS BIGINT)"),
            false => "CAST(NULL AS BIGINT)".to_string(),
        },
        of(format!("avg({number})"), is_number),
        of(format!("stddev({number})"), is_number),
        quantile("0.25"),
        quantile("0.5"),
        quantile("0.75"),
        "count(*)".to_string(),
        format!(
            "CAST(round(100.0 * CAST(count(*) - count({name}) AS DOUBLE) / nullif(count(*), 0), 2) AS DECIMAL(9, 2))"
        ),
    ]
}
