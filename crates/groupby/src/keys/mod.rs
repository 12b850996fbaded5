//! Key row -> group: encoded keys and the tables that number them.
//!
//! In: key columns. Out: a dense `GroupId` per row; at the end the distinct keys in id order.
//! Invariant: one key has one encoding and one hash in every table of a query, whichever table
//! first met it; NULL equals NULL, all NaN are one key, -0.0 is 0.0.
//! Not here: aggregates, partitions.

pub mod layout;
pub mod packed;
pub mod bytes;
pub mod row;
pub mod slots;
pub mod direct;

use std::ops::Range;

use arrow::buffer::Buffer;

use crate::error::Result;

pub use direct::DirectTable;
pub use layout::KeyLayout;

/// A group's number in one table: dense from 0. Tables are flushed long before 2^32 groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct GroupId(pub u32);

/// Encoded key rows.
#[derive(Debug, Clone)]
pub enum EncodedKeys {
    /// No GROUP BY: only the number of rows.
    None(usize),
    /// Fixed width, up to 8 bytes.
    Packed1(Vec<[u64; 1]>),
    /// Fixed width, up to 16 bytes.
    Packed2(Vec<[u64; 2]>),
    /// Fixed width, up to 32 bytes.
    Packed4(Vec<[u64; 4]>),
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
    /// See `EncodedKeys::Packed1`.
    Packed1(&'a [[u64; 1]]),
    /// See `EncodedKeys::Packed2`.
    Packed2(&'a [[u64; 2]]),
    /// See `EncodedKeys::Packed4`.
    Packed4(&'a [[u64; 4]]),
    /// Views and the buffers they point into.
    Bytes(&'a [u128], &'a [Buffer]),
}

impl EncodedKeys {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Packed1(keys) => keys.len(),
            Self::Packed2(keys) => keys.len(),
            Self::Packed4(keys) => keys.len(),
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

    /// The rows in `range`.
    pub fn rows(&self, range: Range<usize>) -> KeyRows<'_> {
        match self {
            Self::None(_) => KeyRows::None(range.len()),
            Self::Packed1(keys) => KeyRows::Packed1(&keys[range]),
            Self::Packed2(keys) => KeyRows::Packed2(&keys[range]),
            Self::Packed4(keys) => KeyRows::Packed4(&keys[range]),
            Self::Bytes(keys) => KeyRows::Bytes(&keys.views[range], &keys.buffers),
        }
    }

    /// Bytes held, counting each shared buffer whole.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None(_) => 0,
            Self::Packed1(keys) => keys.capacity() * 8,
            Self::Packed2(keys) => keys.capacity() * 16,
            Self::Packed4(keys) => keys.capacity() * 32,
            Self::Bytes(keys) => {
                keys.views.capacity() * 16
                    + keys.buffers.iter().map(Buffer::capacity).sum::<usize>()
            }
        }
    }
}

impl KeyRows<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Packed1(keys) => keys.len(),
            Self::Packed2(keys) => keys.len(),
            Self::Packed4(keys) => keys.len(),
            Self::Bytes(views, _) => views.len(),
        }
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

/// Maps encoded key rows to dense group ids: from 0, no gaps, stable until `drain`.
pub trait KeyTable: Send {
    /// Appends the group of each row to `groups`; unknown keys become new groups.
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()>;
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
    /// Slots looked at so far, over all rows.
    fn probes(&self) -> u64;
    /// All keys in group order; the table is empty afterwards and keeps its slots.
    fn drain(&mut self) -> DistinctKeys;
}
