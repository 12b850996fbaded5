//! JSON by its structure: `json_structure`, `json_merge_patch`, and JSON as values of a type, for `from_json`.
//!
//! In: strings of JSON; a NULL of the type that is wanted. Out: strings of JSON; values of that type.
//! Invariant: a member that is not there, and a value that does not fit, is NULL; of a name that an object has twice the last counts.
//! Not here: how a structure is written as a type (sql/short_forms/json_types.rs); parts at a path (json.rs).

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListArray, StringArray, StringViewArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use serde_json::value::RawValue;

use super::definition::{CallArguments, CallForm, rows};
use super::json_text::{JsonShape, parsed, shape, write_compact, write_text};
use super::kinds::ParameterKind;

/// The function, whose second argument is a NULL of the type.
pub(crate) const JSON_AS: &str = "from_json";

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const MANY: &[CallForm] = &[&[
        ParameterKind::Text,
        ParameterKind::Text,
        ParameterKind::Dots,
    ]];
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let all = [
        rows("json_structure", &[&[ParameterKind::Text]], text, |call| {
            call.each::<StringViewArray, _>(|row| {
                let mut text = String::new();
                Structure::of(read(call, 0, row)?).write(&mut text);
                Ok(Some(text))
            })
        }),
        rows("json_merge_patch", MANY, text, |call| {
            call.each::<StringViewArray, _>(|row| {
                let mut text = call.strings(0).value(row).to_owned();
                for at in 1..call.args.len() {
                    let of = parsed(&text).map_err(|error| call.invalid(error))?;
                    let mut merged = String::new();
                    write_merged(Some(of), read(call, at, row)?, &mut merged);
                    text = merged;
                }
                Ok(Some(text))
            })
        }),
        rows(
            JSON_AS,
            &[&[ParameterKind::Text, ParameterKind::Any]],
            |types| Ok(types[1].clone()),
            |call| {
                let strings = call.strings(0).iter();
                let values = strings.map(|text| text.map(parsed).transpose());
                let values: Vec<Option<&RawValue>> = values
                    .collect::<std::result::Result<_, _>>()
                    .map_err(|error| call.invalid(error))?;
                column(&values, call.returns)
            },
        ),
    ];
    all.into_iter().map(ScalarUDF::from).collect()
}

fn read<'a>(call: &'a CallArguments, at: usize, row: usize) -> Result<&'a RawValue> {
    parsed(call.strings(at).value(row)).map_err(|error| call.invalid(error))
}

/// What a value is made of.
#[derive(Debug, Clone, PartialEq)]
enum Structure {
    One(&'static str),
    List(Box<Structure>),
    Object(Vec<(String, Structure)>),
}

impl Structure {
    fn of(value: &RawValue) -> Structure {
        match shape(value) {
            JsonShape::Array(items) => {
                let items = items.into_iter().map(Structure::of);
                let item = items
                    .reduce(Structure::or)
                    .unwrap_or(Structure::One("NULL"));
                Structure::List(Box::new(item))
            }
            JsonShape::Object(members) => {
                let members = members.into_iter();
                let members =
                    members.map(|(name, value)| (name.into_owned(), Structure::of(value)));
                Structure::Object(members.collect())
            }
            _ => Structure::One(super::json::type_of(value)),
        }
    }

    /// What can be either.
    fn or(self, other: Structure) -> Structure {
        use Structure::{List, Object, One};
        const NUMBERS: [&str; 3] = ["UBIGINT", "BIGINT", "DOUBLE"];
        let width = |name: &str| NUMBERS.iter().position(|number| *number == name);
        match (self, other) {
            (one, other) if one == other => one,
            (One("NULL"), other) | (other, One("NULL")) => other,
            (One(a), One(b)) => match (width(a), width(b)) {
                (Some(a), Some(b)) => One(NUMBERS[a.max(b)]),
                _ => One("JSON"),
            },
            (List(a), List(b)) => List(Box::new(a.or(*b))),
            (Object(mut members), Object(others)) => {
                for (name, structure) in others {
                    match members.iter_mut().find(|(member, _)| *member == name) {
                        Some((_, known)) => *known = known.clone().or(structure),
                        None => members.push((name, structure)),
                    }
                }
                Object(members)
            }
            _ => One("JSON"),
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Structure::One(name) => write_text(name, text),
            Structure::List(item) => {
                text.push('[');
                item.write(text);
                text.push(']');
            }
            Structure::Object(members) => {
                text.push('{');
                for (at, (name, structure)) in members.iter().enumerate() {
                    text.push_str(if at > 0 { "," } else { "" });
                    write_text(name, text);
                    text.push(':');
                    structure.write(text);
                }
                text.push('}');
            }
        }
    }
}

/// RFC 7396: members of the patch take the place of others, `null` takes them away.
fn write_merged(value: Option<&RawValue>, patch: &RawValue, text: &mut String) {
    let JsonShape::Object(patches) = shape(patch) else {
        return write_compact(patch, text);
    };
    let members = match value.map(shape) {
        Some(JsonShape::Object(members)) => members,
        _ => Vec::new(),
    };
    let mut merged: Vec<(Cow<str>, Option<&RawValue>, Option<&RawValue>)> = members
        .into_iter()
        .map(|(name, value)| (name, Some(value), None))
        .collect();
    for (name, patch) in patches {
        match merged.iter_mut().find(|(member, ..)| *member == name) {
            Some((_, _, known)) => *known = Some(patch),
            None => merged.push((name, None, Some(patch))),
        }
    }
    let is_taken = |patch: &RawValue| matches!(shape(patch), JsonShape::Null);
    merged.retain(|(_, _, patch)| !patch.is_some_and(is_taken));
    text.push('{');
    for (at, (name, value, patch)) in merged.into_iter().enumerate() {
        text.push_str(if at > 0 { "," } else { "" });
        write_text(&name, text);
        text.push(':');
        match (value, patch) {
            (value, Some(patch)) => write_merged(value, patch, text),
            (Some(value), None) => write_compact(value, text),
            (None, None) => {}
        }
    }
    text.push('}');
}

/// Values as a column of a type.
fn column(values: &[Option<&RawValue>], of: &DataType) -> Result<ArrayRef> {
    match of {
        DataType::List(item) => list(values, item),
        DataType::Struct(fields) => {
            let objects: Vec<_> = values.iter().map(|value| members(*value)).collect();
            let columns = fields.iter().map(|field| {
                let values: Vec<_> = objects
                    .iter()
                    .map(|members| member(members.as_deref()?, field.name()))
                    .collect();
                column(&values, field.data_type())
            });
            let valid: Vec<bool> = objects.iter().map(Option::is_some).collect();
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns.collect::<Result<_>>()?,
                Some(NullBuffer::from(valid)),
                values.len(),
            )?))
        }
        of => {
            let strings = values
                .iter()
                .map(|value| value.and_then(|value| leaf(value, of)));
            Ok(cast(&strings.collect::<StringArray>(), of)?)
        }
    }
}

/// The last member of a name.
fn member<'a>(members: &[(Cow<'a, str>, &'a RawValue)], name: &str) -> Option<&'a RawValue> {
    let mut members = members.iter().rev();
    let found = members.find(|(member, _)| member == name);
    found.map(|(_, value)| *value)
}

fn members(value: Option<&RawValue>) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    match shape(value?) {
        JsonShape::Object(members) => Some(members),
        _ => None,
    }
}

fn list(values: &[Option<&RawValue>], item: &Arc<Field>) -> Result<ArrayRef> {
    let (mut items, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        let list = match value.map(shape) {
            Some(JsonShape::Array(list)) => Some(list),
            _ => None,
        };
        valid.push(list.is_some());
        let list = list.unwrap_or_default();
        lengths.push(list.len());
        items.extend(list.into_iter().map(Some));
    }
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        OffsetBuffer::from_lengths(lengths),
        column(&items, item.data_type())?,
        Some(NullBuffer::from(valid)),
    )?))
}

/// The text of a value that is cast to a type.
fn leaf(value: &RawValue, of: &DataType) -> Option<String> {
    match shape(value) {
        JsonShape::Null => None,
        JsonShape::Text(text) => Some(text.into_owned()),
        // As a cast of a number rounds.
        JsonShape::Number(digits) if of.is_integer() && digits.contains(['.', 'e', 'E']) => {
            let number: f64 = digits.parse().ok()?;
            Some(format!("{}", number.round_ties_even()))
        }
        _ => {
            let mut text = String::new();
            write_compact(value, &mut text);
            Some(text)
        }
    }
}
