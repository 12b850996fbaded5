//! A part of a plan as the machine that has it runs it.
//!
//! In: the part, cut to the machine's share of the input, with scans that read here. Out: the same with this machine's choices:
//! workers, pieces, codes, filters.
//! Invariant: partitions stay as many, and the answer stays. Options that describe a machine are this one's.
//! Not here: which part (Ballista), sources of scans (scan/portable.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;

use crate::exec::{GroupByExec, Tuning};
use crate::optimizer::passes::{Scans, rules_of_machine};
use crate::runtime::options::SessionOptions;

/// The part as a machine with so many threads runs it.
pub(crate) fn lowered(
    plan: Arc<dyn ExecutionPlan>,
    scans: Scans,
    threads: usize,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = SessionOptions::of(config);
    let tuning = |partitions: usize| {
        let workers = partitions.clamp(1, threads.max(1));
        Tuning {
            workers,
            table: options.group_by_table,
            sizes: options.group_by_sizes.sizes(workers),
        }
    };
    let partitions = |plan: &Arc<dyn ExecutionPlan>| {
        let properties = plan.properties();
        properties.output_partitioning().partition_count()
    };
    let before = partitions(&plan);
    let mut plan = GroupByExec::exchanged_in(plan, |group_by, _| {
        let tuned: Arc<dyn ExecutionPlan> = Arc::new(group_by.tuned(tuning)?);
        Ok(Some(tuned))
    })?;
    for rule in rules_of_machine(scans) {
        plan = rule.optimize(plan, config)?;
    }
    match partitions(&plan) {
        after if after == before => Ok(plan),
        after => datafusion::common::internal_err!(
            "a part of a plan with {before} partitions became one with {after}"
        ),
    }
}
