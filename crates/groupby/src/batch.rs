//! One batch of input: key columns and each aggregate's arguments, already evaluated.
//!
//! In: Arrow arrays of equal length. Out: the same, with the length checked once.
//! Invariant: every array of a batch has `rows` rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, GenericByteViewArray};
use arrow::buffer::Buffer;
use arrow::compute::{FilterBuilder, FilterPredicate};
use arrow::datatypes::{ByteViewType, DataType};

use crate::error::Result;

/// The inputs of one aggregate for one batch.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// Argument columns; empty for `count(*)`.
    pub columns: Vec<ArrayRef>,
    /// FILTER (WHERE ...): rows that are not true are skipped.
    pub filter: Option<BooleanArray>,
}

impl Arguments {
    /// True if rows of several batches can stand in one column: dictionaries of few keys may not
    /// have room for the values of two batches.
    pub fn mix(&self) -> bool {
        self.columns
            .iter()
            .all(|column| is_plain(column.data_type()))
    }

    /// Those of the rows that `kept` keeps.
    fn kept(&self, kept: &FilterPredicate) -> Result<Self> {
        let filter = self.filter.as_ref().map(|filter| kept.filter(filter));
        Ok(Self {
            columns: filtered(&self.columns, kept)?,
            filter: filter
                .transpose()?
                .map(|filter| filter.as_boolean().clone()),
        })
    }

    /// Those of some rows.
    pub(crate) fn slice(&self, rows: &Range<usize>) -> Self {
        let filter = self.filter.as_ref();
        Self {
            columns: slices(&self.columns, rows),
            filter: filter.map(|filter| filter.slice(rows.start, rows.len())),
        }
    }
}

/// Some rows of columns.
pub(crate) fn slices(columns: &[ArrayRef], rows: &Range<usize>) -> Vec<ArrayRef> {
    let columns = columns.iter();
    columns
        .map(|column| column.slice(rows.start, rows.len()))
        .collect()
}

fn filtered(columns: &[ArrayRef], kept: &FilterPredicate) -> Result<Vec<ArrayRef>> {
    let columns = columns.iter().map(|column| kept.filter(column));
    Ok(columns.collect::<std::result::Result<_, _>>()?)
}

/// True for types whose values of several batches can stand in one column.
pub(crate) fn is_plain(data_type: &DataType) -> bool {
    use DataType::{
        Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, Map, RunEndEncoded,
        Struct, Union,
    };
    match data_type {
        Dictionary(..) | RunEndEncoded(..) | Union(..) => false,
        List(field)
        | ListView(field)
        | LargeList(field)
        | LargeListView(field)
        | FixedSizeList(field, _)
        | Map(field, _) => is_plain(field.data_type()),
        Struct(fields) => fields.iter().all(|field| is_plain(field.data_type())),
        _ => true,
    }
}

/// Copies strings that are less than half of what their views' buffers hold. Whoever keeps rows of a filtered batch would
/// else keep all that the filter has left out.
pub(crate) fn dense(column: ArrayRef) -> ArrayRef {
    fn own<T: ByteViewType + ?Sized>(strings: &GenericByteViewArray<T>) -> Option<ArrayRef> {
        let held: usize = strings.data_buffers().iter().map(Buffer::len).sum();
        (held > 0 && held / 2 > strings.total_buffer_bytes_used())
            .then(|| Arc::new(strings.gc()) as ArrayRef)
    }
    let own = match column.data_type() {
        DataType::Utf8View => own(column.as_string_view()),
        DataType::BinaryView => own(column.as_binary_view()),
        _ => None,
    };
    own.unwrap_or(column)
}

/// Bytes of a column, of what it shares with others as far as it refers to it.
pub(crate) fn bytes_of(column: &dyn Array) -> usize {
    let of_strings = match column.data_type() {
        DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
        _ => return column.to_data().get_slice_memory_size().unwrap_or(0),
    };
    column.len() * size_of::<u128>() + of_strings
}

/// One batch of input.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Number of rows, those that a filter has left out among them.
    pub rows: usize,
    /// Key columns; empty for an aggregate without GROUP BY.
    pub keys: Vec<ArrayRef>,
    /// One entry per aggregate; `None` where no row of the batch is for it.
    pub arguments: Vec<Option<Arguments>>,
    /// True if arguments are partial states, one per row (`states::partial`).
    pub are_partial: bool,
    /// The rows that a filter leaves, if not all: the others are as if they were not there.
    selection: Option<BooleanArray>,
}

impl Batch {
    /// Checks that all columns have `rows` rows.
    ///
    /// # Panics
    /// If a column has another length: the caller evaluated expressions on different batches.
    pub fn new(rows: usize, keys: Vec<ArrayRef>, arguments: Vec<Arguments>) -> Self {
        Self::of_some(rows, keys, arguments.into_iter().map(Some).collect())
    }

    /// The same for some of the aggregates.
    ///
    /// # Panics
    /// As [`Batch::new`].
    pub fn of_some(rows: usize, keys: Vec<ArrayRef>, arguments: Vec<Option<Arguments>>) -> Self {
        let read = || arguments.iter().flatten();
        let columns = keys.iter().chain(read().flat_map(|a| &a.columns));
        for column in columns {
            assert_eq!(
                column.len(),
                rows,
                "a column of another length than its batch"
            );
        }
        for filter in read().filter_map(|a| a.filter.as_ref()) {
            assert_eq!(
                filter.len(),
                rows,
                "a filter of another length than its batch"
            );
        }
        Self {
            rows,
            keys,
            arguments,
            are_partial: false,
            selection: None,
        }
    }

    /// The same of groups: arguments are their partial states, of aggregates that take rows and these alike.
    ///
    /// # Panics
    /// As [`Batch::new`].
    pub fn of_partial(rows: usize, keys: Vec<ArrayRef>, states: Vec<Option<Arguments>>) -> Self {
        Self {
            are_partial: true,
            ..Self::of_some(rows, keys, states)
        }
    }

    /// The same of those rows alone that `selection` says, without a copy of them.
    ///
    /// # Panics
    /// If `selection` has another length, or NULLs.
    #[must_use]
    pub fn selecting(self, selection: BooleanArray) -> Self {
        assert_eq!(selection.len(), self.rows, "a boolean per row");
        assert_eq!(selection.null_count(), 0, "NULL is not true");
        Self {
            selection: Some(selection),
            ..self
        }
    }

    /// The rows that a filter leaves, if not all.
    pub(crate) fn selection(&self) -> Option<&BooleanArray> {
        self.selection.as_ref()
    }

    /// How many rows there are without those that a filter has left out.
    pub fn selected_rows(&self) -> usize {
        let selection = self.selection.as_ref();
        selection.map_or(self.rows, BooleanArray::true_count)
    }

    /// Those rows alone.
    pub(crate) fn kept(&self) -> Result<Cow<'_, Self>> {
        let Some(selection) = &self.selection else {
            return Ok(Cow::Borrowed(self));
        };
        let kept = FilterBuilder::new(selection).optimize().build();
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|of_one| of_one.as_ref().map(|of_one| of_one.kept(&kept)));
        Ok(Cow::Owned(Self {
            rows: kept.count(),
            keys: filtered(&self.keys, &kept)?,
            arguments: arguments.map(Option::transpose).collect::<Result<_>>()?,
            are_partial: self.are_partial,
            selection: None,
        }))
    }

    /// Some of the rows.
    pub(crate) fn slice(&self, rows: &Range<usize>) -> Self {
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|of_one| of_one.as_ref().map(|of_one| of_one.slice(rows)));
        Self {
            rows: rows.len(),
            keys: slices(&self.keys, rows),
            arguments: arguments.collect(),
            are_partial: self.are_partial,
            selection: self
                .selection
                .as_ref()
                .map(|selection| selection.slice(rows.start, rows.len())),
        }
    }
}
