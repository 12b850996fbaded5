//! The operator's memory: one reservation in the session's pool, files in its folders, and errors on their way back to
//! the host.
//!
//! In: what workers want to hold or write. Out: leave to hold it, or the pool's own error; files.
//! Invariant: one reservation per run, whatever the number of workers.
//! Not here: the limit and the text of the refusal (engine/memory.rs), the folders (engine/temp.rs).

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use grouse_groupby::runtime::Budget;
use grouse_groupby::{Error as GroupError, Spill};

use super::NAME;
use super::faults::{Call, Faults, FaultyDisk};
use crate::error::OutOfMemory;
use crate::memory::SessionPool;
use crate::temp::{Shared, TempFolders};

/// A run's reservation as the workers' budget.
pub(super) struct PoolBudget {
    reservation: MemoryReservation,
    /// The pool, where it is a session's.
    session: Option<Arc<SessionPool>>,
    faults: Option<Arc<Faults>>,
}

impl PoolBudget {
    /// An empty reservation in the pool that `context` names.
    pub fn new(context: &TaskContext, faults: Option<Arc<Faults>>) -> Arc<PoolBudget> {
        let pool = context.memory_pool();
        let session = context.session_config().get_extension::<SessionPool>();
        let consumer = MemoryConsumer::new(NAME).with_can_spill(true);
        Arc::new(PoolBudget {
            reservation: consumer.register(pool),
            session: session.filter(|own| std::ptr::addr_eq(Arc::as_ptr(own), Arc::as_ptr(pool))),
            faults,
        })
    }
}

impl Budget for PoolBudget {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let faults = self.faults.as_ref();
        if faults.is_some_and(|faults| faults.refuse(Call::Grow)) {
            let held_bytes = self.reservation.size() as u64;
            let refused = OutOfMemory {
                operator: NAME.to_string(),
                asked_bytes: bytes as u64,
                held_bytes,
                used_bytes: held_bytes,
                limit_bytes: held_bytes,
            };
            return Err(DataFusionError::ResourcesExhausted(refused.to_string()).into());
        }
        self.reservation.try_grow(bytes).map_err(Into::into)
    }

    fn insist(&self, bytes: usize) {
        self.reservation.grow(bytes);
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn free(&self) -> usize {
        let session = self.session.as_ref();
        session.map_or(usize::MAX, |pool| pool.free_for_grouping())
    }
}

/// Where the workers of one run write, if the session has folders; whether they may share what is not written.
pub(super) fn spill(
    context: &TaskContext,
    shares: bool,
    faults: Option<Arc<Faults>>,
) -> Option<Arc<Spill>> {
    let disk = Shared(context.session_config().get_extension::<TempFolders>()?);
    Some(Arc::new(match faults {
        Some(faults) => Spill::new(FaultyDisk { disk, faults }, shares),
        None => Spill::new(disk, shares),
    }))
}

/// The host's form of what stopped a worker; the host's own errors come back as they were.
pub(crate) fn to_host(error: GroupError) -> DataFusionError {
    match error {
        GroupError::Memory { error, aggregate } => match (own(error), aggregate) {
            (DataFusionError::ResourcesExhausted(text), Some(name)) => by_aggregate(text, &name),
            (error, _) => error,
        },
        GroupError::Host(error) => own(error),
        GroupError::Arrow(inner) => DataFusionError::from(inner),
        GroupError::Overflow {
            aggregate,
            data_type,
            remedy,
        } => {
            let kind = crate::error::in_sql_words(&data_type);
            let message = format!("the result does not fit {kind}: {remedy}");
            DataFusionError::from(crate::Error::Overflow { aggregate, message })
        }
        GroupError::Disk { doing, name, error } => DataFusionError::from(crate::Error::Io {
            path: name,
            message: format!("cannot {doing} it: {error}"),
        }),
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
        Ok(host) => *host,
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
