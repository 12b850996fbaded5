//! A column of strings most of which are parts of another column's: they point into its buffers, nothing is copied.
//!
//! In: a column of views; for each of its rows the part that is wanted, or another text. Out: a column of views.
//! Invariant: parts begin and end between characters, which is looked at.
//! Not here: what is wanted (anchored.rs).

use std::ops::Range;

use datafusion::arrow::array::{Array, ByteView, MAX_INLINE_VIEW_LEN, StringViewArray, make_view};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};

/// Strings that are no parts go to buffers of at most so many bytes: views count them in 31 bits.
const BUFFER_BYTES_MAX: usize = 1 << 30;

/// What a row gets.
pub(super) enum WantedText<'a> {
    /// Its text.
    Same,
    /// Some of its bytes.
    Part(Range<usize>),
    /// Another text.
    Other(&'a str),
}

/// The rows so far.
pub(super) struct StringParts<'a> {
    strings: &'a StringViewArray,
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    others: Vec<u8>,
    buffer_bytes_max: usize,
}

impl<'a> StringParts<'a> {
    /// No rows of these `strings` yet.
    pub fn new(strings: &'a StringViewArray) -> StringParts<'a> {
        StringParts {
            strings,
            views: Vec::with_capacity(strings.len()),
            buffers: strings.data_buffers().to_vec(),
            others: Vec::new(),
            buffer_bytes_max: BUFFER_BYTES_MAX,
        }
    }

    /// The next row.
    ///
    /// # Panics
    /// If all rows have theirs, or if a part does not begin and end between characters of the row's text.
    #[inline(always)]
    pub fn push(&mut self, wanted: WantedText<'_>) {
        let row = self.views.len();
        let own = self.strings.views()[row];
        self.views.push(match wanted {
            WantedText::Same => own,
            WantedText::Part(range) => {
                let text = self.strings.value(row);
                // Of a long text; a part of a short one is short.
                let view = ByteView::from(own);
                let start = view.offset.wrapping_add(range.start as u32);
                make_view(text[range].as_bytes(), view.buffer_index, start)
            }
            WantedText::Other(text) => {
                if self.others.len() + text.len() > self.buffer_bytes_max {
                    self.buffers.push(std::mem::take(&mut self.others).into());
                }
                let (buffer, start) = (self.buffers.len() as u32, self.others.len() as u32);
                if text.len() > MAX_INLINE_VIEW_LEN as usize {
                    self.others.extend_from_slice(text.as_bytes());
                }
                make_view(text.as_bytes(), buffer, start)
            }
        });
    }

    /// The column.
    ///
    /// # Panics
    /// If a row is missing.
    #[expect(unsafe_code, reason = "bytes were looked at when `push` took them")]
    pub fn finish(mut self) -> StringViewArray {
        assert_eq!(self.views.len(), self.strings.len(), "a text for each row");
        if !self.others.is_empty() {
            self.buffers.push(self.others.into());
        }
        let (views, nulls) = (
            ScalarBuffer::from(self.views),
            self.strings.nulls().cloned(),
        );
        // SAFETY: a view is one of `strings`, whose buffers come first, or a `str` that is inline. Else it is one in the
        // buffer and at the byte that it names: within its own text there, or where it was copied to.
        unsafe { StringViewArray::new_unchecked(views, self.buffers, nulls) }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayData, StringViewBuilder};

    use super::*;

    /// Each row's first and last bytes cut off, some in other words, of a column that begins within its buffers.
    #[test]
    fn parts_of_short_and_long_strings_are_strings() {
        let strings = [
            None,
            Some(""),
            Some("é"),
            Some("short"),
            Some("twelve bytes"),
        ];
        let long = [
            Some("thirteen byte"),
            None,
            Some("a text that lies in a buffer"),
            Some("and ünother"),
        ];
        let mut whole = StringViewBuilder::new().with_fixed_block_size(64);
        whole.extend(strings.into_iter().chain(long).cycle().take(40));
        let column = whole.finish().slice(3, 30);
        assert!(column.data_buffers().len() > 3);
        let mut parts = StringParts::new(&column);
        parts.buffer_bytes_max = 100;
        let mut expected = Vec::new();
        for (row, text) in column.iter().enumerate() {
            let own = text.unwrap_or("");
            let middle = own.char_indices().nth(1).map_or(0, |(at, _)| at)..own.len();
            let other = format!("{row}: {own}{own}");
            let (wanted, result) = match row % 3 {
                0 => (WantedText::Same, own),
                1 => (WantedText::Part(middle.clone()), &own[middle]),
                _ => (WantedText::Other(&other), other.as_str()),
            };
            parts.push(wanted);
            expected.push(text.is_some().then(|| result.to_string()));
        }
        let found = parts.finish();
        assert_eq!(found, StringViewArray::from_iter(expected));
        let data: ArrayData = found.into();
        data.validate_full().expect("views of valid strings");
    }

    #[test]
    #[should_panic(expected = "char boundary")]
    fn a_part_that_cuts_a_character_is_refused() {
        let column = StringViewArray::from_iter_values(["é"]);
        StringParts::new(&column).push(WantedText::Part(1..2));
    }
}
