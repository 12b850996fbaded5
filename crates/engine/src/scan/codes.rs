//! Strings that a Parquet scan hands out as codes of the file's dictionaries.
//!
//! In: a finished physical plan, the footers that planning has read. Out: the same plan in which scans read string columns
//! that are only keys of a group-by with a direct table as dictionary arrays.
//! Invariant: a column is read so only where all its chunks in all files are dictionary pages and nothing else; SQL types do
//! not change, since nothing but the group-by sees the column.
//! Not here: what the codes are used for (crate `grouse-groupby`, `keys/intern`).
//!
//! As views the reader writes 16 bytes per row, and each is looked up again; as codes it writes 4 and each value is looked up
//! once per chunk. Decoding chunks that have fallen back to plain pages as codes is slower than as views: 1.8x, measured.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{ColumnStatistics, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::{Encoding, Type};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use object_store::path::Path;

use super::footer::{Texts, declare, dictionary_bytes, texts_of};
use super::parquet::{known_footer, reading_as};
use crate::exec::GroupByExec;

/// Dictionary pages of more bytes (compressed) hold more values than the direct table takes.
const DICTIONARY_BYTES_MAX: i64 = 32 << 10;

/// Reads group keys as codes.
pub(crate) struct CodesRule {
    footers: Arc<FileMetadataCache>,
}

impl CodesRule {
    /// A rule that knows the files whose footers are in this cache.
    pub fn new(footers: Arc<FileMetadataCache>) -> CodesRule {
        CodesRule { footers }
    }
}

impl std::fmt::Debug for CodesRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CodesRule")
    }
}

impl PhysicalOptimizerRule for CodesRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        GroupByExec::with_inputs(plan, |group_by| {
            let wanted = group_by.columns_only_keys();
            match wanted.is_empty() {
                true => Ok(None),
                false => self.coded(group_by.children()[0], wanted),
            }
        })
    }

    fn name(&self) -> &str {
        "CodesRule"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl CodesRule {
    /// `node` with codes in those of the `wanted` columns where the files have them; none if there are none.
    fn coded(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        wanted: Vec<usize>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let below = match (
            node.downcast_ref::<FilterExec>(),
            node.downcast_ref::<ProjectionExec>(),
        ) {
            (Some(filter), _) => through_filter(filter, &wanted),
            (_, Some(projection)) => passed_on(projection.expr(), &[], &wanted),
            _ => return self.coded_scan(node, &wanted),
        };
        let Some(input) = self.coded(node.children()[0], below)? else {
            return Ok(None);
        };
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            // With another input it would keep its schema.
            let fresh = ProjectionExec::try_new(projection.expr().to_vec(), input)?;
            return Ok(Some(Arc::new(fresh)));
        }
        replace_children_if_necessary(Arc::clone(node), vec![input]).map(Some)
    }

    fn coded_scan(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        wanted: &[usize],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let scan = node.downcast_ref::<DataSourceExec>();
        match scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()) {
            Some((config, source)) => self.scan(config, source, wanted),
            None => Ok(None),
        }
    }

    fn scan(
        &self,
        config: &FileScanConfig,
        source: &ParquetSource,
        wanted: &[usize],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let table = source.table_schema();
        let (Some(projection), true) = (source.projection(), table.virtual_columns().is_empty())
        else {
            return Ok(None);
        };
        let schema = table.file_schema();
        let mut columns = passed_on(projection.as_ref(), source.filter().as_slice(), wanted);
        columns.retain(|column| *column < schema.fields().len());
        let Some(files) = self.files_of(config).filter(|_| !columns.is_empty()) else {
            return Ok(None);
        };
        let kept = columns.into_iter().filter_map(|column| {
            let field = schema.field(column);
            let values = common_code_type(&files, field.name())?;
            // A table may declare a column to be something else than its files do.
            let is_kept = match values {
                DataType::Utf8 => field.data_type().is_string(),
                _ => field.data_type().is_binary(),
            };
            is_kept.then_some((column, values))
        });
        let picked: Vec<(usize, DataType)> = kept.collect();
        if picked.is_empty() {
            return Ok(None);
        }
        let picks: Vec<(&str, DataType)> = picked
            .iter()
            .map(|(column, of)| (schema.field(*column).name().as_str(), dictionary(of)))
            .collect();
        let coded = |file: &PartitionedFile| {
            let known = &files[&file.object_meta.location];
            file.clone()
                .with_arrow_schema(with_types(&known.schema, &picks))
        };
        let groups = config.file_groups.iter();
        let groups = groups
            .map(|group| FileGroup::new(group.files().iter().map(coded).collect()))
            .collect();
        let Some(source) = reading(source, with_types(schema, &picks))? else {
            return Ok(None);
        };
        let mut statistics = config.statistics();
        for (column, _) in &picked {
            // Those of strings do not describe codes.
            statistics.column_statistics[*column] = ColumnStatistics::new_unknown();
        }
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(source)
            .with_statistics(statistics)
            .with_file_groups(groups)
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }

    /// What is known of each file, which may stand in several groups; none if the footer of one is unknown.
    fn files_of(&self, config: &FileScanConfig) -> Option<HashMap<Path, KnownFile>> {
        let texts = texts_of(config.file_source().table_schema().file_schema());
        let mut known = HashMap::new();
        for file in config.file_groups.iter().flat_map(FileGroup::iter) {
            let location = &file.object_meta.location;
            if !known.contains_key(location) {
                known.insert(location.clone(), self.file(file, &texts)?);
            }
        }
        Some(known)
    }

    fn file(&self, file: &PartitionedFile, texts: &Texts) -> Option<KnownFile> {
        let object = &file.object_meta;
        if file.arrow_schema.is_some() {
            return None;
        }
        let footer = known_footer(&*self.footers, &object.location, object)?;
        let read = footer.file_metadata();
        let declared = declare(read, texts).ok()?;
        let read = declared.as_ref().unwrap_or(read);
        let schema = parquet_to_arrow_schema(read.schema_descr(), read.key_value_metadata());
        let schema = Arc::new(schema.ok()?);
        Some(KnownFile { footer, schema })
    }
}

/// A file whose footer planning has read.
struct KnownFile {
    footer: Arc<ParquetMetaData>,
    /// What the reader makes of its columns: the table's texts are declared to it (footer.rs).
    schema: SchemaRef,
}

/// The same scan with another schema of the files.
fn reading(source: &ParquetSource, schema: SchemaRef) -> Result<Option<Arc<dyn FileSource>>> {
    let partitions = source.table_schema().table_partition_cols().clone();
    let table = TableSchema::builder(schema).with_table_partition_cols(partitions);
    let mut fresh = reading_as(source, table.build());
    if let Some(predicate) = source.filter() {
        fresh = fresh.with_predicate(predicate);
    }
    match source.projection() {
        Some(projection) => fresh.try_pushdown_projection(projection),
        None => Ok(Some(Arc::new(fresh))),
    }
}

/// Where a filter takes the wanted columns from, without those that its predicate reads.
fn through_filter(filter: &FilterExec, wanted: &[usize]) -> Vec<usize> {
    let read: Vec<usize> = columns(filter.predicate()).collect();
    let projection = filter.projection().as_ref();
    let input = wanted
        .iter()
        .map(|at| projection.map_or(*at, |columns| columns[*at]));
    input.filter(|column| !read.contains(column)).collect()
}

/// Input columns that a projection hands on as the wanted ones and that nothing else reads.
fn passed_on(
    projection: &[ProjectionExpr],
    others: &[Arc<dyn PhysicalExpr>],
    wanted: &[usize],
) -> Vec<usize> {
    let expressions = projection.iter().map(|of| &of.expr).chain(others);
    let read: Vec<usize> = expressions.flat_map(columns).collect();
    let passed = wanted
        .iter()
        .filter_map(|at| projection[*at].expr.downcast_ref::<Column>())
        .map(Column::index);
    passed
        .filter(|column| read.iter().filter(|read| *read == column).count() == 1)
        .collect()
}

fn columns(expression: &Arc<dyn PhysicalExpr>) -> impl Iterator<Item = usize> {
    collect_columns(expression)
        .into_iter()
        .map(|column| column.index())
}

/// The type of the values of a column that all chunks of all files hold as codes.
fn common_code_type(files: &HashMap<Path, KnownFile>, name: &str) -> Option<DataType> {
    let mut types = files.values().map(|file| code_type(file, name));
    let first = types.next()??;
    types.all(|of| of.as_ref() == Some(&first)).then_some(first)
}

fn code_type(file: &KnownFile, name: &str) -> Option<DataType> {
    let values = match file.schema.field_with_name(name).ok()?.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return None,
    };
    let leaves = file.footer.file_metadata().schema_descr().columns();
    let at = leaves.iter().position(|leaf| {
        leaf.path().parts() == [name] && leaf.physical_type() == Type::BYTE_ARRAY
    })?;
    let mut chunks = file
        .footer
        .row_groups()
        .iter()
        .map(|group| group.column(at));
    chunks.all(is_coded).then_some(values)
}

/// True if a chunk has a small dictionary and no data page without codes.
fn is_coded(chunk: &ColumnChunkMetaData) -> bool {
    let only_codes = chunk.page_encoding_stats_mask().is_some_and(|pages| {
        pages.is_only(Encoding::PLAIN_DICTIONARY) || pages.is_only(Encoding::RLE_DICTIONARY)
    });
    let is_small = |bytes: i64| (0..=DICTIONARY_BYTES_MAX).contains(&bytes);
    only_codes && dictionary_bytes(chunk).is_some_and(is_small)
}

fn dictionary(values: &DataType) -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(values.clone()))
}

/// The schema with other types in the named columns.
fn with_types(schema: &Schema, picks: &[(&str, DataType)]) -> SchemaRef {
    let typed = |field: &FieldRef| match picks.iter().find(|(name, _)| name == field.name()) {
        Some((_, data_type)) => Arc::new(Field::clone(field).with_data_type(data_type.clone())),
        None => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(typed).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
