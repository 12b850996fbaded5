//! Results as text or bytes: one writer per format.
//! In: the batches of one result, in order, and how they are to [`Look`]. Out: bytes to an [`Output`].
//! Invariant: all formats but the drawn tables write every row as it comes and hold at most a batch. Parquet holds a row
//! group, `column` the rows that its widths come from.
//! Not here: where the bytes go (output.rs), errors and progress.

mod types;
mod cells;
mod layout;
mod table;
mod column;
mod line;
mod rows;
mod markdown;
mod html;
mod latex;
mod delimited;
mod json;
mod literals;
mod statements;
mod columnar;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use clap::ValueEnum;
use datafusion::parquet::errors::ParquetError;

use crate::output::Output;

pub use table::{Fit, seconds};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A drawn table with names, types, row count and time
    Table,
    /// As table, without types
    Box,
    /// As box, drawn with +, - and |
    Ascii,
    /// Aligned columns without borders
    Column,
    /// A line per value, a block per row
    Line,
    /// Values with | between them, as they are
    List,
    /// Comma-separated, with a header; NULL is empty, an empty string is ""
    Csv,
    /// As csv, with tabs
    #[value(alias = "tabs")]
    Tsv,
    /// An array of objects
    Json,
    /// One JSON object per line
    #[value(aliases = ["jsonl", "jsonlines"])]
    Ndjson,
    /// A Markdown table
    Markdown,
    /// An HTML table
    Html,
    /// A LaTeX tabular
    Latex,
    /// An INSERT statement per row
    Insert,
    /// SQL literals with commas between them
    Quote,
    /// Nothing: rows are computed and dropped
    Trash,
    /// Arrow IPC: the file format with -o, the stream format on standard output
    Arrow,
    /// Parquet, compressed with zstd
    Parquet,
}

/// How a result is to look, beside its format; what a format has no use for it passes over.
#[derive(Debug, Clone)]
pub struct Look {
    /// The text of NULL, if it is not the format's own.
    pub null: Option<String>,
    /// Whether names of columns stand above the values.
    pub header: Header,
    /// What stands between values and between rows of separated values, if it is not the format's own.
    pub separators: Separators,
    /// Widths of the first columns; 0 leaves one to its values, a negative one puts them at the right.
    pub widths: Vec<isize>,
    /// The table that INSERT statements name.
    pub table: String,
}

/// Whether names of columns stand above the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// They do.
    Shown,
    /// They do not.
    Hidden,
}

/// What stands between values and between rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Separators {
    /// Between values.
    pub column: Option<String>,
    /// After each row.
    pub row: Option<String>,
}

/// The name of the table in INSERT statements if none is said.
const TABLE: &str = "table";

impl Default for Look {
    fn default() -> Self {
        Look {
            null: None,
            header: Header::Shown,
            separators: Separators::default(),
            widths: Vec::new(),
            table: TABLE.to_owned(),
        }
    }
}

impl Look {
    /// The text of NULL for a person.
    fn null(&self) -> &str {
        self.null.as_deref().unwrap_or("NULL")
    }

    fn has_header(&self) -> bool {
        self.header == Header::Shown
    }
}

impl Format {
    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }

    /// Whether it is drawn for the eye: some rows of a large result, and a footer with the time.
    pub fn is_drawn(self) -> bool {
        matches!(self, Format::Table | Format::Box | Format::Ascii)
    }

    /// What it is, in a few words.
    pub fn help(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map(|help| help.to_string()).unwrap_or_default()
    }

    /// Its name, as in `--format`.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map(|v| v.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Why a result could not be written.
#[derive(Debug)]
pub enum PrintError {
    /// The place that it goes to refused it.
    Io(io::Error),
    /// The format has no form for a value.
    Value(String),
}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        PrintError::Io(error)
    }
}

impl From<ArrowError> for PrintError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => PrintError::Io(error),
            other => {
                let message = other.to_string();
                PrintError::Value(beyond_years(&message).unwrap_or(message))
            }
        }
    }
}

/// What is said of a date or a timestamp that no calendar reaches.
fn beyond_years(message: &str) -> Option<String> {
    let (_, number) = message.split_once("Failed to convert ")?;
    let (number, of) = number.split_once(" to ")?;
    let kind = match of.contains("Timestamp") {
        true => "timestamp",
        false => "date",
    };
    Some(format!(
        "the {kind} with the number {number} is beyond the years that can be written; cast it to BIGINT"
    ))
}

impl From<ParquetError> for PrintError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(error) => PrintError::Io(*error),
                Err(other) => PrintError::Value(other.to_string()),
            },
            other => PrintError::Value(other.to_string()),
        }
    }
}

impl std::fmt::Display for PrintError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PrintError::Io(error) => write!(f, "cannot write the result: {error}"),
            PrintError::Value(message) => write!(f, "cannot write the result: {message}"),
        }
    }
}

/// Writes one result.
pub trait ResultWriter {
    /// Takes the next rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError>;
    /// Writes what has to follow the last row. `elapsed` is shown by formats with a footer, if it is given.
    fn finish(self: Box<Self>, elapsed: Option<Duration>) -> Result<(), PrintError>;
}

/// The writer of `format` for a result of this schema; writes what stands before the rows.
pub fn writer<'a>(
    format: Format,
    (look, fit): (&'a Look, Fit),
    schema: &SchemaRef,
    output: &'a mut Output,
) -> Result<Box<dyn ResultWriter + 'a>, PrintError> {
    Ok(match format {
        _ if format.is_drawn() && table::is_explanation(schema) => {
            Box::new(table::Explanation::new(output))
        }
        Format::Table => Box::new(table::Table::new(
            &table::TYPED,
            (look, fit),
            schema,
            output,
        )),
        Format::Box => Box::new(table::Table::new(&table::BOX, (look, fit), schema, output)),
        Format::Ascii => Box::new(table::Table::new(
            &table::ASCII,
            (look, fit),
            schema,
            output,
        )),
        Format::Column => Box::new(column::Column::new(look, schema, output)),
        Format::Line => Box::new(line::Line::new(look, schema, output)),
        Format::List => Box::new(delimited::Delimited::list(look, schema, output)?),
        Format::Csv => Box::new(delimited::Delimited::quoted(",", look, schema, output)?),
        Format::Tsv => Box::new(delimited::Delimited::quoted("\t", look, schema, output)?),
        Format::Json => Box::new(json::Json::<json::Objects>::new(schema, output)),
        Format::Ndjson => Box::new(json::Json::<json::ObjectPerLine>::new(schema, output)),
        Format::Markdown => Box::new(markdown::Markdown::new(look, schema, output)?),
        Format::Html => Box::new(html::Html::new(look, schema, output)?),
        Format::Latex => Box::new(latex::Latex::new(look, schema, output)?),
        Format::Insert => Box::new(statements::Statements::inserts(look, schema, output)),
        Format::Quote => Box::new(statements::Statements::values(look, schema, output)?),
        Format::Trash => Box::new(Trash),
        Format::Arrow => columnar::arrow(schema, output)?,
        Format::Parquet => Box::new(columnar::Parquet::new(schema, output)?),
    })
}

/// Drops a result.
struct Trash;

impl ResultWriter for Trash {
    fn write(&mut self, _batch: &RecordBatch) -> Result<(), PrintError> {
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}

/// The schema with names that differ: a second `id` becomes `id_1`, as keys of an object and columns of a Parquet
/// file have to be told apart.
fn with_unique_names(schema: &SchemaRef) -> SchemaRef {
    let mut seen = std::collections::HashSet::new();
    let all: std::collections::HashSet<&String> =
        schema.fields().iter().map(|f| f.name()).collect();
    let rename = |field: &Arc<Field>| {
        if seen.insert(field.name().clone()) {
            return field.clone();
        }
        let candidates = (1..).map(|n| format!("{}_{n}", field.name()));
        let mut free = candidates.filter(|name| !all.contains(name) && seen.insert(name.clone()));
        let name = free.next().unwrap_or_default();
        Arc::new(field.as_ref().clone().with_name(name))
    };
    let fields: Vec<Arc<Field>> = schema.fields().iter().map(rename).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType;

    #[test]
    fn equal_names_are_numbered_around_those_in_use() {
        let fields: Vec<Field> = ["id", "id", "id_1", "id"]
            .map(|n| Field::new(n, DataType::Int32, true))
            .into();
        let schema = with_unique_names(&Arc::new(Schema::new(fields)));
        let names: Vec<&String> = schema.fields().iter().map(|f| f.name()).collect();
        assert_eq!(names, ["id", "id_2", "id_1", "id_3"]);
    }

    #[test]
    fn years_that_cannot_be_written() {
        let error =
            ArrowError::CastError("Failed to convert 7 to datetime for Timestamp(s)".into());
        let error = PrintError::from(error).to_string();
        let expected = "the timestamp with the number 7 is beyond the years that can be written";
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("Timestamp"), "{error}");
    }
}
