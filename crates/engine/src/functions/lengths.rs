//! `length`, `char_length` and `character_length`: DataFusion's, but for views of strings one pass over each.
//!
//! In: strings. Out: their numbers of characters.
//! Invariant: types and results are DataFusion's, which looks first whether all strings of a batch are ASCII and then counts.
//! Not here: counting (kernels, `characters`); strings that are no views.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::unicode::character_length;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use grouse_kernels::characters::of_views;

use crate::functions::wrapped::as_wrapped;

/// The function, in the place of DataFusion's.
pub(super) fn length() -> ScalarUDF {
    ScalarUDF::from(Length {
        datafusion: character_length(),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    datafusion: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Length {
    as_wrapped!(datafusion: name, aliases, signature, return_type, documentation);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(strings)] if strings.data_type() == &DataType::Utf8View => {
                Ok(ColumnarValue::Array(lengths(strings.as_string_view())))
            }
            _ => self.datafusion.invoke_with_args(args),
        }
    }
}

fn lengths(strings: &StringViewArray) -> ArrayRef {
    let (views, buffers) = text_views(strings);
    let lengths = of_views(&views, &buffers);
    Arc::new(Int32Array::new(lengths.into(), strings.nulls().cloned()))
}

/// Views and buffers of strings; what a view of NULL says means nothing, so it is an empty text here.
pub(crate) fn text_views(strings: &StringViewArray) -> (Cow<'_, [u128]>, Vec<&[u8]>) {
    let buffers = strings
        .data_buffers()
        .iter()
        .map(|b| b.as_slice())
        .collect();
    let views = match strings.nulls() {
        None => Cow::Borrowed(&strings.views()[..]),
        Some(nulls) => {
            let views = strings.views().iter().zip(nulls);
            views
                .map(|(&view, is_valid)| if is_valid { view } else { 0 })
                .collect()
        }
    };
    (views, buffers)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::config::ConfigOptions;

    use super::*;

    #[test]
    fn equals_that_of_datafusion() {
        let strings = [
            Some(""),
            None,
            Some("plain"),
            Some("zwölf Bytes"),
            Some("längere Texte, mit ß und 𝄞"),
            Some("a long one without any of these"),
        ];
        let rows: Vec<Option<&str>> = strings.iter().cycle().take(100).copied().collect();
        for nulls in [true, false] {
            let kept = rows.iter().copied().filter(|text| nulls || text.is_some());
            let array: ArrayRef = Arc::new(StringViewArray::from_iter(kept));
            for array in [Arc::clone(&array), array.slice(3, 50)] {
                let call = |function: &ScalarUDF| {
                    let args = ScalarFunctionArgs {
                        args: vec![ColumnarValue::Array(Arc::clone(&array))],
                        arg_fields: vec![Arc::new(Field::new("text", DataType::Utf8View, true))],
                        number_rows: array.len(),
                        return_field: Arc::new(Field::new("length", DataType::Int32, true)),
                        config_options: Arc::new(ConfigOptions::new()),
                    };
                    let counted = function.invoke_with_args(args).expect("strings");
                    counted.into_array(array.len()).expect("a column")
                };
                assert_eq!(call(&length()).as_ref(), call(&character_length()).as_ref());
            }
        }
    }
}
