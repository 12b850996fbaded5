//! The catalogs, schemas, tables and columns of a database.
//!
//! In: the session's catalogs, ADBC's depth and patterns. Out: one batch of nested lists, of ADBC's schema.
//! Invariant: a pattern has SQL's `%` and `_`. What is below the depth is NULL; what has nothing that matches is an empty list.
//! Not here: statistics, which ADBC has and we do not.

use std::sync::Arc;

use adbc_core::options::ObjectDepth;
use adbc_core::schemas::{
    COLUMN_SCHEMA, CONSTRAINT_SCHEMA, GET_OBJECTS_SCHEMA, GET_TABLE_TYPES_SCHEMA,
    OBJECTS_DB_SCHEMA_SCHEMA, TABLE_SCHEMA,
};
use arrow::array::{
    ArrayRef, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::like;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use arrow::error::ArrowError;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::Constraint;
use datafusion::logical_expr::TableType;
use grouse::{Session, type_name};

type ArrowResult<T> = std::result::Result<T, ArrowError>;

/// What is asked for.
pub struct Wanted {
    /// How deep.
    pub depth: ObjectDepth,
    /// Patterns of names.
    pub catalog: Option<String>,
    /// Of schemas.
    pub schema: Option<String>,
    /// Of tables.
    pub table: Option<String>,
    /// The kinds of tables.
    pub kinds: Option<Vec<String>>,
    /// Of columns.
    pub column: Option<String>,
}

struct CatalogEntry {
    name: String,
    schemas: Option<Vec<SchemaEntry>>,
}

struct SchemaEntry {
    name: String,
    tables: Option<Vec<TableEntry>>,
}

struct TableEntry {
    name: String,
    kind: &'static str,
    columns: Option<Vec<ColumnEntry>>,
    constraints: Option<Vec<ConstraintEntry>>,
}

struct ColumnEntry {
    field: FieldRef,
    position: i32,
}

struct ConstraintEntry {
    kind: &'static str,
    columns: Vec<String>,
}

/// The kinds of tables, as `information_schema.tables` has them.
const KINDS: [&str; 3] = ["BASE TABLE", "VIEW", "LOCAL TEMPORARY"];

fn kind(table: &dyn TableProvider) -> &'static str {
    match table.table_type() {
        TableType::Base => KINDS[0],
        TableType::View => KINDS[1],
        TableType::Temporary => KINDS[2],
    }
}

/// The kinds of tables as ADBC wants them.
pub fn table_kinds() -> ArrowResult<RecordBatch> {
    let kinds: ArrayRef = Arc::new(StringArray::from(KINDS.to_vec()));
    RecordBatch::try_new(Arc::clone(&GET_TABLE_TYPES_SCHEMA), vec![kinds])
}

/// What there is.
pub async fn objects(session: &Session, wanted: &Wanted) -> grouse::Result<RecordBatch> {
    let context = session.context();
    let mut catalogs = Vec::new();
    for name in sorted(context.catalog_names()) {
        let Some(catalog) = context
            .catalog(&name)
            .filter(|_| fits(&wanted.catalog, &name))
        else {
            continue;
        };
        let mut schemas = Vec::new();
        for name in sorted(catalog.schema_names()) {
            let is_wanted = wanted.depth != ObjectDepth::Catalogs && fits(&wanted.schema, &name);
            if let Some(schema) = catalog.schema(&name).filter(|_| is_wanted) {
                schemas.push(schema_entry(name, schema.as_ref(), wanted).await?);
            }
        }
        let schemas = (wanted.depth != ObjectDepth::Catalogs).then_some(schemas);
        catalogs.push(CatalogEntry { name, schemas });
    }
    Ok(batch(&catalogs)?)
}

async fn schema_entry(
    name: String,
    schema: &dyn SchemaProvider,
    wanted: &Wanted,
) -> grouse::Result<SchemaEntry> {
    if wanted.depth == ObjectDepth::Schemas {
        return Ok(SchemaEntry { name, tables: None });
    }
    let mut tables = Vec::new();
    for name in sorted(schema.table_names()) {
        if !fits(&wanted.table, &name) {
            continue;
        }
        // One that somebody has dropped meanwhile is no error.
        let Some(table) = schema.table(&name).await? else {
            continue;
        };
        let kind = kind(table.as_ref());
        let kinds = wanted.kinds.as_ref();
        if kinds.is_none_or(|kinds| kinds.iter().any(|wanted| wanted == kind)) {
            tables.push(table_entry(name, kind, table.as_ref(), wanted));
        }
    }
    let tables = Some(tables);
    Ok(SchemaEntry { name, tables })
}

fn table_entry(
    name: String,
    kind: &'static str,
    table: &dyn TableProvider,
    wanted: &Wanted,
) -> TableEntry {
    let (mut columns, mut constraints) = (None, None);
    if matches!(wanted.depth, ObjectDepth::All | ObjectDepth::Columns) {
        let schema = table.schema();
        let fields = schema.fields().iter().zip(1..);
        let fields = fields.filter(|(field, _)| fits(&wanted.column, field.name()));
        let entries = fields.map(|(field, position)| ColumnEntry {
            field: Arc::clone(field),
            position,
        });
        columns = Some(entries.collect());
        let found = table
            .constraints()
            .into_iter()
            .flat_map(|found| found.iter());
        constraints = Some(found.map(|found| constraint(found, &schema)).collect());
    }
    TableEntry {
        name,
        kind,
        columns,
        constraints,
    }
}

fn constraint(constraint: &Constraint, schema: &SchemaRef) -> ConstraintEntry {
    let (kind, places) = match constraint {
        Constraint::PrimaryKey(places) => ("PRIMARY KEY", places),
        Constraint::Unique(places) => ("UNIQUE", places),
    };
    let fields = places
        .iter()
        .filter_map(|place| schema.fields().get(*place));
    ConstraintEntry {
        kind,
        columns: fields.map(|field| field.name().clone()).collect(),
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Whether a name is like a pattern.
fn fits(pattern: &Option<String>, name: &str) -> bool {
    let Some(pattern) = pattern else {
        return true;
    };
    let name = StringArray::from(vec![name]);
    let found = like(&name, &StringArray::new_scalar(pattern));
    found.is_ok_and(|found| found.value(0))
}

fn batch(catalogs: &[CatalogEntry]) -> ArrowResult<RecordBatch> {
    let names = catalogs.iter().map(|catalog| Some(catalog.name.as_str()));
    let lists = catalogs.iter().map(|catalog| catalog.schemas.as_deref());
    let schemas = list(&OBJECTS_DB_SCHEMA_SCHEMA, lists, schemas)?;
    let columns = vec![strings(names), schemas];
    RecordBatch::try_new(Arc::clone(&GET_OBJECTS_SCHEMA), columns)
}

fn schemas(schemas: &[&SchemaEntry]) -> ArrowResult<Vec<ArrayRef>> {
    let names = schemas.iter().map(|schema| Some(schema.name.as_str()));
    let lists = schemas.iter().map(|schema| schema.tables.as_deref());
    Ok(vec![strings(names), list(&TABLE_SCHEMA, lists, tables)?])
}

fn tables(tables: &[&TableEntry]) -> ArrowResult<Vec<ArrayRef>> {
    let names = tables.iter().map(|table| Some(table.name.as_str()));
    let kinds = tables.iter().map(|table| Some(table.kind));
    let columns_of = tables.iter().map(|table| table.columns.as_deref());
    let constraints_of = tables.iter().map(|table| table.constraints.as_deref());
    Ok(vec![
        strings(names),
        strings(kinds),
        list(&COLUMN_SCHEMA, columns_of, columns)?,
        list(&CONSTRAINT_SCHEMA, constraints_of, constraints)?,
    ])
}

/// The columns that ADBC has for a column of a table; those of which nothing is known are NULL.
fn columns(columns: &[&ColumnEntry]) -> ArrowResult<Vec<ArrayRef>> {
    let fields = || columns.iter().map(|column| &column.field);
    let types: Vec<String> = fields().map(|field| type_name(field.data_type())).collect();
    let nullable = fields().map(|field| i16::from(field.is_nullable()));
    let is_nullable = fields().map(|field| match field.is_nullable() {
        true => Some("YES"),
        false => Some("NO"),
    });
    let positions = columns.iter().map(|column| column.position);
    let known: [(&str, ArrayRef); 5] = [
        (
            "column_name",
            strings(fields().map(|field| Some(field.name().as_str()))),
        ),
        (
            "ordinal_position",
            Arc::new(Int32Array::from_iter_values(positions)),
        ),
        (
            "xdbc_type_name",
            strings(types.iter().map(|name| Some(name.as_str()))),
        ),
        (
            "xdbc_nullable",
            Arc::new(Int16Array::from_iter_values(nullable)),
        ),
        ("xdbc_is_nullable", strings(is_nullable)),
    ];
    let all = fields_of(&COLUMN_SCHEMA)?.iter().map(|field| {
        let known = known.iter().find(|(name, _)| name == field.name());
        match known {
            Some((_, values)) => Arc::clone(values),
            None => new_null_array(field.data_type(), columns.len()),
        }
    });
    Ok(all.collect())
}

fn constraints(constraints: &[&ConstraintEntry]) -> ArrowResult<Vec<ArrayRef>> {
    let fields = fields_of(&CONSTRAINT_SCHEMA)?;
    let names = fields.iter().map(|field| field.data_type());
    let nulls = names.map(|kind| new_null_array(kind, constraints.len()));
    let mut all: Vec<ArrayRef> = nulls.collect();
    all[1] = strings(constraints.iter().map(|constraint| Some(constraint.kind)));
    let lengths = constraints
        .iter()
        .map(|constraint| constraint.columns.len());
    let columns = constraints
        .iter()
        .flat_map(|constraint| &constraint.columns);
    let DataType::List(item) = fields[2].data_type() else {
        return Err(not_a("list"));
    };
    all[2] = Arc::new(ListArray::try_new(
        Arc::clone(item),
        OffsetBuffer::from_lengths(lengths),
        strings(columns.map(|column| Some(column.as_str()))),
        None,
    )?);
    Ok(all)
}

/// A list for each of `lists`; NULL where there is none. `columns` makes the columns of all items.
fn list<'a, T: 'a>(
    item: &DataType,
    lists: impl Iterator<Item = Option<&'a [T]>> + Clone,
    columns: impl Fn(&[&'a T]) -> ArrowResult<Vec<ArrayRef>>,
) -> ArrowResult<ArrayRef> {
    let valid: NullBuffer = lists.clone().map(|list| list.is_some()).collect();
    let lengths = lists.clone().map(|list| list.map_or(0, <[T]>::len));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let items: Vec<&T> = lists.flatten().flatten().collect();
    let fields = fields_of(item)?.clone();
    let values = StructArray::try_new_with_length(fields, columns(&items)?, None, items.len())?;
    let field = Arc::new(Field::new_list_field(item.clone(), true));
    let list = ListArray::try_new(field, offsets, Arc::new(values), Some(valid))?;
    Ok(Arc::new(list))
}

fn fields_of(item: &DataType) -> ArrowResult<&Fields> {
    match item {
        DataType::Struct(fields) => Ok(fields),
        _ => Err(not_a("struct")),
    }
}

fn not_a(kind: &str) -> ArrowError {
    ArrowError::SchemaError(format!(
        "ADBC's schema of objects has no {kind} where there was one"
    ))
}

fn strings<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}
