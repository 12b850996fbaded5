//! A plan for all values of its outer columns at once, where it was one for each.
//!
//! In: a plan that refers to columns of a query around it, and the domain: the values that these columns have there.
//! Out: a plan without these references, whose rows carry the values that they belong to in columns of their own.
//! Invariant: the rows with one set of values are those that the plan has for it, as many times. An aggregation without
//! keys has its row for values without rows, too. The method is that of T. Neumann and A. Kemper, "Unnesting Arbitrary
//! Queries" (2015): the domain is joined to the plan below its references, and each operator above keeps the values
//! apart.
//! Not here: the values of the domain (domain.rs), which subqueries go this way, and the join with the query around them
//! (mod.rs, joined.rs).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{GroupingSet, WindowFunction};
use datafusion::logical_expr::logical_plan::{
    Aggregate, Distinct, DistinctOn, FetchType, Filter, Join, JoinConstraint, Limit, Projection,
    SkipType, Sort, SubqueryAlias, Union, Unnest, Values, Window,
};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, SortExpr, binary_expr, lit,
};

use super::domain::OuterDomain;
use super::names::FreshNames;
use crate::optimizer::fixes::grouping::idle_sorts::with_own_order;

/// A plan that keeps values apart.
pub(super) struct DependentPlan {
    pub plan: LogicalPlan,
    /// Its columns that carry the values of the domain.
    pub carried: Vec<Column>,
}

/// `plan` for all values of `domain` at once.
pub(super) fn kept(
    plan: &LogicalPlan,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    if !domain.is_used_by(plan)? {
        let named = domain.named(names)?;
        let crossed = LogicalPlanBuilder::from(plan.clone()).cross_join(named.plan)?;
        return Ok(DependentPlan {
            plan: crossed.build()?,
            carried: named.carried,
        });
    }
    match plan {
        LogicalPlan::Filter(filter) => {
            let below = kept(&filter.input, domain, names)?;
            let predicate = domain.resolved(filter.predicate.clone(), &below.carried)?;
            let filter = Filter::try_new(predicate, Arc::new(below.plan))?;
            Ok(DependentPlan {
                plan: LogicalPlan::Filter(filter),
                carried: below.carried,
            })
        }
        LogicalPlan::Projection(projection) => {
            let below = kept(&projection.input, domain, names)?;
            let mut exprs = domain.resolved_all(plan, &projection.expr, &below.carried)?;
            exprs.extend(below.carried.iter().cloned().map(Expr::Column));
            let projection = Projection::try_new(exprs, Arc::new(below.plan))?;
            Ok(DependentPlan {
                plan: LogicalPlan::Projection(projection),
                carried: below.carried,
            })
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let below = kept(&alias.input, domain, names)?;
            let carried = below.carried.into_iter();
            let carried = carried.map(|column| Column::new(Some(alias.alias.clone()), column.name));
            let carried = carried.collect();
            let alias = SubqueryAlias::try_new(Arc::new(below.plan), alias.alias.clone())?;
            Ok(DependentPlan {
                plan: LogicalPlan::SubqueryAlias(alias),
                carried,
            })
        }
        LogicalPlan::Subquery(subquery) => kept(&subquery.subquery, domain, names),
        LogicalPlan::Aggregate(aggregate) => match with_own_order(aggregate)? {
            // The rows are joined to the values below it, which has no order.
            Some(ordered) => kept(&ordered, domain, names),
            None => kept_aggregate(plan, aggregate, domain, names),
        },
        LogicalPlan::Distinct(distinct) => kept_distinct(plan, distinct, domain, names),
        LogicalPlan::Sort(sort) => kept_sort(sort, domain, names),
        LogicalPlan::Limit(limit) => kept_limit(limit, domain, names),
        LogicalPlan::Window(window) => kept_window(plan, window, domain, names),
        LogicalPlan::Join(join) => kept_join(join, domain, names),
        LogicalPlan::Union(union) => kept_union(plan, union, domain, names),
        LogicalPlan::Values(values) => kept(&rows_of(values)?, domain, names),
        LogicalPlan::Unnest(unnest) => kept_unnest(unnest, domain, names),
        other => plan_err!(
            "a subquery cannot refer to columns of the query around it through this: {}",
            other.display()
        ),
    }
}

/// The carried columns are keys as well. Where the aggregation answers without rows, it is one of all values and of the
/// rows that they have, if any; rows that are none do not count.
fn kept_aggregate(
    plan: &LogicalPlan,
    aggregate: &Aggregate,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let sets = sets_of(&aggregate.group_expr);
    let answers_without_rows = sets.iter().any(Vec::is_empty);
    let mut below = kept(&aggregate.input, domain, names)?;
    let keys = domain.resolved_all(plan, &aggregate.group_expr, &below.carried)?;
    let mut aggregates = domain.resolved_all(plan, &aggregate.aggr_expr, &below.carried)?;
    let mut is_row = None;
    if answers_without_rows {
        let (all, row) = with_all_values(below, domain, names)?;
        // The values are those of the domain, also where there is no row.
        let carried = all.carried.clone();
        below = all;
        let row = Expr::Column(row).is_not_null();
        aggregates = aggregates
            .into_iter()
            .map(|expr| only_rows(expr, &row))
            .collect::<Result<_>>()?;
        is_row = Some(row);
        below.carried = carried;
    }
    let values = || below.carried.iter().cloned().map(Expr::Column);
    let keys = match keys.as_slice() {
        [Expr::GroupingSet(_)] => {
            let sets = sets_of(&keys).into_iter();
            // Before all others, so that grouping() sees the bits of its columns where they were.
            let sets = sets.map(|set| values().chain(set).collect());
            vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets.collect()))]
        }
        _ => values().chain(keys).collect(),
    };
    let carried = below.carried.clone();
    let has_sets = matches!(keys.as_slice(), [Expr::GroupingSet(_)]);
    let rows_name = names.next("__rows");
    if let (Some(row), true) = (&is_row, has_sets) {
        let count = datafusion::functions_aggregate::expr_fn::count(lit(1_i64));
        aggregates.push(only_rows(count, row)?.alias(rows_name.clone()));
    }
    let grouped = Aggregate::try_new(Arc::new(below.plan), keys, aggregates)?;
    let mut grouped = LogicalPlan::Aggregate(grouped);
    if is_row.is_some() && has_sets {
        grouped = without_empty_groups(grouped, &aggregate.group_expr, &rows_name)?;
    }
    Ok(DependentPlan {
        plan: grouped,
        carried,
    })
}

/// Grouping sets without the groups of values without rows, but for those of empty sets. Above the bits of its columns, a set's id
/// has how often the set stands before it.
fn without_empty_groups(
    grouped: LogicalPlan,
    group_expr: &[Expr],
    rows_name: &str,
) -> Result<LogicalPlan> {
    let mut keys: Vec<Expr> = Vec::new();
    for key in sets_of(group_expr).into_iter().flatten() {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let all = (1_u64 << keys.len().min(63)) - 1;
    let id = Column::from_name(Aggregate::INTERNAL_GROUPING_ID);
    let id_type = Expr::Column(id.clone()).get_type(grouped.schema())?;
    let all = ScalarValue::UInt64(Some(all)).cast_to(&id_type)?;
    let has_rows = Expr::Column(Column::from_name(rows_name)).gt(lit(0_i64));
    let left_out = binary_expr(Expr::Column(id), Operator::BitwiseAnd, lit(all.clone()));
    let keep = has_rows.or(left_out.eq(lit(all)));
    LogicalPlanBuilder::from(grouped).filter(keep)?.build()
}

/// All values of the domain with the rows that they have; the column is NULL where there is none.
fn with_all_values(
    below: DependentPlan,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<(DependentPlan, Column)> {
    let all = domain.named(names)?;
    let row = names.next("__row");
    let mut columns: Vec<Expr> = below
        .plan
        .schema()
        .columns()
        .into_iter()
        .map(Expr::Column)
        .collect();
    columns.push(lit(true).alias(row.clone()));
    let rows = LogicalPlanBuilder::from(below.plan)
        .project(columns)?
        .build()?;
    let same = same_values(&all.carried, &below.carried);
    let joined = LogicalPlanBuilder::from(all.plan).join_on(rows, JoinType::Left, same)?;
    let kept = DependentPlan {
        plan: joined.build()?,
        carried: all.carried,
    };
    Ok((kept, Column::from_name(row)))
}

/// The aggregate of rows for which `row` holds, under its name.
fn only_rows(expr: Expr, row: &Expr) -> Result<Expr> {
    let (relation, name) = expr.qualified_name();
    let expr = expr.unalias().transform_down(|part| match part {
        Expr::AggregateFunction(mut function) => {
            let filter = function.params.filter.take();
            let filter = match filter {
                Some(filter) => row.clone().and(*filter),
                None => row.clone(),
            };
            function.params.filter = Some(Box::new(filter));
            let function = Expr::AggregateFunction(function);
            Ok(Transformed::new(function, true, TreeNodeRecursion::Jump))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(expr.data.alias_qualified(relation, name))
}

/// The grouping sets of keys; keys that are none are one set. A CUBE of too many is refused in the statement's text.
fn sets_of(keys: &[Expr]) -> Vec<Vec<Expr>> {
    let [Expr::GroupingSet(set)] = keys else {
        return vec![keys.to_vec()];
    };
    match set {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(keys) => {
            let lengths = (0..=keys.len()).rev();
            lengths.map(|length| keys[..length].to_vec()).collect()
        }
        GroupingSet::Cube(keys) => {
            let sets = 0..1_usize << keys.len();
            let set = |left_out: usize| {
                let keys = keys.iter().enumerate();
                let keys = keys.filter(|(index, _)| left_out >> index & 1 == 0);
                keys.map(|(_, key)| key.clone()).collect()
            };
            sets.map(set).collect()
        }
    }
}

fn kept_distinct(
    plan: &LogicalPlan,
    distinct: &Distinct,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    match distinct {
        Distinct::All(input) => {
            let below = kept(input, domain, names)?;
            Ok(DependentPlan {
                plan: LogicalPlan::Distinct(Distinct::All(Arc::new(below.plan))),
                carried: below.carried,
            })
        }
        Distinct::On(on) => {
            let below = kept(&on.input, domain, names)?;
            let carried = &below.carried;
            let values = || carried.iter().cloned().map(Expr::Column);
            let firsts = domain.resolved_all(plan, &on.on_expr, carried)?;
            let mut select = domain.resolved_all(plan, &on.select_expr, carried)?;
            select.extend(values());
            let sorts = match &on.sort_expr {
                Some(sorts) => {
                    let values = values().map(|value| value.sort(true, true));
                    let sorts = domain.resolved_sorts(sorts, carried)?;
                    Some(values.chain(sorts).collect())
                }
                None => None,
            };
            let firsts = values().chain(firsts).collect();
            let on = DistinctOn::try_new(firsts, select, sorts, Arc::new(below.plan))?;
            Ok(DependentPlan {
                plan: LogicalPlan::Distinct(Distinct::On(on)),
                carried: below.carried,
            })
        }
    }
}

fn kept_sort(sort: &Sort, domain: &OuterDomain, names: &mut FreshNames) -> Result<DependentPlan> {
    if let Some(fetch) = sort.fetch {
        let sorted = Sort {
            fetch: None,
            ..sort.clone()
        };
        let limit = Limit {
            skip: None,
            fetch: Some(Box::new(lit(i64::try_from(fetch).unwrap_or(i64::MAX)))),
            input: Arc::new(LogicalPlan::Sort(sorted)),
        };
        return kept_limit(&limit, domain, names);
    }
    let below = kept(&sort.input, domain, names)?;
    let sorted = Sort {
        expr: domain.resolved_sorts(&sort.expr, &below.carried)?,
        input: Arc::new(below.plan),
        fetch: None,
    };
    Ok(DependentPlan {
        plan: LogicalPlan::Sort(sorted),
        carried: below.carried,
    })
}

/// LIMIT and OFFSET count the rows of each set of values.
fn kept_limit(
    limit: &Limit,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
        (limit.get_skip_type()?, limit.get_fetch_type()?)
    else {
        return plan_err!(
            "LIMIT of a subquery that refers to the query around it must be a number"
        );
    };
    // What a projection or a name does to the order of rows is nothing, so both may come later.
    match limit.input.as_ref() {
        LogicalPlan::Projection(above) => {
            let input = Arc::new(LogicalPlan::Limit(with_input(limit, &above.input)));
            let above = Projection::try_new(above.expr.clone(), input)?;
            return kept(&LogicalPlan::Projection(above), domain, names);
        }
        LogicalPlan::SubqueryAlias(above) => {
            let input = Arc::new(LogicalPlan::Limit(with_input(limit, &above.input)));
            let above = SubqueryAlias::try_new(input, above.alias.clone())?;
            return kept(&LogicalPlan::SubqueryAlias(above), domain, names);
        }
        _ => {}
    }
    let (below, order) = match limit.input.as_ref() {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            let below = kept(&sort.input, domain, names)?;
            let order = domain.resolved_sorts(&sort.expr, &below.carried)?;
            (below, order)
        }
        other => (kept(other, domain, names)?, Vec::new()),
    };
    let columns = below.plan.schema().columns();
    let name = names.next("__place");
    let place = row_number(
        below.carried.iter().cloned().map(Expr::Column).collect(),
        order,
    );
    let window = Window::try_new(vec![place.alias(name.clone())], Arc::new(below.plan))?;
    let place = || Expr::Column(Column::from_name(name.clone()));
    let after = (skip > 0).then(|| place().gt(lit(skip as u64)));
    let until = fetch.map(|fetch| place().lt_eq(lit(skip.saturating_add(fetch) as u64)));
    let mut plan = LogicalPlanBuilder::from(LogicalPlan::Window(window));
    if let Some(bounds) = conjunction(after.into_iter().chain(until)) {
        plan = plan.filter(bounds)?;
    }
    Ok(DependentPlan {
        plan: plan
            .project(columns.into_iter().map(Expr::Column))?
            .build()?,
        carried: below.carried,
    })
}

fn with_input(limit: &Limit, input: &Arc<LogicalPlan>) -> Limit {
    Limit {
        input: Arc::clone(input),
        ..limit.clone()
    }
}

/// `row_number() OVER (PARTITION BY … ORDER BY …)`.
pub(in crate::optimizer::fixes) fn row_number(
    partition_by: Vec<Expr>,
    order_by: Vec<SortExpr>,
) -> Expr {
    let function = datafusion::functions_window::row_number::row_number_udwf();
    let mut function = WindowFunction::new(function, Vec::new());
    function.params.partition_by = partition_by;
    function.params.window_frame =
        datafusion::logical_expr::WindowFrame::new((!order_by.is_empty()).then_some(false));
    function.params.order_by = order_by;
    Expr::WindowFunction(Box::new(function))
}

/// The carried columns part the rows of each window.
fn kept_window(
    plan: &LogicalPlan,
    window: &Window,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let below = kept(&window.input, domain, names)?;
    let exprs = window.window_expr.iter();
    let partitioned = exprs.map(|expr| {
        let name = expr.qualified_name().1;
        let expr = expr.clone().transform_down(|part| match part {
            Expr::WindowFunction(mut function) => {
                let values = below.carried.iter().cloned().map(Expr::Column);
                function.params.partition_by.extend(values);
                let function = Expr::WindowFunction(function);
                Ok(Transformed::new(function, true, TreeNodeRecursion::Jump))
            }
            other => Ok(Transformed::no(other)),
        })?;
        let expr = domain.resolved(expr.data, &below.carried)?;
        Ok(expr.unalias().alias(name))
    });
    let partitioned = partitioned.collect::<Result<Vec<_>>>()?;
    debug_assert_eq!(
        partitioned.len(),
        plan.schema().fields().len() - window.input.schema().fields().len()
    );
    let window = Window::try_new(partitioned, Arc::new(below.plan))?;
    Ok(DependentPlan {
        plan: LogicalPlan::Window(window),
        carried: below.carried,
    })
}

/// A side whose rows are all kept carries the values; where both do, they are the same.
fn kept_join(join: &Join, domain: &OuterDomain, names: &mut FreshNames) -> Result<DependentPlan> {
    let in_right = domain.is_used_by(&join.right)?;
    let in_left = domain.is_used_by(&join.left)?;
    let (keep_left, keep_right) = match join.join_type {
        JoinType::Inner => (in_left || !in_right, in_right),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (true, in_right)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (in_left, true)
        }
        JoinType::Full => (true, true),
    };
    let keep = |side: &Arc<LogicalPlan>, keep: bool, names: &mut FreshNames| match keep {
        true => kept(side, domain, names).map(|kept| (kept.plan, Some(kept.carried))),
        false => Ok((side.as_ref().clone(), None)),
    };
    let (left, left_carried) = keep(&join.left, keep_left, names)?;
    let (right, right_carried) = keep(&join.right, keep_right, names)?;
    let carried = match (join.join_type, &left_carried, &right_carried) {
        (
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark,
            _,
            Some(right),
        ) => right,
        (_, Some(left), _) => left,
        (_, None, Some(right)) => right,
        (_, None, None) => return plan_err!("a join of a subquery carries no values"),
    };
    let carried = carried.clone();
    let same = match (&left_carried, &right_carried) {
        (Some(left), Some(right)) => same_values(left, right),
        _ => Vec::new(),
    };
    let plan = joined(join, domain, (left, right), (&carried, same))?;
    only_once(join, plan, (left_carried, right_carried), carried, names)
}

/// The join of the sides with the conditions that it had, and `same`.
fn joined(
    join: &Join,
    domain: &OuterDomain,
    (left, right): (LogicalPlan, LogicalPlan),
    (carried, same): (&[Column], Vec<Expr>),
) -> Result<LogicalPlan> {
    let is_plain = |(l, r): &&(Expr, Expr)| !domain.is_used_in(l) && !domain.is_used_in(r);
    let on: Vec<_> = join.on.iter().filter(is_plain).cloned().collect();
    let null_is_null = join.null_equality == datafusion::common::NullEquality::NullEqualsNull;
    let others = join.on.iter().filter(|pair| !is_plain(pair));
    let others = others.map(|(l, r)| match null_is_null {
        true => same_value(l.clone(), r.clone()),
        false => l.clone().eq(r.clone()),
    });
    let others = others.chain(join.filter.clone());
    let others = others.map(|expr| domain.resolved(expr, carried));
    let filter = others.collect::<Result<Vec<_>>>()?.into_iter().chain(same);
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        conjunction(filter),
        join.join_type,
        JoinConstraint::On,
        join.null_equality,
        join.null_aware,
    )?;
    Ok(LogicalPlan::Join(join))
}

/// The join's columns with the values once.
fn only_once(
    join: &Join,
    plan: LogicalPlan,
    (left, right): (Option<Vec<Column>>, Option<Vec<Column>>),
    carried: Vec<Column>,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let (Some(left), Some(right)) = (left, right) else {
        return Ok(DependentPlan { plan, carried });
    };
    let own = join.schema.columns();
    let mut columns: Vec<Expr> = own.into_iter().map(Expr::Column).collect();
    let mut names_of_values = carried.clone();
    if join.join_type == JoinType::Full {
        let relation = names.next("__outer");
        let pairs = left.into_iter().zip(right).enumerate();
        names_of_values.clear();
        for (index, (left, right)) in pairs {
            let name = format!("{relation}_{index}");
            let either = vec![Expr::Column(left), Expr::Column(right)];
            let either = datafusion::functions::core::expr_fn::coalesce(either);
            columns.push(either.alias(name.clone()));
            names_of_values.push(Column::from_name(name));
        }
    } else {
        columns.extend(carried.into_iter().map(Expr::Column));
    }
    let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
    Ok(DependentPlan {
        plan,
        carried: names_of_values,
    })
}

fn kept_union(
    plan: &LogicalPlan,
    union: &Union,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let mut inputs = Vec::with_capacity(union.inputs.len());
    let common = names.next("__outer");
    for input in &union.inputs {
        let below = kept(input, domain, names)?;
        let own = input.schema().columns().into_iter().map(Expr::Column);
        let values = below.carried.into_iter().enumerate();
        let values =
            values.map(|(index, column)| Expr::Column(column).alias(format!("{common}_{index}")));
        let columns: Vec<Expr> = own.chain(values).collect();
        inputs.push(Arc::new(
            LogicalPlanBuilder::from(below.plan)
                .project(columns)?
                .build()?,
        ));
    }
    let all = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
    // The union's columns have the names that they had.
    let columns = all.schema().columns();
    let before: Vec<_> = plan
        .schema()
        .iter()
        .map(|(of, field)| (of.cloned(), field.name().clone()))
        .collect();
    let own = columns.iter().zip(before);
    let own =
        own.map(|(column, (of, name))| Expr::Column(column.clone()).alias_qualified(of, name));
    let own: Vec<Expr> = own.collect();
    let values = columns[own.len()..].iter().cloned();
    let carried: Vec<Column> = values.clone().collect();
    let columns = own.into_iter().chain(values.map(Expr::Column));
    let plan = LogicalPlanBuilder::from(all).project(columns)?.build()?;
    Ok(DependentPlan { plan, carried })
}

/// The rows of VALUES, each a SELECT without FROM.
pub(super) fn rows_of(values: &Values) -> Result<LogicalPlan> {
    let mut rows = Vec::with_capacity(values.values.len());
    for row in &values.values {
        let fields = values.schema.fields().iter();
        let columns = row.iter().zip(fields);
        let columns = columns.map(|(expr, field)| expr.clone().alias(field.name()));
        let row = LogicalPlanBuilder::empty(true).project(columns.collect::<Vec<_>>())?;
        rows.push(Arc::new(row.build()?));
    }
    Ok(match rows.as_slice() {
        [row] => row.as_ref().clone(),
        _ => LogicalPlan::Union(Union::try_new_with_loose_types(rows)?),
    })
}

fn kept_unnest(
    unnest: &Unnest,
    domain: &OuterDomain,
    names: &mut FreshNames,
) -> Result<DependentPlan> {
    let below = kept(&unnest.input, domain, names)?;
    let unnested = LogicalPlanBuilder::from(below.plan)
        .unnest_columns_with_options(unnest.exec_columns.clone(), unnest.options.clone())?;
    Ok(DependentPlan {
        plan: unnested.build()?,
        carried: below.carried,
    })
}

/// Whether values are the same, where NULL is NULL.
pub(super) fn same_value(left: Expr, right: Expr) -> Expr {
    binary_expr(left, Operator::IsNotDistinctFrom, right)
}

/// Conditions of a join of values with the same values.
pub(super) fn same_values(left: &[Column], right: &[Column]) -> Vec<Expr> {
    let pairs = left.iter().cloned().zip(right.iter().cloned());
    let pairs = pairs.map(|(left, right)| same_value(Expr::Column(left), Expr::Column(right)));
    pairs.collect()
}
