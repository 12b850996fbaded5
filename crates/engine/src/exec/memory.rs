//! The operator's memory: one reservation in the session's pool, and errors on their way back to the host.
//!
//! In: what workers want to hold. Out: leave to hold it, or the pool's own error.
//! Invariant: one reservation per run, whatever the number of workers.
//! Not here: the limit and the text of the refusal (memory.rs).

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use grouse_groupby::Error as GroupError;
use grouse_groupby::runtime::Budget;

use super::NAME;

/// A run's reservation as the workers' budget.
pub(super) struct PoolBudget {
    reservation: MemoryReservation,
    pool: Arc<dyn MemoryPool>,
}

impl PoolBudget {
    /// An empty reservation in the pool that `context` names.
    pub fn new(context: &TaskContext) -> Arc<PoolBudget> {
        let pool = Arc::clone(context.memory_pool());
        Arc::new(PoolBudget {
            reservation: MemoryConsumer::new(NAME).register(&pool),
            pool,
        })
    }
}

impl Budget for PoolBudget {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.reservation.try_grow(bytes).map_err(Into::into)
    }

    fn insist(&self, bytes: usize) {
        self.reservation.grow(bytes);
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn free(&self) -> usize {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => limit.saturating_sub(self.pool.reserved()),
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        }
    }
}

/// The host's form of what stopped a worker; the host's own errors come back as they were.
pub(crate) fn to_host(error: GroupError) -> DataFusionError {
    match error {
        GroupError::Memory(inner) | GroupError::Host(inner) => {
            match inner.downcast::<DataFusionError>() {
                Ok(host) => *host,
                Err(other) => DataFusionError::External(other),
            }
        }
        GroupError::Arrow(inner) => DataFusionError::from(inner),
        GroupError::Overflow {
            aggregate,
            data_type,
            remedy,
        } => {
            let message = format!("the result does not fit {data_type}: {remedy}");
            DataFusionError::from(crate::Error::Overflow { aggregate, message })
        }
        GroupError::Disk { doing, name, error } => DataFusionError::from(crate::Error::Io {
            path: name,
            message: format!("cannot {doing} it: {error}"),
        }),
        cancelled @ GroupError::Cancelled => DataFusionError::Execution(cancelled.to_string()),
        GroupError::TooLarge(message) => DataFusionError::Execution(message),
        malformed @ GroupError::Malformed(_) => DataFusionError::Execution(malformed.to_string()),
    }
}
