//! Mending: text that the host's readers misread, rewritten on its way to them.
//!
//! In: a file's bytes, chunk by chunk, cut anywhere.
//! Out: the same records in a form that the readers take for what it is.
//! Invariant: a chunk needs no other chunk; values are not touched.
//! Not here: reading files (lines.rs).

/// Empty lines of a CSV file of one column: records with nothing in them, which the reader would skip.
#[derive(Debug, Clone)]
pub(crate) struct EmptyLines {
    quote: u8,
    escape: Option<u8>,
    comment: Option<u8>,
    /// Empty lines before the header are no records.
    is_before_header: bool,
    place: Place,
}

/// Where in a CSV file the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    /// At a line's start, the line before ended in a carriage return, to which a line feed belongs.
    AfterReturn,
    Field,
    Quoted,
    Escaped,
    Comment,
}

impl EmptyLines {
    pub(crate) fn new(
        quote: u8,
        escape: Option<u8>,
        comment: Option<u8>,
        has_header: bool,
    ) -> EmptyLines {
        EmptyLines {
            quote,
            escape,
            comment,
            is_before_header: has_header,
            place: Place::LineStart,
        }
    }

    /// The chunk with `""` in empty lines.
    pub(crate) fn mend(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut mended = Vec::with_capacity(chunk.len());
        for &byte in chunk {
            let is_start = matches!(self.place, Place::LineStart | Place::AfterReturn);
            let is_second_half = self.place == Place::AfterReturn && byte == b'\n';
            let is_end = matches!(byte, b'\n' | b'\r');
            if is_start && is_end && !is_second_half && !self.is_before_header {
                mended.extend_from_slice(&[self.quote, self.quote]);
            }
            mended.push(byte);
            self.place = self.after(byte);
            if is_start && matches!(self.place, Place::Field | Place::Quoted) {
                self.is_before_header = false;
            }
        }
        mended
    }

    fn after(&self, byte: u8) -> Place {
        match self.place {
            Place::Escaped => Place::Quoted,
            Place::Quoted if Some(byte) == self.escape && byte != self.quote => Place::Escaped,
            Place::Quoted if byte == self.quote => Place::Field,
            Place::Quoted => Place::Quoted,
            Place::LineStart | Place::AfterReturn if Some(byte) == self.comment => Place::Comment,
            Place::Comment if byte != b'\n' => Place::Comment,
            _ if byte == b'\r' => Place::AfterReturn,
            _ if byte == b'\n' => Place::LineStart,
            _ if byte == self.quote => Place::Quoted,
            _ => Place::Field,
        }
    }
}

/// The objects of a JSON file, one per line, whether they stood in an array or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct JsonRecords {
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl JsonRecords {
    /// The chunk with a line end after each object and nowhere else.
    pub(crate) fn mend(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut mended = Vec::with_capacity(chunk.len() + chunk.len() / 16);
        for &byte in chunk {
            if self.is_in_text {
                mended.push(byte);
                self.is_in_text = self.is_escaped || byte != b'"';
                self.is_escaped = !self.is_escaped && byte == b'\\';
                continue;
            }
            let between = self.depth == 0;
            match byte {
                b'"' => self.is_in_text = true,
                b'{' => self.depth += 1,
                b'}' => self.depth = self.depth.saturating_sub(1),
                b'[' | b']' | b',' if between => continue,
                b'\n' | b'\r' | b'\t' | b' ' => {
                    if !between {
                        mended.push(b' ');
                    }
                    continue;
                }
                _ => {}
            }
            mended.push(byte);
            if byte == b'}' && self.depth == 0 {
                mended.push(b'\n');
            }
        }
        mended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the chunks, the text is the same.
    fn check(mend: impl Fn() -> Box<dyn FnMut(&[u8]) -> Vec<u8>>, text: &str, expected: &str) {
        for size in 1..=text.len() {
            let mut mend = mend();
            let mended: Vec<u8> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| mend(chunk))
                .collect();
            assert_eq!(
                String::from_utf8(mended).unwrap_or_default(),
                expected,
                "{size}"
            );
        }
    }

    #[test]
    fn empty_lines_are_records() {
        let with = |has_header| {
            move || {
                let mut lines = EmptyLines::new(b'"', None, Some(b'#'), has_header);
                Box::new(move |chunk: &[u8]| lines.mend(chunk)) as Box<dyn FnMut(&[u8]) -> Vec<u8>>
            }
        };
        check(with(true), "\na\n1\n\n3\n\n", "\na\n1\n\"\"\n3\n\"\"\n");
        check(with(false), "\n1", "\"\"\n1");
        check(with(true), "a\r\n1\r\n\r\n3\r\n", "a\r\n1\r\n\"\"\r\n3\r\n");
        check(
            with(true),
            "a\n\"x\n\n\"\"\n\"\n#c\n\n",
            "a\n\"x\n\n\"\"\n\"\n#c\n\"\"\n",
        );
    }

    #[test]
    fn objects_stand_in_lines() {
        let with = || {
            let mut records = JsonRecords::default();
            Box::new(move |chunk: &[u8]| records.mend(chunk)) as Box<dyn FnMut(&[u8]) -> Vec<u8>>
        };
        check(
            with,
            " [{\"a\":\n[1, 2]}, {\"b\": \"],{\\\"\"}\n]",
            "{\"a\": [1, 2]}\n{\"b\": \"],{\\\"\"}\n",
        );
        check(with, "{\"a\":{}}\n\n{}", "{\"a\":{}}\n{}\n");
    }
}
