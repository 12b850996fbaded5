//! Results as values with commas, tabs or other text between them.
//! In: batches. Out: a header and a line per row; but for `list` quoted as RFC 4180 has it.
//! Invariant: where fields are quoted, NULL is the text that stands for it and an equal string has quotes. The two can be told
//! apart: NULL is an empty field, an empty string is `""`. A field is quoted as well if it holds the separator, a quote or a
//! line end. Nested values are JSON.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::{Columns, Nested};
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as separated values.
pub struct Delimited<'a> {
    output: &'a mut Output,
    form: Separation<'a>,
}

/// How values stand beside each other.
#[derive(Debug, Clone, Copy)]
struct Separation<'a> {
    separator: &'a str,
    row_end: &'a str,
    null: &'a str,
    quotes: Quotes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    WhereNeeded,
    Never,
}

impl<'a> Delimited<'a> {
    /// Values with `separator` between them and quotes where they are needed; writes the header.
    pub fn quoted(
        separator: &'a str,
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let form = Separation {
            separator: look.separators.column.as_deref().unwrap_or(separator),
            row_end: look.separators.row.as_deref().unwrap_or("\n"),
            null: look.null.as_deref().unwrap_or(""),
            quotes: Quotes::WhereNeeded,
        };
        Delimited { output, form }.with_header(look, schema)
    }

    /// Values as they are, with `|` between them; writes the header.
    pub fn list(
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let form = Separation {
            separator: look.separators.column.as_deref().unwrap_or("|"),
            row_end: look.separators.row.as_deref().unwrap_or("\n"),
            null: look.null(),
            quotes: Quotes::Never,
        };
        Delimited { output, form }.with_header(look, schema)
    }

    fn with_header(self, look: &Look, schema: &SchemaRef) -> Result<Self, PrintError> {
        if !look.has_header() {
            return Ok(self);
        }
        let mut line = String::new();
        for (nth, field) in schema.fields().iter().enumerate() {
            if nth > 0 {
                line.push_str(self.form.separator);
            }
            self.form.push(field.name(), &mut line);
        }
        line.push_str(self.form.row_end);
        self.output.write_all(line.as_bytes())?;
        Ok(self)
    }
}

impl ResultWriter for Delimited<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = Columns::new(batch, Nested::Json)?;
        let mut cells = columns.cells()?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for column in 0..batch.num_columns() {
                if column > 0 {
                    line.push_str(self.form.separator);
                }
                if cells.text(column, row, &mut text)? {
                    self.form.push(&text, &mut line);
                } else {
                    line.push_str(self.form.null);
                }
            }
            line.push_str(self.form.row_end);
            self.output.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}

impl Separation<'_> {
    fn push(&self, text: &str, line: &mut String) {
        if self.quotes == Quotes::Never || !self.has_to_be_quoted(text) {
            line.push_str(text);
            return;
        }
        line.push('"');
        for (nth, part) in text.split('"').enumerate() {
            if nth > 0 {
                line.push_str("\"\"");
            }
            line.push_str(part);
        }
        line.push('"');
    }

    fn has_to_be_quoted(&self, text: &str) -> bool {
        text.is_empty()
            || text == self.null
            || text
                .bytes()
                .any(|byte| matches!(byte, b'"' | b'\n' | b'\r'))
            || text.contains(self.separator)
            || text.contains(self.row_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, separator: &str, null: &str, expected: &str) {
        let form = Separation {
            separator,
            row_end: "\n",
            null,
            quotes: Quotes::WhereNeeded,
        };
        let mut line = String::new();
        form.push(text, &mut line);
        assert_eq!(line, expected);
    }

    #[test]
    fn fields_are_quoted_where_they_have_to_be() {
        for (text, separator, expected) in [
            ("plain text", ",", "plain text"),
            ("", ",", "\"\""),
            ("a,b", ",", "\"a,b\""),
            ("a,b", "\t", "a,b"),
            ("a\tb", "\t", "\"a\tb\""),
            ("a::b", "::", "\"a::b\""),
            ("say \"x\"", ",", "\"say \"\"x\"\"\""),
            ("two\nlines", ",", "\"two\nlines\""),
        ] {
            check(text, separator, "", expected);
        }
    }

    #[test]
    fn a_string_that_reads_as_null_is_quoted() {
        check("NULL", ",", "NULL", "\"NULL\"");
        check("NULL", ",", "-", "NULL");
    }
}
