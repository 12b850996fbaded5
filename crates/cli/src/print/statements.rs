//! Results as SQL: an INSERT statement per row, or rows of literals.
//! In: batches. Out: a line per row as it comes.
//! Invariant: every value is a literal that reads as the same value (literals.rs).

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::literals::{LiteralColumn, push_quoted};
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as SQL.
pub struct Statements<'a> {
    output: &'a mut Output,
    /// What stands before and after the values of a row.
    before: String,
    after: &'static str,
    between: &'a str,
}

impl<'a> Statements<'a> {
    /// `INSERT INTO "t" ("a", "b") VALUES (1, 'x');`
    pub fn inserts(look: &Look, schema: &SchemaRef, output: &'a mut Output) -> Self {
        let mut before = String::from("INSERT INTO ");
        push_quoted(&look.table, '"', &mut before);
        for (nth, field) in schema.fields().iter().enumerate() {
            before.push_str(if nth == 0 { " (" } else { ", " });
            push_quoted(field.name(), '"', &mut before);
        }
        before.push_str(") VALUES (");
        Statements {
            output,
            before,
            after: ");\n",
            between: ", ",
        }
    }

    /// `1,'x'`; writes the header.
    pub fn values(
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let between = look.separators.column.as_deref().unwrap_or(",");
        if look.has_header() {
            let mut names = String::new();
            for (nth, field) in schema.fields().iter().enumerate() {
                if nth > 0 {
                    names.push_str(between);
                }
                push_quoted(field.name(), '\'', &mut names);
            }
            writeln!(output, "{names}")?;
        }
        Ok(Statements {
            output,
            before: String::new(),
            after: "\n",
            between,
        })
    }
}

impl ResultWriter for Statements<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let columns = LiteralColumn::columns(batch)?;
        let literals = columns.iter().map(LiteralColumn::literals);
        let literals = literals.collect::<Result<Vec<_>, _>>()?;
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            line.push_str(&self.before);
            for (nth, column) in literals.iter().enumerate() {
                if nth > 0 {
                    line.push_str(self.between);
                }
                column.push(row, &mut line)?;
            }
            line.push_str(self.after);
            self.output.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(())
    }
}
