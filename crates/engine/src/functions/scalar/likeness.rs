//! How alike two strings are.
//!
//! In: two strings. Out: a number of edits, or a share between 0 and 1.
//! Invariant: characters are compared, not bytes.
//! Not here: `levenshtein`, DataFusion's.

use std::collections::HashSet;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::expr_fn::levenshtein;
use datafusion::logical_expr::{ScalarUDF, lit};

use super::definition::{CallArguments, CallForm, Definition, rows, stands};
use super::kinds::ParameterKind;

const TWO: &[CallForm] = &[&[ParameterKind::Text, ParameterKind::Text]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let int = |_: &[DataType]| Ok(DataType::Int64);
    let double = |_: &[DataType]| Ok(DataType::Float64);
    let hamming = rows("hamming", TWO, int, |call| {
        edits(call, |a, b| match strsim::hamming(a, b) {
            Ok(edits) => Ok(edits),
            Err(_) => Err(call.invalid("the strings have to be equally long")),
        })
    });
    let all: Vec<Definition> = vec![
        hamming.also("mismatches"),
        hamming,
        rows("damerau_levenshtein", TWO, int, |call| {
            edits(call, |a, b| Ok(strsim::damerau_levenshtein(a, b)))
        }),
        stands("editdist3", TWO, |args| {
            let mut args = args.into_iter();
            let mut next = || args.next().unwrap_or(lit(""));
            Ok(levenshtein(next(), next()))
        }),
        rows("jaccard", TWO, double, |call| {
            share(call, |a, b| {
                jaccard(a, b).ok_or_else(|| call.invalid("a text is empty"))
            })
        }),
        rows("jaro_similarity", TWO, double, |call| {
            share(call, |a, b| Ok(strsim::jaro(a, b)))
        }),
        rows("jaro_winkler_similarity", TWO, double, |call| {
            share(call, |a, b| Ok(strsim::jaro_winkler(a, b)))
        }),
    ];
    all.into_iter().map(ScalarUDF::from).collect()
}

fn edits(call: &CallArguments, count: impl Fn(&str, &str) -> Result<usize>) -> Result<ArrayRef> {
    let (a, b) = (call.strings(0), call.strings(1));
    call.each::<Int64Array, _>(|row| Ok(Some(count(a.value(row), b.value(row))? as i64)))
}

fn share(call: &CallArguments, share: impl Fn(&str, &str) -> Result<f64>) -> Result<ArrayRef> {
    let (a, b) = (call.strings(0), call.strings(1));
    call.each::<Float64Array, _>(|row| share(a.value(row), b.value(row)).map(Some))
}

/// Characters that both have, of those that one of them has.
fn jaccard(a: &str, b: &str) -> Option<f64> {
    let (a, b): (HashSet<char>, HashSet<char>) = (a.chars().collect(), b.chars().collect());
    let both = a.intersection(&b).count() as f64;
    (!a.is_empty() && !b.is_empty()).then(|| both / a.union(&b).count() as f64)
}
