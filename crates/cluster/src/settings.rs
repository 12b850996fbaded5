//! Options on their way through a cluster: those of a statement travel, those of a machine stay where they are.
//!
//! In: the options of a client's session, or of an executor's. Out: the ones that a job takes along; an executor's own in their places.
//! Invariant: whatever a client sends, an executor keeps its own memory, threads, folders and permissions.
//! Not here: what the options mean (the engine), Ballista's own.

use ballista_core::serde::protobuf::KeyValuePair;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;

/// Options of DataFusion's for plans that run as stages, and why.
pub const OF_PLANS: &[(&str, &str, &str)] = &[
    (
        "datafusion.optimizer.enable_round_robin_repartition",
        "false",
        "exchanges that only spread rows are removed from stages",
    ),
    (
        "datafusion.optimizer.enable_dynamic_filter_pushdown",
        "false",
        "a filter that one stage fills is empty in another",
    ),
    (
        "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
        "false",
        "its value lies in the memory of one process",
    ),
    (
        "datafusion.execution.parquet.schema_force_view_types",
        "false",
        "views on the wire carry the whole buffers that they point into",
    ),
    (
        "datafusion.sql_parser.map_string_types_to_utf8view",
        "false",
        "as above",
    ),
];

/// How many partitions an exchange has: it goes to the scheduler, which plans with it, and no further.
pub const PARTITIONS: &str = "datafusion.execution.target_partitions";

/// Options that describe a machine and what its owner allows.
const OF_MACHINES: &[&str] = &[
    "grouse.threads",
    "grouse.memory_limit",
    "grouse.temp_directory",
    "grouse.max_temp_directory_size",
    "grouse.statement_timeout",
    "grouse.condition_cache",
    "grouse.cluster",
    "grouse.s3_region",
    "grouse.s3_endpoint",
    "grouse.allow_files",
    "grouse.allowed_directories",
    "grouse.allow_network",
    "grouse.lock_options",
    "grouse.group_by_tasks",
    "datafusion.execution.planning_concurrency",
    "datafusion.execution.sort_spill_reservation_bytes",
];

/// DataFusion's caches and limits, which are a machine's, too.
const OF_RUNTIMES: &str = "datafusion.runtime.";

/// An option that DataFusion lists and does not read back.
const NOT_READ_BACK: &str = "datafusion.sql_parser.enable_options_value_normalization";

fn stays(key: &str) -> bool {
    OF_MACHINES.contains(&key) || key.starts_with(OF_RUNTIMES)
}

/// What a job takes along of the options of its statement.
pub fn sent(options: &ConfigOptions) -> Vec<KeyValuePair> {
    let entries = options.entries().into_iter();
    let travelling =
        entries.filter(|of| of.value.is_some() && !stays(&of.key) && of.key != NOT_READ_BACK);
    travelling
        .map(|of| KeyValuePair {
            key: of.key,
            value: of.value,
        })
        .collect()
}

/// Puts the executor's `own` options of its machine into those of a job.
pub fn restore(job: &mut ConfigOptions, own: &ConfigOptions) -> Result<()> {
    for entry in own.entries() {
        let is_own = stays(&entry.key) && !entry.key.starts_with(OF_RUNTIMES);
        if let Some(value) = entry.value.filter(|_| is_own && !is_ours(&entry.key)) {
            job.set(&entry.key, &value)?;
        }
    }
    job.execution.target_partitions = own.execution.target_partitions;
    restore_ours(job, own)
}

fn is_ours(key: &str) -> bool {
    key.starts_with("grouse.")
}

/// Ours at once: some are not set one by one, and some have no value.
fn restore_ours(job: &mut ConfigOptions, own: &ConfigOptions) -> Result<()> {
    let travelled = grouse::SessionOptions::of(job);
    let mut options = grouse::SessionOptions::of(own);
    for spec in grouse::OPTIONS {
        let key = format!("grouse.{}", spec.name);
        if !stays(&key)
            && let Some(value) = travelled.get(spec.name)?
        {
            options.set(spec.name, &value)?;
        }
    }
    job.extensions.insert(options);
    Ok(())
}

#[cfg(test)]
mod tests {
    use grouse::SessionOptions;

    use super::*;

    fn options(set: &[(&str, &str)]) -> ConfigOptions {
        let mut ours = SessionOptions::default();
        for (name, value) in set {
            ours.set(name, value).unwrap();
        }
        let mut config = ConfigOptions::new();
        config.extensions.insert(ours);
        config
    }

    #[test]
    fn options_of_machines_stay() {
        let mut client = options(&[
            ("threads", "9"),
            ("memory_limit", "1GB"),
            ("batch_size", "77"),
            ("cluster", "df://h"),
        ]);
        client.execution.target_partitions = 9;
        let own = options(&[("threads", "2"), ("temp_directory", "/spill")]);
        let mut job = options(&[]);
        for pair in sent(&client) {
            let value = pair.value.unwrap();
            job.set(&pair.key, &value)
                .unwrap_or_else(|error| panic!("{}: {error}", pair.key));
        }
        assert_eq!(SessionOptions::of(&job).threads, 0);
        restore(&mut job, &own).unwrap();
        let ours = SessionOptions::of(&job);
        assert_eq!((ours.threads, ours.batch_size), (2, 77));
        assert_eq!((ours.memory_limit, ours.cluster), (None, None));
        assert_eq!(ours.temp_directory.len(), 1);
        assert_eq!(
            job.execution.target_partitions,
            own.execution.target_partitions
        );
    }

    #[test]
    fn options_that_are_named_are_there() {
        let config = options(&[]);
        let known: Vec<String> = config.entries().into_iter().map(|of| of.key).collect();
        let plans = OF_PLANS.iter().map(|(key, ..)| key);
        for key in OF_MACHINES.iter().chain(plans).chain([&PARTITIONS]) {
            assert!(known.iter().any(|known| known == key), "{key}");
        }
    }
}
