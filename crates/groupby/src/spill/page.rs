//! Pages: tuples as bytes, and back.
//!
//! ```text
//! length of the stream (8 bytes, of 16) | columns that are not of fixed width as a stream of Arrow IPC
//! | keys | columns of fixed width (`packed`) | spare bytes
//! ```
//!
//! In: slices of blocks of one shape. Out: bytes; the same tuples as a block of their own.
//! Invariant: columns keep their types; what a slice does not refer to is not written.
//! Not here: files.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, MutableArrayData, RecordBatch, make_array,
    new_empty_array,
};
use arrow::buffer::Buffer;
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;

use super::packed::{self, Reader};
use crate::batch::Arguments;
use crate::error::{Error, Result};
use crate::keys::compact::{KeyScratch, StringsBuilder};
use crate::keys::fixed_width::{
    FixedWidth, FixedWidthKeys, FixedWidthRows, PackedKeys, PackedRows, map_width, with_width,
};
use crate::keys::fixed_width::{set_view, view_of};
use crate::keys::views::{is_long, with_bytes};
use crate::keys::{CompactKeys, EncodedKeys, KeyRows};
use crate::partition::{AggregateColumns, Block, Slice};

/// Where the stream begins in a page.
const STREAM_AT: usize = 16;

/// The blocks as one, without its tuples: kinds and types of columns, where partitions begin.
pub(super) fn template(blocks: &[Block]) -> Block {
    let block = &blocks[0];
    let empty = |column: &ArrayRef| new_empty_array(column.data_type());
    let aggregates = block.aggregates.iter().map(|tuples| match tuples {
        AggregateColumns::Rows(arguments) => AggregateColumns::Rows(Arguments {
            columns: arguments.columns.iter().map(empty).collect(),
            filter: arguments
                .filter
                .as_ref()
                .map(|_| BooleanArray::from(Vec::<bool>::new())),
        }),
        AggregateColumns::Partial(columns) => {
            AggregateColumns::Partial(columns.iter().map(empty).collect())
        }
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

/// Appends the tuples of slices of one shape as bytes.
pub(super) fn encode(slices: &[Slice<'_>], out: &mut Vec<u8>) -> Result<()> {
    let mut columns: Vec<Vec<ArrayRef>> = Vec::new();
    for at in 0..slices[0].aggregates() {
        let parts = slices
            .iter()
            .map(|slice| slice.aggregate(at).into_columns());
        let mut parts: Vec<_> = parts.map(Vec::into_iter).collect();
        loop {
            let column: Vec<ArrayRef> = parts.iter_mut().filter_map(Iterator::next).collect();
            if column.is_empty() {
                break;
            }
            let is_like = |part: &ArrayRef| part.data_type() == column[0].data_type();
            assert!(
                column.len() == slices.len() && column.iter().all(is_like),
                "blocks of one shape"
            );
            columns.push(column);
        }
    }
    let is_fixed = |parts: &&Vec<ArrayRef>| packed::is_fixed(parts[0].data_type());
    let others = columns.iter().filter(|parts| !is_fixed(parts));
    encode_stream(
        others.map(|parts| joined(parts)).collect::<Result<_>>()?,
        out,
    )?;
    encode_keys(slices, out);
    for parts in columns.iter().filter(is_fixed) {
        packed::write_column(parts, out);
    }
    packed::finish(out);
    Ok(())
}

/// The length of what follows, and room that keeps it aligned; then columns as Arrow IPC.
fn encode_stream(columns: Vec<ArrayRef>, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; STREAM_AT]);
    if columns.is_empty() {
        return Ok(());
    }
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(at, column)| Field::new(at.to_string(), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    let mut writer = StreamWriter::try_new(&mut *out, &schema)?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    let length = (out.len() - start - STREAM_AT) as u64;
    out[start..start + 8].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Hashes, or which keys are NULL where there are none; words, or lengths and bytes of strings.
fn encode_keys(slices: &[Slice<'_>], out: &mut Vec<u8>) {
    let like = slices[0].compact_keys().0;
    match like {
        CompactKeys::FixedWidth { .. } => {
            encode_nulls(slices, out);
            let parts = slices.iter().map(|slice| match slice.compact_keys() {
                (CompactKeys::FixedWidth { keys, .. }, range) => keys.rows(range.clone()),
                _ => unreachable!("one form"),
            });
            encode_words(&parts.collect::<Vec<_>>(), &[], out);
        }
        CompactKeys::Whole { .. } | CompactKeys::Short(_) => {
            let mut scratches: Vec<KeyScratch> =
                slices.iter().map(|_| KeyScratch::default()).collect();
            let opened = slices.iter().zip(&mut scratches);
            let opened = opened.map(|(slice, scratch)| slice.keys(scratch));
            let (parts, hashes): (Vec<_>, Vec<_>) = opened.unzip();
            let hashes = hashes.iter().map(|hashes| hashes.as_chunks::<1>().0);
            packed::write_words(hashes, out);
            encode_words(&parts, like.views(), out);
        }
        CompactKeys::Strings(_) => {
            encode_nulls(slices, out);
            let strings = slices.iter().map(|slice| match slice.compact_keys() {
                (CompactKeys::Strings(own), range) => (own, range),
                _ => unreachable!("one form"),
            });
            let lengths = strings.clone().flat_map(|(own, range)| own.lengths(range));
            let lengths: Vec<u32> = lengths.collect();
            packed::write_words(std::iter::once(lengths.as_chunks::<1>().0), out);
            for (own, range) in strings {
                out.extend_from_slice(own.bytes(range));
            }
        }
    }
}

/// How many there are, and their places.
fn encode_nulls(slices: &[Slice<'_>], out: &mut Vec<u8>) {
    let (mut nulls, mut start) = (Vec::new(), 0);
    for slice in slices {
        let (keys, range) = slice.compact_keys();
        nulls.extend(keys.nulls(range).map(|place| (start + place) as u32));
        start += slice.len();
    }
    out.extend_from_slice(&(nulls.len() as u64).to_le_bytes());
    packed::write_words(std::iter::once(nulls.as_chunks::<1>().0), out);
}

/// Words; strings that do not fit them behind them.
fn encode_words(parts: &[KeyRows<'_>], views: &[usize], out: &mut Vec<u8>) {
    match parts[0] {
        KeyRows::None(_) => {}
        KeyRows::Packed(first) => with_width!(first, PackedRows(first) => {
            let others = parts[1..].iter().map(|part| match part {
                KeyRows::Packed(rows) => PackedKeys::rows_of(*rows),
                _ => unreachable!("one layout"),
            });
            encode_packed(std::iter::once(first).chain(others), views, out);
        }),
        KeyRows::Bytes(..) => unreachable!("strings wait one behind the other"),
    }
}

/// Where long strings lie is not written: they come back in the order of their views.
fn encode_packed<'a, const N: usize>(
    parts: impl Iterator<Item = FixedWidthRows<'a, N>> + Clone,
    views: &[usize],
    out: &mut Vec<u8>,
) {
    if parts.clone().all(|rows| rows.buffers.is_empty()) {
        return packed::write_words(parts.map(|rows| rows.keys), out);
    }
    let (mut placeless, mut strings) = (Vec::new(), Vec::new());
    for FixedWidthRows { keys, buffers } in parts {
        for key in keys {
            let mut key = *key;
            for &word in views {
                let view = view_of(&key, word);
                if is_long(view) {
                    with_bytes(view, buffers, |bytes| strings.extend_from_slice(bytes));
                    set_view(&mut key, word, u128::from(view as u64));
                }
            }
            placeless.push(key);
        }
    }
    packed::write_words(std::iter::once(placeless.as_slice()), out);
    out.extend_from_slice(&strings);
}

/// Parts of columns as one. Nested ones are cut out first: `concat` would copy all that their lists point into, for
/// each part.
fn joined(parts: &[ArrayRef]) -> Result<ArrayRef> {
    if !parts[0].data_type().is_nested() {
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        return compact(&concat(&parts)?);
    }
    let parts = parts.iter().map(compact);
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

/// The so many tuples that `encode` made `bytes` of; `template` is the block that they come from.
pub(super) fn decode(bytes: Vec<u8>, tuples: usize, template: &Block) -> Result<Block> {
    let bytes = Buffer::from_vec(bytes);
    let mut page = Reader::new(&bytes);
    let length = page.number()? as usize;
    page.bytes(STREAM_AT - 8 + length)?;
    let mut others = decode_stream(bytes.slice_with_length(STREAM_AT, length))?.into_iter();
    let keys = decode_keys(&template.keys, &mut page, tuples)?;
    let mut column = |like: &ArrayRef| match packed::is_fixed(like.data_type()) {
        true => page.column(like.data_type(), tuples),
        false => others.next().ok_or(Error::Malformed("records on disk")),
    };
    let aggregates = template.aggregates.iter();
    let aggregates = aggregates.map(|likes| likes.with_columns(&mut column));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    if others.next().is_some() || !page.is_done() {
        return Err(Error::Malformed("records on disk"));
    }
    let distinct = template.distinct();
    Ok(Block::new(keys, aggregates, Vec::new(), distinct))
}

fn decode_stream(mut bytes: Buffer) -> Result<Vec<ArrayRef>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let batch = StreamDecoder::new().decode(&mut bytes)?;
    let batch = batch.ok_or(Error::Malformed("records on disk"))?;
    Ok(batch.columns().to_vec())
}

/// Keys of the form of `like`.
fn decode_keys(like: &CompactKeys, page: &mut Reader<'_>, tuples: usize) -> Result<CompactKeys> {
    Ok(match like {
        CompactKeys::Whole { keys, views, .. } => CompactKeys::Whole {
            hashes: page.words::<u64, 1>(tuples)?.into_flattened(),
            keys: decode_words(keys, page, tuples, views)?,
            views: views.clone(),
        },
        CompactKeys::FixedWidth { keys, .. } => {
            let nulls = decode_nulls(page)?;
            let keys = decode_words(keys, page, tuples, &[])?;
            CompactKeys::FixedWidth { keys, nulls }
        }
        CompactKeys::Short(_) => unreachable!("a page has them whole"),
        CompactKeys::Strings(_) => {
            let nulls = decode_nulls(page)?;
            let lengths = page.words::<u32, 1>(tuples)?.into_flattened();
            let bytes = lengths.iter().map(|length| *length as usize).sum();
            u32::try_from(bytes).map_err(|_| too_large())?;
            let mut built = StringsBuilder::new(tuples, bytes);
            built.extend(lengths.into_iter(), page.bytes(bytes)?);
            CompactKeys::Strings(built.finish(nulls))
        }
    })
}

fn decode_nulls(page: &mut Reader<'_>) -> Result<Vec<u32>> {
    let count = page.number()? as usize;
    Ok(page.words::<u32, 1>(count)?.into_flattened())
}

/// Keys of the same kind as `like`.
fn decode_words(
    like: &EncodedKeys,
    page: &mut Reader<'_>,
    tuples: usize,
    views: &[usize],
) -> Result<EncodedKeys> {
    Ok(match like {
        EncodedKeys::None(_) => EncodedKeys::None(tuples),
        EncodedKeys::Packed(packed) => EncodedKeys::Packed(
            map_width!(packed, PackedKeys(_) => PackedKeys(decode_packed(page, tuples, views)?)),
        ),
        EncodedKeys::Bytes(_) => unreachable!("strings wait one behind the other"),
    })
}

/// Keys whose views point into the one buffer that holds all long strings.
fn decode_packed<const N: usize>(
    page: &mut Reader<'_>,
    tuples: usize,
    views: &[usize],
) -> Result<FixedWidthKeys<N>> {
    let mut keys = page.words::<u64, N>(tuples)?;
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
    let buffers = match place {
        0 => Vec::new(),
        _ => vec![Buffer::from(page.bytes(place as usize)?)],
    };
    Ok(FixedWidthKeys { keys, buffers })
}

fn too_large() -> Error {
    Error::TooLarge("a page of keys on disk has more than 4 GiB of text".to_string())
}
