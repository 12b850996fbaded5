//! Functions of JSON in strings.
//!
//! In: strings of JSON and paths; any values. Out: strings of JSON, strings, numbers, lists.
//! Invariant: JSON is a VARCHAR here; what is no JSON is an error, but for `json_valid`.
//! Not here: files of JSON (scan/); how JSON is read (json_text.rs), how values are written as JSON (json_written.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListBuilder, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};
use serde_json::value::RawValue;

use super::definition::{CallArguments, CallForm, Definition, rows};
use super::json_text::{JsonShape, Path, parsed, shape, write_compact};
use super::kinds::{ParameterKind, list_of};
use super::strings::lists_of_strings;
use crate::functions::wrapped::as_wrapped;

/// What a cast to JSON calls.
pub(crate) const JSON_OF: &str = "json of";

const JSON: &[CallForm] = &[&[ParameterKind::Text]];
const JSON_AND_PATH: &[CallForm] = &[
    &[ParameterKind::Text],
    &[ParameterKind::Text, ParameterKind::Text],
];
const EXTRACTED: &[CallForm] = &[
    // The path stays a literal where it is one: it says whether there are many parts.
    &[ParameterKind::Text, ParameterKind::Word],
    &[ParameterKind::Text, ParameterKind::Integer],
    &[ParameterKind::Text, ParameterKind::Strings],
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let mut all: Vec<ScalarUDF> = inspected().into_iter().map(ScalarUDF::from).collect();
    for (names, part) in [
        (["json_extract", "json_extract_path"], JsonPartForm::Json),
        (
            ["json_extract_string", "json_extract_path_text"],
            JsonPartForm::Text,
        ),
    ] {
        all.extend(names.map(|name| ScalarUDF::from(Extract::new(name, part))));
    }
    all.push(Extract::new("json_value", JsonPartForm::Value).into());
    all
}

/// `->`: the part of JSON at a path, as JSON.
pub(in crate::functions) fn json_extract() -> ScalarUDF {
    Extract::new("json_extract", JsonPartForm::Json).into()
}

/// `->>`: the same as text.
pub(in crate::functions) fn json_extract_string() -> ScalarUDF {
    Extract::new("json_extract_string", JsonPartForm::Text).into()
}

fn inspected() -> Vec<Definition> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        rows("json_valid", JSON, boolean, |call| {
            let strings = call.strings(0);
            call.each::<BooleanArray, _>(|row| Ok(Some(parsed(strings.value(row)).is_ok())))
        }),
        rows(
            "json_array_length",
            JSON_AND_PATH,
            |_| Ok(DataType::Int64),
            |call| {
                of_part::<Int64Array, _>(call, |part| match shape(part) {
                    JsonShape::Array(items) => items.len().try_into().unwrap_or(i64::MAX),
                    _ => 0,
                })
            },
        ),
        rows("json_type", JSON_AND_PATH, text, |call| {
            of_part::<StringViewArray, _>(call, |part| type_of(part).to_owned())
        }),
        rows("json_exists", &JSON_AND_PATH[1..], boolean, |call| {
            let mut paths = Paths::default();
            call.each::<BooleanArray, _>(|row| {
                let value = read(call, row)?;
                Ok(Some(!paths.of(call, 1, row)?.follow(value).is_empty()))
            })
        }),
        rows(
            "json_keys",
            JSON_AND_PATH,
            |_| Ok(list_of(DataType::Utf8View)),
            json_keys,
        ),
        rows(JSON_OF, JSON, text, |call| {
            call.each::<StringViewArray, _>(|row| {
                read(call, row)?;
                Ok(Some(call.strings(0).value(row).to_string()))
            })
        })
        .or(
            &[ParameterKind::Any],
            |args| Ok(super::to_json().call(args)),
        ),
        rows("json", JSON, text, |call| {
            call.each::<StringViewArray, _>(|row| Ok(Some(compact(read(call, row)?))))
        }),
        rows("json_pretty", JSON, text, |call| {
            call.each::<StringViewArray, _>(|row| {
                let mut text = String::new();
                write_pretty(read(call, row)?, 0, &mut text);
                Ok(Some(text))
            })
        }),
        rows("json_contains", &JSON_AND_PATH[1..], boolean, |call| {
            call.each::<BooleanArray, _>(|row| {
                let needle =
                    parsed(call.strings(1).value(row)).map_err(|error| call.invalid(error))?;
                Ok(Some(contains(read(call, row)?, needle)))
            })
        }),
    ]
}

/// Functions whose text is JSON.
const MAKE_JSON: [&str; 13] = [
    JSON_OF,
    "json",
    "json_extract",
    "json_extract_path",
    "json_array",
    "json_object",
    "json_quote",
    "to_json",
    "array_to_json",
    "row_to_json",
    "json_entries",
    "json_structure",
    "json_merge_patch",
];

/// True of an expression whose text is JSON.
pub(crate) fn is_json(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if MAKE_JSON.contains(&call.func.name()))
}

/// The part of JSON that `->` gives.
pub(crate) fn json_part(json: Expr, at: Expr) -> Expr {
    json_extract().call(vec![json, at])
}

fn read<'a>(call: &'a CallArguments, row: usize) -> Result<&'a RawValue> {
    parsed(call.strings(0).value(row)).map_err(|error| call.invalid(error))
}

fn compact(value: &RawValue) -> String {
    let mut text = String::new();
    write_compact(value, &mut text);
    text
}

/// The path of the last row.
#[derive(Default)]
struct Paths {
    text: Option<String>,
    path: Option<Path>,
}

impl Paths {
    /// The path that argument `at` has in a row; the value itself where there is no such argument.
    fn of(&mut self, call: &CallArguments, at: usize, row: usize) -> Result<&Path> {
        let text = match call.args.get(at) {
            Some(paths) => paths.as_string_view().value(row),
            None => "",
        };
        self.read(call, text)
    }

    fn read(&mut self, call: &CallArguments, text: &str) -> Result<&Path> {
        if self.text.as_deref() != Some(text) {
            self.path = None;
        }
        match &mut self.path {
            Some(path) => Ok(path),
            none => {
                let path = Path::read(text).ok_or_else(|| {
                    call.invalid(format!(
                        "'{text}' is no path; write e.g. '$.name' or '$.items[0]'"
                    ))
                })?;
                self.text = Some(text.to_owned());
                Ok(none.insert(path))
            }
        }
    }
}

/// A column of what `say` says of the first part that the path leads to; NULL where there is none.
fn of_part<A, T>(call: &CallArguments, say: impl Fn(&RawValue) -> T) -> Result<ArrayRef>
where
    A: Array + FromIterator<Option<T>> + 'static,
{
    let mut paths = Paths::default();
    call.each::<A, T>(|row| {
        let value = read(call, row)?;
        let parts = paths.of(call, 1, row)?.follow(value);
        Ok(parts.first().map(|part| say(part)))
    })
}

pub(super) fn type_of(value: &RawValue) -> &'static str {
    match shape(value) {
        JsonShape::Null => "NULL",
        JsonShape::Boolean => "BOOLEAN",
        JsonShape::Text(_) => "VARCHAR",
        JsonShape::Array(_) => "ARRAY",
        JsonShape::Object(_) => "OBJECT",
        JsonShape::Number(digits) if digits.parse::<u64>().is_ok() => "UBIGINT",
        JsonShape::Number(digits) if digits.parse::<i64>().is_ok() => "BIGINT",
        JsonShape::Number(_) => "DOUBLE",
    }
}

fn json_keys(call: &CallArguments) -> Result<ArrayRef> {
    let mut paths = Paths::default();
    lists_of_strings(call, |row, names| {
        let value = read(call, row)?;
        if let Some(part) = paths.of(call, 1, row)?.follow(value).first()
            && let JsonShape::Object(members) = shape(part)
        {
            names.extend(members.into_iter().map(|(name, _)| name.into_owned()));
        }
        Ok(())
    })
}

fn write_pretty(value: &RawValue, depth: usize, text: &mut String) {
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"    ".repeat(depth));
    };
    match shape(value) {
        JsonShape::Array(items) if !items.is_empty() => {
            text.push('[');
            for (at, item) in items.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                line(text, depth + 1);
                write_pretty(item, depth + 1, text);
            }
            line(text, depth);
            text.push(']');
        }
        JsonShape::Object(members) if !members.is_empty() => {
            text.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                line(text, depth + 1);
                super::json_text::write_text(&name, text);
                text.push_str(": ");
                write_pretty(value, depth + 1, text);
            }
            line(text, depth);
            text.push('}');
        }
        _ => write_compact(value, text),
    }
}

/// True if `value` is `needle`, or has it as an item, or has all its members.
fn contains(value: &RawValue, needle: &RawValue) -> bool {
    let mut parts = match shape(value) {
        JsonShape::Array(items) => items,
        JsonShape::Object(members) => members.into_iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    }
    .into_iter();
    covers(value, needle) || parts.any(|part| contains(part, needle))
}

/// Whether all that the needle lists is in a value of its form.
fn covers(value: &RawValue, needle: &RawValue) -> bool {
    match (shape(value), shape(needle)) {
        (JsonShape::Array(items), JsonShape::Array(needles)) => needles
            .iter()
            .all(|needle| items.iter().any(|item| covers(item, needle))),
        (JsonShape::Object(members), JsonShape::Object(needles)) => {
            needles.iter().all(|(name, needle)| {
                let mut members = members.iter();
                members.any(|(member, value)| member == name && covers(value, needle))
            })
        }
        _ => compact(value) == compact(needle),
    }
}

/// What a part is given as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum JsonPartForm {
    /// JSON.
    Json,
    /// A text without quotes; NULL for `null`.
    Text,
    /// The same; NULL for arrays and objects.
    Value,
}

impl JsonPartForm {
    fn text(self, value: &RawValue) -> Option<String> {
        match (self, shape(value)) {
            (JsonPartForm::Json, _) => Some(compact(value)),
            (_, JsonShape::Null) => None,
            (_, JsonShape::Text(text)) => Some(text.into_owned()),
            (JsonPartForm::Value, JsonShape::Array(_) | JsonShape::Object(_)) => None,
            _ => Some(compact(value)),
        }
    }
}

/// `json_extract` and others: one part, or a list of parts where the path may lead to many or there are several paths.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extract {
    one: Definition,
    part: JsonPartForm,
}

impl Extract {
    fn new(name: &'static str, part: JsonPartForm) -> Extract {
        let text = |_: &[DataType]| Ok(DataType::Utf8View);
        Extract {
            one: rows(name, EXTRACTED, text, |call| {
                Err(call.invalid("it has no parts"))
            }),
            part,
        }
    }

    fn one(&self, call: &CallArguments) -> Result<ArrayRef> {
        let mut paths = Paths::default();
        let places = (call.args[1].data_type() == &DataType::Int64).then(|| call.integers(1));
        call.each::<StringViewArray, _>(|row| {
            let value = read(call, row)?;
            let parts = match places {
                Some(places) => Path::item(places.value(row)).follow(value),
                None => paths.of(call, 1, row)?.follow(value),
            };
            Ok(parts.first().and_then(|part| self.part.text(part)))
        })
    }

    fn many(&self, call: &CallArguments) -> Result<ArrayRef> {
        let nulls = call.nulls();
        let field = Field::new_list_field(DataType::Utf8View, true);
        let mut lists = ListBuilder::new(StringViewBuilder::new()).with_field(field);
        let mut paths = Paths::default();
        for row in 0..call.rows {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                lists.append_null();
                continue;
            }
            let value = read(call, row)?;
            if let Some(path) = call.args[1].as_string_view_opt() {
                let parts = paths.read(call, path.value(row))?.follow(value);
                parts
                    .iter()
                    .for_each(|part| lists.values().append_option(self.part.text(part)));
            } else {
                for path in call.lists(1).value(row).as_string_view() {
                    let parts = match path {
                        Some(path) => paths.read(call, path)?.follow(value),
                        None => Vec::new(),
                    };
                    let part = parts.first().and_then(|part| self.part.text(part));
                    lists.values().append_option(part);
                }
            }
            lists.append(true);
        }
        Ok(Arc::new(lists.finish()))
    }
}

impl ScalarUDFImpl for Extract {
    as_wrapped!(one: name, signature, coerce_types, return_type);

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let path = args.scalar_arguments.get(1).copied().flatten();
        let path = path.and_then(|path| path.try_as_str().flatten());
        let is_many = path.and_then(Path::read).is_some_and(|path| path.is_many());
        let is_list = matches!(args.arg_fields[1].data_type(), DataType::List(_));
        let data_type = match is_many || is_list {
            true => list_of(DataType::Utf8View),
            false => DataType::Utf8View,
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter().map(|arg| {
            let column = arg.to_array(args.number_rows)?;
            Ok(match column.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 => cast(&column, &DataType::Utf8View)?,
                _ => column,
            })
        });
        let call = CallArguments {
            name: "json_extract",
            args: columns.collect::<Result<Vec<_>>>()?,
            rows: args.number_rows,
            returns: args.return_field.data_type(),
        };
        let column = match call.returns {
            DataType::List(_) => self.many(&call)?,
            _ => self.one(&call)?,
        };
        Ok(ColumnarValue::Array(column))
    }
}
