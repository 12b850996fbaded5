//! `sniff_csv('file')`: how a CSV file is read, as a table of one row.
//!
//! In: what is known of the file. Out: the table; its columns are DuckDB's.
//! Invariant: the call in the last column reads the file in the same way.
//! Not here: how it is found out (dialect.rs, guess.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;

use super::dialect::Header;
use super::table::CsvTable;
use crate::error::Result;
use crate::error::types::type_name;
use grouse_text::csv::values::DateForm;

/// DuckDB's word for a byte that there is not.
const NONE: &str = "(empty)";

/// The names of what is described.
const DESCRIBED: [&str; 9] = [
    "Delimiter",
    "Quote",
    "Escape",
    "NewLineDelimiter",
    "SkipRows",
    "HasHeader",
    "Columns",
    "DateFormat",
    "TimestampFormat",
];

/// The table of one row.
pub(crate) fn sniffed_table(path: &str, table: &CsvTable) -> Result<Arc<dyn TableProvider>> {
    let comment = byte(table.rules.dialect.grammar.comment);
    let mut columns: Vec<_> = DESCRIBED
        .into_iter()
        .zip(described_with(table, columns_of(table)))
        .collect();
    columns.insert(4, ("Comment", text(Some(comment))));
    columns.push(("Prompt", text(Some(call(path, table)))));
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(datafusion::common::DataFusionError::from)?;
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?))
}

/// What is described, one row of each; the columns as a text.
pub(crate) fn described(table: &CsvTable) -> Vec<ArrayRef> {
    described_with(table, text(Some(types_of(table)))).into()
}

fn described_with(table: &CsvTable, columns: ArrayRef) -> [ArrayRef; 9] {
    let dialect = &table.rules.dialect;
    let grammar = &dialect.grammar;
    let line_end = if grammar.line_end == b'\r' {
        "\\r"
    } else {
        "\\n"
    };
    let is_timestamp = |kind: &DataType| matches!(kind, DataType::Timestamp(..));
    [
        text(Some(byte(Some(grammar.delimiter)))),
        text(Some(byte(grammar.quote))),
        text(Some(byte(grammar.escape.or(grammar.quote)))),
        text(Some(line_end.to_string())),
        Arc::new(UInt32Array::from(vec![dialect.skip as u32])),
        Arc::new(BooleanArray::from(vec![dialect.header == Header::Names])),
        columns,
        text(pattern(table, |kind| *kind == DataType::Date32)),
        text(pattern(table, is_timestamp)),
    ]
}

fn text(text: Option<String>) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

fn byte(byte: Option<u8>) -> String {
    byte.map_or(NONE.to_string(), |byte| char::from(byte).to_string())
}

/// A list of names and types.
fn columns_of(table: &CsvTable) -> ArrayRef {
    let fields = table.schema.fields();
    let names = fields.iter().map(|field| Some(field.name().as_str()));
    let types = fields
        .iter()
        .map(|field| Some(type_name(field.data_type())));
    let parts: Fields = ["name", "type"]
        .map(|name| Field::new(name, DataType::Utf8, true))
        .to_vec()
        .into();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(names.collect::<StringArray>()),
        Arc::new(types.collect::<StringArray>()),
    ];
    let item = Arc::new(Field::new_list_field(DataType::Struct(parts.clone()), true));
    let items = Arc::new(StructArray::new(parts, columns, None));
    let offsets = OffsetBuffer::from_lengths([fields.len()]);
    Arc::new(ListArray::new(item, offsets, items, None))
}

/// How the first column of such a type is written, where that is not as usual.
fn pattern(table: &CsvTable, is_wanted: impl Fn(&DataType) -> bool) -> Option<String> {
    let columns = table.schema.fields().iter().zip(&table.rules.dates);
    let mut forms =
        columns.filter(|(field, form)| is_wanted(field.data_type()) && **form != DateForm::ISO);
    forms.next().map(|(_, form)| form.pattern())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names and types as an option of the call.
fn types_of(table: &CsvTable) -> String {
    let fields = table.schema.fields().iter();
    let types = fields.map(|field| {
        let kind = type_name(field.data_type());
        format!("{}: {}", quoted(field.name()), quoted(&kind))
    });
    format!("{{{}}}", types.collect::<Vec<_>>().join(", "))
}

/// The call that reads the file in the same way.
fn call(path: &str, table: &CsvTable) -> String {
    let grammar = &table.rules.dialect.grammar;
    let byte = |byte: Option<u8>| match byte {
        Some(b'\t') => "'\\t'".to_string(),
        Some(byte) => quoted(&char::from(byte).to_string()),
        None => "''".to_string(),
    };
    let mut options = vec![
        format!("delim => {}", byte(Some(grammar.delimiter))),
        format!("quote => {}", byte(grammar.quote)),
        format!("skip => {}", table.rules.dialect.skip),
        format!("header => {}", table.rules.dialect.header == Header::Names),
        format!("columns => {}", types_of(table)),
    ];
    let date = pattern(table, |kind| *kind == DataType::Date32);
    options.extend(date.map(|date| format!("dateformat => {}", quoted(&date))));
    if table.rules.forms.decimal == b',' {
        options.push("decimal_separator => ','".to_string());
    }
    format!("FROM read_csv({}, {})", quoted(path), options.join(", "))
}
