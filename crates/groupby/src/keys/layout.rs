//! Which encoding a query's keys have: the narrowest that holds them.
//!
//! In: key fields. Out: `KeyLayout`, which encodes key columns (with hashes) and decodes groups.
//! Invariant: `decode(encode(columns))` gives the columns back, up to NaN and -0.0.
//! Not here: the tables that number encoded keys.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, FieldRef};
use grouse_kernels::hash;

use super::bytes::{self, Arena, BytesTable, Shared};
use super::columns::{is_bytes, unpacked};
use super::fixed_width::{PackedKeys, with_width};
use super::guarded::GuardedTable;
use super::packed::{KeyValues, PackedLayout};
use super::row::RowLayout;
use super::run_length;
use super::shared_dictionary::CodeMaps;
use super::{DistinctKeys, EncodedKeys, GroupId, KeyRows, KeyTable};
use crate::error::Result;

/// Which key table to use; anything but `Auto` is for tests and measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableKind {
    /// The narrowest table that the key types and the observed range allow.
    #[default]
    Auto,
    /// An array addressed by small integers; left for a hashed table where the range is too wide.
    Direct,
    /// Keys of up to 96 bytes, strings as views.
    Packed,
    /// One string or binary key.
    Bytes,
    /// Any key types, as one byte string per row.
    Row,
}

/// The encoding of a query's keys.
#[derive(Debug)]
pub struct KeyLayout {
    types: Vec<DataType>,
    encoding: Encoding,
    direct: bool,
}

#[derive(Debug)]
enum Encoding {
    None,
    Packed(PackedLayout),
    Bytes,
    Row(RowLayout),
}

impl KeyLayout {
    /// Chooses the encoding; `table` forces a kind where the key types allow it.
    pub fn new(fields: &[FieldRef], table: TableKind) -> Result<Self> {
        Self::knowing(fields, &vec![KeyValues::Any; fields.len()], table)
    }

    /// The same where something is known of some columns' values, one entry per field. The bits that tell them apart
    /// suffice, and a value beyond its bounds may be an error.
    pub fn knowing(fields: &[FieldRef], values: &[KeyValues], table: TableKind) -> Result<Self> {
        assert_eq!(fields.len(), values.len(), "an entry per field");
        let types: Vec<_> = fields.iter().map(|f| f.data_type().clone()).collect();
        let packed = PackedLayout::new(fields, values).filter(|_| table != TableKind::Row);
        let encoding = match (types.as_slice(), packed) {
            ([], _) => Encoding::None,
            (_, Some(packed)) => Encoding::Packed(packed),
            ([one], None) if is_bytes(one) && table != TableKind::Row => Encoding::Bytes,
            _ => Encoding::Row(RowLayout::new(fields)?),
        };
        let direct = matches!(table, TableKind::Auto | TableKind::Direct)
            && super::direct::is_supported(&types)
            && !matches!(encoding, Encoding::Row(_));
        Ok(Self {
            types,
            encoding,
            direct,
        })
    }

    /// The key types, in output order.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Bits of a packed key that bounds or shared dictionaries have made shorter.
    pub fn narrowed_bits(&self) -> Option<u32> {
        match &self.encoding {
            Encoding::Packed(layout) => layout.narrowed_bits(),
            Encoding::None | Encoding::Bytes | Encoding::Row(_) => None,
        }
    }

    /// The words of a packed key at which its strings' views begin.
    pub fn views(&self) -> &[usize] {
        match &self.encoding {
            Encoding::Packed(layout) => layout.views(),
            Encoding::None | Encoding::Bytes | Encoding::Row(_) => &[],
        }
    }

    /// True if keys have strings, or whatever else a row of bytes is made of.
    pub fn has_strings(&self) -> bool {
        match &self.encoding {
            Encoding::Packed(layout) => !layout.views().is_empty(),
            Encoding::Bytes | Encoding::Row(_) => true,
            Encoding::None => false,
        }
    }

    /// True if columns of strings may come as codes. A direct table may be tried first, or the words of several columns
    /// hold codes, or views that are looked up by them.
    pub fn takes_codes(&self) -> bool {
        self.direct || matches!(self.encoding, Encoding::Packed(_)) && self.types.len() > 1
    }

    /// The columns with the codes of their shared dictionaries where they come as codes; `known` is the worker's own.
    pub fn translated<'a>(
        &self,
        columns: &'a [ArrayRef],
        known: &mut CodeMaps,
    ) -> Result<Cow<'a, [ArrayRef]>> {
        match &self.encoding {
            Encoding::Packed(layout) => layout.translated(columns, known),
            Encoding::None | Encoding::Bytes | Encoding::Row(_) => Ok(Cow::Borrowed(columns)),
        }
    }

    /// Bytes of the shared dictionaries, which all workers share.
    pub fn shared_bytes(&self) -> usize {
        match &self.encoding {
            Encoding::Packed(layout) => layout.shared_bytes(),
            Encoding::None | Encoding::Bytes | Encoding::Row(_) => 0,
        }
    }

    /// True if a direct table may be tried first.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// The table kind that rows meet first, for EXPLAIN.
    pub fn kind(&self) -> &'static str {
        if self.direct {
            return "direct";
        }
        self.hashed_kind()
    }

    /// The kind of `table()`.
    pub fn hashed_kind(&self) -> &'static str {
        match &self.encoding {
            Encoding::None => "none",
            Encoding::Packed(_) => "packed",
            Encoding::Bytes => "bytes",
            Encoding::Row(_) => "row",
        }
    }

    /// An empty table for this encoding.
    pub fn table(&self) -> Box<dyn KeyTable> {
        let table: Box<dyn KeyTable> = match &self.encoding {
            Encoding::None => return Box::new(OneGroup::default()),
            Encoding::Packed(layout) => layout.table(),
            Encoding::Bytes | Encoding::Row(_) => Box::new(BytesTable::<Arena>::default()),
        };
        Box::new(GuardedTable::around(table, self.views()))
    }

    /// An empty table for keys of blocks, which outlive it.
    pub fn merge_table(&self) -> Box<dyn KeyTable> {
        match &self.encoding {
            // Decoding copies what is asked for; columns of one string would hold whole blocks.
            Encoding::Row(_) => {
                let table = Box::new(BytesTable::<Shared>::default());
                Box::new(GuardedTable::around(table, &[]))
            }
            Encoding::None | Encoding::Packed(_) | Encoding::Bytes => self.table(),
        }
    }

    /// Encodes key columns of `rows` rows; `hashes` is overwritten with one hash per row.
    pub fn encode(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        hashes: &mut Vec<u64>,
    ) -> Result<EncodedKeys> {
        let columns = self.plain(columns)?;
        let mut encoded = self.pack(&columns, rows)?;
        self.hash(&encoded, hashes);
        if self.marks_nulls() {
            mark_nulls(&columns[0], &mut encoded, hashes);
        }
        Ok(encoded)
    }

    /// The same for runs of equal keys: one key and hash per run, whose rows begin at `starts`. Without runs to speak of
    /// there is one per row, and `starts` is empty.
    pub fn encode_runs(
        &self,
        columns: &[ArrayRef],
        rows: usize,
        hashes: &mut Vec<u64>,
        starts: &mut Vec<u32>,
    ) -> Result<EncodedKeys> {
        // A key that is NULL as a whole has no words of its own.
        if !self.marks_nulls() || columns[0].logical_null_count() == 0 {
            let encoded = self.pack(&self.plain(columns)?, rows)?;
            let firsts = run_length::compress(&encoded, starts);
            if firsts.is_none() {
                starts.clear();
            }
            let encoded = firsts.unwrap_or(encoded);
            self.hash(&encoded, hashes);
            return Ok(encoded);
        }
        starts.clear();
        self.encode(columns, rows, hashes)
    }

    /// True if NULL is told by the hash: a key of one column that is not encoded as a row.
    fn marks_nulls(&self) -> bool {
        self.types.len() == 1 && !matches!(self.encoding, Encoding::Row(_))
    }

    /// The columns without dictionaries, but for those that have a shared one and those of few strings. Each of few
    /// strings is one view for all its rows. Two keys took 1.3 of the time as rows with bytes of their own, 1.1 as a
    /// column of views.
    fn plain<'a>(&self, columns: &'a [ArrayRef]) -> Result<Cow<'a, [ArrayRef]>> {
        let is_coded = |column: &ArrayRef| column.as_any_dictionary_opt().is_some();
        if !columns.iter().any(is_coded) {
            return Ok(Cow::Borrowed(columns));
        }
        let types = columns.iter().zip(&self.types).enumerate();
        let are_views = matches!(self.encoding, Encoding::Packed(_) | Encoding::Bytes);
        let has_shared_dictionary = |at| matches!(&self.encoding, Encoding::Packed(layout) if layout.has_shared_dictionary(at));
        let plain = types.map(|(at, (column, data_type))| {
            let is_taken =
                are_views && bytes::are_views_of(column, data_type) || has_shared_dictionary(at);
            match is_taken {
                true => Ok(Arc::clone(column)),
                false => unpacked(column, data_type),
            }
        });
        Ok(Cow::Owned(plain.collect::<Result<_>>()?))
    }

    fn pack(&self, columns: &[ArrayRef], rows: usize) -> Result<EncodedKeys> {
        Ok(match &self.encoding {
            Encoding::None => EncodedKeys::None(rows),
            Encoding::Packed(layout) => layout.encode(columns, rows)?,
            Encoding::Bytes => EncodedKeys::Bytes(bytes::encode(&columns[0])?),
            Encoding::Row(layout) => EncodedKeys::Bytes(layout.encode(columns, rows)?),
        })
    }

    fn hash(&self, keys: &EncodedKeys, hashes: &mut Vec<u64>) {
        hashes.clear();
        match (keys, &self.encoding) {
            (EncodedKeys::Packed(keys), Encoding::Packed(layout)) => layout.hash(keys, hashes),
            (EncodedKeys::Bytes(keys), _) => bytes::hash(keys, hashes),
            _ => hashes.resize(keys.len(), 0),
        }
    }

    /// The key columns that `wanted` names, of the groups in `range`; those that have a shared dictionary as codes of it.
    pub fn decode(
        &self,
        keys: &DistinctKeys,
        range: Range<usize>,
        wanted: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let hashes = &keys.hashes[range.clone()];
        match &self.encoding {
            Encoding::None => Ok(Vec::new()),
            Encoding::Packed(layout) => layout.decode(keys.keys.rows(range), hashes, wanted),
            Encoding::Bytes => Ok(vec![bytes::decode(
                keys.keys.rows(range),
                hashes,
                &self.types[0],
            )?]),
            Encoding::Row(layout) => layout.decode(keys.keys.rows(range), wanted),
        }
    }

    /// Of the groups in `range`, how many fit one batch: Arrow's 32-bit offsets end at 2 GiB.
    pub fn fitting(&self, keys: &DistinctKeys, range: Range<usize>) -> usize {
        const OFFSET_BYTES_MAX: u64 = i32::MAX as u64;
        if let Encoding::Packed(layout) = &self.encoding {
            return layout.fitting(keys.keys.rows(range), OFFSET_BYTES_MAX);
        }
        let EncodedKeys::Bytes(bytes) = &keys.keys else {
            return range.len();
        };
        let mut total = 0u64;
        for (row, view) in bytes.views[range.clone()].iter().enumerate() {
            total += u64::from(*view as u32);
            if total > OFFSET_BYTES_MAX {
                return row.max(1);
            }
        }
        range.len()
    }
}

/// A key that is one NULL is zero words with a hash that zero words never have.
fn mark_nulls(column: &ArrayRef, keys: &mut EncodedKeys, hashes: &mut [u64]) {
    let Some(nulls) = column
        .logical_nulls()
        .filter(|nulls| nulls.null_count() > 0)
    else {
        return;
    };
    for row in nulls
        .inner()
        .iter()
        .enumerate()
        .filter_map(|(row, valid)| (!valid).then_some(row))
    {
        hashes[row] = hash::NULL_HASH;
        match keys {
            EncodedKeys::None(_) => {}
            EncodedKeys::Packed(packed) => {
                with_width!(packed, PackedKeys(words) => words.keys[row].fill(0));
            }
            EncodedKeys::Bytes(keys) => keys.views[row] = 0,
        }
    }
}

/// The table of a query without GROUP BY: all rows are group 0.
#[derive(Debug, Default)]
struct OneGroup {
    seen: bool,
}

impl KeyTable for OneGroup {
    fn assign(
        &mut self,
        keys: KeyRows<'_>,
        _hashes: &[u64],
        groups: &mut Vec<GroupId>,
    ) -> Result<()> {
        self.seen |= !keys.is_empty();
        groups.resize(groups.len() + keys.len(), GroupId(0));
        Ok(())
    }

    fn expect(&mut self, _groups: usize) {}

    fn len(&self) -> usize {
        usize::from(self.seen)
    }

    fn bytes(&self) -> usize {
        0
    }

    fn used_bytes(&self) -> usize {
        0
    }

    fn collisions(&self) -> u64 {
        0
    }

    fn drain(&mut self) -> DistinctKeys {
        let groups = usize::from(std::mem::take(&mut self.seen));
        DistinctKeys {
            keys: EncodedKeys::None(groups),
            hashes: vec![0; groups],
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int32Array, StringViewArray, UInt8Array};
    use arrow::datatypes::Field;

    use super::super::columns::strict_cast;
    use super::*;

    const LONG: &str = "a text that is longer than a view";

    fn layout(types: &[DataType], table: TableKind) -> KeyLayout {
        let field = |of: &DataType| Arc::new(Field::new("k", of.clone(), true));
        let fields: Vec<FieldRef> = types.iter().map(field).collect();
        KeyLayout::new(&fields, table).expect("keys")
    }

    /// Words, hashes and decoded keys, of which the places of long strings may differ.
    fn all_of(layout: &KeyLayout, columns: &[ArrayRef]) -> (Vec<u64>, Vec<ArrayRef>) {
        let (mut hashes, rows) = (Vec::new(), columns[0].len());
        let keys = layout.encode(columns, rows, &mut hashes).expect("keys");
        let wanted: Vec<usize> = (0..columns.len()).collect();
        let distinct = DistinctKeys {
            keys,
            hashes: hashes.clone(),
        };
        let decoded = layout.decode(&distinct, 0..rows, &wanted);
        (hashes, decoded.expect("columns"))
    }

    /// Codes as files and users have them: values twice, one that no row has, NULL by code and by value, a code that is none
    /// under a NULL.
    #[test]
    fn codes_are_the_keys_that_their_strings_are() {
        let values = vec![
            Some("a"),
            Some(LONG),
            None,
            Some("a"),
            Some(""),
            Some("unused"),
        ];
        let codes = [
            Some(1),
            Some(0),
            None,
            Some(2),
            Some(3),
            Some(4),
            Some(1),
            Some(0),
        ];
        let mut under_null = Int32Array::from(codes.map(|code| code.map(i32::from)).to_vec());
        let mut raw = under_null.values().to_vec();
        raw[2] = -7;
        under_null = Int32Array::new(raw.into(), under_null.nulls().cloned());
        let strings = codes.map(|code| code.and_then(|code: u8| values[code as usize]));
        let plain: ArrayRef = Arc::new(StringViewArray::from(strings.to_vec()));
        let views: ArrayRef = Arc::new(StringViewArray::from(values.clone()));
        let strings: ArrayRef = Arc::new(arrow::array::StringArray::from(values.clone()));
        let bytes = strict_cast(&strings, &DataType::Binary).expect("bytes");
        let narrow = UInt8Array::from(codes.to_vec());
        let behind: UInt8Array = std::iter::once(Some(5)).chain(codes).collect();
        let coded: [ArrayRef; 4] = [
            Arc::new(DictionaryArray::new(under_null.clone(), views)),
            Arc::new(DictionaryArray::new(narrow.clone(), Arc::clone(&strings))),
            Arc::new(DictionaryArray::new(under_null, bytes)),
            Arc::new(DictionaryArray::new(behind, strings).slice(1, 8)),
        ];
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..8));
        let string = DataType::Utf8View;
        for (types, table) in [
            (vec![string.clone()], TableKind::Bytes),
            (vec![string.clone(), DataType::Int32], TableKind::Packed),
            (vec![DataType::Int32, string.clone()], TableKind::Row),
        ] {
            let layout = layout(&types, table);
            let with = |column: &ArrayRef| -> Vec<ArrayRef> {
                let key = |of: &DataType| if *of == string { column } else { &numbers };
                types.iter().map(|of| Arc::clone(key(of))).collect()
            };
            let expected = all_of(&layout, &with(&plain));
            for coded in &coded {
                let (hashes, decoded) = all_of(&layout, &with(coded));
                assert_eq!(hashes, expected.0, "{types:?}");
                for (column, expected) in decoded.iter().zip(&expected.1) {
                    assert_eq!(column, expected, "{types:?}");
                }
            }
        }
    }
}
