//! What a call says about files of every format.
//!
//! In: the options `filename`, `hive_partitioning` and their likes. Out: the same as a value.
//! Invariant: a value that is not understood is an error that says what is expected.
//! Not here: options of one format (call.rs, json/options.rs).

use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};

use super::sql_types::sql_type;

/// The options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileOptions {
    /// The column that holds the name of each row's file.
    pub(crate) filename: Option<String>,
    /// Whether `name=value` folders are columns; `None` = where all files have the same.
    pub(crate) hive: Option<bool>,
    /// Types of such columns.
    pub(crate) hive_types: Vec<(String, DataType)>,
    /// Types of such columns are not looked for in their values: they are text.
    pub(crate) is_hive_text: bool,
    /// Whether files may have different columns; `None` = as the format has it.
    pub(crate) union_by_name: Option<bool>,
}

/// The column of the files' names.
const FILENAME: &str = "filename";

impl FileOptions {
    /// Takes an option; `Ok(false)` = it is none of files, `Err` = what it must be.
    pub(crate) fn set(&mut self, option: &str, value: &Expr) -> Result<bool, String> {
        match option {
            "filename" => {
                self.filename = match flag(value) {
                    Ok(true) => Some(FILENAME.to_string()),
                    Ok(false) => None,
                    Err(_) => Some(text_of(value)?),
                }
            }
            "hive_partitioning" => self.hive = Some(flag(value)?),
            "hive_types_autocast" => self.is_hive_text = !flag(value)?,
            "hive_types" => {
                self.hive_types = typed_names(value)?;
                self.hive = Some(true);
            }
            "union_by_name" => self.union_by_name = Some(flag(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// True or false.
pub(crate) fn flag(value: &Expr) -> Result<bool, String> {
    match text_of(value)?.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("true or false".to_string()),
    }
}

/// The text of a literal, without quotes.
pub(crate) fn text_of(value: &Expr) -> Result<String, String> {
    match value {
        Expr::Value(value) => match &value.value {
            Value::Boolean(flag) => Ok(flag.to_string()),
            Value::Number(number, _) => Ok(number.to_string()),
            other => other.clone().into_string().ok_or_else(not_a_literal),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => text_of(expr).map(|number| format!("-{number}")),
        Expr::Identifier(ident) => Ok(ident.value.clone()),
        _ => Err(not_a_literal()),
    }
}

fn not_a_literal() -> String {
    "a literal".to_string()
}

/// Names with types: `{'a': 'BIGINT', b: DATE}`.
pub(crate) fn typed_names(value: &Expr) -> Result<Vec<(String, DataType)>, String> {
    let Expr::Dictionary(entries) = value else {
        return Err("names with types, such as {'a': 'BIGINT', 'b': 'DATE'}".to_string());
    };
    let typed = entries.iter().map(|entry| {
        let kind = match text_of(&entry.value) {
            Ok(text) => sql_type(&text)?,
            Err(_) => sql_type(&entry.value.to_string())?,
        };
        Ok((entry.key.value.clone(), kind))
    });
    typed.collect()
}
