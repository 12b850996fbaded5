//! Names of columns, each once.
//!
//! In: the names that a file has, maybe some of them twice; the footer of a Parquet file with such names.
//! Out: the same names with numbers behind those that were there before.
//! Invariant: every column of the file is a column of the table, in its order; the first of a name keeps it.
//! Not here: columns that several files have in common (widen.rs).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::parquet::arrow::{
    ARROW_SCHEMA_META_KEY, encode_arrow_schema, parquet_to_arrow_schema,
};
use datafusion::parquet::errors::Result;
use datafusion::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use datafusion::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

/// The names, each once: `a, a, b` are `a, a_1, b`. `None` where they are so already.
pub fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let (mut taken, mut all, mut is_changed) = (HashSet::new(), Vec::new(), false);
    for name in names {
        let (mut distinct, mut number) = (name.to_string(), 0);
        while !taken.insert(distinct.clone()) {
            number += 1;
            is_changed = true;
            distinct = format!("{name}_{number}");
        }
        all.push(distinct);
    }
    is_changed.then_some(all)
}

/// The schema with each name once.
pub fn with_names_once(schema: &Schema) -> Schema {
    let fields = schema.fields();
    let Some(names) = distinct_names(fields.iter().map(|field| field.name().as_str())) else {
        return schema.clone();
    };
    let fields = fields.iter().zip(names);
    let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
    Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone())
}

/// The footer with each top-level name once; `None` where it is so already.
pub(crate) fn with_distinct_names(footer: &ParquetMetaData) -> Result<Option<ParquetMetaData>> {
    let Some(file) = file_with_distinct_names(footer.file_metadata())? else {
        return Ok(None);
    };
    let mut builder = footer.clone().into_builder();
    let groups = builder.take_row_groups();
    let (pages, offsets) = (builder.take_column_index(), builder.take_offset_index());
    let renamed = ParquetMetaData::new(file, groups).into_builder();
    let renamed = renamed.set_column_index(pages).set_offset_index(offsets);
    Ok(Some(renamed.build()))
}

fn file_with_distinct_names(file: &FileMetaData) -> Result<Option<FileMetaData>> {
    let root = file.schema();
    let columns = root.get_fields();
    let Some(names) = distinct_names(columns.iter().map(|column| column.name())) else {
        return Ok(None);
    };
    let renamed = columns.iter().zip(&names);
    let renamed = renamed.map(|(column, name)| named(column, name));
    let schema = Type::group_type_builder(root.name()).with_fields(renamed.collect::<Result<_>>()?);
    Ok(Some(FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        entries(file)?,
        Arc::new(SchemaDescriptor::new(Arc::new(schema.build()?))),
        file.column_orders().cloned(),
    )))
}

/// What the file says beside its schema; among it the Arrow schema, if there is one, with the same names.
fn entries(file: &FileMetaData) -> Result<Option<Vec<KeyValue>>> {
    let Some(mut entries) = file.key_value_metadata().cloned() else {
        return Ok(None);
    };
    let known = entries
        .iter_mut()
        .find(|entry| entry.key == ARROW_SCHEMA_META_KEY);
    if let Some(entry) = known {
        let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
        let renamed = with_names_once(&schema);
        entry.value = Some(encode_arrow_schema(&renamed));
    }
    Ok(Some(entries))
}

/// The same column under another name.
fn named(column: &Type, name: &str) -> Result<TypePtr> {
    let info = column.get_basic_info();
    let id = info.has_id().then(|| info.id());
    let renamed = match column {
        Type::PrimitiveType {
            physical_type,
            type_length,
            scale,
            precision,
            ..
        } => Type::primitive_type_builder(name, *physical_type)
            .with_repetition(info.repetition())
            .with_logical_type(info.logical_type_ref().cloned())
            .with_converted_type(info.converted_type())
            .with_length(*type_length)
            .with_scale(*scale)
            .with_precision(*precision)
            .with_id(id)
            .build()?,
        Type::GroupType { fields, .. } => {
            let group = Type::group_type_builder(name)
                .with_fields(fields.clone())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_converted_type(info.converted_type())
                .with_id(id);
            match info.has_repetition() {
                true => group.with_repetition(info.repetition()).build()?,
                false => group.build()?,
            }
        }
    };
    Ok(Arc::new(renamed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_once() {
        let distinct = |names: &[&str]| distinct_names(names.iter().copied());
        assert_eq!(distinct(&["a", "b"]), None);
        assert_eq!(distinct(&["a", "a", "b"]).unwrap(), ["a", "a_1", "b"]);
        assert_eq!(distinct(&["a", "a", "a_1"]).unwrap(), ["a", "a_1", "a_1_1"]);
    }
}
