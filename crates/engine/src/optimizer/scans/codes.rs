//! Strings that a Parquet scan hands out as codes of the file's dictionaries, and decimals that it hands out in 64 bits.
//!
//! In: a finished physical plan, the footers that planning has read. Out: the same plan in which scans below a group-by read
//! string columns as dictionary arrays, and decimals of up to 18 digits in 64 bits. Such a string column is only a key of a
//! direct or packed table, an argument of min, max, count, first_value and array_agg, or computed with alone, once per value.
//! Such a decimal is only added up or computed with.
//! Invariant: a column is read as codes only where all its chunks in all files are dictionary pages and nothing else. SQL types
//! do not change: nothing sees the codes but the group-by and `PerValue`, nothing the 64 bits but the group-by and arithmetic.
//! Not here: what the codes are used for (crate `grouse-groupby`, `keys/intern`, `keys/shared_dictionary`; expr/distinct_values),
//! the decimals (decimal64.rs).
//!
//! As views the reader writes 16 bytes per row, and each is looked up again; as codes it writes 4 and each value is looked up
//! once per chunk. Decoding chunks that have fallen back to plain pages as codes is slower than as views: 1.8x, measured.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult};
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
use datafusion::parquet::basic::Type;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::schema::types::ColumnDescPtr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use grouse_groupby::keys::is_bytes;
use object_store::path::Path;

use super::morsels::MorselRows;
use crate::exec::GroupByExec;
use crate::exec::{ColumnEncoding, FewValues, ReadExpr, columns_of};
use crate::expr::arithmetic::takes_decimal64;
use crate::expr::columns::dictionary;
use crate::expr::decimal64::{as_decimal64, widened};
use crate::expr::distinct_values::{ResultReader, is_per_value, per_value};
use crate::runtime::options::SessionOptions;
use crate::scan::parquet::footer::{
    TextColumns, declare, dictionary_bytes, has_only_codes, strings_of,
};
use crate::scan::parquet::{known_footer, reading_as};

/// Dictionary pages of more bytes (compressed) hold more values than the direct table takes.
const DICTIONARY_BYTES_MAX: i64 = 32 << 10;

/// Dictionaries of a column that have more bytes together are too large to be held as long as a query runs. So are those that
/// have more than this part of the memory limit: compressed, of which strings mostly are a half to a fifth.
const FEW_BYTES_MAX: u64 = 16 << 20;
const FEW_SHARE: u64 = 256;

/// Bytes of a decimal that fit 64 bits.
const WORD_BYTES: i32 = 8;

/// Reads strings as codes and decimals in 64 bits.
pub(crate) struct CodesRule {
    footers: Arc<FileMetadataCache>,
}

impl CodesRule {
    /// A rule that knows the files whose footers are in this cache.
    pub fn new(footers: Arc<FileMetadataCache>) -> CodesRule {
        CodesRule { footers }
    }
}

impl CodesRule {
    pub fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = SessionOptions::of(config);
        let reading = CodesInSession {
            footers: &*self.footers,
            has_codes: options.group_by_codes,
            few_bytes: FEW_BYTES_MAX.min(options.memory_limit_bytes() / FEW_SHARE),
        };
        GroupByExec::exchanged_in(plan, |group_by, node| reading.group_by(group_by, node))
    }
}

/// A node some of whose columns have become codes or Decimal64.
struct Coded {
    node: Arc<dyn ExecutionPlan>,
    columns: Vec<usize>,
}

impl Coded {
    fn new(node: Arc<dyn ExecutionPlan>, before: &Schema) -> Coded {
        let now = node.schema();
        let fields = before.fields().iter().zip(now.fields());
        let columns = fields
            .enumerate()
            .filter(|(_, (before, now))| before.data_type() != now.data_type());
        Coded {
            columns: columns.map(|(at, _)| at).collect(),
            node,
        }
    }
}

/// The rule in one session.
struct CodesInSession<'a> {
    footers: &'a FileMetadataCache,
    /// False of one that wants strings.
    has_codes: bool,
    /// Bytes of dictionaries that are few.
    few_bytes: u64,
}

impl CodesInSession<'_> {
    fn group_by(
        &self,
        group_by: &GroupByExec,
        node: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let input = group_by.children()[0];
        let schema = input.schema();
        let reads = group_by.reads();
        let Some(coded) = self.coded(input, &taken(&schema, &reads))? else {
            return Ok(None);
        };
        let keys = |expr, schema: &Schema| {
            let reader = match group_by.takes_codes() {
                true => ResultReader::Codes,
                false => ResultReader::Rows,
            };
            over(expr, schema, &coded.columns, reader)
        };
        let others = |expr, schema: &Schema| over(expr, schema, &coded.columns, ResultReader::Rows);
        let computed = group_by.with_expressions(&keys, &others)?;
        let computed = computed.unwrap_or_else(|| Arc::clone(node));
        replace_children_if_necessary(computed, vec![coded.node]).map(Some)
    }

    /// `node` with codes or Decimal64 in those of its columns whose readers take them (`taken`) and the files have them; none if
    /// there are none.
    fn coded(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        taken: &[ColumnEncoding],
    ) -> Result<Option<Coded>> {
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            return self.filter(filter, taken);
        }
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            return self.projection(projection, taken);
        }
        if let Some(dealt) = node.downcast_ref::<RepartitionExec>()
            && matches!(dealt.partitioning(), Partitioning::RoundRobinBatch(_))
        {
            return self.dealt(node, dealt.input(), taken);
        }
        let scan = node.downcast_ref::<DataSourceExec>();
        match scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()) {
            Some((config, source)) => {
                let coded = self.scan(config, source, taken)?;
                Ok(coded.map(|coded| Coded::new(coded, &node.schema())))
            }
            None => Ok(None),
        }
    }

    /// Batches of few streams for many workers.
    fn dealt(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        input: &Arc<dyn ExecutionPlan>,
        taken: &[ColumnEncoding],
    ) -> Result<Option<Coded>> {
        let Some(below) = self.coded(input, taken)? else {
            return Ok(None);
        };
        let coded = replace_children_if_necessary(Arc::clone(node), vec![below.node])?;
        Ok(Some(Coded::new(coded, &node.schema())))
    }

    fn filter(&self, filter: &FilterExec, outputs: &[ColumnEncoding]) -> Result<Option<Coded>> {
        let schema = filter.input().schema();
        let mut reads = vec![ReadExpr::plain(filter.predicate())];
        for (at, takes) in outputs.iter().enumerate() {
            let column = filter.projection().as_ref().map_or(at, |input| input[at]);
            reads.push(ReadExpr {
                expr: Arc::new(Column::new(schema.field(column).name(), column)),
                takes: *takes,
            });
        }
        let Some(below) = self.coded(filter.input(), &taken(&schema, &reads))? else {
            return Ok(None);
        };
        let predicate = Arc::clone(filter.predicate());
        let predicate = over(predicate, &schema, &below.columns, ResultReader::Rows)?.data;
        let coded = FilterExecBuilder::from(filter)
            .with_predicate(predicate)
            .with_input(below.node)
            .build()?;
        Ok(Some(Coded::new(Arc::new(coded), &filter.schema())))
    }

    fn projection(
        &self,
        node: &ProjectionExec,
        outputs: &[ColumnEncoding],
    ) -> Result<Option<Coded>> {
        let schema = node.input().schema();
        let reads = reads_of(node.expr(), outputs);
        let Some(below) = self.coded(node.input(), &taken(&schema, &reads))? else {
            return Ok(None);
        };
        let exprs = computed(node.expr(), &schema, &below.columns, outputs)?;
        // With another input it would keep its schema.
        let coded = ProjectionExec::try_new(exprs, below.node)?;
        Ok(Some(Coded::new(Arc::new(coded), &node.schema())))
    }

    fn scan(
        &self,
        config: &FileScanConfig,
        source: &ParquetSource,
        outputs: &[ColumnEncoding],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let table = source.table_schema();
        let (Some(projection), true) = (source.projection(), table.virtual_columns().is_empty())
        else {
            return Ok(None);
        };
        let schema = table.file_schema();
        let mut reads = reads_of(projection.as_ref(), outputs);
        reads.extend(source.filter().iter().map(ReadExpr::plain));
        let mut columns = columns_taken(schema, &reads);
        columns.retain(|at| self.has_codes || !is_bytes(schema.field(*at).data_type()));
        if columns.is_empty() {
            return Ok(None);
        }
        let Some(files) = self.files_of(config) else {
            return Ok(None);
        };
        let picked = picked(config, source, columns, &files);
        if picked.is_empty() {
            return Ok(None);
        }
        let picks: Vec<(&str, DataType)> = picked
            .iter()
            .map(|(column, of)| (schema.field(*column).name().as_str(), of.clone()))
            .collect();
        let few = Arc::new(self.few(schema, &picked, &files));
        let typed = files.iter();
        let typed = typed.map(|(location, known)| (location, with_types(&known.schema, &picks)));
        let typed: HashMap<&Path, SchemaRef> = typed.collect();
        let coded = |file: &PartitionedFile| {
            let schema = Arc::clone(&typed[&file.object_meta.location]);
            let file = file.clone().with_extension(Arc::clone(&few));
            file.with_arrow_schema(schema)
        };
        let groups = config.file_groups.iter();
        let groups = groups
            .map(|group| FileGroup::new(group.files().iter().map(coded).collect()))
            .collect();
        let changed: Vec<usize> = picked.iter().map(|(column, _)| *column).collect();
        let fresh = computed(projection.as_ref(), table.table_schema(), &changed, outputs)?;
        let predicate = source.filter().map(|predicate| {
            over(
                predicate,
                table.table_schema(),
                &changed,
                ResultReader::Rows,
            )
            .data()
        });
        let schema = with_types(schema, &picks);
        let Some(source) = reading(source, schema, fresh, predicate.transpose()?)? else {
            return Ok(None);
        };
        let mut statistics = config.statistics();
        for (column, _) in &picked {
            // Those of strings do not describe codes, those of decimals are of their type.
            statistics.column_statistics[*column] = ColumnStatistics::new_unknown();
        }
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(source)
            .with_statistics(statistics)
            .with_file_groups(groups)
            .build();
        Ok(Some(DataSourceExec::from_data_source(config)))
    }

    /// Those columns that have become codes of few strings.
    fn few(
        &self,
        schema: &Schema,
        picked: &[(usize, DataType)],
        files: &HashMap<Path, FileWithFooter>,
    ) -> FewValues {
        let are_few = |(column, of): &&(usize, DataType)| {
            let name = schema.field(*column).name();
            let bytes = files.values().map(|file| file.dictionaries(name));
            let bytes = bytes.fold(0, u64::saturating_add);
            matches!(of, DataType::Dictionary(..)) && bytes <= self.few_bytes
        };
        let few = picked.iter().filter(are_few).map(|(column, _)| *column);
        FewValues(few.collect())
    }

    /// What is known of each file, which may stand in several groups; none if the footer of one is unknown.
    fn files_of(&self, config: &FileScanConfig) -> Option<HashMap<Path, FileWithFooter>> {
        let strings = strings_of(config.file_source().table_schema().file_schema());
        let mut known = HashMap::new();
        for file in config.file_groups.iter().flat_map(FileGroup::iter) {
            let location = &file.object_meta.location;
            if !known.contains_key(location) {
                known.insert(location.clone(), self.file(file, &strings)?);
            }
        }
        Some(known)
    }

    fn file(&self, file: &PartitionedFile, strings: &TextColumns) -> Option<FileWithFooter> {
        let object = &file.object_meta;
        if file.arrow_schema.is_some() {
            return None;
        }
        let footer = known_footer(self.footers, &object.location, object)?;
        let read = footer.file_metadata();
        let declared = declare(read, strings).ok()?;
        let read = declared.as_ref().unwrap_or(read);
        let schema = parquet_to_arrow_schema(read.schema_descr(), read.key_value_metadata());
        let schema = Arc::new(schema.ok()?);
        Some(FileWithFooter { footer, schema })
    }
}

/// A file whose footer planning has read.
struct FileWithFooter {
    footer: Arc<ParquetMetaData>,
    /// What the reader makes of its columns: the table's strings are declared to it (footer.rs).
    schema: SchemaRef,
}

impl FileWithFooter {
    /// The place of a column that is one leaf, and the leaf.
    fn leaf(&self, name: &str) -> Option<(usize, &ColumnDescPtr)> {
        let leaves = self.footer.file_metadata().schema_descr().columns();
        let mut leaves = leaves.iter().enumerate();
        leaves.find(|(_, leaf)| leaf.path().parts() == [name])
    }

    /// The chunks of a column that is one leaf.
    fn chunks(&self, name: &str) -> Option<impl Iterator<Item = &ColumnChunkMetaData>> {
        let (at, _) = self.leaf(name)?;
        let groups = self.footer.row_groups().iter();
        Some(groups.map(move |group| group.column(at)))
    }

    /// Bytes of all dictionaries of a column in the file.
    fn dictionaries(&self, name: &str) -> u64 {
        let chunks = self.chunks(name).into_iter().flatten();
        let bytes = chunks.map(|chunk| dictionary_bytes(chunk).unwrap_or(i64::MAX) as u64);
        bytes.fold(0, u64::saturating_add)
    }

    /// True of a column of decimals whose values the reader makes Decimal64 of: those of more bytes it only makes wide.
    fn has_decimal64(&self, name: &str, data_type: &DataType) -> bool {
        let field = self.schema.field_with_name(name);
        let is_short = self
            .leaf(name)
            .is_some_and(|(_, leaf)| match leaf.physical_type() {
                Type::INT32 | Type::INT64 => true,
                Type::FIXED_LEN_BYTE_ARRAY => leaf.type_length() <= WORD_BYTES,
                _ => false,
            });
        is_short && field.is_ok_and(|field| field.data_type() == data_type)
    }

    fn has_bloom_filter(&self, name: &str) -> bool {
        let mut chunks = self.chunks(name).into_iter().flatten();
        chunks.any(|chunk| chunk.bloom_filter_offset().is_some())
    }
}

/// The same scan with another schema of the files and other expressions.
fn reading(
    source: &ParquetSource,
    schema: SchemaRef,
    projection: Vec<ProjectionExpr>,
    predicate: Option<Arc<dyn PhysicalExpr>>,
) -> Result<Option<Arc<dyn FileSource>>> {
    let partitions = source.table_schema().table_partition_cols().clone();
    let table = TableSchema::builder(schema).with_table_partition_cols(partitions);
    let mut fresh = reading_as(source, table.build());
    if let Some(predicate) = predicate {
        fresh = fresh.with_predicate(predicate);
    }
    fresh.try_pushdown_projection(&ProjectionExprs::new(projection))
}

/// Those of the columns that all files have in another form, with its type.
fn picked(
    config: &FileScanConfig,
    source: &ParquetSource,
    columns: Vec<usize>,
    files: &HashMap<Path, FileWithFooter>,
) -> Vec<(usize, DataType)> {
    let pruned_by: HashSet<usize> = source.filter().iter().flat_map(columns_of).collect();
    // With pushdown the predicate is the only filter there is.
    let is_filter = source.table_parquet_options().global.pushdown_filters;
    let is_pruned = is_in_morsels(config) && !is_filter;
    let picked = columns.into_iter().filter_map(|column| {
        let field = source.table_schema().file_schema().field(column);
        // Of what the predicate says of it the scan will see no bounds: they have to have been looked at by now.
        let mut all = files.values();
        let is_settled = is_pruned && !all.any(|file| file.has_bloom_filter(field.name()));
        if pruned_by.contains(&column) && !is_settled {
            return None;
        }
        // A table may declare a column to be something else than its files do.
        if let Some(words) = as_decimal64(field.data_type()) {
            let mut files = files.values();
            let are = files.all(|file| file.has_decimal64(field.name(), field.data_type()));
            return are.then_some((column, words));
        }
        let values = common_code_type(files, field.name())?;
        let is_kept = match values {
            DataType::Utf8 => field.data_type().is_string(),
            _ => field.data_type().is_binary(),
        };
        is_kept.then(|| (column, dictionary(&values)))
    });
    picked.collect()
}

/// True if what bounds leave of the files has been settled already.
fn is_in_morsels(config: &FileScanConfig) -> bool {
    let mut files = config.file_groups.iter().flat_map(FileGroup::iter);
    files.all(|file| file.extension::<MorselRows>().is_some())
}

/// The form of each column that does for all who read it.
fn taken(schema: &Schema, reads: &[ReadExpr]) -> Vec<ColumnEncoding> {
    let fields = schema.fields().iter().enumerate();
    let taken = fields.map(|(column, field)| match field.data_type() {
        of if is_bytes(of) && are_codes_taken(column, reads) => ColumnEncoding::Codes,
        of if as_decimal64(of).is_some() && is_decimal64_taken(column, reads) => {
            ColumnEncoding::Decimal64
        }
        _ => ColumnEncoding::Values,
    });
    taken.collect()
}

/// True if all who read the column take codes, or only compute with it alone.
fn are_codes_taken(column: usize, reads: &[ReadExpr]) -> bool {
    let mut reads = reads.iter();
    reads.all(|read| match read.expr.downcast_ref::<Column>() {
        Some(itself) => itself.index() != column || read.takes.takes_codes(),
        None => is_per_value(&read.expr, column),
    })
}

/// True if somebody takes Decimal64, and nobody needs the column as it is: who computes with it otherwise computes with a cast.
fn is_decimal64_taken(column: usize, reads: &[ReadExpr]) -> bool {
    let itself = |read: &&ReadExpr| {
        let of = read.expr.downcast_ref::<Column>();
        of.is_some_and(|of| of.index() == column)
    };
    let mut plain = reads.iter().filter(itself);
    let mut all = reads.iter();
    plain.all(|read| read.takes.takes_decimal64())
        && all.any(|read| itself(&read) || takes_decimal64(&read.expr, column))
}

fn reads_of(projection: &[ProjectionExpr], outputs: &[ColumnEncoding]) -> Vec<ReadExpr> {
    let reads = projection.iter().zip(outputs);
    let reads = reads.map(|(of, takes)| ReadExpr {
        expr: Arc::clone(&of.expr),
        takes: *takes,
    });
    reads.collect()
}

/// The columns of the files that are read and may come in another form.
fn columns_taken(files: &Schema, reads: &[ReadExpr]) -> Vec<usize> {
    let read: BTreeSet<usize> = reads.iter().flat_map(|of| columns_of(&of.expr)).collect();
    let taken = taken(files, reads);
    let read = read.into_iter().filter(|column| *column < taken.len());
    read.filter(|column| taken[*column] != ColumnEncoding::Values)
        .collect()
}

/// A projection over columns some of which have changed their form.
fn computed(
    projection: &[ProjectionExpr],
    schema: &Schema,
    changed: &[usize],
    outputs: &[ColumnEncoding],
) -> Result<Vec<ProjectionExpr>> {
    let exprs = projection.iter().zip(outputs).map(|(of, takes)| {
        let reader = match takes {
            ColumnEncoding::Codes => ResultReader::Codes,
            ColumnEncoding::Values | ColumnEncoding::Decimal64 | ColumnEncoding::Any => {
                ResultReader::Rows
            }
        };
        Ok(ProjectionExpr {
            expr: over(Arc::clone(&of.expr), schema, changed, reader)?.data,
            alias: of.alias.clone(),
        })
    });
    exprs.collect()
}

/// `expr` over columns of `schema` some of which have changed their form. What it computes of codes it computes once per
/// value; what it takes no Decimal64 for has a cast.
fn over(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    changed: &[usize],
    reader: ResultReader,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let is_text = |column: &usize| is_bytes(schema.field(*column).data_type());
    let (codes, words): (Vec<usize>, Vec<usize>) = changed.iter().partition(|at| is_text(at));
    let coded = per_value(expr, schema, &codes, reader)?;
    coded.transform_data(|expr| widened(expr, schema, &words))
}

/// The type of the values of a column that all chunks of all files hold as codes.
fn common_code_type(files: &HashMap<Path, FileWithFooter>, name: &str) -> Option<DataType> {
    let mut types = files.values().map(|file| code_type(file, name));
    let first = types.next()??;
    types.all(|of| of.as_ref() == Some(&first)).then_some(first)
}

fn code_type(file: &FileWithFooter, name: &str) -> Option<DataType> {
    let values = match file.schema.field_with_name(name).ok()?.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return None,
    };
    let mut chunks = file.chunks(name)?;
    chunks.all(is_coded).then_some(values)
}

/// True if a chunk has a small dictionary and no data page without codes.
fn is_coded(chunk: &ColumnChunkMetaData) -> bool {
    let is_text = chunk.column_type() == Type::BYTE_ARRAY;
    let is_small = |bytes: i64| (0..=DICTIONARY_BYTES_MAX).contains(&bytes);
    is_text && has_only_codes(chunk) && dictionary_bytes(chunk).is_some_and(is_small)
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
