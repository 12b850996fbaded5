//! Calls: `read_parquet('…')`, `read_csv('…', delim => ';')` and their likes as a value.
//!
//! In: a table function of the parsed SQL.
//! Out: [`FileCall`]: which paths, which format, which options.
//! Invariant: an argument that is not understood is an error, never ignored.
//! Not here: the files themselves.

use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::sql::sqlparser::ast::{Array, Expr, FunctionArg, FunctionArgExpr, Value};

use super::csv::options::missing;
use super::file_options::{FileOptions, text_of};
use super::format::{FileKind, TextOptions};
use super::parquet::PlainBytes;
use crate::error::{Error, Result, nearest_names};

/// A call of one of the file functions.
#[derive(Debug, Clone, PartialEq)]
pub struct FileCall {
    /// Files, globs, folders or addresses.
    pub paths: Vec<String>,
    /// Format; `None` = as the extensions say.
    pub kind: Option<FileKind>,
    /// What the call says about text.
    pub text: TextOptions,
    /// What the call says about files of any format.
    pub files: FileOptions,
    /// What is wanted of the files.
    pub wanted: WantedOfFiles,
}

/// What a call wants of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WantedOfFiles {
    /// Their rows.
    #[default]
    Rows,
    /// How they are read.
    Dialect,
}

/// Our file functions; the names are DuckDB's.
const FUNCTIONS: &[(&str, FileKind)] = &[
    ("read_parquet", FileKind::Parquet),
    ("parquet_scan", FileKind::Parquet),
    ("read_csv", FileKind::Csv),
    ("read_csv_auto", FileKind::Csv),
    (SNIFF, FileKind::Csv),
    ("read_tsv", FileKind::Tsv),
    ("read_json", FileKind::Json),
    ("read_json_auto", FileKind::Json),
    ("read_ndjson", FileKind::Json),
    ("read_ndjson_auto", FileKind::Json),
    ("read_arrow", FileKind::Arrow),
];

/// The function that says how a file would be read.
const SNIFF: &str = "sniff_csv";

/// Names of the file functions, for error messages.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

impl FileCall {
    /// What a plain `FROM 'path'` asks for.
    pub(crate) fn from_path(path: &str) -> FileCall {
        FileCall {
            paths: vec![path.to_string()],
            kind: None,
            text: TextOptions::default(),
            files: FileOptions::default(),
            wanted: WantedOfFiles::Rows,
        }
    }

    /// The call, or `None` if `function` is not ours.
    pub(crate) fn from_arguments(
        function: &str,
        arguments: &[FunctionArg],
    ) -> Result<Option<FileCall>> {
        let Some((_, kind)) = FUNCTIONS.iter().find(|(name, _)| *name == function) else {
            return Ok(None);
        };
        let mut call = FileCall {
            paths: Vec::new(),
            kind: Some(*kind),
            text: TextOptions::default(),
            files: FileOptions::default(),
            wanted: match function {
                SNIFF => WantedOfFiles::Dialect,
                _ => WantedOfFiles::Rows,
            },
        };
        for (index, argument) in arguments.iter().enumerate() {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) if index == 0 => {
                    call.paths = paths(function, value)?;
                }
                // `delim = ';'` parses as a comparison.
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp { left, op, right }))
                    if op.to_string() == "=" =>
                {
                    call.set(function, &left.to_string(), right)?;
                }
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => {
                    call.set(function, &name.value, value)?;
                }
                other => {
                    return Err(invalid(
                        function,
                        format!("the argument {other} is not understood"),
                    ));
                }
            }
        }
        let fits = call.text.csv.check();
        fits.map_err(|message| invalid(function, message))?;
        match call.paths.is_empty() {
            true => Err(invalid(
                function,
                "the first argument must be a path or a list of paths".to_string(),
            )),
            false => Ok(Some(call)),
        }
    }

    /// The name under which the table of this call is known to DataFusion; equal calls have equal names.
    pub(crate) fn table_name(&self) -> String {
        let mut name = self.paths.join(", ");
        if let Some(kind) = self.kind {
            name = format!("{kind} {name}");
        }
        if self.wanted == WantedOfFiles::Dialect {
            name = format!("dialect of {name}");
        }
        if self.text != TextOptions::default() {
            name.push_str(&format!(" {:?}", self.text));
        }
        if self.files != FileOptions::default() {
            name.push_str(&format!(" {:?}", self.files));
        }
        name
    }

    /// Takes an option of all files or of one format.
    fn set_elsewhere(&mut self, option: &str, value: &Expr) -> Result<bool, String> {
        let is_json = self.kind == Some(FileKind::Json);
        let is_csv = matches!(self.kind, Some(FileKind::Csv | FileKind::Tsv));
        Ok(self.files.set(option, value)?
            || is_json && self.text.json.set(option, value)?
            || is_csv && self.text.csv.set(option, value)?)
    }

    fn set(&mut self, function: &str, option: &str, value: &Expr) -> Result<()> {
        if self
            .set_elsewhere(&option.to_ascii_lowercase(), value)
            .map_err(|expected| not_so(function, option, &expected, value))?
        {
            return Ok(());
        }
        let not_so = |expected: String| not_so(function, option, &expected, value);
        let text = text_of(value).map_err(not_so)?;
        self.set_text(function, option, &text)
    }

    /// Takes an option whose value is one word.
    fn set_text(&mut self, function: &str, option: &str, text: &str) -> Result<()> {
        let wrong = |expected: &str| {
            invalid(
                function,
                format!("{option} must be {expected}, not '{text}'"),
            )
        };
        let byte = || match text.as_bytes() {
            [byte] => Ok(*byte),
            b"\\t" => Ok(b'\t'),
            _ => Err(wrong("one ASCII character")),
        };
        let flag = || match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        let is_csv = matches!(self.kind, Some(FileKind::Csv | FileKind::Tsv));
        let is_text = is_csv || self.kind == Some(FileKind::Json);
        match option.to_ascii_lowercase().as_str() {
            "header" if is_csv => self.text.header = Some(flag()?),
            "delim" | "sep" | "delimiter" if is_csv => self.text.delimiter = Some(byte()?),
            "quote" if is_csv && text.is_empty() => self.text.csv.unquoted = true,
            "quote" if is_csv => self.text.quote = Some(byte()?),
            "escape" if is_csv && text.is_empty() => self.text.escape = None,
            "escape" if is_csv => self.text.escape = Some(byte()?),
            "comment" if is_csv && text.is_empty() => self.text.comment = None,
            "comment" if is_csv => self.text.comment = Some(byte()?),
            // Found out for every file, whatever is said.
            "newlines_in_values" | "parallel" if is_csv => drop(flag()?),
            "null_padding" if is_csv => self.text.null_padding = Some(flag()?),
            "sample_size" if is_csv => {
                let rows = match text {
                    "-1" => Ok(usize::MAX),
                    rows => rows.parse(),
                };
                let rows = rows.map_err(|_| wrong("a number of rows, or -1 for all"))?;
                self.text.sample_rows = Some(rows);
            }
            "compression" if is_text => {
                self.text.compression =
                    Some(compression(text).ok_or_else(|| wrong("none, gzip, zstd, bz2 or xz"))?);
            }
            "binary_as_string" if self.kind == Some(FileKind::Parquet) => {
                self.text.plain_bytes = Some(match flag()? {
                    true => PlainBytes::Text,
                    false => PlainBytes::Bytes,
                });
            }
            other => {
                let reason = missing(other)
                    .filter(|_| is_csv)
                    .map(|reason| format!(": {reason}"))
                    .or_else(|| meant(other).map(|meant| format!("; did you mean {meant}?")));
                return Err(invalid(
                    function,
                    format!(
                        "there is no option '{option}'{}",
                        reason.unwrap_or_default()
                    ),
                ));
            }
        }
        Ok(())
    }
}

fn paths(function: &str, value: &Expr) -> Result<Vec<String>> {
    let not_a_path = || {
        invalid(
            function,
            format!("{value} is not a path or a list of paths"),
        )
    };
    let is_number = |value: &Expr| matches!(value, Expr::Value(value) if matches!(value.value, Value::Number(..) | Value::Boolean(_)));
    let literal = |value: &Expr| literal(value).filter(|_| !is_number(value));
    match value {
        Expr::Array(Array { elem, .. }) => elem
            .iter()
            .map(|path| literal(path).ok_or_else(not_a_path))
            .collect(),
        other => literal(other).map(|path| vec![path]).ok_or_else(not_a_path),
    }
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Boolean(flag) => Some(flag.to_string()),
            Value::Number(number, _) => Some(number.to_string()),
            other => other.clone().into_string(),
        },
        Expr::Identifier(ident) if ident.quote_style == Some('"') => Some(ident.value.clone()),
        _ => None,
    }
}

fn compression(text: &str) -> Option<CompressionTypeVariant> {
    match text.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => Some(CompressionTypeVariant::UNCOMPRESSED),
        "gzip" | "gz" => Some(CompressionTypeVariant::GZIP),
        "zstd" | "zst" => Some(CompressionTypeVariant::ZSTD),
        "bz2" | "bzip2" => Some(CompressionTypeVariant::BZIP2),
        "xz" => Some(CompressionTypeVariant::XZ),
        _ => None,
    }
}

/// Options that may be misspelt.
const OPTIONS: &[&str] = &[
    "header",
    "delim",
    "quote",
    "escape",
    "comment",
    "null_padding",
    "sample_size",
    "compression",
    "binary_as_string",
    "columns",
    "types",
    "names",
    "skip",
    "nullstr",
    "dateformat",
    "timestampformat",
    "decimal_separator",
    "encoding",
    "new_line",
    "ignore_errors",
    "store_rejects",
    "rejects_table",
    "rejects_scan",
    "rejects_limit",
    "max_line_size",
    "all_varchar",
    "filename",
    "hive_partitioning",
    "hive_types",
    "union_by_name",
    "format",
    "records",
    "maximum_depth",
    "maximum_object_size",
];

fn meant(option: &str) -> Option<String> {
    nearest_names(option, OPTIONS.iter().copied())
        .into_iter()
        .next()
}

/// The error of an option whose value is `value`; a type that there is not says so itself.
fn not_so(function: &str, option: &str, expected: &str, value: &Expr) -> Error {
    let message = match expected.ends_with("is no type") {
        true => format!("{option}: {expected}"),
        false => format!("{option} must be {expected}, not {value}"),
    };
    invalid(function, message)
}

fn invalid(function: &str, message: String) -> Error {
    Error::invalid(format!("argument of {function}"), message)
}
