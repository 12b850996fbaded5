//! Timestamps that Parquet files have in 96 bits: nanoseconds within a day and the day's Julian number.
//!
//! In: such timestamps as 12 bytes each. Out: timestamps of a type, cut to its unit.
//! Invariant: a timestamp that does not fit the unit is an error. Arrow's reader of such columns wraps around.
//! Not here: which columns are read so (twelve_bytes.rs), which unit the table has (`coerce_int96` of DataFusion's options).

use datafusion::arrow::array::{
    Array, ArrayRef, FixedSizeBinaryArray, TimestampMicrosecondArray, make_array,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::parquet::basic::Type as Physical;
use datafusion::parquet::file::metadata::FileMetaData;

/// The Julian number of 1970-01-01.
const JULIAN_DAY_OF_EPOCH: i128 = 2_440_588;

const NANOS_OF_DAY: i128 = 86_400_000_000_000;

/// The leaves of a file that are such timestamps.
pub(super) fn int96_leaves(file: &FileMetaData) -> impl Iterator<Item = usize> {
    let leaves = file.schema_descr().columns().iter().enumerate();
    let leaves = leaves.filter(|(_, leaf)| leaf.physical_type() == Physical::INT96);
    leaves.map(|(leaf, _)| leaf)
}

/// The timestamps of a type with this unit.
pub(super) fn timestamps(
    bytes: &FixedSizeBinaryArray,
    unit: TimeUnit,
    to: &DataType,
) -> Result<ArrayRef> {
    let nanos = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let values = bytes.iter().map(|bytes| {
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let Some(since_epoch) = nanos_since_epoch(bytes) else {
            return exec_err!("a timestamp of Parquet's INT96 does not have 12 bytes");
        };
        match i64::try_from(since_epoch.div_euclid(nanos)) {
            Ok(value) => Ok(Some(value)),
            Err(_) if unit == TimeUnit::Nanosecond => exec_err!(
                "a timestamp of Parquet's INT96 does not fit nanoseconds, which reach from 1677 to 2262; SET datafusion.execution.parquet.coerce_int96 = 'us' reads it"
            ),
            Err(_) => exec_err!(
                "a timestamp of Parquet's INT96 does not fit 64 bits: its day is {} days from 1970-01-01",
                since_epoch.div_euclid(NANOS_OF_DAY)
            ),
        }
    });
    let values = values.collect::<Result<TimestampMicrosecondArray>>()?;
    // The numbers in their own unit.
    let values = values.to_data().into_builder().data_type(to.clone());
    Ok(make_array(values.build()?))
}

fn nanos_since_epoch(bytes: &[u8]) -> Option<i128> {
    let (nanos, day) = bytes.split_first_chunk::<8>()?;
    let nanos = i64::from_le_bytes(*nanos);
    let day = i32::from_le_bytes(day.try_into().ok()?);
    Some((i128::from(day) - JULIAN_DAY_OF_EPOCH) * NANOS_OF_DAY + i128::from(nanos))
}
