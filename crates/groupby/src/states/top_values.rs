//! top_values(k, value, count): the values of a group that occur most often.
//!
//! In: values, each once per group, and how often each occurs. Out: the most frequent one, or a list of the k most
//! frequent, which begins with the most frequent; NULL without values.
//! Partial: those of `top_rows`.
//! Invariant: of values that are equally frequent the least comes first, so that the result does not depend on the
//! order of the rows.
//! Not here: counting; a grouping by keys and values does that before.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, ListArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::{DataType, Field, FieldRef};

use super::top_rows::{SortKey, TopRows, top_rows};
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// How many of the most frequent values are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TopValues {
    /// One, as itself.
    Mode,
    /// So many at most, as a list; 1 to `TOP_ROWS_MAX`.
    List(usize),
}

impl TopValues {
    /// The type of the result for values of `value_type`.
    pub fn result_type(self, value_type: &DataType) -> DataType {
        match self {
            Self::Mode => value_type.clone(),
            Self::List(_) => DataType::List(item(value_type)),
        }
    }
}

/// The most frequent of values of this type, whose counts are BIGINT; `None` if it cannot be copied or has no order.
pub fn top_values(
    name: &str,
    wanted: TopValues,
    value_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let fields = [
        Field::new("value", value_type.clone(), false),
        Field::new("count", DataType::Int64, false),
    ];
    let by = |column, descending| SortKey {
        column,
        options: SortOptions::new(descending, false),
    };
    let shape = TopRows {
        rows_max: match wanted {
            TopValues::Mode => 1,
            TopValues::List(values) => values,
        },
        columns: fields.into_iter().collect(),
        results: 1,
        order: vec![by(1, true), by(0, false)],
    };
    Some(Arc::new(MostFrequent {
        rows: top_rows(name, shape)?,
        wanted,
        value_type: value_type.clone(),
    }))
}

fn item(value_type: &DataType) -> FieldRef {
    Arc::new(Field::new_list_field(value_type.clone(), true))
}

#[derive(Debug)]
struct MostFrequent {
    rows: Arc<dyn Aggregate>,
    wanted: TopValues,
    value_type: DataType,
}

impl Aggregate for MostFrequent {
    fn name(&self) -> &str {
        self.rows.name()
    }

    fn result_type(&self) -> DataType {
        self.wanted.result_type(&self.value_type)
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(TopValueStates {
            rows: self.rows.states()?,
            wanted: self.wanted,
            value_type: self.value_type.clone(),
        }))
    }
}

struct TopValueStates {
    rows: Box<dyn GroupStates>,
    wanted: TopValues,
    value_type: DataType,
}

impl GroupStates for TopValueStates {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.rows.update(columns, filter, groups, total)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.rows.merge(partial, groups, total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        self.rows.drain_partial(total)
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let rows = self.rows.drain_final(total)?;
        let lists = rows.as_list::<i32>();
        let values = lists.values().as_struct().column(0);
        let ends = || lists.value_offsets().windows(2);
        if self.wanted == TopValues::Mode {
            let first = ends().map(|ends| (ends[0] < ends[1]).then_some(ends[0] as u32));
            return Ok(take(values, &UInt32Array::from_iter(first), None)?);
        }
        let has_values = NullBuffer::from_iter(ends().map(|ends| ends[0] < ends[1]));
        let offsets: OffsetBuffer<i32> = lists.offsets().clone();
        let nulls = Some(has_values).filter(|has_values| has_values.null_count() > 0);
        Ok(Arc::new(ListArray::try_new(
            item(&self.value_type),
            offsets,
            Arc::clone(values),
            nulls,
        )?))
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn used_bytes(&self) -> usize {
        self.rows.used_bytes()
    }

    fn appended_bytes(&self) -> usize {
        self.rows.appended_bytes()
    }
}
