//! Late columns: which scans read all other columns only where one condition holds.
//!
//! In: a scan's predicate and a footer. Out: the condition to be read first, or none.
//! Invariant: the rows that a scan hands out may be fewer, never other than the predicate wants; it is held against them
//! once more above.
//! Not here: reading so, which the host does row group by row group (`pushdown_filters`).
//!
//! The host's reader leaves pages out of which no row is wanted, and what it has read for the condition it keeps. That is
//! worth it where hardly any row is left and long columns follow: 0.93 of the time for two texts after a LIKE of 0.08 %,
//! 0.32 where the rows lie together. Where every tenth row is left all pages are read, and rows picked one by one: 1.1 to
//! 1.3 of the time for `SearchPhrase <> ''`. Nothing in a footer says how frequent a value is; so only what is rare by its
//! form counts: a LIKE that asks for a word, equality in a column of very many values.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::logical_expr::Operator;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, LikeExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};

use super::footer::{dictionary_bytes, has_only_codes, reading_bytes};

/// A part of a pattern with as many characters is in few texts.
const WORD_CHARS_MIN: usize = 4;
/// Dictionaries of more bytes (compressed) hold thousands of values; a chunk that outgrew its own holds more still.
const MANY_VALUES_BYTES: i64 = 64 << 10;
/// What a worker keeps of a row group that was read for a condition, until its other columns are: as the host does, but
/// no more than one part in so many of the worker's memory, of which the host's reader does not know.
const KEPT_BYTES_MAX: usize = 100 << 20;
const KEPT_SHARE: usize = 8;
/// Of what is read at least one part in so many has to be late.
const LATE_SHARE: i64 = 3;

/// Which part of a conjunction leaves hardly a row of this file, if much of what is read beside it can wait for those.
pub(super) fn rare_part(
    predicate: &Arc<dyn PhysicalExpr>,
    footer: &ParquetMetaData,
    read: &HashSet<&str>,
) -> Option<usize> {
    let bytes: i64 = read.iter().map(|name| Chunks::of(footer, name).bytes).sum();
    let parts = split_conjunction(predicate);
    let rare = parts.into_iter().position(|part| {
        rare_column(part).is_some_and(|column| {
            let chunks = Chunks::of(footer, column.name());
            chunks.have_many_values && (bytes - chunks.bytes) * LATE_SHARE >= bytes
        })
    });
    rare
}

/// The scan that holds rows against part `rare` of its predicate before it reads the columns of the others. A worker has a
/// memory of `limit_bytes`.
pub(super) fn late(source: &ParquetSource, rare: usize, limit_bytes: usize) -> ParquetSource {
    let Some(predicate) = source.filter() else {
        return source.clone();
    };
    let mut options = source.table_parquet_options().clone();
    options.global.pushdown_filters = true;
    let kept_bytes = KEPT_BYTES_MAX.min(limit_bytes / KEPT_SHARE);
    options.global.max_predicate_cache_size = Some(kept_bytes);
    let late = source.with_predicate(with_first(&predicate, rare));
    late.with_table_parquet_options(options)
}

/// The same conjunction, its part `first` before all others.
fn with_first(predicate: &Arc<dyn PhysicalExpr>, first: usize) -> Arc<dyn PhysicalExpr> {
    let mut parts: Vec<_> = split_conjunction(predicate).into_iter().cloned().collect();
    // It cannot fail, so nothing before it kept it from failing; the others see fewer rows than they would.
    parts[..=first].rotate_right(1);
    conjunction(parts)
}

/// All chunks of one top-level column.
struct Chunks {
    /// What reading them costs.
    bytes: i64,
    have_many_values: bool,
}

impl Chunks {
    fn of(footer: &ParquetMetaData, name: &str) -> Chunks {
        let leaves = footer.row_groups().iter().flat_map(|group| group.columns());
        let mut chunks = Chunks {
            bytes: 0,
            have_many_values: true,
        };
        for leaf in leaves.filter(|leaf| leaf.column_path().parts()[0] == name) {
            chunks.bytes = chunks.bytes.saturating_add(reading_bytes(leaf));
            let has_long_dictionary =
                dictionary_bytes(leaf).is_some_and(|bytes| bytes > MANY_VALUES_BYTES);
            chunks.have_many_values &= has_long_dictionary || !has_only_codes(leaf);
        }
        chunks
    }
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

    #[test]
    fn the_rare_part_goes_first_and_the_others_keep_their_order() {
        let schema = schema();
        let part = |value: i64| {
            binary(
                col("b", &schema).unwrap(),
                Operator::Gt,
                lit(value),
                &schema,
            )
        };
        let parts: Vec<_> = (0..4).map(|value| part(value).unwrap()).collect();
        let moved = with_first(&conjunction(parts), 2);
        assert_eq!(
            moved.to_string(),
            "b@1 > 2 AND b@1 > 0 AND b@1 > 1 AND b@1 > 3"
        );
    }
}
