//! LIKE that asks for a word: one pass over neighbouring strings instead of one per string.
//!
//! In: DataFusion's LIKE, then columns. Out: the same booleans.
//! Not here: the search (`grouse_kernels::word`); patterns with more than one word, `_` or an escape, and ILIKE.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::expressions::{LikeExpr, Literal};
use grouse_kernels::word::Word;

use crate::functions::text_views;

/// The word of `text LIKE '%word%'`, or of its NOT, where strings are views.
pub(super) fn word_of(like: &LikeExpr, schema: Option<&Schema>) -> Option<Word> {
    // What comes as codes is searched once per value, what a function makes may be no views.
    let is_view = |schema| matches!(like.expr().data_type(schema), Ok(DataType::Utf8View));
    if !schema.is_none_or(is_view) {
        return None;
    }
    let pattern = like.pattern().downcast_ref::<Literal>()?;
    let pattern = pattern.value().try_as_str()??;
    let word = pattern.strip_prefix('%')?.strip_suffix('%')?;
    let is_plain = !word.is_empty() && !word.contains(['%', '_', '\\']);
    (is_plain && !like.case_insensitive()).then(|| Word::new(word.as_bytes()))
}

/// True of strings that have the word, or have it not; `None` if they are no views.
pub(super) fn booleans(strings: &ArrayRef, word: &Word, negated: bool) -> Option<BooleanBuffer> {
    let (views, buffers) = text_views(strings.as_string_view_opt()?);
    let found: BooleanBuffer = word.in_views(&views, &buffers).into();
    Some(if negated { !&found } else { found })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Array, RecordBatch, StringArray, StringViewArray};
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{col, like, lit};

    use super::super::in_own_loops;
    use super::*;

    const STRINGS: [Option<&str>; 9] = [
        Some(""),
        None,
        Some("word"),
        Some("wor d"),
        Some("a text with the word in it"),
        Some("a text that ends with a wor"),
        Some("d begins this one, which follows it in memory"),
        Some("WORD, in capitals that are others"),
        Some("one word, and another word, in a text of 64 characters or more"),
    ];

    #[test]
    fn equals_that_of_datafusion() {
        let strings: Vec<_> = STRINGS.iter().cycle().take(100).copied().collect();
        let views: ArrayRef = Arc::new(StringViewArray::from(strings.clone()));
        let flat: ArrayRef = Arc::new(StringArray::from(strings));
        for column in [
            Arc::clone(&views),
            views.slice(4, 50),
            views.slice(2, 0),
            flat,
        ] {
            let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
            let schema = batch.schema();
            for (pattern, negated, is_word) in [
                ("%word%", false, true),
                ("%word%", true, true),
                ("%wor%d%", false, false),
                ("%%", false, false),
                ("%w_rd%", false, false),
                ("word%", false, false),
            ] {
                let text = col("t", &schema).unwrap();
                let column_type = text.data_type(&schema).unwrap();
                let pattern = match column_type {
                    DataType::Utf8View => ScalarValue::Utf8View(Some(pattern.into())),
                    _ => ScalarValue::from(pattern),
                };
                let datafusion = like(negated, false, text, lit(pattern), &schema).unwrap();
                let ours = in_own_loops(Arc::clone(&datafusion), &schema).unwrap();
                let is_view = column_type == DataType::Utf8View;
                assert_eq!(ours.transformed, is_word && is_view, "{datafusion}");
                let rows = |expr: &Arc<dyn PhysicalExpr>| {
                    let value = expr.evaluate(&batch).unwrap();
                    value.into_array(batch.num_rows()).unwrap()
                };
                assert_eq!(&rows(&ours.data), &rows(&datafusion), "{datafusion}");
            }
        }
    }
}
