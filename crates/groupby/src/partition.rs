//! Tuples in partition order: the one form in which groups and rows wait for the merge.
//!
//! In: encoded keys, hashes and per-aggregate columns. Out: `Block`, sorted by the hash's top bits,
//! the keys' long strings copied in that order.
//! Invariant: partition `p` is rows `offsets[p]..offsets[p + 1]` of every column; any range of
//! partitions is therefore one slice.
//! Not here: aggregation; files.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, UInt32Array, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{interleave, take};
use arrow::datatypes::DataType;
use grouse_kernels::scatter::{Destinations, destinations, scatter};

use crate::batch::{Arguments, dense, is_plain, slices};
use crate::error::Result;
use crate::keys::compact::{Beside, KeyScratch, STRINGS_AHEAD, ShortKeys, StringsBuilder, nulls};
use crate::keys::views::{fetch, is_long};
use crate::keys::{
    CompactKeys, DistinctKeys, EncodedKeys, FixedWidth, FixedWidthKeys, KeyRows, PackedKeys,
};
use crate::states::true_rows;

/// What the columns of one aggregate in a block are.
#[derive(Debug, Clone)]
pub enum AggregateColumns {
    /// Arguments of rows that no table has seen.
    Rows(Arguments),
    /// Partial states.
    Partial(Vec<ArrayRef>),
}

impl AggregateColumns {
    /// All columns, a filter last.
    pub fn into_columns(self) -> Vec<ArrayRef> {
        match self {
            Self::Partial(columns) => columns,
            Self::Rows(Arguments {
                mut columns,
                filter,
            }) => {
                columns.extend(filter.map(|filter| Arc::new(filter) as ArrayRef));
                columns
            }
        }
    }

    /// Some of the tuples.
    pub(crate) fn slice(&self, range: &Range<usize>) -> Self {
        match self {
            Self::Rows(arguments) => Self::Rows(arguments.slice(range)),
            Self::Partial(columns) => Self::Partial(slices(columns, range)),
        }
    }

    /// Tuples of the same kind, whose columns are what `change` makes of these, a filter last.
    pub(crate) fn with_columns(
        &self,
        mut change: impl FnMut(&ArrayRef) -> Result<ArrayRef>,
    ) -> Result<Self> {
        Ok(match self {
            Self::Rows(Arguments { columns, filter }) => Self::Rows(Arguments {
                columns: columns.iter().map(&mut change).collect::<Result<_>>()?,
                filter: match filter {
                    Some(filter) => {
                        let filter: ArrayRef = Arc::new(filter.clone());
                        Some(change(&filter)?.as_boolean().clone())
                    }
                    None => None,
                },
            }),
            Self::Partial(columns) => {
                Self::Partial(columns.iter().map(change).collect::<Result<_>>()?)
            }
        })
    }

    /// True if tuples of both can stand in the same columns.
    fn mixes(&self, other: &Self) -> bool {
        let is_one_kind = match (self, other) {
            (Self::Partial(_), Self::Partial(_)) => true,
            (Self::Rows(own), Self::Rows(other)) => own.filter.is_some() == other.filter.is_some(),
            (Self::Partial(_), Self::Rows(_)) | (Self::Rows(_), Self::Partial(_)) => false,
        };
        is_one_kind && self.mix()
    }

    /// True if they can stand in one column with others of their kind.
    fn mix(&self) -> bool {
        match self {
            Self::Rows(arguments) => arguments.mix(),
            Self::Partial(columns) => columns.iter().all(|column| is_plain(column.data_type())),
        }
    }
}

/// Tuples of one moment of one worker, not yet sorted.
#[derive(Debug)]
pub struct Unsorted {
    /// Encoded keys.
    pub keys: EncodedKeys,
    /// One hash per tuple.
    pub hashes: Vec<u64>,
    /// One entry per aggregate.
    pub aggregates: Vec<AggregateColumns>,
    /// True if no two tuples have the same key.
    pub distinct: bool,
}

impl Unsorted {
    /// Bytes held; what keys share with other tuples counts whole, what arguments share as far as they refer to it.
    /// Partial states share nothing.
    pub fn bytes(&self) -> usize {
        let of_tuples = |tuples: &AggregateColumns| match tuples {
            AggregateColumns::Rows(arguments) => {
                let columns = arguments.columns.iter();
                let bytes = columns.map(|column| column.to_data().get_slice_memory_size());
                bytes.map(|bytes| bytes.unwrap_or(0)).sum()
            }
            AggregateColumns::Partial(columns) => {
                let mut buffers = BufferBytes::default();
                columns
                    .iter()
                    .for_each(|column| buffers.add(&column.to_data()));
                buffers.bytes
            }
        };
        let tuples: usize = self.aggregates.iter().map(of_tuples).sum();
        self.keys.bytes() + self.hashes.capacity() * 8 + tuples
    }

    /// True if they can stand in one block with others of the same query.
    pub fn mix(&self) -> bool {
        self.aggregates.iter().all(AggregateColumns::mix)
    }

    /// The tuples in pieces of so many bytes of strings at most, or of one tuple, and the bytes of each.
    /// `views` are the words of a packed key at which its strings' views begin.
    pub fn pieces(self, bytes_max: usize, views: &[usize]) -> Vec<(Self, usize)> {
        let keys = self.keys.len();
        if self.keys.buffers().is_empty() {
            // No string has more than 12 bytes.
            return vec![(self, 0)];
        }
        let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0);
        for row in 0..keys {
            let length = self.keys.string_bytes(row, views);
            if row > start && bytes + length > bytes_max {
                pieces.push((self.slice(start..row), bytes));
                (start, bytes) = (row, 0);
            }
            bytes += length;
        }
        if start == 0 {
            return vec![(self, bytes)];
        }
        pieces.push((self.slice(start..keys), bytes));
        pieces
    }

    fn slice(&self, range: Range<usize>) -> Self {
        let aggregates = self.aggregates.iter();
        Self {
            keys: self.keys.rows(range.clone()).to_owned(),
            hashes: self.hashes[range.clone()].to_vec(),
            aggregates: aggregates.map(|tuples| tuples.slice(&range)).collect(),
            distinct: self.distinct,
        }
    }
}

/// How much there is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Size {
    pub tuples: usize,
    pub bytes: usize,
}

impl Size {
    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tuples: self.tuples + other.tuples,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Neighbouring partitions of these sizes together until they are enough, or the next one's bytes would be more than
/// there is room for.
pub(crate) fn neighbours(
    sizes: &[Size],
    mut is_enough: impl FnMut(Size) -> bool,
    room: usize,
) -> Vec<(Range<usize>, Size)> {
    let mut all: Vec<(Range<usize>, Size)> = Vec::new();
    let (mut range, mut size) = (0..0, Size::default());
    for (partition, here) in sizes.iter().copied().enumerate() {
        if size.tuples > 0 && size.bytes + here.bytes > room {
            all.push((range, std::mem::take(&mut size)));
            range = partition..partition;
        }
        size = size.plus(here);
        range.end = partition + 1;
        if is_enough(size) {
            all.push((range, std::mem::take(&mut size)));
            range = partition + 1..partition + 1;
        }
    }
    if size.tuples > 0 {
        all.push((range, size));
    }
    all
}

/// Tuples sorted by partition.
#[derive(Debug)]
pub struct Block {
    pub(crate) keys: CompactKeys,
    pub(crate) aggregates: Vec<AggregateColumns>,
    pub(crate) offsets: Vec<u32>,
    bytes: usize,
    distinct: bool,
}

/// A range of partitions of a block.
pub struct Slice<'a> {
    block: &'a Block,
    range: Range<usize>,
}

impl Block {
    /// Sorts tuples by the `bits` highest bits of their hash. All of `parts` have the same kinds
    /// of columns; `views` are the words of a packed key at which its strings' views begin.
    pub fn sort(parts: Vec<Unsorted>, bits: u32, views: &[usize]) -> Result<Self> {
        Self::sort_after(parts, 0, bits, views)
    }

    /// The same by the `bits` bits below the `above` highest ones.
    fn sort_after(parts: Vec<Unsorted>, above: u32, bits: u32, views: &[usize]) -> Result<Self> {
        let distinct = parts.len() == 1 && parts[0].distinct;
        let hashes: Cow<'_, [u64]> = match parts.as_slice() {
            [one] => Cow::Borrowed(&one.hashes),
            many => many.iter().flat_map(|part| &part.hashes).copied().collect(),
        };
        let Destinations { rows, offsets } = match above {
            0 => destinations(&hashes, bits),
            _ => {
                let below: Vec<u64> = hashes.iter().map(|hash| hash << above).collect();
                destinations(&below, bits)
            }
        };
        let permutation = Permutation::new(&rows, parts.iter().map(|part| part.hashes.len()));
        let keys = permutation.keys(&parts, &hashes, views)?;
        let aggregates = (0..parts[0].aggregates.len())
            .map(|at| {
                permutation.aggregate(parts.iter().map(|part| &part.aggregates[at]).collect())
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self::new(keys, aggregates, offsets, distinct))
    }

    /// A block of sorted tuples.
    pub(crate) fn new(
        keys: CompactKeys,
        aggregates: Vec<AggregateColumns>,
        offsets: Vec<u32>,
        distinct: bool,
    ) -> Self {
        let mut block = Self {
            keys,
            aggregates,
            offsets,
            bytes: 0,
            distinct,
        };
        block.bytes = block.count_bytes();
        block
    }

    /// Number of tuples.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there is no tuple.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Tuples of a range of partitions and their share of the bytes.
    pub(crate) fn size(&self, partitions: &Range<usize>) -> Size {
        share(self.tuples(partitions).len(), self.len(), self.bytes)
    }

    /// Bytes of the tuples that are not dropped.
    pub fn live_bytes(&self) -> usize {
        self.size(&(0..self.partitions())).bytes
    }

    /// True if tuples of both blocks can stand in one.
    pub fn mixes(&self, other: &Self) -> bool {
        let mut pairs = self.aggregates.iter().zip(&other.aggregates);
        pairs.all(|(own, other)| own.mixes(other))
    }

    /// True if no two tuples of the block have the same key.
    pub fn distinct(&self) -> bool {
        self.distinct
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Tuples of a range of partitions.
    pub fn tuples(&self, partitions: &Range<usize>) -> Range<usize> {
        self.offsets[partitions.start] as usize..self.offsets[partitions.end] as usize
    }

    /// Forgets the tuples of the partitions before `end`; their memory stays until none is left.
    pub fn drop_until(&mut self, end: usize) {
        let first = self.offsets[end];
        if self.offsets[0] < first {
            self.offsets[..end].fill(first);
        }
    }

    /// A range of tuples.
    pub fn slice(&self, range: Range<usize>) -> Slice<'_> {
        Slice { block: self, range }
    }

    /// Buffers are shared between columns and blocks; each is counted once per block.
    fn count_bytes(&self) -> usize {
        let mut buffers = BufferBytes::default();
        self.keys
            .buffers()
            .iter()
            .for_each(|one| buffers.add_one(one));
        buffers.add_all(&self.aggregates);
        buffers.bytes + self.offsets.capacity() * 4 + self.keys.own_bytes()
    }
}

/// Bytes of the columns of all aggregates.
pub(crate) fn bytes_of_states(aggregates: &[AggregateColumns]) -> usize {
    let mut buffers = BufferBytes::default();
    buffers.add_all(aggregates);
    buffers.bytes
}

/// Some of all tuples with their share of `bytes`.
pub(crate) fn share(tuples: usize, all: usize, bytes: usize) -> Size {
    Size {
        tuples,
        bytes: (bytes as f64 * tuples as f64 / all.max(1) as f64) as usize,
    }
}

/// Bytes of buffers, each of which counts once.
#[derive(Default)]
struct BufferBytes {
    seen: HashSet<NonNull<u8>>,
    bytes: usize,
}

impl BufferBytes {
    fn add_one(&mut self, buffer: &Buffer) {
        if self.seen.insert(buffer.data_ptr()) {
            self.bytes += buffer.capacity();
        }
    }

    fn add_all(&mut self, aggregates: &[AggregateColumns]) {
        for tuples in aggregates {
            let columns = match tuples {
                AggregateColumns::Rows(arguments) => &arguments.columns,
                AggregateColumns::Partial(columns) => columns,
            };
            columns
                .iter()
                .for_each(|column| self.add(&column.to_data()));
        }
    }

    fn add(&mut self, data: &ArrayData) {
        data.buffers()
            .iter()
            .for_each(|buffer| self.add_one(buffer));
        if let Some(nulls) = data.nulls() {
            self.add_one(nulls.buffer());
        }
        data.child_data().iter().for_each(|child| self.add(child));
    }
}

impl<'a> Slice<'a> {
    /// Number of tuples.
    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// The keys and their hashes; what the block does not keep comes into `scratch`.
    pub fn keys<'b>(&self, scratch: &'b mut KeyScratch) -> (KeyRows<'b>, &'b [u64])
    where
        'a: 'b,
    {
        self.block.keys.open(self.range.clone(), scratch)
    }

    /// The block's compact keys, and which of them these are.
    pub fn compact_keys(&self) -> (&'a CompactKeys, &Range<usize>) {
        (&self.block.keys, &self.range)
    }

    /// The tuples sorted by the `bits` bits of their hash below the `above` highest ones.
    pub fn repartitioned(&self, above: u32, bits: u32, views: &[usize]) -> Result<Block> {
        let DistinctKeys { keys, hashes } = self.distinct_keys();
        let aggregates = (0..self.aggregates()).map(|at| self.aggregate(at));
        let tuples = Unsorted {
            keys,
            hashes,
            aggregates: aggregates.collect(),
            distinct: self.block.distinct,
        };
        Block::sort_after(vec![tuples], above, bits, views)
    }

    /// The keys of a slice of distinct tuples, as a table would give them.
    pub fn distinct_keys(&self) -> DistinctKeys {
        self.block.keys.distinct(self.range.clone())
    }

    /// Number of aggregates.
    pub fn aggregates(&self) -> usize {
        self.block.aggregates.len()
    }

    /// The columns of one aggregate.
    pub fn aggregate(&self, at: usize) -> AggregateColumns {
        self.block.aggregates[at].slice(&self.range)
    }
}

/// One permutation, applied to column after column.
struct Permutation<'a> {
    /// Destination of each row of all parts, in order.
    rows: &'a [u32],
    /// The rows of each part.
    parts: Vec<Range<usize>>,
    /// For types that are gathered: (part, row) of each destination; made at first need.
    sources: std::cell::OnceCell<Vec<(usize, usize)>>,
}

impl<'a> Permutation<'a> {
    fn new(rows: &'a [u32], lengths: impl Iterator<Item = usize>) -> Self {
        let mut start = 0;
        let parts = lengths
            .map(|length| {
                start += length;
                start - length..start
            })
            .collect();
        Self {
            rows,
            parts,
            sources: std::cell::OnceCell::new(),
        }
    }

    fn keys(&self, parts: &[Unsorted], hashes: &[u64], views: &[usize]) -> Result<CompactKeys> {
        match &parts[0].keys {
            EncodedKeys::None(_) => Ok(CompactKeys::Whole {
                keys: EncodedKeys::None(self.rows.len()),
                hashes: hashes.to_vec(),
                views: Vec::new(),
            }),
            EncodedKeys::Packed(PackedKeys::One(_)) => Ok(self.fixed_width::<1>(parts, hashes)),
            EncodedKeys::Packed(PackedKeys::Two(_)) => Ok(self.fixed_width::<2>(parts, hashes)),
            EncodedKeys::Packed(PackedKeys::Four(_)) => self.wide::<4>(parts, hashes, views),
            EncodedKeys::Packed(PackedKeys::Eight(_)) => self.wide::<8>(parts, hashes, views),
            EncodedKeys::Packed(PackedKeys::Twelve(_)) => self.wide::<12>(parts, hashes, views),
            EncodedKeys::Bytes(_) => self.strings(parts, hashes),
        }
    }

    /// The keys of each part with their destinations.
    fn fixed_width_of<'b, const N: usize>(
        &self,
        parts: &'b [Unsorted],
    ) -> impl Iterator<Item = (&'b FixedWidthKeys<N>, &'a [u32])>
    where
        PackedKeys: FixedWidth<N>,
    {
        let parts = parts.iter().zip(&self.parts);
        parts.map(|(part, range)| match &part.keys {
            EncodedKeys::Packed(keys) => (keys.fixed_width(), &self.rows[range.clone()]),
            _ => unreachable!("one layout"),
        })
    }

    fn fixed_width<const N: usize>(&self, parts: &[Unsorted], hashes: &[u64]) -> CompactKeys
    where
        PackedKeys: FixedWidth<N>,
    {
        let mut keys = vec![[0; N]; self.rows.len()];
        for (words, rows) in self.fixed_width_of::<N>(parts) {
            scatter(&words.keys, rows, &mut keys);
        }
        let keys = EncodedKeys::of_fixed_width(keys, Vec::new());
        CompactKeys::fixed_width(keys, hashes, self.rows)
    }

    fn wide<const N: usize>(
        &self,
        parts: &[Unsorted],
        hashes: &[u64],
        views: &[usize],
    ) -> Result<CompactKeys>
    where
        PackedKeys: FixedWidth<N>,
    {
        let beside = match parts[0].aggregates.is_empty() {
            true => Beside::Nothing,
            false => Beside::Aggregates,
        };
        let parts: Vec<_> = self.fixed_width_of::<N>(parts).collect();
        ShortKeys::of(&parts, (hashes, self.rows), views, beside)
    }

    /// Strings are copied behind each other, in partition order, while they are warm, so that the merge reads them in order
    /// and the scan's buffers are free again.
    fn strings(&self, parts: &[Unsorted], hashes: &[u64]) -> Result<CompactKeys> {
        let mut views = vec![0u128; self.rows.len()];
        let mut buffers: Vec<Buffer> = Vec::new();
        for (part, range) in parts.iter().zip(&self.parts) {
            let EncodedKeys::Bytes(keys) = &part.keys else {
                unreachable!("one layout")
            };
            let first = (buffers.len() as u128) << 64;
            buffers.extend_from_slice(&keys.buffers);
            for (&view, &row) in keys.views.iter().zip(&self.rows[range.clone()]) {
                views[row as usize] = match is_long(view) {
                    true => view + first,
                    false => view,
                };
            }
        }
        let bytes = views.iter().map(|&view| view as u32 as usize);
        let mut built = StringsBuilder::checked(views.len(), bytes.sum())?;
        for (row, &view) in views.iter().enumerate() {
            if let Some(&ahead) = views.get(row + STRINGS_AHEAD) {
                fetch(ahead, &buffers);
            }
            built.push(view, &buffers);
        }
        let nulls = nulls(hashes, self.rows);
        Ok(CompactKeys::Strings(built.finish(nulls)))
    }

    fn aggregate(&self, parts: Vec<&AggregateColumns>) -> Result<AggregateColumns> {
        match parts[0] {
            AggregateColumns::Partial(columns) => {
                let column = |at: usize| {
                    self.column(parts.iter().map(|part| match part {
                        AggregateColumns::Partial(columns) => &columns[at],
                        AggregateColumns::Rows(_) => unreachable!("one kind of records per block"),
                    }))
                };
                Ok(AggregateColumns::Partial(
                    (0..columns.len()).map(column).collect::<Result<_>>()?,
                ))
            }
            AggregateColumns::Rows(_) => {
                let rows: Vec<&Arguments> = parts
                    .iter()
                    .map(|part| match part {
                        AggregateColumns::Rows(arguments) => arguments,
                        AggregateColumns::Partial(_) => {
                            unreachable!("one kind of records per block")
                        }
                    })
                    .collect();
                let column =
                    |at: usize| self.column(rows.iter().map(|arguments| &arguments.columns[at]));
                let columns = (0..rows[0].columns.len())
                    .map(column)
                    .collect::<Result<_>>()?;
                // A batch without a filter passes whole.
                let filter = rows.iter().any(|a| a.filter.is_some()).then(|| {
                    let filters: Vec<_> = rows
                        .iter()
                        .map(|a| a.filter.as_ref().map(true_rows))
                        .collect();
                    BooleanArray::new(self.bits(filters.iter().map(Option::as_ref)), None)
                });
                Ok(AggregateColumns::Rows(Arguments { columns, filter }))
            }
        }
    }

    fn column<'b>(&self, parts: impl Iterator<Item = &'b ArrayRef>) -> Result<ArrayRef> {
        let parts: Vec<&ArrayRef> = parts.collect();
        match parts[0].data_type() {
            DataType::Boolean => {
                let booleans = parts.iter().map(|part| part.as_boolean());
                Ok(Arc::new(self.booleans(booleans)))
            }
            DataType::Decimal256(..) => self.gather(&parts),
            other => match other.primitive_width() {
                Some(1) => Ok(self.fixed::<u8>(&parts)),
                Some(2) => Ok(self.fixed::<u16>(&parts)),
                Some(4) => Ok(self.fixed::<u32>(&parts)),
                Some(8) => Ok(self.fixed::<u64>(&parts)),
                Some(16) => Ok(self.fixed::<i128>(&parts)),
                _ => self.gather(&parts),
            },
        }
    }

    fn fixed<T: arrow::datatypes::ArrowNativeType + Default>(
        &self,
        parts: &[&ArrayRef],
    ) -> ArrayRef {
        let mut out = vec![T::default(); self.rows.len()];
        for (part, range) in parts.iter().zip(&self.parts) {
            let data = part.to_data();
            let values = &data.buffers()[0].typed_data::<T>()[data.offset()..][..data.len()];
            scatter(values, &self.rows[range.clone()], &mut out);
        }
        let data = ArrayData::builder(parts[0].data_type().clone())
            .len(self.rows.len())
            .add_buffer(Buffer::from_vec(out))
            .nulls(self.nulls(parts.iter().map(|part| part.nulls())));
        make_array(data.build().expect("values of the column's own width"))
    }

    fn booleans<'b>(&self, parts: impl Iterator<Item = &'b BooleanArray>) -> BooleanArray {
        let parts: Vec<&BooleanArray> = parts.collect();
        let values = self.bits(parts.iter().map(|part| Some(part.values())));
        let nulls = self.nulls(parts.iter().map(|part| part.nulls()));
        BooleanArray::new(values, nulls)
    }

    fn nulls<'b>(&self, parts: impl Iterator<Item = Option<&'b NullBuffer>>) -> Option<NullBuffer> {
        let parts: Vec<_> = parts.collect();
        if parts
            .iter()
            .all(|nulls| nulls.is_none_or(|nulls| nulls.null_count() == 0))
        {
            return None;
        }
        Some(NullBuffer::new(self.bits(
            parts.into_iter().map(|nulls| nulls.map(NullBuffer::inner)),
        )))
    }

    /// Bits in partition order; a missing part is all ones.
    fn bits<'b>(&self, parts: impl Iterator<Item = Option<&'b BooleanBuffer>>) -> BooleanBuffer {
        let mut out = vec![true; self.rows.len()];
        for (part, range) in parts.zip(&self.parts) {
            let Some(part) = part else { continue };
            for (bit, &row) in part.iter().zip(&self.rows[range.clone()]) {
                out[row as usize] = bit;
            }
        }
        BooleanBuffer::from(out)
    }

    fn gather(&self, parts: &[&ArrayRef]) -> Result<ArrayRef> {
        if let [one] = parts {
            // Unlike `interleave` it leaves a dictionary's values alone, however many they are.
            let mut sources = vec![0u32; self.rows.len()];
            for (row, &to) in self.rows.iter().enumerate() {
                sources[to as usize] = row as u32;
            }
            return Ok(dense(take(one, &UInt32Array::from(sources), None)?));
        }
        let sources = self.sources.get_or_init(|| {
            let mut sources = vec![(0, 0); self.rows.len()];
            for (number, range) in self.parts.iter().enumerate() {
                for (row, &to) in self.rows[range.clone()].iter().enumerate() {
                    sources[to as usize] = (number, row);
                }
            }
            sources
        });
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        Ok(dense(interleave(&parts, sources)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};
    use arrow::datatypes::Field;

    use super::*;
    use crate::keys::KeyLayout;
    use crate::keys::TableKind;

    #[test]
    fn strings_of_states_count() {
        let string = "a text that lies beside its view".repeat(100);
        let states: ArrayRef = Arc::new(StringViewArray::from(vec![string.as_str(); 10]));
        let tuples = Unsorted {
            keys: EncodedKeys::None(10),
            hashes: vec![0; 10],
            aggregates: vec![AggregateColumns::Partial(vec![states])],
            distinct: true,
        };
        assert!(tuples.bytes() >= 10 * string.len());
    }

    #[test]
    fn blocks_leave_strings_behind_that_no_tuple_has() {
        let rows = 1000;
        let string = |row: usize| Some(format!("a text that is long, number {row}"));
        let strings = StringViewArray::from_iter((0..rows).map(string));
        let field = Arc::new(Field::new("k", DataType::Int64, false));
        let layout = KeyLayout::new(&[field], TableKind::Packed).expect("a number");
        let block = |each: usize| {
            let kept = Int64Array::from_iter_values((0..rows as i64).step_by(each));
            let column = take(&strings, &kept, None).expect("rows that there are");
            let (keys, mut hashes): ([ArrayRef; 1], _) = ([Arc::new(kept)], Vec::new());
            let tuples = Unsorted {
                keys: layout.encode(&keys, rows / each, &mut hashes).expect("few"),
                hashes,
                aggregates: vec![AggregateColumns::Rows(Arguments {
                    columns: vec![column],
                    filter: None,
                })],
                distinct: true,
            };
            let block = Block::sort(vec![tuples], 1, &[]).expect("few");
            let mut columns = block.slice(0..rows / each).aggregate(0).into_columns();
            columns.remove(0)
        };
        let bytes = |each| {
            let column = block(each);
            let buffers = column.as_string_view().data_buffers().iter();
            buffers.map(Buffer::len).sum::<usize>()
        };
        assert_eq!(bytes(1), bytes(2), "as they came");
        assert!(bytes(10) < bytes(1) / 5);
        let first = block(10).as_string_view().value(0).to_string();
        assert!(first.starts_with("a text that is long, number "));
    }
}
