//! Units of timestamps.
//!
//! In: a unit. Out: how many of it a second has.
//! Invariant: none.
//! Not here: units of files (scan/parquet/time_units.rs).

use datafusion::arrow::datatypes::TimeUnit;

/// How many of the unit a second has.
pub(crate) const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
