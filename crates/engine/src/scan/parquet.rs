//! Parquet: DataFusion's format with footers that it may believe.
//!
//! In: Parquet files. Out: their common schema and statistics; scans.
//! Invariant: a column is text only if its file says so or does not say what it is, and text is valid UTF-8 or an error.
//! No answer and no skipped row comes from a bound that may be wrong.
//! Not here: what a footer may claim (footer.rs), types that several files have in common (widen.rs), decoding.

pub mod footer;
mod embedded_schema;
pub(in crate::scan) mod time_units;
mod int96;
mod intervals;
mod twelve_bytes;
mod page_headers;
mod levels;
mod delta_counts;
mod decoding;
pub(crate) mod local;
pub(crate) mod condition_cache;
pub(crate) mod recording;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, GetExt, Result, ScalarValue, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::file_format::parquet::{ParquetFormat, ParquetFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::{
    CachedParquetMetaData, DFParquetMetadata,
};
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, transform_schema_to_view,
};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource, ParquetFileReaderFactory,
    ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataReader};
use datafusion::parquet::file::statistics::Statistics as Bounds;
use datafusion::parquet::schema::types::{ColumnDescriptor, Type};
use datafusion::physical_expr::{LexOrdering, LexRequirement};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::names::with_distinct_names;
use super::plain_types::plain_schema;
use super::steady::Pinned;
use super::widen::common_schema;
use crate::error::Error;
pub(crate) use crate::runtime::accounted::Bytes;
use crate::runtime::warnings::Warnings;
use crate::scan::parquet::decoding::{Decoding, long_values};
use crate::scan::parquet::embedded_schema::unknown_type;
use crate::scan::parquet::footer::{
    TextColumns, has_bounds, has_unsound_bounds, is_string, misplaced, sound, strings_of,
    without_page_indexes,
};
use crate::scan::parquet::int96::int96_leaves;
use crate::scan::parquet::intervals::with_intervals;
use crate::scan::parquet::time_units::schema_in_file_units;
use crate::scan::parquet::twelve_bytes::{
    TwelveByteAdapters, has_intervals, may_have_int96, mistaken_bytes,
};
use crate::scan::wrapped::as_wrapped;

/// The length of the footer and the magic behind it.
const FOOTER_END_BYTES: u64 = 8;

/// What columns of bytes are that their file does not annotate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainBytes {
    /// Text, unless the file keeps the Arrow schema it was written from, in which text would be called text.
    TextUnlessKnown,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
}

impl PlainBytes {
    /// What DataFusion's option says.
    fn of(options: &TableParquetOptions) -> PlainBytes {
        match options.global.binary_as_string {
            true => PlainBytes::TextUnlessKnown,
            false => PlainBytes::Bytes,
        }
    }
}

/// DataFusion's format, with corrected footers.
#[derive(Debug)]
pub(crate) struct Parquet {
    datafusion: ParquetFormat,
    options: TableParquetOptions,
    bytes: PlainBytes,
}

impl Parquet {
    /// `bytes` = `None`: as the options say.
    pub(crate) fn new(options: TableParquetOptions, bytes: Option<PlainBytes>) -> Parquet {
        let mut plain = options.clone();
        // These two change types; they come after the files' schemas have been put together.
        plain.global.binary_as_string = false;
        plain.global.schema_force_view_types = false;
        Parquet {
            datafusion: ParquetFormat::default().with_options(plain),
            bytes: bytes.unwrap_or_else(|| PlainBytes::of(&options)),
            options,
        }
    }

    async fn footer(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Arc<ParquetMetaData>> {
        let store = Pinned::exact(Arc::clone(store), object.clone());
        let footer = DFParquetMetadata::new(&store, object)
            .with_metadata_size_hint(self.datafusion.metadata_size_hint())
            .with_file_metadata_cache(Some(footers(state)))
            .fetch_metadata()
            .await;
        let own = match footer {
            Ok(footer) => {
                check_places(&footer, object)?;
                match with_distinct_names(&footer)? {
                    None => return Ok(footer),
                    Some(renamed) => Arc::new(renamed),
                }
            }
            Err(error) => match without_its_pages(&store, object).await {
                Some(footer) => {
                    check_places(&footer, object)?;
                    warn_of_pages(state, object);
                    Arc::new(footer)
                }
                None => return Err(error),
            },
        };
        let kept = Arc::new(CachedParquetMetaData::new(Arc::clone(&own)));
        let entry = CachedFileMetadataEntry::new(object.clone(), kept);
        footers(state).put(&object.location, entry);
        Ok(own)
    }

    async fn schema_of(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Schema> {
        let footer = self.footer(state, store, object).await?;
        if let Some(message) =
            long_values(&footer, &state.runtime_env().memory_pool, batch_rows(state))
        {
            return Err(DataFusionError::from(Error::bad_file(
                format!("/{}", object.location),
                message,
            )));
        }
        let objects = std::slice::from_ref(object);
        let schema = self.datafusion.infer_schema(state, store, objects).await?;
        // Without room in its cache DataFusion reads the footer again, with names that are there twice.
        if schema.fields().len() != footer.file_metadata().schema().get_fields().len() {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "the footer of '/{}' has names that are there twice, and no room in the cache: raise datafusion.runtime.metadata_cache_limit",
                object.location
            )));
        }
        let schema = with_intervals(&plain_schema(&schema), footer.file_metadata());
        Ok(with_strings(&schema, footer.file_metadata(), self.bytes))
    }
}

/// The footer of a file whose page indexes are damaged: they only save work.
async fn without_its_pages(store: &Pinned, object: &ObjectMeta) -> Option<ParquetMetaData> {
    let end = object.size.checked_sub(FOOTER_END_BYTES)?;
    let tail = store.get_range(&object.location, end..object.size).await;
    let bytes = u32::from_le_bytes(tail.ok()?.get(..4)?.try_into().ok()?);
    let start = end.checked_sub(u64::from(bytes))?;
    let footer = store.get_range(&object.location, start..end).await.ok()?;
    let footer = ParquetMetaDataReader::decode_metadata(&footer).ok()?;
    with_distinct_names(&footer)
        .ok()?
        .map_or_else(|| without_page_indexes(footer), without_page_indexes)
        .ok()
        .flatten()
}

/// An error if the file is not where its footer says, or its schema has types that there are not.
fn check_places(footer: &ParquetMetaData, object: &ObjectMeta) -> Result<()> {
    let wrong = misplaced(footer, object.size);
    let wrong = wrong.or_else(|| unknown_type(footer.file_metadata()));
    let wrong = wrong.map(|message| Error::bad_file(format!("/{}", object.location), message));
    wrong.map_or(Ok(()), |error| Err(error.into()))
}

/// Such a file is read as a whole where a part of it might do.
fn warn_of_pages(state: &dyn Session, object: &ObjectMeta) {
    if let Some(warnings) = state.config().get_extension::<Warnings>() {
        warnings.add(format!(
            "the page index of '/{}' is damaged; it only saves work, so the file is read without it, and writing the file anew repairs it",
            object.location
        ));
    }
}

fn footers(state: &dyn Session) -> Arc<FileMetadataCache> {
    state.runtime_env().cache_manager.get_file_metadata_cache()
}

/// A file's schema with the columns as text that are taken for it.
fn with_strings(schema: &Schema, file: &FileMetaData, bytes: PlainBytes) -> Schema {
    let knows_types = || {
        let entries = file.key_value_metadata();
        entries.is_some_and(|all| all.iter().any(|entry| entry.key == ARROW_SCHEMA_META_KEY))
    };
    let is_text = match bytes {
        PlainBytes::Bytes => false,
        PlainBytes::Text => true,
        PlainBytes::TextUnlessKnown => !knows_types(),
    };
    if !is_text {
        return schema.clone();
    }
    let columns = file.schema().get_fields();
    let fields = schema.fields().iter().zip(columns).map(|(field, column)| {
        let kind = match (is_plain(column), field.data_type()) {
            (true, DataType::Binary) => DataType::Utf8,
            (true, DataType::LargeBinary) => DataType::LargeUtf8,
            (true, DataType::BinaryView) => DataType::Utf8View,
            (_, other) => other.clone(),
        };
        field.as_ref().clone().with_data_type(kind)
    });
    Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone())
}

/// Whether a column is bytes of which nothing more is said; ENUM is text, too, to readers that know no enums.
fn is_plain(column: &Type) -> bool {
    let info = column.get_basic_info();
    column.is_primitive()
        && column.get_physical_type() == Physical::BYTE_ARRAY
        && matches!(
            (info.logical_type_ref(), info.converted_type()),
            (None, ConvertedType::NONE | ConvertedType::ENUM) | (Some(LogicalType::Enum), _)
        )
}

/// Drops the bounds that may be wrong: those of floats, of row groups without any, and those that do not fit the table's
/// type, which DataFusion makes NULL. So it does with those of columns that the table reads as another type: DataFusion
/// takes a timestamp without a zone for one with the table's.
fn keep_sound(statistics: &mut Statistics, schema: &Schema, footer: &ParquetMetaData) {
    let rows = statistics.num_rows;
    let columns = statistics.column_statistics.iter_mut();
    for (field, known) in schema.fields().iter().zip(columns) {
        let is_all_null = rows.get_value().is_some() && known.null_count == rows;
        let is_kept = are_bounds_sound(field, footer)
            && [&known.min_value, &known.max_value].iter().all(|bound| {
                let is_null = bound.get_value().is_some_and(ScalarValue::is_null);
                is_of_type(bound, field.data_type()) && (is_all_null || !is_null)
            });
        if !is_kept {
            known.min_value = Precision::Absent;
            known.max_value = Precision::Absent;
        }
    }
}

/// Whether all row groups of a column have bounds that hold for all their rows.
fn are_bounds_sound(field: &Field, footer: &ParquetMetaData) -> bool {
    let leaves = footer.file_metadata().schema_descr().columns();
    let is_column = |path: &[String]| path.len() == 1 && path[0] == *field.name();
    let Some(leaf) = leaves
        .iter()
        .position(|column| is_column(column.path().parts()))
    else {
        return false;
    };
    if matches!(field.data_type(), DataType::Timestamp(_, Some(_))) && !has_zone(&leaves[leaf]) {
        return false;
    }
    // DataFusion leaves out a bound that is no text, as if the row group were empty.
    let is_readable = |known: &Bounds| {
        let is_text =
            |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| str::from_utf8(bytes).is_ok());
        !is_string(field.data_type())
            || is_text(known.min_bytes_opt()) && is_text(known.max_bytes_opt())
    };
    footer.row_groups().iter().all(|group| {
        let known = group.column(leaf).statistics();
        let is_empty =
            known.and_then(|known| known.null_count_opt()) == Some(group.num_rows() as u64);
        let is_bounded = known.is_some_and(|known| has_bounds(known) && is_readable(known));
        is_empty || is_bounded && !has_unsound_bounds(&leaves[leaf], known)
    })
}

/// Whether the timestamps of a timestamp column are those of UTC.
fn has_zone(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.is_adjusted_to_u_t_c,
        _ => matches!(
            column.converted_type(),
            ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS
        ),
    }
}

fn is_of_type(bound: &Precision<ScalarValue>, kind: &DataType) -> bool {
    match bound.get_value().map(ScalarValue::data_type) {
        None => true,
        Some(found) => found == *kind || is_string(&found) && is_string(kind),
    }
}

#[async_trait]
impl FileFormat for Parquet {
    as_wrapped!(datafusion: get_ext, get_ext_with_compression, compression_type);

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let at_once = state
            .config_options()
            .execution
            .meta_fetch_concurrency
            .get();
        let mut schemas: Vec<(&Path, Schema)> = futures::stream::iter(objects)
            .map(|object| async move {
                let schema = self.schema_of(state, store, object).await?;
                Ok::<_, DataFusionError>((&object.location, schema))
            })
            .boxed()
            .buffered(at_once)
            .try_collect()
            .await?;
        schemas.sort_by_key(|(location, _)| *location);
        let schema = common_schema(&schemas)?;
        Ok(Arc::new(
            match self.options.global.schema_force_view_types {
                true => transform_schema_to_view(&schema),
                false => schema,
            },
        ))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        let footer = self.footer(state, store, object).await?;
        let mut statistics = DFParquetMetadata::statistics_from_parquet_metadata(&footer, &schema)?;
        keep_sound(&mut statistics, &schema, &footer);
        Ok(statistics)
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        self.datafusion
            .infer_ordering(state, store, schema, object)
            .await
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let statistics = self
            .infer_stats(state, store, Arc::clone(&schema), object)
            .await?;
        let ordering = self.infer_ordering(state, store, schema, object).await?;
        Ok(FileMeta::new(statistics).with_ordering(ordering))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = conf.file_source().downcast_ref::<ParquetSource>().cloned();
        let source = source.ok_or_else(|| {
            DataFusionError::Internal("a Parquet scan with another format's source".to_string())
        })?;
        let mut source = source.with_table_parquet_options(self.options.clone());
        if let Some(bytes) = self.datafusion.metadata_size_hint() {
            source = source.with_metadata_size_hint(bytes);
        }
        let conf = readable(conf, source, state.runtime_env(), batch_rows(state))?;
        Ok(DataSourceExec::from_data_source(conf))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        mut conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        conf.output_schema = schema_in_file_units(conf.output_schema());
        self.datafusion
            .create_writer_physical_plan(input, state, conf, order)
            .await
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.datafusion.file_source(schema)
    }
}

fn batch_rows(state: &dyn Session) -> usize {
    state.config().batch_size()
}

/// The scan as files are read here, in batches of so many rows: by readers that see corrected footers, with what they cannot
/// read as it is.
pub(in crate::scan) fn readable(
    conf: FileScanConfig,
    source: ParquetSource,
    runtime: &RuntimeEnv,
    batch_rows: usize,
) -> Result<FileScanConfig> {
    let footers = runtime.cache_manager.get_file_metadata_cache();
    let table = Arc::clone(source.table_schema().file_schema());
    let has_twelve_bytes = has_intervals(&table) || reads_int96(&conf, &*footers);
    let readers = SoundReaders {
        store: runtime.object_store(conf.object_store_url.clone())?,
        footers,
        strings: Arc::new(strings_of(&table)),
        of_bytes: has_twelve_bytes.then_some(table),
        pool: Arc::clone(&runtime.memory_pool),
        batch_rows,
    };
    let source = source.with_parquet_file_reader_factory(Arc::new(readers));
    let conf = FileScanConfigBuilder::from(conf)
        .with_expr_adapter(has_twelve_bytes.then(|| Arc::new(TwelveByteAdapters) as _))
        .with_source(Arc::new(source));
    Ok(conf.build())
}

/// Whether some file of a scan has timestamps in 96 bits, or nobody knows.
fn reads_int96(conf: &FileScanConfig, footers: &FileMetadataCache) -> bool {
    let has = |file: &PartitionedFile| {
        let object = &file.object_meta;
        let footer = known_footer(footers, &object.location, object);
        footer.is_none_or(|footer| int96_leaves(footer.file_metadata()).next().is_some())
    };
    let mut files = conf.file_groups.iter().flat_map(|group| group.iter());
    may_have_int96(conf.file_source().table_schema().file_schema()) && files.any(has)
}

/// Readers that see corrected footers.
struct SoundReaders {
    store: Arc<dyn ObjectStore>,
    footers: Arc<FileMetadataCache>,
    strings: Arc<TextColumns>,
    /// The table's columns, if some of them may be made of 12 bytes.
    of_bytes: Option<SchemaRef>,
    pool: Arc<dyn MemoryPool>,
    batch_rows: usize,
}

impl fmt::Debug for SoundReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SoundReaders")
            .field("strings", &self.strings)
            .finish_non_exhaustive()
    }
}

impl ParquetFileReaderFactory for SoundReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let object = file.object_meta.clone();
        let pinned = Pinned::exact(Arc::clone(&self.store), object.clone());
        let datafusion =
            CachedParquetFileReaderFactory::new(Arc::new(pinned), Arc::clone(&self.footers));
        let datafusion =
            datafusion.create_reader(partition_index, file, metadata_size_hint, metrics)?;
        Ok(Box::new(SoundReader {
            datafusion,
            decoding: Decoding::new(Arc::clone(&self.pool), &object.location, self.batch_rows),
            object,
            footers: Arc::clone(&self.footers),
            strings: Arc::clone(&self.strings),
            of_bytes: self.of_bytes.clone(),
        }))
    }
}

struct SoundReader {
    datafusion: Box<dyn AsyncFileReader + Send>,
    object: ObjectMeta,
    footers: Arc<FileMetadataCache>,
    strings: Arc<TextColumns>,
    of_bytes: Option<SchemaRef>,
    decoding: Decoding,
}

impl AsyncFileReader for SoundReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let start = range.start;
            let bytes = self.datafusion.get_bytes(range).await?;
            self.decoding.admit(start, bytes)
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            let starts: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            let all = self.datafusion.get_byte_ranges(ranges).await?;
            let all = starts.into_iter().zip(all);
            all.map(|(start, bytes)| self.decoding.admit(start, bytes))
                .collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            if let Some(table) = &self.of_bytes {
                let own = self.datafusion.get_metadata(options).await?;
                if let Some(message) = mistaken_bytes(own.file_metadata(), table) {
                    return Err(ParquetError::General(message));
                }
            }
            let key = sound_key(&self.object, &self.strings);
            let footer = match known_footer(&*self.footers, &key, &self.object) {
                Some(footer) => footer,
                None => {
                    let footer = self.datafusion.get_metadata(options).await?;
                    corrected(&footer, &*self.footers, key, &self.object, &self.strings)?
                }
            };
            self.decoding.know(&footer);
            Ok(footer)
        }
        .boxed()
    }
}

/// Under which name a corrected footer is kept beside the file's own: it depends on the columns taken for text.
fn sound_key(object: &ObjectMeta, strings: &TextColumns) -> Path {
    let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
    Path::from(format!("{}\0{}", object.location, strings.join("\0")))
}

/// The footer as DataFusion may believe it, kept under `key` if that is not the file's own.
fn corrected(
    footer: &Arc<ParquetMetaData>,
    footers: &FileMetadataCache,
    key: Path,
    object: &ObjectMeta,
    strings: &TextColumns,
) -> ParquetResult<Arc<ParquetMetaData>> {
    let corrected = sound(footer, strings)?;
    if !Arc::ptr_eq(footer, &corrected) {
        let kept = Arc::new(CachedParquetMetaData::new(Arc::clone(&corrected)));
        footers.put(&key, CachedFileMetadataEntry::new(object.clone(), kept));
    }
    Ok(corrected)
}

/// The footer that readers of a file that planning has looked at will see.
pub(crate) fn known_sound_footer(
    footers: &FileMetadataCache,
    object: &ObjectMeta,
    strings: &TextColumns,
) -> Option<Arc<ParquetMetaData>> {
    let key = sound_key(object, strings);
    if let Some(footer) = known_footer(footers, &key, object) {
        return Some(footer);
    }
    let own = known_footer(footers, &object.location, object)?;
    corrected(&own, footers, key, object, strings).ok()
}

/// The footer that the cache keeps under `key` for the file as it is now.
pub(crate) fn known_footer(
    footers: &FileMetadataCache,
    key: &Path,
    object: &ObjectMeta,
) -> Option<Arc<ParquetMetaData>> {
    let known = footers.get(key)?;
    if !known.is_valid_for(object) {
        return None;
    }
    let footer = known.file_metadata.as_any().downcast_ref();
    Some(Arc::clone(CachedParquetMetaData::parquet_metadata(footer?)))
}

/// A source that reads files as `known` does, but all columns of `schema` and all rows.
pub(crate) fn reading_as(known: &ParquetSource, schema: TableSchema) -> ParquetSource {
    let options = known.table_parquet_options().clone();
    let hint = options.global.metadata_size_hint;
    let mut source = ParquetSource::new(schema).with_table_parquet_options(options);
    if let Some(bytes) = hint {
        source = source.with_metadata_size_hint(bytes);
    }
    if let Some(readers) = known.parquet_file_reader_factory() {
        source = source.with_parquet_file_reader_factory(Arc::clone(readers));
    }
    source
}

/// The same scan of one column without a predicate; `None` if it is no Parquet scan.
pub(crate) fn only_column(config: &FileScanConfig, index: usize) -> Option<FileScanConfig> {
    let known = recording::parquet_source(config)?;
    let source = reading_as(known, known.table_schema().clone());
    let adapters = config.expr_adapter_factory.clone();
    let config = FileScanConfigBuilder::new(config.object_store_url.clone(), Arc::new(source));
    let config = config.with_expr_adapter(adapters);
    let config = config.with_projection_indices(Some(vec![index])).ok()?;
    Some(config.build())
}

/// Makes this format for `CREATE EXTERNAL TABLE` and `COPY`.
#[derive(Debug, Default)]
pub(crate) struct ParquetFactory {
    datafusion: ParquetFormatFactory,
}

impl GetExt for ParquetFactory {
    fn get_ext(&self) -> String {
        self.datafusion.get_ext()
    }
}

impl FileFormatFactory for ParquetFactory {
    fn create(
        &self,
        state: &dyn Session,
        format_options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let datafusion = self.datafusion.create(state, format_options)?;
        let datafusion = datafusion.downcast_ref::<ParquetFormat>();
        let datafusion = datafusion.ok_or_else(|| {
            DataFusionError::Internal("DataFusion's Parquet format is not its own".to_string())
        })?;
        // What a table's own option says holds for columns that the file knows to be bytes as well.
        let said = format_options.get("format.binary_as_string");
        let bytes = said.map(|_| match datafusion.options().global.binary_as_string {
            true => PlainBytes::Text,
            false => PlainBytes::Bytes,
        });
        Ok(Arc::new(Parquet::new(datafusion.options().clone(), bytes)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(Parquet::new(TableParquetOptions::default(), None))
    }
}
