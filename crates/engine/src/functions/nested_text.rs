//! Lists, structs, maps and timestamps as strings: `[1, NULL]`, `{'a': 1}`, `{k=v}`, `2024-01-31 12:30:00`.
//!
//! In: values of such a type. Out: their text, which a cast of strings to lists reads again (text_casts.rs).
//! Invariant: a string within it that could be taken for another thing stands in quotes: one with commas, brackets, quotes or blanks
//! at its ends, the empty one and `null`. DataFusion has no cast of structs and maps, writes no NULL in lists, and a T between date
//! and time.
//! Not here: JSON (scalar/json_written.rs).

use datafusion::arrow::array::{Array, AsArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::null_as_args;

/// Characters that a string without quotes does not have.
const SPECIAL: [char; 14] = [
    ',', '[', ']', '{', '}', '(', ')', '\'', '"', '=', ':', '\\', '\n', '\t',
];

/// True of types whose casts to strings are ours.
pub(crate) fn has_nested_text(of: &DataType) -> bool {
    use DataType::{Map, Struct, Timestamp};
    of.is_list() || matches!(of, Struct(_) | Map(..) | Timestamp(..))
}

/// The text of a list, struct, map or timestamp.
pub(crate) fn nested_text(value: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(NestedText { to, signature }).call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedText {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for NestedText {
    fn name(&self) -> &str {
        "text of list"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), self.to.clone(), &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let writer = Writer::new(&values)?;
        let mut texts = StringViewBuilder::with_capacity(values.len());
        for row in 0..values.len() {
            if values.is_null(row) {
                texts.append_null();
                continue;
            }
            match &writer {
                // Nothing stands around it.
                Writer::Text(_, formatter) => {
                    texts.append_value(formatter.value(row).try_to_string()?);
                }
                writer => {
                    let mut text = String::new();
                    writer.write(row, &mut text)?;
                    texts.append_value(text);
                }
            }
        }
        Ok(ColumnarValue::Array(cast(&texts.finish(), &self.to)?))
    }
}

/// What writes the values of a column.
enum Writer<'a> {
    List(
        &'a dyn Array,
        Box<dyn Fn(usize) -> (usize, usize) + 'a>,
        Box<Writer<'a>>,
    ),
    Struct(&'a dyn Array, Vec<(String, Writer<'a>)>),
    Map(&'a dyn Array, &'a [i32], Box<[Writer<'a>; 2]>),
    Text(&'a dyn Array, ArrayFormatter<'a>),
    Other(&'a dyn Array, ArrayFormatter<'a>),
}

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));

impl<'a> Writer<'a> {
    fn new(values: &'a dyn Array) -> Result<Writer<'a>> {
        Ok(match values.data_type() {
            DataType::List(_) => {
                let lists = values.as_list::<i32>();
                let ends = lists.value_offsets();
                let of = move |row: usize| (ends[row] as usize, ends[row + 1] as usize);
                Writer::List(values, Box::new(of), Box::new(Writer::new(lists.values())?))
            }
            DataType::LargeList(_) => {
                let lists = values.as_list::<i64>();
                let ends = lists.value_offsets();
                let of = move |row: usize| (ends[row] as usize, ends[row + 1] as usize);
                Writer::List(values, Box::new(of), Box::new(Writer::new(lists.values())?))
            }
            DataType::FixedSizeList(_, size) => {
                let (lists, size) = (values.as_fixed_size_list(), *size as usize);
                let of = move |row: usize| (row * size, (row + 1) * size);
                Writer::List(values, Box::new(of), Box::new(Writer::new(lists.values())?))
            }
            DataType::Struct(fields) => {
                let columns = values.as_struct().columns().iter();
                let named = fields.iter().zip(columns).map(|(field, column)| {
                    let mut name = String::new();
                    write_quoted(field.name(), &mut name);
                    Ok((name, Writer::new(column)?))
                });
                Writer::Struct(values, named.collect::<Result<_>>()?)
            }
            DataType::Map(..) => {
                let maps = values.as_map();
                let sides = [Writer::new(maps.keys())?, Writer::new(maps.values())?];
                Writer::Map(values, maps.value_offsets(), Box::new(sides))
            }
            of if of.is_string() || matches!(of, DataType::Timestamp(..)) => {
                Writer::Text(values, ArrayFormatter::try_new(values, &OPTIONS)?)
            }
            _ => Writer::Other(values, ArrayFormatter::try_new(values, &OPTIONS)?),
        })
    }

    fn write(&self, row: usize, text: &mut String) -> Result<()> {
        let (Writer::List(values, ..)
        | Writer::Struct(values, _)
        | Writer::Map(values, ..)
        | Writer::Text(values, _)
        | Writer::Other(values, _)) = self;
        if values.is_null(row) {
            text.push_str("NULL");
            return Ok(());
        }
        match self {
            Writer::List(_, of, items) => {
                let (start, end) = of(row);
                text.push('[');
                for item in start..end {
                    text.push_str(if item > start { ", " } else { "" });
                    items.write(item, text)?;
                }
                text.push(']');
            }
            Writer::Struct(_, fields) => {
                text.push('{');
                for (at, (name, field)) in fields.iter().enumerate() {
                    text.push_str(if at > 0 { ", " } else { "" });
                    text.push_str(name);
                    text.push_str(": ");
                    field.write(row, text)?;
                }
                text.push('}');
            }
            Writer::Map(_, ends, sides) => {
                let [keys, values] = sides.as_ref();
                let start = ends[row] as usize;
                text.push('{');
                for entry in start..ends[row + 1] as usize {
                    text.push_str(if entry > start { ", " } else { "" });
                    keys.write(entry, text)?;
                    text.push('=');
                    values.write(entry, text)?;
                }
                text.push('}');
            }
            Writer::Text(_, formatter) => {
                let value = formatter.value(row).try_to_string()?;
                match needs_quotes(&value) {
                    true => write_quoted(&value, text),
                    false => text.push_str(&value),
                }
            }
            Writer::Other(_, formatter) => {
                text.push_str(&formatter.value(row).try_to_string()?);
            }
        }
        Ok(())
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.contains(SPECIAL)
        || text.trim().len() < text.len()
        || text.eq_ignore_ascii_case("null")
}

fn write_quoted(value: &str, text: &mut String) {
    text.push('\'');
    for c in value.chars() {
        if matches!(c, '\'' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('\'');
}
