//! Records of one JSON file as batches.
//!
//! In: the file's bytes in pieces. Out: batches of some of its fields.
//! Invariant: every record from the beginning of the piece to its end is in a batch or is an error with its line. What is
//! cut off or not closed is an error.
//! Not here: where bytes come from (chunks.rs), columns (columns.rs).

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use memchr::{memchr, memchr_iter};

use crate::error::Error;
use crate::error::from_datafusion::PATH_UNKNOWN;
use crate::runtime::accounted::Bytes;
use crate::scan::text::BATCH_TEXT_BYTES;
use grouse_text::json::columns::{Object, Strictness};
use grouse_text::json::cursor::{Bad, Cursor};
use grouse_text::json::shape::{DEPTH_MAX, Shape};
use grouse_text::json::splitter::{Layout, Splitter};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// An object whose fields are columns.
    Object,
    /// Any value, which is the only column.
    Value,
}

/// Which records of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilePart {
    Whole,
    /// Those whose lines begin within these bytes.
    Range {
        start: u64,
        end: u64,
    },
}

/// The text of a file, as far as whole records reach.
pub(super) struct RecordsText {
    chunks: BoxStream<'static, Result<Bytes>>,
    splitter: Splitter,
    layout: Layout,
    part: FilePart,
    record_bytes_max: usize,
    /// Behind the last whole record.
    carry: Vec<u8>,
    /// Whole records, and where the next one begins.
    text: String,
    at: usize,
    /// Of the beginning of `text`: bytes before it in the file, lines before it in what was read.
    offset: u64,
    lines: u64,
    state: RecordsState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordsState {
    /// Nothing has been read.
    New,
    Reading,
    /// No more bytes come.
    Ended,
}

impl RecordsText {
    /// `chunks` begin one byte before the part, so that it shows whether a line begins with it.
    pub(super) fn new(
        chunks: BoxStream<'static, Result<Bytes>>,
        layout: Layout,
        part: FilePart,
        record_bytes_max: usize,
    ) -> RecordsText {
        RecordsText {
            chunks,
            splitter: Splitter::new(layout),
            layout,
            part,
            record_bytes_max,
            carry: Vec::new(),
            text: String::new(),
            at: 0,
            offset: first_byte(part),
            lines: 0,
            state: RecordsState::New,
        }
    }

    /// Reads on until there are whole records; `false` = there are none any more.
    async fn fill(&mut self) -> Result<bool> {
        while self.state != RecordsState::Ended {
            let Some(chunk) = self.chunks.try_next().await? else {
                self.state = RecordsState::Ended;
                let rest = std::mem::take(&mut self.carry);
                self.replace(rest)?;
                return Ok(!self.text.is_empty());
            };
            let mut fresh = &chunk[..];
            if self.state == RecordsState::New {
                if matches!(self.part, FilePart::Range { start, .. } if start > 0) {
                    let Some(end) = memchr(b'\n', fresh) else {
                        self.offset += fresh.len() as u64;
                        continue;
                    };
                    self.offset += end as u64 + 1;
                    fresh = &fresh[end + 1..];
                }
                self.state = RecordsState::Reading;
            }
            let end = self.splitter.end(fresh);
            let before = self.carry.len();
            self.carry.extend_from_slice(fresh);
            if let Some(end) = end {
                let rest = self.carry.split_off(before + end);
                let whole = std::mem::replace(&mut self.carry, rest);
                self.replace(whole)?;
                return Ok(true);
            }
            if self.carry.len() > self.record_bytes_max {
                return Err(self.too_long());
            }
        }
        Ok(false)
    }

    fn too_long(&self) -> DataFusionError {
        let line = self.lines + newlines(self.text.as_bytes()) + 1;
        let message = format!(
            "a record has more than {} bytes: a quote or bracket may not be closed; maximum_object_size => … allows longer ones",
            self.record_bytes_max
        );
        self.bad_line(line, &message)
    }

    /// The next text.
    fn replace(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.offset += self.text.len() as u64;
        self.lines += memchr_iter(b'\n', self.text.as_bytes()).count() as u64;
        self.at = 0;
        self.text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = self.lines + newlines(&error.as_bytes()[..valid]) + 1;
            self.bad_line(line, "bytes that are not UTF-8")
        })?;
        if self.offset == 0 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len_utf8();
        }
        Ok(())
    }

    fn bad(&self, bad: &Bad) -> DataFusionError {
        let before = &self.text.as_bytes()[..bad.at.min(self.text.len())];
        self.bad_line(self.lines + newlines(before) + 1, &bad.message)
    }

    fn bad_line(&self, line: u64, message: &str) -> DataFusionError {
        let error = Error::Format {
            path: PATH_UNKNOWN.to_string(),
            // Lines before a part are not counted; whoever wants the line reads the whole file.
            line: (first_byte(self.part) == 0).then_some(line),
            message: message.to_string(),
        };
        error.into()
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// From where on a part is read.
pub(super) fn first_byte(part: FilePart) -> u64 {
    match part {
        FilePart::Whole => 0,
        FilePart::Range { start, .. } => start.saturating_sub(1),
    }
}

/// How much of a file is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleBounds {
    /// Records.
    pub(super) rows: usize,
    /// All records that begin in so many bytes are looked at, however many they are.
    pub(super) bytes: u64,
    /// Lines that are no JSON are passed.
    pub(super) is_lenient: bool,
}

/// How the records of a file lie in it that begins so.
pub(super) fn layout_of(beginning: &[u8], is_lenient: bool) -> Layout {
    let text = beginning
        .utf8_chunks()
        .next()
        .map_or("", |chunk| chunk.valid());
    let text = text.trim_start_matches(BYTE_ORDER_MARK).trim_start();
    if is_lines_of_arrays(text) {
        return Layout::Lines;
    }
    match is_lenient && !text.starts_with('[') {
        // Behind what is no JSON only the next line shows where it goes on.
        true => Layout::Lines,
        false => Layout::Values,
    }
}

/// Whether the first line is an array and more follow: records that are arrays. If they hold objects, these are records, as
/// several answers of one server are written one behind the other.
fn is_lines_of_arrays(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('\n') else {
        return false;
    };
    let items = first.trim_start().strip_prefix('[');
    let holds_records = items.is_none_or(|items| items.trim_start().starts_with('{'));
    !holds_records && !rest.trim().is_empty() && is_sound(Cursor::new(first, 0))
}

/// What the beginning of a file shows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) rows: usize,
    /// Some record is in an array or does not lie in one line.
    pub(super) needs_values: bool,
    /// Some line is an array that is a record.
    pub(super) needs_lines: bool,
}

/// Looks at the records of a file one after the other.
pub(super) async fn look(
    text: &mut RecordsText,
    shape: &mut Shape,
    sample: SampleBounds,
) -> Result<Seen> {
    let (mut seen, mut walk) = (Seen::default(), RecordWalk::default());
    while text.fill().await? {
        let whole = std::mem::take(&mut text.text);
        let looked = look_at(&whole, text, shape, (&mut seen, &mut walk, sample));
        text.text = whole;
        match looked {
            Ok(true) => {}
            Ok(false) => break,
            Err(bad) => return Err(text.bad(&bad)),
        }
    }
    Ok(seen)
}

/// Looks at whole records; `false` = the sample is full.
fn look_at(
    whole: &str,
    text: &RecordsText,
    shape: &mut Shape,
    (seen, walk, sample): (&mut Seen, &mut RecordWalk, SampleBounds),
) -> std::result::Result<bool, Bad> {
    let is_full = |rows: usize, start: usize| {
        rows >= sample.rows && text.offset + start as u64 >= sample.bytes
    };
    if text.layout == Layout::Lines {
        let mut start = text.at;
        for line in whole[text.at..].split_inclusive('\n') {
            let mut cursor = Cursor::new(&whole[..start + line.len()], start);
            if !sample.is_lenient || is_sound(cursor.clone()) {
                while let Some(first) = cursor.peek() {
                    seen.needs_lines |= first == b'[';
                    shape.look(&mut cursor, DEPTH_MAX)?;
                    seen.rows += 1;
                }
            }
            start += line.len();
            if is_full(seen.rows, start) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut cursor = Cursor::new(whole, text.at);
    loop {
        let is_next = walk.next(&mut cursor)?;
        seen.needs_values |= walk.is_array;
        if !is_next {
            return Ok(true);
        }
        let start = cursor.at();
        if is_full(seen.rows, start) {
            return Ok(false);
        }
        shape.look(&mut cursor, DEPTH_MAX)?;
        let record = &whole.as_bytes()[start..cursor.at()];
        seen.needs_values |= memchr(b'\n', record).is_some();
        seen.rows += 1;
    }
}

/// The way from record to record where they do not lie in lines.
#[derive(Debug, Default)]
struct RecordWalk {
    is_array: bool,
    is_behind_value: bool,
    /// Whether records have stood in no array: then an array is one of them (splitter.rs).
    is_open: bool,
}

impl RecordWalk {
    /// Whether another record is next.
    fn next(&mut self, cursor: &mut Cursor<'_>) -> std::result::Result<bool, Bad> {
        loop {
            match cursor.peek() {
                None => return Ok(false),
                Some(b'[') if !self.is_array && !self.is_open => {
                    cursor.take(b'[');
                    self.is_array = true;
                }
                Some(b',') if self.is_array && self.is_behind_value => {
                    cursor.take(b',');
                    self.is_behind_value = false;
                }
                Some(b']') if self.is_array => {
                    cursor.take(b']');
                    *self = RecordWalk::default();
                }
                Some(_) if self.is_array && self.is_behind_value => {
                    cursor.expected("',' or ']'")?;
                }
                Some(_) => {
                    self.is_behind_value = self.is_array;
                    self.is_open = !self.is_array;
                    return Ok(true);
                }
            }
        }
    }
}

/// Reads records into columns.
pub(super) struct Records {
    pub(super) text: RecordsText,
    pub(super) columns: Object,
    pub(super) root: Root,
    pub(super) strictness: Strictness,
    pub(super) batch_rows: usize,
    pub(super) schema: SchemaRef,
    walk: RecordWalk,
    /// Of the text that the next batch is made of.
    bytes: usize,
}

impl Records {
    pub(super) fn new(
        text: RecordsText,
        columns: Object,
        root: Root,
        strictness: Strictness,
    ) -> Records {
        Records {
            text,
            columns,
            root,
            strictness,
            batch_rows: crate::runtime::options::BATCH_SIZE_DEFAULT_ROWS,
            schema: Arc::new(Schema::empty()),
            walk: RecordWalk::default(),
            bytes: 0,
        }
    }

    /// The next batch.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let is_behind_end = self.take()?;
            let rows = self.columns.rows();
            if rows >= self.batch_rows || rows > 0 && self.bytes >= BATCH_TEXT_BYTES {
                return self.batch().map(Some);
            }
            if is_behind_end || !self.text.fill().await? {
                if self.walk.is_array && !is_behind_end {
                    let at = self.text.text.len();
                    let message = "the array of records is never closed".to_string();
                    return Err(self.text.bad(&Bad { at, message }));
                }
                return match rows {
                    0 => Ok(None),
                    _ => self.batch().map(Some),
                };
            }
            self.bytes += self.text.text.len();
        }
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(self.columns.rows()));
        let (_, arrays) = self.columns.finish().map_err(|error| {
            let message = match error {
                datafusion::arrow::error::ArrowError::JsonError(message) => {
                    crate::error::in_sql_words(&message)
                }
                other => other.to_string(),
            };
            DataFusionError::from(Error::bad_file(PATH_UNKNOWN.to_string(), message))
        })?;
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// Takes records until a batch is full or the text ends; `true` = the part ends.
    fn take(&mut self) -> Result<bool> {
        let whole = std::mem::take(&mut self.text.text);
        let taken = match self.text.layout {
            Layout::Lines => self.take_lines(&whole),
            Layout::Values => self.take_values(&whole).map(|()| false),
        };
        self.text.text = whole;
        taken.map_err(|bad| self.text.bad(&bad))
    }

    fn take_lines(&mut self, whole: &str) -> std::result::Result<bool, Bad> {
        let end = match self.text.part {
            FilePart::Whole => u64::MAX,
            FilePart::Range { end, .. } => end,
        };
        while self.text.at < whole.len() && self.columns.rows() < self.batch_rows {
            let start = self.text.at;
            if self.text.offset + start as u64 >= end {
                return Ok(true);
            }
            let line_end = memchr(b'\n', &whole.as_bytes()[start..]);
            let line_end = line_end.map_or(whole.len(), |at| start + at + 1);
            let mut cursor = Cursor::new(&whole[..line_end], start);
            if self.strictness != Strictness::Lenient || is_sound(cursor.clone()) {
                while cursor.peek().is_some() {
                    self.record(&mut cursor)?;
                }
            }
            self.text.at = line_end;
        }
        Ok(false)
    }

    fn take_values(&mut self, whole: &str) -> std::result::Result<(), Bad> {
        let mut cursor = Cursor::new(whole, self.text.at);
        while self.columns.rows() < self.batch_rows && self.walk.next(&mut cursor)? {
            if self.strictness == Strictness::Lenient {
                // A record is taken as a whole or not at all.
                Shape::default().look(&mut cursor.clone(), DEPTH_MAX)?;
            }
            self.record(&mut cursor)?;
        }
        self.text.at = cursor.at();
        Ok(())
    }

    fn record(&mut self, cursor: &mut Cursor<'_>) -> std::result::Result<(), Bad> {
        match (self.root, cursor.peek()) {
            (Root::Value, _) => self.columns.append_value(cursor),
            (Root::Object, Some(b'{')) => self.columns.append(cursor),
            (Root::Object, Some(b'n')) if cursor.word()? == "null" => {
                self.columns.append_null();
                Ok(())
            }
            (Root::Object, _) if self.strictness == Strictness::Lenient => cursor.skip(),
            (Root::Object, _) => cursor.expected("an object in { }"),
        }
    }
}

/// Whether a line is nothing but JSON.
fn is_sound(mut cursor: Cursor<'_>) -> bool {
    while cursor.peek().is_some() {
        if Shape::default().look(&mut cursor, DEPTH_MAX).is_err() {
            return false;
        }
    }
    true
}
