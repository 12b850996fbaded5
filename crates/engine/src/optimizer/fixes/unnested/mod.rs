//! Subqueries as joins, where DataFusion's own rules go wrong or give up.
//!
//! In: a plan with subqueries. Out: the plan with joins in the place of those that DataFusion's rules do not get right.
//! Invariant: a subquery means what it would if it were run for each row. An aggregation without keys has its row over
//! nothing, IN and NOT IN are NULL where SQL says so, LIMIT counts the rows of one run. DataFusion keeps what its rules
//! are right about: a subquery without outer columns, and one whose outer columns are in WHERE alone, without
//! aggregation in between. Those rules read the outer rows once (see `is_simple`).
//! Not here: subqueries in FROM that refer to nothing outside; those are plans like any other.

mod both_sides;
mod dependent;
mod domain;
mod joined;
mod names;
pub(in crate::optimizer::fixes) mod one_row;
mod refused;
mod simple;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{
    Distinct, DistinctOn, Filter, Join, JoinConstraint, Projection, Sort, Union,
};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

pub(super) use dependent::row_number;
use dependent::{kept, rows_of};
use domain::OuterDomain;
use joined::{Joined, Scalars, readable_twice};
use names::FreshNames;
pub(super) use one_row::one_row;
use simple::{is_datafusion_predicate, is_datafusion_scalar};

use super::each_plan;
use super::read_once::is_of_recursion;
use crate::sql::LATERAL_TABLE;

/// The rule, which comes after the types are known.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    let mut names = FreshNames::default();
    each_plan(plan, |plan| {
        refused::refuse(&plan)?;
        unnested(plan, &mut names)
    })
}

/// The plan without the subqueries of its own expressions that have to go.
fn unnested(plan: LogicalPlan, names: &mut FreshNames) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &plan
        && let Some(lateral) = unnested_lateral(join, names)?
    {
        return Ok(Transformed::yes(lateral));
    }
    let is_of_values = matches!(plan, LogicalPlan::Values(_)) && has_scalars(&plan)?;
    if !is_of_values && !any_subquery(&plan)? {
        return Ok(Transformed::no(plan));
    }
    match plan {
        LogicalPlan::Filter(filter) => unnested_filter(filter, names),
        LogicalPlan::Join(join) => unnested_join(join, names),
        LogicalPlan::Distinct(Distinct::On(on)) => unnested_distinct_on(on, names),
        LogicalPlan::Values(values) => {
            let rows = match rows_of(&values)? {
                LogicalPlan::Union(union) => {
                    let rows = union.inputs.into_iter();
                    let rows = rows.map(|row| {
                        let row = unnested(Arc::unwrap_or_clone(row), names)?;
                        Ok(Arc::new(row.data))
                    });
                    let rows = rows.collect::<Result<Vec<_>>>()?;
                    LogicalPlan::Union(Union::try_new_with_loose_types(rows)?)
                }
                row => unnested(row, names)?.data,
            };
            Ok(Transformed::yes(rows))
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Sort(_) => unnested_expressions(plan, names),
        other => Ok(Transformed::no(other)),
    }
}

/// A plan of one input: columns of the input take the places of subqueries.
fn unnested_expressions(
    plan: LogicalPlan,
    names: &mut FreshNames,
) -> Result<Transformed<LogicalPlan>> {
    let inputs = plan.inputs();
    let [input] = inputs.as_slice() else {
        return Ok(Transformed::no(plan));
    };
    let before = plan.schema().columns();
    let rows = match &plan {
        LogicalPlan::Sort(_) => with_columns((*input).clone(), &outer_columns_of(&plan)?)?,
        _ => (*input).clone(),
    };
    let scalars = match &plan {
        LogicalPlan::Projection(_) => Scalars::Stay,
        _ => Scalars::Joined,
    };
    let mut joined = Joined::new(rows, scalars, names);
    let columns = inputs[0].schema().fields().len();
    let preserver = NamePreserver::new(&plan);
    let keeps_sorts = matches!(plan, LogicalPlan::Sort(_));
    let resolved = plan.map_expressions(|expr| {
        if !has_subquery(&expr) {
            return Ok(Transformed::no(expr));
        }
        let name = preserver.save(&expr);
        let resolved = joined.resolved(expr)?;
        Ok(Transformed::yes(match keeps_sorts {
            true => resolved,
            false => name.restore(resolved),
        }))
    })?;
    if joined.plan.schema().fields().len() == columns {
        return Ok(resolved);
    }
    let input = joined.plan;
    let plan = match resolved.data {
        LogicalPlan::Sort(sort) => LogicalPlan::Sort(Sort {
            input: Arc::new(input),
            ..sort
        }),
        other => {
            let exprs = other.expressions();
            other.with_new_exprs(exprs, vec![input])?
        }
    };
    // Windows and sorts pass the columns on.
    Ok(Transformed::yes(only_columns(plan, before)?))
}

/// DISTINCT ON: what it sorts by begins with its keys, so a key that is a subquery is one column in both.
fn unnested_distinct_on(
    on: DistinctOn,
    names: &mut FreshNames,
) -> Result<Transformed<LogicalPlan>> {
    let mut joined = Joined::new(on.input.as_ref().clone(), Scalars::Joined, names);
    let mut keys = Vec::with_capacity(on.on_expr.len());
    for key in &on.on_expr {
        keys.push(joined.resolved(key.clone())?);
    }
    let mut select = Vec::with_capacity(on.select_expr.len());
    for (expr, (relation, field)) in on.select_expr.into_iter().zip(on.schema.iter()) {
        select.push(match has_subquery(&expr) {
            true => joined
                .resolved(expr.unalias())?
                .alias_qualified(relation.cloned(), field.name()),
            false => expr,
        });
    }
    let mut sorts = Vec::new();
    for sort in on.sort_expr.into_iter().flatten() {
        let key = on.on_expr.iter().position(|key| *key == sort.expr);
        let resolved = match key {
            Some(key) => keys[key].clone(),
            None => joined.resolved(sort.expr.clone())?,
        };
        sorts.push(sort.with_expr(resolved));
    }
    let sorts = (!sorts.is_empty()).then_some(sorts);
    let on = DistinctOn::try_new(keys, select, sorts, Arc::new(joined.plan))?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(on))))
}

/// The columns that the subqueries in a plan's own expressions refer to.
fn outer_columns_of(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut outer = Vec::new();
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Some(subquery) = subquery_of(part) {
                add_outer_columns(subquery, &mut outer)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(outer)
}

/// The projection with those of `columns` that it leaves out: ORDER BY refers to columns that SELECT does not have, and
/// DataFusion does not look for them in subqueries.
fn with_columns(plan: LogicalPlan, columns: &[Column]) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = &plan else {
        return Ok(plan);
    };
    let is_left_out = |column: &&Column| {
        !projection.schema.has_column(column) && projection.input.schema().has_column(column)
    };
    let left_out = columns.iter().filter(is_left_out).cloned();
    let columns = projection.expr.iter().cloned();
    let columns = columns.chain(left_out.map(Expr::Column)).collect();
    let projection = Projection::try_new(columns, Arc::clone(&projection.input))?;
    Ok(LogicalPlan::Projection(projection))
}

/// The plan with no other columns than `columns`.
fn only_columns(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    let columns = columns.into_iter().map(Expr::Column).collect();
    let projection = Projection::try_new(columns, Arc::new(plan))?;
    Ok(LogicalPlan::Projection(projection))
}

fn unnested_filter(filter: Filter, names: &mut FreshNames) -> Result<Transformed<LogicalPlan>> {
    let columns = filter.input.schema().columns();
    let original = LogicalPlan::Filter(filter.clone());
    let mut kept = Vec::new();
    let mut others = Vec::new();
    for predicate in split_conjunction_owned(filter.predicate) {
        match !has_subquery(&predicate) || is_datafusion_predicate(&predicate, &filter.input)? {
            true => kept.push(predicate),
            false => others.push(predicate),
        }
    }
    if others.is_empty() {
        return Ok(Transformed::no(original));
    }
    let mut joined = Joined::new(filter.input.as_ref().clone(), Scalars::Stay, names);
    for predicate in others {
        kept.extend(keep_true(predicate, &mut joined)?);
    }
    let mut plan = joined.plan;
    if let Some(kept) = conjunction(kept) {
        plan = LogicalPlan::Filter(Filter::try_new(kept, Arc::new(plan))?);
    }
    Ok(Transformed::yes(only_columns(plan, columns)?))
}

/// Keeps the rows for which a predicate is true; what a join does not do is left to do.
fn keep_true(predicate: Expr, joined: &mut Joined<'_>) -> Result<Option<Expr>> {
    let (predicate, is_not) = match predicate {
        Expr::Not(predicate) => (*predicate, true),
        predicate => (predicate, false),
    };
    match predicate {
        Expr::Exists(Exists { subquery, negated }) => {
            let join_type = match negated != is_not {
                true => JoinType::LeftAnti,
                false => JoinType::LeftSemi,
            };
            joined.keep_rows(&subquery.subquery, None, join_type)?;
            Ok(None)
        }
        Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        }) => {
            if negated != is_not {
                return joined.keep_not_found(*expr, &subquery);
            }
            let value = joined.resolved(*expr)?;
            joined.keep_rows(&subquery.subquery, Some(value), JoinType::LeftSemi)?;
            Ok(None)
        }
        other => {
            let resolved = joined.resolved(other)?;
            Ok(Some(if is_not { !resolved } else { resolved }))
        }
    }
}

/// Subqueries in ON: of an inner join they are a filter, of an outer join they are of one side.
fn unnested_join(join: Join, names: &mut FreshNames) -> Result<Transformed<LogicalPlan>> {
    let columns = join.schema.columns();
    let pairs = join.on.iter().cloned();
    let (moved, on): (Vec<_>, Vec<_>) =
        pairs.partition(|(left, right)| has_subquery(left) || has_subquery(right));
    let moved = moved.into_iter().map(|(left, right)| left.eq(right));
    let filters = join.filter.clone().map(split_conjunction_owned);
    let all = moved.chain(filters.into_iter().flatten());
    let (subqueries, mut plain): (Vec<_>, Vec<_>) = all.partition(has_subquery);
    let (mut left, mut right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
    let (mut after, mut of_both) = (Vec::new(), Vec::new());
    for predicate in subqueries {
        if join.join_type == JoinType::Inner {
            after.push(predicate);
            continue;
        }
        let side = match side_of(&predicate, &left, &right)? {
            Some(JoinSide::Left) => &mut left,
            Some(JoinSide::Right) => &mut right,
            None => {
                of_both.push(predicate);
                continue;
            }
        };
        let mut joined = Joined::new(side.clone(), Scalars::Joined, names);
        plain.push(joined.resolved(predicate)?);
        *side = joined.plan;
    }
    if !of_both.is_empty() {
        let is_same: fn(Expr, Expr) -> Expr = match join.null_equality {
            NullEquality::NullEqualsNull => dependent::same_value,
            NullEquality::NullEqualsNothing => Expr::eq,
        };
        let pairs = on.into_iter().map(|(left, right)| is_same(left, right));
        let on = pairs.chain(plain).chain(of_both).collect();
        let plan = both_sides::joined_on(&join, (left, right), on, names)?;
        return Ok(Transformed::yes(plan));
    }
    let plan = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        conjunction(plain),
        join.join_type,
        JoinConstraint::On,
        join.null_equality,
        join.null_aware,
    )?;
    let plan = only_columns(LogicalPlan::Join(plan), columns)?;
    match conjunction(after) {
        Some(predicate) => {
            let filter = Filter::try_new(predicate, Arc::new(plan))?;
            Ok(Transformed::yes(unnested_filter(filter, names)?.data))
        }
        None => Ok(Transformed::yes(plan)),
    }
}

enum JoinSide {
    Left,
    Right,
}

/// The side of a join that has all columns of an expression, also those that its subqueries refer to.
fn side_of(expr: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> Result<Option<JoinSide>> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    expr.apply(|part| {
        if let Some(subquery) = subquery_of(part) {
            columns.extend(outer_columns(subquery)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let is_of = |plan: &LogicalPlan| {
        columns
            .iter()
            .any(|column| plan.schema().has_column(column))
    };
    Ok(match (is_of(left), is_of(right)) {
        (true, true) => None,
        (false, true) => Some(JoinSide::Right),
        _ => Some(JoinSide::Left),
    })
}

/// A join whose right side refers to columns of the left one; `None` if it is no such join.
fn unnested_lateral(join: &Join, names: &mut FreshNames) -> Result<Option<LogicalPlan>> {
    let (is_known, is_marked) = match join.right.as_ref() {
        LogicalPlan::Subquery(_) => (true, false),
        LogicalPlan::SubqueryAlias(alias) => (
            matches!(alias.input.as_ref(), LogicalPlan::Subquery(_)),
            is_marked(&alias.input),
        ),
        _ => (false, false),
    };
    if !is_known && !is_marked {
        return Ok(None);
    }
    let mut outer = outer_columns(&join.right)?;
    outer.retain(|column| join.left.schema().has_column(column));
    if !is_known && outer.is_empty() {
        return Ok(None);
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return plan_err!(
            "{} JOIN LATERAL is not supported: INNER and LEFT are",
            join.join_type
        );
    }
    if outer.is_empty() {
        return Ok(None);
    }
    let left = readable_twice(join.left.as_ref().clone())?;
    let domain = OuterDomain::new(outer, left.clone(), &join.right)?;
    let right = kept(&join.right, &domain, names)?;
    let same = domain.same(&right.carried).into_iter();
    let pairs = join
        .on
        .iter()
        .map(|(left, right)| left.clone().eq(right.clone()));
    let on = same.chain(pairs).chain(join.filter.clone());
    let plan = LogicalPlanBuilder::from(left)
        .join_on(right.plan, join.join_type, on.collect::<Vec<_>>())?
        .build()?;
    Ok(Some(only_columns(plan, join.schema.columns())?))
}

/// Whether a plan is that of a LATERAL query which its text marks as one: DataFusion sees no outer columns in subqueries.
fn is_marked(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(above) => is_marked(&above.input),
        LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == LATERAL_TABLE,
        _ => false,
    }
}

/// Whether a plan has scalar subqueries of any kind: DataFusion does not run those of VALUES.
fn has_scalars(plan: &LogicalPlan) -> Result<bool> {
    let mut any = false;
    plan.apply_expressions(|expr| {
        any |= expr.exists(|part| Ok(matches!(part, Expr::ScalarSubquery(_))))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(any)
}

/// Whether an expression of a plan's own has a subquery that is no plain value.
fn any_subquery(plan: &LogicalPlan) -> Result<bool> {
    let mut any = false;
    plan.apply_expressions(|expr| {
        any |= has_subquery(expr);
        Ok(match any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(any)
}

/// Whether an expression has a subquery that is no plain value.
fn has_subquery(expr: &Expr) -> bool {
    let found = expr.exists(|part| {
        Ok(match part {
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
            Expr::ScalarSubquery(subquery) => !is_constant(&subquery.subquery)?,
            _ => false,
        })
    });
    found.unwrap_or(true)
}

/// Whether a scalar subquery has one value for all rows, and for all turns of a recursion around it: DataFusion computes it once.
fn is_constant(subquery: &LogicalPlan) -> Result<bool> {
    Ok(outer_columns(subquery)?.is_empty() && !is_of_recursion(subquery)?)
}

/// The columns of the query around it that a plan refers to, each once.
fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut outer = Vec::new();
    add_outer_columns(plan, &mut outer)?;
    Ok(outer)
}

fn add_outer_columns(plan: &LogicalPlan, outer: &mut Vec<Column>) -> Result<()> {
    // What this node lists may have been resolved since.
    if let LogicalPlan::Subquery(subquery) = plan {
        return add_outer_columns(&subquery.subquery, outer);
    }
    let mut add = |column: &Column| {
        if !outer.contains(column) {
            outer.push(column.clone());
        }
    };
    plan.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::OuterReferenceColumn(_, column) = part {
                add(column);
            }
            if let Some(subquery) = subquery_of(part) {
                // What its subqueries refer to is its own, or is farther out.
                let of_subquery = outer_columns(subquery)?;
                let inputs = plan.inputs();
                let is_own = |column: &&Column| {
                    let mut schemas = inputs.iter().map(|input| input.schema());
                    schemas.any(|schema| schema.has_column(column))
                };
                of_subquery
                    .iter()
                    .filter(|column| !is_own(column))
                    .for_each(&mut add);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    if let LogicalPlan::Join(join) = plan {
        let of_right = outer_columns(&join.right)?;
        let is_left = |column: &&Column| join.left.schema().has_column(column);
        of_right
            .iter()
            .filter(|column| !is_left(column))
            .for_each(&mut add);
        return add_outer_columns(&join.left, outer);
    }
    for input in plan.inputs() {
        add_outer_columns(input, outer)?;
    }
    Ok(())
}

/// The plan of a subquery, if the expression is one.
fn subquery_of(expr: &Expr) -> Option<&LogicalPlan> {
    match expr {
        Expr::Exists(exists) => Some(&exists.subquery.subquery),
        Expr::InSubquery(found) => Some(&found.subquery.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery.subquery),
        Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
        _ => None,
    }
}
