//! Memory of Python objects that their owners may write to: what lasts gets a copy.
//!
//! In: batches that came in without a copy; batches that are about to stay or to leave. Out: the places of the former; the
//! latter without any of them.
//! Invariant: a table, and a result, does not change when the object does from which it was made. A query that only reads
//! makes no copy.
//! Not here: which objects never change (source.rs).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, MutableArrayData, RecordBatch, RecordBatchOptions,
    make_array,
};
use arrow::datatypes::{DataType, StringViewType};
use arrow::error::ArrowError;

/// Places of memory that is not ours.
#[derive(Debug, Clone, Default)]
pub struct Borrowed {
    /// First and last address of each buffer, sorted.
    places: Arc<Vec<(usize, usize)>>,
}

impl Borrowed {
    /// All of what some batches have.
    pub fn of(batches: &[RecordBatch]) -> Borrowed {
        let mut places = Vec::new();
        for column in batches.iter().flat_map(|batch| batch.columns()) {
            collect(&column.to_data(), &mut places);
        }
        Borrowed::sorted(places)
    }

    /// What several have.
    pub fn all(parts: impl IntoIterator<Item = Borrowed>) -> Borrowed {
        let places = parts.into_iter().flat_map(|part| part.places.to_vec());
        Borrowed::sorted(places.collect())
    }

    fn sorted(mut places: Vec<(usize, usize)>) -> Borrowed {
        places.sort_unstable();
        places.dedup();
        Borrowed {
            places: Arc::new(places),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The batch, its own in all parts.
    pub fn owned(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        if self.is_empty() {
            return Ok(batch);
        }
        let columns = batch.columns().iter().map(|column| self.own(column));
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options)
    }

    fn own(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let data = column.to_data();
        match self.touches(&data) {
            true => Ok(make_array(copied(&data)?)),
            false => Ok(Arc::clone(column)),
        }
    }

    fn touches(&self, data: &ArrayData) -> bool {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        data.buffers()
            .iter()
            .chain(nulls)
            .any(|buffer| !buffer.is_empty() && self.has(buffer.as_ptr() as usize))
            || data.child_data().iter().any(|child| self.touches(child))
    }

    fn has(&self, address: usize) -> bool {
        let after = self.places.partition_point(|(first, _)| *first <= address);
        after > 0 && address <= self.places[after - 1].1
    }
}

fn collect(data: &ArrayData, places: &mut Vec<(usize, usize)>) {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        if !buffer.is_empty() {
            let first = buffer.as_ptr() as usize;
            places.push((first, first + buffer.len() - 1));
        }
    }
    data.child_data()
        .iter()
        .for_each(|child| collect(child, places));
}

/// The same values in memory of our own; of a slice no more than it shows.
pub fn copied(data: &ArrayData) -> Result<ArrayData, ArrowError> {
    let mut rows = MutableArrayData::new(vec![data], false, data.len());
    rows.try_extend(0, 0, data.len())?;
    apart(rows.freeze())
}

/// Copies what a copy of rows shares with its origin: the values of a dictionary, the text behind views.
fn apart(data: ArrayData) -> Result<ArrayData, ArrowError> {
    match data.data_type() {
        DataType::Utf8View => {
            let array = make_array(data);
            Ok(array.as_byte_view::<StringViewType>().gc().into_data())
        }
        DataType::BinaryView => {
            let array = make_array(data);
            Ok(array.as_binary_view().gc().into_data())
        }
        DataType::Dictionary(_, _) => {
            let values = copied(&data.child_data()[0])?;
            data.into_builder().child_data(vec![values]).build()
        }
        kind if kind.is_nested() && shares(kind) => {
            let children = data.child_data().iter().cloned().map(apart);
            let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
            data.into_builder().child_data(children).build()
        }
        _ => Ok(data),
    }
}

fn shares(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => shares(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| shares(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| shares(field.data_type())),
        _ => false,
    }
}
