//! The bytes of a file, from some place on.
//!
//! In: a file in a store. Out: its bytes, decompressed, in pieces.
//! Invariant: a file on this machine that ends before its bytes have been read is an error.
//! Not here: what the bytes say.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectMeta, ObjectStore};

use crate::error::Error;
use crate::error::from_datafusion::PATH_UNKNOWN;
use crate::runtime::accounted::Bytes;
use crate::scan::decompression::Decompression;

/// What is read at once from a file on this machine.
const READ_BYTES: u64 = 1 << 20;

/// A file's bytes from `start` on.
pub(super) async fn chunks(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    start: u64,
    decompression: &Decompression,
) -> Result<BoxStream<'static, Result<Bytes>>> {
    if meta.size == start {
        return Ok(futures::stream::empty().boxed());
    }
    let options = GetOptions {
        range: (start > 0).then_some(GetRange::Offset(start)),
        ..GetOptions::default()
    };
    let content = store.get_opts(&meta.location, options).await?;
    let range = content.range.clone();
    let bytes = match content.payload {
        GetResultPayload::File(file, _) => file_chunks(file, range)?,
        GetResultPayload::Stream(stream) => stream.map_err(DataFusionError::from).boxed(),
    };
    decompression.stream(bytes, &format!("/{}", meta.location))
}

/// The worker that parses a file reads it, too: that is faster than to wait for another thread.
fn file_chunks(mut file: File, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
    file.seek(SeekFrom::Start(range.start))?;
    let left = range.end - range.start;
    let next = |(mut file, left): (File, u64)| async move {
        if left == 0 {
            return Ok(None);
        }
        let wanted = left.min(READ_BYTES);
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let read = (&mut file).take(wanted).read_to_end(&mut bytes)? as u64;
        if read < wanted {
            return Err(shortened().into());
        }
        tokio::task::coop::consume_budget().await;
        Ok(Some((Bytes::from(bytes), (file, left - read))))
    };
    Ok(futures::stream::try_unfold((file, left), next).boxed())
}

/// A file that became shorter under the query.
fn shortened() -> Error {
    Error::Io {
        path: PATH_UNKNOWN.to_string(),
        message: "the file became shorter while it was read; run the query again".to_string(),
    }
}
