//! Results as comma- or tab-separated values.
//! In: batches. Out: a header and a line per row, quoted as RFC 4180 has it.
//! Invariant: NULL is an empty field and an empty string is `""`, so that the two can be told apart. A field is quoted
//! if it holds the separator, a quote or a line end. Nested values are JSON.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::{Columns, Nested};
use super::{PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as separated values.
pub struct Delimited<'a> {
    output: &'a mut Output,
    separator: u8,
}

impl<'a> Delimited<'a> {
    /// Writes the header.
    pub fn new(
        separator: u8,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let mut line = Vec::new();
        for (nth, field) in schema.fields().iter().enumerate() {
            if nth > 0 {
                line.push(separator);
            }
            push_field(field.name(), separator, &mut line);
        }
        line.push(b'\n');
        output.write_all(&line)?;
        Ok(Delimited { output, separator })
    }
}

impl ResultWriter for Delimited<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = Columns::new(batch, Nested::Json)?;
        let mut cells = columns.cells()?;
        let (mut line, mut text) = (Vec::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for column in 0..batch.num_columns() {
                if column > 0 {
                    line.push(self.separator);
                }
                if cells.text(column, row, &mut text)? {
                    push_field(&text, self.separator, &mut line);
                }
            }
            line.push(b'\n');
            self.output.write_all(&line)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}

fn push_field(text: &str, separator: u8, line: &mut Vec<u8>) {
    let is_special = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.bytes().any(is_special) {
        line.extend_from_slice(text.as_bytes());
        return;
    }
    line.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_have_to_be() {
        for (text, separator, expected) in [
            ("plain text", b',', "plain text"),
            ("", b',', "\"\""),
            ("a,b", b',', "\"a,b\""),
            ("a,b", b'\t', "a,b"),
            ("a\tb", b'\t', "\"a\tb\""),
            ("say \"x\"", b',', "\"say \"\"x\"\"\""),
            ("two\nlines", b',', "\"two\nlines\""),
        ] {
            let mut line = Vec::new();
            push_field(text, separator, &mut line);
            assert_eq!(String::from_utf8(line).unwrap(), expected);
        }
    }
}
