//! Cuts: a file of this machine in pieces that several workers read, cut only where records begin.
//!
//! In: a file, the number of a piece.
//! Out: the records that begin in the piece, as one block.
//! Invariant: a line end inside quotes is never taken for the end of a record. Whether a piece begins inside quotes follows
//! from all bytes before it. Each worker says of its own piece what it makes of every place (a [`Lane`]). The lanes before
//! a piece, one after the other, lead from the file's beginning to it.
//! Not here: files that are read from their beginning (blocks.rs).
//!
//! Workers take pieces in the file's order, so the lanes before a piece are mostly there when it is opened, and no byte
//! is read twice. A lane that is not there is made by whoever needs it.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::Result;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use super::blocks::{Block, bad, before_records, never_closed, opened_at, text_of, too_long};
use super::dialect::{Dialect, Header};
use super::input::LocalFile;
use grouse_text::csv::grammar::{Grammar, Lane, Place};

/// Behind its end a piece is read until its last record ends: first so many bytes, then twice as many each time.
const TAIL_BYTES: u64 = 1 << 12;
/// Up to so many.
const TAIL_BYTES_MAX: u64 = 1 << 20;

/// The lanes of one file.
#[derive(Debug)]
pub(crate) struct Cuts {
    file_bytes: u64,
    piece_bytes: u64,
    /// With the lines that end in each piece.
    lanes: Vec<Mutex<Option<(Lane, u64)>>>,
    /// Where the first record begins.
    begin: Mutex<Option<u64>>,
    /// The furthest that is known.
    known: Mutex<Ahead>,
}

/// What lies ahead of a piece.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    piece: usize,
    place: Place,
    lines: u64,
}

impl Ahead {
    /// Of the first piece.
    const NOTHING: Ahead = Ahead {
        piece: 0,
        place: Place::LineStart,
        lines: 0,
    };
}

/// The bytes of a file, wherever it is.
pub(crate) enum FileBytes {
    Local(LocalFile),
    /// Files of a store that somebody registered for this machine's paths.
    Other(Arc<dyn ObjectStore>, Path, String),
}

impl FileBytes {
    async fn read(&self, range: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        match self {
            FileBytes::Local(file) => {
                file.read(range.start, (range.end - range.start) as usize, into)
            }
            FileBytes::Other(store, path, _) => {
                into.extend_from_slice(&store.get_range(path, range).await?);
                Ok(())
            }
        }
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> &str {
        match self {
            FileBytes::Local(file) => file.name(),
            FileBytes::Other(_, _, name) => name,
        }
    }
}

impl Cuts {
    /// Bytes of the file, and of each piece but the last.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.file_bytes, self.piece_bytes)
    }

    pub(crate) fn new(file_bytes: u64, piece_bytes: u64) -> Cuts {
        let pieces = file_bytes.div_ceil(piece_bytes) as usize;
        Cuts {
            file_bytes,
            piece_bytes,
            lanes: (0..pieces).map(|_| Mutex::default()).collect(),
            begin: Mutex::default(),
            known: Mutex::new(Ahead::NOTHING),
        }
    }

    /// The piece that begins there.
    pub(crate) fn number_of(&self, start: u64) -> usize {
        (start / self.piece_bytes) as usize
    }

    fn range(&self, piece: usize) -> Range<u64> {
        let start = piece as u64 * self.piece_bytes;
        start..(start + self.piece_bytes).min(self.file_bytes)
    }

    /// The records that begin in a piece; `None` = none does.
    pub(crate) async fn block(
        &self,
        piece: usize,
        ranges: &FileBytes,
        dialect: &Dialect,
        record_bytes_max: usize,
    ) -> Result<Option<Block>> {
        let grammar = &dialect.grammar;
        let range = self.range(piece);
        let mut bytes = self.read_piece(piece, ranges, grammar).await?;
        let begin = self.begin(ranges, dialect).await?;
        if begin >= range.end {
            return Ok(None);
        }
        let ahead = self.ahead_of(piece, begin, ranges, grammar).await?;
        let (mut start, mut place) = (0, ahead.place);
        if begin >= range.start {
            (start, place) = ((begin - range.start) as usize, Place::LineStart);
        } else if !grammar.is_start(place) {
            match grammar.first_start(place, &bytes) {
                Ok(first) => (start, place) = (first, Place::LineStart),
                // The worker of the record that goes on finds out if the file ends so.
                Err(_) => return Ok(None),
            }
        }
        let lines_before = ahead.lines + grammar.lines_in(&bytes[..start]);
        bytes.drain(..start);
        let at = range.start + start as u64;
        let end = grammar.walk(place, &bytes).place;
        let end = self.read_tail(
            end,
            range.end,
            ranges,
            grammar,
            (&mut bytes, record_bytes_max),
        );
        let end = match end.await? {
            Tail::Ended(place) => place,
            Tail::TooLong => {
                let line = lines_before + grammar.lines_in(&bytes) + 1;
                return Err(bad(ranges.name(), Some(line), too_long(record_bytes_max)));
            }
        };
        if end.is_inside_quotes() {
            let opened = opened_at(grammar, &bytes);
            let line = lines_before + grammar.lines_in(&bytes[..opened]) + 1;
            return Err(bad(ranges.name(), Some(line), never_closed()));
        }
        Ok(Some(Block {
            text: text_of(bytes, ranges.name(), (grammar, lines_before))?,
            at,
            lines_before,
            header: match at == begin {
                true => dialect.header,
                false => Header::Absent,
            },
        }))
    }

    /// The bytes of a piece, whose lane is known then.
    async fn read_piece(
        &self,
        piece: usize,
        ranges: &FileBytes,
        grammar: &Grammar,
    ) -> Result<Vec<u8>> {
        let range = self.range(piece);
        let mut bytes = Vec::with_capacity((range.end - range.start + TAIL_BYTES) as usize);
        if let FileBytes::Local(file) = ranges {
            // Others wait for this lane instead of reading the piece, too; nothing below waits for anybody.
            let mut lane = self.lanes[piece].lock();
            file.read(range.start, (range.end - range.start) as usize, &mut bytes)?;
            lane.get_or_insert_with(|| (grammar.lane(&bytes), grammar.lines_in(&bytes)));
            return Ok(bytes);
        }
        ranges.read(range, &mut bytes).await?;
        *self.lanes[piece].lock() = Some((grammar.lane(&bytes), grammar.lines_in(&bytes)));
        Ok(bytes)
    }

    /// The lane of a piece, and the lines that end in it.
    async fn lane(
        &self,
        piece: usize,
        ranges: &FileBytes,
        grammar: &Grammar,
    ) -> Result<(Lane, u64)> {
        let known = *self.lanes[piece].lock();
        if let Some(known) = known {
            return Ok(known);
        }
        self.read_piece(piece, ranges, grammar).await?;
        let known = *self.lanes[piece].lock();
        Ok(known.unwrap_or_else(|| (grammar.lane(&[]), 0)))
    }

    /// What lies ahead of a piece.
    async fn ahead_of(
        &self,
        piece: usize,
        begin: u64,
        ranges: &FileBytes,
        grammar: &Grammar,
    ) -> Result<Ahead> {
        let mut ahead = *self.known.lock();
        if ahead.piece > piece {
            ahead = Ahead::NOTHING;
        }
        while ahead.piece < piece {
            let range = self.range(ahead.piece);
            let (lane, lines) = self.lane(ahead.piece, ranges, grammar).await?;
            let place = if range.end <= begin {
                Place::LineStart
            } else if range.start < begin {
                let mut bytes = Vec::new();
                ranges.read(begin..range.end, &mut bytes).await?;
                grammar.walk(Place::LineStart, &bytes).place
            } else {
                lane.after(ahead.place)
            };
            ahead = Ahead {
                piece: ahead.piece + 1,
                place,
                lines: ahead.lines + lines,
            };
        }
        let mut known = self.known.lock();
        if known.piece < piece {
            *known = ahead;
        }
        Ok(ahead)
    }

    /// Where the first record begins.
    async fn begin(&self, ranges: &FileBytes, dialect: &Dialect) -> Result<u64> {
        if let Some(begin) = *self.begin.lock() {
            return Ok(begin);
        }
        let mut bytes = Vec::new();
        let mut begin = 0;
        while begin == bytes.len() && (bytes.len() as u64) < self.file_bytes {
            let from = bytes.len() as u64;
            let to = (from + TAIL_BYTES).min(self.file_bytes);
            ranges.read(from..to, &mut bytes).await?;
            begin = before_records(&bytes, dialect.skip);
        }
        *self.begin.lock() = Some(begin as u64);
        Ok(begin as u64)
    }

    /// Reads on until the record at the end of `bytes` is whole, or the file ends.
    async fn read_tail(
        &self,
        mut place: Place,
        mut at: u64,
        ranges: &FileBytes,
        grammar: &Grammar,
        (bytes, bytes_max): (&mut Vec<u8>, usize),
    ) -> Result<Tail> {
        let mut step = TAIL_BYTES;
        while !grammar.is_start(place) && at < self.file_bytes {
            if bytes.len() > bytes_max {
                return Ok(Tail::TooLong);
            }
            let end = (at + step).min(self.file_bytes);
            step = (step * 2).min(TAIL_BYTES_MAX);
            let from = bytes.len();
            ranges.read(at..end, bytes).await?;
            at = end;
            match grammar.first_start(place, &bytes[from..]) {
                Ok(start) => {
                    bytes.truncate(from + start);
                    place = Place::LineStart;
                }
                Err(behind) => place = behind,
            }
        }
        Ok(Tail::Ended(place))
    }
}

/// How reading on ended.
enum Tail {
    Ended(Place),
    TooLong,
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use futures::executor::block_on;
    use object_store::ObjectMeta;

    use super::*;
    use crate::scan::text::RECORD_BYTES_MAX;

    /// Numbers that are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) as usize % end
        }
    }

    fn ranges(bytes: &[u8]) -> FileBytes {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let meta = |file: &File| file.metadata().unwrap();
        let planned = ObjectMeta {
            location: Path::from("x.csv"),
            last_modified: meta(&file).modified().unwrap().into(),
            size: bytes.len() as u64,
            e_tag: None,
            version: None,
        };
        FileBytes::Local(LocalFile::new(file, planned, "x.csv".to_string()).unwrap())
    }

    fn dialect(numbers: &mut Numbers) -> Dialect {
        Dialect {
            grammar: Grammar {
                delimiter: b',',
                quote: Some(b'"').filter(|_| numbers.below(8) > 0),
                escape: Some(b'\\').filter(|_| numbers.below(4) == 0),
                comment: Some(b'#').filter(|_| numbers.below(4) == 0),
                line_end: b'\n',
            },
            header: Header::Absent,
            skip: numbers.below(6) / 4,
        }
    }

    /// Where records begin, found byte by byte from the file's beginning.
    fn starts(dialect: &Dialect, bytes: &[u8], begin: usize) -> (Vec<usize>, Place) {
        let (mut place, mut starts) = (Place::LineStart, vec![begin]);
        for (at, &byte) in bytes.iter().enumerate().skip(begin) {
            place = dialect.grammar.after(place, byte);
            if byte == b'\n' && place == Place::LineStart {
                starts.push(at + 1);
            }
        }
        (starts, place)
    }

    // Line ends inside quotes, escapes, comments and quotes that open nothing, cut everywhere, in any order.
    #[test]
    fn pieces_are_the_file_whatever_their_size() {
        let mut numbers = Numbers(7);
        for _ in 0..4_000 {
            let dialect = dialect(&mut numbers);
            let letters: &[u8] = b"\"\"\n\n\r,,x\\#\"\n";
            let length = numbers.below(60);
            let bytes: Vec<u8> = (0..length)
                .map(|_| letters[numbers.below(letters.len())])
                .collect();
            let cuts = Cuts::new(bytes.len() as u64, 1 + numbers.below(12) as u64);
            let begin = before_records(&bytes, dialect.skip);
            let (starts, end) = starts(&dialect, &bytes, begin);
            let ranges = ranges(&bytes);
            let mut order: Vec<usize> = (0..cuts.lanes.len()).collect();
            for at in 0..order.len() {
                let other = numbers.below(order.len());
                order.swap(at, other);
            }
            let read = |piece| block_on(cuts.block(piece, &ranges, &dialect, RECORD_BYTES_MAX));
            let blocks: Result<Vec<_>> = order.into_iter().map(read).collect();
            let shown = bytes.escape_ascii();
            if end.is_inside_quotes() {
                let error = blocks.unwrap_err().to_string();
                assert!(error.contains("never closed"), "{shown}: {error}");
                continue;
            }
            let mut blocks: Vec<Block> = blocks.unwrap().into_iter().flatten().collect();
            blocks.sort_by_key(|block| block.at);
            let mut expected = begin;
            for block in blocks.iter().filter(|block| !block.text.is_empty()) {
                assert_eq!(block.at as usize, expected, "{shown}");
                assert!(starts.contains(&expected), "{shown}");
                let lines = dialect.grammar.lines_in(&bytes[..expected]);
                assert_eq!(block.lines_before, lines, "{shown}");
                assert_eq!(
                    block.text.as_bytes(),
                    &bytes[expected..expected + block.text.len()]
                );
                expected += block.text.len();
            }
            assert_eq!(expected, bytes.len(), "{shown}");
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_is_named_by_its_line() {
        let text = b"a\n1\n\"x\ny\"\n\"z\n2\n3\n4\n5\n";
        let dialect = dialect(&mut Numbers(1));
        let dialect = Dialect {
            skip: 0,
            grammar: Grammar {
                quote: Some(b'"'),
                comment: None,
                escape: None,
                ..dialect.grammar
            },
            ..dialect
        };
        for piece_bytes in 1..text.len() as u64 {
            let cuts = Cuts::new(text.len() as u64, piece_bytes);
            let ranges = ranges(text);
            let read = |piece| block_on(cuts.block(piece, &ranges, &dialect, RECORD_BYTES_MAX));
            let error = (0..cuts.lanes.len()).find_map(|piece| read(piece).err());
            let error = crate::error::Error::from(error.unwrap());
            assert!(
                matches!(error, crate::error::Error::Format { line: Some(5), .. }),
                "{piece_bytes}: {error:?}"
            );
        }
    }
}
