//! Text schemas: column names and types of CSV files, from their beginnings.
//!
//! In: the first bytes of every file of a table.
//! Out: one schema; types are widened until every sampled row fits.
//! Invariant: all files have the same columns in the same order, because the host reads CSV by position.
//! Not here: JSON (json.rs). The host's CSV inference is not used: it cuts files at line ends inside
//! quotes where a read crosses 8 KiB.

use datafusion::arrow::csv::reader::Format;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::format::{Kind, TextOptions};
use super::location::File;
use super::quotes::Quotes;
use crate::error::{Error, Result};

/// Rows of one table that are read to find its column types; as many as DuckDB reads.
pub const SAMPLE_ROWS: usize = 20_480;

/// What one file's beginning says.
struct Columns {
    names: Vec<String>,
    types: Vec<DataType>,
}

/// The schema of CSV files from `(file, its first bytes, whether these are the whole file)`.
pub(crate) fn csv_schema(
    kind: Kind,
    options: &TextOptions,
    beginnings: &[(&File, Vec<u8>, Extent)],
) -> Result<SchemaRef> {
    let format = csv_format(kind, options);
    let mut rows_left = options.sample_rows.unwrap_or(SAMPLE_ROWS);
    let mut all: Option<(&File, Columns)> = None;
    for (file, bytes, extent) in beginnings {
        let bytes = whole_records(bytes, Quotes::new(kind, options), *extent);
        let (schema, rows) = format
            .infer_schema(bytes, Some(rows_left.max(1)))
            .map_err(|error| super::location::named(Error::from(error), &file.name))?;
        rows_left = rows_left.saturating_sub(rows);
        let one = columns(&schema);
        match &mut all {
            None => all = Some((file, one)),
            Some((first, all)) => widen(first, all, file, one, options)?,
        }
    }
    let columns = all
        .map(|(_, columns)| columns)
        .ok_or_else(|| Error::Internal("a table without files".to_string()))?;
    let fields = columns
        .names
        .into_iter()
        .zip(columns.types)
        .map(|(name, kind)| match kind {
            // Nothing but empty fields so far: text takes whatever comes.
            DataType::Null => Field::new(name, DataType::Utf8, true),
            kind => Field::new(name, kind, true),
        });
    Ok(std::sync::Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// Whether the bytes at hand are all of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The whole file.
    Whole,
    /// The file goes on.
    Part,
}

pub(crate) fn csv_format(kind: Kind, options: &TextOptions) -> Format {
    let delimiter = if kind == Kind::Tsv { b'\t' } else { b',' };
    let mut format = Format::default()
        .with_header(options.header.unwrap_or(true))
        .with_delimiter(options.delimiter.unwrap_or(delimiter))
        .with_quote(options.quote.unwrap_or(b'"'))
        .with_truncated_rows(options.null_padding.unwrap_or(false));
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if let Some(comment) = options.comment {
        format = format.with_comment(comment);
    }
    format
}

/// The bytes up to the last line end outside quotes.
fn whole_records(bytes: &[u8], mut quotes: Quotes, extent: Extent) -> &[u8] {
    if extent == Extent::Whole {
        return bytes;
    }
    let mut end = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if quotes.step(byte).is_line_start() {
            end = at + 1;
        }
    }
    &bytes[..end]
}

fn columns(schema: &Schema) -> Columns {
    let fields = schema.fields();
    Columns {
        names: fields.iter().map(|field| field.name().clone()).collect(),
        types: fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect(),
    }
}

fn widen(
    first: &File,
    all: &mut Columns,
    file: &File,
    one: Columns,
    options: &TextOptions,
) -> Result<()> {
    let has_names = options.header.unwrap_or(true);
    let same = one.types.len() == all.types.len() && (!has_names || one.names == all.names);
    if !same {
        return Err(Error::Format {
            path: file.name.clone(),
            line: Some(1),
            message: format!(
                "its columns ({}) are not those of '{}' ({}); CSV files of one table must agree",
                one.names.join(", "),
                first.name,
                all.names.join(", ")
            ),
        });
    }
    for (all, one) in all.types.iter_mut().zip(one.types) {
        *all = common_type(all, &one);
    }
    Ok(())
}

fn common_type(a: &DataType, b: &DataType) -> DataType {
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (DataType::Null, other) | (other, DataType::Null) => other.clone(),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => {
            DataType::Float64
        }
        (DataType::Date32, DataType::Timestamp(unit, zone))
        | (DataType::Timestamp(unit, zone), DataType::Date32) => {
            DataType::Timestamp(*unit, zone.clone())
        }
        _ => DataType::Utf8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_outside_quotes() {
        let part = |bytes: &'static [u8]| {
            let quotes = Quotes::new(Kind::Csv, &TextOptions::default());
            whole_records(bytes, quotes, Extent::Part)
        };
        assert_eq!(part(b"a,b\n1,\"x\ny\"\n2,\"z\n"), b"a,b\n1,\"x\ny\"\n");
        assert_eq!(part(b"a,b\n5\" tall,1\n2,z\n3"), b"a,b\n5\" tall,1\n2,z\n");
        assert_eq!(part(b"no end"), b"");
        let quotes = Quotes::new(Kind::Csv, &TextOptions::default());
        assert_eq!(whole_records(b"no end", quotes, Extent::Whole), b"no end");
    }

    #[test]
    fn types_widen() {
        assert_eq!(
            common_type(&DataType::Int64, &DataType::Float64),
            DataType::Float64
        );
        assert_eq!(
            common_type(&DataType::Null, &DataType::Boolean),
            DataType::Boolean
        );
        assert_eq!(
            common_type(&DataType::Int64, &DataType::Boolean),
            DataType::Utf8
        );
    }
}
