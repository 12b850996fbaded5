//! Searches for words in strings: one pass over neighbouring strings instead of one per string.
//!
//! In: `LIKE '%word%'`, `'%one%two%'`, ILIKE of ASCII, `contains` and `strpos` of a literal, and their NOT; then columns.
//! Out: the same booleans.
//! Invariant: what comes as codes is searched once per value elsewhere; strings that are no views are DataFusion's.
//! Not here: the search for one word (`grouse_kernels::word`); patterns with `_`, an escape or a fixed end.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_kernels::word::Word;

use crate::functions::text_views;

/// Letters beyond ASCII that are `k` and `s` in another case: the sign of Kelvin and the long s.
const OF_K_AND_S: [&str; 2] = ["\u{212a}", "\u{17f}"];

/// What is looked for.
#[derive(Debug)]
pub(super) struct WordSearch {
    /// The longest word: the strings without it are left out first.
    longest: Word,
    /// All words in their order, where there are several.
    several: Vec<Word>,
    /// Words of which a string is DataFusion's to judge.
    beyond_ascii: Vec<Word>,
    negated: bool,
}

impl WordSearch {
    /// The search of an expression; without a schema, of what took the place of one.
    pub(super) fn of(expr: &Arc<dyn PhysicalExpr>, schema: Option<&Schema>) -> Option<WordSearch> {
        let search = match expr.downcast_ref::<LikeExpr>() {
            Some(like) => Self::of_like(like)?,
            None => Self::of_call(expr)?,
        };
        // What comes as codes is searched once per value, what a function makes may be no views.
        let is_view = |schema| matches!(searched(expr).data_type(schema), Ok(DataType::Utf8View));
        schema.is_none_or(is_view).then_some(search)
    }

    fn of_like(like: &LikeExpr) -> Option<WordSearch> {
        let pattern = text_of(like.pattern())?;
        let words = pattern.strip_prefix('%')?.strip_suffix('%')?;
        let words: Vec<&str> = words.split('%').filter(|word| !word.is_empty()).collect();
        if words.iter().any(|word| word.contains(['_', '\\'])) {
            return None;
        }
        let case = match like.case_insensitive() {
            true => SearchCase::Any,
            false => SearchCase::AsWritten,
        };
        Self::for_words(&words, case, like.negated())
    }

    /// `contains(text, 'word')`, and `strpos(text, 'word')` compared with 0 or 1.
    fn of_call(expr: &Arc<dyn PhysicalExpr>) -> Option<WordSearch> {
        if let Some(word) = word_of_call(expr, "contains") {
            return Self::for_words(&[word], SearchCase::AsWritten, false);
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let word = word_of_call(binary.left(), "strpos")?;
        let bound = binary.right().downcast_ref::<Literal>()?.value();
        let bound = match bound.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(bound))) => bound,
            _ => return None,
        };
        let negated = match (binary.op(), bound) {
            (Operator::Gt | Operator::NotEq, 0) | (Operator::GtEq, 1) => false,
            (Operator::Eq | Operator::LtEq, 0) | (Operator::Lt, 1) => true,
            _ => return None,
        };
        Self::for_words(&[word], SearchCase::AsWritten, negated)
    }

    fn for_words(words: &[&str], case: SearchCase, negated: bool) -> Option<WordSearch> {
        let word_of = |word: &&str| match case {
            SearchCase::AsWritten => Some(Word::new(word.as_bytes())),
            SearchCase::Any if word.is_ascii() => Word::in_any_case(word.as_bytes()),
            SearchCase::Any => None,
        };
        let longest = words.iter().max_by_key(|word| word.len())?;
        if longest.is_empty() {
            return None;
        }
        let is_k_or_s = |word: &&str| word.contains(['k', 'K', 's', 'S']);
        let beyond_ascii = match case {
            SearchCase::Any if words.iter().any(is_k_or_s) => {
                OF_K_AND_S.map(|letter| Word::new(letter.as_bytes())).into()
            }
            _ => Vec::new(),
        };
        let several = match words {
            [_] => Vec::new(),
            words => words.iter().map(word_of).collect::<Option<_>>()?,
        };
        Some(WordSearch {
            longest: word_of(longest)?,
            several,
            beyond_ascii,
            negated,
        })
    }

    /// True of strings that have the words, or have them not; `None` where these are DataFusion's to judge.
    pub(super) fn booleans(&self, strings: &ArrayRef) -> Option<BooleanBuffer> {
        let strings = strings.as_string_view_opt()?;
        let (views, buffers) = text_views(strings);
        let has = |word: &Word| word.in_views(&views, &buffers).contains(&true);
        if self.beyond_ascii.iter().any(has) {
            return None;
        }
        let mut found = self.longest.in_views(&views, &buffers);
        if !self.several.is_empty() {
            for (row, found) in found.iter_mut().enumerate() {
                *found = *found && self.are_in(strings, row);
            }
        }
        let found: BooleanBuffer = found.into();
        Some(if self.negated { !&found } else { found })
    }

    /// Whether a string has all words one behind the other.
    fn are_in(&self, strings: &StringViewArray, row: usize) -> bool {
        let mut left = strings.value(row).as_bytes();
        self.several.iter().all(|word| match word.find(left) {
            Some(at) => {
                left = &left[at + word.bytes().len()..];
                true
            }
            None => false,
        })
    }
}

/// Which letters are the same.
#[derive(Clone, Copy)]
enum SearchCase {
    AsWritten,
    Any,
}

/// The strings that are searched.
pub(super) fn searched(search: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let first = search.children()[0];
    match search.is::<BinaryExpr>() {
        true => first.children()[0],
        false => first,
    }
}

/// The literal that a function of this name looks for.
fn word_of_call<'a>(expr: &'a Arc<dyn PhysicalExpr>, name: &str) -> Option<&'a str> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match call.args() {
        [_, word] if call.name() == name => text_of(word).filter(|word| !word.is_empty()),
        _ => None,
    }
}

fn text_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    expr.downcast_ref::<Literal>()?.value().try_as_str()?
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Array, RecordBatch, StringArray};
    use datafusion::common::config::ConfigOptions;
    use datafusion::functions::string::contains;
    use datafusion::functions::unicode::strpos;
    use datafusion::physical_expr::expressions::{binary, col, like, lit};

    use super::super::in_own_loops;
    use super::*;

    const STRINGS: [Option<&str>; 13] = [
        Some("a long s, \u{17f}, and the sign of Kelvin, \u{212a}"),
        Some("SKIES and sKi"),
        Some("\u{17f}ki"),
        Some("word wor d, in this order and no other"),
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
            let text = col("t", &schema).unwrap();
            let is_view = text.data_type(&schema).unwrap() == DataType::Utf8View;
            let literal = |word: &str| match is_view {
                true => lit(ScalarValue::Utf8View(Some(word.into()))),
                false => lit(word),
            };
            let check = |datafusion: Arc<dyn PhysicalExpr>, is_searched: bool| {
                let ours = in_own_loops(Arc::clone(&datafusion), &schema).unwrap();
                assert_eq!(ours.transformed, is_searched && is_view, "{datafusion}");
                let rows = |expr: &Arc<dyn PhysicalExpr>| {
                    let value = expr.evaluate(&batch).unwrap();
                    value.into_array(batch.num_rows()).unwrap()
                };
                assert_eq!(&rows(&ours.data), &rows(&datafusion), "{datafusion}");
            };
            for (pattern, is_searched) in [
                ("%word%", true),
                ("%WoRd%", true),
                ("%wor%d%", true),
                ("%r%r%r%", true),
                ("%d%wor%", true),
                ("%ski%", true),
                ("%S%", true),
                ("%é%", true),
                ("%%", false),
                ("%w_rd%", false),
                ("word%", false),
            ] {
                for (negated, any_case) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let is_searched = is_searched && (!any_case || pattern.is_ascii());
                    let pattern = literal(pattern);
                    let text = Arc::clone(&text);
                    check(
                        like(negated, any_case, text, pattern, &schema).unwrap(),
                        is_searched,
                    );
                }
            }
            let call = |function, word| {
                let args = vec![Arc::clone(&text), literal(word)];
                let options = Arc::new(ConfigOptions::default());
                let call = ScalarFunctionExpr::try_new(function, args, &schema, options);
                Arc::new(call.unwrap()) as Arc<dyn PhysicalExpr>
            };
            check(call(contains(), "word"), true);
            check(call(contains(), ""), false);
            let place = call(strpos(), "word");
            let kind = place.data_type(&schema).unwrap();
            for (op, bound, is_searched) in [
                (Operator::Gt, 0, true),
                (Operator::NotEq, 0, true),
                (Operator::GtEq, 1, true),
                (Operator::LtEq, 0, true),
                (Operator::Lt, 1, true),
                (Operator::Gt, 1, false),
                (Operator::Lt, 0, false),
            ] {
                let bound = ScalarValue::from(bound).cast_to(&kind).unwrap();
                let compared = binary(Arc::clone(&place), op, lit(bound), &schema).unwrap();
                check(compared, is_searched);
            }
        }
    }
}
