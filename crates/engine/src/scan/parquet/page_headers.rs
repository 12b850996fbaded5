//! What the pages of Parquet columns say of themselves, read from the bytes between them.
//!
//! In: bytes of a column chunk, from the beginning of a page on. Out: sizes and counts of its pages.
//! Invariant: nothing is decompressed and nothing allocated; bytes that are no header end the walk.
//! Not here: what follows from the figures (decoding.rs).

/// One header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub kind: i64,
    /// Bytes of the page once it is decompressed.
    pub uncompressed: u64,
    /// Bytes of the page as it lies behind the header.
    pub compressed: u64,
    /// Values, NULLs and empty lists among them.
    pub values: u64,
    pub encoding: i64,
}

/// The page is a column's dictionary.
const DICTIONARY_PAGE: i64 = 2;

/// Encodings whose decoders believe counts inside the page.
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

/// The figures of several pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageSums {
    /// Bytes of dictionaries, decompressed.
    pub dictionaries: u64,
    /// Bytes of the largest other page, decompressed.
    pub largest: u64,
    /// Values of all other pages.
    pub values: u64,
    /// Whether some page counts its strings itself.
    pub has_own_counts: bool,
    /// Whether the last page would end behind the bytes.
    pub is_cut: bool,
}

impl PageSums {
    /// Of the pages that begin in `bytes`.
    pub(super) fn of(bytes: &[u8]) -> PageSums {
        let mut sums = PageSums::default();
        let mut rest = bytes;
        while let Some((header, after)) = PageHeader::read(rest) {
            if header.kind == DICTIONARY_PAGE {
                sums.dictionaries = sums.dictionaries.saturating_add(header.uncompressed);
            } else {
                sums.largest = sums.largest.max(header.uncompressed);
                sums.values = sums.values.saturating_add(header.values);
                sums.has_own_counts |=
                    matches!(header.encoding, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY);
            }
            let next = usize::try_from(header.compressed).ok();
            let Some(next) = next.and_then(|next| after.get(next..)) else {
                sums.is_cut = true;
                break;
            };
            rest = next;
        }
        sums
    }
}

impl PageHeader {
    /// The header at the beginning of `bytes`, and what lies behind it.
    fn read(bytes: &[u8]) -> Option<(PageHeader, &[u8])> {
        let mut thrift = Thrift { rest: bytes };
        let mut header = PageHeader::default();
        let (mut has_size, mut has_kind) = (false, false);
        thrift.fields(&mut |thrift, field, kind| {
            match (field, kind) {
                (1, I32) => {
                    header.kind = thrift.integer()?;
                    has_kind = true;
                }
                (2, I32) => header.uncompressed = thrift.size()?,
                (3, I32) => {
                    header.compressed = thrift.size()?;
                    has_size = true;
                }
                // Of the three kinds of pages.
                (5 | 7 | 8, STRUCT) => thrift.fields(&mut |thrift, inner, kind| {
                    match (inner, kind) {
                        (1, I32) => header.values = thrift.size()?,
                        (2, I32) if field != 8 => header.encoding = thrift.integer()?,
                        (4, I32) if field == 8 => header.encoding = thrift.integer()?,
                        _ => thrift.skip(kind, DEPTH_MAX)?,
                    }
                    Some(())
                })?,
                _ => thrift.skip(kind, DEPTH_MAX)?,
            }
            Some(())
        })?;
        (has_size && has_kind).then_some((header, thrift.rest))
    }
}

/// Types of Thrift's compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Headers have structs in structs, and no more.
const DEPTH_MAX: usize = 8;

/// Bytes in Thrift's compact protocol.
struct Thrift<'a> {
    rest: &'a [u8],
}

/// What is done with a field: its number and its type.
type OnField<'f, 'a> = &'f mut dyn FnMut(&mut Thrift<'a>, i64, u8) -> Option<()>;

impl<'a> Thrift<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn unsigned(&mut self) -> Option<u64> {
        unsigned(&mut self.rest)
    }

    fn integer(&mut self) -> Option<i64> {
        let bits = self.unsigned()?;
        Some((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    fn size(&mut self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    fn fields(&mut self, on_field: OnField<'_, 'a>) -> Option<()> {
        let mut number = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            number = match head >> 4 {
                0 => self.integer()?,
                more => number + i64::from(more),
            };
            on_field(self, number, head & 15)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.take(1),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.take(8),
            BINARY => {
                let bytes = self.unsigned()?;
                self.take(bytes)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.unsigned()?,
                    count => u64::from(count),
                };
                self.skip_all(count, &[head & 15], depth)
            }
            MAP => match self.unsigned()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    self.skip_all(count, &[kinds >> 4, kinds & 15], depth)
                }
            },
            STRUCT => self.fields(&mut |thrift, _, kind| thrift.skip(kind, depth)),
            _ => None,
        }
    }

    fn skip_all(&mut self, count: u64, kinds: &[u8], depth: usize) -> Option<()> {
        for _ in 0..count {
            for &kind in kinds {
                match kind {
                    // In a list a boolean has a byte.
                    TRUE | FALSE => self.take(1)?,
                    other => self.skip(other, depth)?,
                }
            }
        }
        Some(())
    }
}

/// A number in as many bytes as it needs, which are taken from `bytes`.
pub(super) fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
    use datafusion::parquet::file::metadata::ParquetMetaDataReader;
    use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;
    use crate::runtime::accounted::Bytes;

    fn batch() -> RecordBatch {
        let numbers = (0..20_000).map(|n| (n % 7 != 0).then_some(n));
        let lists = (0..20_000).map(|n| (n % 5 != 0).then(|| (0..n % 4).map(Some)));
        let strings = (0..20_000).map(|n| Some(format!("string {}", n % 900)));
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(Int64Array::from_iter(numbers))),
            (
                "l",
                Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
            ),
            ("s", Arc::new(StringArray::from_iter(strings))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn headers_are_those_of_the_file() {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for compression in [Compression::UNCOMPRESSED, zstd] {
                for has_dictionary in [true, false] {
                    let properties = WriterProperties::builder()
                        .set_writer_version(version)
                        .set_compression(compression)
                        .set_dictionary_enabled(has_dictionary)
                        .set_encoding(Encoding::PLAIN)
                        .set_data_page_row_count_limit(3_000)
                        .build();
                    check(properties);
                }
            }
        }
    }

    fn check(properties: WriterProperties) {
        let mut file = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut file, batch().schema(), Some(properties)).unwrap();
        writer.write(&batch()).unwrap();
        writer.close().unwrap();
        let file = Bytes::from(file);
        let footer = ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .unwrap();
        for chunk in footer.row_group(0).columns() {
            let (start, length) = chunk.byte_range();
            let mut rest = &file[start as usize..(start + length) as usize];
            let sums = PageSums::of(rest);
            assert_eq!(sums.values, chunk.num_values() as u64);
            assert_eq!(
                sums.dictionaries > 0,
                chunk.dictionary_page_offset().is_some()
            );
            let mut uncompressed = 0;
            while let Some((header, after)) = PageHeader::read(rest) {
                uncompressed += (rest.len() - after.len()) as u64 + header.uncompressed;
                rest = &after[header.compressed as usize..];
            }
            assert!(rest.is_empty());
            assert_eq!(uncompressed, chunk.uncompressed_size() as u64);
        }
    }

    #[test]
    fn what_is_no_header_ends_the_walk() {
        for bytes in [
            &b""[..],
            b"\0",
            b"PAR1",
            &[0xff; 40],
            &[0x1c; 40],
            &[0x19, 0xff],
        ] {
            assert_eq!(PageSums::of(bytes), PageSums::default(), "{bytes:?}");
        }
        // A list of 2^60 booleans ends with the bytes.
        let long = [0x09, 2, 0xf1, 255, 255, 255, 255, 255, 255, 255, 15];
        assert_eq!(PageSums::of(&long), PageSums::default());
    }
}
