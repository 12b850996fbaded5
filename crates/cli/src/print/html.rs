//! Results as an HTML table.
//! In: batches. Out: a `<table>` with a row per line, as rows come.
//! Invariant: a value never is markup: `<`, `>`, `&` and quotes are entities, and a line end is `<br>`. Numbers stand at the right.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::rows::{LineForm, write_rows};
use super::types::is_number;
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// Writes a result as an HTML table.
pub struct Html<'a> {
    output: &'a mut Output,
    null: &'a str,
    /// The tag that opens a cell of each column.
    tags: Vec<&'static str>,
}

impl<'a> Html<'a> {
    /// Writes the header.
    pub fn new(
        look: &'a Look,
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Result<Self, PrintError> {
        let mut head = String::from("<table>\n");
        if look.has_header() {
            head.push_str("<thead>\n<tr>");
            for field in schema.fields() {
                head.push_str("<th>");
                push_escaped(field.name(), &mut head);
                head.push_str("</th>");
            }
            head.push_str("</tr>\n</thead>\n");
        }
        head.push_str("<tbody>\n");
        output.write_all(head.as_bytes())?;
        let tag = |is_number| match is_number {
            true => "<td style=\"text-align:right\">",
            false => "<td>",
        };
        let fields = schema.fields().iter();
        let tags = fields.map(|f| tag(is_number(f.data_type()))).collect();
        let null = look.null();
        Ok(Html { output, null, tags })
    }
}

impl ResultWriter for Html<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let form = LineForm {
            begin: "<tr>",
            end: "</tr>\n",
            null: self.null,
        };
        write_rows(batch, &form, self.output, |column, text, line| {
            line.push_str(self.tags[column]);
            push_escaped(text, line);
            line.push_str("</td>");
        })
    }

    fn finish(self: Box<Self>, _elapsed: Option<Duration>) -> Result<(), PrintError> {
        Ok(self.output.write_all(b"</tbody>\n</table>\n")?)
    }
}

fn push_escaped(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' => html.push_str("<br>"),
            '\r' => {}
            c => html.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        let mut html = String::new();
        push_escaped("<b>\"R&D\"</b>\nit's", &mut html);
        assert_eq!(html, "&lt;b&gt;&quot;R&amp;D&quot;&lt;/b&gt;<br>it&#39;s");
    }
}
