//! Subqueries in ON of an outer join that refer to columns of both sides.
//!
//! In: the sides and all conditions of ON. Out: the join, in which the conditions are a filter of one side for each row of the other.
//! Invariant: `l LEFT JOIN r ON p` has the rows of `l LEFT JOIN LATERAL (SELECT * FROM r WHERE p) ON true`. A FULL JOIN has
//! these, and the rows of r that are in none of them.
//! Not here: subqueries over one side, and inner joins, of which ON is a filter (mod.rs).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ExprSchema, JoinType, Result, ScalarValue, plan_err};
use datafusion::logical_expr::logical_plan::{Filter, Join, Union};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::dependent::kept;
use super::domain::OuterDomain;
use super::joined::readable_twice;
use super::names::FreshNames;
use super::{outer_columns, unnested};

/// `join` of these sides, which may have columns more, on these conditions.
pub(super) fn joined_on(
    join: &Join,
    (left, right): (LogicalPlan, LogicalPlan),
    on: Vec<Expr>,
    names: &mut FreshNames,
) -> Result<LogicalPlan> {
    let on = conjunction(on).unwrap_or_else(|| lit(true));
    use JoinType::{Full, Left, LeftAnti, LeftSemi, Right, RightAnti, RightSemi};
    let plan = match join.join_type {
        Left | LeftSemi | LeftAnti => for_each(left, right, on, join.join_type, names)?,
        Right | RightSemi | RightAnti => for_each(right, left, on, join.join_type.swap(), names)?,
        Full => {
            let (left, right) = (readable_twice(left)?, readable_twice(right)?);
            let pairs = for_each(left.clone(), right.clone(), on.clone(), Left, names)?;
            let alone = for_each(right, left.clone(), on, LeftAnti, names)?;
            return one_after_the_other(join, pairs, (alone, &left));
        }
        other => {
            return plan_err!("a subquery in ON of a {other} JOIN refers to columns of both sides");
        }
    };
    let columns = join.schema.columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The rows of `each`, joined with those of `other` for which `on` holds.
fn for_each(
    each: LogicalPlan,
    other: LogicalPlan,
    on: Expr,
    join_type: JoinType,
    names: &mut FreshNames,
) -> Result<LogicalPlan> {
    let each = readable_twice(each)?;
    let on = on.transform(|part| match part {
        Expr::Column(column) if each.schema().has_column(&column) => {
            let field = Arc::clone(each.schema().field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        part => Ok(Transformed::no(part)),
    });
    let rows = LogicalPlan::Filter(Filter::try_new(on.data()?, Arc::new(other))?);
    let rows = unnested(rows, names)?.data;
    let mut outer = outer_columns(&rows)?;
    outer.retain(|column| each.schema().has_column(column));
    let domain = OuterDomain::new(outer, each.clone(), &rows)?;
    let rows = kept(&rows, &domain, names)?;
    let same = domain.same(&rows.carried);
    LogicalPlanBuilder::from(each)
        .join_on(rows.plan, join_type, same)?
        .build()
}

/// The rows of `pairs`, and those of one side alone beside NULLs for the columns of the `missing` one.
fn one_after_the_other(
    join: &Join,
    pairs: LogicalPlan,
    (alone, missing): (LogicalPlan, &LogicalPlan),
) -> Result<LogicalPlan> {
    let columns = join.schema.columns();
    let own = columns.iter().cloned().map(Expr::Column);
    let pairs = LogicalPlanBuilder::from(pairs).project(own)?.build()?;
    let mut beside_nulls = Vec::with_capacity(columns.len());
    for ((of, field), column) in join.schema.iter().zip(&columns) {
        beside_nulls.push(match missing.schema().has_column(column) {
            true => lit(ScalarValue::try_new_null(field.data_type())?)
                .alias_qualified(of.cloned(), field.name()),
            false => Expr::Column(column.clone()),
        });
    }
    let alone = LogicalPlanBuilder::from(alone)
        .project(beside_nulls)?
        .build()?;
    let parts = vec![Arc::new(pairs), Arc::new(alone)];
    let all = LogicalPlan::Union(Union::try_new_with_loose_types(parts)?);
    // The union's columns have the names that they had.
    let named = all.schema().columns().into_iter().zip(join.schema.iter());
    let named: Vec<Expr> = named
        .map(|(column, (of, field))| {
            Expr::Column(column).alias_qualified(of.cloned(), field.name())
        })
        .collect();
    LogicalPlanBuilder::from(all).project(named)?.build()
}
