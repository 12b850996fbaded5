//! Constraints in `information_schema`: which columns are keys, and which conditions rows keep.
//!
//! In: the session's catalogs. Out: `table_constraints`, `key_column_usage` and `check_constraints`.
//! Invariant: a constraint has the name that PostgreSQL gives one without a name, as tables keep none. NOT NULL stands in
//! `columns` alone.
//! Not here: the schema's other tables (information_schema.rs), what rows are held against (scan/checked_table.rs).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::catalog::{CatalogProviderList, MemTable, TableProvider};
use datafusion::common::Result;

use crate::scan::checked_table::{CheckedTable, Rules};
use crate::scan::constraints::KeyKind;

/// The tables' names.
pub(super) const NAMES: [&str; 3] = ["table_constraints", "key_column_usage", "check_constraints"];

/// A constraint of a table.
struct NamedConstraint {
    /// Catalog, schema and table.
    of: [String; 3],
    name: String,
    rule: ConstraintRule,
}

enum ConstraintRule {
    Key(KeyKind, Vec<String>),
    /// A condition as SQL.
    Check(String),
}

/// The table of this name in the schema `own`, which has no constraints itself; `None` if it is none of these.
pub(super) async fn table(
    catalogs: &dyn CatalogProviderList,
    own: &str,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let columns = match name {
        "table_constraints" => table_constraints,
        "key_column_usage" => key_column_usage,
        "check_constraints" => check_constraints,
        _ => return Ok(None),
    };
    let constraints = all(catalogs, own).await;
    let batch = RecordBatch::try_from_iter_with_nullable(columns(&constraints))?;
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    Ok(Some(Arc::new(table)))
}

/// The constraints of all tables in other schemas than `own`.
async fn all(catalogs: &dyn CatalogProviderList, own: &str) -> Vec<NamedConstraint> {
    let mut found = Vec::new();
    for catalog_name in catalogs.catalog_names() {
        let Some(catalog) = catalogs.catalog(&catalog_name) else {
            continue;
        };
        for schema_name in catalog.schema_names() {
            let Some(schema) = catalog.schema(&schema_name).filter(|_| schema_name != own) else {
                continue;
            };
            let mut taken = HashSet::new();
            for table_name in schema.table_names() {
                // A view of files that are gone has no constraints either.
                let Ok(Some(table)) = schema.table(&table_name).await else {
                    continue;
                };
                let Some(checked) = table.downcast_ref::<CheckedTable>() else {
                    continue;
                };
                let of = [catalog_name.clone(), schema_name.clone(), table_name];
                found.extend(constraints(&of, checked, &mut taken));
            }
        }
    }
    found
}

/// The constraints of one table, whose names no other one of the schema has.
fn constraints(
    of: &[String; 3],
    table: &CheckedTable,
    taken: &mut HashSet<String>,
) -> Vec<NamedConstraint> {
    let (schema, rules): (_, &Rules) = (table.schema(), table.rules());
    let keys = rules.keys().iter().map(|(places, kind)| {
        let names = places
            .iter()
            .map(|&place| schema.field(place).name().clone());
        let names: Vec<String> = names.collect();
        let end = match kind {
            KeyKind::Primary => "pkey".to_string(),
            KeyKind::Unique | KeyKind::UniqueNulls => format!("{}_key", names.join("_")),
        };
        (end, ConstraintRule::Key(*kind, names))
    });
    let checks = rules.conditions().map(|(condition, columns)| {
        let end = match columns.as_slice() {
            [one] => format!("{one}_check"),
            _ => "check".to_string(),
        };
        (end, ConstraintRule::Check(condition.to_string()))
    });
    let named = keys.chain(checks).map(|(end, rule)| {
        let plain = format!("{}_{end}", of[2]);
        let mut names =
            std::iter::once(plain.clone()).chain((1..).map(|at| format!("{plain}{at}")));
        let name = names.find(|name| taken.insert(name.clone()));
        NamedConstraint {
            of: of.clone(),
            name: name.unwrap_or_default(),
            rule,
        }
    });
    named.collect()
}

/// A column: its name, its values, whether some may be NULL.
type NamedColumn = (&'static str, ArrayRef, bool);

fn text<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> NamedColumn {
    // Arrow asks an iterator how many values it has.
    let values: Vec<&str> = values.collect();
    (name, Arc::new(StringArray::from_iter_values(values)), false)
}

/// Where the constraint is, and its name.
fn identity<'a>(of: impl Iterator<Item = &'a NamedConstraint> + Clone) -> Vec<NamedColumn> {
    vec![
        text(
            "constraint_catalog",
            of.clone().map(|one| one.of[0].as_str()),
        ),
        text(
            "constraint_schema",
            of.clone().map(|one| one.of[1].as_str()),
        ),
        text("constraint_name", of.map(|one| one.name.as_str())),
    ]
}

/// Where its table is.
fn place<'a>(of: impl Iterator<Item = &'a NamedConstraint> + Clone) -> Vec<NamedColumn> {
    vec![
        text("table_catalog", of.clone().map(|one| one.of[0].as_str())),
        text("table_schema", of.clone().map(|one| one.of[1].as_str())),
        text("table_name", of.map(|one| one.of[2].as_str())),
    ]
}

fn table_constraints(constraints: &[NamedConstraint]) -> Vec<NamedColumn> {
    let all = constraints.iter();
    let kinds = all.clone().map(|one| match &one.rule {
        ConstraintRule::Key(KeyKind::Primary, _) => "PRIMARY KEY",
        ConstraintRule::Key(..) => "UNIQUE",
        ConstraintRule::Check(_) => "CHECK",
    });
    let distinct = all.clone().map(|one| match &one.rule {
        ConstraintRule::Key(KeyKind::UniqueNulls, _) => Some("NO"),
        ConstraintRule::Key(KeyKind::Unique, _) => Some("YES"),
        _ => None,
    });
    let distinct: StringArray = distinct.collect();
    let mut columns = identity(all.clone());
    columns.extend(place(all.clone()));
    columns.push(text("constraint_type", kinds));
    columns.push(text("is_deferrable", all.clone().map(|_| "NO")));
    columns.push(text("initially_deferred", all.clone().map(|_| "NO")));
    columns.push(text("enforced", all.map(|_| "YES")));
    columns.push(("nulls_distinct", Arc::new(distinct), true));
    columns
}

fn key_column_usage(constraints: &[NamedConstraint]) -> Vec<NamedColumn> {
    let keys = constraints.iter().flat_map(|one| {
        let columns = match &one.rule {
            ConstraintRule::Key(_, columns) => columns.as_slice(),
            ConstraintRule::Check(_) => &[],
        };
        (1..)
            .zip(columns)
            .map(move |(at, column)| (one, column.as_str(), at))
    });
    let of = keys.clone().map(|(one, ..)| one);
    let mut columns = identity(of.clone());
    columns.extend(place(of));
    columns.push(text(
        "column_name",
        keys.clone().map(|(_, column, _)| column),
    ));
    let places: Vec<i32> = keys.map(|(.., at)| at).collect();
    let places = Int32Array::from(places);
    columns.push(("ordinal_position", Arc::new(places), false));
    columns
}

fn check_constraints(constraints: &[NamedConstraint]) -> Vec<NamedColumn> {
    let checks = constraints.iter().filter_map(|one| match &one.rule {
        ConstraintRule::Check(condition) => Some((one, condition.as_str())),
        ConstraintRule::Key(..) => None,
    });
    let mut columns = identity(checks.clone().map(|(one, _)| one));
    columns.push(text("check_clause", checks.map(|(_, condition)| condition)));
    columns
}
