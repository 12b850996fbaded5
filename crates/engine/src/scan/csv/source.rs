//! The source: CSV files as DataFusion's scans read them.
//!
//! In: files, or pieces of them, and the columns that are wanted.
//! Out: batches.
//! Invariant: a piece is read by one worker; pieces are cut only of files on this machine that are plain UTF-8.
//! Not here: where pieces begin and end (cuts.rs), values (decode.rs).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::{DataFusionError, Statistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore};

use super::blocks::{Block, Blocks, bad};
use super::cuts::{Cuts, FileBytes};
use super::decode::{Bad, Decode, ReadingRules};
use super::dialect::Header;
use super::input::{Input, LocalFile};
use super::rejects::FileRejects;
use crate::scan::decompression::Decompression;
use crate::scan::steady::Pinned;
use crate::scan::text::{TextScan, scan_of};
use crate::scan::wrapped::as_wrapped;
use grouse_text::csv::records::Table;

/// Pieces of a file have so many bytes: opening one costs as much as reading 16 KiB.
const PIECE_BYTES: u64 = 1 << 20;
/// Of the size from which DataFusion cuts files (`repartition_file_min_size`), a piece has at most this part.
const PIECE_SHARE: u64 = 10;
/// And however small that is, so many bytes.
const PIECE_BYTES_MIN: u64 = 16;
/// A file has at most so many pieces.
const PIECES_MAX: u64 = 4_096;

/// Our format of CSV files.
#[derive(Debug)]
pub(crate) struct CsvText {
    pub(crate) rules: Arc<ReadingRules>,
    pub(crate) compression: FileCompressionType,
}

#[async_trait]
impl FileFormat for CsvText {
    fn get_ext(&self) -> String {
        "csv".to_string()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        CsvFormat::default().get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        Some(self.compression)
    }

    async fn infer_schema(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        _objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        Err(DataFusionError::Internal(
            "the columns of CSV files are known before".to_string(),
        ))
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = conf.file_source().downcast_ref::<CsvSource>();
        let source = source.map(|source| source.counting(&state.runtime_env().memory_pool));
        Ok(scan_of(conf, source, self.compression))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(CsvSource::new(Arc::clone(&self.rules), schema))
    }
}

#[derive(Clone)]
pub(super) struct CsvSource {
    pub(super) rules: Arc<ReadingRules>,
    scan: TextScan,
    /// Of files that are read in pieces.
    pub(super) cuts: Arc<HashMap<Path, Arc<Cuts>>>,
}

impl FileSource for CsvSource {
    as_wrapped!(scan: table_schema, projection, metrics, apply_expressions);

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        _partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.scan.computing(Arc::new(CsvOpener {
            rules: Arc::clone(&self.rules),
            schema: self.scan.read_schema()?,
            batch_rows: self.scan.batch_rows(),
            columns: self.scan.columns().to_vec(),
            decompression: self.scan.decompression(config.file_compression_type),
            cuts: Arc::clone(&self.cuts),
            place: config.object_store_url.as_str().to_string(),
            store,
        }))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(CsvSource {
            scan: self.scan.with_batch_size(rows),
            ..self.clone()
        })
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(Some(Arc::new(CsvSource {
            scan: self.scan.projected(projection)?,
            ..self.clone()
        })))
    }

    fn file_type(&self) -> &str {
        "csv"
    }

    fn repartitioned(
        &self,
        workers: usize,
        bytes_min: usize,
        ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        let is_plain = !config.file_compression_type.is_compressed()
            && self.rules.encoding.is_none()
            && config.object_store_url.as_str().starts_with("file:");
        if !is_plain || ordering.is_some() || workers < 2 {
            return Ok(None);
        }
        Ok(self.in_pieces(workers, bytes_min as u64, config))
    }

    fn fmt_extra(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let has_header = self.rules.dialect.header == Header::Names;
        write!(f, ", has_header={has_header}")
    }
}

impl CsvSource {
    /// All columns of whole files.
    pub(super) fn new(rules: Arc<ReadingRules>, schema: TableSchema) -> CsvSource {
        CsvSource {
            rules,
            scan: TextScan::new(schema),
            cuts: Arc::default(),
        }
    }

    /// The same, whose decompression counts in `pool`.
    pub(super) fn counting(&self, pool: &Arc<dyn MemoryPool>) -> Arc<dyn FileSource> {
        Arc::new(CsvSource {
            scan: self.scan.counting(pool),
            ..self.clone()
        })
    }

    /// The scan with its files in pieces; `None` if they are too small.
    fn in_pieces(
        &self,
        workers: usize,
        bytes_min: u64,
        config: &FileScanConfig,
    ) -> Option<FileScanConfig> {
        let files = || config.file_groups.iter().flat_map(FileGroup::iter);
        let bytes: u64 = files().map(|file| file.object_meta.size).sum();
        let longest = files().map(|file| file.object_meta.size).max().unwrap_or(0);
        let is_cut = files().any(|file| file.range.is_some());
        let piece_bytes = (bytes_min / PIECE_SHARE).clamp(PIECE_BYTES_MIN, PIECE_BYTES);
        if is_cut || bytes < bytes_min.max(1) || longest < 2 * piece_bytes {
            return None;
        }
        let mut cuts = HashMap::new();
        let mut pieces = Vec::new();
        for file in files() {
            let size = file.object_meta.size;
            if size < 2 * piece_bytes {
                pieces.push(file.clone());
                continue;
            }
            let step = size.div_ceil(PIECES_MAX).max(piece_bytes);
            let location = file.object_meta.location.clone();
            cuts.entry(location)
                .or_insert_with(|| Arc::new(Cuts::new(size, step)));
            pieces.extend((0..size.div_ceil(step)).map(|piece| {
                let mut part = file.clone();
                part.range = Some(FileRange {
                    start: (piece * step) as i64,
                    end: ((piece + 1) * step).min(size) as i64,
                });
                part
            }));
        }
        // Streams open them in this order, whichever group they are in.
        let each = pieces.len().div_ceil(workers);
        let groups = pieces
            .chunks(each)
            .map(|part| FileGroup::new(part.to_vec()));
        let source = CsvSource {
            cuts: Arc::new(cuts),
            ..self.clone()
        };
        let config = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups.collect())
            .with_source(Arc::new(source));
        Some(config.build())
    }
}

struct CsvOpener {
    rules: Arc<ReadingRules>,
    schema: SchemaRef,
    columns: Vec<usize>,
    batch_rows: usize,
    decompression: Decompression,
    cuts: Arc<HashMap<Path, Arc<Cuts>>>,
    /// The address of the store.
    place: String,
    store: Arc<dyn ObjectStore>,
}

impl FileOpener for CsvOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let location = &file.object_meta.location;
        let name = name_of(&self.place, location);
        let layout = self.rules.layout(location);
        let wanted = (Arc::clone(&self.schema), self.columns.as_slice());
        let decode = Decode::new(&self.rules, layout, wanted, self.batch_rows);
        let rejects = self.rules.rejects.as_ref();
        let rejects = rejects.map(|rejects| rejects.of_file(location, layout));
        let cuts = file
            .range
            .as_ref()
            .and_then(|_| self.cuts.get(location))
            .cloned();
        let rules = Arc::clone(&self.rules);
        let store: Arc<dyn ObjectStore> = match self.place.starts_with("file:") {
            // What is open is held against the plan with each reading.
            true => Arc::clone(&self.store),
            false => Arc::new(Pinned::new(
                Arc::clone(&self.store),
                file.object_meta.clone(),
            )),
        };
        let decompression = self.decompression.clone();
        Ok(Box::pin(async move {
            let origin = match cuts {
                Some(cuts) => piece(&file, &cuts, store, &rules, name).await?,
                None => whole(&file, store, &rules, name, &decompression).await?,
            };
            Ok(batches(origin, decode, rejects))
        }))
    }
}

/// A file as a user would write it.
pub(crate) fn name_of(place: &str, location: &Path) -> String {
    match place {
        "file:///" => format!("/{location}"),
        place => format!("{place}{location}"),
    }
}

async fn piece(
    file: &PartitionedFile,
    cuts: &Cuts,
    store: Arc<dyn ObjectStore>,
    rules: &ReadingRules,
    name: String,
) -> Result<BlockOrigin> {
    let meta = &file.object_meta;
    let result = store
        .get_opts(&meta.location, GetOptions::default())
        .await?;
    let ranges = match result.payload {
        GetResultPayload::File(opened, _) => {
            FileBytes::Local(LocalFile::new(opened, meta.clone(), name)?)
        }
        GetResultPayload::Stream(_) => FileBytes::Other(store, meta.location.clone(), name),
    };
    let number = cuts.number_of(file.range.as_ref().map_or(0, |range| range.start) as u64);
    let block = cuts
        .block(number, &ranges, &rules.dialect, rules.record_bytes_max)
        .await?;
    Ok(BlockOrigin::Piece(block, ranges.name().to_string()))
}

async fn whole(
    file: &PartitionedFile,
    store: Arc<dyn ObjectStore>,
    rules: &ReadingRules,
    name: String,
    decompression: &Decompression,
) -> Result<BlockOrigin> {
    let meta = &file.object_meta;
    let result = store
        .get_opts(&meta.location, GetOptions::default())
        .await?;
    let input = Input::new(result, meta, &name, decompression)?.encoded(rules.encoding);
    let blocks = Blocks::new(input, rules.dialect.clone(), rules.record_bytes_max);
    Ok(BlockOrigin::Whole(Box::new(blocks)))
}

/// Where blocks come from.
pub(crate) enum BlockOrigin {
    /// With the name of the file.
    Piece(Option<Block>, String),
    Whole(Box<Blocks>),
}

impl BlockOrigin {
    async fn next(&mut self) -> Result<Option<Block>> {
        match self {
            BlockOrigin::Piece(block, _) => Ok(block.take()),
            BlockOrigin::Whole(blocks) => blocks.next().await,
        }
    }

    /// The name of the file.
    fn name(&self) -> &str {
        match self {
            BlockOrigin::Piece(_, name) => name,
            BlockOrigin::Whole(blocks) => blocks.name(),
        }
    }
}

/// What is left of a file.
struct Rest {
    origin: BlockOrigin,
    decode: Decode,
    rejects: Option<FileRejects>,
    block: Option<(Block, usize)>,
    table: Table,
}

/// The batches of a file; what is left out of them goes to its rejects.
pub(crate) fn batches(
    origin: BlockOrigin,
    decode: Decode,
    rejects: Option<FileRejects>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let rest = Rest {
        origin,
        decode,
        rejects,
        block: None,
        table: Table::default(),
    };
    let next = |mut rest: Rest| async move {
        let batch = rest.next().await?;
        Ok(batch.map(|batch| (batch, rest)))
    };
    futures::stream::try_unfold(rest, next).boxed()
}

impl Rest {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((block, at)) = &mut self.block else {
                let Some(block) = self.origin.next().await? else {
                    return Ok(None);
                };
                let first = self.decode.first(&block);
                self.block = Some((block, first));
                continue;
            };
            let decoded = self.decode.batch(block, *at, &mut self.table);
            let decoded = decoded.map_err(|Bad { at, message }| {
                let line = self.decode.line_at(block, at);
                bad(self.origin.name(), Some(line), message)
            })?;
            if let Some(rejects) = &self.rejects {
                rejects.add(decoded.rejects)?;
            }
            match decoded.batch {
                Some(batch) => {
                    *at = decoded.next;
                    return Ok(Some(batch));
                }
                None => self.block = None,
            }
        }
    }
}
