//! INTERVAL of Parquet: months, days and milliseconds in 12 bytes.
//!
//! In: files that do not say which Arrow type such a column was written from. Out: which leaves are such intervals, schemas in which
//! they have months, and intervals of their bytes.
//! Invariant: months stay. DataFusion's reader gives days and milliseconds alone.
//! Not here: which columns are read so (twelve_bytes.rs); files that keep their Arrow schema, and with it the units.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalUnit, Schema,
};
use datafusion::common::{Result, exec_err};
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::basic::ConvertedType;
use datafusion::parquet::file::metadata::FileMetaData;

pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// The leaves that are intervals of no known Arrow type.
pub(super) fn interval_leaves(file: &FileMetaData) -> BTreeSet<usize> {
    let entries = file.key_value_metadata();
    let knows_types =
        entries.is_some_and(|all| all.iter().any(|entry| entry.key == ARROW_SCHEMA_META_KEY));
    if knows_types {
        return BTreeSet::new();
    }
    let leaves = file.schema_descr().columns().iter().enumerate();
    let intervals = leaves.filter(|(_, column)| column.converted_type() == ConvertedType::INTERVAL);
    intervals.map(|(leaf, _)| leaf).collect()
}

/// A file's schema in which such columns are intervals with months.
pub(super) fn with_intervals(schema: &Schema, file: &FileMetaData) -> Schema {
    if interval_leaves(file).is_empty() {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| {
        let kind = with_months(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    });
    let fields: Vec<FieldRef> = fields.collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// A type whose intervals have months.
fn with_months(kind: &DataType) -> DataType {
    let field = |field: &FieldRef| {
        let kind = with_months(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    };
    match kind {
        DataType::Interval(_) => INTERVAL,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries), *is_sorted),
        other => other.clone(),
    }
}

/// The intervals that these bytes are.
pub(super) fn intervals(bytes: &FixedSizeBinaryArray) -> Result<ArrayRef> {
    let intervals = bytes.iter().map(|bytes| bytes.map(interval).transpose());
    let intervals = intervals.collect::<Result<IntervalMonthDayNanoArray>>()?;
    Ok(Arc::new(intervals))
}

/// Three numbers without a sign, the lowest byte of each first.
fn interval(bytes: &[u8]) -> Result<IntervalMonthDayNano> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let [months, days, milliseconds] = numbers else {
        return exec_err!("an INTERVAL that is not of 12 bytes");
    };
    let [months, days, milliseconds] =
        [months, days, milliseconds].map(|number| u32::from_le_bytes(*number));
    let nanos = i64::from(milliseconds) * NANOS_PER_MILLISECOND;
    match (i32::try_from(months), i32::try_from(days)) {
        (Ok(months), Ok(days)) => Ok(IntervalMonthDayNano::new(months, days, nanos)),
        _ => exec_err!("an INTERVAL of {months} months and {days} days, which is too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_days_and_milliseconds() {
        let mut bytes = Vec::new();
        for number in [14_u32, 3, 2_592_000_001] {
            bytes.extend(number.to_le_bytes());
        }
        let expected = IntervalMonthDayNano::new(14, 3, 2_592_000_001_000_000);
        assert_eq!(interval(&bytes).unwrap(), expected);
        assert!(interval(&[255; 12]).is_err());
        assert!(interval(&[0; 8]).is_err());
    }
}
