//! Which subqueries DataFusion's rules are right about.
//!
//! In: a predicate or a scalar subquery, and the plan that it is a part of. Out: whether it stays.
//! Invariant: what stays has its outer columns in WHERE alone, below nothing that would count, cut, sort or group the rows of
//! one outer row otherwise. Its columns have names that no other column of it has.
//! Not here: what becomes of the others (joined.rs).

use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::logical_plan::{Aggregate, Distinct};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Operator};

use super::{has_subquery, is_constant, outer_columns};
use crate::expr::columns::is_comparison;
use crate::optimizer::fixes::read_once::is_of_recursion;

/// Aggregates whose value over nothing DataFusion knows.
const AGGREGATES: [&str; 5] = ["count", "sum", "min", "max", "avg"];

/// Whether a predicate of WHERE over `input` is one that DataFusion's rules get right.
pub(super) fn is_datafusion_predicate(predicate: &Expr, input: &LogicalPlan) -> Result<bool> {
    let (predicate, is_not) = match predicate {
        Expr::Not(predicate) => (predicate.as_ref(), true),
        predicate => (predicate, false),
    };
    match predicate {
        Expr::Exists(Exists { subquery, .. }) => is_simple_in(&subquery.subquery, input),
        Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        }) => {
            let plan = subquery.subquery.as_ref();
            let is_plain = !has_subquery(expr);
            match *negated != is_not {
                true => Ok(is_of_table(expr, input)? && outer_columns(plan)?.is_empty()),
                false => Ok(is_plain && is_simple_in(plan, input)?),
            }
        }
        other => Ok(!is_not && has_datafusion_scalars_only(other, input)?),
    }
}

/// Whether a value is a column of a table. DataFusion's join for NOT IN knows NULL only where it compares columns, and any other
/// value may become a literal.
fn is_of_table(value: &Expr, plan: &LogicalPlan) -> Result<bool> {
    let Expr::Column(column) = value else {
        return Ok(false);
    };
    Ok(match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Filter(above) => is_of_table(value, &above.input)?,
        LogicalPlan::Sort(above) => is_of_table(value, &above.input)?,
        LogicalPlan::SubqueryAlias(above) => {
            let place = above.schema.index_of_column(column)?;
            let below = Column::from(above.input.schema().qualified_field(place));
            is_of_table(&Expr::Column(below), &above.input)?
        }
        LogicalPlan::Projection(above) => {
            let place = above.schema.index_of_column(column)?;
            is_of_table(&above.expr[place].clone().unalias(), &above.input)?
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            match join.left.schema().has_column(column) {
                true => is_of_table(value, &join.left)?,
                false => is_of_table(value, &join.right)?,
            }
        }
        _ => false,
    })
}

fn has_datafusion_scalars_only(expr: &Expr, input: &LogicalPlan) -> Result<bool> {
    let mut only = true;
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    expr.apply(|part| {
        only &= match part {
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => false,
            Expr::ScalarSubquery(subquery) => {
                is_constant(&subquery.subquery)? || is_datafusion_scalar(&subquery.subquery, input)?
            }
            _ => true,
        };
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(only)
}

/// Whether a scalar subquery with outer columns, of WHERE or of a list of columns over `input`, is one that DataFusion's
/// rules get right. That is an aggregation without keys over rows with equal columns.
pub(super) fn is_datafusion_scalar(plan: &LogicalPlan, input: &LogicalPlan) -> Result<bool> {
    if is_of_recursion(plan)? {
        return Ok(false);
    }
    match plan {
        LogicalPlan::Projection(projection) => {
            let mut values = projection.expr.iter();
            let are_plain = values.all(|expr| is_plain(expr) && stays_of_columns(expr));
            Ok(are_plain && is_datafusion_scalar(&projection.input, input)?)
        }
        LogicalPlan::Aggregate(Aggregate {
            input: rows,
            group_expr,
            aggr_expr,
            ..
        }) => {
            let is_known = |expr: &Expr| match expr.clone().unalias() {
                Expr::AggregateFunction(function) => {
                    AGGREGATES.contains(&function.func.name()) && is_plain(expr)
                }
                _ => false,
            };
            let is_grouped = !group_expr.is_empty();
            Ok(!is_grouped
                && aggr_expr.iter().all(is_known)
                && is_simple_in(rows, input)?
                && correlations(rows)?.iter().all(is_equal_column))
        }
        _ => Ok(false),
    }
}

/// Whether a value stays one of its columns, whatever is known of them: `count(*) IS NULL` becomes false, and then DataFusion's join
/// has NULL for it where no row is.
fn stays_of_columns(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => stays_of_columns(&alias.expr),
        Expr::Cast(cast) => stays_of_columns(&cast.expr),
        Expr::BinaryExpr(binary) if is_comparison(binary.op) || is_sum(binary.op) => {
            match (binary.left.as_ref(), binary.right.as_ref()) {
                (Expr::Literal(value, _), column) | (column, Expr::Literal(value, _)) => {
                    let zero = ScalarValue::new_zero(&value.data_type());
                    let is_zero = value.is_null() || zero.is_ok_and(|zero| zero == *value);
                    !is_zero && stays_of_columns(column)
                }
                _ => false,
            }
        }
        Expr::ScalarFunction(call) if call.func.name() == "coalesce" => {
            call.args.first().is_some_and(stays_of_columns)
        }
        _ => false,
    }
}

/// Of `%`, bits and strings DataFusion knows some results without looking.
fn is_sum(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide
    )
}

/// `column = outer`.
fn is_equal_column(predicate: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = predicate else {
        return false;
    };
    let sides = [(&binary.left, &binary.right), (&binary.right, &binary.left)];
    binary.op == Operator::Eq
        && sides
            .iter()
            .any(|(own, outer)| matches!(own.as_ref(), Expr::Column(_)) && !outer.any_column_refs())
}

/// Whether a plan is simple, and its outer columns are all of `input`.
fn is_simple_in(plan: &LogicalPlan, input: &LogicalPlan) -> Result<bool> {
    let outer = outer_columns(plan)?;
    if outer.is_empty() {
        return Ok(true);
    }
    let are_of_input = outer.iter().all(|column| input.schema().has_column(column));
    Ok(are_of_input && is_simple(plan)? && has_own_names(plan)?)
}

/// Whether rows with outer columns pass through nothing but filters, projections and inner joins.
fn is_simple(plan: &LogicalPlan) -> Result<bool> {
    if outer_columns(plan)?.is_empty() {
        return Ok(true);
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            Ok(!has_subquery(&filter.predicate) && is_simple(&filter.input)?)
        }
        LogicalPlan::Projection(projection) => {
            Ok(projection.expr.iter().all(is_plain) && is_simple(&projection.input)?)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => is_simple(input),
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            let pairs = join.on.iter().flat_map(|(left, right)| [left, right]);
            let are_plain = pairs.chain(&join.filter).all(is_plain);
            Ok(are_plain && is_simple(&join.left)? && is_simple(&join.right)?)
        }
        _ => Ok(false),
    }
}

fn is_plain(expr: &Expr) -> bool {
    !has_subquery(expr) && !expr.contains_outer() && !expr.is_volatile()
}

/// The predicates with outer columns.
fn correlations(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let mut found = Vec::new();
    plan.apply(|part| {
        if let LogicalPlan::Filter(filter) = part {
            let predicates = split_conjunction(&filter.predicate).into_iter();
            found.extend(predicates.filter(|one| one.contains_outer()).cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Whether the columns that are compared with outer ones have names that no other column has where they pass. DataFusion adds
/// them to the columns of the subquery, under its name.
fn has_own_names(plan: &LogicalPlan) -> Result<bool> {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let predicates = correlations(plan)?;
    let compared: Vec<&Column> = predicates.iter().flat_map(Expr::column_refs).collect();
    let mut own = compared.iter().all(|one| {
        let mut others = compared.iter();
        others.all(|other| other.name != one.name || other == one)
    });
    plan.apply(|part| {
        if let LogicalPlan::Projection(projection) = part {
            // A cast has the name of what it casts, with its table.
            for (expr, (_, field)) in projection.expr.iter().zip(projection.schema.iter()) {
                let is_it = |one: &Column| matches!(expr, Expr::Column(column) if column == one);
                let has_name = |one: &Column| [&one.name, &one.flat_name()].contains(&field.name());
                own &= compared.iter().all(|one| !has_name(one) || is_it(one));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(own)
}
