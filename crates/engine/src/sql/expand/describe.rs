//! DESCRIBE and SHOW TABLES: the columns of a table or query with SQL's names of types; the user's tables; how a table is made.
//!
//! In: the calls that query_forms.rs puts for them. Out: rows written out in a query.
//! Invariant: columns and tables are those that a query at the same place sees; a statement that is shown makes such a table.
//! Not here: EXPLAIN.

use datafusion::sql::sqlparser::ast::{ObjectName, Query, SelectItem, SetExpr, TableFactor};
use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;

use crate::error::Result;
use crate::error::types::type_name;
use crate::scan::constraints::KeyKind;
use crate::sql::ast::{derived, parse_query, quoted, text};
use crate::sql::expand::{Column, Scope, TableFacts, arguments_of};
use crate::sql::tokens::query_forms::{DEFINITION, DESCRIBE, TABLE_INFO, TABLES};

const NULL: &str = "CAST(NULL AS VARCHAR)";

/// Where a definition is of what DataFusion knows: a view.
const VIEWS: &str =
    "SELECT table_catalog, table_schema, table_name, definition FROM information_schema.views";

pub(super) fn expand(factor: &TableFactor, scope: &Scope<'_>) -> Result<Option<TableFactor>> {
    if let Some(query) = only_argument(factor, DESCRIBE) {
        let described = Described::of(query, scope)?;
        return described.rows().map(Some);
    }
    if let Some(query) = only_argument(factor, TABLE_INFO) {
        let described = Described::of(query, scope)?;
        return described.info().map(Some);
    }
    if let Some(query) = only_argument(factor, DEFINITION)
        && let Some(name) = table_of(query)
    {
        return definition(query, name, scope).map(Some);
    }
    if arguments_of(factor, TABLES).is_some() {
        let names = scope.catalog.tables();
        let rows = names.iter().map(|name| format!("({})", text(name)));
        return table(&["name"], rows.collect()).map(Some);
    }
    Ok(None)
}

fn only_argument<'a>(factor: &'a TableFactor, call: &str) -> Option<&'a Query> {
    match arguments_of(factor, call)?.as_slice() {
        [query] => Some(*query),
        _ => None,
    }
}

/// The table that a query is all of, whose columns may be NOT NULL.
fn table_of(query: &Query) -> Option<&ObjectName> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let is_all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
    match select.from.as_slice() {
        [table] if is_all && table.joins.is_empty() && select.selection.is_none() => {
            match &table.relation {
                TableFactor::Table {
                    name, args: None, ..
                } => Some(name),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What is described: the columns of a query, and what else is known of a table.
struct Described {
    columns: Vec<Column>,
    facts: TableFacts,
    is_table: bool,
}

impl Described {
    fn of(query: &Query, scope: &Scope<'_>) -> Result<Described> {
        let is_table = table_of(query).is_some();
        let (columns, facts) = scope.described(query.clone())?;
        Ok(Described {
            columns,
            facts: if is_table {
                facts
            } else {
                TableFacts::default()
            },
            is_table,
        })
    }

    fn may_be_null(&self, column: &Column) -> bool {
        column.field.is_nullable() || !self.is_table
    }

    fn default(&self, place: usize) -> Option<&str> {
        self.facts.defaults.get(place)?.as_deref()
    }

    fn is_in_key(&self, place: usize, is_meant: impl Fn(KeyKind) -> bool) -> bool {
        let mut keys = self.facts.keys.iter();
        keys.any(|(columns, kind)| is_meant(*kind) && columns.contains(&place))
    }

    fn is_primary(&self, place: usize) -> bool {
        self.is_in_key(place, |kind| kind == KeyKind::Primary)
    }

    /// The rows of DESCRIBE.
    fn rows(&self) -> Result<TableFactor> {
        let rows = self.columns.iter().enumerate().map(|(place, column)| {
            let null = if self.may_be_null(column) {
                "YES"
            } else {
                "NO"
            };
            let key = match self.is_primary(place) {
                true => "'PRI'",
                false if self.is_in_key(place, |_| true) => "'UNI'",
                false => NULL,
            };
            let name = text(column.name());
            let data_type = text(&type_name(column.data_type()));
            let default = or_null(self.default(place));
            format!("({name}, {data_type}, '{null}', {key}, {default}, {NULL})")
        });
        let names = [
            "column_name",
            "column_type",
            "null",
            "key",
            "default",
            "extra",
        ];
        table(&names, rows.collect())
    }

    /// The rows of PRAGMA table_info.
    fn info(&self) -> Result<TableFactor> {
        let rows = self.columns.iter().enumerate().map(|(place, column)| {
            let name = text(column.name());
            let data_type = text(&type_name(column.data_type()));
            let not_null = !self.may_be_null(column);
            let default = or_null(self.default(place));
            let is_primary = self.is_primary(place);
            format!(
                "(CAST({place} AS INT), {name}, {data_type}, {not_null}, {default}, {is_primary})"
            )
        });
        let names = ["cid", "name", "type", "notnull", "dflt_value", "pk"];
        table(&names, rows.collect())
    }

    /// The statement that makes such a table.
    fn statement(&self, table: &str) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            let kind = type_name(column.data_type());
            let mut part = format!("{} {kind}", plain(column.name()));
            if !self.may_be_null(column) && !self.is_primary(place) {
                part.push_str(" NOT NULL");
            }
            if let Some(default) = self.default(place) {
                part.push_str(&format!(" DEFAULT {default}"));
            }
            for (_, kind) in self.keys_of(|columns| columns == [place]) {
                part.push_str(&format!(" {}", kind_of(*kind)));
            }
            parts.push(part);
        }
        for (columns, kind) in self.keys_of(|columns| columns.len() > 1) {
            let names = columns.iter().filter_map(|place| self.columns.get(*place));
            let names: Vec<String> = names.map(|column| plain(column.name())).collect();
            parts.push(format!("{} ({})", kind_of(*kind), names.join(", ")));
        }
        let checks = self.facts.checks.iter();
        parts.extend(checks.map(|check| format!("CHECK ({check})")));
        format!("CREATE TABLE {} ({})", plain(table), parts.join(", "))
    }

    fn keys_of(
        &self,
        is_meant: impl Fn(&[usize]) -> bool,
    ) -> impl Iterator<Item = &(Vec<usize>, KeyKind)> {
        let keys = self.facts.keys.iter();
        keys.filter(move |(columns, _)| is_meant(columns))
    }
}

fn kind_of(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Primary => "PRIMARY KEY",
        KeyKind::Unique => "UNIQUE",
        KeyKind::UniqueNulls => "UNIQUE NULLS NOT DISTINCT",
    }
}

/// A name, in quotes where it needs some.
fn plain(name: &str) -> String {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && (name.bytes()).all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && !ALL_KEYWORDS.contains(&name.to_uppercase().as_str());
    match is_word {
        true => name.to_string(),
        false => quoted(name).to_string(),
    }
}

fn or_null(value: Option<&str>) -> String {
    value.map_or_else(|| NULL.to_string(), |value| text(value).to_string())
}

/// The row of SHOW CREATE TABLE: a statement for a table in memory, a view's own.
fn definition(query: &Query, name: &ObjectName, scope: &Scope<'_>) -> Result<TableFactor> {
    let described = Described::of(query, scope)?;
    let last = name.0.last().and_then(|part| part.as_ident());
    let written = last.map_or_else(|| name.to_string(), |last| last.value.clone());
    if !described.facts.is_in_memory {
        let name = text(&written);
        let query = format!("{VIEWS} WHERE lower(table_name) = lower({name})");
        return Ok(derived(parse_query(&query)?, None));
    }
    let names = scope.catalog.tables();
    let is_it = |known: &&String| known.eq_ignore_ascii_case(&written);
    let exact = names.iter().find(|known| **known == written);
    let name = exact
        .or_else(|| names.iter().find(is_it))
        .unwrap_or(&written);
    let statement = described.statement(name);
    let row = format!(
        "('datafusion', 'public', {}, {})",
        text(name),
        text(&statement)
    );
    let columns = ["table_catalog", "table_schema", "table_name", "definition"];
    table(&columns, vec![row])
}

/// Rows under names of columns, all of them VARCHAR where there is no row.
fn table(columns: &[&str], rows: Vec<String>) -> Result<TableFactor> {
    let names: Vec<String> = columns
        .iter()
        .map(|name| quoted(name).to_string())
        .collect();
    let (values, condition) = match rows.is_empty() {
        true => (
            format!("({})", vec![NULL; columns.len()].join(", ")),
            " WHERE false",
        ),
        false => (rows.join(", "), ""),
    };
    let query = format!(
        "SELECT * FROM (VALUES {values}) AS \"described\"({}){condition}",
        names.join(", ")
    );
    Ok(derived(parse_query(&query)?, None))
}
