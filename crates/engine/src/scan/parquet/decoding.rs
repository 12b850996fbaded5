//! What decoding a Parquet column takes beyond the bytes of its file, asked for before it begins.
//!
//! In: bytes of column chunks as they were read, the file's footer.
//! Out: the same bytes, which hold a reservation for what will be made of them; an error that names the file where memory
//! has no room for that.
//! Invariant: pages that declare little cost nothing but a look at their headers; what is reserved follows from the pages
//! themselves and never from the footer.
//! Not here: the bytes themselves, which always count (accounted.rs).
//!
//! Eight kilobytes of repeated values can be a page of two gigabytes, or a row with a billion values.

use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::parquet::basic::{Encoding, Type};
use datafusion::parquet::column::page::{Page, PageReader};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::parquet::file::serialized_reader::SerializedPageReader;
use object_store::path::Path;

use crate::error::Error;
use crate::runtime::accounted::{Bytes, accounted, with_decoding};
use crate::scan::parquet::delta_counts::claimed;
use crate::scan::parquet::levels::BatchValues;
use crate::scan::parquet::page_headers::PageSums;

/// What a column may take that is not asked for: ordinary pages have a megabyte.
const FREE_BYTES: u64 = 16 << 20;

/// A nested column whose values all together take no more is not looked at.
const NESTED_FREE_BYTES: u64 = 64 << 20;

/// What a batch of values of one length may take, whatever the limit.
const FIXED_FREE_BYTES: u64 = 256 << 20;

/// Real values take a bit at least; where more of them come from a byte, rows may have any number.
const DENSE_VALUES_PER_BYTE: u64 = 8;

/// The share of the memory limit from which on rows of other columns are counted, too.
const UNCOUNTED_SHARE: u64 = 8;

/// Definition and repetition levels of a value.
const LEVEL_BYTES: u64 = 4;

/// Two lengths of a string.
const LENGTHS_BYTES: u64 = 8;

/// Buffers double as they grow.
const GROWTH: u64 = 2;

/// Decodes the columns of one file.
pub(super) struct Decoding {
    pool: Arc<dyn MemoryPool>,
    path: String,
    /// Rows of a batch.
    batch_rows: u64,
    footer: Option<Arc<ParquetMetaData>>,
    /// The row group in which a chunk was found last: the next one mostly lies there, too.
    near: AtomicUsize,
}

impl Decoding {
    /// Of the file at `location`, in batches of so many rows.
    pub(super) fn new(pool: Arc<dyn MemoryPool>, location: &Path, batch_rows: usize) -> Decoding {
        Decoding {
            pool,
            batch_rows: batch_rows as u64,
            path: format!("/{location}"),
            footer: None,
            near: AtomicUsize::new(0),
        }
    }

    /// The footer by which the file is read.
    pub(super) fn know(&mut self, footer: &Arc<ParquetMetaData>) {
        self.footer = Some(Arc::clone(footer));
    }

    /// Bytes of the file from `start` on, with leave to decode them.
    pub(super) fn admit(&self, start: u64, bytes: Bytes) -> ParquetResult<Bytes> {
        let sums = PageSums::of(&bytes);
        if sums.is_cut {
            return Err(self.wrong("a page would end behind the bytes of its column"));
        }
        let pages = sums.largest.saturating_add(sums.dictionaries);
        let pages_asked = Some(pages).filter(|bytes| *bytes > FREE_BYTES).unwrap_or(0);
        let may_be_nested = sums.values > NESTED_FREE_BYTES / (LEVEL_BYTES * GROWTH);
        let bytes = accounted(bytes, &self.pool);
        if pages_asked == 0 && !may_be_nested && !sums.has_own_counts {
            return Ok(bytes);
        }
        let bytes = self.reserved(bytes, pages_asked)?;
        let Some(chunk) = self.chunk(start) else {
            return Ok(bytes);
        };
        let strings = match sums.has_own_counts {
            true => self.string_bytes(chunk, start, &bytes)?,
            false => 0,
        };
        let nested = self.nested_bytes(chunk, start, &bytes, &sums);
        match strings.saturating_add(nested) {
            more if more > FREE_BYTES => self.reserved(bytes, more),
            _ => Ok(bytes),
        }
    }

    /// The error for a file that is damaged. The decoder panics where a page is longer than its column.
    fn wrong(&self, message: &str) -> ParquetError {
        ParquetError::External(Box::new(Error::bad_file(
            self.path.clone(),
            format!("{message}; it is damaged"),
        )))
    }

    fn reserved(&self, bytes: Bytes, more: u64) -> ParquetResult<Bytes> {
        if more == 0 {
            return Ok(bytes);
        }
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        with_decoding(bytes, more, &self.pool).map_err(|refused| {
            let error = match Error::from(refused) {
                Error::OutOfMemory(mut out) => {
                    out.operator = format!("the reader of '{}'", self.path);
                    Error::OutOfMemory(out)
                }
                other => other,
            };
            ParquetError::External(Box::new(error))
        })
    }

    /// What the decoder takes for lengths of strings that pages count themselves.
    fn string_bytes(
        &self,
        chunk: &ColumnChunkMetaData,
        start: u64,
        bytes: &Bytes,
    ) -> ParquetResult<u64> {
        let mut most = 0;
        let Ok(mut pages) = pages(chunk, start, bytes) else {
            return Ok(0);
        };
        // The decoder says what is wrong with a page that cannot be read.
        while let Ok(Some(page)) = pages.get_next_page() {
            let Some(values) = values_of(&page, chunk) else {
                continue;
            };
            let claimed = claimed(values, page.encoding(), u64::from(page.num_values()));
            let Some(claimed) = claimed else {
                return Err(ParquetError::External(Box::new(Error::bad_file(
                    self.path.clone(),
                    "a page claims more strings than it has values",
                ))));
            };
            most = most.max(claimed.saturating_mul(LENGTHS_BYTES));
        }
        Ok(most)
    }

    /// What a batch of a nested column takes at most; 0 if that is little, or bounded by the rows of a batch.
    fn nested_bytes(
        &self,
        chunk: &ColumnChunkMetaData,
        start: u64,
        bytes: &Bytes,
        sums: &PageSums,
    ) -> u64 {
        if chunk.column_descr().max_rep_level() == 0 {
            return 0;
        }
        let width = match chunk.column_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::BYTE_ARRAY => 16,
            Type::FIXED_LEN_BYTE_ARRAY => {
                u64::try_from(chunk.column_descr().type_length()).unwrap_or(0)
            }
        };
        let each = (LEVEL_BYTES + width) * GROWTH;
        let all = sums.values.saturating_mul(each);
        let is_dense = sums.values / DENSE_VALUES_PER_BYTE >= bytes.len() as u64;
        let uncounted = match is_dense {
            true => NESTED_FREE_BYTES,
            false => (limit_bytes(&self.pool) / UNCOUNTED_SHARE).max(NESTED_FREE_BYTES),
        };
        if all <= uncounted {
            return 0;
        }
        let most = self
            .batch_values(chunk, start, bytes)
            .unwrap_or(sums.values);
        most.min(sums.values).saturating_mul(each)
    }

    /// The most values of a batch, by the repetition levels of all pages; `None` if they cannot be read.
    fn batch_values(&self, chunk: &ColumnChunkMetaData, start: u64, bytes: &Bytes) -> Option<u64> {
        let mut pages = pages(chunk, start, bytes).ok()?;
        let level_max = chunk.column_descr().max_rep_level();
        let mut counted = BatchValues::of_batches(self.batch_rows);
        while let Some(page) = pages.get_next_page().ok()? {
            let values = u64::from(page.num_values());
            let levels = match &page {
                Page::DictionaryPage { .. } => continue,
                Page::DataPage {
                    buf,
                    rep_level_encoding: Encoding::RLE,
                    ..
                } => with_length(buf)?.0,
                Page::DataPage { .. } => return None,
                Page::DataPageV2 {
                    buf,
                    rep_levels_byte_len,
                    ..
                } => buf.get(..usize::try_from(*rep_levels_byte_len).ok()?)?,
            };
            counted.page(levels, values, level_max)?;
        }
        Some(counted.most())
    }

    /// The column chunk that has the byte at `start`.
    fn chunk(&self, start: u64) -> Option<&ColumnChunkMetaData> {
        let groups = self.footer.as_ref()?.row_groups();
        let found_in = |at: usize| {
            let mut chunks = groups.get(at)?.columns().iter();
            chunks.find(|chunk| place(chunk).is_some_and(|place| place.contains(&start)))
        };
        found_in(self.near.load(Ordering::Relaxed)).or_else(|| {
            (0..groups.len()).find_map(|at| {
                let found = found_in(at)?;
                self.near.store(at, Ordering::Relaxed);
                Some(found)
            })
        })
    }
}

/// Where the footer says that a chunk lies; a damaged one may say anything.
fn place(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let data = chunk.data_page_offset();
    let start = u64::try_from(chunk.dictionary_page_offset().unwrap_or(data)).ok()?;
    let bytes = u64::try_from(chunk.compressed_size()).ok()?;
    Some(start..start.checked_add(bytes)?)
}

fn limit_bytes(pool: &Arc<dyn MemoryPool>) -> u64 {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes as u64,
        _ => u64::MAX,
    }
}

/// The pages in bytes of a chunk.
fn pages(
    chunk: &ColumnChunkMetaData,
    start: u64,
    bytes: &Bytes,
) -> ParquetResult<SerializedPageReader<ChunkBytes>> {
    let out_of_range = |_| ParquetError::EOF("the page lies elsewhere".to_string());
    let part = chunk.clone().into_builder();
    let part = part
        .set_dictionary_page_offset(None)
        .set_data_page_offset(i64::try_from(start).map_err(out_of_range)?)
        .set_total_compressed_size(i64::try_from(bytes.len()).map_err(out_of_range)?)
        .build()?;
    let bytes = Arc::new(ChunkBytes {
        start,
        bytes: bytes.clone(),
    });
    // The number of rows is for those who read by it.
    SerializedPageReader::new(bytes, &part, 0, None)
}

/// Levels of a page with their length before them, and what follows.
fn with_length(page: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = page.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// The values of a data page, behind its levels.
fn values_of<'a>(page: &'a Page, chunk: &ColumnChunkMetaData) -> Option<&'a [u8]> {
    let column = chunk.column_descr();
    match page {
        Page::DictionaryPage { .. } => None,
        Page::DataPage { buf, .. } => {
            let mut values = &buf[..];
            for level_max in [column.max_rep_level(), column.max_def_level()] {
                if level_max > 0 {
                    values = with_length(values)?.1;
                }
            }
            Some(values)
        }
        Page::DataPageV2 {
            buf,
            rep_levels_byte_len,
            def_levels_byte_len,
            ..
        } => {
            let levels = rep_levels_byte_len.checked_add(*def_levels_byte_len)?;
            buf.get(usize::try_from(levels).ok()?..)
        }
    }
}

/// Some bytes of a file at their place in it.
struct ChunkBytes {
    start: u64,
    bytes: Bytes,
}

impl ChunkBytes {
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let at = start.checked_sub(self.start);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let at = at.filter(|at| *at <= self.bytes.len());
        at.map(|at| self.bytes.slice(at..))
            .ok_or_else(|| ParquetError::EOF("the page lies elsewhere".to_string()))
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for ChunkBytes {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Cursor<Bytes>> {
        Ok(Cursor::new(self.from(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        match bytes.len() >= length {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF("the page is cut off".to_string())),
        }
    }
}

/// What is wrong with columns whose values all have one length: NULLs have it, too, and a batch has room for all its rows.
pub(super) fn long_values(
    footer: &ParquetMetaData,
    pool: &Arc<dyn MemoryPool>,
    batch_rows: usize,
) -> Option<String> {
    let may_take = limit_bytes(pool).max(FIXED_FREE_BYTES);
    let columns = footer.file_metadata().schema_descr().columns().iter();
    let mut lengths = columns.filter_map(|column| {
        let length = u64::try_from(column.type_length()).ok()?;
        let is_fixed = column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY;
        (is_fixed && length.saturating_mul(batch_rows as u64) > may_take)
            .then(|| (column.path().string(), length))
    });
    lengths.next().map(|(name, length)| {
        format!(
            "values of column '{name}' have {length} bytes each, too many for a batch of {batch_rows} rows; raise memory_limit or lower batch_size"
        )
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        ArrayRef, ListBuilder, RecordBatch, StringArray, StringBuilder,
    };
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::{Compression, ZstdLevel};
    use datafusion::parquet::file::metadata::ParquetMetaDataReader;
    use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;
    use crate::runtime::memory::SessionPool;

    /// Strings of which neighbours have a part in common, NULLs, and lists of them.
    fn batch(rows: usize) -> RecordBatch {
        let text = |row: usize| format!("{:07}{}", row / 3, "x".repeat(row % 40));
        let strings = (0..rows).map(|row| (row % 11 != 5).then(|| text(row)));
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in 0..rows {
            (0..row % 4).for_each(|nth| lists.values().append_value(text(row + nth)));
            lists.append(row % 7 != 2);
        }
        let columns: [(&str, ArrayRef); 2] = [
            ("s", Arc::new(StringArray::from_iter(strings))),
            ("l", Arc::new(lists.finish())),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn admits_all(rows: usize, properties: WriterProperties) {
        let batch = batch(rows);
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = Bytes::from(file);
        let footer = ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .unwrap();
        let pool: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(1));
        let mut decoding = Decoding::new(pool, &Path::from("x.parquet"), 8192);
        decoding.know(&Arc::new(footer.clone()));
        for chunk in footer.row_group(0).columns() {
            let place = place(chunk).unwrap();
            let bytes = file.slice(place.start as usize..place.end as usize);
            assert_eq!(decoding.admit(place.start, bytes.clone()).unwrap(), bytes);
            // A column that ends before its last page does.
            let cut = bytes.slice(..bytes.len() - 1);
            let refused = decoding.admit(place.start, cut).unwrap_err().to_string();
            assert!(refused.contains("x.parquet"), "{refused}");
            // The decoder's own reader agrees about what the pages are.
            let values = decoding.batch_values(chunk, place.start, &bytes);
            assert!(chunk.column_descr().max_rep_level() == 0 || values.is_some());
        }
    }

    #[test]
    fn honest_pages_are_admitted() {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        for rows in [1, 2, 3, 33, 129, 1_000, 20_000] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for encoding in [
                    Encoding::PLAIN,
                    Encoding::DELTA_BYTE_ARRAY,
                    Encoding::DELTA_LENGTH_BYTE_ARRAY,
                ] {
                    let properties = WriterProperties::builder()
                        .set_writer_version(version)
                        .set_compression(zstd)
                        .set_dictionary_enabled(false)
                        .set_encoding(encoding)
                        .set_data_page_row_count_limit(3_000)
                        .build();
                    admits_all(rows, properties);
                }
            }
        }
    }
}
