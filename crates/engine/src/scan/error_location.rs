//! Where an error is: which file a reader's error is about, and which line of it.
//!
//! In: a bad-file error without a path or one about timestamps that do not fit nanoseconds, the plan that met it.
//! Out: the same error with the file and, for text, the line counted from the file's beginning.
//! Invariant: the files are read again one by one, only after an error, and for a bounded time.
//! Not here: errors that name their file already.
//!
//! DataFusion's readers know neither: an error carries no path, and a text file that is read in several pieces counts
//! lines from the piece's beginning.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DataFusionError;
use datafusion::common::extensions::Extensions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;

use super::location::{name_in_store, named};
use super::parquet::only_column;
use crate::error::from_datafusion::PATH_UNKNOWN;
use crate::error::{Error, Result};
use crate::scan::parquet::footer::is_string;

/// Looking for the bad file ends after this time; the error then names the candidates.
const SEARCH_MAX: Duration = Duration::from_secs(10);

/// Candidates that are named when the bad file is not found.
const CANDIDATES_NAMED: usize = 3;

/// The error as the user should see it.
pub(crate) async fn locate_error(
    error: Error,
    plan: &Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Error {
    let is_unnamed = matches!(&error, Error::Format { path, .. } | Error::Io { path, .. } if path == PATH_UNKNOWN);
    let is_about_timestamp = is_about_timestamp(&error);
    if !is_unnamed && !is_about_timestamp {
        return error;
    }
    let mut scans = Vec::new();
    collect_scans(plan, &mut scans);
    let files: Vec<(FileScanConfig, PartitionedFile)> =
        scans.into_iter().flat_map(files_of).collect();
    if is_about_timestamp {
        let found = tokio::time::timeout(SEARCH_MAX, beyond_nanoseconds(&files, &context)).await;
        return found.ok().flatten().unwrap_or(error);
    }
    if files.is_empty() {
        return without_file(error);
    }
    match tokio::time::timeout(SEARCH_MAX, search(&files, &context)).await {
        Ok(Some(found)) => found,
        _ => named(error, &candidates(&files)),
    }
}

/// Text that is parsed inside a query fails with a reader's error, too.
fn without_file(error: Error) -> Error {
    match error {
        Error::Format { message, .. } | Error::Io { message, .. } => Error::Execution(message),
        other => other,
    }
}

fn collect_scans(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<FileScanConfig>) {
    if let Some(source) = plan.downcast_ref::<DataSourceExec>()
        && let Some(config) = source.data_source().downcast_ref::<FileScanConfig>()
    {
        scans.push(config.clone());
    }
    for child in plan.children() {
        collect_scans(child, scans);
    }
}

/// Every file of a scan once and whole.
fn files_of(config: FileScanConfig) -> Vec<(FileScanConfig, PartitionedFile)> {
    let mut files: Vec<PartitionedFile> = Vec::new();
    for file in config.file_groups.iter().flat_map(|group| group.iter()) {
        if !files
            .iter()
            .any(|known| known.object_meta.location == file.object_meta.location)
        {
            let mut whole = file.clone();
            whole.range = None;
            whole.extensions = Extensions::default();
            files.push(whole);
        }
    }
    files.sort_by(|a, b| a.object_meta.location.cmp(&b.object_meta.location));
    files
        .into_iter()
        .map(|file| (config.clone(), file))
        .collect()
}

/// Reads the files again until one fails.
async fn search(
    files: &[(FileScanConfig, PartitionedFile)],
    context: &Arc<TaskContext>,
) -> Option<Error> {
    for (config, file) in files {
        if let Err(error) = read_whole(config, file, context).await {
            let (error, name) = (Error::from(error), name_of(config, file));
            let error = match is_about_text(&error) {
                true => not_text(config, file, context).await.unwrap_or(error),
                false => error,
            };
            return Some(named(error, &name));
        }
    }
    None
}

async fn read_whole(
    config: &FileScanConfig,
    file: &PartitionedFile,
    context: &Arc<TaskContext>,
) -> Result<(), DataFusionError> {
    let groups = vec![FileGroup::new(vec![file.clone()])];
    let config = FileScanConfigBuilder::from(config.clone())
        .with_file_groups(groups)
        .build();
    let mut stream = DataSourceExec::from_data_source(config).execute(0, Arc::clone(context))?;
    while let Some(batch) = stream.next().await {
        batch?;
    }
    Ok(())
}

/// The reader's words for bytes that are no text.
fn is_about_text(error: &Error) -> bool {
    matches!(error, Error::Format { message, .. } if message.contains("non UTF-8 data"))
}

/// Reads the text columns of a Parquet file one by one until one fails, because the reader does not say which it was.
async fn not_text(
    config: &FileScanConfig,
    file: &PartitionedFile,
    context: &Arc<TaskContext>,
) -> Option<Error> {
    let schema = Arc::clone(config.file_source().table_schema().file_schema());
    for (index, field) in schema.fields().iter().enumerate() {
        if !is_string(field.data_type()) {
            continue;
        }
        let column = only_column(config, index)?;
        if read_whole(&column, file, context).await.is_err() {
            return Some(Error::bad_file(
                PATH_UNKNOWN.to_string(),
                format!(
                    "column '{}' is read as text and holds bytes that are not UTF-8; read_parquet('…', binary_as_string => false) reads columns without annotation as BLOB",
                    field.name()
                ),
            ));
        }
    }
    None
}

/// DataFusion's words for a timestamp that does not fit the unit it is converted to.
fn is_about_timestamp(error: &Error) -> bool {
    matches!(error, Error::Execution(message) if message.contains("where nanoseconds reach"))
}

/// Reads the columns of nanoseconds one by one until one fails: a file may hold them in a coarser unit, which reaches
/// further. `None`: the conversion is one of the query's.
async fn beyond_nanoseconds(
    files: &[(FileScanConfig, PartitionedFile)],
    context: &Arc<TaskContext>,
) -> Option<Error> {
    for (config, file) in files {
        let schema = Arc::clone(config.file_source().table_schema().file_schema());
        for (index, field) in schema.fields().iter().enumerate() {
            let kind = field.data_type();
            if !kind.is_nested() && !matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _)) {
                continue;
            }
            let Some(column) = only_column(config, index) else {
                break;
            };
            let Err(error) = read_whole(&column, file, context).await else {
                continue;
            };
            if is_about_timestamp(&Error::from(error)) {
                return Some(Error::bad_file(
                    name_of(config, file),
                    format!(
                        "column '{}' holds timestamps outside 1677 to 2262, beyond the nanoseconds that it has in another file of the table; read the files apart, cast it in the others to TIMESTAMP(6) and put them together with UNION ALL",
                        field.name()
                    ),
                ));
            }
        }
    }
    None
}

fn name_of(config: &FileScanConfig, file: &PartitionedFile) -> String {
    name_in_store(config.object_store_url.as_str(), &file.object_meta.location)
}

fn candidates(files: &[(FileScanConfig, PartitionedFile)]) -> String {
    let names: Vec<String> = files
        .iter()
        .take(CANDIDATES_NAMED)
        .map(|(config, file)| name_of(config, file))
        .collect();
    match files.len() {
        0..=CANDIDATES_NAMED => names.join("' or '"),
        count => format!(
            "{}' or one of {} more",
            names.join("', '"),
            count - CANDIDATES_NAMED
        ),
    }
}
