//! Results as blocks: a line `name = value` for each value, a blank line between rows.
//! In: batches. Out: a block per row as it comes.
//! Invariant: a value takes one line, with control characters as escapes.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cells::{Columns, Nested, on_one_line};
use super::table::{Side, push_fitted};
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as blocks.
pub struct Line<'a> {
    output: &'a mut Output,
    null: &'a str,
    /// `  name = `
    names: Vec<String>,
    rows: usize,
}

impl<'a> Line<'a> {
    /// For a result of this schema.
    pub fn new(look: &'a Look, schema: &SchemaRef, output: &'a mut Output) -> Self {
        let fields = schema.fields().iter();
        let names: Vec<String> = fields.map(|f| on_one_line(f.name()).into_owned()).collect();
        let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let names = names.iter().map(|name| {
            let mut start = String::new();
            push_fitted(name, width, Side::Right, &mut start);
            start + " = "
        });
        Line {
            output,
            null: look.null(),
            names: names.collect(),
            rows: 0,
        }
    }
}

impl ResultWriter for Line<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = Columns::new(batch, Nested::Short)?;
        let mut cells = columns.cells()?;
        let (mut block, mut text) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            block.clear();
            if self.rows > 0 {
                block.push('\n');
            }
            for (column, name) in self.names.iter().enumerate() {
                block.push_str(name);
                match cells.text(column, row, &mut text)? {
                    true => block.push_str(&on_one_line(&text)),
                    false => block.push_str(self.null),
                }
                block.push('\n');
            }
            self.output.write_all(block.as_bytes())?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}
