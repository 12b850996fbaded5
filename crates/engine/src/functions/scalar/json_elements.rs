//! The elements of JSON as rows: what `json_each` and `json_tree` have in FROM.
//!
//! In: strings of JSON, perhaps with a path to the part that is meant. Out: a list of structs for each, with DuckDB's fields.
//! Invariant: ids count names and values of the whole text in their order, from 0 on, so that they do not depend on the path.
//! Not here: the tables that are made of it (sql/clauses/json_tables.rs).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListArray, StringViewArray, StructArray, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::value::RawValue;

use super::definition::{CallArguments, CallForm, rows};
use super::json::type_of;
use super::json_text::{JsonShape, Path, parsed, shape, write_compact, write_text};
use super::kinds::{ParameterKind, list_of};

/// The elements of an array or an object.
pub(crate) const JSON_EACH: &str = "json each of";

/// A value and all that is in it.
pub(crate) const JSON_TREE: &str = "json tree of";

/// Names of the fields.
pub(crate) const JSON_ELEMENT: [&str; 8] = [
    "key", "value", "type", "atom", "id", "parent", "fullkey", "path",
];

const FORMS: &[CallForm] = &[
    &[ParameterKind::Text],
    &[ParameterKind::Text, ParameterKind::Text],
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let lists = |_: &[DataType]| Ok(list_of(DataType::Struct(fields())));
    let each = rows(JSON_EACH, FORMS, lists, |call| {
        elements(call, JsonElements::each)
    });
    let tree = rows(JSON_TREE, FORMS, lists, |call| {
        elements(call, JsonElements::tree)
    });
    vec![ScalarUDF::from(each), ScalarUDF::from(tree)]
}

fn fields() -> Fields {
    let fields = JSON_ELEMENT.iter().map(|&name| {
        let of = match name {
            "id" | "parent" => DataType::UInt64,
            _ => DataType::Utf8View,
        };
        Field::new(name, of, true)
    });
    fields.collect()
}

/// Levels of nesting that are followed: each of them is walked by a call of its own, and read once more by those around it.
const DEPTH_MAX: usize = 1_000;

/// One element.
struct JsonElement<'a> {
    key: Option<String>,
    value: &'a RawValue,
    id: u64,
    parent: Option<u64>,
    fullkey: String,
    path: String,
}

#[derive(Default)]
struct JsonElements<'a>(Vec<JsonElement<'a>>);

fn elements<'a>(
    call: &'a CallArguments,
    add: fn(&mut JsonElements<'a>, JsonElement<'a>),
) -> Result<ArrayRef> {
    let nulls = call.nulls();
    let mut all = JsonElements::default();
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let before = all.0.len();
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        if !is_null && let Some(root) = root(call, row)? {
            add(&mut all, root);
        }
        lengths.push(all.0.len() - before);
    }
    let item = Arc::new(Field::new_list_field(DataType::Struct(fields()), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        item,
        offsets,
        all.columns()?,
        nulls,
    )?))
}

/// The value that is meant; `None` if the path leads nowhere.
fn root<'a>(call: &'a CallArguments, row: usize) -> Result<Option<JsonElement<'a>>> {
    let whole = parsed(call.strings(0).value(row)).map_err(|error| call.invalid(error))?;
    if measured(whole).1 > DEPTH_MAX {
        return Err(call.invalid(format!("nested in more than {DEPTH_MAX} levels")));
    }
    let Some(path) = call.args.get(1).map(|_| call.strings(1).value(row)) else {
        return Ok(Some(JsonElement::root(whole, 0, "$".to_string())));
    };
    let wrong = |why: &str| {
        call.invalid(format!(
            "the path '{path}' {why}; write e.g. '$.name' or '$.items[0]'"
        ))
    };
    let base = match path.as_bytes().first() {
        Some(b'$') => path.to_string(),
        Some(b'/') => return Err(wrong("does not begin with $")),
        _ => {
            let mut base = "$.".to_string();
            write_text(path, &mut base);
            base
        }
    };
    let steps = Path::read(&base).ok_or_else(|| wrong("is no path"))?;
    if steps.is_many() {
        return Err(wrong("leads to many parts"));
    }
    let part = steps.follow(whole).pop();
    let found = part.and_then(|part| Some((part, id_of(part, whole, 0)?)));
    Ok(found.map(|(part, id)| JsonElement::root(part, id, base)))
}

impl<'a> JsonElement<'a> {
    fn root(value: &'a RawValue, id: u64, path: String) -> JsonElement<'a> {
        JsonElement {
            key: None,
            value,
            id,
            parent: None,
            fullkey: path.clone(),
            path,
        }
    }

    /// What is directly in it; `None` of a value that has no parts.
    fn parts(&self) -> Option<Vec<JsonElement<'a>>> {
        let mut id = self.id + 1;
        let mut part = |key: String, value: &'a RawValue, place: String, names: u64| {
            let part = JsonElement {
                key: Some(key),
                value,
                id: id + names,
                parent: Some(self.id),
                fullkey: format!("{}{place}", self.fullkey),
                path: self.fullkey.clone(),
            };
            id += names + size(value);
            part
        };
        match shape(self.value) {
            JsonShape::Array(items) => {
                let items = items.into_iter().enumerate();
                let items =
                    items.map(|(at, item)| part(at.to_string(), item, format!("[{at}]"), 0));
                Some(items.collect())
            }
            JsonShape::Object(members) => {
                let members = members.into_iter().map(|(name, value)| {
                    let place = member(&name);
                    part(name.into_owned(), value, place, 1)
                });
                Some(members.collect())
            }
            _ => None,
        }
    }
}

/// How many ids a value takes: one, and those of what is in it. Each name of a member has one, too.
fn size(value: &RawValue) -> u64 {
    measured(value).0
}

/// The ids that a value takes and how deep it is nested, by one look at each byte of its text, which is sound JSON.
fn measured(value: &RawValue) -> (u64, usize) {
    let bytes = value.get().as_bytes();
    let (mut ids, mut depth, mut deepest, mut at) = (0, 0usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                (ids, depth) = (ids + 1, depth + 1);
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            b'"' => {
                ids += 1;
                while let Some(&byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += 1 + usize::from(byte == b'\\');
                }
                at += 1;
            }
            _ => {
                ids += 1;
                let ends = |byte: &u8| b",:]} \t\n\r".contains(byte);
                at += bytes[at..]
                    .iter()
                    .position(ends)
                    .unwrap_or(bytes.len() - at);
            }
        }
    }
    (ids, deepest)
}

/// The id of a part of `value`, which has this one.
fn id_of(part: &RawValue, value: &RawValue, id: u64) -> Option<u64> {
    if std::ptr::eq(part.get(), value.get()) {
        return Some(id);
    }
    let whole = JsonElement::root(value, id, String::new());
    let parts = whole.parts()?.into_iter();
    let mut parts = parts.filter(|one| contains(one.value, part));
    parts.find_map(|one| id_of(part, one.value, one.id))
}

/// Whether the text of a part lies in that of a value.
fn contains(value: &RawValue, part: &RawValue) -> bool {
    let (whole, part) = (value.get().as_bytes().as_ptr_range(), part.get().as_ptr());
    whole.contains(&part)
}

/// A step to a member, in quotes unless its name is plain.
fn member(name: &str) -> String {
    let is_plain = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut step = ".".to_string();
    match is_plain(name) {
        true => step.push_str(name),
        false => write_text(name, &mut step),
    }
    step
}

impl<'a> JsonElements<'a> {
    /// The parts of an array or an object, which have no parent; another value itself.
    fn each(&mut self, root: JsonElement<'a>) {
        match root.parts() {
            None => self.0.push(root),
            Some(parts) => self.0.extend(parts.into_iter().map(|part| JsonElement {
                parent: None,
                ..part
            })),
        }
    }

    /// The value, then what is in it.
    fn tree(&mut self, root: JsonElement<'a>) {
        let parts = root.parts();
        self.0.push(root);
        parts.into_iter().flatten().for_each(|part| self.tree(part));
    }

    fn columns(&self) -> Result<ArrayRef> {
        let text = |say: &dyn Fn(&JsonElement) -> Option<String>| -> ArrayRef {
            Arc::new(self.0.iter().map(say).collect::<StringViewArray>())
        };
        let number = |say: &dyn Fn(&JsonElement) -> Option<u64>| -> ArrayRef {
            Arc::new(self.0.iter().map(say).collect::<UInt64Array>())
        };
        let compact = |value: &RawValue| {
            let mut text = String::new();
            write_compact(value, &mut text);
            text
        };
        let is_atom = |value: &RawValue| {
            let shape = shape(value);
            !matches!(
                shape,
                JsonShape::Null | JsonShape::Array(_) | JsonShape::Object(_)
            )
        };
        let columns = vec![
            text(&|one| one.key.clone()),
            text(&|one| Some(compact(one.value))),
            text(&|one| Some(type_of(one.value).to_string())),
            text(&|one| is_atom(one.value).then(|| compact(one.value))),
            number(&|one| Some(one.id)),
            number(&|one| one.parent),
            text(&|one| Some(one.fullkey.clone())),
            text(&|one| Some(one.path.clone())),
        ];
        let columns = StructArray::try_new_with_length(fields(), columns, None, self.0.len())?;
        Ok(Arc::new(columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_values_and_names() {
        for (text, ids, depth) in [
            ("1", 1, 0),
            ("[]", 1, 1),
            (r#"{"a": [1, -2.5e3, "x]\"["], "b\\": {"c": null}}"#, 10, 2),
            ("[[true,false] , {}]", 5, 2),
        ] {
            let value = parsed(text).unwrap();
            assert_eq!(measured(value), (ids, depth), "{text}");
        }
    }
}
