//! Results as a LaTeX tabular.
//! In: batches. Out: a line per row as it comes; numbers stand at the right.
//! Invariant: a value never is a command: characters that mean something to LaTeX are written so that they print.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::rows::{LineForm, write_rows};
use super::types::is_number;
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as a LaTeX tabular.
pub struct Latex<'a> {
    output: &'a mut Output,
    null: &'a str,
}

impl<'a> Latex<'a> {
    /// Writes the header.
    pub fn new(
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let fields = schema.fields();
        let mut head = String::from("\\begin{tabular}{|");
        for field in fields {
            head.push_str(if is_number(field.data_type()) {
                "r|"
            } else {
                "l|"
            });
        }
        head.push_str("}\n\\hline\n");
        if look.has_header() {
            for (nth, field) in fields.iter().enumerate() {
                push_cell(nth, field.name(), &mut head);
            }
            head.push_str(" \\\\\n\\hline\n");
        }
        output.write_all(head.as_bytes())?;
        let null = look.null();
        Ok(Latex { output, null })
    }
}

impl ResultWriter for Latex<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let form = LineForm {
            begin: "",
            end: " \\\\\n",
            null: self.null,
        };
        write_rows(batch, &form, self.output, push_cell)
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(self.output.write_all(b"\\hline\n\\end{tabular}\n")?)
    }
}

/// The cell of the `nth` column.
fn push_cell(nth: usize, text: &str, latex: &mut String) {
    if nth > 0 {
        latex.push_str(" & ");
    }
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                latex.push('\\');
                latex.push(c);
            }
            '\\' => latex.push_str("\\textbackslash{}"),
            '~' => latex.push_str("\\textasciitilde{}"),
            '^' => latex.push_str("\\textasciicircum{}"),
            '<' => latex.push_str("\\textless{}"),
            '>' => latex.push_str("\\textgreater{}"),
            '|' => latex.push_str("\\textbar{}"),
            c if c.is_control() => latex.push(' '),
            c => latex.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped() {
        let mut latex = String::new();
        push_cell(0, "50% of a_b\\c", &mut latex);
        push_cell(1, "{x}^2\ny", &mut latex);
        assert_eq!(
            latex,
            "50\\% of a\\_b\\textbackslash{}c & \\{x\\}\\textasciicircum{}2 y"
        );
    }
}
