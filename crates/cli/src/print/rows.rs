//! Rows in markup: a line per row, and in it each cell between signs of the format.
//! In: a batch, what begins and ends a line. Out: the lines.
//! Invariant: NULL is the text that stands for it, as everywhere.
//! Not here: how a cell is written (html.rs, latex.rs, markdown.rs); rows whose cells are quoted (delimited.rs).

use std::io::Write;

use arrow::array::RecordBatch;

use super::PrintError;
use super::cells::{Columns, Nested};
use crate::output::Output;

/// What stands around a line of cells, and for NULL.
pub struct LineForm<'a> {
    pub begin: &'static str,
    pub end: &'static str,
    pub null: &'a str,
}

/// Writes a line per row of `batch`; `push` adds the text of a cell of the column to the line.
pub fn write_rows(
    batch: &RecordBatch,
    form: &LineForm<'_>,
    output: &mut Output,
    mut push: impl FnMut(usize, &str, &mut String),
) -> Result<(), PrintError> {
    let columns = Columns::new(batch, Nested::Short)?;
    let mut cells = columns.cells()?;
    let (mut line, mut text) = (String::new(), String::new());
    for row in 0..batch.num_rows() {
        line.clear();
        line.push_str(form.begin);
        for column in 0..batch.num_columns() {
            let is_there = cells.text(column, row, &mut text)?;
            push(column, if is_there { &text } else { form.null }, &mut line);
        }
        line.push_str(form.end);
        output.write_all(line.as_bytes())?;
    }
    Ok(())
}
