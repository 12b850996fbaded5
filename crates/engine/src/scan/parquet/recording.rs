//! What a scan learns for the condition cache while it is filtered.
//!
//! In: pieces of files whose rows a filter wants. Then, from their streams, how many rows came, and from the filter, of how many
//! it was asked and whether any was left. Out: row groups for the cache.
//! Invariant: a row group is written down only when all pieces that have rows of it came to their ends. Each had as many rows as
//! were planned (of a scan that itself leaves rows out: any number). The filter has seen all of them without an error, and the
//! file still is the version that planning found. So a LIMIT, a cancelled query, an error and a scan that bounds let leave out
//! more write nothing down.
//! Not here: what is kept (condition_cache.rs), the filter (exec/recording_filter.rs).
//!
//! A batch says in its schema's metadata of which piece it is. One without says nothing, and its piece is never complete.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
    FileStreamBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use futures::stream::{BoxStream, Stream, StreamExt};
use object_store::ObjectStore;

use crate::scan::decoder_panics::GuardedSource;
use crate::scan::parquet::condition_cache::{
    ConditionCache, Conjunction, FileVersion, MatchedRanges, RANGE_ROWS, range_words,
};

use crate::scan::wrapped::as_wrapped;

/// Where a batch's schema says of which piece it is.
const PIECE: &str = "grouse.piece";

/// What there is to learn from a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learning {
    /// All rows that were planned have to come, and which row is whose follows from their order.
    FromAll,
    /// Any number of them may come: the scan leaves out some that the conditions exclude.
    FromFewer,
    /// All is known, or cannot be.
    Nothing,
}

/// One file of a scan.
pub(crate) struct RecordedFile {
    version: FileVersion,
    /// Of a local one.
    path: Option<PathBuf>,
    groups: Vec<RecordedGroup>,
}

impl RecordedFile {
    pub fn new(
        version: FileVersion,
        path: Option<PathBuf>,
        groups: Vec<RecordedGroup>,
    ) -> RecordedFile {
        RecordedFile {
            version,
            path,
            groups,
        }
    }
}

/// One row group of a file.
pub(crate) struct RecordedGroup {
    rows: usize,
    /// Rows that are wanted, and whose piece has not ended.
    left: AtomicUsize,
    /// A bit for each range of which a row was left.
    matched: Box<[AtomicU64]>,
}

impl RecordedGroup {
    /// One of `rows` rows, of which `wanted` are read and the others known not to match.
    pub fn new(rows: usize, wanted: usize) -> RecordedGroup {
        RecordedGroup {
            rows,
            left: AtomicUsize::new(wanted),
            matched: (0..range_words(rows)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn set(&self, rows: Range<usize>) {
        for range in rows.start / RANGE_ROWS..rows.end.div_ceil(RANGE_ROWS) {
            self.matched[range / 64].fetch_or(1 << (range % 64), Ordering::Relaxed);
        }
    }
}

/// Some rows of some row groups of a file, in order. Workers write to pieces that lie beside each other.
#[repr(align(128))]
pub(crate) struct RecordedPiece {
    file: usize,
    parts: Vec<(usize, Vec<Range<usize>>)>,
    is_opened: AtomicBool,
    /// Rows that the filter has seen.
    seen: AtomicUsize,
    has_match: AtomicBool,
}

impl RecordedPiece {
    /// Of the file `file` these ranges of its row groups.
    pub fn new(file: usize, parts: Vec<(usize, Vec<Range<usize>>)>) -> RecordedPiece {
        RecordedPiece {
            file,
            parts,
            is_opened: AtomicBool::new(false),
            seen: AtomicUsize::new(0),
            has_match: AtomicBool::new(false),
        }
    }

    fn rows(&self) -> usize {
        let ranges = self.parts.iter().flat_map(|(_, ranges)| ranges);
        ranges.map(Range::len).sum()
    }
}

/// What one scan learns.
pub(crate) struct ScanRecording {
    cache: &'static ConditionCache,
    conditions: Conjunction,
    learning: Learning,
    files: Vec<RecordedFile>,
    pieces: Vec<RecordedPiece>,
    skipped: Skipped,
}

/// What is not read because of what the cache knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub rows: usize,
    /// Those of which nothing is read.
    pub row_groups: usize,
}

/// Which piece of which recording a piece of a file is, beside it.
pub(crate) struct PieceOf {
    recording: Arc<ScanRecording>,
    at: usize,
}

impl ScanRecording {
    /// That of a scan below a filter by `conditions`.
    pub fn new(
        cache: &'static ConditionCache,
        (conditions, learning): (Conjunction, Learning),
        files: Vec<RecordedFile>,
        pieces: Vec<RecordedPiece>,
        skipped: Skipped,
    ) -> ScanRecording {
        ScanRecording {
            cache,
            conditions,
            learning,
            files,
            pieces,
            skipped,
        }
    }

    /// The file's piece, which the recording knows as number `at`.
    pub fn noted(self: &Arc<ScanRecording>, piece: PartitionedFile, at: usize) -> PartitionedFile {
        piece.with_extension(PieceOf {
            recording: Arc::clone(self),
            at,
        })
    }

    /// Whether somebody has to look at what is left.
    pub fn learns(&self) -> bool {
        self.learning != Learning::Nothing
    }

    /// That of a scan, if there is one.
    pub fn of(config: &FileScanConfig) -> Option<Arc<ScanRecording>> {
        let mut files = config.file_groups.iter().flat_map(FileGroup::iter);
        let of = files.find_map(|file| file.extension::<PieceOf>())?;
        Some(Arc::clone(&of.recording))
    }

    /// The filter has seen a batch, and left rows of it or none.
    pub fn saw(&self, batch: &RecordBatch, has_match: bool) {
        let piece = batch.schema_ref().metadata().get(PIECE);
        let piece = piece.and_then(|at| self.pieces.get(at.parse::<usize>().ok()?));
        let Some(piece) = piece else {
            return;
        };
        let rows = batch.num_rows();
        // One worker at a time has a piece.
        let before = piece.seen.fetch_add(rows, Ordering::Relaxed);
        if has_match {
            piece.has_match.store(true, Ordering::Relaxed);
            self.set(piece, before..before + rows);
        }
    }

    /// Marks ranges of the rows of a piece, counted from its first one.
    fn set(&self, piece: &RecordedPiece, rows: Range<usize>) {
        let mut first = 0;
        for (group, ranges) in &piece.parts {
            for range in ranges {
                let start = rows.start.clamp(first, first + range.len()) - first;
                let end = rows.end.clamp(first, first + range.len()) - first;
                if start < end {
                    let of = &self.files[piece.file].groups[*group];
                    of.set(range.start + start..range.start + end);
                }
                first += range.len();
            }
        }
    }

    /// The stream of a piece has come to its end after so many rows, without an error.
    fn ended(&self, at: usize, came: usize) {
        let piece = &self.pieces[at];
        let planned = piece.rows();
        if piece.seen.load(Ordering::Relaxed) != came {
            return;
        }
        match self.learning {
            Learning::Nothing => return,
            Learning::FromAll if came != planned => return,
            // Which rows these are nobody knows.
            Learning::FromFewer if came != planned && piece.has_match.load(Ordering::Relaxed) => {
                self.set(piece, 0..planned);
            }
            Learning::FromAll | Learning::FromFewer => {}
        }
        let file = &self.files[piece.file];
        for (group, ranges) in &piece.parts {
            let (of, rows) = (&file.groups[*group], ranges.iter().map(Range::len).sum());
            if of.left.fetch_sub(rows, Ordering::AcqRel) == rows {
                self.write_down(file, *group);
            }
        }
    }

    fn write_down(&self, file: &RecordedFile, group: usize) {
        let is_changed = file
            .path
            .as_ref()
            .is_some_and(|path| !file.version.is_at(path));
        if is_changed {
            return;
        }
        let of = &file.groups[group];
        let matched = of.matched.iter().map(|word| word.load(Ordering::Relaxed));
        let matched = MatchedRanges::new(of.rows, matched.collect());
        self.cache
            .put(&file.version, &self.conditions, group, matched);
    }
}

impl fmt::Debug for ScanRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanRecording")
            .field("conditions", &self.conditions)
            .finish_non_exhaustive()
    }
}

/// The Parquet scan that a node is, also one that is recorded.
pub(crate) fn parquet_scan(scan: &DataSourceExec) -> Option<(&FileScanConfig, &ParquetSource)> {
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    Some((config, parquet_source(config)?))
}

/// The Parquet source of a scan, also of one that is recorded or guarded.
pub(super) fn parquet_source(config: &FileScanConfig) -> Option<&ParquetSource> {
    let source = GuardedSource::unguarded(config.file_source());
    let recorded = source.downcast_ref::<RecordedSource>();
    let source = recorded.map_or(source, |recorded| &recorded.parquet);
    source.downcast_ref::<ParquetSource>()
}

/// A Parquet source whose batches say of which piece they are.
pub(crate) struct RecordedSource {
    parquet: Arc<dyn FileSource>,
}

impl RecordedSource {
    /// In the place of the source of `config`, which has pieces of `recording`.
    pub fn replacing(config: &FileScanConfig, recording: &ScanRecording) -> FileScanConfig {
        let parquet = Arc::clone(config.file_source());
        let Skipped { rows, row_groups } = recording.skipped;
        for (name, count) in [
            ("condition_cache_rows_skipped", rows),
            ("condition_cache_row_groups_skipped", row_groups),
        ] {
            let skipped = MetricBuilder::new(parquet.metrics()).global_counter(name);
            skipped.add(count);
        }
        let source = Arc::new(RecordedSource { parquet });
        let config = FileScanConfigBuilder::from(config.clone()).with_source(source);
        config.build()
    }
}

impl FileSource for RecordedSource {
    as_wrapped!(
        parquet: table_schema, filter, projection, metrics, file_type, fmt_extra,
        apply_expressions
    );

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::clone(&self.parquet))
            .with_file_groups(Vec::new())
            .build();
        Ok(Arc::new(RecordedOpener {
            store,
            config,
            partition,
        }))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(RecordedSource {
            parquet: self.parquet.with_batch_size(rows),
        })
    }

    fn supports_repartitioning(&self) -> bool {
        false
    }
}

/// Opens pieces.
struct RecordedOpener {
    store: Arc<dyn ObjectStore>,
    /// Of DataFusion's source, without files.
    config: FileScanConfig,
    partition: usize,
}

impl FileOpener for RecordedOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let noted = file.extension::<PieceOf>();
        let noted = noted.map(|of| (Arc::clone(&of.recording), of.at));
        // A plan that runs twice says nothing new the second time, and no row counts twice.
        let noted = noted.filter(|(recording, at)| {
            let opened = &recording.pieces[*at].is_opened;
            recording.learns() && !opened.swap(true, Ordering::Relaxed)
        });
        let store = Arc::clone(&self.store);
        let parquet = self.config.file_source();
        let morsels = parquet.create_morselizer(store, &self.config, self.partition)?;
        // One piece, read as DataFusion reads it.
        let alone = FileScanConfigBuilder::from(self.config.clone())
            .with_file_groups(vec![FileGroup::new(vec![file])])
            .build();
        // The stream around this one counts the same.
        let uncounted = ExecutionPlanMetricsSet::new();
        let batches = FileStreamBuilder::new(&alone)
            .with_partition(0)
            .with_morselizer(morsels)
            .with_metrics(&uncounted)
            .build()?
            .boxed();
        let batches = match noted {
            Some((recording, at)) => NotedBatches::new(batches, recording, at).boxed(),
            None => batches,
        };
        Ok(Box::pin(async move { Ok(batches) }))
    }
}

/// The batches of a piece.
struct NotedBatches {
    batches: BoxStream<'static, Result<RecordBatch>>,
    recording: Arc<ScanRecording>,
    at: usize,
    /// Rows that have come.
    came: usize,
    /// The schema of batches as they come, and with the piece.
    schemas: Option<(SchemaRef, SchemaRef)>,
    is_over: bool,
}

impl NotedBatches {
    fn new(
        batches: BoxStream<'static, Result<RecordBatch>>,
        recording: Arc<ScanRecording>,
        at: usize,
    ) -> NotedBatches {
        NotedBatches {
            batches,
            recording,
            at,
            came: 0,
            schemas: None,
            is_over: false,
        }
    }

    fn noted(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        self.came += batch.num_rows();
        let plain = batch.schema();
        let noted = match &self.schemas {
            Some((known, noted)) if Arc::ptr_eq(known, &plain) => Arc::clone(noted),
            _ => {
                let mut metadata = plain.metadata().clone();
                metadata.insert(PIECE.to_string(), self.at.to_string());
                let noted = Schema::new_with_metadata(plain.fields().clone(), metadata);
                let noted = Arc::new(noted);
                self.schemas = Some((plain, Arc::clone(&noted)));
                noted
            }
        };
        Ok(batch.with_schema(noted)?)
    }
}

impl Stream for NotedBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.batches.poll_next_unpin(context));
        Poll::Ready(match next {
            Some(Ok(batch)) => Some(self.noted(batch)),
            Some(Err(error)) => {
                self.is_over = true;
                Some(Err(error))
            }
            None => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.recording.ended(self.at, self.came);
                }
                None
            }
        })
    }
}
