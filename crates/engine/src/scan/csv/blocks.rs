//! Blocks: whole records of a file, in memory.
//!
//! In: the bytes of a file from its beginning, or one piece of a file that is read in several.
//! Out: strings that begin with a record and end with one.
//! Invariant: a record is in exactly one block, wherever the file is cut; a quote that is never closed is an error with the
//! line in which it opened.
//! Not here: fields (records.rs), which pieces there are (cuts.rs).

use datafusion::common::{DataFusionError, Result};

use super::dialect::{Dialect, Header, after_lines};
use super::input::Input;
use crate::error::Error;
use grouse_text::csv::grammar::{Grammar, Place};

/// A block has at least so many bytes, unless the file ends.
const BLOCK_BYTES: usize = 1 << 20;

/// What some programs write before the first byte of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whole records.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) text: String,
    /// Where it begins in the file, whose bytes are decompressed and UTF-8.
    pub(crate) at: u64,
    /// Lines of the file before it.
    pub(crate) lines_before: u64,
    /// The first record of a file with names, which is none.
    pub(crate) header: Header,
}

/// An error about a line of a file.
pub(crate) fn bad(name: &str, line: Option<u64>, message: String) -> DataFusionError {
    let error = Error::Format {
        path: name.to_string(),
        line,
        message,
    };
    error.into()
}

/// Where in records that end inside quotes these opened.
pub(crate) fn opened_at(grammar: &Grammar, bytes: &[u8]) -> usize {
    let (mut place, mut opened) = (Place::LineStart, 0);
    for (at, &byte) in bytes.iter().enumerate() {
        let after = grammar.after(place, byte);
        if after == Place::Quoted
            && !matches!(place, Place::Quoted | Place::Escaped | Place::AfterQuote)
        {
            opened = at;
        }
        place = after;
    }
    opened
}

/// What is wrong with a file that ends inside quotes.
pub(crate) fn never_closed() -> String {
    "a quote that opens a field in this line is never closed; quote => '' reads quotes as text"
        .to_string()
}

/// What is wrong with a record that does not end.
pub(crate) fn too_long(bytes_max: usize) -> String {
    format!(
        "a record has more than {bytes_max} bytes: a quote may not be closed; max_line_size => … allows longer ones"
    )
}

/// Text from bytes behind so many lines.
pub(crate) fn text_of(
    bytes: Vec<u8>,
    name: &str,
    (grammar, lines_before): (&Grammar, u64),
) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let line = lines_before + grammar.lines_in(&error.as_bytes()[..end]) + 1;
        let byte = error.as_bytes()[end];
        bad(name, Some(line), not_utf8(byte))
    })
}

/// What is wrong with a byte that is no text.
pub(crate) fn not_utf8(byte: u8) -> String {
    format!(
        "the byte 0x{byte:02X} is not UTF-8; encoding => 'latin-1' (or another) reads the file as such"
    )
}

/// How long a beginning is that belongs to no record: a mark, and lines that are left out.
pub(crate) fn before_records(bytes: &[u8], skip: usize) -> usize {
    let mark = if bytes.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    let lines = match std::str::from_utf8(&bytes[mark..]) {
        Ok(text) => after_lines(text, skip),
        Err(error) => {
            let end = mark + error.valid_up_to();
            after_lines(
                std::str::from_utf8(&bytes[mark..end]).unwrap_or_default(),
                skip,
            )
        }
    };
    mark + lines
}

/// The blocks of a file that is read from its beginning.
pub(crate) struct Blocks {
    input: Input,
    dialect: Dialect,
    record_bytes_max: usize,
    rest: Vec<u8>,
    /// Bytes of `rest` that were walked over, and the place behind them.
    walked: usize,
    place: Place,
    /// Where in `rest` the last record begins that may not be whole.
    cut: usize,
    /// Bytes and lines of the file before `rest`.
    bytes: u64,
    lines: u64,
    is_begun: bool,
    has_more: bool,
}

impl Blocks {
    pub(crate) fn new(input: Input, dialect: Dialect, record_bytes_max: usize) -> Blocks {
        Blocks {
            input,
            dialect,
            record_bytes_max,
            rest: Vec::new(),
            walked: 0,
            place: Place::LineStart,
            cut: 0,
            bytes: 0,
            lines: 0,
            is_begun: false,
            has_more: true,
        }
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        self.input.name()
    }

    /// The next records; `None` = the file has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Block>> {
        let is_first = !self.is_begun;
        if is_first {
            self.begin().await?;
        }
        loop {
            self.walk();
            if !self.has_more || self.cut > 0 && self.rest.len() >= BLOCK_BYTES {
                break;
            }
            if self.rest.len() > self.record_bytes_max {
                let line = self.line_at(self.cut);
                return Err(bad(
                    self.name(),
                    Some(line),
                    too_long(self.record_bytes_max),
                ));
            }
            self.has_more = self.input.fill(&mut self.rest).await?;
        }
        let end = match self.has_more {
            true => self.cut,
            false => self.rest.len(),
        };
        if !self.has_more && self.place.is_inside_quotes() {
            let opened = opened_at(&self.dialect.grammar, &self.rest);
            let line = self.line_at(opened);
            return Err(bad(self.name(), Some(line), never_closed()));
        }
        if end == 0 {
            return Ok(None);
        }
        self.taken(end, is_first).map(Some)
    }

    /// The line of a place in `rest`.
    fn line_at(&self, at: usize) -> u64 {
        self.lines + self.dialect.grammar.lines_in(&self.rest[..at]) + 1
    }

    fn taken(&mut self, end: usize, is_first: bool) -> Result<Block> {
        let tail = self.rest.split_off(end);
        let bytes = std::mem::replace(&mut self.rest, tail);
        self.walked -= end;
        self.cut = 0;
        let (at, lines_before) = (self.bytes, self.lines);
        self.bytes += bytes.len() as u64;
        self.lines += self.dialect.grammar.lines_in(&bytes);
        Ok(Block {
            text: text_of(
                bytes,
                self.input.name(),
                (&self.dialect.grammar, lines_before),
            )?,
            at,
            lines_before,
            header: match is_first {
                true => self.dialect.header,
                false => Header::Absent,
            },
        })
    }

    fn walk(&mut self) {
        let walk = self
            .dialect
            .grammar
            .walk(self.place, &self.rest[self.walked..]);
        self.place = walk.place;
        if let Some(start) = walk.last_start {
            self.cut = self.walked + start;
        }
        self.walked = self.rest.len();
    }

    /// Leaves out what stands before the records.
    async fn begin(&mut self) -> Result<()> {
        self.is_begun = true;
        let mut start = 0;
        while self.has_more {
            self.has_more = self.input.fill(&mut self.rest).await?;
            start = before_records(&self.rest, self.dialect.skip);
            if start < self.rest.len() && self.rest.len() >= BYTE_ORDER_MARK.len() {
                break;
            }
        }
        self.bytes = start as u64;
        self.lines = self.dialect.grammar.lines_in(&self.rest[..start]);
        self.rest.drain(..start);
        Ok(())
    }
}
