//! The domain of a subquery: the values that its outer columns have in the query around it.
//!
//! In: the outer columns, the rows that have them, and the plan that refers to them. Out: their values, each once, and
//! expressions over these in the place of the references.
//! Invariant: values that the plan may tell apart are not one, also where they are equal: -0.0 and 0.0, a month and 30 days.
//! Not here: how a plan carries the values (dependent.rs).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Distinct;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, SortExpr};

use super::dependent::{DependentPlan, same_value};
use super::names::FreshNames;
use super::{outer_columns, subquery_of};
use crate::expr::columns::is_comparison;
use crate::functions::equal_values::identity::{identified, identity};

/// The values of the outer columns.
pub(super) struct OuterDomain {
    /// The outer columns, as the plan refers to them.
    outer: Vec<Column>,
    /// Of each its value, or the identity of it, over the rows around the plan.
    keys: Vec<Expr>,
    /// The keys, each once, a column for each of `outer`.
    values: LogicalPlan,
}

impl OuterDomain {
    /// The values that `outer` has in `rows`, for a plan that refers to them.
    pub fn new(outer: Vec<Column>, rows: LogicalPlan, plan: &LogicalPlan) -> Result<OuterDomain> {
        let key = |column: &Column| {
            let value = Expr::Column(column.clone());
            let of = value.get_type(rows.schema())?;
            let identity = identity(value.clone(), &of);
            Ok(match identity {
                Some(identity) if tells_apart(plan, column)? => identity,
                _ => value,
            })
        };
        let keys = outer.iter().map(key).collect::<Result<Vec<_>>>()?;
        let rows = LogicalPlanBuilder::from(rows).project(keys.clone())?;
        let values = LogicalPlan::Distinct(Distinct::All(Arc::new(rows.build()?)));
        Ok(OuterDomain {
            outer,
            keys,
            values,
        })
    }

    /// Conditions of a join of the rows around the plan with those that the plan has for their values.
    pub fn same<'a>(&self, carried: impl IntoIterator<Item = &'a Column>) -> Vec<Expr> {
        let pairs = self.keys.iter().cloned().zip(carried);
        let pairs = pairs.map(|(key, carried)| same_value(key, Expr::Column(carried.clone())));
        pairs.collect()
    }

    /// Whether `plan` refers to an outer column.
    pub fn is_used_by(&self, plan: &LogicalPlan) -> Result<bool> {
        let columns = outer_columns(plan)?;
        Ok(columns.iter().any(|column| self.outer.contains(column)))
    }

    pub fn is_used_in(&self, expr: &Expr) -> bool {
        let found = expr.exists(|part| {
            Ok(matches!(part, Expr::OuterReferenceColumn(_, column) if self.outer.contains(column)))
        });
        found.unwrap_or(true)
    }

    /// The values once more, under names of their own.
    pub fn named(&self, names: &mut FreshNames) -> Result<DependentPlan> {
        let relation = names.next("__outer");
        let columns = self.values.schema().columns();
        let columns = columns.into_iter().enumerate();
        let columns = columns
            .map(|(index, column)| Expr::Column(column).alias(format!("{relation}_{index}")));
        let named = LogicalPlanBuilder::from(self.values.clone())
            .project(columns.collect::<Vec<_>>())?
            .alias(relation)?
            .build()?;
        Ok(DependentPlan {
            carried: named.schema().columns(),
            plan: named,
        })
    }

    /// The expression with the carried values in the place of outer columns.
    pub fn resolved(&self, expr: Expr, carried: &[Column]) -> Result<Expr> {
        let resolved = expr.transform(|part| match &part {
            Expr::OuterReferenceColumn(field, column) => {
                let place = self.outer.iter().position(|outer| outer == column);
                Ok(match place {
                    Some(place) => {
                        let value = Expr::Column(carried[place].clone());
                        Transformed::yes(match &self.keys[place] {
                            Expr::Column(_) => value,
                            _ => identified(value, field.data_type()),
                        })
                    }
                    None => Transformed::no(part),
                })
            }
            _ => Ok(Transformed::no(part)),
        });
        resolved.data()
    }

    /// The expressions of `of`, resolved and under their names.
    pub fn resolved_all(
        &self,
        of: &LogicalPlan,
        exprs: &[Expr],
        carried: &[Column],
    ) -> Result<Vec<Expr>> {
        let names = NamePreserver::new(of);
        let resolve = |expr: &Expr| {
            let name = names.save(expr);
            let resolved = self.resolved(expr.clone(), carried)?;
            Ok(name.restore(resolved))
        };
        exprs.iter().map(resolve).collect()
    }

    pub fn resolved_sorts(&self, sorts: &[SortExpr], carried: &[Column]) -> Result<Vec<SortExpr>> {
        let resolve = |sort: &SortExpr| {
            let expr = self.resolved(sort.expr.clone(), carried)?;
            Ok(SortExpr::new(expr, sort.asc, sort.nulls_first))
        };
        sorts.iter().map(resolve).collect()
    }
}

/// Whether a plan may have different rows for equal values of an outer column. Comparisons do not.
fn tells_apart(plan: &LogicalPlan, column: &Column) -> Result<bool> {
    let mut tells = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            tells |= is_told_apart(expr, column)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tells)
}

fn is_told_apart(expr: &Expr, column: &Column) -> Result<bool> {
    let mut tells = false;
    expr.apply(|part| {
        if let Some(subquery) = subquery_of(part) {
            tells |= tells_apart(subquery, column)?;
        }
        match part {
            Expr::OuterReferenceColumn(_, outer) => tells |= outer == column,
            Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
                for operand in [&binary.left, &binary.right] {
                    let is_plain = matches!(operand.as_ref(), Expr::OuterReferenceColumn(..));
                    tells |= !is_plain && is_told_apart(operand, column)?;
                }
                return Ok(TreeNodeRecursion::Jump);
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tells)
}
