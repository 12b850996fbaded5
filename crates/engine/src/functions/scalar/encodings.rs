//! Bytes and integers as digits, bytes as base64, and one number for any value.
//!
//! In: strings, bytes, integers, anything. Out: strings, bytes, numbers.
//! Invariant: `hash` gives equal numbers of all widths and equal strings the same number, which is not DuckDB's.
//! Not here: `md5`, `sha256`, `encode` and `decode`, DataFusion's.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringViewArray, UInt64Array,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::functions::encoding::expr_fn::{decode, encode};
use datafusion::functions::string::expr_fn::octet_length;
use datafusion::logical_expr::{ScalarUDF, lit};
use grouse_groupby::keys::row::canonical_values;

use super::definition::{CallArguments, CallForm, Definition, only, rows, stands};
use super::kinds::ParameterKind;
use crate::error::to_datafusion;

/// What hashes begin with; a change of it changes every hash.
const SEED: u64 = 0x6772_6f75_7365;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const BYTES: &[CallForm] = &[&[ParameterKind::Bytes]];
    const BYTES_OR_INTEGER: &[CallForm] = &[&[ParameterKind::Bytes], &[ParameterKind::Integer]];
    const TEXT: &[CallForm] = &[&[ParameterKind::Text]];
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let base64 = stands("base64", BYTES, |args| {
        Ok(encode(only(args), lit("base64pad")))
    });
    let hex = rows("hex", BYTES_OR_INTEGER, text, |call| digits(call, 4));
    let binary = rows("bin", BYTES_OR_INTEGER, text, |call| digits(call, 1));
    let unhex = rows(
        "unhex",
        TEXT,
        |_| Ok(DataType::Binary),
        |call| bytes(call, 4),
    );
    let unbin = rows(
        "unbin",
        TEXT,
        |_| Ok(DataType::Binary),
        |call| bytes(call, 1),
    );
    let bytes_of_blob = |call: &CallArguments| {
        let blobs = call.args[0].as_binary_view();
        call.each::<Int32Array, _>(|row| Ok(i32::try_from(blobs.value(row).len()).ok()))
    };
    let all: Vec<Definition> = vec![
        // DataFusion's takes no bytes.
        stands("octet_length", &[&[ParameterKind::Word]], |args| {
            Ok(octet_length(only(args)))
        })
        .or_rows(
            &[ParameterKind::Bytes],
            |_| Ok(DataType::Int32),
            bytes_of_blob,
        ),
        base64.also("to_base64"),
        base64,
        stands("from_base64", TEXT, |args| {
            Ok(decode(only(args), lit("base64pad")))
        }),
        hex,
        binary.also("to_binary"),
        binary,
        unhex.also("from_hex"),
        unhex,
        unbin.also("from_binary"),
        unbin,
        rows(
            "to_base",
            &[
                &[ParameterKind::Integer, ParameterKind::Integer],
                &[
                    ParameterKind::Integer,
                    ParameterKind::Integer,
                    ParameterKind::Integer,
                ],
            ],
            text,
            to_base,
        ),
        rows(
            "hash",
            &[&[ParameterKind::Any, ParameterKind::Dots]],
            |_| Ok(DataType::UInt64),
            hash,
        ),
    ];
    all.into_iter().map(ScalarUDF::from).collect()
}

/// Bytes of a text or binary column.
fn bytes_of(column: &ArrayRef, row: usize) -> &[u8] {
    match column.as_string_view_opt() {
        Some(strings) => strings.value(row).as_bytes(),
        None => column.as_binary_view().value(row),
    }
}

/// Digits of `bits` bits each: of bytes all, of integers without zeros before the first.
fn digits(call: &CallArguments, bits: u32) -> Result<ArrayRef> {
    let is_integer = call.args[0].data_type() == &DataType::Int64;
    call.each::<StringViewArray, _>(|row| {
        if is_integer {
            let number = call.integers(0).value(row);
            return Ok(Some(match bits {
                4 => format!("{number:X}"),
                _ => format!("{number:b}"),
            }));
        }
        let bytes = bytes_of(&call.args[0], row).iter();
        Ok(Some(match bits {
            4 => bytes.map(|byte| format!("{byte:02X}")).collect::<String>(),
            _ => bytes.map(|byte| format!("{byte:08b}")).collect::<String>(),
        }))
    })
}

/// Bytes of digits of `bits` bits each; a first byte may have fewer digits.
fn bytes(call: &CallArguments, bits: u32) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let per_byte = (8 / bits) as usize;
    let nulls = call.nulls();
    let read = |text: &str| -> Option<Vec<u8>> {
        let missing = (per_byte - text.len() % per_byte) % per_byte;
        let text = "0".repeat(missing) + text;
        text.is_ascii().then_some(())?;
        let pieces = text.as_bytes().chunks(per_byte);
        let byte = |piece| u8::from_str_radix(std::str::from_utf8(piece).ok()?, 1 << bits).ok();
        pieces.map(byte).collect()
    };
    let values = (0..call.rows).map(|row| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        let text = strings.value(row);
        let bytes = read(text)
            .ok_or_else(|| call.invalid(format!("'{text}' has other characters than digits")))?;
        Ok(Some(bytes))
    });
    Ok(Arc::new(values.collect::<Result<BinaryArray>>()?))
}

fn to_base(call: &CallArguments) -> Result<ArrayRef> {
    let (numbers, bases) = (call.integers(0), call.integers(1));
    call.each::<StringViewArray, _>(|row| {
        let (number, base) = (numbers.value(row), bases.value(row));
        let width = call.args.get(2).map_or(0, |_| call.integers(2).value(row));
        if number < 0 || !(2..=36).contains(&base) || !(0..=64).contains(&width) {
            return Err(call.invalid(
                "the number has to be 0 or more, the base between 2 and 36, the width between 0 and 64",
            ));
        }
        let mut left = number as u64;
        let mut digits = Vec::new();
        while left > 0 || digits.is_empty() {
            digits.push(char::from_digit((left % base as u64) as u32, 36).unwrap_or('0'));
            left /= base as u64;
        }
        let zeros = "0".repeat((width as usize).saturating_sub(digits.len()));
        let digits: String = digits.iter().rev().collect();
        Ok(Some(zeros + &digits.to_uppercase()))
    })
}

/// One number per row for all arguments together; NULL has one, too.
fn hash(call: &CallArguments) -> Result<ArrayRef> {
    let mut hashes = vec![0; call.rows];
    let columns = call.args.iter().map(widened).collect::<Result<Vec<_>>>()?;
    create_hashes(&columns, &RandomState::with_seed(SEED), &mut hashes)?;
    Ok(Arc::new(UInt64Array::from(hashes)))
}

/// Equal numbers have equal hashes: integers and floats are hashed as the widest of their kind, strings as views.
fn widened(column: &ArrayRef) -> Result<ArrayRef> {
    let wide = match column.data_type() {
        DataType::Dictionary(_, of) => {
            return widened(&datafusion::arrow::compute::cast(column, of)?);
        }
        DataType::UInt64 => DataType::UInt64,
        of if of.is_integer() => DataType::Int64,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        _ => return Ok(Arc::clone(column)),
    };
    let wide = datafusion::arrow::compute::cast(column, &wide)?;
    canonical_values(&wide).map_err(to_datafusion)
}
