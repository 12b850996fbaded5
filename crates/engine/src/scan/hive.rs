//! Hive folders: columns whose values stand in the names of folders.
//!
//! In: files, and what a call says about such columns. Out: the columns, and their value in each file.
//! Invariant: a value is what its folder says, read once: `07` is 7 where all values are numbers. The folder that Hive
//! writes for NULL is NULL; no file is left out.
//! Not here: which files there are (location.rs), which of them a filter leaves (table.rs).

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::datasource::physical_plan::{
    wrap_partition_type_in_dict, wrap_partition_value_in_dict,
};

use super::file_options::FileOptions;
use super::json::is_date;
use super::location::{File, Found};
use crate::error::{Error, Result};

/// The folder of the rows whose value is NULL.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// Codes of DataFusion's columns that are the same in all rows of a file have 16 bits.
const CODES_MAX: usize = 1 << 16;

/// Columns that all rows of a file have in common.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileColumns {
    /// The columns.
    pub(super) fields: Vec<Field>,
    /// One value per column for each file.
    pub(super) values: Vec<Vec<ScalarValue>>,
}

/// The columns that the names of the files' folders have.
pub(super) fn hive_columns(found: &Found, options: &FileOptions) -> Result<FileColumns> {
    let files = &found.files;
    let mut columns = FileColumns {
        fields: Vec::new(),
        values: vec![Vec::new(); files.len()],
    };
    let Some(first) = files.first().filter(|_| options.hive != Some(false)) else {
        return Ok(columns);
    };
    let names: Vec<String> = pairs(first).into_iter().map(|(name, _)| name).collect();
    let mut strings: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    for file in files {
        let pairs = pairs(file);
        let is_same = pairs.len() == names.len()
            && names
                .iter()
                .all(|name| pairs.iter().any(|(n, _)| n == name));
        if !is_same {
            // In a folder that was asked for as a whole it is a stray file, in a list the user chose both.
            return match options.hive == Some(true) || found.folder.is_some() {
                true => Err(mismatch(first, file)),
                false => Ok(columns),
            };
        }
        for (name, value) in pairs {
            let at = names.iter().position(|known| *known == name);
            strings[at.unwrap_or_default()].push(value);
        }
    }
    if strings.iter().any(|values| values.len() != files.len()) {
        return Err(twice(first));
    }
    for (name, _) in &options.hive_types {
        if !names.contains(name) {
            return Err(Error::invalid(
                "hive_types",
                format!("no folder of '{}' is named '{name}=…'", first.name),
            ));
        }
    }
    for (name, strings) in names.into_iter().zip(strings) {
        let given = options.hive_types.iter().find(|(given, _)| *given == name);
        let kind = match given {
            Some((_, kind)) => kind.clone(),
            None if options.is_hive_text => DataType::Utf8,
            None => common_type(&strings),
        };
        let mut values = Vec::with_capacity(files.len());
        for (file, text) in files.iter().zip(strings) {
            values.push(value(text, &kind).map_err(|()| {
                Error::bad_file(
                    file.name.clone(),
                    format!(
                        "its folder '{name}=…' does not name a {}, which hive_types asks for",
                        crate::error::types::type_name(&kind)
                    ),
                )
            })?);
        }
        columns.add(Field::new(name, kind, true), values);
    }
    Ok(columns)
}

impl FileColumns {
    /// One more column. Text comes as codes, so that a batch holds it once.
    fn add(&mut self, field: Field, values: Vec<ScalarValue>) {
        let is_coded = *field.data_type() == DataType::Utf8 && values.len() <= CODES_MAX;
        for (all, value) in self.values.iter_mut().zip(values) {
            all.push(match is_coded {
                true => wrap_partition_value_in_dict(value),
                false => value,
            });
        }
        let kind = field.data_type().clone();
        self.fields.push(match is_coded {
            true => field.with_data_type(wrap_partition_type_in_dict(kind)),
            false => field,
        });
    }

    /// The column of the files' names.
    pub(super) fn add_names(&mut self, name: &str, files: &[File]) {
        let values = files
            .iter()
            .map(|file| ScalarValue::from(file.name.as_str()));
        let values = values.collect();
        self.add(Field::new(name, DataType::Utf8, false), values);
    }
}

/// Names and values of a file's folders.
fn pairs(file: &File) -> Vec<(String, Option<String>)> {
    // The query of an address has no folders.
    let path = match file.name.contains("://") {
        true => file.name.split(['?', '#']).next().unwrap_or_default(),
        false => &file.name,
    };
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    decoded_pairs(&folders)
}

/// The names and values among folders.
pub(super) fn decoded_pairs(folders: &[&str]) -> Vec<(String, Option<String>)> {
    let pairs = folders.iter().filter_map(|folder| folder.split_once('='));
    pairs
        .filter(|(name, _)| !name.is_empty())
        // The name that Hive gives NULL is no value, but its escaped form is.
        .map(|(name, value)| {
            (
                decoded(name),
                (value != NULL_FOLDER).then(|| decoded(value)),
            )
        })
        .collect()
}

/// The value of a folder in a column of a type; `None` = it is not of the type.
pub(super) fn folder_value(text: Option<String>, kind: &DataType) -> Option<ScalarValue> {
    match kind {
        DataType::Dictionary(_, values) => {
            let known = value(text, values).ok()?;
            known.cast_to(kind).ok()
        }
        _ => value(text, kind).ok(),
    }
}

/// A name without the escapes that characters have which no folder's name may contain: `%2F` is `/`.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| (*byte as char).to_digit(16);
                digit(high).zip(digit(low))
            }
            _ => None,
        };
        match code.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_string())
}

/// The type that all values are of.
fn common_type(values: &[Option<String>]) -> DataType {
    let all = |is_one: fn(&str) -> bool| {
        let mut known = values.iter().flatten().peekable();
        known.peek().is_some() && known.all(|value| is_one(value))
    };
    if all(|value| value.parse::<i64>().is_ok()) {
        return DataType::Int64;
    }
    match all(is_date) {
        true => DataType::Date32,
        false => DataType::Utf8,
    }
}

fn value(text: Option<String>, kind: &DataType) -> Result<ScalarValue, ()> {
    let Some(text) = text else {
        return ScalarValue::try_from(kind).map_err(|_| ());
    };
    if *kind == DataType::Date32 && !is_date(&text) {
        return Err(());
    }
    ScalarValue::try_from_string(text, kind).map_err(|_| ())
}

fn mismatch(first: &File, file: &File) -> Error {
    let names = |file: &File| {
        let names: Vec<String> = pairs(file).into_iter().map(|(name, _)| name).collect();
        match names.is_empty() {
            true => "none".to_string(),
            false => names.join(", "),
        }
    };
    Error::bad_file(
        file.name.clone(),
        format!(
            "the columns that its folders name ({}) are not those of '{}' ({}); hive_partitioning => false reads both without",
            names(file),
            first.name,
            names(first)
        ),
    )
}

fn twice(file: &File) -> Error {
    Error::bad_file(
        file.name.clone(),
        "its folders name a column twice; hive_partitioning => false reads it without",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(values: &[&str]) -> Vec<Option<String>> {
        let known = values.iter().map(|value| value.to_string());
        known
            .map(|value| (value != NULL_FOLDER).then_some(value))
            .collect()
    }

    #[test]
    fn types() {
        for (values, expected) in [
            (&["07", "12", NULL_FOLDER][..], DataType::Int64),
            (&["2024-01-31"], DataType::Date32),
            (&["2024-02-30"], DataType::Utf8),
            (&["7", "x"], DataType::Utf8),
            (&[""], DataType::Utf8),
            (&[NULL_FOLDER], DataType::Utf8),
        ] {
            assert_eq!(common_type(&strings(values)), expected, "{values:?}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(decoded("a%2Fb%20c"), "a/b c");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(decoded("%ff"), "%ff");
    }
}
