//! Records as bytes: one Arrow IPC stream of one batch per page.
//!
//! In: slices of blocks of one shape. Out: bytes; the same records as a block of their own.
//! Invariant: columns keep their types; what a slice does not refer to is not written.
//! Not here: files.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    MutableArrayData, RecordBatch, UInt64Array, make_array, new_empty_array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;

use crate::batch::Arguments;
use crate::error::{Error, Result};
use crate::keys::bytes::{is_long, with_bytes};
use crate::keys::waiting::{Made, Strings, StringsBuilder, ends};
use crate::keys::wide::{set_view, view_of};
use crate::keys::{EncodedKeys, KeyRows, WaitingKeys, WideKeys};
use crate::partition::{Block, Records, Slice};

/// The blocks as one, without its records: kinds and types of columns, where partitions begin.
pub(super) fn template(blocks: &[Block]) -> Block {
    let block = &blocks[0];
    let empty = |column: &ArrayRef| new_empty_array(column.data_type());
    let aggregates = block.aggregates.iter().map(|records| match records {
        Records::Rows(arguments) => Records::Rows(Arguments {
            columns: arguments.columns.iter().map(empty).collect(),
            filter: arguments
                .filter
                .as_ref()
                .map(|_| BooleanArray::from(Vec::<bool>::new())),
        }),
        Records::Partial(columns) => Records::Partial(columns.iter().map(empty).collect()),
    });
    let before = |at: usize| {
        blocks
            .iter()
            .map(move |block| block.offsets[at] - block.offsets[0])
    };
    let offsets = (0..block.offsets.len()).map(|at| before(at).sum());
    let distinct = blocks.len() == 1 && block.distinct();
    Block::new(
        block.keys.none(),
        aggregates.collect(),
        offsets.collect(),
        distinct,
    )
}

/// Appends the records of slices of one shape as bytes.
pub(super) fn encode(slices: &[Slice<'_>], views: &[usize], out: &mut Vec<u8>) -> Result<()> {
    let mut columns = Vec::new();
    encode_keys(slices, views, &mut columns)?;
    for at in 0..slices[0].aggregates() {
        let parts: Vec<Vec<ArrayRef>> = slices
            .iter()
            .map(|slice| slice.aggregate(at).into_columns())
            .collect();
        for column in 0..parts[0].len() {
            let parts = parts.iter().map(|part| &part[column]);
            columns.push(joined(&parts.collect::<Vec<_>>())?);
        }
    }
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let mut writer = StreamWriter::try_new(out, &schema)?;
    writer.write(&batch)?;
    writer.finish()?;
    Ok(())
}

/// Hashes where they are kept, else which keys are NULL; then words as they are and strings by row.
fn encode_keys(slices: &[Slice<'_>], views: &[usize], columns: &mut Vec<ArrayRef>) -> Result<()> {
    match slices[0].waiting().0 {
        WaitingKeys::Whole { .. } => {
            columns.push(hashes(slices));
            encode_whole(slices, views, columns)
        }
        WaitingKeys::Words { .. } => {
            columns.push(nulls(slices));
            encode_whole(slices, views, columns)
        }
        WaitingKeys::Strings(_) => {
            columns.push(nulls(slices));
            let mut strings = StringColumn::default();
            for slice in slices {
                let (WaitingKeys::Strings(own), range) = slice.waiting() else {
                    unreachable!("one form")
                };
                strings.extend(own.lengths(range), own.bytes(range));
            }
            columns.push(strings.finish()?);
            Ok(())
        }
    }
}

fn hashes(slices: &[Slice<'_>]) -> ArrayRef {
    let (mut hashes, mut made) = (Vec::new(), Made::default());
    for slice in slices {
        hashes.extend_from_slice(slice.keys(&mut made).1);
    }
    Arc::new(UInt64Array::from(hashes))
}

fn nulls(slices: &[Slice<'_>]) -> ArrayRef {
    let mut nulls = vec![false; slices.iter().map(Slice::len).sum()];
    let mut start = 0;
    for slice in slices {
        let (keys, range) = slice.waiting();
        keys.nulls(range)
            .for_each(|place| nulls[start + place] = true);
        start += slice.len();
    }
    Arc::new(BooleanArray::from(nulls))
}

fn whole<'a>(slice: &Slice<'a>) -> KeyRows<'a> {
    match slice.waiting() {
        (WaitingKeys::Whole { keys, .. } | WaitingKeys::Words { keys, .. }, range) => {
            keys.rows(range.clone())
        }
        (WaitingKeys::Strings(_), _) => unreachable!("one form"),
    }
}

/// Words as they are; strings that do not fit them beside them, by row.
fn encode_whole(slices: &[Slice<'_>], views: &[usize], columns: &mut Vec<ArrayRef>) -> Result<()> {
    let parts: Vec<KeyRows<'_>> = slices.iter().map(whole).collect();
    macro_rules! packed {
        ($variant:ident) => {{
            let parts = parts.iter().map(|part| match part {
                KeyRows::$variant(keys) => *keys,
                _ => unreachable!("one layout"),
            });
            columns.push(words(parts)?);
        }};
    }
    macro_rules! wide {
        ($variant:ident) => {{
            let parts = parts.iter().map(|part| match part {
                KeyRows::$variant(keys, buffers) => (*keys, *buffers),
                _ => unreachable!("one layout"),
            });
            columns.push(words(parts.clone().map(|(keys, _)| keys))?);
            let mut strings = StringColumn::default();
            for (keys, buffers) in parts {
                for key in keys {
                    let long = views.iter().map(|&word| view_of(key, word));
                    strings.push(long.filter(|&view| is_long(view)), buffers);
                }
            }
            columns.push(strings.finish()?);
        }};
    }
    match parts[0] {
        KeyRows::None(_) => {}
        KeyRows::Packed1(_) => packed!(Packed1),
        KeyRows::Packed2(_) => packed!(Packed2),
        KeyRows::Packed4(..) => wide!(Packed4),
        KeyRows::Packed8(..) => wide!(Packed8),
        KeyRows::Packed12(..) => wide!(Packed12),
        KeyRows::Bytes(..) => unreachable!("strings wait one behind the other"),
    }
    Ok(())
}

fn words<'a, const N: usize>(parts: impl Iterator<Item = &'a [[u64; N]]>) -> Result<ArrayRef> {
    let words: Vec<u64> = parts
        .flat_map(|keys| keys.as_flattened())
        .copied()
        .collect();
    let bytes = Buffer::from_vec(words);
    Ok(Arc::new(FixedSizeBinaryArray::try_new(
        8 * N as i32,
        bytes,
        None,
    )?))
}

/// The bytes of each row's views, one behind the other.
struct StringColumn {
    offsets: Vec<i64>,
    values: Vec<u8>,
}

impl Default for StringColumn {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            values: Vec::new(),
        }
    }
}

impl StringColumn {
    fn push(&mut self, row: impl Iterator<Item = u128>, buffers: &[Buffer]) {
        for view in row {
            with_bytes(view, buffers, |bytes| self.values.extend_from_slice(bytes));
        }
        self.offsets.push(self.values.len() as i64);
    }

    fn extend(&mut self, lengths: impl Iterator<Item = u32>, bytes: &[u8]) {
        let ends = ends(self.values.len(), lengths);
        self.offsets.extend(ends.map(|end| end as i64));
        self.values.extend_from_slice(bytes);
    }

    fn finish(self) -> Result<ArrayRef> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(LargeBinaryArray::try_new(
            offsets,
            self.values.into(),
            None,
        )?))
    }
}

/// Parts of columns as one. Nested ones are cut out first: `concat` would copy all that their lists point into, for
/// each part.
fn joined(parts: &[&ArrayRef]) -> Result<ArrayRef> {
    if !parts[0].data_type().is_nested() {
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        return compact(&concat(&parts)?);
    }
    let parts = parts.iter().map(|part| compact(part));
    let parts: Vec<ArrayRef> = parts.collect::<Result<_>>()?;
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
    Ok(concat(&parts)?)
}

/// The column without bytes that belong to other rows.
fn compact(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        DataType::Dictionary(..) => own_values(column),
        data_type if data_type.is_nested() => {
            let data = column.to_data();
            let mut own = MutableArrayData::new(vec![&data], false, data.len());
            own.try_extend(0, 0, data.len())?;
            make_array(compact_children(own.freeze())?)
        }
        _ => Arc::clone(column),
    })
}

/// A dictionary of more values than rows with those that its rows have; what cannot be made anew stays as it is.
fn own_values(column: &ArrayRef) -> ArrayRef {
    let values = column.as_any_dictionary().values();
    let made = (values.len() > column.len())
        .then(|| cast(&cast(column, values.data_type())?, column.data_type()));
    match made {
        Some(Ok(own)) => own,
        Some(Err(_)) | None => Arc::clone(column),
    }
}

fn compact_children(data: ArrayData) -> Result<ArrayData> {
    if data.child_data().is_empty() {
        return Ok(compact(&make_array(data))?.to_data());
    }
    let children = data.child_data().iter().cloned().map(compact_children);
    let children = children.collect::<Result<_>>()?;
    Ok(data.into_builder().child_data(children).build()?)
}

/// The records that `encode` made `bytes` of; `template` is the block that they come from.
pub(super) fn decode(bytes: Vec<u8>, template: &Block, views: &[usize]) -> Result<Block> {
    let mut bytes = Buffer::from_vec(bytes);
    let batch = StreamDecoder::new().decode(&mut bytes)?;
    let batch = batch.ok_or(Error::Malformed("records on disk"))?;
    let mut columns = batch.columns().iter().cloned();
    let mut next = || columns.next().ok_or(Error::Malformed("records on disk"));
    let first = next()?;
    let keys = match &template.keys {
        WaitingKeys::Whole { keys, .. } => WaitingKeys::Whole {
            keys: decode_whole(keys, batch.num_rows(), views, &mut next)?,
            hashes: first.as_primitive::<UInt64Type>().values().to_vec(),
        },
        WaitingKeys::Words { keys, .. } => WaitingKeys::Words {
            keys: decode_whole(keys, batch.num_rows(), views, &mut next)?,
            nulls: null_places(&first),
        },
        WaitingKeys::Strings(_) => {
            WaitingKeys::Strings(decode_strings(&next()?, null_places(&first))?)
        }
    };
    let mut aggregates = Vec::with_capacity(template.aggregates.len());
    for records in &template.aggregates {
        aggregates.push(match records {
            Records::Rows(arguments) => Records::Rows(Arguments {
                columns: arguments
                    .columns
                    .iter()
                    .map(|_| next())
                    .collect::<Result<_>>()?,
                filter: match &arguments.filter {
                    Some(_) => Some(next()?.as_boolean().clone()),
                    None => None,
                },
            }),
            Records::Partial(columns) => {
                Records::Partial(columns.iter().map(|_| next()).collect::<Result<_>>()?)
            }
        });
    }
    Ok(Block::new(
        keys,
        aggregates,
        Vec::new(),
        template.distinct(),
    ))
}

fn null_places(nulls: &ArrayRef) -> Vec<u32> {
    nulls.as_boolean().values().set_indices_u32().collect()
}

fn decode_strings(strings: &ArrayRef, nulls: Vec<u32>) -> Result<Strings> {
    let strings = strings.as_binary::<i64>();
    let bytes = strings.values().as_slice();
    u32::try_from(bytes.len()).map_err(|_| too_large())?;
    let lengths = strings
        .value_offsets()
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u32);
    let mut built = StringsBuilder::new(strings.len(), bytes.len());
    built.extend(lengths, bytes);
    Ok(built.finish(nulls))
}

/// Keys of the same kind as `kind`, from the columns that are next.
fn decode_whole(
    kind: &EncodedKeys,
    rows: usize,
    views: &[usize],
    mut next: impl FnMut() -> Result<ArrayRef>,
) -> Result<EncodedKeys> {
    Ok(match kind {
        EncodedKeys::None(_) => EncodedKeys::None(rows),
        EncodedKeys::Packed1(_) => EncodedKeys::Packed1(keys_of(&next()?)),
        EncodedKeys::Packed2(_) => EncodedKeys::Packed2(keys_of(&next()?)),
        EncodedKeys::Packed4(_) => EncodedKeys::Packed4(wide_keys(&next()?, &next()?, views)?),
        EncodedKeys::Packed8(_) => EncodedKeys::Packed8(wide_keys(&next()?, &next()?, views)?),
        EncodedKeys::Packed12(_) => EncodedKeys::Packed12(wide_keys(&next()?, &next()?, views)?),
        EncodedKeys::Bytes(_) => unreachable!("strings wait one behind the other"),
    })
}

fn keys_of<const N: usize>(words: &ArrayRef) -> Vec<[u64; N]> {
    let bytes = words.as_fixed_size_binary().value_data();
    let word = |key: &[u8], at: usize| {
        let bytes = key[at * 8..][..8].try_into();
        u64::from_ne_bytes(bytes.expect("eight bytes"))
    };
    let keys = bytes.chunks_exact(8 * N);
    keys.map(|key| std::array::from_fn(|at| word(key, at)))
        .collect()
}

/// Keys whose views point into the one buffer that holds all long strings.
fn wide_keys<const N: usize>(
    words: &ArrayRef,
    strings: &ArrayRef,
    views: &[usize],
) -> Result<WideKeys<N>> {
    let mut keys = keys_of::<N>(words);
    let strings = strings.as_binary::<i64>();
    if strings.values().is_empty() {
        return Ok(WideKeys {
            keys,
            buffers: Vec::new(),
        });
    }
    let mut place = 0u64;
    for key in &mut keys {
        for &word in views {
            let view = view_of(key, word);
            if is_long(view) {
                let offset = u32::try_from(place).map_err(|_| too_large())?;
                let own = u128::from(view as u64) | u128::from(offset) << 96;
                set_view(key, word, own);
                place += u64::from(view as u32);
            }
        }
    }
    Ok(WideKeys {
        keys,
        buffers: vec![strings.values().clone()],
    })
}

fn too_large() -> Error {
    Error::TooLarge("a page of keys on disk has more than 4 GiB of text".to_string())
}
