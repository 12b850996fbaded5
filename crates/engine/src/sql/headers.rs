//! Names of columns as people write them: `count(x)` and not `count(/data/a.parquet.x)`, `count(1)` and not `count(Int64(1))`.
//!
//! In: DataFusion's plan of a statement, the aliases in it that look like such names. Out: the same plan; columns of its result, of the table it makes and of the file
//! it writes are named without files and functions that read files, and without types of literals.
//! Invariant: a name that another column would then have as well stays as it is, and so does one that the user gave.
//! Not here: names of tables and aliases, which DataFusion's names of expressions keep; names within the statement.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::IntervalMonthDayNanoArray;
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, Projection};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Select, SelectItem, VisitorMut};

use crate::scan::call::function_names;
use crate::scan::location::is_location;
use crate::sql::statement::visit;

/// Shortens the names of the columns that leave `plan`.
pub fn short_headers(plan: LogicalPlan, typed: &BTreeSet<String>) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Copy(mut copy) => {
            copy.input = shortened(copy.input, typed)?;
            LogicalPlan::Copy(copy)
        }
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            table.input = shortened(table.input, typed)?;
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table))
        }
        LogicalPlan::Ddl(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::DescribeTable(_) => plan,
        query => Arc::unwrap_or_clone(shortened(Arc::new(query), typed)?),
    })
}

/// Aliases that a user writes as DataFusion writes literals: they stay.
pub(crate) fn typed_aliases(statement: &mut Statement) -> BTreeSet<String> {
    let mut aliases = TypedAliases::default();
    let ControlFlow::Continue(()) = visit(statement, &mut aliases);
    aliases.0
}

#[derive(Default)]
struct TypedAliases(BTreeSet<String>);

impl VisitorMut for TypedAliases {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && plain_literals(&alias.value) != alias.value
            {
                self.0.insert(alias.value.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

fn shortened(plan: Arc<LogicalPlan>, typed: &BTreeSet<String>) -> Result<Arc<LogicalPlan>> {
    let files = files_of(&plan)?;
    let given = given_names(&plan, typed);
    let fields: Vec<_> = plan.schema().iter().collect();
    let short = |name: &str| {
        let names = files.iter();
        let name = names.fold(name.to_owned(), |name, file| name.replace(file, ""));
        match given.contains(&name) {
            true => name,
            false => plain_literals(&name),
        }
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

/// Names that are aliases of the user's or columns of tables.
fn given_names(plan: &LogicalPlan, typed: &BTreeSet<String>) -> BTreeSet<String> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let below = given_names(&projection.input, typed);
            let given = projection.expr.iter().filter_map(|expr| match expr {
                // What stands for another call has that one's name as an alias.
                Expr::Alias(alias) => Some(alias.name.clone())
                    .filter(|name| plain_literals(name) == *name || typed.contains(name)),
                Expr::Column(column) => {
                    Some(column.name.clone()).filter(|name| below.contains(name))
                }
                _ => None,
            });
            given.collect()
        }
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
            let inputs = plan.inputs().into_iter();
            inputs.flat_map(|input| given_names(input, typed)).collect()
        }
        LogicalPlan::Join(join) if is_filter(join.join_type) => given_names(&join.left, typed),
        LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Unnest(_)
        | LogicalPlan::Union(_) => plan
            .inputs()
            .into_iter()
            .next()
            .map(|input| given_names(input, typed))
            .unwrap_or_default(),
        other => other
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect(),
    }
}

/// Whether a join only leaves rows of its left side, as INTERSECT and EXCEPT do.
fn is_filter(join: JoinType) -> bool {
    matches!(join, JoinType::LeftSemi | JoinType::LeftAnti)
}

/// Types that DataFusion writes around literals.
const LITERALS: [&str; 17] = [
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float32",
    "Float64",
    "Boolean",
    "Utf8",
    "LargeUtf8",
    "Utf8View",
    "Decimal128",
    "Binary",
    "IntervalMonthDayNano",
];

/// A name without the types around literals: `1` for `Int64(1)`, `'x'` for `Utf8("x")`.
pub(crate) fn plain_literals(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, literal, after)) = next_literal(rest) {
        plain.push_str(before);
        plain.push_str(&literal);
        rest = after;
    }
    plain + rest
}

/// What stands before the first literal with its type, the literal alone, and what stands behind.
fn next_literal(name: &str) -> Option<(&str, String, &str)> {
    let opens = name.match_indices('(').map(|(at, _)| at);
    for open in opens {
        let before = &name[..open];
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let start = before
            .rfind(|character: char| !is_word(character))
            .map_or(0, |at| at + 1);
        let kind = &before[start..];
        if !LITERALS.contains(&kind) {
            continue;
        }
        let inner = &name[open + 1..];
        let found = match kind {
            "Utf8" | "LargeUtf8" | "Utf8View" => text_literal(inner),
            "Decimal128" => decimal_literal(inner),
            "Binary" => binary_literal(inner),
            "IntervalMonthDayNano" => interval_literal(inner),
            _ => inner
                .find(')')
                .map(|end| (inner[..end].to_string(), end + 1)),
        };
        if let Some((literal, used)) = found {
            return Some((&name[..start], literal, &inner[used..]));
        }
    }
    None
}

fn text_literal(inner: &str) -> Option<(String, usize)> {
    if inner.starts_with("NULL)") {
        return Some(("NULL".to_string(), 5));
    }
    let text = inner.strip_prefix('"')?;
    let end = text.find("\")")?;
    Some((format!("'{}'", &text[..end]), end + 3))
}

/// `"31,255")` is X'1FFF'.
fn binary_literal(inner: &str) -> Option<(String, usize)> {
    let end = inner.find("\")")?;
    let bytes = inner[..end].strip_prefix('"')?.split(',');
    let digits: Option<String> = bytes
        .filter(|byte| !byte.is_empty())
        .map(|byte| Some(format!("{:02X}", byte.parse::<u8>().ok()?)))
        .collect();
    Some((format!("X'{}'", digits?), end + 2))
}

/// `"IntervalMonthDayNano { months: 0, days: 1, nanoseconds: 0 }")` is INTERVAL '1 days'.
fn interval_literal(inner: &str) -> Option<(String, usize)> {
    let end = inner.find(" }\")")?;
    let mut parts = inner[..end].split(", ").map(|part| part.rsplit(' ').next());
    let months = parts.next()??.parse().ok()?;
    let days = parts.next()??.parse().ok()?;
    let nanoseconds = parts.next()??.parse().ok()?;
    let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
    let interval = IntervalMonthDayNanoArray::from_value(interval, 1);
    let text = array_value_to_string(&interval, 0).ok()?;
    Some((format!("INTERVAL '{text}'"), end + 4))
}

/// `Some(15),2,1)` is 1.5.
fn decimal_literal(inner: &str) -> Option<(String, usize)> {
    let end = inner
        .find(')')
        .and_then(|first| Some(first + 1 + inner[first + 1..].find(')')?))?;
    let (digits, scale) = inner[..end].strip_prefix("Some(")?.split_once(')')?;
    let scale: usize = scale.rsplit(',').next()?.parse().ok()?;
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |digits| ("-", digits));
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    Some((format!("{sign}{whole}{point}{fraction}"), end + 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_without_types() {
        fn check(name: &str, expected: &str) {
            assert_eq!(plain_literals(name), expected);
        }
        check("count(Int64(1))", "count(1)");
        check("t.a + Int64(1)", "t.a + 1");
        check(
            "IntervalMonthDayNano(\"IntervalMonthDayNano { months: 1, days: -2, nanoseconds: 1500000000 }\") + Binary(\"31,255\")",
            "INTERVAL '1 mons -2 days 1.500000000 secs' + X'1FFF'",
        );
        check("concat(Utf8(\"x)\"),Utf8(NULL))", "concat('x)',NULL)");
        check("x > Decimal128(Some(-5),2,1)", "x > -0.5");
        check("myInt64(1)", "myInt64(1)");
        check("a(b)", "a(b)");
    }
}
