//! Bytes of Parquet files count as memory of the session for as long as a decoder holds them.
//!
//! In: what a reader has read. Out: the same bytes, with a reservation.
//! Invariant: reading never waits for memory and is never refused: what is read is needed to go on, and its size is that
//! of a few column chunks per worker. Groupings make room for them (engine/runtime/memory.rs).
//! Not here: pages after decompression, one per column at a time.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use object_store::PutPayload;

/// The buffers of readers, which the store names without a name.
pub(crate) type Bytes = <PutPayload as IntoIterator>::Item;

/// The consumer's name.
pub(crate) const NAME: &str = "ParquetScan";

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
