//! Results as a Markdown table.
//! In: batches. Out: a line per row as it comes, so columns are not padded; numbers are aligned right by the header.
//! Invariant: a value never ends its cell or its line: `|` is escaped and a line end is `<br>`.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::rows::{LineForm, write_rows};
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
        let form = LineForm {
            begin: "|",
            end: "\n",
            null: self.null,
        };
        write_rows(batch, &form, self.output, |_, text, line| {
            push_cell(text, line)
        })
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
