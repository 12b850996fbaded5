//! One version of each file per query.
//!
//! In: a format, or a store and a file as planning found it. Out: the same, whose readers see that version or fail.
//! Invariant: no answer mixes two versions of a file: one that was replaced, cut short or written to since it was planned is
//! an error that names it.
//! Not here: Parquet files on this machine (local.rs), versions of tables.
//!
//! A file that was replaced under its name goes on to be read by whoever has it open; whoever opens it then fails.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileSource,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result as StoreResult,
};
use parking_lot::Mutex;

use super::parquet::Bytes;
use crate::error::Error;

/// What is read at once from a file on this machine.
const READ_BYTES: u64 = 1 << 20;

/// Whether an open file is the one that `meta` tells of, as it was then.
pub(crate) fn is_same(file: &Metadata, meta: &ObjectMeta) -> bool {
    let is_as_old = file
        .modified()
        .is_ok_and(|modified| modified == SystemTime::from(meta.last_modified));
    file.len() == meta.size && is_as_old && is_same_node(file, meta)
}

/// The store's tags of local files begin with their number in the file system.
#[cfg(unix)]
fn is_same_node(file: &Metadata, meta: &ObjectMeta) -> bool {
    use std::os::unix::fs::MetadataExt;
    let tag = meta.e_tag.as_deref().unwrap_or_default();
    match tag
        .split_once('-')
        .map(|(node, _)| u64::from_str_radix(node, 16))
    {
        Some(Ok(node)) => node == file.ino(),
        _ => true,
    }
}

#[cfg(not(unix))]
fn is_same_node(_file: &Metadata, _meta: &ObjectMeta) -> bool {
    true
}

/// The error for a file that is not what it was.
pub(crate) fn changed(location: &Path) -> Error {
    Error::Io {
        path: format!("/{location}"),
        message: "it was replaced or changed while the query read it; run the query again"
            .to_string(),
    }
}

/// The error for a file that says of a part of it that it lies behind its end. Stores give what there is of the part, and
/// DataFusion's reader of footers panics where that is less than it asked for.
fn beyond(location: &Path) -> Error {
    Error::bad_file(
        format!("/{location}"),
        "a part of it would lie behind its end; it is damaged or was cut short",
    )
}

/// A store that opens one of its files only as planning found it.
#[derive(Debug)]
pub(crate) struct Pinned {
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    /// Whether a part that ends behind the file is an error, and not as much of it as there is.
    is_exact: bool,
    /// Of the files that were opened, to see in the end whether somebody wrote to them.
    open: Mutex<Vec<File>>,
}

impl Pinned {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Pinned {
        Pinned {
            store,
            meta,
            is_exact: false,
            open: Mutex::default(),
        }
    }

    /// The same for a reader that has the places of parts from the file itself.
    pub(crate) fn exact(store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Pinned {
        Pinned {
            is_exact: true,
            ..Pinned::new(store, meta)
        }
    }

    /// An error if the file was written to since it was opened.
    fn check(&self) -> Result<()> {
        let is_changed = self.open.lock().iter().any(|file| {
            let now = file.metadata();
            now.is_ok_and(|now| !is_same(&now, &self.meta))
        });
        match is_changed {
            true => Err(changed(&self.meta.location).into()),
            false => Ok(()),
        }
    }

    /// Whether the store's answer is about the file as planning found it. Who gives no tags is asked for size and age.
    fn is_planned(&self, found: &ObjectMeta) -> bool {
        let has_tag = match (&found.e_tag, &self.meta.e_tag) {
            (Some(found), Some(planned)) => found == planned,
            _ => found.last_modified == self.meta.last_modified,
        };
        has_tag && found.size == self.meta.size
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Pinned {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let is_part = options.range.is_some();
        if let Some(GetRange::Bounded(part)) = &options.range
            && self.is_exact
            && *location == self.meta.location
            && part.end > self.meta.size
        {
            return Err(refused(beyond(location)));
        }
        let mut found = self.store.get_opts(location, options).await?;
        if *location != self.meta.location {
            return Ok(found);
        }
        if !self.is_planned(&found.meta) {
            return Err(refused(changed(location)));
        }
        if let GetResultPayload::File(file, _) = &mut found.payload
            && let Ok(copy) = file.try_clone()
        {
            self.open.lock().push(copy);
        }
        // DataFusion's own stream waits for ever for bytes that a file has lost.
        if is_part {
            let range = found.range.clone();
            found.payload = match found.payload {
                GetResultPayload::File(file, _) => {
                    GetResultPayload::Stream(file_stream(file, range, location.clone()))
                }
                stream => stream,
            };
        }
        Ok(found)
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// A part of a file; one that ends too early is an error.
fn file_stream(
    mut file: File,
    range: Range<u64>,
    location: Path,
) -> BoxStream<'static, StoreResult<Bytes>> {
    if let Err(error) = file.seek(SeekFrom::Start(range.start)) {
        return futures::stream::iter([Err(failed(&location, &error))]).boxed();
    }
    let next = |(mut file, left, location): (File, u64, Path)| async move {
        if left == 0 {
            return Ok(None);
        }
        let wanted = left.min(READ_BYTES);
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let read = (&mut file).take(wanted).read_to_end(&mut bytes);
        let read = read.map_err(|error| failed(&location, &error))? as u64;
        if read < wanted {
            return Err(refused(changed(&location)));
        }
        tokio::task::coop::consume_budget().await;
        Ok(Some((Bytes::from(bytes), (file, left - read, location))))
    };
    futures::stream::try_unfold((file, range.end - range.start, location), next).boxed()
}

fn failed(location: &Path, error: &std::io::Error) -> object_store::Error {
    refused(Error::Io {
        path: format!("/{location}"),
        message: error.to_string(),
    })
}

/// Our error on its way through a store.
fn refused(error: Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "file",
        source: Box::new(error),
    }
}

/// Opens files of a source as planning found them.
pub(crate) struct SteadyOpener {
    source: Arc<dyn FileSource>,
    config: FileScanConfig,
    store: Arc<dyn ObjectStore>,
    partition: usize,
}

impl SteadyOpener {
    /// An opener of the files of `source`, which is a source of `config`.
    pub(crate) fn new(
        source: Arc<dyn FileSource>,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> SteadyOpener {
        SteadyOpener {
            source,
            config: config.clone(),
            store,
            partition,
        }
    }
}

impl FileOpener for SteadyOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let meta = file.object_meta.clone();
        let pinned = Arc::new(Pinned::new(Arc::clone(&self.store), meta));
        let store: Arc<dyn ObjectStore> = Arc::<Pinned>::clone(&pinned);
        let opener = self
            .source
            .create_file_opener(store, &self.config, self.partition)?;
        let opened = opener.open(file)?;
        Ok(Box::pin(async move {
            let batches = opened.await?;
            let checked = Arc::clone(&pinned);
            // Whatever fails in a file that was written to fails for that reason.
            let batches = batches.map_err(move |error| match checked.check() {
                Ok(()) => error,
                Err(changed) => changed,
            });
            let end = futures::stream::once(async move { pinned.check() });
            let end = end.filter_map(|end| async { end.err().map(Err::<_, DataFusionError>) });
            Ok(batches.chain(end).boxed())
        }))
    }
}
