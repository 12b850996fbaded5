//! Keys of any types as one byte string per row.
//!
//! ```text
//! null bits | fixed-width columns | length of each variable column (u32) | their bytes
//! ```
//!
//! In: key columns. Out: views into one buffer per batch.
//! Invariant: equal keys have equal bytes; a NULL's fixed bytes are zero, its length 0.
//! Columns that are neither of fixed width nor byte strings (nested types, 256-bit decimals) go
//! through Arrow's row format, NULLs too, and are one variable column each.
//! Not here: tables, keys that can be packed (`packed`), one string (`bytes`).

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BinaryArray, BooleanArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};

use super::bytes::{self, column, view, with_bytes};
use super::layout::is_fixed;
use super::packed::{canonical_f16, canonical_f32, canonical_f64, fixed_width};
use super::{ByteKeys, KeyRows};
use crate::error::{Error, Result};

/// How the columns of a row lie in its bytes.
#[derive(Debug)]
pub struct RowLayout {
    columns: Vec<Place>,
    /// Null bits and fixed-width columns.
    fixed_bytes: usize,
    variable: usize,
}

#[derive(Debug)]
struct Place {
    data_type: DataType,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// At this offset of the row, this many bytes.
    Fixed { offset: usize, bytes: usize },
    /// The n-th variable column.
    Bytes { at: usize },
    /// The n-th variable column, encoded by Arrow.
    Other { at: usize, converter: RowConverter },
}

impl RowLayout {
    /// Fails for types that Arrow's row format does not know.
    pub fn new(fields: &[FieldRef]) -> Result<Self> {
        let mut fixed_bytes = fields.len().div_ceil(8); // the null bits
        let mut variable = 0;
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let data_type = field.data_type().clone();
            let form = if is_fixed(&data_type) {
                let bytes = fixed_width(&data_type).expect("a fixed-width type");
                fixed_bytes += bytes;
                Form::Fixed {
                    offset: fixed_bytes - bytes,
                    bytes,
                }
            } else {
                variable += 1;
                if bytes::is_bytes(&data_type) {
                    Form::Bytes { at: variable - 1 }
                } else {
                    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
                    Form::Other {
                        at: variable - 1,
                        converter,
                    }
                }
            };
            columns.push(Place { data_type, form });
        }
        Ok(Self {
            columns,
            fixed_bytes,
            variable,
        })
    }

    /// Encodes the columns of `rows` rows into one buffer.
    pub fn encode(&self, columns: &[ArrayRef], rows: usize) -> Result<ByteKeys> {
        let sources = self.sources(columns)?;
        let head = self.fixed_bytes + 4 * self.variable;
        let offsets = row_offsets(&sources, head, rows)?;
        let mut buffer = vec![0u8; offsets[rows]];
        let mut cursors: Vec<usize> = offsets[..rows].iter().map(|offset| offset + head).collect();
        for (index, (place, column)) in self.columns.iter().zip(columns).enumerate() {
            let nulls = column
                .logical_nulls()
                .filter(|nulls| nulls.null_count() > 0);
            if let Some(nulls) = &nulls {
                for (row, offset) in offsets[..rows].iter().enumerate() {
                    buffer[offset + index / 8] |= u8::from(nulls.is_null(row)) << (index % 8);
                }
            }
            match &place.form {
                Form::Fixed { offset, bytes } => {
                    write_fixed(
                        column,
                        nulls.as_ref(),
                        *bytes,
                        &offsets[..rows],
                        *offset,
                        &mut buffer,
                    );
                }
                Form::Bytes { at } | Form::Other { at, .. } => {
                    let source = &sources[*at];
                    write_variable(
                        source,
                        self.fixed_bytes + 4 * at,
                        &offsets[..rows],
                        &mut cursors,
                        &mut buffer,
                    );
                }
            }
        }
        let views = offsets
            .windows(2)
            .map(|pair| view(&buffer[pair[0]..pair[1]], 0, pair[0] as u32))
            .collect();
        Ok(ByteKeys {
            views,
            buffers: vec![Buffer::from_vec(buffer)],
        })
    }

    /// The variable columns as views.
    fn sources(&self, columns: &[ArrayRef]) -> Result<Vec<ByteKeys>> {
        let mut sources = Vec::with_capacity(self.variable);
        for (place, column) in self.columns.iter().zip(columns) {
            sources.push(match &place.form {
                Form::Fixed { .. } => continue,
                Form::Bytes { .. } => empty_where_null(bytes::encode(column)?, column),
                Form::Other { converter, .. } => encode_other(converter, column)?,
            });
        }
        Ok(sources)
    }

    /// The key columns of these rows.
    pub fn decode(&self, keys: KeyRows<'_>) -> Result<Vec<ArrayRef>> {
        let KeyRows::Bytes(rows, buffers) = keys else {
            unreachable!("byte-string keys")
        };
        (0..self.columns.len())
            .map(|index| self.decode_column(index, rows, buffers))
            .collect()
    }

    fn decode_column(&self, index: usize, rows: &[u128], buffers: &[Buffer]) -> Result<ArrayRef> {
        let place = &self.columns[index];
        let is_null = |bytes: &[u8]| bytes[index / 8] >> (index % 8) & 1 == 1;
        let nulls = NullBuffer::from_iter(
            rows.iter()
                .map(|&row| with_bytes(row, buffers, |b| !is_null(b))),
        );
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        match &place.form {
            Form::Fixed { offset, bytes } => {
                read_fixed(rows, buffers, *offset, *bytes, nulls, &place.data_type)
            }
            Form::Bytes { at } => {
                let (views, extra) = self.variable_views(*at, rows, buffers)?;
                column(&views, &extra, nulls, &place.data_type)
            }
            Form::Other { at, converter } => {
                let (views, extra) = self.variable_views(*at, rows, buffers)?;
                decode_other(converter, &views, &extra)
            }
        }
    }

    /// Views of the `at`-th variable column: long values stay where the row's bytes are.
    fn variable_views(
        &self,
        at: usize,
        rows: &[u128],
        buffers: &[Buffer],
    ) -> Result<(Vec<u128>, Vec<Buffer>)> {
        let views = rows.iter().map(|&row| {
            with_bytes(row, buffers, |bytes| {
                let length = |n: usize| {
                    let from = self.fixed_bytes + 4 * n;
                    u32::from_le_bytes(bytes[from..from + 4].try_into().expect("four bytes"))
                        as usize
                };
                let from =
                    self.fixed_bytes + 4 * self.variable + (0..at).map(length).sum::<usize>();
                // A value inside an inline row is shorter than a view, so it never needs these.
                let (buffer, offset) = ((row >> 64) as u32, (row >> 96) as u32);
                view(
                    &bytes[from..from + length(at)],
                    buffer,
                    offset.wrapping_add(from as u32),
                )
            })
        });
        Ok((views.collect(), buffers.to_vec()))
    }
}

/// Whatever lies under a NULL must not tell two NULLs apart.
fn empty_where_null(mut keys: ByteKeys, column: &ArrayRef) -> ByteKeys {
    if let Some(nulls) = column.logical_nulls() {
        for (view, valid) in keys.views.iter_mut().zip(nulls.inner().iter()) {
            if !valid {
                *view = 0;
            }
        }
    }
    keys
}

/// Where each row begins; one more entry for the end.
fn row_offsets(sources: &[ByteKeys], head: usize, rows: usize) -> Result<Vec<usize>> {
    let mut lengths = vec![head; rows];
    for source in sources {
        for (length, view) in lengths.iter_mut().zip(&source.views) {
            *length += *view as u32 as usize;
        }
    }
    let mut offsets = Vec::with_capacity(rows + 1);
    let mut next = 0usize;
    offsets.push(0);
    for length in lengths {
        next += length;
        offsets.push(next);
    }
    if u32::try_from(next).is_err() {
        return Err(Error::TooLarge(format!(
            "the keys of one batch take {next} bytes; they end at 4 GiB"
        )));
    }
    Ok(offsets)
}

fn write_variable(
    source: &ByteKeys,
    length_at: usize,
    offsets: &[usize],
    cursors: &mut [usize],
    buffer: &mut [u8],
) {
    for ((&view, offset), cursor) in source.views.iter().zip(offsets).zip(cursors) {
        let length = view as u32;
        let at = offset + length_at;
        buffer[at..at + 4].copy_from_slice(&length.to_le_bytes());
        with_bytes(view, &source.buffers, |bytes| {
            buffer[*cursor..*cursor + bytes.len()].copy_from_slice(bytes)
        });
        *cursor += length as usize;
    }
}

/// Writes a fixed-width column at `at` of every row; NULLs stay zero.
fn write_fixed(
    column: &ArrayRef,
    nulls: Option<&NullBuffer>,
    bytes: usize,
    offsets: &[usize],
    at: usize,
    buffer: &mut [u8],
) {
    let data = column.to_data();
    macro_rules! write {
        ($native:ty, $canonical:expr) => {{
            let values =
                &data.buffers()[0].typed_data::<$native>()[data.offset()..][..offsets.len()];
            for (row, (&value, offset)) in values.iter().zip(offsets).enumerate() {
                if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                    let from = offset + at;
                    buffer[from..from + bytes].copy_from_slice(&$canonical(value).to_le_bytes());
                }
            }
        }};
    }
    match (column.data_type(), bytes) {
        (DataType::Boolean, _) => {
            let values: &BooleanArray = column.as_boolean();
            for (row, offset) in offsets.iter().enumerate() {
                let valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
                buffer[offset + at] = u8::from(valid && values.value(row));
            }
        }
        (DataType::Float16, _) => write!(u16, canonical_f16),
        (DataType::Float32, _) => write!(f32, canonical_f32),
        (DataType::Float64, _) => write!(f64, canonical_f64),
        (_, 1) => write!(u8, |v: u8| v),
        (_, 2) => write!(u16, |v: u16| v),
        (_, 4) => write!(u32, |v: u32| v),
        (_, 8) => write!(u64, |v: u64| v),
        _ => write!(i128, |v: i128| v),
    }
}

fn read_fixed(
    rows: &[u128],
    buffers: &[Buffer],
    offset: usize,
    bytes: usize,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    if *data_type == DataType::Boolean {
        let value = |row: usize| with_bytes(rows[row], buffers, |b| b[offset] != 0);
        let values = arrow::buffer::BooleanBuffer::collect_bool(rows.len(), value);
        return Ok(super::layout::array(BooleanArray::new(values, nulls)));
    }
    let mut values = vec![0u128; (rows.len() * bytes).div_ceil(16)];
    let mut out = Vec::with_capacity(rows.len() * bytes);
    for &row in rows {
        with_bytes(row, buffers, |b| {
            out.extend_from_slice(&b[offset..offset + bytes])
        });
    }
    // 16-byte words keep the buffer aligned for every width.
    for (word, chunk) in values.iter_mut().zip(out.chunks(16)) {
        let mut padded = [0u8; 16];
        padded[..chunk.len()].copy_from_slice(chunk);
        *word = u128::from_le_bytes(padded);
    }
    let data = arrow::array::ArrayData::builder(data_type.clone())
        .len(rows.len())
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls);
    Ok(arrow::array::make_array(data.build()?))
}

fn encode_other(converter: &RowConverter, column: &ArrayRef) -> Result<ByteKeys> {
    let column = match has_floats(column.data_type()) {
        true => canonical_floats(column)?,
        false => Arc::clone(column),
    };
    let mut rows: Rows = converter.empty_rows(column.len(), 0);
    converter.append(&mut rows, std::slice::from_ref(&column))?;
    let binary = rows.try_into_binary()?;
    bytes::encode(&(Arc::new(binary) as ArrayRef))
}

/// Whether values of a type are floats or have floats in them.
pub fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_floats(field.data_type()),
        DataType::Dictionary(_, values) => has_floats(values),
        other => other.is_floating(),
    }
}

/// The same values, every float in them canonical: Arrow's row format tells NaN from NaN and -0.0 from 0.0.
pub fn canonical_floats(column: &ArrayRef) -> Result<ArrayRef> {
    let data = canonical_data(column.to_data())?;
    Ok(arrow::array::make_array(data))
}

fn canonical_data(data: ArrayData) -> Result<ArrayData> {
    let children = data.child_data().iter().cloned().map(canonical_data);
    let children = children.collect::<Result<Vec<_>>>()?;
    macro_rules! map {
        ($native:ty, $canonical:expr) => {{
            let values = data.buffers()[0].typed_data::<$native>();
            vec![values.iter().map(|&value| $canonical(value)).collect()]
        }};
    }
    let buffers = match data.data_type() {
        DataType::Float16 => map!(u16, canonical_f16),
        DataType::Float32 => map!(f32, canonical_f32),
        DataType::Float64 => map!(f64, canonical_f64),
        _ => data.buffers().to_vec(),
    };
    let builder = data.into_builder().buffers(buffers).child_data(children);
    Ok(builder.build()?)
}

/// Arrow's row format holds NULL itself, so the row's null bit is not needed here.
fn decode_other(converter: &RowConverter, views: &[u128], buffers: &[Buffer]) -> Result<ArrayRef> {
    let mut values: Vec<u8> = Vec::new();
    let mut lengths = Vec::with_capacity(views.len());
    for &view in views {
        with_bytes(view, buffers, |bytes| values.extend_from_slice(bytes));
        lengths.push(view as u32 as usize);
    }
    let rows = BinaryArray::new(
        OffsetBuffer::from_lengths(lengths),
        Buffer::from_vec(values),
        None,
    );
    let rows = converter.from_binary(rows);
    Ok(converter.convert_rows(&rows)?.remove(0))
}
