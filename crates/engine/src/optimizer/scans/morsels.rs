//! Scans below a group-by, handed out in morsels: pieces whose size follows from the rows that are left.
//!
//! In: a finished physical plan, the footers that planning has read. Out: the same plan in which the workers of a Parquet
//! scan take large pieces first and small ones last.
//! Invariant: every row that the predicate may want is in exactly one morsel. A scan whose order or partitioning means
//! something, and one whose files are not known, stay as they are.
//! Not here: handing out (DataFusion's scan: whichever stream is idle opens the next file of a common list), decoding.
//!
//! DataFusion gives each worker one range of bytes. Where the rows that a predicate leaves lie together, one worker then
//! has them all. Where there are 23 row groups for two workers, one waits while the other reads the last.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    PagePruningAccessPlanFilter, ParquetAccessPlan, ParquetRowSelection, RowGroupAccess,
    RowGroupAccessPlanFilter, apply_file_schema_type_coercions,
};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetFileMetrics, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::simplifier::PhysicalExprSimplifier;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapterFactory, replace_columns_with_literals,
};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;

use object_store::path::Path;

use super::late_materialisation::{late_materialised, rare_part};
use super::recorded::{Answer, Question};
use crate::exec::{GroupByExec, is_dynamic};
use crate::runtime::memory::SessionPool;
use crate::runtime::options::SessionOptions;
use crate::scan::parquet::condition_cache::rows_left;
use crate::scan::parquet::footer::{
    TextColumns, chunks_of, dictionary_bytes, reading_bytes, strings_of,
};
use crate::scan::parquet::known_sound_footer;
use crate::scan::parquet::local::LocalReaders;
use crate::scan::parquet::recording::Skipped;
use crate::scan::stores::Stores;

/// Opening a piece costs as much as reading these bytes: 0.25 ms.
const OPENING_BYTES: i64 = 512 << 10;
/// And so does a predicate: holding it against bounds, where that is not done for all pieces of a file at once. Where it is,
/// smaller pieces were no better either (1.02 to 1.05 of the time).
const PRUNING_BYTES: i64 = 512 << 10;
/// A piece is worth so many times what it costs beside its rows. Tried and rejected: pieces of 2 MB whatever their
/// dictionaries (82,000 rows of two long strings in 6 pieces: 60 ms of decoding instead of 29).
const WORTH: i64 = 8;
/// A piece that ends with its row group for the condition cache's sake is worth so many times what it costs.
const WORTH_WHOLE: i64 = 32;
/// Where workers would have nothing to do otherwise, it is worth so many times what it costs: they are there anyway.
const WORTH_IDLE: i64 = 2;
/// All workers together hold so many bytes of files, those of the row groups that they have open.
const OPEN_BYTES: i64 = 64 << 20;
/// Of its even share of the rows that are left, a worker takes one part in so many at once.
const SHARE: usize = 2;
/// With more files for each worker they are pieces enough, and looking at all of them takes longer than an idle worker.
const FILES_MAX: usize = 16;
/// So many files are looked at, however few workers there are.
const FILES_MIN: usize = 256;

/// Rows of a piece, beside it.
pub(crate) struct MorselRows(pub u64);

/// Cuts scans into morsels.
pub(crate) struct MorselsRule {
    footers: Arc<FileMetadataCache>,
    stores: Arc<Stores>,
    pool: Arc<SessionPool>,
}

impl MorselsRule {
    /// A rule that knows the files whose footers are in this cache.
    pub fn new(
        footers: Arc<FileMetadataCache>,
        stores: Arc<Stores>,
        pool: Arc<SessionPool>,
    ) -> MorselsRule {
        MorselsRule {
            footers,
            stores,
            pool,
        }
    }
}

impl MorselsRule {
    pub fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.execution.enable_file_stream_work_stealing {
            return Ok(plan);
        }
        let options = SessionOptions::of(config);
        GroupByExec::exchanged_in(plan, |group_by, node| {
            let input = self.cut(group_by.children()[0], None, &options)?;
            let cut = |input| replace_children_if_necessary(Arc::clone(node), vec![input]);
            input.map(cut).transpose()
        })
    }
}

impl MorselsRule {
    /// `node`, directly below `filter` if there is one, with its scan in morsels; none if there is nothing to cut.
    fn cut(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        filter: Option<&FilterExec>,
        options: &SessionOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
            let scan = scan.downcast_to_file_source::<ParquetSource>();
            return Ok(scan.and_then(|(config, source)| {
                let asked = |filter| {
                    let is_local = self.is_local(config);
                    Question::of(filter, (config, source), is_local, options)
                };
                let question = filter.and_then(asked);
                self.scan((config, source), question.as_ref(), options.batch_size)
            }));
        }
        let filter = node.downcast_ref::<FilterExec>();
        if filter.is_none() && !node.is::<ProjectionExec>() {
            return Ok(None);
        }
        let Some(input) = self.cut(node.children()[0], filter, options)? else {
            return Ok(None);
        };
        replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some)
    }

    /// True of files that this machine's file system has under their own names.
    fn is_local(&self, config: &FileScanConfig) -> bool {
        let is_file = config.object_store_url.as_str().starts_with("file:");
        is_file && self.stores.has_own_files()
    }

    fn scan(
        &self,
        (config, source): (&FileScanConfig, &ParquetSource),
        question: Option<&Question>,
        batch_rows: usize,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let workers = config.file_groups.len();
        let is_free = config.output_ordering.is_empty()
            && config.output_partitioning.is_none()
            && config.limit.is_none()
            && !config.preserve_order;
        if workers == 0 || !is_free {
            return None;
        }
        let scan = (config, source);
        let (morsels, source) = self.pieces(scan, question, usize::MAX, batch_rows)?;
        // Streams open them in this order, whichever group they are in. Those that are left without one help the others.
        let each = morsels.len().div_ceil(workers).max(1);
        let mut groups: Vec<FileGroup> = morsels
            .chunks(each)
            .map(|files| FileGroup::new(files.to_vec()))
            .collect();
        groups.resize(workers, FileGroup::default());
        let scan = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(groups)
            .with_source(Arc::new(source));
        Some(DataSourceExec::from_data_source(scan.build()))
    }

    /// The pieces of a scan in the order of its rows, and the source that reads them in batches of so many. None is larger than
    /// `rows_max` where it can be cut and pays.
    pub(super) fn pieces(
        &self,
        (config, source): (&FileScanConfig, &ParquetSource),
        question: Option<&Question>,
        rows_max: usize,
        batch_rows: usize,
    ) -> Option<(Vec<PartitionedFile>, ParquetSource)> {
        let workers = config.file_groups.len();
        let strings = strings_of(source.table_schema().file_schema());
        let files = whole_files(config)?;
        if files.len() > (FILES_MAX * workers).max(FILES_MIN) {
            return None;
        }
        let columns = columns_read(source);
        let known = files
            .into_iter()
            .map(|file| self.known(file, (source, config), (&strings, &columns), question));
        let mut known = known.collect::<Option<Vec<_>>>()?;
        let rare = known.first().and_then(|file| file.rare_part);
        let rare = rare.filter(|_| known.iter().all(|file| file.rare_part == rare));
        let is_late = rare.is_some() || source.table_parquet_options().global.pushdown_filters;
        for file in &mut known {
            file.ends_with_groups = is_late && question.is_some();
        }
        let mut morsels = morsels(&known, workers, rows_max);
        if let Some(question) = question {
            morsels = question.recorded(&known, morsels, is_late);
        }
        let mut source = source.clone();
        let readers = source.parquet_file_reader_factory();
        if let Some(readers) = readers.filter(|_| self.is_local(config)) {
            let readers = Arc::new(LocalReaders::new(
                Arc::clone(readers),
                Arc::clone(&self.pool) as _,
                Arc::clone(self.stores.access()),
                batch_rows,
            ));
            source = source.with_parquet_file_reader_factory(readers);
        }
        if known.iter().all(|file| file.is_settled) {
            let mut options = source.table_parquet_options().clone();
            options.global.pruning = false;
            options.global.enable_page_index = false;
            options.global.bloom_filter_on_read = false;
            source = source.with_table_parquet_options(options);
        }
        if let Some(rare) = rare {
            source = late_materialised(&source, rare, self.pool.limit() / workers);
        }
        Some((morsels, source))
    }

    /// A file with the rows of each row group that the predicate may want.
    fn known(
        &self,
        file: PartitionedFile,
        (source, config): (&ParquetSource, &FileScanConfig),
        (strings, columns): (&TextColumns, &HashSet<&str>),
        question: Option<&Question>,
    ) -> Option<MorselFile> {
        let footer = known_sound_footer(&*self.footers, &file.object_meta, strings)?;
        let plan = pruned(&footer, &file, source, config);
        let predicate = source.filter();
        let is_settled = predicate.as_ref().is_none_or(|predicate| {
            plan.is_some() && !is_dynamic(predicate) && !says_more(&footer, predicate)
        });
        let rare_part = predicate
            .filter(|_| is_settled)
            .and_then(|predicate| rare_part(&predicate, &footer, columns));
        let plan = plan.unwrap_or_else(|| ParquetAccessPlan::new_all(footer.num_row_groups()));
        let is_paged = footer.offset_index().is_some();
        let answer = question.and_then(|question| question.answer(&file));
        let mut skipped = Skipped::default();
        let groups = footer.row_groups().iter().zip(plan.inner()).enumerate();
        let groups = groups.map(|(at, (group, access))| {
            let rows = usize::try_from(group.num_rows()).ok()?;
            let mut wanted = match access {
                RowGroupAccess::Skip => Vec::new(),
                RowGroupAccess::Scan => whole(rows),
                RowGroupAccess::Selection(selection) => ranges(selection),
            };
            let known = answer
                .as_ref()
                .map_or(&[][..], |answer| answer.known.of(at));
            if !known.is_empty() {
                let left = common(&wanted, &rows_left(rows, known, is_paged));
                skipped.rows += count(&wanted) - count(&left);
                skipped.row_groups += usize::from(left.is_empty() && !wanted.is_empty());
                wanted = left;
            }
            Some(RowGroup {
                rows,
                wanted,
                is_paged,
            })
        });
        let groups = groups.collect::<Option<_>>()?;
        Some(MorselFile {
            groups,
            answer,
            skipped,
            ends_with_groups: false,
            piece_rows: piece_rows(&footer, columns, source.filter().is_some()),
            row_bytes: row_bytes(&footer, columns),
            is_settled,
            rare_part,
            file,
        })
    }
}

/// Names of the columns that a scan reads.
fn columns_read(source: &ParquetSource) -> HashSet<&str> {
    let schema = source.table_schema().file_schema();
    let projection = source.projection().into_iter();
    let projected = projection.flat_map(|of| of.as_ref().iter().map(|column| &column.expr));
    let filter = source.filter();
    let read = projected.chain(&filter).flat_map(collect_columns);
    read.filter_map(|column| schema.fields().get(column.index()))
        .map(|field| field.name().as_str())
        .collect()
}

/// Whether the file says more about the values of a predicate's columns than what is known of it here. That may be Bloom
/// filters, or bounds of pages that were not read with the footer.
fn says_more(footer: &ParquetMetaData, predicate: &Arc<dyn PhysicalExpr>) -> bool {
    let columns = collect_columns(predicate);
    let names: HashSet<&str> = columns.iter().map(|column| column.name()).collect();
    let is_paged = footer.offset_index().is_some();
    chunks_of(footer, |name| names.contains(name)).any(|chunk| {
        chunk.bloom_filter_offset().is_some() || !is_paged && chunk.offset_index_offset().is_some()
    })
}

/// How many rows of a file cost as much as a piece of it does beside its rows: it reads the dictionaries of its row group once
/// more.
fn piece_rows(footer: &ParquetMetaData, columns: &HashSet<&str>, is_pruned: bool) -> i64 {
    let (mut bytes, mut dictionaries) = (0i64, 0i64);
    for chunk in chunks_of(footer, |name| columns.contains(name)) {
        bytes = bytes.saturating_add(reading_bytes(chunk));
        dictionaries = dictionaries.saturating_add(dictionary_bytes(chunk).unwrap_or(0).max(0));
    }
    let row_bytes = bytes / footer.file_metadata().num_rows().max(1);
    let pruning_bytes = if is_pruned { PRUNING_BYTES } else { 0 };
    let dictionaries = dictionaries / footer.num_row_groups().max(1) as i64;
    let piece_bytes = dictionaries.saturating_add(OPENING_BYTES + pruning_bytes);
    piece_bytes / row_bytes.max(1)
}

/// Bytes of the file that a row takes.
fn row_bytes(footer: &ParquetMetaData, columns: &HashSet<&str>) -> i64 {
    let chunks = chunks_of(footer, |name| columns.contains(name));
    let bytes = chunks.fold(0i64, |bytes, chunk| {
        bytes.saturating_add(chunk.compressed_size())
    });
    bytes / footer.file_metadata().num_rows().max(1)
}

/// Each file once and whole; none if a piece of it is missing or its reading is already laid down.
fn whole_files(config: &FileScanConfig) -> Option<Vec<PartitionedFile>> {
    let mut files: Vec<(PartitionedFile, u64)> = Vec::new();
    for piece in config.file_groups.iter().flat_map(FileGroup::iter) {
        if piece.extension::<ParquetAccessPlan>().is_some()
            || piece.extension::<ParquetRowSelection>().is_some()
        {
            return None;
        }
        let whole = 0..piece.object_meta.size as i64;
        let range = piece.range.as_ref();
        let range = range.map_or(whole, |range| range.start..range.end);
        let bytes = (range.end - range.start) as u64;
        let location = &piece.object_meta.location;
        // Pieces of one file follow each other.
        match files.last_mut() {
            Some((file, known)) if file.object_meta.location == *location => *known += bytes,
            _ => {
                let mut file = piece.clone();
                file.range = None;
                files.push((file, bytes));
            }
        }
    }
    let is_whole = |(file, bytes): &(PartitionedFile, u64)| *bytes == file.object_meta.size;
    files
        .iter()
        .all(is_whole)
        .then(|| files.into_iter().map(|(file, _)| file).collect())
}

/// What is left of a file by the bounds of its row groups and pages: DataFusion's judgement with DataFusion's options, made
/// before the file is opened. None where the predicate cannot be put in the file's terms.
fn pruned(
    footer: &ParquetMetaData,
    file: &PartitionedFile,
    source: &ParquetSource,
    config: &FileScanConfig,
) -> Option<ParquetAccessPlan> {
    let predicate = of_place(source.filter()?, file, source)?;
    let options = &source.table_parquet_options().global;
    let known = footer.file_metadata();
    let leaves = known.schema_descr();
    let table = source.table_schema().file_schema();
    let schema = parquet_to_arrow_schema(leaves, known.key_value_metadata()).ok()?;
    let schema: SchemaRef =
        Arc::new(apply_file_schema_type_coercions(table, &schema).unwrap_or(schema));
    let predicate = in_terms_of(&schema, predicate, table, config)?;
    let metrics = ParquetFileMetrics::new(0, "", &ExecutionPlanMetricsSet::new());
    let all = ParquetAccessPlan::new_all(footer.num_row_groups());
    let mut groups = RowGroupAccessPlanFilter::new(all);
    let pruning = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(&schema))
        .with_max_in_list_size(source.max_in_list_size());
    if options.pruning
        && let Some(pruning) = pruning.build(Arc::clone(&predicate))
    {
        groups.prune_by_statistics(&schema, leaves, footer.row_groups(), &pruning, &metrics);
    }
    let plan = groups.build();
    if !options.enable_page_index {
        return Some(plan);
    }
    let pages = PagePruningAccessPlanFilter::new(&predicate, Arc::clone(&schema));
    Some(pages.prune_plan_with_page_index(plan, &schema, leaves, footer, &metrics))
}

/// The predicate with the values of the partition columns that the file's place says: columns of the same name in the
/// file are others.
fn of_place(
    predicate: Arc<dyn PhysicalExpr>,
    file: &PartitionedFile,
    source: &ParquetSource,
) -> Option<Arc<dyn PhysicalExpr>> {
    let columns = source.table_schema().table_partition_cols().iter();
    let names = columns.map(|column| column.name().as_str());
    let values: HashMap<&str, &ScalarValue> = names.zip(&file.partition_values).collect();
    replace_columns_with_literals(predicate, &values).ok()
}

fn in_terms_of(
    file: &SchemaRef,
    predicate: Arc<dyn PhysicalExpr>,
    table: &Arc<Schema>,
    config: &FileScanConfig,
) -> Option<Arc<dyn PhysicalExpr>> {
    let adapters: &dyn PhysicalExprAdapterFactory = match &config.expr_adapter_factory {
        Some(own) => own.as_ref(),
        None => &DefaultPhysicalExprAdapterFactory,
    };
    let adapter = adapters.create(Arc::clone(table), Arc::clone(file)).ok()?;
    let predicate = adapter.rewrite(predicate).ok()?;
    PhysicalExprSimplifier::new(file).simplify(predicate).ok()
}

/// A file and what is wanted of it.
pub(super) struct MorselFile {
    pub file: PartitionedFile,
    pub groups: Vec<RowGroup>,
    /// What the condition cache knows of it.
    pub answer: Option<Answer>,
    /// What is not wanted because of it.
    pub skipped: Skipped,
    /// True if a piece that is worth it ends where its row group does. Of the rows of a piece that a scan itself leaves out
    /// nobody knows which they are.
    ends_with_groups: bool,
    /// How many of its rows cost as much as a piece does beside them.
    piece_rows: i64,
    /// Bytes of the file that a row takes.
    row_bytes: i64,
    /// True if whoever opens a piece of it has no rows left to rule out.
    is_settled: bool,
    /// The part of the predicate that is to be read before all other columns.
    rare_part: Option<usize>,
}

impl MorselFile {
    pub fn location(&self) -> &Path {
        &self.file.object_meta.location
    }

    /// Rows that are worth a piece of their own, if one has to be worth so many times its cost.
    fn worth(&self, times: i64) -> usize {
        self.piece_rows.saturating_mul(times).max(1) as usize
    }

    /// Rows whose bytes are one worker's share of those that all hold. A scan that reads one column first mostly leaves
    /// those of the others in the file.
    fn rows_at_once(&self, workers: usize) -> usize {
        match self.rare_part {
            None => (OPEN_BYTES / self.row_bytes.max(1)) as usize / workers,
            Some(_) => usize::MAX,
        }
    }
}

/// One row group of a file.
pub(super) struct RowGroup {
    pub rows: usize,
    /// What is to be read of it, in order.
    pub wanted: Vec<Range<usize>>,
    /// True if rows in its middle are found without reading those before.
    is_paged: bool,
}

impl RowGroup {
    pub fn wanted_rows(&self) -> usize {
        count(&self.wanted)
    }
}

/// All rows of a row group.
pub(super) fn whole(rows: usize) -> Vec<Range<usize>> {
    std::iter::once(0..rows).collect()
}

/// The rows that a selection takes.
pub(super) fn ranges(selection: &RowSelection) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut taken = Vec::new();
    for part in selection.iter() {
        if !part.skip {
            taken.push(at..at + part.row_count);
        }
        at += part.row_count;
    }
    taken
}

/// The rows that are in both.
fn common(some: &[Range<usize>], others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut both = Vec::new();
    let (mut at, mut other) = (0, 0);
    while let (Some(range), Some(with)) = (some.get(at), others.get(other)) {
        let shared = range.start.max(with.start)..range.end.min(with.end);
        if shared.start < shared.end {
            both.push(shared);
        }
        match range.end < with.end {
            true => at += 1,
            false => other += 1,
        }
    }
    both
}

fn count(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

/// The first `rows` rows of these ranges, and the others.
fn split(ranges: &[Range<usize>], rows: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut head, mut tail, mut room) = (Vec::new(), Vec::new(), rows);
    for range in ranges {
        let cut = range.start + range.len().min(room);
        room -= cut - range.start;
        if cut > range.start {
            head.push(range.start..cut);
        }
        if cut < range.end {
            tail.push(cut..range.end);
        }
    }
    (head, tail)
}

/// A piece of a file in the making.
struct Morsel {
    groups: Vec<RowGroupAccess>,
    rows: usize,
}

impl Morsel {
    fn new(groups: usize) -> Morsel {
        Morsel {
            groups: vec![RowGroupAccess::Skip; groups],
            rows: 0,
        }
    }

    /// Takes rows of the row group `at` in.
    fn add(&mut self, at: usize, group: &RowGroup, wanted: Vec<Range<usize>>) {
        self.rows += count(&wanted);
        self.groups[at] = match count(&wanted) == group.rows {
            true => RowGroupAccess::Scan,
            false => {
                let ranges = wanted.into_iter();
                RowGroupAccess::Selection(RowSelection::from_consecutive_ranges(ranges, group.rows))
            }
        };
    }

    /// Ends it: the next one begins.
    fn end(&mut self, file: &PartitionedFile, into: &mut Vec<PartitionedFile>) {
        if self.rows > 0 {
            let groups = self.groups.len();
            let morsel = std::mem::replace(self, Morsel::new(groups));
            let piece = file.clone().with_extension(MorselRows(morsel.rows as u64));
            into.push(piece.with_extension(ParquetAccessPlan::new(morsel.groups)));
        }
    }
}

/// The files in pieces that shrink with the rows that are left; a row group is cut where a piece is to be smaller.
fn morsels(files: &[MorselFile], workers: usize, asked_max: usize) -> Vec<PartitionedFile> {
    let groups = files.iter().flat_map(|known| &known.groups);
    let mut left: usize = groups.map(|group| count(&group.wanted)).sum();
    let even = left / workers;
    let mut morsels = Vec::new();
    for known in files {
        let (file, groups) = (&known.file, &known.groups);
        let rows_min = match workers {
            // Nobody waits for the last piece.
            1 => left,
            // Openings take a share of the work that grows as pieces shrink, and the others wait for the last piece: the
            // sum is least at the geometric mean. 16 workers have 23 pieces of 10 M users by it, not 12.
            _ => {
                let balanced = even.saturating_mul(known.worth(1)).isqrt();
                known
                    .worth(WORTH)
                    .min(balanced.max(known.worth(WORTH_IDLE)))
            }
        };
        let rows_max = known.rows_at_once(workers).max(rows_min);
        let mut morsel = Morsel::new(groups.len());
        for (at, group) in groups.iter().enumerate() {
            let mut wanted = group.wanted.clone();
            let most = match group.wanted_rows().saturating_sub(rows_max) > rows_max / 2 {
                true => rows_max,
                false => usize::MAX,
            };
            while !wanted.is_empty() {
                let even = ((left + morsel.rows) / (SHARE * workers)).min(asked_max);
                let target = even.max(rows_min).min(most).max(1);
                let (rows, room) = (count(&wanted), target.saturating_sub(morsel.rows));
                let is_taken = rows <= room + room / 2 || morsel.rows == 0 && !group.is_paged;
                let part = match (is_taken, morsel.rows == 0) {
                    (true, _) => std::mem::take(&mut wanted),
                    (false, true) => {
                        // In equal parts: what is left of the row group is no small piece before large ones.
                        let parts = (rows + room / 2) / room;
                        let (part, others) = split(&wanted, rows.div_ceil(parts));
                        wanted = others;
                        part
                    }
                    (false, false) => {
                        morsel.end(file, &mut morsels);
                        continue;
                    }
                };
                left -= count(&part);
                morsel.add(at, group, part);
                let is_group_over = known.ends_with_groups && wanted.is_empty();
                if morsel.rows >= target || is_group_over && morsel.rows >= known.worth(WORTH_WHOLE)
                {
                    morsel.end(file, &mut morsels);
                }
            }
        }
        morsel.end(file, &mut morsels);
    }
    morsels
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 100_000;
    const ALL: usize = usize::MAX;

    fn file(groups: usize, is_paged: bool, rows_min: i64) -> MorselFile {
        let group = || RowGroup {
            rows: ROWS,
            wanted: whole(ROWS),
            is_paged,
        };
        MorselFile {
            file: PartitionedFile::new("a.parquet", 1),
            groups: std::iter::repeat_with(group).take(groups).collect(),
            piece_rows: rows_min / WORTH,
            row_bytes: 1,
            is_settled: true,
            rare_part: None,
            answer: None,
            skipped: Skipped::default(),
            ends_with_groups: false,
        }
    }

    fn rows(morsels: &[PartitionedFile]) -> Vec<u64> {
        let rows = |file: &PartitionedFile| file.extension::<MorselRows>().unwrap().0;
        morsels.iter().map(rows).collect()
    }

    /// The rows of all morsels by row group, in order.
    fn taken(morsels: &[PartitionedFile], groups: usize) -> Vec<Vec<Range<usize>>> {
        let mut taken = vec![Vec::new(); groups];
        for file in morsels {
            let plan = file.extension::<ParquetAccessPlan>().unwrap();
            for (taken, access) in taken.iter_mut().zip(plan.inner()) {
                match access {
                    RowGroupAccess::Skip => {}
                    RowGroupAccess::Scan => taken.push(0..ROWS),
                    RowGroupAccess::Selection(selection) => taken.extend(ranges(selection)),
                }
            }
        }
        taken
    }

    #[test]
    fn morsels_shrink_and_take_every_row_once() {
        let cut = morsels(&[file(23, true, 10_000)], 2, ALL);
        let sizes = rows(&cut);
        assert!(
            sizes.is_sorted_by(|a, b| *a as f64 * 1.6 > *b as f64),
            "{sizes:?}"
        );
        assert!(
            sizes[0] > 4 * ROWS as u64 && *sizes.last().unwrap() < ROWS as u64 / 4,
            "{sizes:?}"
        );
        for taken in taken(&cut, 23) {
            assert_eq!(taken.first().unwrap().start, 0);
            assert_eq!(taken.last().unwrap().end, ROWS);
            assert!(
                taken.windows(2).all(|pair| pair[0].end == pair[1].start),
                "{taken:?}"
            );
        }
    }

    #[test]
    fn one_worker_has_one_piece_and_many_have_what_pays() {
        let one = morsels(&[file(3, true, 10_000)], 1, ALL);
        assert_eq!(rows(&one), [3 * ROWS as u64]);
        let even = morsels(&[file(3, true, 80_000)], 6, ALL);
        assert_eq!(rows(&even), [25_000; 12]);
        let few = morsels(&[file(3, true, 80_000)], 64, ALL);
        assert!(
            rows(&few).iter().all(|rows| *rows >= 20_000),
            "{:?}",
            rows(&few)
        );
        assert_eq!(rows(&few).iter().sum::<u64>(), 3 * ROWS as u64);
    }

    /// Row groups as large as the even share of a worker, and 23 for 16 of them: they would have one or two each.
    #[test]
    fn no_worker_has_much_more_than_its_share() {
        for (workers, groups, rows_min) in [(16, 23, 200_000), (16, 10, 100_000), (7, 9, 50_000)] {
            let cut = rows(&morsels(&[file(groups, true, rows_min)], workers, ALL));
            let mut taken = vec![0u64; workers];
            for piece in &cut {
                // Whoever is through first takes the next one.
                *taken.iter_mut().min().expect("a worker") += piece;
            }
            let (most, all) = (
                taken.iter().max().expect("a worker"),
                cut.iter().sum::<u64>(),
            );
            assert_eq!(all, (groups * ROWS) as u64);
            assert!(most * workers as u64 * 4 < all * 5, "{workers}: {cut:?}");
        }
    }

    /// Of each row group a worker holds all bytes until it is through.
    #[test]
    fn many_workers_have_small_parts_of_row_groups_with_long_values() {
        let mut long = file(23, true, 8_000);
        long.row_bytes = 200;
        let files = [long];
        let largest = |workers| rows(&morsels(&files, workers, ALL)).into_iter().max();
        assert_eq!(largest(2), Some(6 * ROWS as u64));
        assert_eq!(largest(16), Some(20_000));
    }

    #[test]
    fn pieces_that_keep_the_order_are_no_larger_than_asked_where_they_pay() {
        let cut = rows(&morsels(&[file(3, true, 10_000)], 2, 25_000));
        assert!(cut.iter().all(|rows| *rows <= 25_000), "{cut:?}");
        assert_eq!(cut.iter().sum::<u64>(), 3 * ROWS as u64);
        let costly = morsels(&[file(3, true, 80_000)], 2, 25_000);
        assert!(
            rows(&costly).iter().all(|rows| *rows >= 25_000),
            "{:?}",
            rows(&costly)
        );
    }

    #[test]
    fn a_row_group_whose_pages_are_not_known_stays_whole() {
        let cut = morsels(&[file(5, false, 10_000)], 4, ALL);
        assert_eq!(rows(&cut), [ROWS as u64; 5]);
        assert_eq!(taken(&cut, 5), vec![vec![0..ROWS]; 5]);
    }

    #[test]
    fn rows_that_pruning_left_are_shared_out() {
        let mut few = file(3, true, 1_000);
        few.groups[0].wanted = Vec::new();
        few.groups[1].wanted = vec![10..20_010, 50_000..70_000];
        few.groups[2].wanted = Vec::new();
        let cut = morsels(&[few], 2, ALL);
        assert!(
            rows(&cut).len() > 2 && rows(&cut)[0] <= 15_000,
            "{:?}",
            rows(&cut)
        );
        assert_eq!(rows(&cut).iter().sum::<u64>(), 40_000);
        assert_eq!(count(&taken(&cut, 3)[1]), 40_000);
    }
}
