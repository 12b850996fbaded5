//! Names of columns without the path of the file: `count(x)` and not `count(/data/a.parquet.x)`.
//!
//! In: the host's plan of a statement. Out: the same plan; columns of its result, of the table it makes and of the file
//! it writes are named without files and functions that read files.
//! Invariant: a name that another column would then have as well stays as it is.
//! Not here: names of tables and aliases, which the host's names of expressions keep; names within the statement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, Projection};

use crate::scan::call::function_names;
use crate::scan::location::is_location;

/// Shortens the names of the columns that leave `plan`.
pub fn short_headers(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Copy(mut copy) => {
            copy.input = shortened(copy.input)?;
            LogicalPlan::Copy(copy)
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = shortened(table.input)?;
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table))
        }
        LogicalPlan::Ddl(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::DescribeTable(_) => plan,
        query => Arc::unwrap_or_clone(shortened(Arc::new(query))?),
    })
}

fn shortened(plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let files = files_of(&plan)?;
    let fields: Vec<_> = plan.schema().iter().collect();
    let short = |name: &str| {
        let names = files.iter();
        names.fold(name.to_owned(), |name, file| name.replace(file, ""))
    };
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for (_, field) in &fields {
        *uses.entry(short(field.name())).or_default() += 1;
    }
    if fields
        .iter()
        .all(|(_, field)| short(field.name()) == *field.name())
    {
        return Ok(plan);
    }
    let columns = fields.iter().map(|&(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let name = short(field.name());
        match name != *field.name() && uses.get(&name) == Some(&1) {
            true => column.alias(name),
            false => column,
        }
    });
    let columns = columns.collect();
    let renamed = Projection::try_new(columns, Arc::clone(&plan))?;
    Ok(Arc::new(LogicalPlan::Projection(renamed)))
}

/// The files and functions of a plan as they stand before a column's name.
fn files_of(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    plan.apply_with_subqueries(|part| {
        let name = match part {
            LogicalPlan::TableScan(scan) => Some(scan.table_name.to_string()),
            LogicalPlan::SubqueryAlias(alias) => Some(alias.alias.to_string()),
            _ => None,
        };
        let of_file = |name: &String| is_location(name) || function_names().any(|one| one == name);
        files.extend(name.filter(of_file).map(|name| format!("{name}.")));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(files)
}
