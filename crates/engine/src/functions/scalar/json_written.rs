//! Values written as JSON: `to_json`, `json_object`, `json_array`.
//!
//! In: any values. Out: strings of JSON.
//! Invariant: numbers keep their digits; what JSON has no form for (NaN, infinity) is an error or a text, never a number.
//! Strings that are marked as JSON are written as they are.
//! Not here: JSON that is read (json.rs); which strings are JSON (optimizer/fixes/json_values.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StringViewArray, StructArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::definition::{CallArguments, CallForm, Definition, rows};
use super::json_text::{parsed, write_compact, write_text};
use super::kinds::{ParameterKind, list_of};
use crate::functions::written;

fn text(_: &[DataType]) -> Result<DataType> {
    Ok(DataType::Utf8View)
}

fn to_json_definition() -> Definition {
    rows("to_json", &[&[ParameterKind::Any]], text, |call| {
        let column = JsonColumn::new(&call.args[0])?;
        call.each::<StringViewArray, _>(|row| {
            let mut text = String::new();
            column.write(row, &mut text);
            Ok(Some(text))
        })
    })
}

/// `to_json`.
pub(in crate::functions) fn to_json() -> ScalarUDF {
    to_json_definition().into()
}

/// The object of a list of names and values, for `json_group_object`; SQL cannot name it.
pub(in crate::functions) fn json_entries() -> ScalarUDF {
    rows("json_entries", &[&[ParameterKind::List]], text, entries).into()
}

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const MANY: &[CallForm] = &[&[], &[ParameterKind::Any, ParameterKind::Dots]];
    let one = to_json_definition();
    let all: Vec<Definition> = vec![
        one.also("json_quote"),
        one.also("array_to_json"),
        one.also("row_to_json"),
        one,
        rows("json_array", MANY, text, json_array),
        rows("json_object", MANY, text, json_object),
    ];
    all.into_iter().map(ScalarUDF::from).collect()
}

/// The one field of the struct that marks a text as JSON; SQL cannot name it.
const MARK: &str = "json\0";

/// The type of strings that are JSON, or of lists of them, once they are marked.
pub(crate) fn marked_as_json(of: &DataType) -> DataType {
    match of {
        DataType::List(item) => list_of(marked_as_json(item.data_type())),
        _ => {
            let text = Field::new(MARK, DataType::Utf8View, true);
            DataType::Struct(Fields::from(vec![text]))
        }
    }
}

fn is_marked(fields: &Fields) -> bool {
    matches!(&fields[..], [field] if field.name() == MARK)
}

/// A value whose strings are marked as the type of a NULL says; SQL cannot name the function.
pub(crate) fn json_kept(value: Expr, null: &ScalarValue) -> Expr {
    const FORM: &[CallForm] = &[&[ParameterKind::Any, ParameterKind::Any]];
    let kept = rows(
        "json kept",
        FORM,
        |types| Ok(types[1].clone()),
        |call| marked(&call.args[0], call.returns),
    );
    ScalarUDF::from(kept).call(vec![value, Expr::Literal(null.clone(), None)])
}

fn marked(column: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if column.data_type().is_null() {
        return Ok(new_null_array(to, column.len()));
    }
    Ok(match to {
        of if of == column.data_type() => Arc::clone(column),
        DataType::Struct(fields) if is_marked(fields) => {
            let text = cast(column, &DataType::Utf8View)?;
            let nulls = text.nulls().cloned();
            Arc::new(StructArray::try_new(fields.clone(), vec![text], nulls)?)
        }
        DataType::Struct(fields) => {
            let values = column.as_struct();
            let columns = values.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| marked(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = values.nulls().cloned();
            Arc::new(StructArray::try_new(fields.clone(), columns, nulls)?)
        }
        DataType::List(item) => {
            let lists = column.as_list::<i32>();
            let items = marked(lists.values(), item.data_type())?;
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?)
        }
        _ => cast(column, to)?,
    })
}

fn json_array(call: &CallArguments) -> Result<ArrayRef> {
    let columns = call
        .args
        .iter()
        .map(JsonColumn::new)
        .collect::<Result<Vec<_>>>()?;
    let rows = (0..call.rows).map(|row| {
        let mut text = "[".to_owned();
        for (at, column) in columns.iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            column.write(row, &mut text);
        }
        text + "]"
    });
    Ok(std::sync::Arc::new(StringViewArray::from_iter_values(rows)))
}

fn json_object(call: &CallArguments) -> Result<ArrayRef> {
    if !call.args.len().is_multiple_of(2) {
        return Err(call.invalid("it takes names and values in turn"));
    }
    let columns = call
        .args
        .iter()
        .map(JsonColumn::new)
        .collect::<Result<Vec<_>>>()?;
    let names = call
        .args
        .iter()
        .step_by(2)
        .map(|names| Ok(cast(names, &DataType::Utf8View)?));
    let names = names.collect::<Result<Vec<_>>>()?;
    let rows = (0..call.rows).map(|row| {
        let mut text = "{".to_owned();
        for (at, names) in names.iter().enumerate() {
            if names.is_null(row) {
                return Err(call.invalid("a name is NULL"));
            }
            text.push_str(if at > 0 { "," } else { "" });
            write_text(names.as_string_view().value(row), &mut text);
            text.push(':');
            columns[2 * at + 1].write(row, &mut text);
        }
        Ok(text + "}")
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok(std::sync::Arc::new(StringViewArray::from_iter_values(rows)))
}

/// The object whose members a list of structs of a name and a value has.
fn entries(call: &CallArguments) -> Result<ArrayRef> {
    let lists = call.lists(0);
    let entries = lists
        .values()
        .as_struct_opt()
        .filter(|entries| entries.num_columns() == 2);
    let entries = entries.ok_or_else(|| call.invalid("it takes names and values"))?;
    let names = cast(entries.column(0), &DataType::Utf8View)?;
    let values = JsonColumn::new(entries.column(1))?;
    call.each::<StringViewArray, _>(|row| {
        let (start, end) = (lists.value_offsets()[row], lists.value_offsets()[row + 1]);
        let mut text = "{".to_owned();
        for at in start as usize..end as usize {
            if names.is_null(at) {
                return Err(call.invalid("a name is NULL"));
            }
            text.push_str(if at > start as usize { "," } else { "" });
            write_text(names.as_string_view().value(at), &mut text);
            text.push(':');
            values.write(at, &mut text);
        }
        Ok(Some(text + "}"))
    })
}

/// A column, ready to be written.
enum JsonColumn {
    /// Nothing but NULL.
    Null,
    /// What JSON writes without quotes: numbers and booleans, as strings.
    Bare(ArrayRef),
    /// What is written in quotes.
    Quoted(ArrayRef),
    /// Strings that are JSON.
    Json(ArrayRef),
    List(ArrayRef, Box<JsonColumn>),
    Struct(ArrayRef, Vec<(String, JsonColumn)>),
    Map(ArrayRef, ArrayRef, Box<JsonColumn>),
}

impl JsonColumn {
    fn new(column: &ArrayRef) -> Result<JsonColumn> {
        Ok(match column.data_type() {
            DataType::Null => JsonColumn::Null,
            DataType::Boolean => JsonColumn::Bare(cast(column, &DataType::Utf8View)?),
            of if of.is_numeric() => JsonColumn::Bare(cast(column, &DataType::Utf8View)?),
            DataType::Dictionary(_, of) => return JsonColumn::new(&cast(column, of)?),
            DataType::List(_) => {
                let items = column.as_list::<i32>().values();
                JsonColumn::List(column.clone(), Box::new(JsonColumn::new(items)?))
            }
            DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => {
                return JsonColumn::new(&cast(column, &DataType::List(item.clone()))?);
            }
            DataType::Struct(fields) if is_marked(fields) => {
                JsonColumn::Json(Arc::clone(column.as_struct().column(0)))
            }
            DataType::Struct(fields) => {
                let columns = column.as_struct().columns().iter();
                let fields = fields.iter().zip(columns);
                let fields = fields
                    .map(|(field, column)| Ok((field.name().clone(), JsonColumn::new(column)?)));
                JsonColumn::Struct(column.clone(), fields.collect::<Result<_>>()?)
            }
            DataType::Map(..) => {
                let map = column.as_map();
                let keys = cast(map.keys(), &DataType::Utf8View)?;
                JsonColumn::Map(
                    column.clone(),
                    keys,
                    Box::new(JsonColumn::new(map.values())?),
                )
            }
            DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(_)
            | DataType::Duration(_) => JsonColumn::Quoted(written(column)?),
            _ => JsonColumn::Quoted(cast(column, &DataType::Utf8View)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            JsonColumn::Null => true,
            JsonColumn::Bare(column)
            | JsonColumn::Quoted(column)
            | JsonColumn::Json(column)
            | JsonColumn::List(column, _)
            | JsonColumn::Struct(column, _)
            | JsonColumn::Map(column, ..) => column.is_null(row),
        }
    }

    fn write(&self, row: usize, text: &mut String) {
        if self.is_null(row) {
            text.push_str("null");
            return;
        }
        match self {
            JsonColumn::Null => text.push_str("null"),
            JsonColumn::Bare(column) => {
                let number = column.as_string_view().value(row);
                match number.contains("NaN") || number.contains("inf") {
                    true => write_text(number, text),
                    false => text.push_str(number),
                }
            }
            JsonColumn::Quoted(column) => write_text(column.as_string_view().value(row), text),
            JsonColumn::Json(column) => {
                let json = column.as_string_view().value(row);
                match parsed(json) {
                    Ok(value) => write_compact(value, text),
                    Err(_) => write_text(json, text),
                }
            }
            JsonColumn::List(column, items) => {
                let offsets = column.as_list::<i32>().value_offsets();
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                text.push('[');
                for at in start..end {
                    text.push_str(if at > start { "," } else { "" });
                    items.write(at, text);
                }
                text.push(']');
            }
            JsonColumn::Struct(_, fields) => {
                text.push('{');
                for (at, (name, column)) in fields.iter().enumerate() {
                    text.push_str(if at > 0 { "," } else { "" });
                    write_text(name, text);
                    text.push(':');
                    column.write(row, text);
                }
                text.push('}');
            }
            JsonColumn::Map(column, keys, values) => {
                let offsets = column.as_map().value_offsets();
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                text.push('{');
                for at in start..end {
                    text.push_str(if at > start { "," } else { "" });
                    write_text(keys.as_string_view().value(at), text);
                    text.push(':');
                    values.write(at, text);
                }
                text.push('}');
            }
        }
    }
}
