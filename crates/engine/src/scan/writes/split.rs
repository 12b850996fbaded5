//! Rows by the values that name their folders.
//!
//! In: batches, the columns of PARTITION_BY. Out: for each combination of values its folder and its rows.
//! Invariant: different values have different folders. NULL has the name that Hive gives it, an empty string none.
//! What a path could not hold or would take for something else is written as % and two digits.
//! Not here: files (sink.rs).

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Schema};

use crate::error::{Error, Result};

/// The folder of rows whose value is NULL.
const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";

/// Cuts batches by the values of some columns.
#[derive(Debug)]
pub(super) struct Splitter {
    names: Vec<String>,
    columns: Vec<usize>,
    written: Vec<usize>,
}

/// A combination of values.
pub(super) type PartitionValues = Vec<Option<String>>;

impl Splitter {
    /// By these columns; `keep` says whether files have them too.
    pub(super) fn new(
        names: Vec<String>,
        schema: &Schema,
        keep: PartitionColumns,
    ) -> Result<Splitter> {
        let mut columns = Vec::with_capacity(names.len());
        for name in &names {
            let column = schema
                .index_of(name)
                .map_err(|_| Error::Internal(format!("no column {name} to partition by")))?;
            check_type(name, schema.field(column).data_type())?;
            columns.push(column);
        }
        let all = 0..schema.fields().len();
        let written: Vec<usize> = match keep {
            PartitionColumns::InFiles => all.collect(),
            PartitionColumns::InPathsOnly => {
                all.filter(|column| !columns.contains(column)).collect()
            }
        };
        if written.is_empty() {
            return Err(Error::planning(
                "all columns are in PARTITION_BY, so that none is left for the files; WRITE_PARTITION_COLUMNS keeps them",
            ));
        }
        Ok(Splitter {
            names,
            columns,
            written,
        })
    }

    /// The rows of each combination, in the order in which they come.
    pub(super) fn split(&self, batch: &RecordBatch) -> Result<Vec<(PartitionValues, RecordBatch)>> {
        let strings = self.columns.iter().map(|&column| {
            let values = batch.column(column);
            let text = match values.data_type() {
                // A day, of which Arrow would write the time as well.
                DataType::Date64 => cast(&cast(values, &DataType::Date32)?, &DataType::Utf8)?,
                _ => cast(values, &DataType::Utf8)?,
            };
            Ok(text.as_string::<i32>().clone())
        });
        let strings = strings.collect::<Result<Vec<StringArray>>>()?;
        let mut places: HashMap<Vec<Option<&str>>, usize> = HashMap::new();
        let mut parts: Vec<(PartitionValues, Vec<u32>)> = Vec::new();
        for row in 0..batch.num_rows() {
            let value = |text: &'_ StringArray| text.is_valid(row);
            let key: Vec<Option<&str>> = strings
                .iter()
                .map(|text| value(text).then(|| text.value(row)))
                .collect();
            let place = *places.entry(key).or_insert_with_key(|key| {
                let key = key.iter().map(|value| value.map(str::to_string));
                parts.push((key.collect(), Vec::new()));
                parts.len() - 1
            });
            parts[place].1.push(row as u32);
        }
        let written = batch.project(&self.written)?;
        let cut = parts.into_iter().map(|(key, rows)| {
            let rows = take_record_batch(&written, &UInt32Array::from(rows))?;
            Ok((key, rows))
        });
        cut.collect()
    }

    /// The folder of a combination, with a slash behind it.
    pub(super) fn folder(&self, key: &PartitionValues) -> String {
        let parts = self.names.iter().zip(key).map(|(name, value)| {
            let value = value.as_deref().map_or(NULL_NAME.to_string(), escaped);
            format!("{}={value}/", escaped(name))
        });
        parts.collect()
    }
}

/// Where the columns of PARTITION_BY are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartitionColumns {
    /// In the names of folders only.
    InPathsOnly,
    /// In the files, too.
    InFiles,
}

fn check_type(name: &str, kind: &DataType) -> Result<()> {
    let is_plain = match kind {
        DataType::Dictionary(_, values) => !values.is_nested(),
        DataType::Interval(_) | DataType::Duration(_) => false,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => false,
        DataType::FixedSizeBinary(_) => false,
        other => !other.is_nested(),
    };
    match is_plain {
        true => Ok(()),
        false => Err(Error::wrong_type(format!(
            "PARTITION_BY column '{name}' is {}, whose values cannot name folders; cast it to text",
            crate::error::types::type_name(kind)
        ))),
    }
}

/// A value as a part of a path; readers of Hive folders know the form.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        let is_special = character.is_ascii_control()
            || matches!(
                character,
                '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '{' | '[' | ']' | '^'
            );
        match is_special {
            true => text.push_str(&format!("%{:02X}", character as u32)),
            false => text.push(character),
        }
    }
    // A text that looks like the name of NULL is another value.
    if text == NULL_NAME {
        return text.replacen('_', "%5F", 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_have_different_folders() {
        let values = ["", "a/b", "a%2Fb", NULL_NAME, "a=b", "ä", "..", "x\n"];
        let mut names: Vec<String> = values.iter().map(|value| escaped(value)).collect();
        names.push(NULL_NAME.to_string());
        let count = names.len();
        assert!(names.iter().all(|name| !name.contains('/')));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
