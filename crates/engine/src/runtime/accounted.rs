//! Bytes of Parquet files count as memory of the session for as long as a decoder holds them.
//!
//! In: what a reader has read. Out: the same bytes, with a reservation.
//! Invariant: reading never waits for memory and is never refused: what is read is needed to go on, and its size is that
//! of a few column chunks per worker. Groupings make room for them (engine/runtime/memory.rs). What is made of the bytes is
//! refused where it would take more than others leave.
//! Not here: how much that is (scan/parquet/decoding.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use object_store::PutPayload;

/// The buffers of readers, which the store names without a name.
pub(crate) type Bytes = <PutPayload as IntoIterator>::Item;

/// The consumer's name.
pub(crate) const NAME: &str = "ParquetScan";

/// The consumer of what is made of these bytes.
pub(crate) const DECODING: &str = "ParquetDecoding";

struct Accounted {
    bytes: Bytes,
    _reservation: MemoryReservation,
}

impl AsRef<[u8]> for Accounted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same bytes, of which `pool` knows until the last reference is gone.
pub(crate) fn accounted(bytes: Bytes, pool: &Arc<dyn MemoryPool>) -> Bytes {
    let reservation = MemoryConsumer::new(NAME).register(pool);
    reservation.grow(bytes.len());
    Bytes::from_owner(Accounted {
        bytes,
        _reservation: reservation,
    })
}

/// The same bytes, with `more` for what will be made of them; an error where that has no room beside what others hold.
pub(crate) fn with_decoding(
    bytes: Bytes,
    more: usize,
    pool: &Arc<dyn MemoryPool>,
) -> Result<Bytes> {
    let reservation = MemoryConsumer::new(DECODING).register(pool);
    reservation.try_grow(more)?;
    Ok(Bytes::from_owner(Accounted {
        bytes,
        _reservation: reservation,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::memory::SessionPool;

    #[test]
    fn bytes_count_until_the_last_reference_is_gone() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(10));
        let read = accounted(Bytes::from(vec![7; 100]), &pool);
        let page = read.slice(3..5);
        drop(read);
        assert_eq!((pool.reserved(), &page[..]), (100, [7, 7].as_slice()));
        drop(page);
        assert_eq!(pool.reserved(), 0);
    }
}
