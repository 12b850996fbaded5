//! Passes: which rules of ours a plan passes among DataFusion's, in which order, and what each does.
//!
//! In: DataFusion's lists of rules. Out: the same lists with ours in place.
//! Invariant: a rule that stands before or around one of DataFusion's needs it: without that one a session does not begin.
//! Not here: how a rule does it.

use std::sync::Arc;

use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use super::filters;
use super::fixes::around::{Around, Rewrite, Shown};
use super::fixes::failing::*;
use super::fixes::grouping::*;
use super::fixes::joins::*;
use super::fixes::orders::*;
use super::fixes::types::*;
use super::fixes::*;
use super::group_by;
use super::rules::{analysis, bottom_up, physical, top_down, whole};
use super::scans::codes::CodesRule;
use super::scans::morsels::MorselsRule;
use super::scans::row_order::RowOrderRule;
use super::scans::{guarded, recorded, row_order};
use super::shared_sums::SharedSums;
use super::stages;
use crate::error::{Error, Result};
use crate::expr::arithmetic;
use crate::functions::StandingFunctions;
use crate::runtime::memory::SessionPool;
use crate::scan::stores::Stores;
use crate::scan::writes::whole_files;

use Needed::{ByDataFusion, ByMachine, ByOperator};
use PassPlace::{Before, First, Last};
use Shown::{AsBefore, Whole};

/// A rule of ours, with the fields in the order in which the tables below give them.
struct Pass<R: ?Sized> {
    place: PassPlace,
    needed: Needed,
    rule: Arc<R>,
    /// What it does: a formula or a sentence.
    does: &'static str,
}

/// Where among DataFusion's rules; those of one place in the order of their table.
enum PassPlace {
    First,
    /// Before each of these.
    Before(&'static [&'static str]),
    Last,
}

/// What a rule is there for.
#[derive(Clone, Copy, PartialEq)]
pub enum Needed {
    /// Right answers, whichever operator groups.
    ByDataFusion,
    /// Our operator and how we write.
    ByOperator,
    /// Speed on the machine that runs the plan: what it reads, and in which form.
    ByMachine,
}

macro_rules! passes {
    ($($place:expr, $needed:expr, $rule:expr, $does:literal;)*) => {
        vec![$(Pass { place: $place, needed: $needed, rule: Arc::new($rule), does: $does }),*]
    };
}

type ExpressionPlanner = dyn ExprPlanner;
type Analysis = dyn AnalyzerRule + Send + Sync;
type Logical = dyn OptimizerRule + Send + Sync;
type Physical = dyn PhysicalOptimizerRule + Send + Sync;

/// Planners of expressions: each sees one before DataFusion's do.
fn planner_passes() -> Vec<Pass<ExpressionPlanner>> {
    passes! {
        First, ByDataFusion, unsigned_literals::UnsignedLiterals, "u - 1 → u - CAST(1 AS BIGINT UNSIGNED)";
        First, ByDataFusion, exclusions::Exclusions,              "sum(x) OVER (… EXCLUDE TIES): what the call is otherwise, with frames that leave rows out";
        First, ByDataFusion, settled_types::SettleOperands,       "a CASE that is an operand has the type of all its branches";
        First, ByDataFusion, decimal_quotients::DecimalQuotients, "x / y of decimals: a DOUBLE, and an error by zero";
        First, ByDataFusion, day_spans::DaySpans,                 "day + (t - u) of timestamps t and u → day + an interval";
        First, ByDataFusion, signed_counts::SignedCounts,         "row_number(), rank(), count_distinct(x) → their CAST AS BIGINT";
        First, ByDataFusion, text_parts::TextParts,               "s[2:3] of a string → substr(s, 2, 2)";
        First, ByDataFusion, list_items::ListItems,               "array_agg(DISTINCT x)[2] → array_element(array_agg(DISTINCT x), 2)";
        First, ByDataFusion, joined_codes::JoinedCodes,           "d || 1 of a dictionary → CAST(d AS VARCHAR) || 1";
        First, ByOperator,   StandingFunctions,                   "list(x) → array_agg(x), count_if(x) → count(*) FILTER (WHERE x), max(x, n), …";
    }
}

/// Before and after DataFusion brings operands to one type.
fn analysis_passes() -> Vec<Pass<Analysis>> {
    passes! {
        First, ByDataFusion, analysis("written_keys", written_keys::analyze),                      "no column is a key that was not written and that keys do not determine";
        First, ByDataFusion, analysis("elements_below", grouped_elements::analyze),                "ROLLUP (a + 1) → ROLLUP (c) over a projection with c = a + 1";
        First, ByDataFusion, analysis("refuse_mixed_unions", mixed_types::analyze),                "a UNION of numbers and dates is an error";
        First, ByDataFusion, analysis("settle_types", settled_types::analyze),                     "CASE and UNION have the type of all their branches, written rows those of their columns";
        First, ByDataFusion, analysis("mean_as_sql", meanings::analyze),                           "casts to integers round; % of floats, intervals and dates mean what SQL says";
        First, ByDataFusion, analysis("keep_json", json_values::analyze),                          "json_array('[1]'::json) is [[1]]: strings that are JSON are marked for calls that write JSON";
        First, ByDataFusion, analysis("composed_aggregates", composed::analyze),                   "an aggregate that others make up → an expression of these";
        First, ByDataFusion, analysis("unpack_narrow_dictionaries", narrow_dictionaries::analyze), "first_value(d), lag(d) OVER (…) of a dictionary of small keys → of its values";
        First, ByDataFusion, analysis("compare_exactly", compared::analyze),                       "operands of comparisons get the type that loses no digit";
        Last,  ByDataFusion, analysis("outer_types", outer_types::analyze),                        "columns of an outer UNION have its type in subqueries, too";
        Last,  ByDataFusion, analysis("own_casts", own_casts::analyze),                            "CAST → a function of ours where DataFusion's is not SQL's";
        Last,  ByDataFusion, analysis("try_values", tried::analyze),                               "CAST(s AS INTEGER) IS NULL: the cast is made although s has no NULL";
        Last,  ByDataFusion, analysis("nullable_scalar_subqueries", nullable_scalars::analyze),    "a scalar subquery is NULL without a row";
        Last,  ByDataFusion, analysis("share_tables", read_once::analyze),                         "a part of a plan that is copied and must have the same rows is read once";
        Last,  ByDataFusion, analysis("unnest_subqueries", unnested::analyze),                     "subqueries → joins, where DataFusion's rules go wrong or give up";
        Last,  ByDataFusion, analysis("share_turns", read_once::turns::analyze),                   "places that read the turn of a recursion share its rows; last, since other rules copy them";
    }
}

/// The logical optimizer's.
fn logical_passes() -> Vec<Pass<Logical>> {
    let equijoin = Around::new(
        Arc::new(ExtractEquijoinPredicate::new()),
        AsBefore,
        null_equal_joins::extract,
    );
    passes! {
        First, ByOperator,   SharedSums::AsWritten,                                                     "sum(x + c) → sum(x) + c * count(x); avg(x) beside sum(x) → sum(x) / count(x)";
        First, ByDataFusion, bottom_up("volatile_windows", volatile_windows::rewrite),                  "sum(random()) OVER (…) → sum(c) OVER (…) over a projection with c = random()";
        First, ByDataFusion, top_down("drop_sort_below_groups", idle_sorts::rewrite),                   "ORDER BY of a subquery whose rows are grouped goes";
        First, ByDataFusion, bottom_up("guard_arguments_by_their_filter", filtered_arguments::rewrite), "sum(10 / x) FILTER (WHERE p) → sum(CASE WHEN p THEN 10 / x END) FILTER (WHERE p)";
        Before(true_dependencies::READERS), ByDataFusion, whole("true_dependencies", true_dependencies::rewrite), "keys of an input do not determine columns of a grouping or an unnesting";
        Last,  ByDataFusion, equijoin,                                                                  "once more, after filters have come down to joins";
        Last,  ByDataFusion, top_down("offset_below_projection", offset_order::rewrite),                "OFFSET stands directly above its sort";
        Last,  ByDataFusion, bottom_up("drop_repeated_order_in_aggregates", repeated_order::rewrite),   "first_value(x ORDER BY y DESC, y) → first_value(x ORDER BY y DESC)";
        Last,  ByDataFusion, bottom_up("equal_values", equal_values::rewrite),                          "-0.0 = 0.0, NaN = -NaN, 30 days = 1 month wherever values are compared; after all rules that compare";
        Last,  ByDataFusion, bottom_up("null_structs_in_windows", null_structs::rewrite),               "s.x is NULL where s is NULL, in windows";
        Last,  ByDataFusion, bottom_up("qualified_join_keys", qualified_keys::rewrite),                 "columns of a join's keys name their side";
        Last,  ByDataFusion, bottom_up("long_conditions", long_conditions::rewrite),                    "a filter of hundreds of operands p → p IS TRUE";
        Last,  ByDataFusion, bottom_up("aggregate_left_rows", exclusions::rewrite),                     "EXCLUDE of an aggregate's frame → a window function that aggregates the rows left";
        Last,  ByDataFusion, bottom_up("window_orders", window_orders::rewrite),                        "a window is reversed only if its aggregate bears it";
        Last,  ByDataFusion, bottom_up("bounded_keys", bounded_keys::rewrite),                          "f(x) > 1 as a sort key says nothing of its bounds; last, since no rule shall look into keys after it";
        Last,  ByOperator,   SharedSums::AsNeeded,                                                      "avg(x) as above, of aggregates that are needed";
    }
}

/// DataFusion's logical rules that go another way in some plans.
const INSTEAD: [(&str, Shown, Rewrite, &str); 11] = [
    (
        "simplify_expressions",
        AsBefore,
        constants::rewrite,
        "constants keep what SQL says of them",
    ),
    (
        "replace_distinct_aggregate",
        AsBefore,
        true_dependencies::distinct,
        "a DISTINCT stays above a grouping of more keys",
    ),
    (
        "push_down_limit",
        AsBefore,
        limited_sorts::rewrite,
        "a LIMIT above a sort goes in one pass, not in two",
    ),
    (
        "push_down_filter",
        AsBefore,
        held_filters::rewrite,
        "a filter that can fail stays above what it was written above",
    ),
    (
        "eliminate_group_by_constant",
        AsBefore,
        repeated_keys::rewrite,
        "a key that stands twice stays, or that equal values of another do not decide",
    ),
    (
        "extract_equijoin_predicate",
        AsBefore,
        null_equal_joins::extract,
        "keys of = are not added to a join of IS NOT DISTINCT FROM",
    ),
    (
        "eliminate_cross_join",
        AsBefore,
        null_equal_joins::reorder,
        "joins of both kinds are not put together",
    ),
    (
        "single_distinct_aggregation_to_group_by",
        AsBefore,
        single_distinct::rewrite,
        "not for our operator, nor where it loses an order",
    ),
    (
        "common_sub_expression_eliminate",
        AsBefore,
        but_for_changes,
        "not in DELETE and UPDATE, whose tables get the conditions as they stand",
    ),
    (
        "extract_leaf_expressions",
        Whole,
        fields_in_place::rewrite,
        "not in DELETE, UPDATE and recursions",
    ),
    (
        "push_down_leaf_projections",
        Whole,
        fields_in_place::rewrite,
        "not in DELETE, UPDATE and recursions",
    ),
];

/// The physical optimizer's.
fn physical_passes() -> Vec<Pass<Physical>> {
    passes! {
        First,          ByDataFusion, physical("separate_turns", read_once::turns::optimize),                    "copies of a recursion have turns of their own";
        First,          ByDataFusion, physical(CHECK_ARITHMETIC, checked_plan::optimize),                        "+, -, * of integers are checked";
        First,          ByMachine,    physical("narrow_arithmetic", arithmetic::optimize),                       "numbers of up to 18 digits are computed in 64 bits; before all that compare, move and merge expressions";
        First,          ByDataFusion, physical("null_structs", null_structs::optimize),                          "s.x is NULL where s is NULL";
        First,          ByDataFusion, physical("guard_conditions", short_circuit::optimize),                     "p AND q computes a q that can fail only where p is not false";
        First,          ByDataFusion, physical("keep_order_below_offset", offset_order::optimize),               "the sort below an OFFSET stays";
        First,          ByDataFusion, physical("forget_constants_below_outer_joins", outer_constants::optimize), "what is constant below an outer join is not above it";
        Before(ENSURE), ByOperator,   physical("GroupByRule", group_by::optimize),                               "AggregateExec → GroupByExec; before any exchange is planned";
        Before(ENSURE), ByDataFusion, physical("forget_equivalences_of_grouping_sets", grouping_sets::optimize), "equivalences of keys do not hold above grouping sets";
        Before(SANITY), ByOperator,   physical("StagesRule", stages::optimize),                                  "GroupByExec → two stages with an exchange between them, for tests; after all filters have come down";
        Last,           ByDataFusion, physical("keep_recursion_order", recursion_order::optimize),               "rows of a recursion are not dealt out to workers in turn, and keep their order";
        Last,           ByOperator,   physical("WholeFilesRule", whole_files),                                   "files of COPY and INSERT appear whole or not at all";
    }
}

/// The physical optimizer's that look into files: directly before DataFusion's check, as no other rule may see the types of codes.
fn of_scans(
    Scans {
        footers,
        stores,
        pool,
    }: Scans,
) -> Vec<Pass<Physical>> {
    let morsels = || {
        let (footers, stores) = (Arc::clone(&footers), Arc::clone(&stores));
        MorselsRule::new(footers, stores, Arc::clone(&pool))
    };
    let (cut, ordered) = (morsels(), RowOrderRule::new(morsels()));
    let codes = CodesRule::new(Arc::clone(&footers));
    passes! {
        Before(ENSURE), ByOperator, physical("divide_tables", row_order::divide_tables), "tables in memory are divided among workers in the order of their rows";
        Before(SANITY), ByMachine,  physical("MorselsRule", move |plan, config| cut.optimize(plan, config)), "the workers of a Parquet scan take pieces from one list";
        Before(SANITY), ByOperator, physical("row_order", move |plan, config| ordered.optimize(plan, config)), "rows that nothing groups, joins or sorts come in the order of their files and tables";
        Before(SANITY), ByMachine,  physical("CodesRule", move |plan, config| codes.optimize(plan, config)), "strings are read as codes of their dictionaries";
        Before(SANITY), ByMachine,  physical("own_filters", filters::optimize),          "LIKE and comparisons of strings search views as they lie in memory";
        Before(SANITY), ByMachine,  physical("recording", recorded::optimize),           "scans and filters tell the condition cache which rows match; after rules that look for DataFusion's nodes";
        Before(SANITY), ByMachine,  physical("guarded_decoding", guarded::optimize),     "a decoder's panic is an error about the file; behind all rules that ask what a source is";
    }
}

/// The rule of ours that is another one in a plan that other machines run.
const CHECK_ARITHMETIC: &str = "check_arithmetic";

/// DataFusion's rule that plans exchanges and sorts.
const ENSURE: &[&str] = &["EnsureRequirements"];

/// DataFusion's rule that checks the finished plan.
const SANITY: &[&str] = &["SanityCheckPlan"];

/// What the rules of scans take from a session.
pub struct Scans {
    pub(crate) footers: Arc<FileMetadataCache>,
    pub(crate) stores: Arc<Stores>,
    pub(crate) pool: Arc<SessionPool>,
}

/// All rules.
pub(crate) const ALL: &[Needed] = &[ByDataFusion, ByOperator, ByMachine];

/// Those of a plan that other machines run.
const TRAVELLING: &[Needed] = &[ByDataFusion, ByOperator];

/// Those that fix DataFusion.
pub const FIXES: &[Needed] = &[ByDataFusion];

/// Planners of expressions; DataFusion's come after them.
pub fn expr_planners(needed: &[Needed]) -> Vec<Arc<ExpressionPlanner>> {
    let passes = planner_passes().into_iter();
    let passes = passes.filter(|pass| needed.contains(&pass.needed));
    passes.map(|pass| pass.rule).collect()
}

/// DataFusion's rules before the optimizer, with ours.
pub fn analyzer_rules() -> Result<Vec<Arc<Analysis>>> {
    placed(
        Analyzer::new().rules,
        |rule| rule.name(),
        analysis_passes(),
        ALL,
    )
}

/// DataFusion's logical rules, with those of ours that are `needed`.
pub fn optimizer_rules(needed: &[Needed]) -> Result<Vec<Arc<Logical>>> {
    let mut rules = Optimizer::new().rules;
    for (name, shown, rewrite, _) in INSTEAD {
        let found = rules.iter_mut().find(|rule| rule.name() == name);
        let rule = found.ok_or_else(|| absent(name))?;
        *rule = Arc::new(Around::new(Arc::clone(rule), shown, rewrite));
    }
    placed(rules, |rule| rule.name(), logical_passes(), needed)
}

/// DataFusion's physical rules, with those of ours that are `needed`.
pub fn physical_rules(scans: Option<Scans>, needed: &[Needed]) -> Result<Vec<Arc<Physical>>> {
    let mut passes = physical_passes();
    passes.extend(scans.map(of_scans).into_iter().flatten());
    let rules = PhysicalOptimizer::new().rules;
    placed(rules, |rule| rule.name(), passes, needed)
}

/// DataFusion's physical rules, with ours for a plan that other machines run.
pub(crate) fn travelling_rules() -> Result<Vec<Arc<Physical>>> {
    let mut rules = physical_rules(None, TRAVELLING)?;
    let mut checks = rules.iter_mut();
    let checks = checks.find(|rule| rule.name() == CHECK_ARITHMETIC);
    let checks = checks.ok_or_else(|| absent(CHECK_ARITHMETIC))?;
    *checks = Arc::new(physical(CHECK_ARITHMETIC, checked_plan::optimize_to_travel));
    Ok(rules)
}

/// Our physical rules for a machine that runs a part of a plan, in their order.
pub(crate) fn rules_of_machine(scans: Scans) -> Vec<Arc<Physical>> {
    let passes = physical_passes().into_iter().chain(of_scans(scans));
    let passes = passes.filter(|pass| pass.needed == ByMachine);
    passes.map(|pass| pass.rule).collect()
}

/// `rules`, DataFusion's, with those of `passes` that are `needed`.
fn placed<R: ?Sized>(
    rules: Vec<Arc<R>>,
    name: fn(&R) -> &str,
    passes: Vec<Pass<R>>,
    needed: &[Needed],
) -> Result<Vec<Arc<R>>> {
    let passes = passes.into_iter();
    let passes: Vec<_> = passes
        .filter(|pass| needed.contains(&pass.needed))
        .collect();
    let at = |wanted: &dyn Fn(&PassPlace) -> bool| {
        let found = passes.iter().filter(|pass| wanted(&pass.place));
        found.map(|pass| Arc::clone(&pass.rule)).collect::<Vec<_>>()
    };
    let mut placed = at(&|place| matches!(place, First));
    for rule in &rules {
        placed.extend(at(
            &|place| matches!(place, Before(names) if names.contains(&name(rule))),
        ));
        placed.push(Arc::clone(rule));
    }
    placed.extend(at(&|place| matches!(place, Last)));
    let names = passes.iter().flat_map(|pass| match pass.place {
        Before(names) => names,
        First | Last => &[],
    });
    for wanted in names {
        if !rules.iter().any(|rule| name(rule) == *wanted) {
            return Err(absent(wanted));
        }
    }
    Ok(placed)
}

fn absent(name: &str) -> Error {
    Error::Internal(format!("DataFusion has no rule {name}"))
}

/// What each rule of a stage does.
pub fn described() -> Vec<(&'static str, String, &'static str)> {
    let mut lines = Vec::new();
    let mut add = |stage, name: &str, does| lines.push((stage, name.to_owned(), does));
    analysis_passes()
        .iter()
        .for_each(|pass| add("analyzer", pass.rule.name(), pass.does));
    INSTEAD
        .iter()
        .for_each(|(name, _, _, does)| add("logical", name, does));
    logical_passes()
        .iter()
        .for_each(|pass| add("logical", pass.rule.name(), pass.does));
    physical_passes()
        .iter()
        .for_each(|pass| add("physical", pass.rule.name(), pass.does));
    lines
}
