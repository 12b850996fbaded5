//! Dialects: how a CSV file is delimited and quoted, and whether its first record holds names.
//!
//! In: the first bytes of a file as text, what the query says about it.
//! Out: a [`Dialect`].
//! Invariant: what the query says is never overruled; a dialect is taken from the sample only if the records of the sample
//! then have the same number of fields.
//! Not here: types (guess.rs).

use csv_nose::{Quote, SampleSize, Sniffer};

use crate::scan::format::{FileKind, TextOptions};
use grouse_text::csv::columns::{Cells, Forms};
use grouse_text::csv::grammar::{Grammar, Place};
use grouse_text::csv::guess::{Guess, see_all};
use grouse_text::csv::records::{Misfit, RecordShape, Short, Table};

/// Bytes and records of the sample from which the dialect is told.
const SNIFFED_BYTES: usize = 1 << 18;
const SNIFFED_RECORDS: usize = 1_000;

/// Lines above the names that are none: titles of reports.
const TITLES_MAX: usize = 16;

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
const QUOTES: [u8; 2] = [b'"', b'\''];

/// Before a quote that closes nothing, in files of writers that do not double it.
const ESCAPE: u8 = b'\\';

/// Whether the first record holds names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Names,
    Absent,
}

/// How a file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) grammar: Grammar,
    pub(crate) header: Header,
    /// Lines above the first record.
    pub(crate) skip: usize,
}

/// What a grammar makes of a sample.
struct GrammarFit {
    grammar: Grammar,
    skip: usize,
    /// Fields of most records.
    columns: usize,
    /// Records with so many fields, and all records.
    fitting: usize,
    records: usize,
}

impl GrammarFit {
    fn is_even(&self) -> bool {
        self.fitting == self.records
    }
}

/// The dialect of a file that begins with `text`, of which the last record may be cut.
pub(crate) fn sniffed(kind: FileKind, options: &TextOptions, text: &str, forms: &Forms) -> Dialect {
    let text = &text[..floor(text, SNIFFED_BYTES)];
    let said = with_said_delimiter(options, text);
    let reading = grammar(kind, said.as_ref().unwrap_or(options), text);
    let body = &text[after_lines(text, reading.skip)..];
    let header = match options.header {
        Some(true) => Header::Names,
        Some(false) => Header::Absent,
        None if options.csv.detection == Some(false) => Header::Absent,
        None => header(&reading, body, forms),
    };
    Dialect {
        grammar: reading.grammar,
        header,
        skip: reading.skip,
    }
}

/// What the query says, and the first line: Excel writes `sep=;` there.
fn with_said_delimiter(options: &TextOptions, text: &str) -> Option<TextOptions> {
    let is_open = options.delimiter.is_none() && options.csv.skip.is_none();
    if !is_open || options.csv.detection == Some(false) {
        return None;
    }
    let (line, _) = text.split_once('\n')?;
    let &[delimiter] = line.trim_end_matches('\r').strip_prefix("sep=")?.as_bytes() else {
        return None;
    };
    let mut said = options.clone();
    said.delimiter = Some(delimiter);
    said.csv.skip = Some(1);
    Some(said)
}

fn floor(text: &str, bytes: usize) -> usize {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Behind so many lines.
pub(crate) fn after_lines(text: &str, lines: usize) -> usize {
    let end = if text.contains('\n') { b'\n' } else { b'\r' };
    let mut ends = memchr::memchr_iter(end, text.as_bytes());
    match lines.checked_sub(1) {
        None => 0,
        Some(last) => ends.nth(last).map_or(text.len(), |end| end + 1),
    }
}

fn grammar(kind: FileKind, options: &TextOptions, text: &str) -> GrammarFit {
    let usual = if kind == FileKind::Tsv { b'\t' } else { b',' };
    let quote = match options.csv.unquoted {
        true => None,
        false => Some(options.quote.unwrap_or(QUOTES[0])),
    };
    let first = Grammar {
        delimiter: options.delimiter.unwrap_or(usual),
        quote,
        escape: options.escape.filter(|escape| Some(*escape) != quote),
        comment: options.comment,
        line_end: options.csv.line_end.unwrap_or({
            match text.contains('\r') && !text.contains('\n') {
                true => b'\r',
                false => b'\n',
            }
        }),
    };
    let best = with_escape(first, options, text);
    match options.quote.is_none() && options.csv.detection != Some(false) {
        true => without_strays(best, text),
        false => best,
    }
}

/// The reading in which quotes are text, if by the other some field goes on behind its quotes and records have as many fields
/// either way. Then who wrote the file put nothing in quotes.
fn without_strays(best: GrammarFit, text: &str) -> GrammarFit {
    let bare = Grammar {
        quote: None,
        escape: None,
        ..best.grammar
    };
    if !has_strays(best.grammar, &text[after_lines(text, best.skip)..]) {
        return best;
    }
    let bare = read(bare, best.skip, text);
    match bare.is_even() && bare.columns == best.columns {
        true => bare,
        false => best,
    }
}

/// The usual grammar, or the one with escapes where only that fits.
fn with_escape(first: Grammar, options: &TextOptions, text: &str) -> GrammarFit {
    let plain = told(first, options, text);
    let may_be_escaped = options.escape.is_none() && options.csv.detection != Some(false);
    if !may_be_escaped || first.quote.is_none() || !text.contains(r#"\""#) {
        return plain;
    }
    let escaped = Grammar {
        escape: Some(ESCAPE),
        ..first
    };
    let escaped = told(escaped, options, text);
    let fits = |reading: &GrammarFit| reading.is_even() && !has_strays(reading.grammar, text);
    match fits(&plain) || !fits(&escaped) {
        true => plain,
        false => escaped,
    }
}

/// Whether some field goes on behind the quote that closes it, spaces aside.
fn has_strays(grammar: Grammar, text: &str) -> bool {
    let ends = [grammar.delimiter, b'\r', b'\n'];
    let (mut place, mut is_closed) = (Place::LineStart, false);
    text.bytes().any(|byte| {
        is_closed |= place == Place::AfterQuote;
        let is_doubled = place == Place::AfterQuote && Some(byte) == grammar.quote;
        let is_stray = is_closed && !is_doubled && byte != b' ' && !ends.contains(&byte);
        is_closed &= byte == b' ';
        place = grammar.after(place, byte);
        is_stray
    })
}

/// Whether some field begins with this byte.
fn has_field_with(first: u8, grammar: Grammar, text: &str) -> bool {
    let mut place = Place::LineStart;
    text.bytes().any(|byte| {
        let is_first = place.begins_field() && byte == first;
        place = grammar.after(place, byte);
        is_first
    })
}

/// What a file is whose grammar is this one, but for the delimiter and the quotes where the query does not say them.
fn told(first: Grammar, options: &TextOptions, text: &str) -> GrammarFit {
    let skip = options.csv.skip.unwrap_or(0);
    let reading = |grammar, skip| read(grammar, skip, text);
    let usual = reading(first, skip);
    let is_settled = options.delimiter.is_some() || options.csv.detection == Some(false);
    let fits = usual.columns > 1 && usual.is_even();
    if is_settled || fits && is_typed(&usual, text) {
        return usual;
    }
    let quotes = match options.quote.is_some() || options.csv.unquoted {
        true => vec![first.quote],
        false => QUOTES.map(Some).to_vec(),
    };
    let grammars = quotes.iter().flat_map(|quote| {
        DELIMITERS.map(|delimiter| Grammar {
            delimiter,
            quote: *quote,
            ..first
        })
    });
    // Where fields stand in the usual quotes, others are a part of them.
    let grammars = grammars.filter(|grammar| {
        grammar.quote == first.quote
            || has_field_with(QUOTES[1], *grammar, text)
                && !has_field_with(QUOTES[0], *grammar, text)
    });
    let mut even: Vec<GrammarFit> = grammars
        .clone()
        .map(|grammar| reading(grammar, skip))
        .filter(|reading| reading.columns > 1 && reading.is_even())
        .collect();
    if fits {
        // `1,5;2,5`: numbers only where the comma stands before fractions.
        let typed = even.into_iter().find(|reading| is_typed(reading, text));
        return typed.unwrap_or(usual);
    }
    match even.len() {
        0 => {}
        1 => return even.remove(0),
        _ => return preferred(even, text),
    }
    if options.csv.skip.is_none() {
        let titled = grammars.filter_map(|grammar| below_titles(grammar, text));
        if let Some(reading) = titled.max_by_key(|reading| reading.records * reading.columns) {
            return reading;
        }
    }
    usual
}

/// No column below the first record is text.
fn is_typed(reading: &GrammarFit, text: &str) -> bool {
    let body = &text[after_lines(text, reading.skip)..];
    let shape = RecordShape::all(reading.grammar, reading.columns);
    let rest = &body[shape.after_first(body.as_bytes(), 0)..];
    let (guesses, rows) = guessed(&shape, rest, SNIFFED_RECORDS, &Forms::default());
    rows > 0 && !guesses.iter().any(Guess::is_text)
}

/// Of several that fit the one whose fields have types, as the sniffer says; else the first.
fn preferred(mut even: Vec<GrammarFit>, text: &str) -> GrammarFit {
    let mut sniffer = Sniffer::new();
    sniffer.sample_size(SampleSize::Records(SNIFFED_RECORDS));
    let dialect = sniffer
        .sniff_bytes(text.as_bytes())
        .ok()
        .map(|of| of.dialect);
    let is_same = |reading: &GrammarFit| {
        dialect.as_ref().is_some_and(|dialect| {
            let quote = match dialect.quote {
                Quote::Some(quote) => Some(quote),
                Quote::None => reading.grammar.quote,
            };
            dialect.delimiter == reading.grammar.delimiter && quote == reading.grammar.quote
        })
    };
    let at = even.iter().position(is_same).unwrap_or(0);
    even.swap_remove(at)
}

/// The sample below some lines that are not of the table.
fn below_titles(grammar: Grammar, text: &str) -> Option<GrammarFit> {
    (1..=TITLES_MAX)
        .take_while(|skip| {
            let titles = field_counts(grammar, &text[..after_lines(text, *skip)]);
            titles.iter().all(|count| *count <= 1)
        })
        .map(|skip| read(grammar, skip, text))
        .find(|reading| reading.columns > 1 && reading.is_even() && reading.records > 1)
        // Without names below, the line above is what the file has for one.
        .filter(|reading| {
            let body = &text[after_lines(text, reading.skip)..];
            header(reading, body, &Forms::default()) == Header::Names
        })
}

fn read(grammar: Grammar, skip: usize, text: &str) -> GrammarFit {
    let body = &text[after_lines(text, skip)..];
    let counts = field_counts(grammar, body);
    // Of a file of one column an empty line is a record, too: told when the columns are known.
    let counts: Vec<usize> = counts.into_iter().filter(|count| *count > 0).collect();
    let columns = counts.first().copied().unwrap_or(0);
    GrammarFit {
        grammar,
        skip,
        columns,
        fitting: counts.iter().filter(|count| **count == columns).count(),
        records: counts.len(),
    }
}

/// Fields of each record but a last one that may be cut.
fn field_counts(grammar: Grammar, text: &str) -> Vec<usize> {
    let shape = RecordShape {
        grammar,
        columns: 2,
        slots: Vec::new(),
        wanted: 0,
        short: Short::Misfit,
        misfit: Misfit::Fail,
    };
    let mut counts = Vec::new();
    let mut at = 0;
    while at < text.len() && counts.len() < SNIFFED_RECORDS {
        let (next, count, is_whole) = shape.count(text.as_bytes(), at);
        if !is_whole && !counts.is_empty() {
            break;
        }
        counts.push(count);
        at = next;
    }
    counts
}

/// Fields of the longest record.
pub(crate) fn most_fields(grammar: Grammar, text: &str) -> usize {
    field_counts(grammar, text).into_iter().max().unwrap_or(0)
}

/// Names are told from values by the types of the records below them.
fn header(reading: &GrammarFit, body: &str, forms: &Forms) -> Header {
    let shape = RecordShape::all(reading.grammar, reading.columns);
    let mut table = Table::default();
    let lenient = RecordShape {
        misfit: Misfit::Drop,
        ..shape
    };
    let end = lenient.read(body.as_bytes(), 0, SNIFFED_RECORDS, &mut table);
    if end.is_err() || table.rows() == 0 {
        return Header::Names;
    }
    let value = |row, slot| {
        table
            .value(row, slot, body, &reading.grammar)
            .unwrap_or_default()
    };
    let first: Vec<_> = (0..reading.columns).map(|slot| value(0, slot)).collect();
    let is_value = |text: &str| {
        let mut guess = Guess::default();
        guess.see(text);
        !forms.is_null(text) && !guess.is_text()
    };
    let mut guesses = vec![Guess::default(); reading.columns];
    for row in 1..table.rows() {
        for (slot, guess) in guesses.iter_mut().enumerate() {
            let text = value(row, slot);
            if !forms.is_null(&text) {
                guess.see(&text);
            }
        }
    }
    let is_all_text = guesses.iter().all(Guess::is_text);
    if table.rows() == 1 || is_all_text {
        // Numbers are no names.
        return match first.iter().any(|text| is_value(text)) {
            true => Header::Absent,
            false => Header::Names,
        };
    }
    let fits = |(text, guess): (&std::borrow::Cow<'_, str>, &Guess)| {
        forms.is_null(text) || guess.is_text() || guess.takes(text)
    };
    match first.iter().zip(&guesses).all(fits) {
        true => Header::Absent,
        false => Header::Names,
    }
}

/// What the records of a text say about its columns.
pub(crate) fn guessed(
    shape: &RecordShape,
    text: &str,
    rows: usize,
    forms: &Forms,
) -> (Vec<Guess>, usize) {
    let mut guesses = vec![Guess::default(); shape.columns];
    let mut table = Table::default();
    let lenient = RecordShape {
        misfit: Misfit::Drop,
        ..shape.clone()
    };
    if lenient.read(text.as_bytes(), 0, rows, &mut table).is_ok() {
        let cells = Cells {
            table: &table,
            slot: 0,
            text,
            grammar: &shape.grammar,
            forms,
        };
        see_all(&mut guesses, cells);
    }
    (guesses, table.rows())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(text: &str) -> (char, Option<char>, usize, Header) {
        let options = TextOptions::default();
        let dialect = sniffed(FileKind::Csv, &options, text, &Forms::default());
        let Grammar {
            delimiter, quote, ..
        } = dialect.grammar;
        (
            delimiter.into(),
            quote.map(char::from),
            dialect.skip,
            dialect.header,
        )
    }

    #[test]
    fn delimiters_and_quotes() {
        for (text, expected) in [
            ("a,b\n1,2\n", (',', '"')),
            ("a;b\n1,5;2\n", (';', '"')),
            ("a\tb\n1\t2\n", ('\t', '"')),
            ("a|b\n1|2\n", ('|', '"')),
            ("a,b\n'x,y',2\n'z',3\n", (',', '\'')),
            ("1,5;2,5\n3,5;4,5\n", (';', '"')),
            ("a,b\nx;1,5;2\n", (',', '"')),
            ("a,b\n1;2,x\n3;4,y\n", (',', '"')),
            ("a\nb\n", (',', '"')),
            ("a\n\"1,000\"\n\"2,500\"\n", (',', '"')),
            ("a\n\"x;y\"\n\"z;w\"\n", (',', '"')),
        ] {
            let (delimiter, quote, ..) = dialect(text);
            assert_eq!((delimiter, quote.unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn escapes() {
        for (text, expected) in [
            ("a,b\n\"x\\\"y\",1\n", Some(b'\\')),
            ("a;b\n\"x\\\";y\";1\n", Some(b'\\')),
            ("a,b\n\"c:\\\",1\n", None),
            ("a,b\n\"x\"\"y\\\"\"z\",1\n", None),
        ] {
            let options = TextOptions::default();
            let dialect = sniffed(FileKind::Csv, &options, text, &Forms::default());
            assert_eq!(dialect.grammar.escape, expected, "{text}");
        }
    }

    #[test]
    fn quotes_that_quote_nothing() {
        for (text, expected) in [
            ("a,b\n\"x\"y,1\n", None),
            ("a,b\n\"x\" y,1\n", None),
            ("a\tb\n\"x\t1\ny\t2\n\"z\" w\t3\n", None),
            ("a,b\n\"x\" ,1\n", Some(b'"')),
            ("a,b\n\"x\"\"y\",1\n", Some(b'"')),
            ("a,b\n\"x\"y,1\n\"z,w\",1\n", Some(b'"')),
        ] {
            let kind = if text.contains('\t') {
                FileKind::Tsv
            } else {
                FileKind::Csv
            };
            let dialect = sniffed(kind, &TextOptions::default(), text, &Forms::default());
            assert_eq!(dialect.grammar.quote, expected, "{text}");
        }
    }

    #[test]
    fn headers() {
        for (text, expected) in [
            ("a,b\n1,2\n", Header::Names),
            ("1,a\n2,b\n", Header::Absent),
            ("x,a\ny,b\n", Header::Names),
            (",a\n2,b\n", Header::Absent),
            (",x\n1,2\n", Header::Names),
            ("1,5;2,5\n3,5;4,5\n", Header::Absent),
            ("a;b\n3,5;4,5\n", Header::Names),
            ("12345678901234567890\n1\n", Header::Absent),
            ("2019,2020\n1,2\n", Header::Absent),
            ("1\n2\n", Header::Absent),
            ("v\n2\n", Header::Names),
            ("a,b\n", Header::Names),
            ("1,2\n", Header::Absent),
            ("a,2\n", Header::Absent),
            ("d,t\n2024-01-01,x\n", Header::Names),
        ] {
            assert_eq!(dialect(text).3, expected, "{text}");
        }
    }

    #[test]
    fn titles_are_skipped() {
        let (_, _, skip, header) = dialect("Report of things\n\na,b\n1,2\n3,4\n");
        assert_eq!((skip, header), (1, Header::Names));
        // Values are no names, and the line above them is no title.
        assert_eq!(dialect("a\n1,5\n2,5\n").2, 0);
        // A record with too few fields is no title.
        assert_eq!(dialect("a,b\n1,2\n3,4,5\n6,7,8\n").2, 0);
    }
}
