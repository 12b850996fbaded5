//! Rows that are to be inserted, against the keys of those that are there.
//!
//! In: keys of a table, its rows, new rows. Out: for each new row whether a key has its values already, and in which row.
//! Invariant: keys are equal where the constraints say so. A map has the keys of new rows alone: a table is large, and a statement
//! mostly inserts few rows.
//! Not here: values of keys (row_keys.rs); what is done about it (session/inserted_rows.rs).

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{HashMap, HashSet, Result};

use super::row_keys::RowKey;
use crate::scan::constraints::KeyKind;

/// What a new row meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    Nothing,
    /// The row at this place has the values of a key.
    Row(usize),
    /// A new row before it has them.
    NewRow,
}

/// What each of the new rows meets. One that meets something is not there for those behind it.
pub(crate) fn met(
    keys: &[(Vec<usize>, KeyKind)],
    old: &RecordBatch,
    new: &RecordBatch,
) -> Result<Vec<Met>> {
    let mut known = Vec::with_capacity(keys.len());
    for (columns, kind) in keys {
        let key = RowKey::new(columns, *kind, &new.schema())?;
        let mut values: Vec<Option<Box<[u8]>>> = vec![None; new.num_rows()];
        key.each(new, |row, value| {
            values[row] = Some(Box::from(value));
            Ok(())
        })?;
        known.push((there_of(&key, old, &values)?, values));
    }
    let mut all = Vec::with_capacity(new.num_rows());
    for row in 0..new.num_rows() {
        let mut found = known
            .iter()
            .filter_map(|(places, values)| places.get(values[row].as_ref()?).copied());
        let met = found.next().unwrap_or(Met::Nothing);
        if met == Met::Nothing {
            for (places, values) in &mut known {
                places.extend(values[row].take().map(|values| (values, Met::NewRow)));
            }
        }
        all.push(met);
    }
    Ok(all)
}

/// Where the rows are that have one of these values.
fn there_of(
    key: &RowKey<'_>,
    rows: &RecordBatch,
    values: &[Option<Box<[u8]>>],
) -> Result<HashMap<Box<[u8]>, Met>> {
    let wanted: HashSet<&[u8]> = values.iter().flatten().map(AsRef::as_ref).collect();
    let mut places = HashMap::new();
    key.each(rows, |place, value| {
        if wanted.contains(value) {
            places.insert(Box::from(value), Met::Row(place));
        }
        Ok(())
    })?;
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array};

    use super::*;

    fn rows(a: Vec<Option<i64>>, b: Vec<f64>) -> RecordBatch {
        let a: ArrayRef = Arc::new(Int64Array::from(a));
        let b: ArrayRef = Arc::new(Float64Array::from(b));
        RecordBatch::try_from_iter([("a", a), ("b", b)]).expect("two columns")
    }

    #[test]
    fn a_row_that_meets_something_is_not_there_for_those_behind_it() {
        let keys = [(vec![0], KeyKind::Primary), (vec![1], KeyKind::Unique)];
        let old = rows(vec![Some(1), Some(2)], vec![0.0, 2.5]);
        let new = rows(
            vec![Some(2), Some(3), Some(3), Some(4), Some(5), None],
            vec![9.0, -0.0, 4.0, 4.0, 9.0, 7.0],
        );
        let met = met(&keys, &old, &new).expect("keys of numbers");
        let expected = [
            Met::Row(1),
            // -0.0 is 0.0.
            Met::Row(0),
            Met::Nothing,
            Met::NewRow,
            Met::Nothing,
            Met::Nothing,
        ];
        assert_eq!(met, expected);
    }

    #[test]
    fn null_is_a_value_where_nulls_are_not_distinct() {
        let old = rows(vec![None], vec![0.0]);
        let new = rows(vec![None, None], vec![1.0, 2.0]);
        for (kind, expected) in [
            (KeyKind::Unique, [Met::Nothing, Met::Nothing]),
            (KeyKind::UniqueNulls, [Met::Row(0), Met::Row(0)]),
        ] {
            let met = met(&[(vec![0], kind)], &old, &new).expect("a key of numbers");
            assert_eq!(met, expected);
        }
    }
}
