//! Formats: which reader a file name asks for.
//!
//! In: a file name, options of `read_csv` and its likes.
//! Out: DataFusion's `FileFormat`.
//! Invariant: the extension decides, content never does.
//! Not here: which files there are (location.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::config::{ConfigOptions, TableParquetOptions};
use datafusion::datasource::file_format::FileFormat;

use super::csv::options::CsvOptions;
use super::ipc::CheckedArrow;
use super::json::{Json, JsonOptions};
use super::parquet::{Parquet, PlainBytes};
use crate::error::{Error, Result};

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// JSON: one object per line, or one array of objects.
    Json,
    /// Arrow IPC, file or stream.
    Arrow,
}

/// Extensions, without the compression's.
const EXTENSIONS: &[(&str, FileKind)] = &[
    ("parquet", FileKind::Parquet),
    ("parq", FileKind::Parquet),
    ("pq", FileKind::Parquet),
    ("csv", FileKind::Csv),
    ("tsv", FileKind::Tsv),
    ("tab", FileKind::Tsv),
    ("json", FileKind::Json),
    ("jsonl", FileKind::Json),
    ("ndjson", FileKind::Json),
    ("arrow", FileKind::Arrow),
    ("arrows", FileKind::Arrow),
    ("feather", FileKind::Arrow),
    ("ipc", FileKind::Arrow),
];

/// Extensions of compressed text files.
const COMPRESSIONS: &[(&str, CompressionTypeVariant)] = &[
    ("gz", CompressionTypeVariant::GZIP),
    ("gzip", CompressionTypeVariant::GZIP),
    ("zst", CompressionTypeVariant::ZSTD),
    ("zstd", CompressionTypeVariant::ZSTD),
    ("bz2", CompressionTypeVariant::BZIP2),
    ("xz", CompressionTypeVariant::XZ),
];

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Parquet => "Parquet",
            FileKind::Csv => "CSV",
            FileKind::Tsv => "TSV",
            FileKind::Json => "JSON",
            FileKind::Arrow => "Arrow IPC",
        })
    }
}

/// How a file is to be read: the kind and what the name says about compression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Kind.
    pub kind: FileKind,
    /// Compression of the whole file; Parquet and Arrow compress inside.
    pub compression: CompressionTypeVariant,
}

impl Reading {
    /// What the extension says; `None` = not a data file that we know.
    pub fn of_name(name: &str) -> Option<Reading> {
        // Behind the path of an address come its query and its fragment.
        let name = match name.contains("://") {
            true => name.split(['?', '#']).next().unwrap_or(name),
            false => name,
        };
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let (stem, last) = name.rsplit_once('.')?;
        match COMPRESSIONS
            .iter()
            .find(|(extension, _)| *extension == last)
        {
            Some((_, compression)) => {
                let (_, extension) = stem.rsplit_once('.')?;
                let kind = kind_of(extension)?;
                let whole_file = !matches!(kind, FileKind::Parquet | FileKind::Arrow);
                whole_file.then_some(Reading {
                    kind,
                    compression: *compression,
                })
            }
            None => {
                let compression = CompressionTypeVariant::UNCOMPRESSED;
                Some(Reading {
                    kind: kind_of(last)?,
                    compression,
                })
            }
        }
    }
}

fn kind_of(extension: &str) -> Option<FileKind> {
    EXTENSIONS
        .iter()
        .find(|(known, _)| *known == extension)
        .map(|(_, kind)| *kind)
}

/// True of the last extension of a file that one reads, a compressed one among them.
pub fn is_extension(extension: &str) -> bool {
    let compressions = COMPRESSIONS.iter().map(|(known, _)| *known);
    kind_of(extension).is_some() || compressions.into_iter().any(|known| known == extension)
}

/// All extensions, for messages.
pub fn known_extensions() -> String {
    let names: Vec<String> = EXTENSIONS
        .iter()
        .map(|(name, _)| format!(".{name}"))
        .collect();
    format!("{} (text also with .gz, .zst, .bz2, .xz)", names.join(", "))
}

/// What `read_csv` and its likes let a user say about text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextOptions {
    /// The first line holds the names; `None` = yes.
    pub header: Option<bool>,
    /// Between fields; `None` = `,` or tab, by kind.
    pub delimiter: Option<u8>,
    /// Around fields that contain a delimiter; `None` = `"`.
    pub quote: Option<u8>,
    /// Before a quote inside quotes; `None` = the quote is doubled.
    pub escape: Option<u8>,
    /// Lines that start with it are left out.
    pub comment: Option<u8>,
    /// Rows read to find the types.
    pub sample_rows: Option<usize>,
    /// Short rows are filled with NULL.
    pub null_padding: Option<bool>,
    /// Compression, whatever the name says.
    pub compression: Option<CompressionTypeVariant>,
    /// CSV.
    pub csv: CsvOptions,
    /// Parquet: what bytes without an annotation are; `None` = as DataFusion's option says.
    pub plain_bytes: Option<PlainBytes>,
    /// JSON.
    pub json: JsonOptions,
}

/// The reader for these files; `None` = CSV, whose reader needs to know its columns.
pub fn datafusion_format(
    reading: Reading,
    text: &TextOptions,
    config: &ConfigOptions,
) -> Option<Arc<dyn FileFormat>> {
    let compression = text.compression.unwrap_or(reading.compression);
    Some(match reading.kind {
        FileKind::Parquet => {
            let global = config.execution.parquet.clone();
            let options = TableParquetOptions {
                global,
                ..Default::default()
            };
            Arc::new(Parquet::new(options, text.plain_bytes))
        }
        FileKind::Arrow => Arc::new(CheckedArrow::default()),
        FileKind::Json => Arc::new(Json::new(text.json.clone(), compression.into())),
        FileKind::Csv | FileKind::Tsv => return None,
    })
}

/// One kind for all files, or an error that names two that differ.
pub fn common_reading(names: &[String]) -> Result<Reading> {
    let mut first: Option<(&String, Reading)> = None;
    for name in names {
        let reading = Reading::of_name(name).ok_or_else(|| unknown_extension(name))?;
        match first {
            None => first = Some((name, reading)),
            Some((_, known)) if known == reading => {}
            Some((other, known)) => {
                return Err(Error::invalid(
                    "files",
                    format!(
                        "'{other}' is {} and '{name}' is {}; one table reads files of one format and compression",
                        known.kind, reading.kind
                    ),
                ));
            }
        }
    }
    first
        .map(|(_, reading)| reading)
        .ok_or_else(|| Error::Internal("a table without files".to_string()))
}

/// The error for a name that no reader wants.
pub fn unknown_extension(name: &str) -> Error {
    Error::invalid(
        "file",
        format!(
            "the extension of '{name}' names no format; known are {}, or call read_parquet, read_csv, read_json or read_arrow",
            known_extensions()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions() {
        let kind = |name| Reading::of_name(name).map(|reading| reading.kind);
        assert_eq!(kind("a/b.parquet"), Some(FileKind::Parquet));
        assert_eq!(kind("B.CSV.GZ"), Some(FileKind::Csv));
        assert_eq!(kind("x.ndjson.zst"), Some(FileKind::Json));
        assert_eq!(kind("x.feather"), Some(FileKind::Arrow));
        assert_eq!(kind("https://h/a/x.csv?b=1/2.json#c"), Some(FileKind::Csv));
        for none in ["x", "x.gz", "x.txt", "x.parquet.gz", "csv", "a.csv/b"] {
            assert_eq!(kind(none), None, "{none}");
        }
    }
}
