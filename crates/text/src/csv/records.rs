//! Records: which bytes of a block are which field.
//!
//! In: bytes that begin with a record and end with one, or with the file.
//! Out: a [`Table`] of spans, one per record and wanted column.
//! Invariant: fields and records are those of the grammar. A record with another number of fields than the file has columns
//! is refused, filled, left out or listed, as was asked for, never shifted.
//! Not here: values (columns.rs), where blocks end (blocks.rs).

use std::borrow::Cow;
use std::ops::Range;

use grouse_kernels::places::places;
use memchr::{memchr, memchr2};

use super::grammar::Grammar;

/// Of a span's beginning: the field has quotes or escapes that are no part of its value.
const RAW: u32 = 1 << 31;

/// What becomes of a record that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfit {
    /// The query fails.
    #[default]
    Fail,
    /// The record is left out.
    Drop,
    /// The record is left out, and the table lists it.
    List,
}

/// What becomes of a record with too few fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Short {
    /// It does not fit.
    #[default]
    Misfit,
    /// The others are NULL.
    Fill,
}

/// How records are read.
#[derive(Debug, Clone)]
pub struct RecordShape {
    /// How the text is written.
    pub grammar: Grammar,
    /// Fields of a record.
    pub columns: usize,
    /// For each field its slot in the table, if it is wanted.
    pub slots: Vec<Option<u32>>,
    /// Slots of the table.
    pub wanted: usize,
    /// What a record with fewer fields is.
    pub short: Short,
    /// What a record with another number of fields is.
    pub misfit: Misfit,
}

/// A record that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit {
    /// Where in the block the record begins.
    pub at: usize,
    /// Why it does not fit.
    pub why: Why,
}

/// Why a record does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It has so many fields.
    Fields(usize),
    /// Text follows quotes that were closed in another line than they were opened in: one of them is missing, and the lines
    /// between are records that would be lost. Such is the field of this number.
    Torn(usize),
}

/// Fields of some records.
#[derive(Debug, Default)]
pub struct Table {
    /// Beginning and end of each wanted field, record after record.
    spans: Vec<(u32, u32)>,
    /// Where each record begins.
    starts: Vec<u32>,
    wanted: usize,
    /// Records that are left out and listed.
    left_out: Vec<Unfit>,
}

impl Table {
    /// Number of records.
    pub fn rows(&self) -> usize {
        self.starts.len()
    }

    /// Where in the block a record begins.
    pub fn start(&self, row: usize) -> usize {
        self.starts[row] as usize
    }

    /// Records between these that do not fit, where those are listed.
    pub fn left_out(&self) -> &[Unfit] {
        &self.left_out
    }

    /// The value of a field; `None` if its bytes are cut inside a character, which cannot be where `text` is a block.
    pub fn value<'a>(
        &self,
        row: usize,
        slot: usize,
        text: &'a str,
        grammar: &Grammar,
    ) -> Option<Cow<'a, str>> {
        let (start, end) = self.spans[row * self.wanted + slot];
        let field = text.get((start & !RAW) as usize..end as usize)?;
        match start & RAW {
            0 => Some(Cow::Borrowed(field)),
            _ => Some(Cow::Owned(unquoted(field, grammar))),
        }
    }

    fn clear(&mut self, wanted: usize) {
        self.spans.clear();
        self.starts.clear();
        self.left_out.clear();
        self.wanted = wanted;
    }
}

/// Where fields may end, 64 bytes at a time. Looking for each end by itself took three times as long for fields of six
/// bytes.
struct Ends<'a> {
    bytes: &'a [u8],
    wanted: [u8; 3],
    base: usize,
    /// The ends among the 64 bytes from `base` on.
    marks: u64,
}

impl<'a> Ends<'a> {
    fn new(bytes: &'a [u8], grammar: &Grammar, at: usize) -> Ends<'a> {
        let mut ends = Ends {
            bytes,
            wanted: [grammar.delimiter, b'\n', b'\r'],
            base: 0,
            marks: 0,
        };
        ends.look(at & !63);
        ends
    }

    fn look(&mut self, base: usize) {
        self.base = base;
        let rest = self.bytes.get(base..).unwrap_or_default();
        self.marks = match rest.first_chunk() {
            Some(block) => places(block, self.wanted),
            None => {
                let mut block = [0; 64];
                block[..rest.len()].copy_from_slice(rest);
                places(&block, self.wanted) & ((1 << rest.len()) - 1)
            }
        };
    }

    /// The first from `at` on, or the end of all; `at` never goes back.
    #[inline(always)]
    fn from(&mut self, at: usize) -> usize {
        if at - self.base >= 64 {
            self.look(at & !63);
        }
        let mut marks = self.marks & (!0 << (at - self.base));
        while marks == 0 {
            if self.base + 64 >= self.bytes.len() {
                return self.bytes.len();
            }
            self.look(self.base + 64);
            marks = self.marks;
        }
        self.base + marks.trailing_zeros() as usize
    }
}

/// One field and what follows it.
struct Field {
    start: u32,
    end: u32,
    /// Where the delimiter or line end stands.
    stop: u32,
    /// Behind it.
    next: usize,
    is_last: bool,
    is_torn: bool,
}

impl RecordShape {
    /// All columns of a file, whose records have to fit.
    pub fn all(grammar: Grammar, columns: usize) -> RecordShape {
        RecordShape {
            grammar,
            columns,
            slots: (0..columns as u32).map(Some).collect(),
            wanted: columns,
            short: Short::Misfit,
            misfit: Misfit::Fail,
        }
    }

    /// The next line: where the one after it begins, its fields, none in an empty line or a comment, and whether the line
    /// has an end.
    pub fn count(&self, bytes: &[u8], at: usize) -> (usize, usize, bool) {
        if let Some(next) = self.skipped(bytes, at) {
            return (next, 0, true);
        }
        let (mut next, mut count) = (at, 0);
        let mut ends = Ends::new(bytes, &self.grammar, at);
        loop {
            let field = self.field(&mut ends, next);
            count += 1;
            let has_end = (field.stop as usize) < bytes.len();
            next = field.next;
            if field.is_last {
                return (next, count, has_end);
            }
        }
    }

    /// Where each field of the record at `at` stands, with its quotes.
    pub fn fields(&self, bytes: &[u8], mut at: usize) -> Vec<Range<usize>> {
        let mut ends = Ends::new(bytes, &self.grammar, at);
        let mut fields = Vec::new();
        loop {
            let field = self.field(&mut ends, at);
            fields.push(at..field.stop as usize);
            if field.is_last {
                return fields;
            }
            at = field.next;
        }
    }

    /// Behind the first record, whatever its fields.
    pub fn after_first(&self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if matches!(bytes[at], b'\n' | b'\r') {
                at += 1;
                continue;
            }
            let (next, count, _) = self.count(bytes, at);
            at = next;
            if count > 0 {
                break;
            }
        }
        at
    }

    /// Reads up to `rows` records from `at`; returns where the next one begins.
    pub fn read(
        &self,
        bytes: &[u8],
        mut at: usize,
        rows: usize,
        table: &mut Table,
    ) -> Result<usize, Unfit> {
        table.clear(self.wanted);
        let mut ends = Ends::new(bytes, &self.grammar, at);
        while table.rows() < rows && at < bytes.len() {
            match self.skipped(bytes, at) {
                Some(next) => at = next,
                None => at = self.record(&mut ends, at, table)?,
            }
        }
        Ok(at)
    }

    /// Behind a comment, or an empty line where that is no record.
    fn skipped(&self, bytes: &[u8], at: usize) -> Option<usize> {
        match bytes[at] {
            byte if Some(byte) == self.grammar.comment => Some(
                memchr(self.grammar.line_end, &bytes[at..]).map_or(bytes.len(), |end| at + end + 1),
            ),
            // The second half of a line end.
            b'\n' if at > 0 && bytes[at - 1] == b'\r' => Some(at + 1),
            b'\n' | b'\r' if self.columns > 1 => Some(at + 1),
            _ => None,
        }
    }

    fn record(&self, ends: &mut Ends<'_>, start: usize, table: &mut Table) -> Result<usize, Unfit> {
        let first_span = table.spans.len();
        let (mut at, mut found, mut torn) = (start, 0, None);
        loop {
            let field = self.field(ends, at);
            if let Some(Some(_)) = self.slots.get(found) {
                table.spans.push((field.start, field.end));
            }
            if field.is_torn {
                torn.get_or_insert(found);
            }
            found += 1;
            at = field.next;
            if field.is_last {
                break;
            }
        }
        let is_filled = found < self.columns && self.short == Short::Fill;
        if is_filled {
            table.spans.resize(first_span + self.wanted, (0, 0));
        }
        if torn.is_none() && (found == self.columns || is_filled) {
            table.starts.push(start as u32);
            return Ok(at);
        }
        table.spans.truncate(first_span);
        let unfit = Unfit {
            at: start,
            why: torn.map_or(Why::Fields(found), Why::Torn),
        };
        match self.misfit {
            Misfit::Fail => return Err(unfit),
            Misfit::Drop => {}
            Misfit::List => table.left_out.push(unfit),
        }
        Ok(at)
    }

    #[inline(always)]
    fn field(&self, ends: &mut Ends<'_>, at: usize) -> Field {
        let bytes = ends.bytes;
        let quote = self
            .grammar
            .quote
            .filter(|quote| bytes.get(at) == Some(quote));
        let Some(quote) = quote else {
            let end = ends.from(at);
            return self.ended(bytes, at as u32, end);
        };
        let (close, is_escaped) = self.closing_quote(bytes, at + 1, quote);
        let end = ends.from((close + 1).min(bytes.len()));
        // The value is just what the quotes enclose.
        if !is_escaped && end == close + 1 {
            let mut field = self.ended(bytes, at as u32 + 1, end);
            field.end = close as u32;
            return field;
        }
        let mut field = self.ended(bytes, at as u32 | RAW, end);
        let behind = bytes.get(close + 1..end).unwrap_or_default();
        field.is_torn = behind.iter().any(|byte| *byte != b' ')
            && memchr(self.grammar.line_end, &bytes[at..close]).is_some();
        field
    }

    /// Where the quotes end, and whether there are quotes or escapes inside.
    fn closing_quote(&self, bytes: &[u8], mut at: usize, quote: u8) -> (usize, bool) {
        let mut is_escaped = false;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let found = match self.grammar.escape {
                None => memchr(quote, rest),
                Some(escape) => memchr2(quote, escape, rest),
            };
            let Some(found) = found else {
                return (bytes.len(), true);
            };
            at += found;
            let is_quote = bytes[at] == quote;
            if is_quote && bytes.get(at + 1) != Some(&quote) {
                return (at, is_escaped);
            }
            is_escaped = true;
            at += 2;
        }
    }

    #[inline(always)]
    fn ended(&self, bytes: &[u8], start: u32, end: usize) -> Field {
        let next = match bytes.get(end) {
            Some(b'\r') if bytes.get(end + 1) == Some(&b'\n') => end + 2,
            _ => end + 1,
        };
        Field {
            start,
            end: end as u32,
            stop: end as u32,
            next: next.min(bytes.len()),
            is_last: bytes.get(end) != Some(&self.grammar.delimiter),
            is_torn: false,
        }
    }
}

/// The value of a field that begins with a quote.
fn unquoted(field: &str, grammar: &Grammar) -> String {
    let mut value = String::with_capacity(field.len());
    let quote = grammar.quote.map(char::from);
    let escape = grammar.escape.map(char::from);
    let mut characters = field.chars().skip(1).peekable();
    while let Some(character) = characters.next() {
        if Some(character) == quote {
            if characters.next_if(|next| Some(*next) == quote).is_none() {
                break;
            }
            value.push(character);
        } else if Some(character) == escape {
            value.extend(characters.next());
        } else {
            value.push(character);
        }
    }
    // What follows the quotes belongs to the value, too.
    value.extend(characters);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(columns: usize, escape: Option<u8>) -> RecordShape {
        RecordShape {
            grammar: Grammar {
                delimiter: b',',
                quote: Some(b'"'),
                escape,
                comment: Some(b'#'),
                line_end: b'\n',
            },
            columns,
            slots: (0..columns as u32).map(Some).collect(),
            wanted: columns,
            short: Short::Misfit,
            misfit: Misfit::Fail,
        }
    }

    fn values(shape: &RecordShape, text: &str) -> Result<Vec<Vec<String>>, Unfit> {
        let mut table = Table::default();
        let end = shape.read(text.as_bytes(), 0, usize::MAX, &mut table)?;
        assert_eq!(end, text.len());
        let value = |row, slot| table.value(row, slot, text, &shape.grammar);
        let row = |row| (0..shape.wanted).map(move |slot| value(row, slot).unwrap().into());
        Ok((0..table.rows()).map(|at| row(at).collect()).collect())
    }

    #[test]
    fn fields_of_records() {
        for (text, expected) in [
            ("a,b\nc,d", vec![["a", "b"], ["c", "d"]]),
            ("a,b\r\n\r\nc,d\r\n", vec![["a", "b"], ["c", "d"]]),
            ("a,b\rc,d\r", vec![["a", "b"], ["c", "d"]]),
            ("\"a,\n\",\"\"\n#c\n,\n", vec![["a,\n", ""], ["", ""]]),
            ("\"a\"\"b\",5\" tall\n", vec![["a\"b", "5\" tall"]]),
            ("\"a\"b\"c,\"x\"\n", vec![["ab\"c", "x"]]),
            ("\"ä\"\"\",ö", vec![["ä\"", "ö"]]),
        ] {
            assert_eq!(values(&shape(2, None), text).unwrap(), expected, "{text}");
        }
        let escaped = shape(1, Some(b'\\'));
        assert_eq!(values(&escaped, "\"a\\\"\\\\\"\n").unwrap(), [["a\"\\"]]);
        assert_eq!(values(&escaped, "a\\\"\n").unwrap(), [["a\\\""]]);
    }

    #[test]
    fn empty_lines_of_one_column_are_records() {
        let one = shape(1, None);
        assert_eq!(
            values(&one, "1\r\n\r\n3\n\n").unwrap(),
            [["1"], [""], ["3"], [""]]
        );
    }

    #[test]
    fn records_that_do_not_fit() {
        let mut shape = shape(2, None);
        let why = Why::Fields(3);
        let wrong = Unfit { at: 4, why };
        assert_eq!(values(&shape, "a,b\nc,d,e\n"), Err(wrong));
        let why = Why::Torn(1);
        let text = "a,b\nc,\"d\ne,\"f\"\n";
        assert_eq!(values(&shape, text), Err(Unfit { at: 4, why }));
        assert!(values(&shape, "a,\"b\nc\" \n").is_ok());
        shape.short = Short::Fill;
        assert_eq!(values(&shape, "a\n").unwrap(), [["a", ""]]);
        shape.misfit = Misfit::Drop;
        assert_eq!(values(&shape, "a,b,c\nd,e\n").unwrap(), [["d", "e"]]);
        shape.misfit = Misfit::List;
        let (text, mut table) = (b"a,b\n\"a,\",b,c\nd,e\n", Table::default());
        assert_eq!(shape.read(text, 0, 9, &mut table), Ok(text.len()));
        let why = Why::Fields(3);
        assert_eq!(
            (table.rows(), table.left_out()),
            (2, &[Unfit { at: 4, why }][..])
        );
        assert_eq!(shape.fields(text, 4), [4..8, 9..10, 11..12]);
    }
}
