//! Units of time that Parquet files have.
//!
//! In: columns about to be written. Out: the same, timestamps in seconds as those in milliseconds, also within lists, structs and maps.
//! Invariant: other columns stay what they are.
//! Parquet has no unit of seconds: DataFusion writes bare integers, which other readers take for numbers.
//! Not here: durations, which are integers in the files of all writers.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;

/// The schema of the file.
pub(crate) fn schema_in_file_units(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(in_field);
    let fields: Vec<FieldRef> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows of the file.
pub(crate) fn batch_in_file_units(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = schema_in_file_units(&batch.schema());
    if schema == batch.schema() {
        return Ok(batch);
    }
    let checked = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(
        |(column, field)| match field.data_type() == column.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast_with_options(column, field.data_type(), &checked),
        },
    );
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(schema, columns)
}

fn in_field(field: &FieldRef) -> FieldRef {
    let kind = in_type(field.data_type());
    match kind == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(kind)),
    }
}

fn in_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::List(item) => DataType::List(in_field(item)),
        DataType::LargeList(item) => DataType::LargeList(in_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(in_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(in_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(in_field(entries), *sorted),
        other => other.clone(),
    }
}
