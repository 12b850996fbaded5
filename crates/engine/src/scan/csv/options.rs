//! What a call says about CSV files.
//!
//! In: the options of `read_csv`, as DuckDB names them.
//! Out: the same as a value.
//! Invariant: a value that is not understood, and an option that is known but not there, are errors.
//! Not here: options of text files of several formats (call.rs) and of files of all (file_options.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{Array, Expr};
use encoding_rs::Encoding;

use crate::scan::file_options::{flag, text_of, typed_names};
use crate::scan::sql_types::sql_type;
use grouse_text::csv::records::Misfit;
use grouse_text::csv::values::{DateForm, pattern_of};

/// The options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CsvOptions {
    pub(crate) types: Types,
    /// Names of the first columns.
    pub(crate) names: Vec<String>,
    /// Strings that are NULL; `None` = the empty one.
    pub(crate) nulls: Option<Vec<String>>,
    /// Columns in which these strings are themselves.
    pub(crate) never_null: Vec<String>,
    /// Names of the file are made words that need no quotes.
    pub(crate) normalizes_names: bool,
    /// Lines above the first record; `None` = as the file looks.
    pub(crate) skip: Option<usize>,
    /// No byte is a quote.
    pub(crate) unquoted: bool,
    pub(crate) all_text: bool,
    pub(crate) date: Option<DateForm>,
    pub(crate) timestamp: Option<DateForm>,
    /// Before the fraction of a number; `None` = as the file looks.
    pub(crate) decimal: Option<u8>,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) ignores_errors: Option<bool>,
    /// Records that are left out are kept; `None` = if another option of theirs is there.
    pub(crate) stores_rejects: Option<bool>,
    pub(crate) rejects_table: Option<String>,
    pub(crate) rejects_scan: Option<String>,
    pub(crate) rejects_limit: Option<usize>,
    /// What is not said is looked for in the file; `None` = yes.
    pub(crate) detection: Option<bool>,
    pub(crate) record_bytes_max: Option<usize>,
    pub(crate) line_end: Option<u8>,
}

/// Where records are kept that are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RejectOptions {
    /// The table of errors.
    pub(crate) errors: String,
    /// The table of files.
    pub(crate) scans: String,
    /// Errors of a file that are kept.
    pub(crate) limit: usize,
}

/// Types that are said instead of found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Types {
    #[default]
    Found,
    /// Of some columns.
    Named(Vec<(String, DataType)>),
    /// Of the first columns.
    Listed(Vec<DataType>),
    /// All columns with their names.
    All(Vec<(String, DataType)>),
}

impl CsvOptions {
    /// Takes an option; `Ok(false)` = it is none of these, `Err` = what it must be.
    pub(crate) fn set(&mut self, option: &str, value: &Expr) -> Result<bool, String> {
        match option {
            "types" | "dtypes" | "column_types" => {
                self.types = match value {
                    Expr::Array(_) => Types::Listed(listed_types(value)?),
                    _ => Types::Named(typed_names(value)?),
                }
            }
            "columns" => self.types = Types::All(typed_names(value)?),
            "names" | "column_names" => self.names = list(value)?,
            "nullstr" | "null" => {
                self.nulls = Some(match value {
                    Expr::Array(_) => list(value)?,
                    _ => vec![text_of(value)?],
                })
            }
            "force_not_null" => self.never_null = list(value)?,
            "normalize_names" => self.normalizes_names = flag(value)?,
            "skip" => self.skip = Some(number(value)?),
            "max_line_size" | "maximum_line_size" => self.record_bytes_max = Some(number(value)?),
            "all_varchar" => self.all_text = flag(value)?,
            "ignore_errors" => self.ignores_errors = Some(flag(value)?),
            "store_rejects" => self.stores_rejects = Some(flag(value)?),
            "rejects_table" => self.rejects_table = Some(name(value)?),
            "rejects_scan" => self.rejects_scan = Some(name(value)?),
            "rejects_limit" => self.rejects_limit = Some(number(value)?),
            "auto_detect" => self.detection = Some(flag(value)?),
            "dateformat" | "date_format" => self.date = Some(pattern(value)?),
            "timestampformat" | "timestamp_format" => self.timestamp = Some(pattern(value)?),
            "decimal_separator" => {
                self.decimal = match text_of(value)?.as_str() {
                    "." => Some(b'.'),
                    "," => Some(b','),
                    _ => return Err("'.' or ','".to_string()),
                }
            }
            "encoding" => self.encoding = encoding(&text_of(value)?)?,
            "new_line" => {
                self.line_end = match text_of(value)?.as_str() {
                    "\\n" | "\n" | "\\r\\n" | "\r\n" => Some(b'\n'),
                    "\\r" | "\r" => Some(b'\r'),
                    _ => return Err("'\\n', '\\r\\n' or '\\r'".to_string()),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is wrong with options that do not fit each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let of_rejects = [
            ("rejects_table", self.rejects_table.is_some()),
            ("rejects_scan", self.rejects_scan.is_some()),
            ("rejects_limit", self.rejects_limit.is_some()),
        ];
        let Some(rejects) = self.rejects() else {
            let mut alone = of_rejects.iter().filter(|(_, is_there)| *is_there);
            return match alone.next() {
                Some((option, _)) => Err(format!("{option} needs store_rejects => true")),
                None => Ok(()),
            };
        };
        if self.ignores_errors == Some(false) {
            return Err(
                "store_rejects leaves rows out, so ignore_errors cannot be false".to_string(),
            );
        }
        match rejects.errors.eq_ignore_ascii_case(&rejects.scans) {
            true => Err("rejects_table and rejects_scan must be two names".to_string()),
            false => Ok(()),
        }
    }

    /// Where records go that are left out, if they are kept.
    pub(crate) fn rejects(&self) -> Option<RejectOptions> {
        let has_names = self.rejects_table.is_some() || self.rejects_scan.is_some();
        if !self.stores_rejects.unwrap_or(has_names) {
            return None;
        }
        let name = |given: &Option<String>, usual: &str| {
            given.clone().unwrap_or_else(|| usual.to_string())
        };
        Some(RejectOptions {
            errors: name(&self.rejects_table, "reject_errors"),
            scans: name(&self.rejects_scan, "reject_scans"),
            limit: match self.rejects_limit {
                None | Some(0) => usize::MAX,
                Some(limit) => limit,
            },
        })
    }

    /// What becomes of a record that cannot be read.
    pub(crate) fn misfit(&self) -> Misfit {
        match self.ignores_errors {
            _ if self.rejects().is_some() => Misfit::List,
            Some(true) => Misfit::Drop,
            _ => Misfit::Fail,
        }
    }
}

/// Options of DuckDB's reader that this one does not have, and what to do instead.
pub(crate) fn missing(option: &str) -> Option<&'static str> {
    Some(match option {
        "thousands" => {
            "thousands separators are not read; read the column as VARCHAR and replace() them"
        }
        _ => return None,
    })
}

fn list(value: &Expr) -> Result<Vec<String>, String> {
    match value {
        Expr::Array(Array { elem, .. }) => elem.iter().map(text_of).collect(),
        _ => Err("a list, such as ['a', 'b']".to_string()),
    }
}

fn listed_types(value: &Expr) -> Result<Vec<DataType>, String> {
    list(value)?.iter().map(|name| sql_type(name)).collect()
}

fn name(value: &Expr) -> Result<String, String> {
    match text_of(value)? {
        name if name.is_empty() => Err("the name of a table".to_string()),
        name => Ok(name),
    }
}

fn number(value: &Expr) -> Result<usize, String> {
    text_of(value)?
        .parse()
        .map_err(|_| "a number from 0".to_string())
}

fn pattern(value: &Expr) -> Result<DateForm, String> {
    use chrono::format::{Item, StrftimeItems};
    let text = text_of(value)?;
    let pattern = pattern_of(&text);
    let is_bad = StrftimeItems::new(&pattern).any(|item| item == Item::Error);
    match is_bad || !pattern.contains('%') {
        true => Err("a pattern such as '%d.%m.%Y'".to_string()),
        false => Ok(DateForm::Pattern(pattern)),
    }
}

/// `None` = UTF-8, as which text is read anyway.
fn encoding(name: &str) -> Result<Option<&'static Encoding>, String> {
    let label = match name.to_ascii_lowercase().as_str() {
        "latin-1" | "latin_1" => "latin1".to_string(),
        "utf16" => "utf-16".to_string(),
        "cp1252" => "windows-1252".to_string(),
        other => other.replace('_', "-"),
    };
    let encoding = Encoding::for_label(label.as_bytes())
        .ok_or("an encoding such as 'utf-8', 'utf-16', 'latin-1' or 'windows-1252'")?;
    Ok((encoding != encoding_rs::UTF_8).then_some(encoding))
}
