//! Messages of an Arrow IPC file: what they claim, held against the file's size and the memory limit.
//!
//! In: an object in a store, perhaps a range of it. Out: nothing, or an error that says what is damaged and where.
//! Invariant: what passes makes DataFusion's reader read inside the file only, and allocate no more than the limit at once.
//! Not here: values inside the buffers; the reader validates offsets, views and UTF-8.
//!
//! The reader believes lengths: it allocates what a damaged one says, and the process ends.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::read_footer_length;
use datafusion::arrow::ipc::{self, root_as_footer, root_as_message};
use datafusion::common::{DataFusionError, Result};
use object_store::path::Path;
use object_store::{GetOptions, GetResultPayload, ObjectStore};

use super::columns::{fits, plain_bytes};
use super::types::check_schema;
use crate::runtime::accounted::Bytes;

/// First bytes of an IPC file, without padding.
pub(super) const MAGIC: &[u8] = b"ARROW1";

/// First bytes of what Feather was before it was Arrow IPC.
const FEATHER_1: &[u8] = b"FEA1";

/// Length and magic at the end of an IPC file.
pub(super) const TAIL_BYTES: u64 = 10;

/// Marker before the length of a message; very old writers leave it out.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Before the compressed bytes of a buffer: its length decompressed.
const CLAIM_BYTES: u64 = 8;

/// The claim of a buffer that is not compressed.
const NOT_COMPRESSED: i64 = -1;

/// Checks the messages of one object, of a file only those that begin within `range`.
pub(super) async fn check(
    store: &Arc<dyn ObjectStore>,
    location: &Path,
    range: Option<Range<u64>>,
    limit_bytes: usize,
) -> Result<()> {
    let content = store.get_opts(location, GetOptions::default()).await?;
    let size = content.meta.size;
    let bytes = match content.payload {
        GetResultPayload::File(file, _) => Content::Disk(file),
        GetResultPayload::Stream(_) => Content::Store(Arc::clone(store), location.clone()),
    };
    let object = IpcObject {
        bytes,
        size,
        limit_bytes: limit_bytes as u64,
    };
    let head = object.read(0..8).await?;
    if head.starts_with(FEATHER_1) {
        return Err(bad(
            "it is Feather of version 1; write it as version 2, which is Arrow IPC",
        ));
    }
    match head.starts_with(MAGIC) {
        true => object.check_file(range).await,
        false => object.check_stream().await,
    }
}

enum Content {
    Disk(std::fs::File),
    Store(Arc<dyn ObjectStore>, Path),
}

struct IpcObject {
    bytes: Content,
    size: u64,
    limit_bytes: u64,
}

/// Where the parts of a message lie in the object.
#[derive(Debug, Clone, Copy)]
struct Message {
    start: u64,
    body: u64,
    end: u64,
}

impl IpcObject {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let all = self.read_all(std::slice::from_ref(&range)).await?;
        let first = all.into_iter().next();
        first.ok_or_else(|| bad("the file is too short"))
    }

    async fn read_all(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if ranges
            .iter()
            .any(|range| range.end > self.size || range.is_empty())
        {
            return Err(bad("the file is cut off"));
        }
        match &self.bytes {
            Content::Disk(file) => ranges.iter().map(|range| read_at(file, range)).collect(),
            Content::Store(store, location) => Ok(store.get_ranges(location, ranges).await?),
        }
    }

    async fn check_file(&self, range: Option<Range<u64>>) -> Result<()> {
        let no_footer = || bad("the file is cut off: there is no footer at its end");
        let tail_start = self.size.checked_sub(TAIL_BYTES).ok_or_else(no_footer)?;
        let tail = self.read(tail_start..self.size).await?;
        let tail: [u8; TAIL_BYTES as usize] = tail.as_ref().try_into().map_err(|_| no_footer())?;
        let length = read_footer_length(tail).map_err(|_| no_footer())? as u64;
        let start = tail_start.checked_sub(length);
        let start = start.ok_or_else(|| bad("the footer is longer than the file"))?;
        let footer = self.read(start..tail_start).await?;
        let footer = root_as_footer(&footer)
            .map_err(|error| bad(&format!("the footer is damaged: {error}")))?;
        let schema = footer.schema();
        let schema = schema.ok_or_else(|| bad("the footer has no schema"))?;
        check_schema(schema)?;
        let dictionaries = footer.dictionaries().into_iter().flatten();
        let batches = footer.recordBatches().into_iter().flatten();
        let wanted = |block: &&ipc::Block| {
            let at = u64::try_from(block.offset()).unwrap_or(0);
            range.as_ref().is_none_or(|range| range.contains(&at))
        };
        let messages: Vec<Message> = dictionaries
            .chain(batches.filter(wanted))
            .map(|block| self.message_of(block, start))
            .collect::<Result<_>>()?;
        let heads: Vec<_> = messages.iter().map(|at| at.start..at.body).collect();
        let heads = self.read_all(&heads).await?;
        for (at, head) in messages.iter().zip(heads) {
            self.check_message(*at, &head, Some(schema)).await?;
        }
        Ok(())
    }

    /// The place that the footer gives a message.
    fn message_of(&self, block: &ipc::Block, footer_start: u64) -> Result<Message> {
        let start = u64::try_from(block.offset()).ok();
        let length = u64::try_from(block.metaDataLength())
            .ok()
            .filter(|&bytes| bytes > 8);
        let body = start
            .zip(length)
            .and_then(|(start, length)| start.checked_add(length));
        let body_bytes = u64::try_from(block.bodyLength()).ok();
        let end = body
            .zip(body_bytes)
            .and_then(|(body, bytes)| body.checked_add(bytes));
        match (start, body, end) {
            (Some(start), Some(body), Some(end)) if end <= footer_start => {
                Ok(Message { start, body, end })
            }
            _ => Err(bad(
                "the footer is damaged: it places a batch outside the file",
            )),
        }
    }

    async fn check_stream(&self) -> Result<()> {
        let mut start = 0;
        let mut first: Option<Bytes> = None;
        while start < self.size {
            let Some(at) = self.next_message(start).await? else {
                return Ok(());
            };
            let head = self.read(at.start..at.body).await?;
            let body_bytes = message(&head, at.start)?.bodyLength();
            let end = u64::try_from(body_bytes)
                .ok()
                .and_then(|bytes| at.body.checked_add(bytes));
            let end = end.filter(|&end| end <= self.size).ok_or_else(|| {
                bad(&format!(
                    "the file is cut off in the message at byte {start}"
                ))
            })?;
            let schema = match &first {
                Some(first) => message(first, 0)?.header_as_schema(),
                None => None,
            };
            self.check_message(Message { end, ..at }, &head, schema)
                .await?;
            first.get_or_insert(head);
            start = end;
        }
        Ok(())
    }

    /// The message of a stream that begins at `start`; `None` = the stream says that it ends.
    async fn next_message(&self, start: u64) -> Result<Option<Message>> {
        let cut_off = || {
            bad(&format!(
                "the file is cut off in the message at byte {start}"
            ))
        };
        let prefix_end = (start + 8).min(self.size);
        let prefix = self.read(start..prefix_end).await?;
        let (length, skipped) = match prefix.strip_prefix(&CONTINUATION) {
            Some(length) => (length, 8),
            None => (prefix.as_ref(), 4),
        };
        let length = length.first_chunk::<4>().ok_or_else(cut_off)?;
        let length = u64::try_from(i32::from_le_bytes(*length))
            .map_err(|_| bad("it is neither an IPC file nor an IPC stream"))?;
        let body = start + skipped + length;
        match (length, body <= self.size) {
            (0, _) => Ok(None),
            (_, true) => Ok(Some(Message {
                start,
                body,
                end: body,
            })),
            (_, false) => Err(cut_off()),
        }
    }

    /// A message, and a batch against the `schema` that its file has.
    async fn check_message(
        &self,
        at: Message,
        head: &[u8],
        schema: Option<ipc::Schema<'_>>,
    ) -> Result<()> {
        let message = message(head, at.start)?;
        if let Some(schema) = message.header_as_schema() {
            check_schema(schema)?;
        }
        let dictionary = message.header_as_dictionary_batch();
        let batch = match &dictionary {
            Some(dictionary) => dictionary.data(),
            None => message.header_as_record_batch(),
        };
        let Some(batch) = batch else {
            return Ok(());
        };
        let damaged = |what: &str| bad(&format!("{what} in the batch at byte {}", at.start));
        let rows = batch.length();
        let mut nodes = batch.nodes().into_iter().flatten();
        if rows < 0 || nodes.any(|node| !(0..=node.length()).contains(&node.null_count())) {
            return Err(damaged("a number of rows or NULLs is impossible"));
        }
        let body_bytes = at.end - at.body;
        let mut claims = Vec::new();
        // Of each buffer, and which of them are compressed.
        let (mut bytes, mut compressed) = (Vec::new(), Vec::new());
        for buffer in batch.buffers().into_iter().flatten() {
            let place = u64::try_from(buffer.offset()).ok();
            let length = u64::try_from(buffer.length()).ok();
            let end = place
                .zip(length)
                .and_then(|(place, length)| place.checked_add(length));
            match (place, length, end) {
                (Some(place), Some(length), Some(end)) if end <= body_bytes => {
                    if batch.compression().is_some() && length > 0 {
                        let claim = at.body + place;
                        let claim_end = claim + CLAIM_BYTES;
                        if length < CLAIM_BYTES {
                            return Err(damaged("a compressed buffer is too short"));
                        }
                        claims.push(claim..claim_end);
                        compressed.push(bytes.len());
                    }
                    bytes.push(plain_bytes(buffer));
                }
                _ => return Err(damaged("a buffer lies outside its message")),
            }
        }
        let claimed = self.check_claims(&claims, at.start).await?;
        for (nth, claimed) in compressed.into_iter().zip(claimed) {
            bytes[nth] = claimed.unwrap_or(bytes[nth] - CLAIM_BYTES);
        }
        let fields = schema.and_then(|schema| schema.fields());
        match fields.filter(|_| dictionary.is_none()) {
            Some(fields) if !fits(fields.iter(), &batch, &bytes, message.version()) => Err(
                damaged("rows or buffers of a column are missing or too short"),
            ),
            _ => Ok(()),
        }
    }

    /// What a batch's buffers say that they are when they are decompressed; `None` of one that is not compressed.
    async fn check_claims(&self, claims: &[Range<u64>], start: u64) -> Result<Vec<Option<u64>>> {
        let mut claimed = Vec::with_capacity(claims.len());
        if claims.is_empty() {
            return Ok(claimed);
        }
        let mut total: u64 = 0;
        for claim in self.read_all(claims).await? {
            let claim = claim
                .first_chunk::<8>()
                .map(|bytes| i64::from_le_bytes(*bytes));
            let bytes = match claim {
                Some(NOT_COMPRESSED) => None,
                Some(bytes) => Some(u64::try_from(bytes).unwrap_or(u64::MAX)),
                None => Some(u64::MAX),
            };
            total = total.saturating_add(bytes.unwrap_or(0));
            claimed.push(bytes);
        }
        match total <= self.limit_bytes {
            true => Ok(claimed),
            false => Err(bad(&format!(
                "the batch at byte {start} claims to be {total} bytes when it is decompressed, more than the memory limit of {}",
                self.limit_bytes
            ))),
        }
    }
}

/// The message whose bytes these are, with the marker and the length before it.
fn message(head: &[u8], start: u64) -> Result<ipc::Message<'_>> {
    let bytes = match head.strip_prefix(&CONTINUATION) {
        Some(rest) => rest.get(4..),
        None => head.get(4..),
    };
    let damaged = |why: String| bad(&format!("the message at byte {start} is damaged: {why}"));
    let bytes = bytes.ok_or_else(|| damaged("it is too short".to_string()))?;
    root_as_message(bytes).map_err(|error| damaged(error.to_string()))
}

fn read_at(file: &std::fs::File, range: &Range<u64>) -> Result<Bytes> {
    let length = usize::try_from(range.end - range.start).map_err(|_| bad("it is too long"))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(Bytes::from(bytes))
}

pub(super) fn bad(message: &str) -> DataFusionError {
    ArrowError::IpcError(message.to_string()).into()
}
