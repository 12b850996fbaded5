//! Quotes: where in a CSV file a byte stands.
//!
//! In: the bytes of a file in order, from its beginning.
//! Out: after each of them its place: inside quotes or not, at a record's beginning or not.
//! Invariant: the places are those of the reader: a quote opens only where a field begins.
//! Not here: what is done with the bytes (mend.rs, text.rs).

use super::format::{Kind, TextOptions};

/// What some programs write before the first byte of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where in a CSV file the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    LineStart,
    /// At a line's start, the line before ended in a carriage return, to which a line feed belongs.
    AfterReturn,
    FieldStart,
    /// In a field, where quotes are bytes like others.
    Field,
    Quoted,
    Escaped,
    /// After a quote inside quotes: the field's end, unless another quote follows.
    AfterQuote,
    Comment,
}

impl Place {
    /// A record or a comment may begin here.
    pub(crate) fn is_line_start(self) -> bool {
        matches!(self, Place::LineStart | Place::AfterReturn)
    }
}

/// The reader's way through the quotes of a file.
#[derive(Debug, Clone)]
pub(crate) struct Quotes {
    delimiter: u8,
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
    /// What is left of a mark at the file's beginning.
    mark: &'static [u8],
    place: Place,
}

impl Quotes {
    pub(crate) fn new(kind: Kind, text: &TextOptions) -> Quotes {
        let delimiter = if kind == Kind::Tsv { b'\t' } else { b',' };
        Quotes {
            delimiter: text.delimiter.unwrap_or(delimiter),
            quote: text.quote.unwrap_or(b'"'),
            escape: text.escape,
            comment: text.comment,
            mark: BYTE_ORDER_MARK,
            place: Place::LineStart,
        }
    }

    pub(crate) fn quote(&self) -> u8 {
        self.quote
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The place after the next byte.
    pub(crate) fn step(&mut self, byte: u8) -> Place {
        self.mark = match self.mark {
            [first, rest @ ..] if *first == byte => rest,
            _ => {
                self.place = self.after(byte);
                &[]
            }
        };
        self.place
    }

    fn after(&self, byte: u8) -> Place {
        let begins_field = self.place.is_line_start() || self.place == Place::FieldStart;
        match self.place {
            Place::Escaped => Place::Quoted,
            Place::Quoted if byte == self.quote => Place::AfterQuote,
            Place::Quoted if Some(byte) == self.escape => Place::Escaped,
            Place::Quoted => Place::Quoted,
            Place::AfterQuote if byte == self.quote => Place::Quoted,
            Place::Comment if byte != b'\n' => Place::Comment,
            _ if byte == b'\r' => Place::AfterReturn,
            _ if byte == b'\n' => Place::LineStart,
            place if place.is_line_start() && Some(byte) == self.comment => Place::Comment,
            _ if begins_field && byte == self.quote => Place::Quoted,
            _ if byte == self.delimiter => Place::FieldStart,
            _ => Place::Field,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_after(text: &[u8]) -> Place {
        let options = TextOptions {
            escape: Some(b'\\'),
            comment: Some(b'#'),
            ..TextOptions::default()
        };
        let mut quotes = Quotes::new(Kind::Csv, &options);
        for &byte in text {
            quotes.step(byte);
        }
        quotes.place()
    }

    #[test]
    fn quotes_open_where_fields_begin() {
        for (text, expected) in [
            (&b"\""[..], Place::Quoted),
            (b"\xef\xbb\xbf\"", Place::Quoted),
            (b"a,\"b\n", Place::Quoted),
            (b"5\" tall", Place::Field),
            (b"5\" tall\n", Place::LineStart),
            (b"\"a\"", Place::AfterQuote),
            (b"\"a\"\"", Place::Quoted),
            (b"\"a\"b\"\n", Place::LineStart),
            (b"\"a\",\"\r\n", Place::Quoted),
            (b"\"a\\\"\n", Place::Quoted),
            (b"a\\\"", Place::Field),
            (b"#\"\r", Place::Comment),
            (b"#\"\n", Place::LineStart),
            (b"a#\r", Place::AfterReturn),
            (b"\xef\xbb\xbf", Place::LineStart),
            (b"a\xef\xbb\xbf\"\n", Place::LineStart),
        ] {
            assert_eq!(place_after(text), expected, "{}", text.escape_ascii());
        }
    }
}
