//! DataFusion's options that we set away from their defaults, and why.
//!
//! In: [`SessionOptions`]. Out: DataFusion's `SessionConfig`.
//! Invariant: every deviation from DataFusion's defaults is a row of [`DATAFUSION_OPTIONS`] or follows from one of our options.
//! Not here: our own options (options.rs).

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::context::SessionConfig;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

use crate::error::{Error, Result};
use crate::runtime::memory::SORT_BYTES_MIN;
use crate::runtime::options::{GroupByOperator, SessionOptions};

/// One of DataFusion's options: name, value, why.
pub type DataFusionOption = (&'static str, &'static str, &'static str);

/// Set once when a session starts; `SET datafusion.…` changes them afterwards.
pub const DATAFUSION_OPTIONS: &[DataFusionOption] = &[
    (
        "datafusion.execution.parquet.binary_as_string",
        "true",
        "many writers, ClickBench's among them, leave the string annotation off; scan/parquet.rs takes for text what its file does not know to be bytes",
    ),
    (
        "datafusion.execution.parquet.coerce_int96",
        "us",
        "timestamps in 96 bits reach beyond the years 1677 to 2262 of nanoseconds: Spark's have 9999-12-31; DuckDB reads microseconds, too",
    ),
    (
        "datafusion.execution.time_zone",
        "UTC",
        "without one TIMESTAMPTZ has no zone, and AT TIME ZONE would take it for local time",
    ),
    (
        "datafusion.execution.skip_physical_aggregate_schema_check",
        "true",
        "DataFusion's physical IS TRUE may be NULL, its logical one may not: two aggregates with one such FILTER would be an internal error",
    ),
    (
        "datafusion.sql_parser.collect_spans",
        "true",
        "errors about columns say where in the text, and spelling.rs finds the identifier there",
    ),
    (
        "datafusion.sql_parser.default_null_ordering",
        "nulls_last",
        "ORDER BY puts NULL last, also with DESC, as in DuckDB: a list of the largest begins with values",
    ),
    (
        "datafusion.sql_parser.enable_subquery_sort_elimination",
        "false",
        "LIMIT takes the first rows in the order of the subquery or view below it; fixes/idle_sorts.rs drops the sorts that nothing needs",
    ),
    (
        "datafusion.execution.max_spill_file_size_bytes",
        "1",
        "a file for each batch that an exchange writes: its readers wait for ever for more in the older of two open files while the writers wait for the readers (apache/datafusion#24883; not needed with a datafusion after 55.2.0)",
    ),
    (
        "datafusion.execution.listing_table_ignore_subdirectory",
        "false",
        "a folder means all files below it; globs are expanded by us",
    ),
    (
        "datafusion.runtime.list_files_cache_limit",
        "0",
        "DataFusion's cache of listings never expires: a file added during a session would stay invisible",
    ),
];

/// Options of DataFusion's that a session of ours does not take, and why: those of its runtime would part its operators from ours.
const REFUSED: [(&str, &str); 4] = [
    (
        "datafusion.runtime.memory_limit",
        "a session of grouse has its own: SET memory_limit",
    ),
    (
        "datafusion.runtime.temp_directory",
        "a session of grouse has its own: SET temp_directory",
    ),
    (
        "datafusion.runtime.max_temp_directory_size",
        "a session of grouse has its own: SET max_temp_directory_size",
    ),
    (DIALECT, "SQL is read in one dialect, that of grouse"),
];

const DIALECT: &str = "datafusion.sql_parser.dialect";

/// DataFusion's names of dialects that ours is close to.
const DIALECTS: [&str; 2] = ["generic", "duckdb"];

/// The row of [`REFUSED`] with this name of DataFusion's, where it is not set to what it is.
pub(crate) fn refused(name: &str, value: Option<&str>) -> Option<(&'static str, &'static str)> {
    let is_ours = |value: &str| DIALECTS.contains(&value.to_lowercase().as_str());
    let row = REFUSED
        .into_iter()
        .find(|(datafusion, _)| datafusion.eq_ignore_ascii_case(name));
    row.filter(|(datafusion, _)| *datafusion != DIALECT || !value.is_none_or(is_ours))
}

/// Whether `name` is one of the names that the option of the session's time zone has.
pub(crate) fn is_time_zone(name: &str) -> bool {
    ["timezone", "time.zone", "datafusion.execution.time_zone"]
        .iter()
        .any(|own| own.eq_ignore_ascii_case(name))
}

/// The name and the value that an option of DataFusion's is reset to, where that is not DataFusion's own default.
pub(crate) fn reset_value(name: &str) -> Option<(&'static str, &'static str)> {
    let row = DATAFUSION_OPTIONS.iter().find(|(datafusion, ..)| {
        datafusion.eq_ignore_ascii_case(name) || is_time_zone(datafusion) && is_time_zone(name)
    });
    row.map(|&(datafusion, value, _)| (datafusion, value))
}

/// DataFusion's configuration for `options`.
pub(crate) fn session_config(options: &SessionOptions) -> Result<SessionConfig> {
    let mut config = SessionConfig::new();
    config.options_mut().extensions.insert(options.clone());
    for (name, value, _) in DATAFUSION_OPTIONS
        .iter()
        .filter(|(name, ..)| !is_runtime(name))
    {
        config.options_mut().set(name, value).map_err(|error| {
            Error::Internal(format!("DataFusion refuses {name} = {value}: {error}"))
        })?;
    }
    apply(options, &mut config);
    apply_memory(options, &mut config);
    Ok(config)
}

/// DataFusion's options that follow from ours.
pub(crate) fn apply(options: &SessionOptions, config: &mut SessionConfig) {
    let datafusion = config.options_mut();
    datafusion.execution.target_partitions = options.threads_effective();
    datafusion.execution.planning_concurrency = options.threads_effective();
    if let Ok(rows) = ConfigNonZeroUsize::try_new(options.batch_size) {
        datafusion.execution.batch_size = rows;
    }
    // DataFusion's top-k aggregation only pays inside its own operator.
    datafusion.optimizer.enable_topk_aggregation =
        options.group_by_operator == GroupByOperator::DataFusion;
}

/// What each of DataFusion's sorts takes for its merge before it begins has to fit a small limit for every worker, and any
/// number of sorts.
pub(crate) fn apply_memory(options: &SessionOptions, config: &mut SessionConfig) {
    let each = options.memory_limit_bytes() / (16 * options.threads_effective() as u64);
    config.options_mut().execution.sort_spill_reservation_bytes =
        SORT_BYTES_MIN.min(usize::try_from(each).unwrap_or(SORT_BYTES_MIN));
}

/// The rows of [`DATAFUSION_OPTIONS`] that belong to DataFusion's runtime, which has a builder of its own.
pub(crate) fn apply_runtime(mut builder: RuntimeEnvBuilder) -> Result<RuntimeEnvBuilder> {
    for (name, value, _) in DATAFUSION_OPTIONS
        .iter()
        .filter(|(name, ..)| is_runtime(name))
    {
        let unusable = || Error::Internal(format!("DataFusion's runtime has no {name} = {value}"));
        let bytes: usize = value.parse().map_err(|_| unusable())?;
        builder = match *name {
            "datafusion.runtime.list_files_cache_limit" => {
                builder.with_object_list_cache_limit(bytes)
            }
            "datafusion.runtime.metadata_cache_limit" => builder.with_metadata_cache_limit(bytes),
            "datafusion.runtime.file_statistics_cache_limit" => {
                builder.with_file_statistics_cache_limit(bytes)
            }
            _ => return Err(unusable()),
        };
    }
    Ok(builder)
}

fn is_runtime(name: &str) -> bool {
    name.starts_with("datafusion.runtime.")
}
