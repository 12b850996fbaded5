//! Key row -> group: encoded keys and the tables that number them.
//!
//! In: key columns. Out: a dense `GroupId` per row; at the end the distinct keys in id order.
//! Invariant: one key has one encoding and one hash in every table of a query, whichever table
//! first met it. NULL equals NULL, all NaN are one key, -0.0 is 0.0.
//! Not here: aggregates, partitions.

/// Calls `$body` with the column's values as a slice `$values` of a native integer type.
macro_rules! with_integers {
    ($data:expr, $values:ident => $body:expr) => {{
        let (data, offset, rows) = ($data, $data.offset(), $data.len());
        macro_rules! typed {
            ($native:ty) => {{
                let $values = &data.buffers()[0].typed_data::<$native>()[offset..offset + rows];
                $body
            }};
        }
        match data.data_type() {
            DataType::Int8 => typed!(i8),
            DataType::Int16 => typed!(i16),
            DataType::UInt8 => typed!(u8),
            DataType::UInt16 => typed!(u16),
            DataType::UInt32 => typed!(u32),
            DataType::UInt64 => typed!(u64),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => typed!(i32),
            _ => typed!(i64),
        }
    }};
}

pub(crate) use with_integers;

pub(crate) mod columns;
mod dictionary_cache;
pub(crate) mod views;
pub(crate) mod fixed_width;
mod slots;
mod bytes;
mod shared_dictionary;
mod intern;
mod inline;
mod wide;
mod packed;
mod guarded;
pub mod row;
pub(crate) mod run_length;
pub(crate) mod direct;
mod layout;
pub(crate) mod compact;

use std::ops::Range;

use arrow::buffer::Buffer;

use crate::error::Result;

pub use columns::{as_views, decoded, is_bytes, strings_of};
pub(crate) use columns::{same_dictionary, strict_cast, unpacked};
pub use compact::CompactKeys;
pub use dictionary_cache::DictionaryCache;
pub use direct::DirectTable;
pub use fixed_width::{FixedWidth, FixedWidthKeys, PackedKeys, PackedRows};
use fixed_width::{map_width, with_width};
pub use layout::{KeyLayout, TableKind};
pub use packed::{KeyBounds, KeyValues};
pub use shared_dictionary::CodeMaps;
pub use views::fetch;

/// A group's number in one table: dense from 0. Tables are flushed long before 2^32 groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct GroupId(pub u32);

/// Places for the groups of `rows` further rows.
fn room(groups: &mut Vec<GroupId>, rows: usize) -> &mut [GroupId] {
    let start = groups.len();
    groups.resize(start + rows, GroupId(0));
    &mut groups[start..]
}

/// Encoded key rows.
#[derive(Debug, Clone)]
pub enum EncodedKeys {
    /// No GROUP BY: only the number of rows.
    None(usize),
    /// Words.
    Packed(PackedKeys),
    /// One byte string per row.
    Bytes(ByteKeys),
}

/// Byte-string keys as Arrow views: 16 bytes each, strings of up to 12 bytes inline.
#[derive(Debug, Clone, Default)]
pub struct ByteKeys {
    /// Length, prefix and either the rest or (buffer, offset).
    pub views: Vec<u128>,
    /// What longer views point into.
    pub buffers: Vec<Buffer>,
}

/// A borrowed range of encoded key rows.
#[derive(Debug, Clone, Copy)]
pub enum KeyRows<'a> {
    /// No GROUP BY.
    None(usize),
    /// Words.
    Packed(PackedRows<'a>),
    /// Views and the buffers they point into.
    Bytes(&'a [u128], &'a [Buffer]),
}

impl EncodedKeys {
    /// Keys of `N` words and what their views point into.
    pub fn of_fixed_width<const N: usize>(keys: Vec<[u64; N]>, buffers: Vec<Buffer>) -> Self
    where
        PackedKeys: FixedWidth<N>,
    {
        Self::Packed(PackedKeys::of(FixedWidthKeys { keys, buffers }))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Packed(packed) => with_width!(packed, PackedKeys(words) => words.keys.len()),
            Self::Bytes(keys) => keys.views.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows.
    pub fn all(&self) -> KeyRows<'_> {
        self.rows(0..self.len())
    }

    /// No keys of the same kind.
    pub fn none(&self) -> Self {
        match self {
            Self::None(_) => Self::None(0),
            Self::Packed(packed) => Self::Packed(
                map_width!(packed, PackedKeys(_) => PackedKeys(FixedWidthKeys::default())),
            ),
            Self::Bytes(_) => Self::Bytes(ByteKeys::default()),
        }
    }

    /// The rows in `range`.
    pub fn rows(&self, range: Range<usize>) -> KeyRows<'_> {
        match self {
            Self::None(_) => KeyRows::None(range.len()),
            Self::Packed(packed) => KeyRows::Packed(
                map_width!(packed, PackedKeys(words) => PackedRows(words.rows(range))),
            ),
            Self::Bytes(keys) => KeyRows::Bytes(&keys.views[range], &keys.buffers),
        }
    }

    /// The rows at these places as keys of their own; strings stay where they are.
    pub fn picked(&self, rows: &[u32]) -> Self {
        match self {
            Self::None(_) => Self::None(rows.len()),
            Self::Packed(packed) => {
                Self::Packed(map_width!(packed, PackedKeys(words) => PackedKeys(
                    words.with_keys(picked(&words.keys, rows))
                )))
            }
            Self::Bytes(keys) => Self::Bytes(ByteKeys {
                views: picked(&keys.views, rows),
                buffers: keys.buffers.clone(),
            }),
        }
    }

    /// Bytes of the strings of one key; `views` are the words of a packed one at which their views begin.
    pub fn string_bytes(&self, row: usize, views: &[usize]) -> usize {
        match self {
            Self::None(_) => 0,
            Self::Packed(packed) => with_width!(packed, PackedKeys(words) => {
                let key = &words.keys[row];
                views.iter().map(|&word| key[word] as u32 as usize).sum()
            }),
            Self::Bytes(keys) => keys.views[row] as u32 as usize,
        }
    }

    /// What the strings of the keys point into.
    pub fn buffers(&self) -> &[Buffer] {
        match self {
            Self::None(_) => &[],
            Self::Packed(packed) => with_width!(packed, PackedKeys(words) => &words.buffers),
            Self::Bytes(keys) => &keys.buffers,
        }
    }

    /// Bytes held without the buffers, which may be shared.
    pub fn own_bytes(&self) -> usize {
        fn bytes<T>(keys: &Vec<T>) -> usize {
            keys.capacity() * size_of::<T>()
        }
        match self {
            Self::None(_) => 0,
            Self::Packed(packed) => with_width!(packed, PackedKeys(words) => bytes(&words.keys)),
            Self::Bytes(keys) => bytes(&keys.views),
        }
    }

    /// Bytes held, counting each shared buffer whole.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + self.buffers().iter().map(Buffer::capacity).sum::<usize>()
    }
}

impl KeyRows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Packed(packed) => with_width!(packed, PackedRows(rows) => rows.keys.len()),
            Self::Bytes(views, _) => views.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them.
    pub fn part(&self, range: Range<usize>) -> Self {
        match *self {
            Self::None(_) => Self::None(range.len()),
            Self::Packed(packed) => {
                Self::Packed(map_width!(packed, PackedRows(rows) => PackedRows(
                    rows.part(range)
                )))
            }
            Self::Bytes(views, buffers) => Self::Bytes(&views[range], buffers),
        }
    }

    /// The rows as keys of their own; strings stay where they are.
    pub fn to_owned(self) -> EncodedKeys {
        match self {
            Self::None(rows) => EncodedKeys::None(rows),
            Self::Packed(packed) => EncodedKeys::Packed(
                map_width!(packed, PackedRows(rows) => PackedKeys(FixedWidthKeys {
                    keys: rows.keys.to_vec(),
                    buffers: rows.buffers.to_vec(),
                })),
            ),
            Self::Bytes(views, buffers) => EncodedKeys::Bytes(ByteKeys {
                views: views.to_vec(),
                buffers: buffers.to_vec(),
            }),
        }
    }
}

/// Distinct keys in group order, with their hashes.
#[derive(Debug)]
pub struct DistinctKeys {
    /// One key per group.
    pub keys: EncodedKeys,
    /// One hash per group.
    pub hashes: Vec<u64>,
}

impl DistinctKeys {
    /// The keys of the groups at these places.
    pub fn picked(&self, groups: &[u32]) -> Self {
        Self {
            keys: self.keys.picked(groups),
            hashes: picked(&self.hashes, groups),
        }
    }
}

fn picked<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|&row| values[row as usize]).collect()
}

/// Maps encoded key rows to dense group ids: from 0, no gaps, stable until `drain`.
pub trait KeyTable: Send {
    /// Appends the group of each row to `groups`; unknown keys become new groups.
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()>;
    /// Makes room for so many groups in all, where their number is known beforehand.
    fn expect(&mut self, groups: usize);
    /// Number of groups.
    fn len(&self) -> usize;
    /// True before the first group.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes held.
    fn bytes(&self) -> usize;
    /// Bytes that lookups touch: of groups that are there, not of room for more. After a drain a
    /// table holds as much as before and uses nothing.
    fn used_bytes(&self) -> usize;
    /// Slots looked at in vain so far, over all rows.
    fn collisions(&self) -> u64;
    /// All keys in group order; the table is empty afterwards and keeps its slots.
    fn drain(&mut self) -> DistinctKeys;
}
