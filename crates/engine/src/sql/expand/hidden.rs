//! Hidden columns: those that joins of ours need beside the tables' own, and that `*` does not show.
//!
//! In: a SELECT whose tables have such columns. Out: the SELECT with `*` that leaves them out.
//! Invariant: a hidden column has a name that nobody writes.
//! Not here: the joins (asof.rs, positional.rs).

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind,
    WildcardAdditionalOptions,
};

use crate::sql::ast::{object, quoted};

/// How names of hidden columns begin.
const MARK: &str = "hidden: ";

/// The name of a hidden column.
pub(in crate::sql) fn name_of(what: &str, number: usize) -> String {
    format!("{MARK}{what} {number}")
}

pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with(MARK)
}

/// What counts rows as they are read.
pub(in crate::sql) const ROW: &str = "row";

/// Whether a plan counts rows as they are read, so that their order is part of the answer.
pub(crate) fn counts_rows(plan: &LogicalPlan) -> bool {
    let start = format!("{MARK}{ROW} ");
    let mut found = false;
    let walk = plan.apply_with_subqueries(|node| {
        let fields = node.schema().fields();
        found |= fields.iter().any(|field| field.name().starts_with(&start));
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    found || walk.is_err()
}

/// Leaves hidden columns out of `*` and of `table.*`.
pub(in crate::sql) fn hide(select: &mut Select, names: &[String], table: Option<&str>) {
    for item in &mut select.projection {
        match item {
            SelectItem::Wildcard(options) => exclude(options, names),
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if table.is_some_and(|table| is_last(name, table)) => exclude(options, names),
            _ => {}
        }
    }
}

fn is_last(name: &ObjectName, table: &str) -> bool {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|name| name.value.eq_ignore_ascii_case(table))
}

fn exclude(options: &mut WildcardAdditionalOptions, names: &[String]) {
    let mut all = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    all.extend(names.iter().map(|name| object(quoted(name))));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(all));
}
