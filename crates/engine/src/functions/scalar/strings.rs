//! Functions of strings that DuckDB has and DataFusion does not, or has under another name.
//!
//! In: strings. Out: strings, lists of strings, numbers.
//! Invariant: places and lengths count characters, but for `strlen`, which counts bytes.
//! Not here: regular expressions (regexp.rs), `format` and `printf` (formatted.rs), likeness (likeness.rs), paths (paths.rs).

use datafusion::arrow::array::{
    Array, ArrayRef, Int32Array, ListBuilder, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::expr_fn;
use datafusion::functions_nested::expr_fn::{array_length, array_reverse};
use datafusion::logical_expr::{Expr, ScalarUDF, cast as cast_to, lit, when};
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};

use super::definition::{CallArguments, CallForm, Definition, only, rows, stands, two};
use super::kinds::{ParameterKind, list_of};
use crate::functions::lengths::length;
use crate::functions::list_membership::has;

const TEXT: &[CallForm] = &[&[ParameterKind::Text]];
const TEXT_TEXT: &[CallForm] = &[&[ParameterKind::Text, ParameterKind::Text]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let all = lengths().into_iter().chain(cases()).chain(splits());
    all.chain(sizes()).map(ScalarUDF::from).collect()
}

fn text_type(_: &[DataType]) -> Result<DataType> {
    Ok(DataType::Utf8View)
}

fn lengths() -> Vec<Definition> {
    vec![
        stands("len", TEXT, |args| {
            Ok(cast_to(length().call(args), DataType::Int64))
        })
        .or(&[ParameterKind::List], |args| {
            Ok(cast_to(coalesced_length(only(args))?, DataType::Int64))
        }),
        stands("length", &[&[ParameterKind::Nothing]], |_| {
            Ok(lit(ScalarValue::Int32(None)))
        })
        .or(&[ParameterKind::List], |args| {
            Ok(cast_to(coalesced_length(only(args))?, DataType::Int64))
        })
        .or(&[ParameterKind::Any], |args| Ok(length().call(args))),
        stands("strlen", TEXT, |args| {
            Ok(cast_to(expr_fn::octet_length(only(args)), DataType::Int64))
        }),
        rows("unicode", TEXT, |_| Ok(DataType::Int32), first_character),
        rows("ord", TEXT, |_| Ok(DataType::Int32), first_character),
    ]
}

/// DataFusion's length of an empty list is NULL in some forms; DuckDB's is 0.
fn coalesced_length(list: Expr) -> Result<Expr> {
    let length = expr_fn::coalesce(vec![array_length(list.clone()), lit(0_u64)]);
    when(list.is_not_null(), length).end()
}

fn first_character(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    call.each::<Int32Array, _>(|row| {
        let first = strings.value(row).chars().next();
        Ok(Some(first.map_or(-1, |c| u32::from(c) as i32)))
    })
}

fn cases() -> Vec<Definition> {
    vec![
        stands("lcase", TEXT, |args| Ok(expr_fn::lower(only(args)))),
        stands("ucase", TEXT, |args| Ok(expr_fn::upper(only(args)))),
        stands("prefix", TEXT_TEXT, |args| {
            let [text, start] = two(args);
            Ok(expr_fn::starts_with(text, start))
        }),
        stands("suffix", TEXT_TEXT, |args| {
            let [text, end] = two(args);
            Ok(expr_fn::ends_with(text, end))
        }),
        rows("strip_accents", TEXT, text_type, strip_accents),
        rows("nfc_normalize", TEXT, text_type, composed),
        rows("url_encode", TEXT, text_type, |call| {
            let strings = call.strings(0);
            call.each::<StringViewArray, _>(|row| Ok(Some(url_encoded(strings.value(row)))))
        }),
        rows("url_decode", TEXT, text_type, |call| {
            let strings = call.strings(0);
            call.each::<StringViewArray, _>(|row| match url_decoded(strings.value(row)) {
                Some(text) => Ok(Some(text)),
                None => Err(call.invalid(format!(
                    "'{}' is no text in UTF-8 once decoded",
                    strings.value(row)
                ))),
            })
        }),
        stands(
            "contains",
            &[&[ParameterKind::Nothing, ParameterKind::Any]],
            |_| Ok(lit(ScalarValue::Boolean(None))),
        )
        .or(&[ParameterKind::List, ParameterKind::Any], |args| {
            let [list, item] = two(args);
            Ok(has(list, item))
        })
        .or(&[ParameterKind::Any, ParameterKind::Any], |args| {
            let [text, part] = two(args);
            Ok(expr_fn::contains(text, part))
        }),
        stands("reverse", &[&[ParameterKind::Nothing]], |_| {
            Ok(lit(ScalarValue::Utf8(None)))
        })
        .or(&[ParameterKind::List], |args| Ok(array_reverse(only(args))))
        .or(&[ParameterKind::Any], |args| {
            Ok(expr_fn::reverse(only(args)))
        }),
    ]
}

/// Letters without the marks that stand on them: decomposed, and what combines left out.
fn strip_accents(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let decompose = DecomposingNormalizer::new_nfd();
    call.each::<StringViewArray, _>(|row| {
        let text = strings.value(row);
        if text.is_ascii() {
            return Ok(Some(text.to_owned()));
        }
        let is_mark = |c: &char| matches!(u32::from(*c), 0x300..=0x36f | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f);
        let decomposed = decompose.normalize(text);
        Ok(Some(decomposed.chars().filter(|c| !is_mark(c)).collect::<String>()))
    })
}

/// Letters with the marks that stand on them as one character, where there is one.
fn composed(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let compose = ComposingNormalizer::new_nfc();
    call.each::<StringViewArray, _>(|row| {
        Ok(Some(compose.normalize(strings.value(row)).into_owned()))
    })
}

/// Bytes that are no letters, digits, `-`, `_`, `.` or `~` as `%` and two digits.
fn url_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn url_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

fn splits() -> Vec<Definition> {
    let list = |_: &[DataType]| Ok(list_of(DataType::Utf8View));
    let split = rows("string_split", TEXT_TEXT, list, string_split);
    vec![split.also("str_split"), split.also("split"), split]
}

/// A list of strings per row; NULL where the first argument is.
pub(super) fn lists_of_strings(
    call: &CallArguments,
    mut list: impl FnMut(usize, &mut Vec<String>) -> Result<()>,
) -> Result<ArrayRef> {
    let field = Field::new_list_field(DataType::Utf8View, true);
    let mut lists = ListBuilder::new(StringViewBuilder::new()).with_field(field);
    let mut parts = Vec::new();
    for row in 0..call.rows {
        if call.args[0].is_null(row) {
            lists.append_null();
            continue;
        }
        parts.clear();
        list(row, &mut parts)?;
        parts
            .iter()
            .for_each(|part| lists.values().append_value(part));
        lists.append(true);
    }
    Ok(std::sync::Arc::new(lists.finish()))
}

/// The parts between separators; characters where the separator is empty, the whole text where it is NULL.
fn string_split(call: &CallArguments) -> Result<ArrayRef> {
    let (strings, separators) = (call.strings(0), call.strings(1));
    lists_of_strings(call, |row, parts| {
        let text = strings.value(row);
        match separators.is_valid(row).then(|| separators.value(row)) {
            None => parts.push(text.to_owned()),
            Some("") => parts.extend(text.chars().map(String::from)),
            Some(separator) => parts.extend(text.split(separator).map(str::to_owned)),
        }
        Ok(())
    })
}

fn sizes() -> Vec<Definition> {
    const BYTES: &[CallForm] = &[&[ParameterKind::Integer]];
    let binary = rows("format_bytes", BYTES, text_type, |call| {
        readable(call, 1024, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
    });
    vec![
        binary.also("formatreadablesize"),
        binary.also("pg_size_pretty"),
        binary,
        rows("formatreadabledecimalsize", BYTES, text_type, |call| {
            readable(call, 1000, ["kB", "MB", "GB", "TB", "PB", "EB"])
        }),
        rows(
            "bar",
            &[
                &[
                    ParameterKind::Double,
                    ParameterKind::Double,
                    ParameterKind::Double,
                ],
                &[
                    ParameterKind::Double,
                    ParameterKind::Double,
                    ParameterKind::Double,
                    ParameterKind::Double,
                ],
            ],
            text_type,
            bar,
        ),
    ]
}

/// A number of bytes with one digit after the point, cut off, in the largest unit that it reaches.
fn readable(call: &CallArguments, step: u64, units: [&str; 6]) -> Result<ArrayRef> {
    let numbers = call.integers(0);
    call.each::<StringViewArray, _>(|row| {
        let number = numbers.value(row);
        let sign = if number < 0 { "-" } else { "" };
        let (mut scale, mut unit) = (1_u64, None);
        for name in units {
            if number.unsigned_abs() / scale < step {
                break;
            }
            scale *= step;
            unit = Some(name);
        }
        let number = number.unsigned_abs();
        Ok(Some(match unit {
            None if number == 1 => format!("{sign}1 byte"),
            None => format!("{sign}{number} bytes"),
            Some(unit) => {
                let tenths = u128::from(number % scale) * 10 / u128::from(scale);
                format!("{sign}{}.{tenths} {unit}", number / scale)
            }
        }))
    })
}

/// A bar of blocks as long as x is between a least and a greatest value, in eighths of a character.
fn bar(call: &CallArguments) -> Result<ArrayRef> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let number = |at: usize, row: usize| call.doubles(at).value(row);
    call.each::<StringViewArray, _>(|row| {
        let (x, least, greatest) = (number(0, row), number(1, row), number(2, row));
        let width = if call.args.len() > 3 {
            number(3, row)
        } else {
            80.0
        };
        if !(1.0..=1000.0).contains(&width) {
            return Err(call.invalid("the width has to be between 1 and 1000"));
        }
        let share = ((x - least) / (greatest - least)).clamp(0.0, 1.0);
        let eighths = (share * width * 8.0) as usize;
        let mut bar = "█".repeat(eighths / 8);
        bar.push_str(EIGHTHS[eighths % 8]);
        let blanks = (width as usize).saturating_sub(bar.chars().count());
        Ok(Some(bar + &" ".repeat(blanks)))
    })
}
