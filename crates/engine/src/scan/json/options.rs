//! What a call says about JSON.
//!
//! In: the options of `read_json`. Out: the same as a value.
//! Invariant: an option that is not understood is an error that says what is.
//! Not here: options of all files (scan/file_options.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::Expr;

use crate::scan::file_options::{flag, text_of, typed_names};
use crate::scan::text::RECORD_BYTES_MAX;
use grouse_text::json::splitter::Layout;

/// The options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonOptions {
    /// Records that are looked at to find the columns; `usize::MAX` = all.
    pub(super) sample_rows: Option<usize>,
    /// The columns and their types.
    pub(super) columns: Option<Vec<(String, DataType)>>,
    /// How records lie in a file.
    pub(super) layout: Option<Layout>,
    /// Whether records are objects whose fields are columns.
    pub(super) records: Option<bool>,
    /// Values that lie deeper are text.
    pub(super) depth_max: Option<usize>,
    /// Records that are no JSON are left out, values that do not fit are NULL.
    pub(super) ignores_errors: bool,
    /// Bytes that a record may have.
    pub(super) record_bytes_max: Option<usize>,
}

impl JsonOptions {
    pub(super) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max.unwrap_or(RECORD_BYTES_MAX)
    }

    /// Takes an option; `Ok(false)` = it is none of JSON, `Err` = what it must be.
    pub(crate) fn set(&mut self, option: &str, value: &Expr) -> Result<bool, String> {
        match option {
            "sample_size" | "sample_rows" => {
                let rows = text_of(value)?;
                self.sample_rows = Some(match rows.as_str() {
                    "-1" => usize::MAX,
                    rows => rows
                        .parse()
                        .ok()
                        .filter(|rows| *rows > 0)
                        .ok_or("a number of rows from 1 on, or -1 for all")?,
                });
            }
            "maximum_depth" => {
                let depth = text_of(value)?;
                self.depth_max = match depth.as_str() {
                    "-1" => None,
                    depth => Some(depth.parse().map_err(|_| "a depth from 0 on, or -1")?),
                };
            }
            "maximum_object_size" => {
                let bytes = text_of(value)?.parse();
                let bytes = bytes.ok().filter(|bytes| *bytes > 0);
                self.record_bytes_max = Some(bytes.ok_or("a number of bytes from 1 on")?);
            }
            "format" => {
                self.layout = match text_of(value)?.to_ascii_lowercase().as_str() {
                    "auto" => None,
                    "newline_delimited" | "nd" | "ndjson" => Some(Layout::Lines),
                    "array" | "unstructured" => Some(Layout::Values),
                    _ => {
                        return Err("auto, newline_delimited, array or unstructured".to_string());
                    }
                };
            }
            "records" => {
                self.records = match text_of(value)?.to_ascii_lowercase().as_str() {
                    "auto" => None,
                    _ => Some(flag(value)?),
                };
            }
            "ignore_errors" => self.ignores_errors = flag(value)?,
            "columns" => self.columns = Some(typed_names(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
