//! Results in columns without borders: names, a rule, values one below the other.
//! In: batches. Out: lines; numbers stand at the right of their column.
//! Invariant: widths are those that were asked for, else those of the first rows, which are held until there are enough of them.
//! A wider value further down moves what follows it and is whole. Only text with a width that was asked for is cut.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::cells::{Columns, Nested, on_one_line};
use super::table::{Side, push_fitted};
use super::types::{is_number, may_be_cut};
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Rows that widths come from.
const FIRST_ROWS: usize = 1_000;
/// Blanks between two columns.
const BETWEEN: &str = "  ";

/// Writes a result in columns.
pub struct Column<'a> {
    output: &'a mut Output,
    look: &'a Look,
    columns: Vec<Aligned>,
    rows: Rows,
}

struct Aligned {
    name: String,
    side: Side,
    width: usize,
    /// Whether values give way to the width that was asked for.
    is_cut: bool,
    is_asked: bool,
}

/// What becomes of rows.
enum Rows {
    /// They are held, and widen their columns.
    Held(Vec<Vec<String>>),
    /// The header is out, and rows follow it.
    Written,
}

impl<'a> Column<'a> {
    /// For a result of this schema.
    pub fn new(look: &'a Look, schema: &SchemaRef, output: &'a mut Output) -> Self {
        let columns = schema.fields().iter().enumerate().map(|(nth, field)| {
            let asked = look.widths.get(nth).copied().unwrap_or(0);
            let is_right = is_number(field.data_type()) || asked < 0;
            let name = on_one_line(field.name()).into_owned();
            Aligned {
                side: if is_right { Side::Right } else { Side::Left },
                width: match asked {
                    0 if look.has_header() => name.width(),
                    asked => asked.unsigned_abs(),
                },
                is_cut: asked != 0 && may_be_cut(field.data_type()),
                is_asked: asked != 0,
                name,
            }
        });
        Column {
            output,
            look,
            columns: columns.collect(),
            rows: Rows::Held(Vec::new()),
        }
    }

    /// Writes the header and what has been held.
    fn begin(&mut self) -> Result<(), PrintError> {
        let Rows::Held(rows) = std::mem::replace(&mut self.rows, Rows::Written) else {
            return Ok(());
        };
        for (nth, column) in self.columns.iter_mut().enumerate() {
            if !column.is_asked {
                let widest = rows.iter().map(|row| row[nth].width()).max();
                column.width = column.width.max(widest.unwrap_or(0));
            }
        }
        if self.look.has_header() {
            let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
            let names = self.line(&names);
            let rules: Vec<String> = self.columns.iter().map(|c| "-".repeat(c.width)).collect();
            let rules = self.line(&rules);
            self.output.write_all(names.as_bytes())?;
            self.output.write_all(rules.as_bytes())?;
        }
        for row in &rows {
            let line = self.line(row);
            self.output.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn line<T: AsRef<str>>(&self, cells: &[T]) -> String {
        let mut line = String::new();
        for (nth, (cell, column)) in cells.iter().zip(&self.columns).enumerate() {
            let cell = cell.as_ref();
            if nth > 0 {
                line.push_str(BETWEEN);
            }
            let width = match column.is_cut {
                true => column.width,
                false => column.width.max(cell.width()),
            };
            push_fitted(cell, width, column.side, &mut line);
        }
        line.truncate(line.trim_end_matches(' ').len());
        line.push('\n');
        line
    }
}

impl ResultWriter for Column<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = Columns::new(batch, Nested::Short)?;
        let mut cells = columns.cells()?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let mut strings = Vec::with_capacity(batch.num_columns());
            for column in 0..batch.num_columns() {
                strings.push(match cells.text(column, row, &mut text)? {
                    true => on_one_line(&text).into_owned(),
                    false => self.look.null().to_owned(),
                });
            }
            if let Rows::Held(rows) = &mut self.rows {
                rows.push(strings);
                if rows.len() == FIRST_ROWS {
                    self.begin()?;
                }
            } else {
                let line = self.line(&strings);
                self.output.write_all(line.as_bytes())?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        self.begin()
    }
}
