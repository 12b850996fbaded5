//! Mends of DataFusion: plans it gets wrong, and SQL it does not plan.
//!
//! In: DataFusion's planners of expressions and its lists of rules.
//! Out: planners of ours before DataFusion's; the lists with the rules that go wrong held back where they do.
//! Invariant: a mend changes no plan that DataFusion gets right, and goes when DataFusion's own tests cover its case.
//! Not here: our operator's rule; statements in another form (sql/); functions whose host version is wrong (functions/).

mod long_literals;
mod unsigned_literals;
mod signed_counts;
mod composed;
mod meanings;
mod own_casts;
mod text_parts;
mod compared;
mod decimals;
mod rounded;
mod compared_casts;
mod timestamps;
mod mixed_types;
mod narrow_dictionaries;
mod joined_codes;
mod fallible;
mod held_filters;
mod guarded_joins;
mod short_circuit;
mod filtered_arguments;
mod single_distinct;
mod grouping_sets;
mod outer_constants;
mod repeated_keys;
mod idle_sorts;
mod null_equal_joins;
mod repeated_order;
mod qualified_keys;
mod long_conditions;
pub(crate) mod equal_values;
mod null_structs;
mod volatile_windows;
mod constants;
mod in_lists;
mod checked;
mod within_digits;
mod read_once;
mod true_dependencies;
mod nullable_scalars;
mod unnested;
mod set_all;
mod offset_order;
mod checked_plan;
mod window_orders;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, WriteOp};
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use crate::runtime::options::{GroupByOperator, SessionOptions};

pub use long_literals::keep_long_literals;
pub use set_all::count_equal_rows;

/// The planner of execution: DataFusion's, which also plans nodes of ours.
pub fn query_planner() -> Arc<dyn QueryPlanner + Send + Sync> {
    Arc::new(read_once::Planner)
}

/// Planners that see an expression before DataFusion's do.
pub fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![
        Arc::new(unsigned_literals::UnsignedLiterals),
        Arc::new(signed_counts::SignedCounts),
        Arc::new(text_parts::TextParts),
        Arc::new(joined_codes::JoinedCodes),
    ]
}

/// DataFusion's rules before the optimizer, after ours: its type coercion leaves nothing to mend.
pub fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![
        Arc::new(meanings::MeanAsSql),
        Arc::new(composed::ComposedAggregates),
        Arc::new(mixed_types::RefuseMixedUnions),
        Arc::new(narrow_dictionaries::UnpackNarrowDictionaries),
        Arc::new(compared::CompareExactly),
    ];
    rules.extend(Analyzer::new().rules);
    rules.push(Arc::new(own_casts::OwnCasts));
    rules.push(Arc::new(nullable_scalars::NullableScalars));
    rules.push(Arc::new(read_once::ShareTables));
    rules.push(Arc::new(unnested::UnnestSubqueries));
    rules
}

/// DataFusion's logical rules with ours in place.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules: Vec<_> = Optimizer::new().rules.into_iter().map(mended).collect();
    // Before DataFusion makes expressions shorter, in another order.
    rules.insert(0, Arc::new(filtered_arguments::GuardArguments));
    rules.insert(0, Arc::new(idle_sorts::DropSortBelowGroups));
    rules.insert(0, Arc::new(volatile_windows::VolatileWindows));
    // Once more, after filters have come down to joins.
    rules.push(mended(Arc::new(ExtractEquijoinPredicate::new())));
    rules.push(Arc::new(offset_order::OffsetBelowProjection));
    let readers = true_dependencies::READERS;
    let mut rules: Vec<_> = rules
        .into_iter()
        .flat_map(|rule| {
            let is_reader = readers.contains(&rule.name());
            let before: Option<Arc<dyn OptimizerRule + Send + Sync>> =
                is_reader.then(|| Arc::new(true_dependencies::TrueDependencies) as _);
            before.into_iter().chain([rule])
        })
        .collect();
    // Last, because simplification can make two keys the same.
    rules.push(Arc::new(repeated_order::DropRepeatedOrder));
    // Last as well: no rule of DataFusion's makes comparisons after it, and that for a single DISTINCT has had its turn.
    rules.push(Arc::new(equal_values::EqualValues));
    rules.push(Arc::new(null_structs::NullStructsInWindows));
    rules.push(Arc::new(qualified_keys::QualifiedKeys));
    rules.push(Arc::new(long_conditions::LongConditions));
    rules.push(Arc::new(window_orders::WindowOrders));
    rules
}

fn mended(host: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
    let rewrite: Rewrite = match host.name() {
        "simplify_expressions" => constants::rewrite,
        "push_down_filter" => held_filters::rewrite,
        "eliminate_group_by_constant" => repeated_keys::rewrite,
        "extract_equijoin_predicate" => null_equal_joins::extract,
        "eliminate_cross_join" => null_equal_joins::reorder,
        "single_distinct_aggregation_to_group_by" => single_distinct::rewrite,
        "common_sub_expression_eliminate" => but_for_changes,
        _ => return host,
    };
    Arc::new(Mended { host, rewrite })
}

/// Of DELETE and UPDATE DataFusion hands the conditions to the table as they stand in the plan: no part of one may have
/// become a column of a projection below it.
fn but_for_changes(
    host: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match &plan {
        LogicalPlan::Dml(change) if matches!(change.op, WriteOp::Delete | WriteOp::Update) => {
            Ok(Transformed::no(plan))
        }
        _ => host.rewrite(plan, config),
    }
}

/// What a rule of DataFusion does, with DataFusion's rule to call where it is right.
type Rewrite =
    fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// One of DataFusion's logical rules that goes another way in some plans.
#[derive(Debug)]
struct Mended {
    host: Arc<dyn OptimizerRule + Send + Sync>,
    rewrite: Rewrite,
}

impl OptimizerRule for Mended {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.host.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(self.host.as_ref(), plan, config)
    }
}

/// Mends every plan from the leaves up, those in subqueries too.
fn each_plan(
    plan: LogicalPlan,
    mut mend: impl FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<LogicalPlan> {
    let mut changed = false;
    let plan = plan.transform_up_with_subqueries(|plan| {
        let plan = mend(plan)?;
        changed |= plan.transformed;
        // A type that has changed below is one of the plans above as well.
        match changed {
            true => Ok(Transformed::yes(plan.data.recompute_schema()?)),
            false => Ok(plan),
        }
    })?;
    Ok(plan.data)
}

/// Mends every part of a plan's expressions, which keep their names; the columns of grouping sets stay.
fn each_named(
    plan: LogicalPlan,
    mut mend: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        if matches!(expr, Expr::GroupingSet(_)) {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let expr = expr.transform_up(&mut mend)?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })
}

/// True where DataFusion's operator groups.
fn is_host(config: &dyn OptimizerConfig) -> bool {
    let options = SessionOptions::of(&config.options());
    options.group_by_operator == GroupByOperator::Host
}

/// What `rewritten` makes of an aggregation for our operator; the plan itself where that is nothing, or it is another.
pub(crate) fn for_our_operator(
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
    rewritten: impl FnOnce(&Aggregate) -> Result<Option<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let found = match &plan {
        LogicalPlan::Aggregate(aggregate) if !is_host(config) => rewritten(aggregate)?,
        _ => None,
    };
    Ok(found.map_or_else(|| Transformed::no(plan), Transformed::yes))
}

/// An aggregate without the name that the query gives it.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => &alias.expr,
        other => other,
    }
}

/// Aggregates for a projection to be made of, each once.
#[derive(Default)]
pub(crate) struct Below(Vec<Expr>);

impl Below {
    /// The column of `expr`.
    pub fn column(&mut self, expr: Expr) -> Expr {
        let known = self.0.iter().find(|known| bare(known) == bare(&expr));
        let (relation, name) = known.unwrap_or(&expr).qualified_name();
        if known.is_none() {
            self.0.push(expr);
        }
        Expr::Column(Column::new(relation, name))
    }
}

/// An aggregation with other aggregates, `below`, under a projection in which `columns`, made of them, have the names of
/// its own. `None` where two columns below would have one name: casts do not show in names.
pub(crate) fn under_names(
    aggregate: &Aggregate,
    Below(below): Below,
    columns: Vec<Expr>,
) -> Result<Option<LogicalPlan>> {
    let keys = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let fields: Vec<_> = aggregate.schema.iter().collect();
    let (keys, names) = fields.split_at(keys);
    let names_below = below.iter().map(|expr| expr.qualified_name().1);
    let mut names_below = names_below.chain(keys.iter().map(|(_, key)| key.name().clone()));
    let mut known = HashSet::new();
    if !names_below.all(|name| known.insert(name)) {
        return Ok(None);
    }
    let keys = keys.iter().map(|field| Expr::Column(Column::from(*field)));
    let named = columns.into_iter().zip(names);
    let named =
        named.map(|(column, (of, field))| column.alias_qualified(of.cloned(), field.name()));
    let (input, keys_below) = (Arc::clone(&aggregate.input), aggregate.group_expr.clone());
    let outputs = keys.chain(named).collect();
    let below = LogicalPlan::Aggregate(Aggregate::try_new(input, keys_below, below)?);
    let outputs = Projection::try_new(outputs, Arc::new(below))?;
    Ok(Some(LogicalPlan::Projection(outputs)))
}

/// `rules`, DataFusion's physical rules and perhaps our operator's, with ours in place.
pub fn physical_rules(
    mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let before = rules
        .iter()
        .position(|rule| rule.name() == grouping_sets::BEFORE_RULE);
    let rule: Arc<dyn PhysicalOptimizerRule + Send + Sync> =
        Arc::new(grouping_sets::ForgetEquivalences);
    rules.insert(before.unwrap_or(0), rule);
    rules.insert(0, Arc::new(outer_constants::ForgetOuterConstants));
    rules.insert(0, Arc::new(offset_order::KeepOrderBelowOffset));
    rules.insert(0, Arc::new(short_circuit::GuardConditions));
    rules.insert(0, Arc::new(null_structs::NullStructs));
    rules.insert(0, Arc::new(checked_plan::CheckArithmetic));
    rules
}
