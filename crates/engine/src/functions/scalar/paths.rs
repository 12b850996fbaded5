//! Paths of files in parts: `parse_path`, `parse_dirname`, `parse_dirpath`, `parse_filename`.
//!
//! In: paths, and how their parts are separated. Out: strings and lists of strings.
//! Invariant: both slashes separate, unless a separator is named. A path that begins with one has it as its first part.
//! Not here: folders and files that exist.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, CallForm, Definition, rows};
use super::kinds::{ParameterKind, list_of};
use super::strings::lists_of_strings;

const PATH: &[CallForm] = &[
    &[ParameterKind::Text],
    &[ParameterKind::Text, ParameterKind::Text],
];

const FILE_NAME: &[CallForm] = &[
    &[ParameterKind::Text],
    &[ParameterKind::Text, ParameterKind::Boolean],
    &[ParameterKind::Text, ParameterKind::Text],
    &[
        ParameterKind::Text,
        ParameterKind::Boolean,
        ParameterKind::Text,
    ],
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let all: [Definition; 4] = [
        rows(
            "parse_path",
            PATH,
            |_| Ok(list_of(DataType::Utf8View)),
            parts,
        ),
        rows("parse_dirname", PATH, text, |call| {
            of_each(call, 1, |path, separators| match path.find(separators) {
                Some(0) => &path[..1],
                Some(end) => &path[..end],
                None => "",
            })
        }),
        rows("parse_dirpath", PATH, text, |call| {
            of_each(call, 1, |path, separators| match path.rfind(separators) {
                Some(0) if path.len() == 1 => path,
                Some(end) => &path[..end],
                None => "",
            })
        }),
        rows("parse_filename", FILE_NAME, text, file_name),
    ];
    all.map(ScalarUDF::from).to_vec()
}

/// The characters that separate the parts of a row's path.
fn separators(call: &CallArguments, at: usize, row: usize) -> Result<&'static [char]> {
    let named = call.args.get(at).filter(|named| named.is_valid(row));
    match named.map(|named| named.as_string_view().value(row)) {
        None | Some("both_slash") => Ok(&['/', '\\']),
        Some("system" | "forward_slash") => Ok(&['/']),
        Some("backslash") => Ok(&['\\']),
        Some(other) => Err(call.invalid(format!(
            "'{other}' is no separator; there are 'system', 'both_slash', 'forward_slash' and 'backslash'"
        ))),
    }
}

/// A part of each path, whose separator is named by argument `at`.
fn of_each(
    call: &CallArguments,
    at: usize,
    part: impl for<'a> Fn(&'a str, &'static [char]) -> &'a str,
) -> Result<ArrayRef> {
    let paths = call.strings(0);
    call.each::<StringViewArray, _>(|row| {
        let separators = separators(call, at, row)?;
        Ok(Some(part(paths.value(row), separators).to_owned()))
    })
}

fn parts(call: &CallArguments) -> Result<ArrayRef> {
    lists_of_strings(call, |row, parts| {
        let path = call.strings(0).value(row);
        let separators = separators(call, 1, row)?;
        if path.starts_with(separators) {
            parts.push(path[..1].to_owned());
        }
        let named = path.split(separators).filter(|part| !part.is_empty());
        parts.extend(named.map(str::to_owned));
        Ok(())
    })
}

fn file_name(call: &CallArguments) -> Result<ArrayRef> {
    let flag = call
        .args
        .get(1)
        .filter(|flag| flag.data_type() == &DataType::Boolean);
    let at = if flag.is_some() { 2 } else { 1 };
    let paths = call.strings(0);
    call.each::<StringViewArray, _>(|row| {
        let (path, separators) = (paths.value(row), separators(call, at, row)?);
        let name = path.rsplit(separators).next().unwrap_or(path);
        let trims = flag.is_some_and(|flag| flag.as_boolean().value(row));
        let name = match name.rsplit_once('.') {
            Some((stem, _)) if trims => stem,
            _ => name,
        };
        Ok(Some(name.to_owned()))
    })
}
