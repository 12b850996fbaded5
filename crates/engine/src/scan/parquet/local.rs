//! Local files: the worker that decodes a piece reads its bytes.
//!
//! In: ranges of bytes of one file on this machine. Out: the bytes.
//! Invariant: what cannot be read here is read, or refused, by DataFusion's reader, whose errors name the file.
//! Not here: footers (parquet.rs), files behind other addresses.
//!
//! DataFusion reads on another thread, which the worker waits for, into memory that it fills with zeros beforehand.
//! Tried and rejected: mapping the file, where a file that another process cuts short ends ours.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, Label, MetricBuilder, MetricCategory, MetricType,
    RatioMergeStrategy, RatioMetrics,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectMeta;
use object_store::local::LocalFileSystem;

use crate::scan::access::Access;
use crate::scan::parquet::Bytes;
use crate::scan::parquet::decoding::Decoding;
use crate::scan::steady::{changed, is_same};

/// Bytes of one read. A worker gives way after many of them: one that gives way is seen by no other thread until this one rests.
const READ_BYTES: u64 = 1 << 20;

/// Readers of local files.
#[derive(Debug)]
pub(crate) struct LocalReaders {
    datafusion: Arc<dyn ParquetFileReaderFactory>,
    paths: LocalFileSystem,
    pool: Arc<dyn MemoryPool>,
    access: Arc<Access>,
    batch_rows: usize,
}

impl LocalReaders {
    /// `datafusion` makes the readers for everything but bytes, which count in `pool`; batches have so many rows.
    pub fn new(
        datafusion: Arc<dyn ParquetFileReaderFactory>,
        pool: Arc<dyn MemoryPool>,
        access: Arc<Access>,
        batch_rows: usize,
    ) -> LocalReaders {
        LocalReaders {
            datafusion,
            pool,
            access,
            batch_rows,
            paths: LocalFileSystem::new(),
        }
    }
}

impl ParquetFileReaderFactory for LocalReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = &file.object_meta.location;
        let counts = ReadBytes::of(&file.object_meta, partition_index, metrics);
        let path = self.paths.path_to_filesystem(location).ok();
        // DataFusion's reader says why it is refused.
        let path = path.filter(|path| self.access.check_path(path, "").is_ok());
        let planned = file.object_meta.clone();
        // What it reads is counted here, so that a piece of a file has two counters more in the plan's list and not fifty.
        let uncounted = ExecutionPlanMetricsSet::new();
        let datafusion =
            self.datafusion
                .create_reader(partition_index, file, metadata_size_hint, &uncounted)?;
        Ok(Box::new(LocalReader {
            datafusion,
            path,
            decoding: Decoding::new(Arc::clone(&self.pool), &planned.location, self.batch_rows),
            planned,
            file: None,
            counts,
        }))
    }
}

struct LocalReader {
    datafusion: Box<dyn AsyncFileReader + Send>,
    path: Option<PathBuf>,
    /// The file as planning found it.
    planned: ObjectMeta,
    /// Open.
    file: Option<File>,
    counts: ReadBytes,
    decoding: Decoding,
}

/// What EXPLAIN ANALYZE says of bytes that were read, as DataFusion's readers do.
struct ReadBytes {
    scanned: Count,
    of_file: RatioMetrics,
}

impl ReadBytes {
    fn of(file: &ObjectMeta, partition: usize, metrics: &ExecutionPlanMetricsSet) -> ReadBytes {
        let path: Arc<str> = file.location.as_ref().into();
        let metric = MetricBuilder::new(metrics)
            .with_label(Label::new("filename", path))
            .with_type(MetricType::Summary);
        let of_file = metric.clone().ratio_metrics_with_strategy(
            "scan_efficiency_ratio",
            partition,
            RatioMergeStrategy::AddPartSetTotal,
        );
        of_file.set_total(usize::try_from(file.size).unwrap_or(usize::MAX));
        ReadBytes {
            scanned: metric
                .with_category(MetricCategory::Bytes)
                .counter("bytes_scanned", partition),
            of_file,
        }
    }

    fn add(&self, bytes: usize) {
        self.scanned.add(bytes);
        self.of_file.add_part(bytes);
    }
}

impl LocalReader {
    /// The bytes of all ranges; `None` if one cannot be read, an error if they are not those of the file that was planned.
    async fn read(&mut self, ranges: &[Range<u64>]) -> ParquetResult<Option<Vec<Bytes>>> {
        let read = self.read_as_is(ranges).await;
        // Asked after reading: whoever wrote to the file meanwhile has changed its age.
        let now = self.file.as_ref().and_then(|file| file.metadata().ok());
        match now.is_some_and(|now| !is_same(&now, &self.planned)) {
            true => Err(ParquetError::External(Box::new(changed(
                &self.planned.location,
            )))),
            false => read.map(|all| self.admitted(ranges, all)).transpose(),
        }
    }

    fn admitted(&self, ranges: &[Range<u64>], all: Vec<Bytes>) -> ParquetResult<Vec<Bytes>> {
        let all = ranges.iter().zip(all);
        all.map(|(range, bytes)| self.decoding.admit(range.start, bytes))
            .collect()
    }

    async fn read_as_is(&mut self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        if self.file.is_none() {
            self.file = Some(File::open(self.path.as_ref()?).ok()?);
        }
        let mut file = self.file.as_ref()?;
        let file_bytes = self.planned.size;
        let mut all = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.end > file_bytes {
                return None;
            }
            let bytes = range.end.checked_sub(range.start)?;
            let mut read = Vec::with_capacity(usize::try_from(bytes).ok()?);
            file.seek(SeekFrom::Start(range.start)).ok()?;
            let mut left = bytes;
            while left > 0 {
                let part = left.min(READ_BYTES);
                if file.take(part).read_to_end(&mut read).ok()? as u64 != part {
                    return None;
                }
                left -= part;
                tokio::task::coop::consume_budget().await;
            }
            all.push(Bytes::from(read));
        }
        self.counts.add(all.iter().map(Bytes::len).sum());
        Some(all)
    }
}

impl AsyncFileReader for LocalReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let read = self.read(std::slice::from_ref(&range)).await?;
            match read.and_then(|mut all| all.pop()) {
                Some(bytes) => Ok(bytes),
                None => {
                    let bytes = self.datafusion.get_bytes(range).await?;
                    self.counts.add(bytes.len());
                    Ok(bytes)
                }
            }
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        async move {
            match self.read(&ranges).await? {
                Some(all) => Ok(all),
                None => {
                    let all = self.datafusion.get_byte_ranges(ranges).await?;
                    self.counts.add(all.iter().map(Bytes::len).sum());
                    Ok(all)
                }
            }
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let footer = self.datafusion.get_metadata(options).await?;
            self.decoding.know(&footer);
            Ok(footer)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::physical_plan::parquet::DefaultParquetFileReaderFactory;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use object_store::ObjectMeta;
    use object_store::path::Path;

    use super::*;
    use crate::runtime::options::SessionOptions;

    const BYTES: u64 = 2 * READ_BYTES + 77;

    fn reader(
        path: &std::path::Path,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Box<dyn AsyncFileReader + Send> {
        let modified = std::fs::metadata(path).and_then(|meta| meta.modified());
        let object = ObjectMeta {
            location: Path::from_absolute_path(path).unwrap(),
            last_modified: modified.unwrap_or(std::time::SystemTime::UNIX_EPOCH).into(),
            size: BYTES,
            e_tag: None,
            version: None,
        };
        let datafusion = DefaultParquetFileReaderFactory::new(Arc::new(LocalFileSystem::new()));
        let pool = Arc::new(UnboundedMemoryPool::default());
        let access = Access::new(&SessionOptions::default()).unwrap();
        LocalReaders::new(Arc::new(datafusion), pool, access, 8192)
            .create_reader(0, PartitionedFile::from(object), None, metrics)
            .unwrap()
    }

    #[tokio::test]
    async fn ranges_are_the_bytes_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b%20c.parquet");
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let metrics = ExecutionPlanMetricsSet::new();
        let mut reader = reader(&path, &metrics);
        let ranges = vec![5..5, 0..BYTES, 1_000..1_003, BYTES - 1..BYTES];
        let read = reader.get_byte_ranges(ranges.clone()).await.unwrap();
        for (range, read) in ranges.iter().zip(&read) {
            assert_eq!(read, &bytes[range.start as usize..range.end as usize]);
        }
        assert_eq!(reader.get_bytes(7..9).await.unwrap(), &bytes[7..9]);
        let counted = metrics.clone_inner();
        let scanned = counted.sum_by_name("bytes_scanned");
        assert_eq!(scanned.unwrap().as_usize() as u64, BYTES + 6);
        // All workers put them into one list, for each piece of a file.
        assert_eq!(counted.iter().count(), 2);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_datafusions_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short.parquet");
        let metrics = ExecutionPlanMetricsSet::new();
        let missing = reader(&path, &metrics).get_bytes(0..9).await;
        assert!(missing.unwrap_err().to_string().contains("short.parquet"));
        std::fs::write(&path, b"short").unwrap();
        let mut reader = reader(&path, &metrics);
        assert!(reader.get_byte_ranges(vec![0..2, 0..9]).await.is_err());
    }
}
