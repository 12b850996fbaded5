//! Text files: what is said of the beginnings from which their columns are found, and how much is read at once.
//!
//! In: the number of columns. Out: how much of a file is at hand, how many rows are looked at, how many rows a batch has, how
//! long a record may be.
//! Invariant: none.
//! Not here: CSV (csv/), JSON (json.rs).

pub(crate) use crate::error::from_datafusion::SAMPLE_ROWS;

/// Whether the bytes at hand are all of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole file.
    Whole,
    /// The file goes on.
    Part,
}

/// Bytes of a record, unless the call says otherwise: a file that is small because it is compressed may have one of gigabytes.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// Text of which a batch is made: of records of a megabyte, 8,192 rows would be eight gigabytes.
pub(crate) const BATCH_TEXT_BYTES: usize = 16 << 20;

/// Values of a batch: of ten thousand columns, 8,192 rows would take 2.6 GB before the first of them is full.
const BATCH_VALUES_MAX: usize = 2 << 20;
const BATCH_ROWS_MIN: usize = 64;

/// Rows of a batch that is to have `rows` of them; fewer if it is wide.
pub(crate) fn rows_of_batch(rows: usize, columns: usize) -> usize {
    let most = BATCH_VALUES_MAX / columns.max(1);
    rows.min(most.max(BATCH_ROWS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_batches_have_fewer_rows() {
        assert_eq!(rows_of_batch(8_192, 0), 8_192);
        assert_eq!(rows_of_batch(8_192, 256), 8_192);
        assert_eq!(rows_of_batch(8_192, 1_024), 2_048);
        assert_eq!(rows_of_batch(8_192, 1_000_000), BATCH_ROWS_MIN);
        assert_eq!(rows_of_batch(7, 1_000_000), 7);
    }
}
