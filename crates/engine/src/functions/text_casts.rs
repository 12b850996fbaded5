//! Casts of strings, and of lists to strings, that DataFusion does in another way than SQL.
//!
//! In: lists; strings, and the type that CAST or TRY_CAST names. Out: lists of what `[1, 2]` holds; intervals, a bare number being
//! seconds and a millennium ten centuries; bytes of `\xAA`; times, which no bare number is. Strings of lists, in
//! which NULL is written.
//! Invariant: a text that cannot be read is an error that shows it, or NULL with TRY_CAST.
//! DataFusion makes a list of one text of any text, months of a bare number, and midnight of '11'.
//! Not here: strings in files (scan/); UUIDs (uuid_text.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, ListArray, StringViewArray, StringViewBuilder,
    new_null_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::null_as_args;
use crate::types::type_name;
use grouse_text::blobs::bytes_of;

/// True of casts of strings that are ours.
pub(crate) fn is_text_cast(of: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, FixedSizeList, Interval, LargeBinary, LargeList, List, Time32, Time64,
    };
    of.is_string()
        && matches!(
            to,
            List(_)
                | LargeList(_)
                | FixedSizeList(..)
                | Interval(_)
                | Binary
                | LargeBinary
                | BinaryView
                | Time32(_)
                | Time64(_)
        )
}

/// The text of a list: `[1, NULL]`.
pub(crate) fn text_of_list(list: Expr, to: DataType) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(TextOfList { to, signature }).call(vec![list])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextOfList {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for TextOfList {
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
        let lists = args.args[0].to_array(args.number_rows)?;
        let options = FormatOptions::default().with_null("NULL");
        let formatter = ArrayFormatter::try_new(&lists, &options)?;
        let mut texts = StringViewBuilder::with_capacity(lists.len());
        for row in 0..lists.len() {
            match lists.is_null(row) {
                true => texts.append_null(),
                false => texts.append_value(formatter.value(row).try_to_string()?),
            }
        }
        Ok(ColumnarValue::Array(cast(&texts.finish(), &self.to)?))
    }
}

/// The cast; `is_try`: NULL for what cannot be read.
pub(crate) fn text_cast(text: Expr, to: DataType, is_try: bool) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    let function = TextCast {
        to,
        is_try,
        signature,
    };
    ScalarUDF::new_from_impl(function).call(vec![text])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextCast {
    to: DataType,
    is_try: bool,
    signature: Signature,
}

impl ScalarUDFImpl for TextCast {
    fn name(&self) -> &str {
        match self.is_try {
            true => "try_cast of text",
            false => "cast of text",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match self.is_try {
            true => Ok(Arc::new(Field::new(self.name(), self.to.clone(), true))),
            false => Ok(null_as_args(self.name(), self.to.clone(), &args)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text] = args.args.as_slice() else {
            return internal_err!("{} of {} values", self.name(), args.args.len());
        };
        let rows = match text {
            ColumnarValue::Array(_) => args.number_rows,
            ColumnarValue::Scalar(_) => 1,
        };
        let texts = cast(&text.to_array(rows)?, &DataType::Utf8View)?;
        let values = self.values(texts.as_string_view(), &self.to)?;
        match text {
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(values)),
            ColumnarValue::Scalar(_) => {
                let value = ScalarValue::try_from_array(&values, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
        }
    }
}

impl TextCast {
    fn values(&self, texts: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        match to {
            _ if texts.null_count() == texts.len() => Ok(new_null_array(to, texts.len())),
            DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => {
                self.lists(texts, to)
            }
            DataType::Interval(_) => {
                let readable = self.each(texts, to, |text| Some(with_units(text)))?;
                self.by_host(&readable, to)
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                let readable = self.each(texts, to, |text| {
                    text.contains(':').then(|| text.trim().to_owned())
                })?;
                self.by_host(&readable, to)
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                let mut bytes: Vec<Option<Vec<u8>>> = Vec::with_capacity(texts.len());
                for text in texts {
                    bytes.push(match text {
                        None => None,
                        Some(text) => match bytes_of(text) {
                            None if !self.is_try => return unreadable(text, to),
                            bytes => bytes,
                        },
                    });
                }
                let bytes: BinaryArray = bytes.iter().map(Option::as_deref).collect();
                Ok(cast(&bytes, to)?)
            }
            other => self.by_host(texts, other),
        }
    }

    /// What `read` makes of each text, which DataFusion can read.
    fn each(
        &self,
        texts: &StringViewArray,
        to: &DataType,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<StringViewArray> {
        let mut readable = StringViewBuilder::with_capacity(texts.len());
        for text in texts {
            match text.map(|text| (text, read(text))) {
                None => readable.append_null(),
                Some((_, Some(other))) => readable.append_value(other),
                Some((_, None)) if self.is_try => readable.append_null(),
                Some((text, None)) => return unreadable(text, to),
            }
        }
        Ok(readable.finish())
    }

    fn by_host(&self, texts: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let options = CastOptions {
            safe: self.is_try,
            ..CastOptions::default()
        };
        // DataFusion reads text in more types from a column with offsets.
        let texts = cast(texts, &DataType::Utf8)?;
        Ok(cast_with_options(&texts, to, &options)?)
    }

    fn lists(&self, texts: &StringViewArray, to: &DataType) -> Result<ArrayRef> {
        let (DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)) = to
        else {
            return internal_err!("a list of type {to}");
        };
        let mut lengths = Vec::with_capacity(texts.len());
        let mut valid = Vec::with_capacity(texts.len());
        let mut parts = StringViewBuilder::new();
        for text in texts {
            let items = match text {
                None => None,
                Some(text) => match items(text) {
                    None if !self.is_try => return unreadable(text, to),
                    items => items,
                },
            };
            valid.push(items.is_some());
            let items = items.unwrap_or_default();
            lengths.push(items.len());
            parts.extend(items);
        }
        let parts = self.values(&parts.finish(), field.data_type())?;
        let lists = ListArray::try_new(
            Arc::clone(field),
            OffsetBuffer::from_lengths(lengths),
            parts,
            Some(NullBuffer::from(valid)),
        )?;
        match to {
            DataType::List(_) => Ok(Arc::new(lists)),
            to => {
                let safe = self.is_try;
                let options = CastOptions {
                    safe,
                    ..CastOptions::default()
                };
                Ok(cast_with_options(&lists, to, &options)?)
            }
        }
    }
}

fn unreadable<T>(text: &str, to: &DataType) -> Result<T> {
    let to = type_name(to);
    exec_err!("Cannot cast string '{text}' to value of {to} type; TRY_CAST gives NULL for it")
}

/// The items of `[a, "b, c", NULL, [1, 2]]`, lists and structs within it as they are; `None` if it is no such text.
fn items(text: &str) -> Option<Vec<Option<String>>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    if inside.trim().is_empty() {
        return Some(Vec::new());
    }
    let mut items = Vec::new();
    let (mut depth, mut start, mut quote) = (0_usize, 0, None);
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            c if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '"' | '\'' => quote = Some(c),
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                items.push(item(&inside[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(item(&inside[start..]));
    (depth == 0 && quote.is_none()).then_some(items)
}

/// An item without its quotes; a backslash in front of a quote, and before any character within quotes, is none of it.
fn item(text: &str) -> Option<String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("null") {
        return None;
    }
    if text.starts_with(['[', '{', '(']) {
        return Some(text.to_owned());
    }
    let mut value = String::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next) if quote.is_some() || matches!(next, '"' | '\'') => value.push(next),
                next => {
                    value.push(c);
                    value.extend(next);
                }
            },
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            c => value.push(c),
        }
    }
    Some(value)
}

/// An interval's text with the units that DataFusion knows.
fn with_units(text: &str) -> String {
    let text = text.trim();
    if text.parse::<f64>().is_ok_and(f64::is_finite) {
        return format!("{text} seconds");
    }
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let tens = match word.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "millenniums" | "millenium" | "mil" | "mils" => words
                .last()
                .and_then(|count| count.parse::<f64>().ok())
                .map(|count| count * 10.0),
            _ => None,
        };
        match (tens, words.last_mut()) {
            (Some(tens), Some(last)) => {
                *last = tens.to_string();
                words.push("century".to_owned());
            }
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_lists() {
        let all = |text| items(text).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(all(" [ ] "), []);
        assert_eq!(all("[a b,, null]"), [some("a b"), some(""), None]);
        assert_eq!(
            all(r#"["a, \"b", 'NULL']"#),
            [some(r#"a, "b"#), some("NULL")]
        );
        assert_eq!(
            all("[[1, 2], {a: [3]}]"),
            [some("[1, 2]"), some("{a: [3]}")]
        );
        assert_eq!(items("1, 2"), None);
        assert_eq!(items("[[1, 2]"), None);
        assert_eq!(items("[it's]"), None);
    }

    #[test]
    fn units_of_intervals() {
        assert_eq!(with_units("47.5"), "47.5 seconds");
        assert_eq!(with_units("2 millennia 3 days"), "20 century 3 days");
    }
}
