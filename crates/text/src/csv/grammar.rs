//! Grammar: where in a CSV file a byte stands, and so where its records begin.
//!
//! In: bytes of a file in order, the place at which they begin.
//! Out: the place behind them and the beginnings of records among them.
//! Invariant: a quote opens only where a field begins; the fast way through the quotes and the one byte by byte, which is
//! its specification, agree for every place.
//! Not here: fields (records.rs), files (cuts.rs, blocks.rs).

use memchr::{memchr, memchr_iter, memrchr};

/// What tells the fields and records of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grammar {
    /// What stands between two fields.
    pub delimiter: u8,
    /// Around fields that contain a delimiter; `None` = no byte is.
    pub quote: Option<u8>,
    /// Before a quote inside quotes; `None` = only the quote is doubled.
    pub escape: Option<u8>,
    /// Lines that begin with it are left out.
    pub comment: Option<u8>,
    /// The byte that ends lines: a line feed, or a carriage return where there are no line feeds.
    pub line_end: u8,
}

/// Where in a CSV file the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the start of a line.
    LineStart,
    /// At a line's start, the line before ended in a carriage return, to which a line feed belongs.
    AfterReturn,
    /// At the start of a field that is not the first.
    FieldStart,
    /// In a field, where quotes are bytes like others.
    Field,
    /// Within quotes.
    Quoted,
    /// Within quotes, behind an escape.
    Escaped,
    /// After a quote inside quotes: the field's end, unless another quote follows.
    AfterQuote,
    /// Within a comment.
    Comment,
}

/// All places, in the order of their numbers.
pub const PLACES: [Place; 8] = [
    Place::LineStart,
    Place::AfterReturn,
    Place::FieldStart,
    Place::Field,
    Place::Quoted,
    Place::Escaped,
    Place::AfterQuote,
    Place::Comment,
];

impl Place {
    /// A record or a comment may begin here.
    pub fn is_line_start(self) -> bool {
        matches!(self, Place::LineStart | Place::AfterReturn)
    }

    /// The file must not end here.
    pub fn is_inside_quotes(self) -> bool {
        matches!(self, Place::Quoted | Place::Escaped)
    }

    /// A field may begin here.
    pub fn begins_field(self) -> bool {
        self.is_line_start() || self == Place::FieldStart
    }
}

/// What some bytes of a file say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// The place behind the bytes.
    pub place: Place,
    /// Behind the last line end outside quotes.
    pub last_start: Option<usize>,
}

impl Grammar {
    /// Lines that end in `bytes`.
    pub fn lines_in(&self, bytes: &[u8]) -> u64 {
        memchr_iter(self.line_end, bytes).count() as u64
    }

    /// The place after a byte.
    pub fn after(&self, place: Place, byte: u8) -> Place {
        let is_quote = Some(byte) == self.quote;
        match place {
            Place::Escaped => Place::Quoted,
            Place::Quoted if is_quote => Place::AfterQuote,
            Place::Quoted if Some(byte) == self.escape => Place::Escaped,
            Place::Quoted => Place::Quoted,
            Place::AfterQuote if is_quote => Place::Quoted,
            Place::Comment if byte != self.line_end => Place::Comment,
            _ if byte == b'\n' => Place::LineStart,
            _ if byte == b'\r' => Place::AfterReturn,
            place if place.is_line_start() && Some(byte) == self.comment => Place::Comment,
            place if place.begins_field() && is_quote => Place::Quoted,
            _ if byte == self.delimiter => Place::FieldStart,
            _ => Place::Field,
        }
    }

    /// A record or comment begins here, and no rest of a line end.
    pub fn is_start(&self, place: Place) -> bool {
        match self.line_end {
            b'\r' => place.is_line_start(),
            _ => place == Place::LineStart,
        }
    }

    /// Behind the first line end outside quotes, or the place behind all bytes.
    pub fn first_start(&self, mut place: Place, bytes: &[u8]) -> Result<usize, Place> {
        for (at, &byte) in bytes.iter().enumerate() {
            place = self.after(place, byte);
            if byte == self.line_end && place.is_line_start() {
                return Ok(at + 1);
            }
        }
        Err(place)
    }

    /// From `place` over `bytes`.
    pub fn walk(&self, place: Place, bytes: &[u8]) -> Walk {
        match self.escape.is_none() && self.comment.is_none() {
            true => self.walk_quotes(place, bytes),
            false => self.walk_bytes(place, bytes),
        }
    }

    /// Byte by byte.
    fn walk_bytes(&self, mut place: Place, bytes: &[u8]) -> Walk {
        let mut last_start = None;
        for (at, &byte) in bytes.iter().enumerate() {
            place = self.after(place, byte);
            if byte == self.line_end && place.is_line_start() {
                last_start = Some(at + 1);
            }
        }
        Walk { place, last_start }
    }

    /// From quote to quote. Of a file without comments and escapes nothing between two quotes matters but the byte before
    /// the second.
    fn walk_quotes(&self, place: Place, bytes: &[u8]) -> Walk {
        let mut is_inside = place == Place::Quoted;
        // Where a quote would be the second of two inside quotes.
        let mut doubled = (place == Place::AfterQuote).then_some(0);
        let mut last_start = None;
        let mut outside_from = 0;
        let quotes = self.quote.into_iter();
        for at in quotes.flat_map(|quote| memchr_iter(quote, bytes)) {
            if is_inside {
                is_inside = false;
                doubled = Some(at + 1);
                outside_from = at + 1;
                continue;
            }
            let opens = match at {
                _ if doubled == Some(at) => true,
                0 => place.begins_field(),
                _ => self.ends_field(bytes[at - 1]),
            };
            if opens {
                last_start = self.line_after(bytes, outside_from, at).or(last_start);
                is_inside = true;
            }
        }
        if !is_inside {
            last_start = self
                .line_after(bytes, outside_from, bytes.len())
                .or(last_start);
        }
        let place = match bytes.last() {
            None => place,
            Some(_) if is_inside => Place::Quoted,
            Some(_) if doubled == Some(bytes.len()) => Place::AfterQuote,
            Some(b'\n') => Place::LineStart,
            Some(b'\r') => Place::AfterReturn,
            Some(last) if *last == self.delimiter => Place::FieldStart,
            Some(_) => Place::Field,
        };
        Walk { place, last_start }
    }

    /// Behind the last line end of a part of `bytes`.
    fn line_after(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        memrchr(self.line_end, &bytes[from..to]).map(|at| from + at + 1)
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n' || byte == b'\r'
    }

    /// The place behind `bytes` for each place before them. After the first line end there are only two: in quotes or not.
    pub fn lane(&self, bytes: &[u8]) -> Lane {
        let head = memchr(self.line_end, bytes).map_or(bytes.len(), |at| at + 1);
        let (head, rest) = bytes.split_at(head);
        let outside = self.walk(Place::LineStart, rest).place;
        let mut inside = None;
        Lane(
            PLACES.map(|place| match self.walk_bytes(place, head).place {
                place if rest.is_empty() => place,
                place if place.is_line_start() => outside,
                place => *inside.get_or_insert_with(|| self.walk(place, rest).place),
            }),
        )
    }
}

/// What a piece of a file makes of each place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane([Place; 8]);

impl Lane {
    /// The place after the piece, if it begins at `place`.
    pub fn after(&self, place: Place) -> Place {
        self.0[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Grammar = Grammar {
        delimiter: b',',
        quote: Some(b'"'),
        escape: None,
        comment: None,
        line_end: b'\n',
    };

    #[test]
    fn quotes_open_where_fields_begin() {
        let grammar = Grammar {
            escape: Some(b'\\'),
            comment: Some(b'#'),
            ..PLAIN
        };
        for (text, expected) in [
            (&b"\""[..], Place::Quoted),
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
        ] {
            let place = grammar.walk(Place::LineStart, text).place;
            assert_eq!(place, expected, "{}", text.escape_ascii());
        }
    }

    /// Every text of a few letters, from every place that the grammar has.
    #[test]
    fn the_fast_way_is_the_slow_way() {
        let letters = *b"\"\n\r,x";
        let places = PLACES
            .into_iter()
            .filter(|place| !matches!(place, Place::Escaped | Place::Comment));
        for number in 0..5usize.pow(7) {
            let text: Vec<u8> = (0..7)
                .map(|digit| letters[number / 5usize.pow(digit) % 5])
                .collect();
            let text = &text[..number % 8];
            for place in places.clone() {
                let slow = PLAIN.walk_bytes(place, text);
                assert_eq!(
                    PLAIN.walk(place, text),
                    slow,
                    "{place:?} {}",
                    text.escape_ascii()
                );
                assert_eq!(PLAIN.lane(text).after(place), slow.place, "{place:?}");
            }
        }
    }

    #[test]
    fn lanes_know_comments_and_escapes() {
        let grammar = Grammar {
            escape: Some(b'\\'),
            comment: Some(b'#'),
            ..PLAIN
        };
        for text in [&b"a\\\"\n\"x\\\"\ny"[..], b"#\"\n\"", b"\\", b"\"\n#\"\n,"] {
            for place in PLACES {
                let slow = grammar.walk_bytes(place, text).place;
                assert_eq!(
                    grammar.lane(text).after(place),
                    slow,
                    "{}",
                    text.escape_ascii()
                );
            }
        }
    }
}
