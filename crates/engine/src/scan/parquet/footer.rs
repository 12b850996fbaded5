//! Footers: what a Parquet file says about itself, without what it cannot know.
//!
//! In: a footer as it was read; the columns that the table takes for text.
//! Out: a footer that DataFusion may believe.
//! Invariant: row groups, pages and values are those of the file; only claims about values are dropped. Only text
//! that the file does not declare is declared, so that the reader checks it, and types are plain.
//! An INTERVAL is its bytes, and so is a timestamp in 96 bits.
//! Not here: reading footers and keeping them (parquet.rs); what is made of bytes (twelve_bytes.rs).
//!
//! Writers leave NaN out of the bounds of floats and write 0 for -0.0, so a bound says nothing about the rows that
//! DataFusion would prune or answer from it. The reader checks UTF-8 only where a column is declared to be text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::scan::names::with_distinct_names;
use crate::scan::parquet::int96::int96_leaves;
use crate::scan::parquet::intervals::interval_leaves;
use crate::scan::plain_types::plain_schema;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::parquet::arrow::{
    ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema,
};
use datafusion::parquet::basic::{ConvertedType, Encoding, LogicalType, Type as Physical};
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr};
use grouse_groupby::keys::decoded;

/// Top-level columns that a table takes for text.
pub(crate) type TextColumns = BTreeSet<String>;

/// Those of a table whose files have these columns.
pub(crate) fn strings_of(schema: &Schema) -> TextColumns {
    let strings = schema.fields().iter();
    let strings = strings.filter(|field| is_string(field.data_type()));
    strings.map(|field| field.name().clone()).collect()
}

/// The footer that DataFusion may believe; the same one where there is nothing to correct.
pub(crate) fn sound(
    metadata: &Arc<ParquetMetaData>,
    strings: &TextColumns,
) -> Result<Arc<ParquetMetaData>> {
    let renamed = with_distinct_names(metadata)?.map(Arc::new);
    let metadata = renamed.as_ref().unwrap_or(metadata);
    let file = declare(metadata.file_metadata(), strings)?;
    let unbounded = unsound_bounds(metadata);
    if file.is_none() && unbounded.is_empty() {
        return Ok(Arc::clone(metadata));
    }
    let file = file.unwrap_or_else(|| metadata.file_metadata().clone());
    let mut builder = metadata.as_ref().clone().into_builder();
    let mut groups = builder.take_row_groups();
    let mut pages = builder.take_column_index();
    for (row, group) in groups.iter_mut().enumerate() {
        for &leaf in &unbounded {
            let chunk = &mut group.columns_mut()[leaf];
            *chunk = without_bounds(chunk)?;
            if let Some(index) = pages
                .as_mut()
                .and_then(|rows| rows.get_mut(row)?.get_mut(leaf))
            {
                *index = ColumnIndexMetaData::NONE;
            }
        }
    }
    let offsets = builder.take_offset_index();
    let sound = ParquetMetaData::new(file, groups).into_builder();
    let sound = sound.set_column_index(pages).set_offset_index(offsets);
    Ok(Arc::new(sound.build()))
}

/// The footer without the places of page indexes, for a file whose page indexes cannot be read; `None` if it has none.
pub(crate) fn without_page_indexes(footer: ParquetMetaData) -> Result<Option<ParquetMetaData>> {
    let has_index = |chunk: &ColumnChunkMetaData| {
        chunk.column_index_offset().is_some() || chunk.offset_index_offset().is_some()
    };
    let groups = footer.row_groups();
    if !groups
        .iter()
        .any(|group| group.columns().iter().any(has_index))
    {
        return Ok(None);
    }
    let mut builder = footer.into_builder();
    let mut groups = builder.take_row_groups();
    for chunk in groups.iter_mut().flat_map(|group| group.columns_mut()) {
        *chunk = chunk
            .clone()
            .into_builder()
            .set_column_index_offset(None)
            .set_column_index_length(None)
            .set_offset_index_offset(None)
            .set_offset_index_length(None)
            .build()?;
    }
    Ok(Some(builder.set_row_groups(groups).build()))
}

/// What is wrong with the counts and places that a footer gives for a file of so many bytes. Readers take them as they are: a
/// negative one is a panic.
pub(crate) fn misplaced(footer: &ParquetMetaData, file_bytes: u64) -> Option<String> {
    let mut rows = Some(0_i64);
    for (at, group) in footer.row_groups().iter().enumerate() {
        rows = rows.filter(|_| group.num_rows() >= 0);
        rows = rows.and_then(|rows| rows.checked_add(group.num_rows()));
        let is_misplaced = |chunk: &&ColumnChunkMetaData| {
            let end = end_of(chunk);
            end.is_none_or(|end| end > file_bytes) || chunk.num_values() < 0
        };
        if let Some(chunk) = group.columns().iter().find(is_misplaced) {
            let name = chunk.column_path().string();
            return Some(format!(
                "column '{name}' of row group {at} would lie outside of the file; it is damaged or was cut short"
            ));
        }
    }
    match rows {
        Some(_) => None,
        None => {
            Some("a row group has no number of rows that can be; the file is damaged".to_string())
        }
    }
}

/// Where a column chunk ends; `None` if a place is negative or beyond all numbers.
fn end_of(chunk: &ColumnChunkMetaData) -> Option<u64> {
    let data = u64::try_from(chunk.data_page_offset()).ok()?;
    let dictionary = chunk.dictionary_page_offset().map(u64::try_from);
    let start = dictionary.transpose().ok()?.unwrap_or(data);
    start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)
}

/// Whether least and greatest value of a column say nothing about all of its rows.
pub(crate) fn has_unsound_bounds(
    column: &ColumnDescriptor,
    statistics: Option<&Statistics>,
) -> bool {
    let is_float = matches!(column.physical_type(), Physical::FLOAT | Physical::DOUBLE)
        || column.logical_type_ref() == Some(&LogicalType::Float16);
    // Old writers compared bytes and unsigned numbers as if they had a sign; nobody says how timestamps in 96 bits are compared.
    is_float
        || column.physical_type() == Physical::INT96
        || statistics.is_some_and(|known| {
            known.is_min_max_deprecated() && !known.is_min_max_backwards_compatible()
        })
}

/// The leaves with claims to drop.
fn unsound_bounds(metadata: &ParquetMetaData) -> Vec<usize> {
    let leaves = metadata.file_metadata().schema_descr().columns();
    let has_claim = |chunk: &ColumnChunkMetaData| {
        let is_bounded = |known: &&Statistics| {
            known.min_bytes_opt().is_some() || known.max_bytes_opt().is_some()
        };
        let bounds = chunk.statistics().filter(is_bounded);
        (bounds.is_some()
            || chunk.column_index_offset().is_some()
            || chunk.bloom_filter_offset().is_some())
            && has_unsound_bounds(chunk.column_descr(), bounds)
    };
    let is_unsound = |leaf: &usize| {
        let mut groups = metadata.row_groups().iter();
        groups.any(|group| has_claim(group.column(*leaf)))
    };
    (0..leaves.len()).filter(is_unsound).collect()
}

/// Whether both bounds are there.
pub(crate) fn has_bounds(statistics: &Statistics) -> bool {
    statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some()
}

/// All chunks of the top-level columns whose names are `wanted`.
pub(crate) fn chunks_of(
    footer: &ParquetMetaData,
    wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &ColumnChunkMetaData> {
    let leaves = footer.file_metadata().schema_descr().columns().iter();
    let leaves = leaves
        .enumerate()
        .filter(move |(_, leaf)| wanted(&leaf.path().parts()[0]));
    leaves.flat_map(|(leaf, _)| {
        let groups = footer.row_groups().iter();
        groups.map(move |group| group.column(leaf))
    })
}

/// Bytes of a chunk's dictionary in the file; none if it has no dictionary. A bad footer may say any number.
pub(crate) fn dictionary_bytes(chunk: &ColumnChunkMetaData) -> Option<i64> {
    let start = chunk.dictionary_page_offset()?;
    Some(chunk.data_page_offset().saturating_sub(start))
}

/// True if all data pages of a chunk are known to be codes of its dictionary.
pub(crate) fn has_only_codes(chunk: &ColumnChunkMetaData) -> bool {
    chunk.page_encoding_stats_mask().is_some_and(|pages| {
        pages.is_only(Encoding::PLAIN_DICTIONARY) || pages.is_only(Encoding::RLE_DICTIONARY)
    })
}

/// What a value costs beside its bytes in the file, in bytes: integers of a few bits each are read at 2 to 4 ns.
const VALUE_BYTES: i64 = 4;

/// What reading a chunk costs, in bytes.
pub(crate) fn reading_bytes(chunk: &ColumnChunkMetaData) -> i64 {
    let values = chunk.num_values().saturating_mul(VALUE_BYTES);
    chunk.uncompressed_size().saturating_add(values)
}

/// The chunk without bounds, page bounds and Bloom filter, which tells 0.0 from -0.0; NULLs stay counted.
fn without_bounds(chunk: &ColumnChunkMetaData) -> Result<ColumnChunkMetaData> {
    let statistics = chunk.statistics().map(|known| {
        let (distinct, nulls) = (known.distinct_count_opt(), known.null_count_opt());
        match known {
            Statistics::Boolean(_) => Statistics::boolean(None, None, distinct, nulls, false),
            Statistics::Int32(_) => Statistics::int32(None, None, distinct, nulls, false),
            Statistics::Int64(_) => Statistics::int64(None, None, distinct, nulls, false),
            Statistics::Int96(_) => Statistics::int96(None, None, distinct, nulls, false),
            Statistics::Float(_) => Statistics::float(None, None, distinct, nulls, false),
            Statistics::Double(_) => Statistics::double(None, None, distinct, nulls, false),
            Statistics::ByteArray(_) => Statistics::byte_array(None, None, distinct, nulls, false),
            Statistics::FixedLenByteArray(_) => {
                Statistics::fixed_len_byte_array(None, None, distinct, nulls, false)
            }
        }
    });
    let mut builder = chunk.clone().into_builder().clear_statistics();
    if let Some(statistics) = statistics {
        builder = builder.set_statistics(statistics);
    }
    builder
        .set_column_index_offset(None)
        .set_column_index_length(None)
        .set_bloom_filter_offset(None)
        .set_bloom_filter_length(None)
        .build()
}

/// The leaves that will be read as text although the file does not declare them to be.
fn undeclared_strings(file: &FileMetaData, strings: &TextColumns) -> Result<BTreeSet<usize>> {
    let schema = file.schema_descr();
    let is_open = |column: &ColumnDescriptor| {
        column.physical_type() == Physical::BYTE_ARRAY
            && column.converted_type() != ConvertedType::UTF8
    };
    if !schema.columns().iter().any(|column| is_open(column)) {
        return Ok(BTreeSet::new());
    }
    let mut types = Vec::with_capacity(schema.num_columns());
    for field in parquet_to_arrow_schema(schema, file.key_value_metadata())?.fields() {
        leaf_types(field.data_type(), &mut types);
    }
    if types.len() != schema.num_columns() {
        let text = format!(
            "{} columns with {} types",
            schema.num_columns(),
            types.len()
        );
        return Err(ParquetError::General(text));
    }
    let is_text = |leaf: &usize| {
        let column = schema.column(*leaf);
        let path = column.path().parts();
        let is_named =
            path.len() == 1 && strings.contains(&path[0]) && decoded(&types[*leaf]).is_binary();
        is_open(&column) && (is_named || is_string(&types[*leaf]))
    };
    Ok((0..types.len()).filter(is_text).collect())
}

/// The types of a field's leaves, in the order in which Parquet numbers them.
fn leaf_types(kind: &DataType, leaves: &mut Vec<DataType>) {
    match kind {
        DataType::Struct(fields) => {
            for field in fields {
                leaf_types(field.data_type(), leaves);
            }
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => leaf_types(field.data_type(), leaves),
        leaf => leaves.push(leaf.clone()),
    }
}

/// Whether values are text, whatever their layout.
pub(crate) fn is_string(kind: &DataType) -> bool {
    decoded(kind).is_string()
}

/// What a leaf is declared to be that its file declares to be something else, or nothing.
#[derive(Debug, Clone, Copy)]
enum DeclaredLeaf {
    Text,
    /// So many bytes.
    Bytes(i32),
}

/// How many bytes an INTERVAL has, and a timestamp in 96 bits.
const TWELVE_BYTES: DeclaredLeaf = DeclaredLeaf::Bytes(12);

/// The file's part of the footer with the table's strings declared to be strings and plain types; `None` where that is so.
pub(crate) fn declare(file: &FileMetaData, strings: &TextColumns) -> Result<Option<FileMetaData>> {
    let strings = undeclared_strings(file, strings)?.into_iter();
    let strings = strings.map(|leaf| (leaf, DeclaredLeaf::Text));
    let bytes = interval_leaves(file).into_iter().chain(int96_leaves(file));
    let bytes = bytes.map(|leaf| (leaf, TWELVE_BYTES));
    let leaves: BTreeMap<usize, DeclaredLeaf> = strings.chain(bytes).collect();
    let entries = plain_entries(file);
    if leaves.is_empty() && entries.is_none() {
        return Ok(None);
    }
    let root = declared(file.schema(), &mut 0, &leaves)?;
    let entries = entries.or_else(|| file.key_value_metadata().cloned());
    Ok(Some(FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        entries,
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    )))
}

/// What the file says beside its schema, with plain types for those of the Arrow table that it was written from. The reader
/// makes no dictionaries of booleans and of decimals. `None` where they are plain.
fn plain_entries(file: &FileMetaData) -> Option<Vec<KeyValue>> {
    let mut entries = file.key_value_metadata()?.clone();
    let mut entries_of_arrow = entries.iter_mut();
    let entry = entries_of_arrow.find(|entry| entry.key == ARROW_SCHEMA_META_KEY)?;
    // A schema that cannot be read is told when the columns are.
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).ok()?;
    let plain = plain_schema(&schema);
    entry.value = (*plain != schema).then(|| encode_arrow_schema(&plain));
    entry.value.is_some().then_some(entries)
}

/// One node; `next` counts the leaves passed so far.
fn declared(
    node: &Type,
    next: &mut usize,
    leaves: &BTreeMap<usize, DeclaredLeaf>,
) -> Result<TypePtr> {
    let info = node.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if node.is_primitive() {
        *next += 1;
        let leaf = match leaves.get(&(*next - 1)) {
            None => return Ok(Arc::new(node.clone())),
            Some(DeclaredLeaf::Text) => {
                Type::primitive_type_builder(node.name(), Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String))
                    .with_converted_type(ConvertedType::UTF8)
            }
            Some(DeclaredLeaf::Bytes(length)) => {
                Type::primitive_type_builder(node.name(), Physical::FIXED_LEN_BYTE_ARRAY)
                    .with_length(*length)
            }
        };
        let leaf = leaf.with_repetition(info.repetition()).with_id(id);
        return Ok(Arc::new(leaf.build()?));
    }
    let fields = node.get_fields().iter();
    let fields = fields.map(|field| declared(field, next, leaves));
    let mut group = Type::group_type_builder(node.name())
        .with_fields(fields.collect::<Result<Vec<_>>>()?)
        .with_logical_type(info.logical_type_ref().cloned())
        .with_converted_type(info.converted_type())
        .with_id(id);
    if info.has_repetition() {
        group = group.with_repetition(info.repetition());
    }
    Ok(Arc::new(group.build()?))
}
