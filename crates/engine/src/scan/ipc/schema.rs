//! Arrow IPC schemas of files that are not on disk.
//!
//! In: an object in a store.
//! Out: its schema, from the footer of an IPC file or the head of an IPC stream.
//! Invariant: a few small reads, whatever the size of the file.
//! Not here: reading batches. DataFusion's inference is not used for IPC files in stores: it expects the schema 8 bytes
//! after the beginning, and Arrow's own writer aligns it to 64.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::reader::read_footer_length;
use datafusion::arrow::ipc::{root_as_footer, root_as_message};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::messages::{MAGIC, TAIL_BYTES};
use crate::error::from_datafusion::object_store as store_error;
use crate::error::{Error, Result};

/// Marker before the length of a message in a stream; very old writers leave it out.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The schema of one object.
pub(crate) async fn ipc_schema(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
) -> Result<SchemaRef> {
    let object = StoredObject { store, meta };
    let head = object.read(0..8).await?;
    let schema = match head.starts_with(MAGIC) {
        true => object.footer_schema().await?,
        false => object.stream_schema(&head).await?,
    };
    Ok(Arc::new(schema))
}

struct StoredObject<'a> {
    store: &'a Arc<dyn ObjectStore>,
    meta: &'a ObjectMeta,
}

impl StoredObject<'_> {
    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.end > self.meta.size || range.is_empty() {
            return Err(bad("the file is too short"));
        }
        let bytes = self.store.get_range(&self.meta.location, range).await;
        Ok(bytes.map_err(|error| store_error(&error))?.to_vec())
    }

    async fn footer_schema(&self) -> Result<Schema> {
        let size = self.meta.size;
        let tail = self.read(size.saturating_sub(TAIL_BYTES)..size).await?;
        let tail: [u8; 10] = tail.try_into().map_err(|_| bad("the file is too short"))?;
        let length = read_footer_length(tail)? as u64;
        let end = size - TAIL_BYTES;
        let start = end
            .checked_sub(length)
            .ok_or_else(|| bad("the footer is longer than the file"))?;
        let footer = self.read(start..end).await?;
        let footer = root_as_footer(&footer)
            .map_err(|error| bad(&format!("the footer is damaged: {error}")))?;
        footer
            .schema()
            .map(fb_to_schema)
            .ok_or_else(|| bad("the footer has no schema"))
    }

    async fn stream_schema(&self, head: &[u8]) -> Result<Schema> {
        let at = if head.starts_with(&CONTINUATION) {
            4
        } else {
            0
        };
        let length = head[at..at + 4]
            .try_into()
            .map(i32::from_le_bytes)
            .unwrap_or(-1);
        let length = u64::try_from(length)
            .map_err(|_| bad("it is neither an IPC file nor an IPC stream"))?;
        let start = at as u64 + 4;
        let message = self.read(start..start + length).await?;
        let message = root_as_message(&message)
            .map_err(|error| bad(&format!("the first message is damaged: {error}")))?;
        message
            .header_as_schema()
            .map(fb_to_schema)
            .ok_or_else(|| bad("it does not begin with a schema"))
    }
}

fn bad(message: &str) -> Error {
    ArrowError::IpcError(message.to_string()).into()
}
