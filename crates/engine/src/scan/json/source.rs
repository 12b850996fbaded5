//! Scans of JSON files.
//!
//! In: files and the columns that a query reads. Out: batches, from several workers where the records lie in lines.
//! Invariant: every record is read by exactly one worker.
//! Not here: parsing (records.rs), types (format.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_expr::projection::ProjectionExprs;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::ObjectStore;

use super::chunks::chunks;
use super::records::{FilePart, Records, RecordsText, Root, first_byte};
use crate::scan::text::TextScan;
use crate::scan::wrapped::as_wrapped;
use grouse_text::json::columns::{Object, Strictness};
use grouse_text::json::splitter::Layout;
use grouse_text::json::types::JsonType;

/// How the files of a table are read.
#[derive(Debug, Clone)]
pub(super) struct JsonReading {
    pub(super) fields: Arc<Vec<(String, JsonType)>>,
    pub(super) layout: Layout,
    pub(super) root: Root,
    pub(super) strictness: Strictness,
    pub(super) compression: FileCompressionType,
    pub(super) record_bytes_max: usize,
}

#[derive(Clone)]
pub(super) struct JsonSource {
    pub(super) reading: JsonReading,
    scan: TextScan,
}

impl JsonSource {
    pub(super) fn new(reading: JsonReading, schema: TableSchema) -> JsonSource {
        let scan = TextScan::new(schema);
        JsonSource { reading, scan }
    }

    /// The same, whose decompression counts in `pool`.
    pub(super) fn counting(&self, pool: &Arc<dyn MemoryPool>) -> Arc<dyn FileSource> {
        Arc::new(JsonSource {
            scan: self.scan.counting(pool),
            ..self.clone()
        })
    }
}

impl FileSource for JsonSource {
    as_wrapped!(scan: table_schema, projection, metrics, apply_expressions);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        _config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let source = self.clone();
        self.scan.computing(Arc::new(JsonOpener { source, store }))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(JsonSource {
            scan: self.scan.with_batch_size(rows),
            ..self.clone()
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(Some(Arc::new(JsonSource {
            scan: self.scan.projected(projection)?,
            ..self.clone()
        })))
    }

    fn file_type(&self) -> &str {
        "json"
    }

    fn supports_repartitioning(&self) -> bool {
        self.reading.layout == Layout::Lines && !self.reading.compression.is_compressed()
    }
}

struct JsonOpener {
    source: JsonSource,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Debug for JsonOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonOpener")
            .field("reading", &self.source.reading)
            .finish_non_exhaustive()
    }
}

impl FileOpener for JsonOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (source, store) = (self.source.clone(), Arc::clone(&self.store));
        Ok(Box::pin(async move {
            let part = match &file.range {
                None => FilePart::Whole,
                Some(range) => FilePart::Range {
                    start: u64::try_from(range.start).unwrap_or_default(),
                    end: u64::try_from(range.end).unwrap_or_default(),
                },
            };
            let JsonReading {
                fields,
                layout,
                root,
                strictness,
                compression,
                record_bytes_max,
            } = source.reading;
            let meta = &file.object_meta;
            let decompression = source.scan.decompression(compression);
            let bytes = chunks(&store, meta, first_byte(part), &decompression).await?;
            let columns = Object::new(&fields, source.scan.columns(), strictness);
            let mut records = Records::new(
                RecordsText::new(bytes, layout, part, record_bytes_max),
                columns,
                root,
                strictness,
            );
            records.batch_rows = source.scan.batch_rows();
            records.schema = source.scan.read_schema()?;
            Ok(batches(records))
        }))
    }
}

fn batches(records: Records) -> BoxStream<'static, Result<RecordBatch>> {
    let next = |mut records: Records| async move {
        let batch = records.next().await?;
        Ok(batch.map(|batch| (batch, records)))
    };
    futures::stream::try_unfold(records, next).boxed()
}
