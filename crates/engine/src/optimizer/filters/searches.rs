//! Searches in strings: one pass over neighbouring strings instead of one per string, and patterns without regular expressions.
//!
//! In: LIKE and ILIKE of a literal, `contains` and `strpos` of one, their NOT, and OR of words in the same strings; then columns.
//! Out: the same booleans.
//! Invariant: what comes as codes is searched once per value elsewhere. ILIKE is of ASCII, and DataFusion's where a string has a
//! letter beyond it that is one of ASCII in another case.
//! Not here: the searches (`grouse_kernels`, `word` and `like`); LIKE of a fixed start or end alone, at which Arrow looks.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use grouse_kernels::like::LikePattern;
use grouse_kernels::word::{LetterCase, Word};

use super::OwnLoop;
use crate::expr::specialised::Specialised;
use crate::functions::text_views;

/// Letters beyond ASCII that are `k` and `s` in another case: the sign of Kelvin and the long s.
const OF_K_AND_S: [&str; 2] = ["\u{212a}", "\u{17f}"];

/// Words that are looked for together. A search for 2 to 8 of them takes 0.2 to 0.9 of the time of one search each. That for 40
/// takes 1.3 times as long (8,192 strings of 62 bytes).
const WORDS_MAX: usize = 32;

/// What is looked for.
#[derive(Debug)]
pub(super) struct TextSearch {
    wanted: Wanted,
    case: LetterCase,
    /// Words of which a string is DataFusion's to judge.
    beyond_ascii: Vec<Word>,
    negated: bool,
}

#[derive(Debug)]
enum Wanted {
    Pattern(LikePattern),
    /// Any of these words.
    AnyOf(Word, Vec<Vec<u8>>),
}

impl TextSearch {
    /// The search of an expression; without a schema, of what took the place of one.
    pub(super) fn of(expr: &Arc<dyn PhysicalExpr>, schema: Option<&Schema>) -> Option<TextSearch> {
        let search = match expr.downcast_ref::<LikeExpr>() {
            Some(like) => Self::of_like(like)?,
            None => Self::of_call(expr).or_else(|| Self::of_either(expr))?,
        };
        // What comes as codes is searched once per value.
        let is_text = |schema| {
            let of = searched(expr).data_type(schema);
            matches!(
                of,
                Ok(DataType::Utf8View | DataType::Utf8 | DataType::LargeUtf8)
            )
        };
        schema.is_none_or(is_text).then_some(search)
    }

    fn of_like(like: &LikeExpr) -> Option<TextSearch> {
        let pattern = text_of(like.pattern())?;
        let case = match like.case_insensitive() {
            true => LetterCase::Any,
            false => LetterCase::AsWritten,
        };
        let is_taken = match case {
            LetterCase::Any => pattern.is_ascii(),
            LetterCase::AsWritten => !is_arrows(pattern),
        };
        let pattern_of = |pattern| LikePattern::new(pattern, case);
        let wanted = Some(pattern).filter(|_| is_taken).and_then(pattern_of)?;
        let is_beyond = case == LetterCase::Any && pattern.contains(['k', 'K', 's', 'S']);
        let beyond_ascii = OF_K_AND_S.iter().filter(|_| is_beyond);
        let beyond_ascii = beyond_ascii.map(|letter| exactly(letter.as_bytes()));
        Some(TextSearch {
            wanted: Wanted::Pattern(wanted),
            case,
            beyond_ascii: beyond_ascii.collect(),
            negated: like.negated(),
        })
    }

    /// `contains(text, 'word')`, and `strpos(text, 'word')` compared with 0 or 1.
    fn of_call(expr: &Arc<dyn PhysicalExpr>) -> Option<TextSearch> {
        if let Some(word) = word_of_call(expr, "contains") {
            return Self::for_word(word, false);
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
        Self::for_word(word, negated)
    }

    fn for_word(word: &str, negated: bool) -> Option<TextSearch> {
        Some(TextSearch {
            wanted: Wanted::Pattern(LikePattern::containing(word)?),
            case: LetterCase::AsWritten,
            beyond_ascii: Vec::new(),
            negated,
        })
    }

    /// `text LIKE '%one%' OR text LIKE '%two%'`: strings are searched once for any number of words.
    fn of_either(expr: &Arc<dyn PhysicalExpr>) -> Option<TextSearch> {
        let either = expr.downcast_ref::<BinaryExpr>()?;
        let sides = [either.left(), either.right()];
        let [Some(left), Some(right)] = sides.map(search_of) else {
            return None;
        };
        let are_alike = left.case == right.case && !left.negated && !right.negated;
        let [one, other] = sides.map(searched);
        if *either.op() != Operator::Or || !are_alike || one != other || is_volatile(one) {
            return None;
        }
        let words = [left, right].map(TextSearch::words);
        let [Some(words), Some(others)] = words else {
            return None;
        };
        let words = [words, others].concat();
        if words.len() > WORDS_MAX {
            return None;
        }
        let beyond_ascii = match left.beyond_ascii.is_empty() {
            true => &right.beyond_ascii,
            false => &left.beyond_ascii,
        };
        let word = Word::any_of(&words, left.case)?;
        let words = words.into_iter().map(<[u8]>::to_vec).collect();
        Some(TextSearch {
            wanted: Wanted::AnyOf(word, words),
            case: left.case,
            beyond_ascii: beyond_ascii.clone(),
            negated: false,
        })
    }

    /// Whether bounds of strings may say what it finds: DataFusion leaves out parts of files by a pattern's fixed start.
    pub(super) fn follows_from_bounds(&self) -> bool {
        matches!(&self.wanted, Wanted::Pattern(pattern) if pattern.is_start_fixed())
    }

    /// The words any of which is enough, if nothing else is wanted.
    fn words(&self) -> Option<Vec<&[u8]>> {
        match &self.wanted {
            Wanted::Pattern(pattern) => pattern.only_word().map(|word| vec![word]),
            Wanted::AnyOf(_, words) => Some(words.iter().map(Vec::as_slice).collect()),
        }
    }

    /// True of strings that have what is wanted, or have it not; `None` where these are DataFusion's to judge.
    pub(super) fn booleans(&self, column: &ArrayRef) -> Option<BooleanBuffer> {
        let strings = Strings::of(column)?;
        let has = |word: &Word| strings.with(word).contains(&true);
        if self.beyond_ascii.iter().any(has) {
            return None;
        }
        let found = match &self.wanted {
            Wanted::Pattern(pattern) => strings.like(pattern),
            Wanted::AnyOf(word, _) => strings.with(word),
        };
        let found: BooleanBuffer = found.into();
        Some(if self.negated { !&found } else { found })
    }
}

/// Strings as they lie in memory.
enum Strings<'a> {
    Views(Cow<'a, [u128]>, Vec<&'a [u8]>),
    Short(&'a [i32], &'a [u8]),
    Long(&'a [i64], &'a [u8]),
}

impl Strings<'_> {
    fn of(column: &ArrayRef) -> Option<Strings<'_>> {
        if let Some(strings) = column.as_string_view_opt() {
            let (views, buffers) = text_views(strings);
            return Some(Strings::Views(views, buffers));
        }
        if let Some(strings) = column.as_string_opt::<i32>() {
            return Some(Strings::Short(
                strings.value_offsets(),
                strings.value_data(),
            ));
        }
        let strings = column.as_string_opt::<i64>()?;
        Some(Strings::Long(strings.value_offsets(), strings.value_data()))
    }

    fn with(&self, word: &Word) -> Vec<bool> {
        match self {
            Strings::Views(views, buffers) => word.in_views(views, buffers),
            Strings::Short(offsets, bytes) => word.in_strings(offsets, bytes),
            Strings::Long(offsets, bytes) => word.in_strings(offsets, bytes),
        }
    }

    fn like(&self, pattern: &LikePattern) -> Vec<bool> {
        match self {
            Strings::Views(views, buffers) => pattern.in_views(views, buffers),
            Strings::Short(offsets, bytes) => pattern.in_strings(offsets, bytes),
            Strings::Long(offsets, bytes) => pattern.in_strings(offsets, bytes),
        }
    }
}

/// The strings that are searched.
pub(super) fn searched(search: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    let search = match search.downcast_ref::<Specialised<OwnLoop>>() {
        Some(specialised) => specialised.datafusion(),
        None => search,
    };
    let first = search.children()[0];
    match search.downcast_ref::<BinaryExpr>().map(BinaryExpr::op) {
        Some(Operator::Or) => searched(first),
        Some(_) => first.children()[0],
        None => first,
    }
}

/// The search that an expression has already.
fn search_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&TextSearch> {
    match expr.downcast_ref::<Specialised<OwnLoop>>()?.kernel() {
        OwnLoop::Searched(search) => Some(search),
        OwnLoop::Compared(_) => None,
    }
}

/// Whether Arrow compares all of a string, its start or its end with a pattern.
fn is_arrows(pattern: &str) -> bool {
    let is_plain = |text: &str| !text.contains(['%', '_', '\\']);
    let fixed = |text: Option<&str>| text.is_some_and(is_plain);
    is_plain(pattern) || fixed(pattern.strip_suffix('%')) || fixed(pattern.strip_prefix('%'))
}

fn exactly(word: &[u8]) -> Word {
    Word::new(word, LetterCase::AsWritten)
}

/// The literal that a function of this name looks for.
fn word_of_call<'a>(expr: &'a Arc<dyn PhysicalExpr>, name: &str) -> Option<&'a str> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match call.args() {
        [_, word] if call.name() == name => text_of(word),
        _ => None,
    }
}

fn text_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    expr.downcast_ref::<Literal>()?.value().try_as_str()?
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Array, LargeStringArray, RecordBatch, StringArray, StringViewArray,
    };
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

    /// The strings in all forms, as batches of one column.
    fn batches() -> Vec<RecordBatch> {
        let strings: Vec<_> = STRINGS.iter().cycle().take(100).copied().collect();
        let views: ArrayRef = Arc::new(StringViewArray::from(strings.clone()));
        let short: ArrayRef = Arc::new(StringArray::from(strings.clone()));
        let long: ArrayRef = Arc::new(LargeStringArray::from(strings));
        let columns = [&views, &short, &long];
        let columns = columns
            .into_iter()
            .flat_map(|of| [Arc::clone(of), of.slice(4, 50), of.slice(2, 0)]);
        let batch =
            |column| RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
        columns.map(batch).collect()
    }

    fn literal(text: &str, batch: &RecordBatch) -> Arc<dyn PhysicalExpr> {
        let of = batch.schema().field(0).data_type().clone();
        lit(ScalarValue::from(text).cast_to(&of).unwrap())
    }

    fn check(datafusion: &Arc<dyn PhysicalExpr>, batch: &RecordBatch, is_searched: bool) {
        let ours = in_own_loops(Arc::clone(datafusion), &batch.schema()).unwrap();
        assert_eq!(ours.transformed, is_searched, "{datafusion}");
        let rows = |expr: &Arc<dyn PhysicalExpr>| {
            let value = expr.evaluate(batch).unwrap();
            value.into_array(batch.num_rows()).unwrap()
        };
        assert_eq!(&rows(&ours.data), &rows(datafusion), "{datafusion}");
    }

    /// Patterns, and whether they are searched for as they are written and in any case.
    const PATTERNS: [(&str, bool, bool); 19] = [
        ("%word%", true, true),
        ("%WoRd%", true, true),
        ("%wor%d%", true, true),
        ("%r%r%r%", true, true),
        ("%d%wor%", true, true),
        ("%ski%", true, true),
        ("%S%", true, true),
        ("%é%", true, false),
        ("%%", false, false),
        ("%_%", false, false),
        ("%w_rd%", true, true),
        ("%w\\_rd%", true, true),
        ("w%d", true, true),
        ("_or%", true, true),
        ("% _o%r", true, true),
        ("%, \u{212a}_%", true, false),
        ("word%", false, true),
        ("%WOR", false, true),
        ("word", false, true),
    ];

    #[test]
    fn patterns_equal_those_of_datafusion() {
        for batch in batches() {
            let schema = batch.schema();
            for (pattern, as_written, any_case) in PATTERNS {
                let pattern = literal(pattern, &batch);
                for (negated, in_any_case, is_searched) in [
                    (false, false, as_written),
                    (true, false, as_written),
                    (false, true, any_case),
                    (true, true, any_case),
                ] {
                    let (text, pattern) = (col("t", &schema).unwrap(), Arc::clone(&pattern));
                    let like = like(negated, in_any_case, text, pattern, &schema).unwrap();
                    check(&like, &batch, is_searched);
                }
            }
        }
    }

    #[test]
    fn words_of_either_equal_those_of_datafusion() {
        let either = |patterns: &[(&str, bool)], batch: &RecordBatch| {
            let schema = batch.schema();
            let like = |(pattern, any_case): &(&str, bool)| {
                let text = col("t", &schema).unwrap();
                like(false, *any_case, text, literal(pattern, batch), &schema).unwrap()
            };
            let likes = patterns.iter().map(like);
            let or = |one, other| binary(one, Operator::Or, other, &schema).unwrap();
            likes.reduce(or).unwrap()
        };
        for batch in batches() {
            for (patterns, words) in [
                (&[("%word%", false), ("%ski%", false)][..], Some(2)),
                (
                    &[("%SKI%", true), ("%wor d%", true), ("%64%", true)],
                    Some(3),
                ),
                (&[("%wor%", true), ("%word%", false)], None),
                (&[("%64%", false), ("%o%r%", false)], None),
                (&[("%64%", true), ("%d%", true), ("wor%", true)], None),
            ] {
                let either = either(patterns, &batch);
                check(&either, &batch, true);
                let ours = in_own_loops(either, &batch.schema()).unwrap().data;
                let together = search_of(&ours).and_then(TextSearch::words);
                assert_eq!(together.map(|words| words.len()), words);
            }
        }
    }

    #[test]
    fn calls_equal_those_of_datafusion() {
        for batch in batches() {
            let schema = batch.schema();
            let call = |function, word| {
                let args = vec![col("t", &schema).unwrap(), literal(word, &batch)];
                let options = Arc::new(ConfigOptions::default());
                let call = ScalarFunctionExpr::try_new(function, args, &schema, options);
                Arc::new(call.unwrap()) as Arc<dyn PhysicalExpr>
            };
            check(&call(contains(), "word"), &batch, true);
            check(&call(contains(), "w_rd"), &batch, true);
            check(&call(contains(), ""), &batch, false);
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
                check(&compared, &batch, is_searched);
            }
        }
    }
}
