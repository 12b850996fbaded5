//! The operator's memory: one reservation in the session's pool, files in its folders, and errors on their way back to
//! DataFusion.
//!
//! In: what workers want to hold or write. Out: leave to hold it, or the pool's own error; files.
//! Invariant: one reservation per execution, whatever the number of workers.
//! Not here: the limit and the text of the refusal (engine/runtime/memory.rs), the folders (engine/runtime/temp.rs).

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use grouse_groupby::Spill;
use grouse_groupby::runtime::Budget;

use super::NAME;
use crate::error::OutOfMemory;
use crate::runtime::faults::{Faults, FaultyDisk, RefusableCall};
use crate::runtime::memory::SessionPool;
use crate::runtime::temp::{Shared, TempFolders};

/// An execution's reservation as the workers' budget.
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
        if faults.is_some_and(|faults| faults.refuse(RefusableCall::Grow)) {
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

/// Where the workers of one execution write, if the session has folders; whether they may share what is not written.
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
