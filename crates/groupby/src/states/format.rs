//! Partial states as plain columns: the form in which they leave a process for another one that merges them.
//!
//! In: the struct that `partial` makes; columns that came. Out: columns without views and list views; states as `GroupStates::merge`
//! takes them.
//! Invariant: the columns are the same for all encodings of an input, and hold nothing but their rows. States that a reader of
//! older ones would take for something else have another version.
//! Not here: keys, how columns travel.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, LargeListArray, OffsetSizeTrait, StructArray,
    UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::Aggregate;
use crate::error::Result;
use crate::keys::strict_cast;

/// The form of one aggregate's states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFormat {
    version: u16,
    fields: Fields,
    held: Vec<DataType>,
}

impl StateFormat {
    /// That of an aggregate.
    pub fn of(aggregate: &dyn Aggregate) -> Result<Self> {
        let none = aggregate.states()?.drain_partial(0)?;
        let held: Vec<DataType> = none.iter().map(|of| of.data_type().clone()).collect();
        let field = |(at, of): (usize, &DataType)| Field::new(at.to_string(), flat_type(of), true);
        Ok(Self {
            version: aggregate.state_version(),
            fields: held.iter().enumerate().map(field).collect(),
            held,
        })
    }

    /// Whoever knows another version does not know these states.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The columns, which are called by their places.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Columns as the states take them.
    pub fn held(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let columns = columns.iter().zip(&self.held);
        columns
            .map(|(column, of)| strict_cast(column, of))
            .collect()
    }
}

/// The columns of states that come in a struct, as `partial` gives them.
pub fn flat_states(states: &ArrayRef) -> Result<Vec<ArrayRef>> {
    states.as_struct().columns().iter().map(flat).collect()
}

/// The type of a column of this type that has no views and no list views, in it neither.
pub fn flat_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::LargeBinary,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => DataType::LargeList(flat_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(flat_field).collect()),
        other => other.clone(),
    }
}

fn flat_field(field: &FieldRef) -> FieldRef {
    let field = field.as_ref().clone();
    let data_type = flat_type(field.data_type());
    Arc::new(field.with_data_type(data_type))
}

/// The column in its flat type. Of lists that are a slice of many the others' items are not looked at.
fn flat(column: &ArrayRef) -> Result<ArrayRef> {
    match column.data_type() {
        DataType::List(_) => flat_lists(column.as_list::<i32>()),
        DataType::LargeList(_) => flat_lists(column.as_list::<i64>()),
        DataType::ListView(item) => {
            let lists = column.as_list_view::<i32>();
            let ends = lists.offsets().iter().zip(lists.sizes().iter());
            let ranges = ends.map(|(from, size)| *from as usize..(from + size) as usize);
            flat_views(column, item, ranges.collect(), lists.values())
        }
        DataType::LargeListView(item) => {
            let lists = column.as_list_view::<i64>();
            let ends = lists.offsets().iter().zip(lists.sizes().iter());
            let ranges = ends.map(|(from, size)| *from as usize..(from + size) as usize);
            flat_views(column, item, ranges.collect(), lists.values())
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns().iter().map(flat);
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.iter().map(flat_field).collect(),
                columns.collect::<Result<_>>()?,
                column.nulls().cloned(),
                column.len(),
            )?))
        }
        other => strict_cast(column, &flat_type(other)),
    }
}

fn flat_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<ArrayRef> {
    let (DataType::List(item) | DataType::LargeList(item)) = lists.data_type() else {
        unreachable!("lists are of a type of lists");
    };
    let offsets = lists.value_offsets();
    let (from, to) = (offsets[0].as_usize(), offsets[lists.len()].as_usize());
    let values = lists.values().slice(from, to - from);
    let ends = offsets.iter().map(|end| (end.as_usize() - from) as i64);
    Ok(Arc::new(LargeListArray::try_new(
        flat_field(item),
        OffsetBuffer::new(ends.collect()),
        flat(&values)?,
        lists.nulls().cloned(),
    )?))
}

/// Lists that have these `ranges` of `values`.
fn flat_views(
    column: &ArrayRef,
    item: &FieldRef,
    mut ranges: Vec<Range<usize>>,
    values: &ArrayRef,
) -> Result<ArrayRef> {
    for (at, range) in ranges.iter_mut().enumerate() {
        if column.is_null(at) {
            range.end = range.start;
        }
    }
    let lens = ranges.iter().map(Range::len);
    let offsets = OffsetBuffer::<i64>::from_lengths(lens);
    let follow = ranges.windows(2).all(|two| two[0].end == two[1].start);
    let values = match (ranges.first(), ranges.last()) {
        (Some(first), Some(last)) if follow => values.slice(first.start, last.end - first.start),
        _ => {
            let places = ranges.into_iter().flatten().map(|place| place as u64);
            take(values, &UInt64Array::from_iter_values(places), None)?
        }
    };
    Ok(Arc::new(LargeListArray::try_new(
        flat_field(item),
        offsets,
        flat(&values)?,
        column.nulls().cloned(),
    )?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryViewArray, Int64Array, LargeListViewArray, ListArray, StringArray, StringViewArray,
    };
    use arrow::buffer::{NullBuffer, ScalarBuffer};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn item(data_type: DataType) -> FieldRef {
        Arc::new(Field::new_list_field(data_type, true))
    }

    /// The column, flat and back again, in whole and in parts.
    fn there_and_back(column: &ArrayRef) {
        for (from, rows) in [(0, column.len()), (1, column.len() - 1), (1, 1), (2, 0)] {
            let part = column.slice(from, rows);
            let flattened = flat(&part).unwrap();
            assert_eq!(flattened.data_type(), &flat_type(part.data_type()));
            assert_eq!(&strict_cast(&flattened, part.data_type()).unwrap(), &part);
        }
    }

    #[test]
    fn strings_come_back() {
        let strings = [Some("a"), None, Some("long enough to lie in a buffer")];
        there_and_back(&(Arc::new(StringViewArray::from_iter(strings)) as ArrayRef));
        there_and_back(&(Arc::new(StringArray::from_iter(strings)) as ArrayRef));
        there_and_back(&(Arc::new(BinaryViewArray::from_iter(strings)) as ArrayRef));
    }

    #[test]
    fn lists_come_back() {
        let lists = [Some(vec![Some(1), None]), None, Some(vec![Some(3)])];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        there_and_back(&(Arc::new(lists) as ArrayRef));
    }

    #[test]
    fn list_views_come_back_whatever_their_order() {
        let values: ArrayRef = Arc::new(StringViewArray::from_iter_values(["a", "b", "c", "d"]));
        for offsets in [[0i64, 1, 2, 3], [3, 0, 0, 2]] {
            let lists = LargeListViewArray::new(
                item(DataType::Utf8View),
                ScalarBuffer::from(offsets.to_vec()),
                ScalarBuffer::from(vec![1i64, 1, 1, 1]),
                Arc::clone(&values),
                Some(NullBuffer::from(vec![true, true, false, true])),
            );
            let lists: ArrayRef = Arc::new(lists);
            let flattened = flat(&lists).unwrap();
            let flattened = flattened.as_list::<i64>();
            for row in [0, 1, 3] {
                let strings = flattened.value(row);
                let wanted = values.as_string_view().value(offsets[row] as usize);
                assert_eq!(strings.as_string::<i64>().value(0), wanted);
            }
            assert!(flattened.is_null(2));
        }
    }

    #[test]
    fn a_slice_holds_no_items_of_others() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let lists = LargeListArray::new(
            item(DataType::Int64),
            OffsetBuffer::from_lengths([10; 100]),
            values,
            None,
        );
        let lists: ArrayRef = Arc::new(lists);
        let flattened = flat(&lists.slice(7, 3)).unwrap();
        assert_eq!(flattened.as_list::<i64>().values().len(), 30);
    }
}
