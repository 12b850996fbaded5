//! Subqueries in expressions as columns of a join.
//!
//! In: a plan, and expressions over it with subqueries. Out: the plan with columns more, and the expressions over these.
//! Invariant: the plan keeps its rows, each once, in columns that keep their names. A subquery that can fail is computed for the
//! rows alone that CASE, AND and OR leave to it. IN and comparisons with ANY and ALL are NULL where SQL says so; EXISTS never is.
//! A scalar subquery has one row at most, or the query fails.
//! Not here: which subqueries go this way (mod.rs), plans for all outer values at once (dependent.rs).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    Column, DFSchemaRef, ExprSchema, JoinType, Result, ScalarValue, plan_err,
};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::logical_plan::{Distinct, FetchType, SkipType, Subquery};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};

use super::super::read_once::{is_steady, shared};
use super::dependent::kept;
use super::domain::OuterDomain;
use super::names::FreshNames;
use super::{has_subquery, is_constant, is_datafusion_scalar, outer_columns};
use crate::optimizer::fixes::failing::fallible;
use crate::optimizer::fixes::types::compared::in_scope;

/// A plan that gets columns.
pub(super) struct Joined<'a> {
    pub plan: LogicalPlan,
    scalars: Scalars,
    names: &'a mut FreshNames,
    /// What holds of the rows for which the part of an expression is computed that is looked at.
    guards: Vec<Expr>,
    /// The plan's columns before it got any.
    before: DFSchemaRef,
}

/// What becomes of scalar subqueries that DataFusion's rule is right about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalars {
    /// The rule sees them: they are in WHERE or in a list of columns.
    Stay,
    Joined,
}

/// A subquery for all outer values at once, under a name of its own.
struct NamedSubquery {
    plan: LogicalPlan,
    /// The first of its columns: the values that it belongs to.
    of_outer: Vec<Column>,
    /// The others.
    own: Vec<Column>,
    /// Which of its rows are those of a row of the plan around it.
    same: Vec<Expr>,
}

impl<'a> Joined<'a> {
    pub fn new(plan: LogicalPlan, scalars: Scalars, names: &'a mut FreshNames) -> Joined<'a> {
        Joined {
            before: Arc::clone(plan.schema()),
            plan,
            scalars,
            names,
            guards: Vec::new(),
        }
    }

    /// The expression without subqueries but for those that stay: see `is_datafusion_scalar`.
    pub fn resolved(&mut self, expr: Expr) -> Result<Expr> {
        let resolved = expr.transform_down(|part| {
            let resolved = match part {
                Expr::Exists(Exists { subquery, negated }) => {
                    let mark = self.mark(&subquery.subquery, None)?;
                    if negated { !mark } else { mark }
                }
                Expr::InSubquery(InSubquery {
                    expr,
                    subquery,
                    negated,
                }) => {
                    let found = self.found(*expr, &subquery)?;
                    if negated { !found } else { found }
                }
                Expr::SetComparison(comparison) => self.compared(comparison)?,
                Expr::ScalarSubquery(mut subquery) => {
                    if is_constant(&subquery.subquery)? {
                        subquery.outer_ref_columns.clear();
                        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
                    }
                    if self.scalars == Scalars::Stay
                        && is_datafusion_scalar(&subquery.subquery, &self.plan)?
                    {
                        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
                    }
                    self.scalar(&subquery)?
                }
                Expr::Case(case) if has_subquery(&Expr::Case(case.clone())) => self.case(case)?,
                Expr::BinaryExpr(binary)
                    if matches!(binary.op, Operator::And | Operator::Or)
                        && has_subquery(&binary.right) =>
                {
                    self.condition(binary)?
                }
                other => return Ok(Transformed::no(other)),
            };
            Ok(Transformed::new(resolved, true, TreeNodeRecursion::Jump))
        })?;
        Ok(resolved.data)
    }

    /// A CASE: what a branch has is for the rows that come to it.
    fn case(&mut self, case: Case) -> Result<Expr> {
        let around = self.guards.len();
        let resolved = |this: &mut Self, part: Option<Box<Expr>>| {
            let part = part.map(|part| this.resolved(*part));
            part.transpose().map(|part| part.map(Box::new))
        };
        let expr = resolved(self, case.expr)?;
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        for (when, then) in case.when_then_expr {
            let when = self.resolved(*when)?;
            let holds = match &expr {
                Some(expr) => expr.as_ref().clone().eq(when.clone()),
                None => when.clone(),
            };
            self.guards.push(holds.clone().is_true());
            let then = self.resolved(*then)?;
            self.guards.pop();
            self.guards.push(holds.is_not_true());
            branches.push((Box::new(when), Box::new(then)));
        }
        let otherwise = resolved(self, case.else_expr)?;
        self.guards.truncate(around);
        Ok(Expr::Case(Case::new(expr, branches, otherwise)))
    }

    /// AND and OR: the right side is for the rows that the left one leaves open.
    fn condition(&mut self, binary: BinaryExpr) -> Result<Expr> {
        let left = self.resolved(*binary.left)?;
        self.guards.push(match binary.op {
            Operator::And => left.clone().is_not_false(),
            _ => left.clone().is_not_true(),
        });
        let right = self.resolved(*binary.right)?;
        self.guards.pop();
        Ok(binary_expr(left, binary.op, right))
    }

    /// What holds of the rows that a subquery is for, as far as columns of the plan tell it. Not what other subqueries tell: each
    /// would be planned once more for every one behind it.
    fn guard(&self) -> Option<Expr> {
        let of_plan = self.guards.iter().filter(|guard| {
            let mut columns = guard.column_refs().into_iter();
            let are_there = columns.all(|column| self.before.has_column(column));
            are_there && !guard.contains_outer() && !guard.is_volatile() && !has_subquery(guard)
        });
        conjunction(of_plan.cloned())
    }

    /// Keeps the rows for which the subquery has rows (`JoinType::LeftSemi`) or has none (`JoinType::LeftAnti`); with a
    /// probe, rows of that value.
    pub fn keep_rows(
        &mut self,
        subquery: &LogicalPlan,
        probe: Option<Expr>,
        join_type: JoinType,
    ) -> Result<()> {
        let rows = self.rows(subquery)?;
        let mut same = rows.same;
        if let Some(probe) = probe {
            same.push(probe.eq(Expr::Column(rows.own[0].clone())));
        }
        self.join(rows.plan, join_type, same)
    }

    /// Whether the subquery has rows; with a probe, rows of that value.
    fn mark(&mut self, subquery: &LogicalPlan, probe: Option<Expr>) -> Result<Expr> {
        let rows = self.rows(subquery)?;
        let probed = probe.is_some().then(|| rows.own[0].clone());
        let keys = rows.of_outer.into_iter().chain(probed.clone());
        let keys: Vec<Expr> = keys.map(Expr::Column).collect();
        let mark = Column::from_name(self.names.next("__mark"));
        let distinct = match keys.is_empty() {
            true => LogicalPlanBuilder::from(rows.plan)
                .limit(0, Some(1))?
                .build()?,
            false => {
                let keys = LogicalPlanBuilder::from(rows.plan).project(keys.clone())?;
                LogicalPlan::Distinct(Distinct::All(Arc::new(keys.build()?)))
            }
        };
        let marked = keys.into_iter().chain([lit(true).alias(mark.name.clone())]);
        let marked = LogicalPlanBuilder::from(distinct)
            .project(marked)?
            .build()?;
        let mut same = rows.same;
        let probes = probe.into_iter().zip(probed);
        same.extend(probes.map(|(probe, probed)| probe.eq(Expr::Column(probed))));
        self.join(marked, JoinType::Left, same)?;
        Ok(Expr::Column(mark).is_not_null())
    }

    /// `value IN (subquery)`, which is NULL where the value is not found and a NULL is, or the value is NULL and there are
    /// rows.
    pub fn found(&mut self, value: Expr, subquery: &Subquery) -> Result<Expr> {
        let value = self.resolved(value)?;
        let plan = subquery.subquery.as_ref();
        let column = first_column(plan)?;
        let found = self.mark(plan, Some(value.clone()))?;
        let mut cases = vec![(found, lit(true))];
        let null = || Expr::Literal(ScalarValue::Boolean(None), None);
        if Expr::Column(column).nullable(plan.schema())? {
            cases.push((self.mark(&nulls_of(plan)?, None)?, null()));
        }
        if can_be_null(&value, &self.plan)? {
            let has_rows = self.mark(plan, None)?;
            cases.push((value.is_null().and(has_rows), null()));
        }
        Ok(first_of(cases, false))
    }

    /// Keeps the rows for which `value NOT IN (subquery)` is true.
    pub fn keep_not_found(&mut self, value: Expr, subquery: &Subquery) -> Result<Option<Expr>> {
        let value = self.resolved(value)?;
        let plan = subquery.subquery.as_ref();
        let column = first_column(plan)?;
        self.keep_rows(plan, Some(value.clone()), JoinType::LeftAnti)?;
        if Expr::Column(column).nullable(plan.schema())? {
            self.keep_rows(&nulls_of(plan)?, None, JoinType::LeftAnti)?;
        }
        if !can_be_null(&value, &self.plan)? {
            return Ok(None);
        }
        let has_rows = self.mark(plan, None)?;
        Ok(Some(value.is_not_null().or(!has_rows)))
    }

    /// A comparison with ANY or ALL rows.
    fn compared(&mut self, comparison: SetComparison) -> Result<Expr> {
        let SetComparison {
            expr,
            subquery,
            op,
            quantifier,
        } = comparison;
        match (op, quantifier) {
            (Operator::Eq, SetQuantifier::Any) => return self.found(*expr, &subquery),
            (Operator::NotEq, SetQuantifier::All) => return Ok(!self.found(*expr, &subquery)?),
            _ => {}
        }
        let value = self.resolved(*expr)?;
        let value = as_outer(value, &self.plan)?;
        let plan = subquery.subquery.as_ref();
        let comparison = binary_expr(value, op, Expr::Column(first_column(plan)?));
        let decides = match quantifier {
            SetQuantifier::Any => comparison.clone().is_true(),
            SetQuantifier::All => comparison.clone().is_false(),
        };
        let decided = matches!(quantifier, SetQuantifier::Any);
        let decides = LogicalPlanBuilder::from(plan.clone())
            .filter(decides)?
            .build()?;
        let unknown = LogicalPlanBuilder::from(plan.clone())
            .filter(comparison.is_null())?
            .build()?;
        let cases = vec![
            (self.mark(&decides, None)?, lit(decided)),
            (
                self.mark(&unknown, None)?,
                Expr::Literal(ScalarValue::Boolean(None), None),
            ),
        ];
        Ok(first_of(cases, !decided))
    }

    /// The value of a subquery that refers to the plan.
    fn scalar(&mut self, subquery: &Subquery) -> Result<Expr> {
        let is_one = has_one_row(&subquery.subquery)?;
        let rows = self.rows(&subquery.subquery)?;
        let value = Expr::Column(rows.own[0].clone());
        let same = rows.same;
        if is_one {
            self.join(rows.plan, JoinType::Left, same)?;
            return Ok(value);
        }
        let [first, number] = ["__value", "__rows"].map(|name| self.names.next(name));
        let keys: Vec<Expr> = rows.of_outer.into_iter().map(Expr::Column).collect();
        let aggregates = vec![
            first_value(value, Vec::new()).alias(first.clone()),
            count(lit(1_i64)).alias(number.clone()),
        ];
        let grouped = LogicalPlanBuilder::from(rows.plan)
            .aggregate(keys, aggregates)?
            .build()?;
        self.join(grouped, JoinType::Left, same)?;
        let [first, number] = [first, number].map(|name| Expr::Column(Column::from_name(name)));
        Ok(super::one_row::one_row(first, number))
    }

    /// The subquery for all values that its outer columns have in the plan.
    fn rows(&mut self, subquery: &LogicalPlan) -> Result<NamedSubquery> {
        let mut outer = outer_columns(subquery)?;
        outer.retain(|column| self.plan.schema().has_column(column));
        let kept = match outer.is_empty() {
            true => None,
            false => {
                self.plan = readable_twice(self.plan.clone())?;
                let is_sure = !can_fail(subquery)?;
                let guard = self.guard().filter(|_| !is_sure);
                let mut read = outer.clone();
                read.extend(guard.iter().flat_map(Expr::column_refs).cloned());
                let below = below_joins(&self.plan, &read, is_sure);
                let mut rows = LogicalPlanBuilder::from(below.clone());
                if let Some(guard) = guard {
                    rows = rows.filter(guard)?;
                }
                let domain = OuterDomain::new(outer, rows.build()?, subquery)?;
                let kept = kept(subquery, &domain, self.names)?;
                Some((domain, kept))
            }
        };
        let own = subquery.schema().columns().into_iter();
        let (domain, plan, carried) = match kept {
            Some((domain, kept)) => (Some(domain), kept.plan, kept.carried),
            None => (None, subquery.clone(), Vec::new()),
        };
        let number = carried.len();
        let relation = self.names.next("__subquery");
        let columns = carried.into_iter().chain(own).enumerate();
        let columns = columns
            .map(|(index, column)| Expr::Column(column).alias(format!("{relation}_{index}")));
        let plan = LogicalPlanBuilder::from(plan)
            .project(columns.collect::<Vec<_>>())?
            .build()?;
        let mut of_outer = plan.schema().columns();
        let own = of_outer.split_off(number);
        let same = domain.map_or_else(Vec::new, |domain| domain.same(&of_outer));
        Ok(NamedSubquery {
            plan,
            of_outer,
            own,
            same,
        })
    }

    fn join(&mut self, right: LogicalPlan, join_type: JoinType, on: Vec<Expr>) -> Result<()> {
        let on = match on.is_empty() {
            true => vec![lit(true)],
            false => on,
        };
        let left = LogicalPlanBuilder::from(self.plan.clone());
        self.plan = left.join_on(right, join_type, on)?.build()?;
        Ok(())
    }
}

/// What has all values of the columns, without the joins of other subqueries: each would read those before it twice, and so twice
/// as much as the one before it. A subquery that may fail does not see values that a join has left out.
fn below_joins<'a>(plan: &'a LogicalPlan, columns: &[Column], is_sure: bool) -> &'a LogicalPlan {
    match plan {
        LogicalPlan::Join(join) => {
            let keeps = match join.join_type {
                JoinType::Left | JoinType::LeftMark => true,
                JoinType::LeftSemi | JoinType::LeftAnti => is_sure,
                _ => false,
            };
            let left = join.left.schema();
            match keeps && columns.iter().all(|column| left.has_column(column)) {
                true => below_joins(&join.left, columns, is_sure),
                false => plan,
            }
        }
        _ => plan,
    }
}

/// Whether an expression of a plan may fail.
fn can_fail(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        let schema = in_scope(node)?;
        node.apply_expressions(|expr| {
            found |= fallible::can_fail(expr, &schema);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Makes a plan one that can be read twice.
pub(super) fn readable_twice(plan: LogicalPlan) -> Result<LogicalPlan> {
    if is_steady(&plan)? {
        return Ok(plan);
    }
    match shared(plan)? {
        Some(shared) => Ok(shared),
        None => plan_err!(
            "in a recursive query a subquery of this form cannot refer to rows that LIMIT, a window or random() has chosen"
        ),
    }
}

fn first_column(plan: &LogicalPlan) -> Result<Column> {
    match plan.schema().columns().into_iter().next() {
        Some(column) if plan.schema().fields().len() == 1 => Ok(column),
        _ => plan_err!(
            "a subquery that values are compared with has one column, this one has {}",
            plan.schema().fields().len()
        ),
    }
}

/// The rows of a plan whose first column is NULL.
fn nulls_of(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let is_null = Expr::Column(first_column(plan)?).is_null();
    LogicalPlanBuilder::from(plan.clone())
        .filter(is_null)?
        .build()
}

fn can_be_null(value: &Expr, plan: &LogicalPlan) -> Result<bool> {
    match value {
        Expr::Column(_) | Expr::Literal(..) => value.nullable(plan.schema()),
        _ => Ok(true),
    }
}

fn first_of(cases: Vec<(Expr, Expr)>, otherwise: bool) -> Expr {
    let cases = cases.into_iter();
    Expr::Case(Case {
        expr: None,
        when_then_expr: cases
            .map(|(when, then)| (Box::new(when), Box::new(then)))
            .collect(),
        else_expr: Some(Box::new(lit(otherwise))),
    })
}

/// The expression as a subquery over `plan` would write it.
fn as_outer(expr: Expr, plan: &LogicalPlan) -> Result<Expr> {
    let outer = expr.transform(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(plan.schema().field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(outer.data)
}

/// Whether a subquery has one row at most, whatever its outer columns are.
fn has_one_row(plan: &LogicalPlan) -> Result<bool> {
    Ok(match plan {
        LogicalPlan::Projection(above) => has_one_row(&above.input)?,
        LogicalPlan::SubqueryAlias(above) => has_one_row(&above.input)?,
        LogicalPlan::Filter(above) => has_one_row(&above.input)?,
        LogicalPlan::Sort(above) => has_one_row(&above.input)?,
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(limit) => {
            has_one_row(&limit.input)?
                || matches!(
                    (limit.get_skip_type()?, limit.get_fetch_type()?),
                    (SkipType::Literal(_), FetchType::Literal(Some(0 | 1)))
                )
        }
        _ => false,
    })
}
