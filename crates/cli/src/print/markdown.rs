//! Results as a Markdown table.
//! In: batches. Out: a line per row as it comes, so columns are not padded; numbers are aligned right by the header.
//! Invariant: a value never ends its cell or its line: `|` is escaped and a line end is `<br>`.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::cells::{Columns, Nested};
use super::types::is_number;
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as a Markdown table.
pub struct Markdown<'a> {
    output: &'a mut Output,
    null: &'a str,
}

impl<'a> Markdown<'a> {
    /// Writes the header.
    pub fn new(
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let (mut names, mut rule) = (String::from("|"), String::from("|"));
        for field in schema.fields() {
            push_cell(field.name(), &mut names);
            rule.push_str(if is_number(field.data_type()) {
                "---:|"
            } else {
                "---|"
            });
        }
        writeln!(output, "{names}\n{rule}")?;
        let null = look.null();
        Ok(Markdown { output, null })
    }
}

impl ResultWriter for Markdown<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = Columns::new(batch, Nested::Short)?;
        let mut cells = columns.cells()?;
        let (mut line, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            line.push('|');
            for column in 0..batch.num_columns() {
                let shown = if cells.text(column, row, &mut text)? {
                    &text
                } else {
                    self.null
                };
                push_cell(shown, &mut line);
            }
            line.push('\n');
            self.output.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}

fn push_cell(text: &str, line: &mut String) {
    line.push(' ');
    for c in text.chars() {
        match c {
            '|' => line.push_str("\\|"),
            '\n' => line.push_str("<br>"),
            '\r' => {}
            c => line.push(c),
        }
    }
    line.push_str(" |");
}
