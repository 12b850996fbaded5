//! Late materialisation: which scans read all other columns only where one condition holds.
//!
//! In: a scan's predicate and a footer. Out: the condition to be read first, or none; a scan that does so.
//! Invariant: the scan holds rows against nothing but conditions that cannot fail; the filter above it holds them against
//! the whole predicate.
//! Not here: reading so, which DataFusion does row group by row group (`pushdown_filters`).
//!
//! DataFusion's reader leaves pages out of which no row is wanted, and what it has read for the condition it keeps. That is
//! worth it where hardly any row is left and long columns follow. Two strings after a LIKE of 0.08 % take 0.88 of the time,
//! and 0.32 where the rows lie together. Where every tenth row is left all pages are read, and rows picked one by one: 1.1 to
//! 1.3 of the time for `SearchPhrase <> ''`. Nothing in a footer says how frequent a value is. So only what is rare by its
//! form counts: a LIKE that asks for a word, equality in a column of very many values.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::logical_expr::Operator;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};

use crate::expr::columns::is_column_compared;
use crate::scan::parquet::footer::{chunks_of, dictionary_bytes, has_only_codes, reading_bytes};

/// A part of a pattern with as many characters is in few strings.
const WORD_CHARS_MIN: usize = 4;
/// Dictionaries of more bytes (compressed) hold thousands of values; a chunk that outgrew its own holds more still.
const MANY_VALUES_BYTES: i64 = 64 << 10;
/// DataFusion reads all that a row group has for the condition before anybody looks whether the query was cancelled.
const GROUP_BYTES_MAX: i64 = 64 << 20;
/// Of what is read at least one part in so many has to be late.
const LATE_SHARE: i64 = 3;
/// What a worker keeps of a row group that was read for a condition, until its other columns are. DataFusion does so,
/// too; here it is no more than one part in so many of the worker's memory, of which DataFusion's reader does not know.
const KEPT_BYTES_MAX: usize = 100 << 20;
const KEPT_SHARE: usize = 8;

/// Which part of a conjunction leaves hardly a row of this file, if much of what is read beside it can wait for those.
pub(crate) fn rare_part(
    predicate: &Arc<dyn PhysicalExpr>,
    footer: &ParquetMetaData,
    read: &HashSet<&str>,
) -> Option<usize> {
    let is_rare = |part: &Arc<dyn PhysicalExpr>| {
        let Some(column) = rare_column(part) else {
            return false;
        };
        let own: Vec<_> = chunks_of(footer, |name| name == column.name()).collect();
        if !own.iter().all(|chunk| may_be_first(chunk)) {
            return false;
        }
        let all = bytes(chunks_of(footer, |name| read.contains(name)));
        let own = bytes(own.into_iter());
        all.saturating_sub(own) >= all / LATE_SHARE
    };
    split_conjunction(predicate).into_iter().position(is_rare)
}

/// The scan that holds rows against part `rare` of its predicate, then against others, before it reads other columns. What
/// bounds say of all has been looked at. A worker has a memory of `limit_bytes`.
pub(crate) fn late_materialised(
    source: &ParquetSource,
    rare: usize,
    limit_bytes: usize,
) -> ParquetSource {
    let mut options = source.table_parquet_options().clone();
    // Where the scan is the only filter there is, it stays.
    let Some(predicate) = source.filter().filter(|_| !options.global.pushdown_filters) else {
        return source.clone();
    };
    let parts = split_conjunction(&predicate);
    let others = (0..parts.len()).filter(|&at| at != rare && is_column_compared(parts[at]));
    let first = std::iter::once(rare).chain(others);
    let first = conjunction(first.map(|at| Arc::clone(parts[at])));
    let kept = &mut options.global.max_predicate_cache_size;
    let kept_bytes = kept.unwrap_or(KEPT_BYTES_MAX);
    *kept = Some(kept_bytes.min(limit_bytes / KEPT_SHARE));
    options.global.pushdown_filters = true;
    let late = source.with_predicate(first);
    late.with_table_parquet_options(options)
}

/// What reading chunks costs.
fn bytes<'a>(chunks: impl Iterator<Item = &'a ColumnChunkMetaData>) -> i64 {
    chunks.map(reading_bytes).fold(0, i64::saturating_add)
}

/// True of a chunk that is known to hold very many values, and is read before a user gets impatient.
fn may_be_first(chunk: &ColumnChunkMetaData) -> bool {
    let Some(dictionary_bytes) = dictionary_bytes(chunk) else {
        return false;
    };
    let is_outgrown = chunk.page_encoding_stats_mask().is_some() && !has_only_codes(chunk);
    let has_many = dictionary_bytes > MANY_VALUES_BYTES || is_outgrown;
    has_many && reading_bytes(chunk) <= GROUP_BYTES_MAX
}

/// The column of a condition that few of very many values meet.
fn rare_column(part: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    if let Some(like) = part.downcast_ref::<LikeExpr>() {
        let pattern = like.pattern().downcast_ref::<Literal>()?;
        let pattern = pattern.value().try_as_str()??;
        return like.expr().downcast_ref::<Column>().filter(|_| {
            let mut words = pattern.split(['%', '_']);
            !like.negated() && words.any(|word| word.chars().count() >= WORD_CHARS_MIN)
        });
    }
    let equal = part.downcast_ref::<BinaryExpr>()?;
    let (left, right) = (equal.left(), equal.right());
    let (column, literal) = match left.is::<Column>() {
        true => (left, right),
        false => (right, left),
    };
    let literal = literal.downcast_ref::<Literal>()?;
    column
        .downcast_ref::<Column>()
        .filter(|_| *equal.op() == Operator::Eq && !is_usual(literal.value()))
}

/// True of what columns hold where there is nothing to say.
fn is_usual(value: &ScalarValue) -> bool {
    let is_empty = value.try_as_str().flatten().is_some_and(str::is_empty);
    let zero = ScalarValue::new_zero(&value.data_type());
    is_empty || value.is_null() || zero.is_ok_and(|zero| zero == *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{binary, col, like, lit};

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("a", DataType::Utf8, true),
            Field::new("b", DataType::Int64, true),
        ])
    }

    fn is_like(pattern: &str, negated: bool) -> bool {
        let schema = schema();
        let part = like(
            negated,
            false,
            col("a", &schema).unwrap(),
            lit(pattern),
            &schema,
        );
        rare_column(&part.unwrap()).is_some()
    }

    fn is_rare(column: &str, op: Operator, value: ScalarValue) -> bool {
        let schema = schema();
        let part = binary(col(column, &schema).unwrap(), op, lit(value), &schema);
        rare_column(&part.unwrap()).is_some()
    }

    #[test]
    fn words_and_equal_values_are_rare_by_their_form() {
        assert!(is_like("%word%", false) && is_like("word%", false));
        assert!(!is_like("%wor%ds_a%", false) && !is_like("%word%", true) && !is_like("%", false));
        assert!(is_rare("b", Operator::Eq, ScalarValue::from(7i64)));
        assert!(is_rare("a", Operator::Eq, ScalarValue::from("x")));
        for usual in [ScalarValue::from(0i64), ScalarValue::Int64(None)] {
            assert!(!is_rare("b", Operator::Eq, usual));
        }
        assert!(!is_rare("a", Operator::Eq, ScalarValue::from("")));
        assert!(!is_rare("b", Operator::NotEq, ScalarValue::from(7i64)));
    }
}
