//! Results as Arrow IPC or Parquet.
//! In: batches. Out: one file or stream; a second result would need a second file and is refused by the caller.
//! Invariant: Arrow output is the seekable file format where a file is written and the stream format elsewhere, since
//! that is what readers of files and of pipes expect. Parquet holds at most one row group in memory.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use super::{PrintError, ResultWriter, with_unique_names};
use crate::output::Output;

/// Bytes that a Parquet row group may take up encoded before it is written, so that wide rows do not add up.
const ROW_GROUP_BYTES_MAX: usize = 256 << 20;

/// The Arrow writer that fits the output.
pub fn arrow<'a>(
    schema: &SchemaRef,
    output: &'a mut Output,
) -> Result<Box<dyn ResultWriter + 'a>, PrintError> {
    Ok(if output.is_file() {
        Box::new(ArrowFile::new(schema, output)?)
    } else {
        Box::new(ArrowStream(StreamWriter::try_new(output, schema)?))
    })
}

/// The file format allows one dictionary per column, while every batch may come with its own: such columns are written
/// as their values. The stream format allows replacing them.
struct ArrowFile<'a> {
    writer: FileWriter<&'a mut Output>,
    schema: SchemaRef,
}

impl<'a> ArrowFile<'a> {
    fn new(schema: &SchemaRef, output: &'a mut Output) -> Result<Self, PrintError> {
        let fields: Vec<FieldRef> = schema.fields().iter().map(without_dictionary).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let writer = FileWriter::try_new(output, &schema)?;
        Ok(ArrowFile { writer, schema })
    }
}

fn without_dictionary(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Dictionary(_, values) => Arc::new(
            field
                .as_ref()
                .clone()
                .with_data_type(values.as_ref().clone()),
        ),
        _ => field.clone(),
    }
}

impl ResultWriter for ArrowFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let fields = self.schema.fields().iter();
        let columns = batch
            .columns()
            .iter()
            .zip(fields)
            .map(|(c, f)| cast(c, f.data_type()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        Ok(self.writer.write(&batch)?)
    }

    fn finish(mut self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(self.writer.finish()?)
    }
}

struct ArrowStream<'a>(StreamWriter<&'a mut Output>);

impl ResultWriter for ArrowStream<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        Ok(self.0.write(batch)?)
    }

    fn finish(mut self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(self.0.finish()?)
    }
}

/// Writes a result as Parquet.
pub struct Parquet<'a> {
    writer: ArrowWriter<&'a mut Output>,
    schema: SchemaRef,
}

impl<'a> Parquet<'a> {
    /// Writes the file's first bytes.
    pub fn new(schema: &SchemaRef, output: &'a mut Output) -> Result<Self, PrintError> {
        let schema = with_unique_names(schema);
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1)?);
        let properties = WriterProperties::builder().set_compression(zstd).build();
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties))?;
        Ok(Parquet { writer, schema })
    }
}

impl ResultWriter for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?;
        self.writer.write(&batch)?;
        if self.writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
            self.writer.flush()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        self.writer.close()?;
        Ok(())
    }
}
