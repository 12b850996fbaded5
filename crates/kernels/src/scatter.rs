//! Rows into partition order: a counting sort whose permutation is computed once and applied to
//! every column.
//!
//! In: hashes, then columns. Out: destinations and partition offsets, then columns in that order.
//! Invariant: the sort is stable, and `offsets` has one entry more than there are partitions.
//!
//! Tried and rejected: sorting row numbers and gathering (one more random read per column).

/// Destination of every row and where each partition begins.
#[derive(Debug, Default, Clone)]
pub struct Destinations {
    /// `rows[row]` is the position of `row` after the sort.
    pub rows: Vec<u32>,
    /// `offsets[p]..offsets[p + 1]` are the rows of partition `p` after the sort.
    pub offsets: Vec<u32>,
}

/// The partition of a hash: its highest `bits` bits.
#[inline(always)]
pub fn partition_of(hash: u64, bits: u32) -> usize {
    if bits == 0 {
        0
    } else {
        (hash >> (64 - bits)) as usize
    }
}

/// Sorts rows by the highest `bits` bits of their hash.
///
/// # Panics
/// If there are 2^32 rows or more.
pub fn destinations(hashes: &[u64], bits: u32) -> Destinations {
    assert!(
        u32::try_from(hashes.len()).is_ok(),
        "a block has fewer than 2^32 rows"
    );
    let partitions = 1usize << bits;
    let mut counts = vec![0u32; partitions];
    for &hash in hashes {
        counts[partition_of(hash, bits)] += 1;
    }
    let mut offsets = Vec::with_capacity(partitions + 1);
    let mut next = 0u32;
    for count in &mut counts {
        offsets.push(next);
        next += std::mem::replace(count, next);
    }
    offsets.push(next);
    let rows = hashes
        .iter()
        .map(|&hash| {
            let slot = &mut counts[partition_of(hash, bits)];
            let row = *slot;
            *slot += 1;
            row
        })
        .collect();
    Destinations { rows, offsets }
}

/// Writes `values[i]` to `out[rows[i]]`.
pub fn scatter<T: Copy>(values: &[T], rows: &[u32], out: &mut [T]) {
    assert_eq!(values.len(), rows.len(), "one destination per value");
    for (&value, &row) in values.iter().zip(rows) {
        out[row as usize] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_stable_sort(hashes in proptest::collection::vec(any::<u64>(), 0..500), bits in 0u32..9) {
            let found = destinations(&hashes, bits);
            let mut sorted = vec![0u64; hashes.len()];
            scatter(&hashes, &found.rows, &mut sorted);
            prop_assert_eq!(&sorted, &crate::naive::sort_by_partition(&hashes, bits));
            prop_assert_eq!(found.offsets.len(), (1usize << bits) + 1);
            for p in 0..1usize << bits {
                for at in found.offsets[p]..found.offsets[p + 1] {
                    prop_assert_eq!(partition_of(sorted[at as usize], bits), p);
                }
            }
        }
    }
}
