//! Fields of structs behind the names of a table and a column: `r.s.v`.
//!
//! In: a statement as it was parsed. Out: `r.s.v` as the field v of `r.s`, where r is what a table is called in the statement.
//! Two tables of one name, one of them without its schema, are refused in one FROM.
//! Invariant: a name in front of which a table's schema may stand is left alone. DataFusion takes r for a schema, and any
//! table s for the one in it; it also takes `s1.t` for a table t of another schema.
//! Not here: names of fewer parts, which DataFusion looks up.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, ObjectName, Query, Select, SetExpr, Subscript, TableFactor, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::ast::{factors, text};
use crate::sql::walk::{done, visit};

/// Names fields as such.
pub(in crate::sql) fn rewrite(statement: &mut Statement) -> Result<()> {
    let mut tables = TableNames::default();
    done(visit(statement, &mut tables))?;
    if !tables.names.is_empty() {
        let ControlFlow::Continue(()) = visit(statement, &mut tables.fields());
    }
    Ok(())
}

/// What the tables of a statement are called, in lower case.
pub(in crate::sql) fn table_names(statement: &mut Statement) -> HashSet<String> {
    let mut tables = TableNames::default();
    // Two tables of one name in a FROM are refused where fields are named.
    let _ = visit(statement, &mut tables);
    tables.fields().tables
}

/// What tables are called, and the schemas and catalogs that stand before their names; in lower case.
#[derive(Default)]
struct TableNames {
    names: HashSet<String>,
    schemas: HashSet<String>,
}

impl TableNames {
    fn fields(self) -> DottedFields {
        let names = self.names.difference(&self.schemas);
        DottedFields {
            tables: names.cloned().collect(),
        }
    }

    fn one_of_each(select: &Select) -> ControlFlow<Error> {
        let mut known: Vec<Vec<String>> = Vec::new();
        for factor in factors(&select.from) {
            let TableFactor::Table {
                name,
                alias: None,
                args: None,
                ..
            } = factor
            else {
                continue;
            };
            let parts = parts(name);
            // DataFusion keeps tables of two schemas apart where both are named.
            let is_other =
                |one: &Vec<String>| one.last() == parts.last() && one.len() != parts.len();
            if known.iter().any(is_other) {
                return ControlFlow::Break(Error::unsupported(format!(
                    "two tables of the name {}, of two schemas, in one FROM; give one of them another name with AS",
                    parts.last().map_or("", String::as_str)
                )));
            }
            known.push(parts);
        }
        ControlFlow::Continue(())
    }
}

fn parts(name: &ObjectName) -> Vec<String> {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    parts.map(|part| part.value.to_lowercase()).collect()
}

impl VisitorMut for TableNames {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        match query.body.as_ref() {
            SetExpr::Select(select) => Self::one_of_each(select),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let alias = match factor {
            TableFactor::Table { name, alias, .. } => {
                let mut parts = parts(name);
                self.names.extend(parts.pop());
                self.schemas.extend(parts);
                alias
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias,
            _ => return ControlFlow::Continue(()),
        };
        let alias = alias.as_ref().map(|alias| alias.name.value.to_lowercase());
        self.names.extend(alias);
        ControlFlow::Continue(())
    }
}

struct DottedFields {
    tables: HashSet<String>,
}

impl VisitorMut for DottedFields {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _, _, ..] = parts.as_slice()
            && self.tables.contains(&table.value.to_lowercase())
        {
            let fields = parts.split_off(2).into_iter();
            let column = Expr::CompoundIdentifier(std::mem::take(parts));
            *expr = Expr::CompoundFieldAccess {
                root: Box::new(column),
                access_chain: fields
                    .map(|field| {
                        AccessExpr::Subscript(Subscript::Index {
                            index: text(&field.value),
                        })
                    })
                    .collect(),
            };
        }
        ControlFlow::Continue(())
    }
}
