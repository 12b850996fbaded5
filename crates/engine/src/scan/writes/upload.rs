//! A stage as the store that DataFusion's writers put files into.
//!
//! In: whole files and parts of files, in order. Out: bytes in the stage's files; objects held until the commit.
//! Invariant: the system's own error reaches the stage before the writers see it. Blocking calls run on blocking threads;
//! a stream gets its parts in the order in which they were put.
//! Not here: names and their commit (stage.rs). Nothing can be read from this store.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result as StoreResult, UploadPart,
};
use tokio::sync::{mpsc, oneshot};

use super::stage::{Held, OpenedFile, StagedFiles};

/// The store.
#[derive(Debug)]
pub(super) struct Uploads(pub Arc<StagedFiles>);

impl fmt::Display for Uploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the files of a COPY")
    }
}

#[async_trait]
impl ObjectStore for Uploads {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        _: PutOptions,
    ) -> StoreResult<PutResult> {
        let stage = Arc::clone(&self.0);
        let location = location.clone();
        blocking(Arc::clone(&self.0), move || {
            match stage.create(&location)? {
                OpenedFile::File(file) => {
                    write_at(&file, &payload, 0)?;
                    file.sync_all()
                }
                OpenedFile::Stream(stream) => write_on(&stream, &payload),
                OpenedFile::Object(_, path) => stage.hold(Held::Whole(path, payload)),
            }
        })
        .await?;
        Ok(nothing_known())
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let stage = Arc::clone(&self.0);
        let location = location.clone();
        let opened = blocking(Arc::clone(&self.0), move || stage.create(&location)).await?;
        let stage = Arc::clone(&self.0);
        Ok(match opened {
            OpenedFile::File(file) => Box::new(FileUpload { stage, file, at: 0 }),
            OpenedFile::Stream(stream) => Box::new(StreamUpload::start(stage, stream)),
            OpenedFile::Object(store, path) => {
                let begun = store.put_multipart_opts(&path, options).await;
                let parts = begun.inspect_err(|error| stage.fail_store(error))?;
                Box::new(ObjectUpload {
                    stage,
                    parts: Some(parts),
                })
            }
        })
    }

    async fn get_opts(&self, location: &Path, _: GetOptions) -> StoreResult<GetResult> {
        Err(StoreError::NotFound {
            path: location.to_string(),
            source: unreadable().into(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        locations
            .map(|path| {
                path.and_then(|_| {
                    Err(StoreError::NotImplemented {
                        operation: "delete".to_string(),
                        implementer: "a stage".to_string(),
                    })
                })
            })
            .boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        futures::stream::empty().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> StoreResult<ListResult> {
        Ok(ListResult {
            common_prefixes: Vec::new(),
            objects: Vec::new(),
        })
    }

    async fn copy_opts(&self, from: &Path, _: &Path, _: CopyOptions) -> StoreResult<()> {
        Err(StoreError::NotFound {
            path: from.to_string(),
            source: unreadable().into(),
        })
    }
}

/// A file in parts.
#[derive(Debug)]
struct FileUpload {
    stage: Arc<StagedFiles>,
    file: Arc<File>,
    /// Where the next part begins.
    at: u64,
}

#[async_trait]
impl MultipartUpload for FileUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let (file, at) = (Arc::clone(&self.file), self.at);
        self.at += part.content_length() as u64;
        let stage = Arc::clone(&self.stage);
        Box::pin(blocking(stage, move || write_at(&file, &part, at)))
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        let file = Arc::clone(&self.file);
        blocking(Arc::clone(&self.stage), move || file.sync_all()).await?;
        Ok(nothing_known())
    }

    async fn abort(&mut self) -> StoreResult<()> {
        Ok(())
    }
}

/// Parts on their way to a stream, with whom to tell.
type WaitingPart = (PutPayload, oneshot::Sender<io::Result<()>>);

/// A stream in parts, which one thread writes.
#[derive(Debug)]
struct StreamUpload {
    stage: Arc<StagedFiles>,
    parts: mpsc::UnboundedSender<WaitingPart>,
}

impl StreamUpload {
    fn start(stage: Arc<StagedFiles>, stream: Arc<File>) -> StreamUpload {
        // Not bounded: writers put only as many parts as may be under way.
        let (parts, mut waiting) = mpsc::unbounded_channel::<WaitingPart>();
        tokio::task::spawn_blocking(move || {
            while let Some((part, done)) = waiting.blocking_recv() {
                let written = write_on(&stream, &part);
                let failed = written.is_err();
                // Who does not wait any more does not need to know.
                let _ = done.send(written);
                if failed {
                    return;
                }
            }
        });
        StreamUpload { stage, parts }
    }
}

#[async_trait]
impl MultipartUpload for StreamUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let (done, written) = oneshot::channel();
        // The thread is gone after a failure, which the stage knows.
        let _ = self.parts.send((part, done));
        let stage = Arc::clone(&self.stage);
        Box::pin(async move {
            let written = written.await.unwrap_or_else(|_| Err(stopped()));
            written.map_err(|error| told(&stage, error))
        })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        Ok(nothing_known())
    }

    async fn abort(&mut self) -> StoreResult<()> {
        Ok(())
    }
}

/// An object in parts; its end is held for the commit.
#[derive(Debug)]
struct ObjectUpload {
    stage: Arc<StagedFiles>,
    parts: Option<Box<dyn MultipartUpload>>,
}

#[async_trait]
impl MultipartUpload for ObjectUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let Some(parts) = &mut self.parts else {
            return Box::pin(async { Err(generic(stopped())) });
        };
        let (stage, put) = (Arc::clone(&self.stage), parts.put_part(part));
        Box::pin(async move { put.await.inspect_err(|error| stage.fail_store(error)) })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        if let Some(parts) = self.parts.take() {
            let held = self.stage.hold(Held::Parts(parts));
            held.map_err(|error| told(&self.stage, error))?;
        }
        Ok(nothing_known())
    }

    async fn abort(&mut self) -> StoreResult<()> {
        match self.parts.take() {
            Some(mut parts) => parts.abort().await,
            None => Ok(()),
        }
    }
}

impl Drop for ObjectUpload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { parts.abort().await });
        }
    }
}

async fn blocking<T: Send + 'static>(
    stage: Arc<StagedFiles>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> StoreResult<T> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked
        .unwrap_or_else(|_| Err(stopped()))
        .map_err(|error| told(&stage, error))
}

fn write_at(file: &File, payload: &PutPayload, mut at: u64) -> io::Result<()> {
    for piece in payload.iter() {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn write_on(mut stream: &File, payload: &PutPayload) -> io::Result<()> {
    for piece in payload.iter() {
        stream.write_all(piece)?;
    }
    Ok(())
}

fn told(stage: &StagedFiles, error: io::Error) -> StoreError {
    stage.fail(&error);
    generic(error)
}

fn generic(error: io::Error) -> StoreError {
    StoreError::Generic {
        store: "file",
        source: error.into(),
    }
}

fn stopped() -> io::Error {
    io::Error::other("the statement was stopped")
}

fn unreadable() -> io::Error {
    io::Error::other("a file that is being written")
}

fn nothing_known() -> PutResult {
    PutResult {
        e_tag: None,
        version: None,
    }
}
