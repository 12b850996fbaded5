//! array_agg(x ORDER BY …), string_agg(x, … ORDER BY …) and nth_value(x, n ORDER BY …): the rows of a group, in an order.
//! With DISTINCT those that differ in it. Lists and strings also in the order in which rows come.
//!
//! In: x of any type, strings also as codes, and the columns of the order, none where it is x or there is none. Out: a list, a string
//! or one x; NULL without rows.
//! Partial: lists of x and, if there is an order, of its columns, as strings whose bytes order as they do.
//! Invariant: rows stay as they come until they leave and are sorted then, group by group; of rows that are equal in the order
//! those come first that came first. Where not all are listed, the others leave whenever there are twice as many bytes. Codes
//! become strings when rows leave.
//! Not here: DISTINCT without an order (pairs).

use std::sync::Arc;

use arrow::array::{
    AnyDictionaryArray, Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, LargeListArray,
    LargeStringBuilder, ListArray, UInt32Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::{FilterBuilder, cast, interleave};
use arrow::datatypes::{DataType, Field, FieldRef, UInt32Type};
use arrow::row::{RowConverter, SortField};

use super::byte_values::with_byte_values;
use super::first_last::NullRows;
use super::native::native_of_rows;
use super::rows::mask;
use super::{Aggregate, GroupStates, Groups};
use crate::batch::{bytes_of, dense, is_plain};
use crate::error::{Error, Result};
use crate::keys::is_bytes;
use crate::keys::{DictionaryCache, same_dictionary, strict_cast, unpacked};

/// What becomes of a group's rows.
#[derive(Debug, Clone)]
pub enum Listing {
    /// A list of x, with such items.
    Array(FieldRef),
    /// One string, with this one between two.
    Joined(String),
    /// The x of the n-th row, or of the n-th from the end if n is negative; NULL without so many. n is not 0.
    Nth(i64),
}

impl Listing {
    fn result_type(&self, value_type: &DataType) -> DataType {
        match self {
            Self::Array(item) => DataType::List(Arc::clone(item)),
            Self::Joined(_) => DataType::LargeUtf8,
            Self::Nth(_) => value_type.clone(),
        }
    }
}

/// Which of a group's rows are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedRows {
    /// All.
    All,
    /// Of those that are equal in the order one.
    Distinct,
}

/// The rows of a group in this order, or as they come where it has no column; `None` if they cannot be listed, or a type has no
/// order. `value_type` is that of x without codes.
pub fn listed(
    name: &str,
    listing: Listing,
    (rows, nulls): (ListedRows, NullRows),
    order: &[SortField],
    value_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let is_known = match &listing {
        Listing::Array(item) => is_listed(value_type, item.data_type()),
        Listing::Joined(_) => is_bytes(value_type) && value_type.is_string(),
        Listing::Nth(n) => *n != 0,
    };
    if !is_known || !is_plain(value_type) {
        return None;
    }
    let converter = match order {
        [] => None,
        order => Some(Arc::new(RowConverter::new(order.to_vec()).ok()?)),
    };
    let result_type = listing.result_type(value_type);
    let value_type = value_type.clone();
    let make = move || Listed {
        listing: listing.clone(),
        listed: rows,
        nulls,
        value_type: value_type.clone(),
        converter: converter.clone(),
        chunks: Vec::new(),
        rows: 0,
        bytes: 0,
        settled_bytes: 0,
    };
    Some(native_of_rows(name, &result_type, make))
}

/// True if lists of `items` take values of this type: strings may come in another form.
fn is_listed(value_type: &DataType, items: &DataType) -> bool {
    let are_strings = is_bytes(value_type) && is_bytes(items);
    value_type == items || are_strings && value_type.is_string() == items.is_string()
}

/// Rows that came together.
struct RowChunk {
    groups: Vec<u32>,
    values: ArrayRef,
    /// What orders them.
    keys: Option<BinaryViewArray>,
}

impl RowChunk {
    fn key(&self, row: u32) -> &[u8] {
        let keys = self.keys.as_ref();
        keys.map_or(&[], |keys| keys.value(row as usize))
    }
}

/// The rows of all groups.
struct Listed {
    listing: Listing,
    listed: ListedRows,
    nulls: NullRows,
    value_type: DataType,
    /// None where rows stay as they come.
    converter: Option<Arc<RowConverter>>,
    chunks: Vec<RowChunk>,
    rows: usize,
    /// Of the chunks.
    bytes: usize,
    /// Of the chunks when all rows in them were listed.
    settled_bytes: usize,
}

/// A row among the chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct RowPlace {
    chunk: u32,
    row: u32,
}

impl RowPlace {
    /// As copies want it.
    fn pair(self) -> (usize, usize) {
        (self.chunk as usize, self.row as usize)
    }
}

/// A row with the first 16 bytes of its key, which tell most rows apart.
#[derive(Debug, Clone, Copy, Default)]
struct Keyed {
    head: u128,
    place: RowPlace,
}

/// What a row takes beside itself while it leaves: its head and place, and where it is for the copy. Counted from the start,
/// as all rows of a table leave at once: a list of 10 M rows in 300 MB was 880 MB before it was refused.
const LEAVING_BYTES: usize = size_of::<Keyed>() + size_of::<(usize, usize)>();

/// Fewer bytes are not worth looking through.
const SETTLED_BYTES_MIN: usize = 1 << 20;

/// A number that orders as the first 16 bytes do. No key begins with a whole other one, so that zeros may follow.
fn head_of(key: &[u8]) -> u128 {
    match key.first_chunk::<16>() {
        Some(head) => u128::from_be_bytes(*head),
        None => {
            let mut head = [0; 16];
            head[..key.len()].copy_from_slice(key);
            u128::from_be_bytes(head)
        }
    }
}

impl Listed {
    fn push(&mut self, groups: Vec<u32>, values: ArrayRef, keys: Option<BinaryViewArray>) {
        if groups.is_empty() {
            return;
        }
        let values = dense(values);
        let keys = keys.map(|keys| dense(Arc::new(keys)).as_binary_view().clone());
        let keys_bytes = keys.as_ref().map_or(0, |keys| bytes_of(keys));
        let chunk_bytes = size_of::<RowChunk>() + groups.len() * size_of::<u32>();
        self.bytes += chunk_bytes + self.value_bytes(&values) + keys_bytes;
        self.rows += groups.len();
        self.chunks.push(RowChunk {
            groups,
            values,
            keys,
        });
    }

    /// Bytes of a column that comes next: a dictionary's once.
    fn value_bytes(&self, values: &ArrayRef) -> usize {
        let Some(coded) = values.as_any_dictionary_opt() else {
            return bytes_of(values);
        };
        let last = self.chunks.last().map(|last| &last.values);
        let last = last.and_then(|last| last.as_any_dictionary_opt());
        let is_known = last.is_some_and(|last| same_dictionary(last.values(), coded.values()));
        let dictionary = if is_known {
            0
        } else {
            bytes_of(coded.values())
        };
        bytes_of(coded.keys()) + dictionary
    }

    /// What `of` makes of each row, group by group, and where the rows of each group begin and the last end.
    fn grouped<T: Copy + Default>(
        &self,
        total: usize,
        of: impl Fn(&RowChunk, RowPlace) -> T,
    ) -> (Vec<usize>, Vec<T>) {
        let mut starts = vec![0; total + 1];
        for group in self.chunks.iter().flat_map(|chunk| &chunk.groups) {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..total {
            starts[group + 1] += starts[group];
        }
        let mut rows = vec![T::default(); starts[total]];
        let mut next = starts.clone();
        for (at, chunk) in self.chunks.iter().enumerate() {
            for (row, group) in chunk.groups.iter().enumerate() {
                let place = RowPlace {
                    chunk: at as u32,
                    row: row as u32,
                };
                let next = &mut next[*group as usize];
                rows[*next] = of(chunk, place);
                *next += 1;
            }
        }
        (starts, rows)
    }

    /// The rows of each group in their order.
    fn sorted(&self, total: usize) -> (Vec<usize>, Vec<RowPlace>) {
        if self.converter.is_none() {
            return self.grouped(total, |_, place| place);
        }
        let key = |place: RowPlace| self.chunks[place.chunk as usize].key(place.row);
        let (starts, mut rows) = self.grouped(total, |chunk, place| Keyed {
            head: head_of(chunk.key(place.row)),
            place,
        });
        for range in starts.windows(2) {
            rows[range[0]..range[1]].sort_unstable_by(|left, right| {
                let heads = left.head.cmp(&right.head);
                let keys = heads.then_with(|| key(left.place).cmp(key(right.place)));
                keys.then(left.place.cmp(&right.place))
            });
        }
        let places: Vec<RowPlace> = rows.into_iter().map(|row| row.place).collect();
        match (self.listed, &self.listing) {
            (ListedRows::Distinct, _) => picked(&starts, &places, |rows| {
                let equal = rows.chunk_by(|left, right| key(*left) == key(*right));
                equal.map(|rows| rows[0])
            }),
            (ListedRows::All, Listing::Nth(n)) => picked(&starts, &places, |rows| {
                let most = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
                let most = most.min(rows.len());
                let range = if *n > 0 {
                    0..most
                } else {
                    rows.len() - most..rows.len()
                };
                rows[range].iter().copied()
            }),
            (ListedRows::All, _) => (starts, places),
        }
    }

    /// True if not all rows of a group are listed.
    fn leaves_out(&self) -> bool {
        self.listed == ListedRows::Distinct || matches!(self.listing, Listing::Nth(_))
    }

    /// Called after each batch: lets go of rows that are not listed once they may be half of all.
    fn settle(&mut self, total: usize) -> Result<()> {
        if !self.leaves_out() || self.bytes < SETTLED_BYTES_MIN.max(2 * self.settled_bytes) {
            return Ok(());
        }
        let partial = self.drain_partial(total)?;
        let groups: Vec<u32> = (0..total as u32).collect();
        self.push_lists(&partial, groups);
        self.settled_bytes = self.bytes;
        Ok(())
    }

    fn push_lists(&mut self, partial: &[ArrayRef], groups: Vec<u32>) {
        let values = partial[0].as_list::<i64>();
        let groups = groups.into_iter().zip(values.offsets().lengths());
        let groups = groups.flat_map(|(group, len)| std::iter::repeat_n(group, len));
        let keys = partial.get(1).map(|keys| items(keys.as_list::<i64>()));
        let keys = keys.map(|keys| keys.as_binary_view().clone());
        self.push(groups.collect(), items(values), keys);
    }

    /// x of these rows, `None` being NULL.
    fn values(&self, rows: impl Iterator<Item = Option<RowPlace>>) -> Result<ArrayRef> {
        let null = new_null_array(&self.value_type, 1);
        let (mut columns, mut sources) = (vec![null], Vec::with_capacity(self.chunks.len()));
        let mut dictionaries = DictionaryCache::<usize>::default();
        for RowChunk { values, .. } in &self.chunks {
            let Some(coded) = values.as_any_dictionary_opt() else {
                columns.push(Arc::clone(values));
                sources.push(CopySource::Column(columns.len() - 1));
                continue;
            };
            // The strings of codes that came together are copied from one column.
            let column = dictionaries.get_or_make(coded.values(), || {
                columns.push(strict_cast(coded.values(), &self.value_type)?);
                Ok::<_, Error>(columns.len() - 1)
            })?;
            let codes = coded.keys().as_primitive::<UInt32Type>();
            sources.push(CopySource::Codes(*column, codes));
        }
        let rows = rows.map(|place| match place {
            Some(place) => sources[place.chunk as usize].place(place.row as usize),
            None => NULL_PLACE,
        });
        let rows: Vec<_> = rows.collect();
        let columns: Vec<&dyn Array> = columns.iter().map(|column| &**column).collect();
        Ok(interleave(&columns, &rows)?)
    }

    fn clear(&mut self) {
        self.chunks = Vec::new();
        self.rows = 0;
        self.bytes = 0;
    }

    fn list(&self, item: &FieldRef, starts: &[usize], rows: &[RowPlace]) -> Result<ArrayRef> {
        let ends = starts.iter().map(|start| i32::try_from(*start));
        let Ok(offsets) = ends.collect::<Result<Vec<_>, _>>() else {
            let message = format!("{} items of lists in one column", rows.len());
            return Err(Error::TooLarge(message));
        };
        let values = self.values(rows.iter().copied().map(Some))?;
        let values = cast(&values, item.data_type())?;
        let offsets = OffsetBuffer::new(offsets.into());
        let nulls = groups_with_rows(starts);
        let list = ListArray::try_new(Arc::clone(item), offsets, values, nulls)?;
        Ok(Arc::new(list))
    }

    fn joined(&self, between: &str, starts: &[usize], rows: &[RowPlace]) -> Result<ArrayRef> {
        let values = self.values(rows.iter().copied().map(Some))?;
        with_byte_values!(&values, |value| {
            let bytes: usize = (0..rows.len()).map(|row| value(row).len()).sum();
            let bytes = bytes + rows.len() * between.len();
            let mut strings = LargeStringBuilder::with_capacity(starts.len(), bytes);
            let mut string = Vec::new();
            for range in starts.windows(2) {
                string.clear();
                for row in range[0]..range[1] {
                    if row > range[0] {
                        string.extend_from_slice(between.as_bytes());
                    }
                    string.extend_from_slice(value(row));
                }
                let has_rows = range[0] < range[1];
                let string = std::str::from_utf8(&string).expect("strings between strings");
                strings.append_option(has_rows.then_some(string));
            }
            Ok(Arc::new(strings.finish()))
        })
    }

    fn nth(&self, n: i64, starts: &[usize], rows: &[RowPlace]) -> Result<ArrayRef> {
        let picked = starts.windows(2).map(|range| {
            let rows = &rows[range[0]..range[1]];
            let before = usize::try_from(n.unsigned_abs()).ok()?.checked_sub(1)?;
            let at = match n > 0 {
                true => before,
                false => rows.len().checked_sub(1 + before)?,
            };
            rows.get(at).copied()
        });
        self.values(picked)
    }
}

/// Where NULL is among the columns that values are copied from.
const NULL_PLACE: (usize, usize) = (0, 0);

/// Where the values of a chunk are copied from.
enum CopySource<'a> {
    /// Its own column.
    Column(usize),
    /// The column of its dictionary's values, by its codes.
    Codes(usize, &'a UInt32Array),
}

impl CopySource<'_> {
    fn place(&self, row: usize) -> (usize, usize) {
        match self {
            CopySource::Column(column) => (*column, row),
            CopySource::Codes(_, codes) if codes.is_null(row) => NULL_PLACE,
            CopySource::Codes(column, codes) => (*column, codes.value(row) as usize),
        }
    }
}

/// Of the rows of each group those that `pick` leaves, and where the rows of each group then begin.
fn picked<'a, I: Iterator<Item = RowPlace>>(
    starts: &[usize],
    rows: &'a [RowPlace],
    pick: impl Fn(&'a [RowPlace]) -> I,
) -> (Vec<usize>, Vec<RowPlace>) {
    let (mut picked_starts, mut picked) = (vec![0], Vec::new());
    for range in starts.windows(2) {
        picked.extend(pick(&rows[range[0]..range[1]]));
        picked_starts.push(picked.len());
    }
    (picked_starts, picked)
}

/// Where groups have rows; `None` if all have.
fn groups_with_rows(starts: &[usize]) -> Option<NullBuffer> {
    let have_rows = starts.windows(2).map(|range| range[0] < range[1]);
    let nulls = NullBuffer::new(BooleanBuffer::from_iter(have_rows));
    (nulls.null_count() > 0).then_some(nulls)
}

/// Lists without NULLs among them that begin at `starts`.
fn lists(starts: &[usize], values: ArrayRef) -> Result<ArrayRef> {
    let offsets: Vec<i64> = starts.iter().map(|start| *start as i64).collect();
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(LargeListArray::try_new(
        item, offsets, values, None,
    )?))
}

/// All items of some lists.
fn items(lists: &LargeListArray) -> ArrayRef {
    let (offsets, values) = (lists.offsets(), lists.values());
    let (from, to) = (offsets[0] as usize, offsets[lists.len()] as usize);
    values.slice(from, to - from)
}

impl GroupStates for Listed {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let not_null = match self.nulls {
            NullRows::Ignored => &columns[..1],
            NullRows::Respected => &[],
        };
        let mut groups = groups.to_vec();
        let mut columns = columns.to_vec();
        if let Some(wanted) = mask(not_null, filter) {
            let mut row = 0..;
            groups.retain(|_| row.next().is_some_and(|row| wanted.value(row)));
            let kept = FilterBuilder::new(&BooleanArray::new(wanted, None)).build();
            let filtered = columns.iter().map(|column| kept.filter(column));
            columns = filtered.collect::<Result<_, _>>()?;
        }
        let order = match &columns[..] {
            [x] => std::slice::from_ref(x),
            [_, order @ ..] => order,
            [] => unreachable!("x is there"),
        };
        let keys = match &self.converter {
            Some(converter) => {
                let keys = converter.convert_columns(order)?.try_into_binary()?;
                Some(BinaryViewArray::from(&keys))
            }
            None => None,
        };
        let mut values = columns.swap_remove(0);
        let codes = values.as_any_dictionary_opt().map(AnyDictionaryArray::keys);
        if codes.is_some_and(|codes| codes.data_type() != &DataType::UInt32) {
            values = unpacked(&values, &self.value_type)?;
        }
        self.push(groups, values, keys);
        self.settle(total)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.push_lists(partial, groups.to_vec());
        self.settle(total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let (starts, rows) = match self.leaves_out() {
            false => self.grouped(total, |_, place| place),
            true => self.sorted(total),
        };
        let values = self.values(rows.iter().copied().map(Some))?;
        let mut partial = vec![lists(&starts, values)?];
        if self.converter.is_some() {
            let keys = self.chunks.iter().filter_map(|chunk| chunk.keys.as_ref());
            let keys: Vec<_> = keys.map(|keys| keys as &dyn Array).collect();
            let rows: Vec<_> = rows.into_iter().map(RowPlace::pair).collect();
            let keys: ArrayRef = match keys.is_empty() {
                true => Arc::new(BinaryViewArray::from_iter_values([[]; 0])),
                false => interleave(&keys, &rows)?,
            };
            partial.push(lists(&starts, keys)?);
        }
        self.clear();
        Ok(partial)
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let (starts, rows) = self.sorted(total);
        let result = match &self.listing {
            Listing::Array(item) => self.list(item, &starts, &rows),
            Listing::Joined(between) => self.joined(between, &starts, &rows),
            Listing::Nth(n) => self.nth(*n, &starts, &rows),
        };
        self.clear();
        result
    }

    fn bytes(&self) -> usize {
        let heads = match self.converter {
            Some(_) => LEAVING_BYTES,
            None => LEAVING_BYTES - size_of::<u128>(),
        };
        self.bytes + self.rows * heads
    }

    fn appended_bytes(&self) -> usize {
        self.bytes
    }

    fn used_bytes(&self) -> usize {
        0
    }
}
