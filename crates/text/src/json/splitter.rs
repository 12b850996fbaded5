//! Where the records of a JSON file end.
//!
//! In: a file's bytes, chunk by chunk, cut anywhere. Out: how far whole records reach.
//! Invariant: a record is never cut; a chunk is looked at once.
//! Not here: what records say (cursor.rs).

use memchr::memrchr;

/// How the records of a file lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One per line: a file can be cut at any line end.
    Lines,
    /// In an array, over several lines or several in a line.
    Values,
}

/// Finds the ends of records.
#[derive(Debug, Clone)]
pub struct Splitter {
    layout: Layout,
    /// Of objects and arrays that are open.
    depth: usize,
    /// Depth at which records stand: 1 inside an array of them.
    base: usize,
    /// Whether records have stood in no array: then an array is one of them.
    is_open: bool,
    is_in_text: bool,
    is_escaped: bool,
}

impl Splitter {
    /// One that has seen nothing.
    pub fn new(layout: Layout) -> Splitter {
        Splitter {
            layout,
            depth: 0,
            base: 0,
            is_open: false,
            is_in_text: false,
            is_escaped: false,
        }
    }

    /// Up to where whole records reach in `fresh`; `None` = no record ends in it.
    pub fn end(&mut self, fresh: &[u8]) -> Option<usize> {
        match self.layout {
            Layout::Lines => memrchr(b'\n', fresh).map(|at| at + 1),
            Layout::Values => self.end_of_values(fresh),
        }
    }

    fn end_of_values(&mut self, fresh: &[u8]) -> Option<usize> {
        let mut end = None;
        for (at, &byte) in fresh.iter().enumerate() {
            if self.is_in_text {
                self.is_in_text = self.is_escaped || byte != b'"';
                self.is_escaped = !self.is_escaped && byte == b'\\';
            } else {
                self.step(byte);
            }
            // Between the digits of a number a record does not end.
            let may_end = matches!(byte, b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n');
            if may_end && !self.is_in_text && self.depth == self.base {
                end = Some(at + 1);
            }
        }
        end
    }

    fn step(&mut self, byte: u8) {
        if self.depth == 0 && byte.is_ascii_graphic() {
            if byte == b'[' && !self.is_open {
                self.base = 1;
                self.depth = 1;
                return;
            }
            self.is_open = true;
        }
        match byte {
            b'"' => self.is_in_text = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                // The end of the array of records.
                self.base = self.base.min(self.depth);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(layout: Layout, text: &str) -> Option<usize> {
        Splitter::new(layout).end(text.as_bytes())
    }

    #[test]
    fn records_are_whole() {
        assert_eq!(ends(Layout::Lines, "{}\n{}\n{"), Some(6));
        assert_eq!(ends(Layout::Values, "{\"a\":\n{}\n}{\"b\":\"}\""), Some(10));
        assert_eq!(ends(Layout::Values, "[{\"a\":1},\n{\"b\": [1,"), Some(10));
        assert_eq!(ends(Layout::Values, "[1,2"), Some(3));
        assert_eq!(ends(Layout::Values, "[[1,2],[3"), Some(7));
        assert_eq!(ends(Layout::Values, "{\"a"), None);
        assert_eq!(ends(Layout::Values, "[1]\n[2,3"), Some(7));
        assert_eq!(ends(Layout::Values, "{}\n[1,"), Some(3));
    }

    #[test]
    fn chunks_may_be_cut_anywhere() {
        let text = "[{\"a\":\"x\\\"}\"}, {\"b\":[1,{}]}]\n";
        let whole = ends(Layout::Values, text);
        for size in 1..text.len() {
            let (mut splitter, mut last) = (Splitter::new(Layout::Values), None);
            for (index, chunk) in text.as_bytes().chunks(size).enumerate() {
                last = splitter.end(chunk).map(|end| index * size + end).or(last);
            }
            assert_eq!(last, whole, "{size}");
        }
    }
}
