//! What stopped a grouping, as an error of DataFusion on its way back through the plan.
//!
//! In: an error of the algorithm. Out: DataFusion's own error as it was, or one of ours inside of one of DataFusion's.
//! Not here: DataFusion's errors on their way to the user (from_datafusion.rs).

use datafusion::common::DataFusionError;
use grouse_groupby::Error as GroupError;

use super::{Error, OutOfMemory, in_sql_words};

/// DataFusion's form of what stopped a worker; DataFusion's own errors come back as they were.
pub(crate) fn to_datafusion(error: GroupError) -> DataFusionError {
    match error {
        GroupError::Memory { error, aggregate } => match (own(error), aggregate) {
            (DataFusionError::ResourcesExhausted(text), Some(name)) => by_aggregate(text, &name),
            (error, _) => error,
        },
        GroupError::DataFusion(error) => own(error),
        GroupError::Arrow(inner) => DataFusionError::from(inner),
        GroupError::Overflow {
            aggregate,
            data_type,
            remedy,
        } => {
            let kind = in_sql_words(&data_type);
            let message = format!("the result does not fit {kind}: {remedy}");
            DataFusionError::from(Error::Overflow { aggregate, message })
        }
        GroupError::Disk { doing, name, error } => {
            let told = error
                .get_ref()
                .and_then(|inner| inner.downcast_ref::<Error>());
            DataFusionError::from(told.cloned().unwrap_or_else(|| Error::Io {
                path: name,
                message: format!("cannot {doing} a temporary file there: {error}"),
            }))
        }
        cancelled @ GroupError::Cancelled => DataFusionError::Execution(cancelled.to_string()),
        GroupError::OutOfBounds { column, value } => DataFusionError::Execution(format!(
            "column {column} has the value {value}, beyond the bounds that the footer of its Parquet file states: the \
             file was damaged or written wrongly; datafusion.execution.collect_statistics = false reads it all the same"
        )),
        GroupError::TooLarge(message) => DataFusionError::Execution(message),
        malformed @ GroupError::Malformed(_) => DataFusionError::Execution(malformed.to_string()),
    }
}

fn own(error: Box<dyn std::error::Error + Send + Sync>) -> DataFusionError {
    match error.downcast::<DataFusionError>() {
        Ok(datafusion) => *datafusion,
        Err(other) => DataFusionError::External(other),
    }
}

/// The refusal with the aggregate whose states asked for most.
fn by_aggregate(text: String, name: &str) -> DataFusionError {
    let Some(mut out) = OutOfMemory::parse(&text) else {
        return DataFusionError::ResourcesExhausted(text);
    };
    out.operator = format!("{name} in {}", out.operator);
    DataFusionError::ResourcesExhausted(out.to_string())
}
