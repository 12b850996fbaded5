//! Mending: text that the host's readers misread, rewritten on its way to them.
//!
//! In: a file's bytes, chunk by chunk, cut anywhere.
//! Out: the same records in a form that the readers take for what it is.
//! Invariant: a chunk needs no other chunk; values are not touched.
//! Not here: reading files (lines.rs), where records end (quotes.rs).

use super::quotes::{Place, Quotes};

/// Empty lines of a CSV file of one column: records with nothing in them, which the reader would skip.
#[derive(Debug, Clone)]
pub(crate) struct EmptyLines {
    quotes: Quotes,
    /// Empty lines before the header are no records.
    is_before_header: bool,
}

impl EmptyLines {
    pub(crate) fn new(quotes: Quotes, has_header: bool) -> EmptyLines {
        EmptyLines {
            quotes,
            is_before_header: has_header,
        }
    }

    /// The chunk with `""` in empty lines.
    pub(crate) fn mend(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut mended = Vec::with_capacity(chunk.len());
        for &byte in chunk {
            let before = self.quotes.place();
            let is_start = before.is_line_start();
            let is_second_half = before == Place::AfterReturn && byte == b'\n';
            let is_end = matches!(byte, b'\n' | b'\r');
            if is_start && is_end && !is_second_half && !self.is_before_header {
                mended.extend_from_slice(&[self.quotes.quote(), self.quotes.quote()]);
            }
            mended.push(byte);
            let after = self.quotes.step(byte);
            if is_start && !after.is_line_start() && after != Place::Comment {
                self.is_before_header = false;
            }
        }
        mended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::format::{Kind, TextOptions};

    type Mend = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

    /// Whatever the chunks, the text is the same.
    fn check(mend: impl Fn() -> Mend, text: &str, expected: &str) {
        for size in 1..=text.len() {
            let mended: Vec<u8> = text.as_bytes().chunks(size).flat_map(mend()).collect();
            assert_eq!(
                String::from_utf8(mended).unwrap_or_default(),
                expected,
                "{size}"
            );
        }
    }

    fn with(has_header: bool) -> impl Fn() -> Mend {
        move || {
            let options = TextOptions {
                comment: Some(b'#'),
                ..TextOptions::default()
            };
            let mut lines = EmptyLines::new(Quotes::new(Kind::Csv, &options), has_header);
            Box::new(move |chunk: &[u8]| lines.mend(chunk))
        }
    }

    #[test]
    fn empty_lines_are_records() {
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
    fn quotes_inside_a_field_are_bytes() {
        check(
            with(true),
            "x\n5\" tall\n\nb\n\n\n",
            "x\n5\" tall\n\"\"\nb\n\"\"\n\"\"\n",
        );
        check(
            with(true),
            "x\na\"b\n\nc\"d\n\n",
            "x\na\"b\n\"\"\nc\"d\n\"\"\n",
        );
        check(
            with(true),
            "x\n\"a\"b\"\n\n\"\"\n\n",
            "x\n\"a\"b\"\n\"\"\n\"\"\n\"\"\n",
        );
        check(
            with(true),
            "\u{feff}\"a\n\nb\"\n\n",
            "\u{feff}\"a\n\nb\"\n\"\"\n",
        );
    }
}
