//! A drawn table: names, types, the first and the last rows, and a footer with the row count and the time.
//! In: batches. Out: lines and text, drawn as a [`Style`] says, at most as wide as [`Fit`] says.
//! Invariant: memory does not grow with the result: the first rows are kept as text, of the others only the last ones.
//! Not here: which columns are drawn how wide (layout.rs) and how a value reads (cells.rs).

use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use grouse::sql_name;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cells::{Columns, Nested, on_one_line};
use super::layout::{self, Layout, Wish};
use super::types::{is_number, may_be_cut};
use super::{Look, PrintError, ResultWriter};
use crate::output::Output;

/// How narrow a column of text may get, and a name or type over narrower values.
const TEXT_LEAST: usize = 12;

/// The size that a table may have.
#[derive(Debug, Clone, Copy)]
pub struct Fit {
    /// Terminal cells, if there is a limit.
    pub width: Option<usize>,
    /// Rows shown of a larger result, half of them from its end.
    pub rows_max: usize,
}

/// What a table is drawn with.
#[derive(Debug)]
pub struct Style {
    top: [char; 3],
    middle: [char; 3],
    bottom: [char; 3],
    across: char,
    down: char,
    types: Types,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Types {
    Shown,
    Hidden,
}

/// Box-drawing characters, with types.
pub const TYPED: Style = Style {
    top: ['┌', '┬', '┐'],
    middle: ['├', '┼', '┤'],
    bottom: ['└', '┴', '┘'],
    across: '─',
    down: '│',
    types: Types::Shown,
};

/// Box-drawing characters, without types.
pub const BOX: Style = Style {
    types: Types::Hidden,
    ..TYPED
};

/// Characters that every terminal has, without types.
pub const ASCII: Style = Style {
    top: ['+'; 3],
    middle: ['+'; 3],
    bottom: ['+'; 3],
    across: '-',
    down: '|',
    types: Types::Hidden,
};

/// Writes a result as a table.
pub struct Table<'a> {
    style: &'static Style,
    look: &'a Look,
    output: &'a mut Output,
    schema: SchemaRef,
    fit: Fit,
    head: Vec<Row>,
    /// The last rows, as slices of their batches.
    tail: VecDeque<RecordBatch>,
    tail_rows: usize,
    rows: usize,
}

/// The text of each value.
type Row = Vec<String>;

impl<'a> Table<'a> {
    /// For a result of this schema.
    pub fn new(
        style: &'static Style,
        (look, fit): (&'a Look, Fit),
        schema: &SchemaRef,
        output: &'a mut Output,
    ) -> Self {
        let (schema, tail) = (schema.clone(), VecDeque::new());
        Table {
            style,
            look,
            output,
            schema,
            fit,
            head: Vec::new(),
            tail,
            tail_rows: 0,
            rows: 0,
        }
    }

    fn head_max(&self) -> usize {
        self.fit.rows_max.div_ceil(2)
    }

    fn tail_max(&self) -> usize {
        self.fit.rows_max - self.head_max()
    }

    /// Keeps `batch` if some of the last rows may be its, and lets go of what no longer can be.
    fn keep_tail(&mut self, batch: RecordBatch) {
        let (rows, max) = (batch.num_rows(), self.tail_max());
        let skipped = rows.saturating_sub(max);
        self.tail_rows += rows - skipped;
        self.tail.push_back(batch.slice(skipped, rows - skipped));
        while let Some(first) = self.tail.front()
            && self.tail_rows - first.num_rows() >= max
        {
            self.tail_rows -= first.num_rows();
            self.tail.pop_front();
        }
    }

    fn tail_as_text(&self) -> Result<Vec<Row>, PrintError> {
        let mut rows = Vec::new();
        for batch in &self.tail {
            append_rows(batch, batch.num_rows(), self.look.null(), &mut rows)?;
        }
        let surplus = rows.len().saturating_sub(self.tail_max());
        Ok(rows.split_off(surplus))
    }

    fn columns(&self, tail: &[Row]) -> Vec<DrawnColumn> {
        let rows = || self.head.iter().chain(tail);
        let column = |(nth, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
            let values = rows().map(|row| row[nth].width()).max().unwrap_or(0);
            let type_name = match self.style.types {
                Types::Shown => sql_name(field.data_type()),
                Types::Hidden => String::new(),
            };
            let mut column = DrawnColumn::new((field.name(), type_name), field.data_type(), values);
            column.resize(self.look.widths.get(nth).copied().unwrap_or(0));
            column
        };
        self.schema
            .fields()
            .iter()
            .enumerate()
            .map(column)
            .collect()
    }

    fn footer(&self, shown: usize, layout: &Layout, elapsed: Option<Duration>) -> String {
        let mut footer = count(self.rows, "row");
        if shown < self.rows {
            footer += &format!(" ({} shown)", grouped(shown));
        }
        if layout.hidden > 0 {
            let all = self.schema.fields().len();
            footer += &format!(", {} ({} shown)", count(all, "column"), all - layout.hidden);
        }
        if let Some(elapsed) = elapsed {
            footer += &format!(" in {}", seconds(elapsed));
        }
        footer
    }
}

impl ResultWriter for Table<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        self.rows += batch.num_rows();
        let to_head = batch.num_rows().min(self.head_max() - self.head.len());
        append_rows(batch, to_head, self.look.null(), &mut self.head)?;
        if to_head < batch.num_rows() && self.tail_max() > 0 {
            self.keep_tail(batch.slice(to_head, batch.num_rows() - to_head));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, elapsed: Option<Duration>) -> Result<(), PrintError> {
        let tail = self.tail_as_text()?;
        let columns = self.columns(&tail);
        let wishes: Vec<Wish> = columns.iter().map(|c| c.wish).collect();
        let layout = layout::fit(&wishes, self.fit.width);
        let shown = self.head.len() + tail.len();
        let footer = self.footer(shown, &layout, elapsed);
        let elided = shown < self.rows;
        let mut text = String::new();
        let drawing = Drawing {
            style: self.style,
            columns: &columns,
            layout: &layout,
        };
        drawing.rule(self.style.top, &mut text);
        if self.look.has_header() {
            drawing.header(&mut text);
        }
        for row in &self.head {
            drawing.row(|c| (row[c].as_str(), columns[c].side), &mut text);
        }
        if elided {
            for _ in 0..3 {
                drawing.row(|c| ("·", columns[c].side), &mut text);
            }
        }
        for row in &tail {
            drawing.row(|c| (row[c].as_str(), columns[c].side), &mut text);
        }
        drawing.rule(self.style.bottom, &mut text);
        text.push_str(&footer);
        text.push('\n');
        Ok(self.output.write_all(text.as_bytes())?)
    }
}

fn append_rows(
    batch: &RecordBatch,
    count: usize,
    null: &str,
    rows: &mut Vec<Row>,
) -> Result<(), PrintError> {
    if count == 0 {
        return Ok(());
    }
    let columns = Columns::new(&batch.slice(0, count), Nested::Short)?;
    let mut cells = columns.cells()?;
    let mut text = String::new();
    for row in 0..count {
        let mut strings = Row::with_capacity(batch.num_columns());
        for column in 0..batch.num_columns() {
            let present = cells.text(column, row, &mut text)?;
            strings.push(if present {
                on_one_line(&text).into_owned()
            } else {
                null.to_owned()
            });
        }
        rows.push(strings);
    }
    Ok(())
}

/// Where a value stands in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At the left.
    Left,
    /// At the right.
    Right,
}

struct DrawnColumn {
    name: String,
    type_name: String,
    side: Side,
    wish: Wish,
    /// The least that its values can do with.
    values_least: usize,
}

impl DrawnColumn {
    fn new((name, type_name): (&str, String), data_type: &DataType, values: usize) -> DrawnColumn {
        let name = on_one_line(name).into_owned();
        let title = name.width().max(type_name.width());
        let side = if is_number(data_type) {
            Side::Right
        } else {
            Side::Left
        };
        let values_least = if may_be_cut(data_type) {
            values.min(TEXT_LEAST)
        } else {
            values
        };
        let wish = Wish {
            full: title.max(values),
            least: title.min(TEXT_LEAST).max(values_least),
        };
        DrawnColumn {
            name,
            type_name,
            side,
            wish,
            values_least,
        }
    }

    /// As wide as `.width` says, if the values allow it; a negative width puts them at the right.
    fn resize(&mut self, width: isize) {
        if width < 0 {
            self.side = Side::Right;
        }
        if width != 0 {
            self.wish.full = width.unsigned_abs().max(self.values_least);
            self.wish.least = self.wish.least.min(self.wish.full);
        }
    }
}

struct Drawing<'a> {
    style: &'static Style,
    columns: &'a [DrawnColumn],
    layout: &'a Layout,
}

impl Drawing<'_> {
    fn header(&self, text: &mut String) {
        self.row(
            |c| (self.columns[c].name.as_str(), self.columns[c].side),
            text,
        );
        if self.style.types == Types::Shown {
            self.row(
                |c| (self.columns[c].type_name.as_str(), self.columns[c].side),
                text,
            );
        }
        self.rule(self.style.middle, text);
    }

    /// The widths from left to right; the gap has no column.
    fn slots(&self) -> impl Iterator<Item = (Option<usize>, usize)> {
        let some = |&(column, width): &(usize, usize)| (Some(column), width);
        let gap = (self.layout.hidden > 0).then_some((None, 1));
        self.layout
            .front
            .iter()
            .map(some)
            .chain(gap)
            .chain(self.layout.back.iter().map(some))
    }

    fn rule(&self, [left, cross, right]: [char; 3], text: &mut String) {
        for (nth, (_, width)) in self.slots().enumerate() {
            text.push(if nth == 0 { left } else { cross });
            text.extend(std::iter::repeat_n(self.style.across, width + 2));
        }
        text.push(right);
        text.push('\n');
    }

    fn row<'t>(&self, value: impl Fn(usize) -> (&'t str, Side), text: &mut String) {
        for (column, width) in self.slots() {
            let (cell, side) = column.map_or(("…", Side::Left), &value);
            text.push(self.style.down);
            text.push(' ');
            push_fitted(cell, width, side, text);
            text.push(' ');
        }
        text.push(self.style.down);
        text.push('\n');
    }
}

/// Appends `cell` padded to `width`, or cut to it with a `…` at its end.
pub fn push_fitted(cell: &str, width: usize, side: Side, text: &mut String) {
    let natural = cell.width();
    if natural > width {
        let mut used = 0;
        for c in cell.chars() {
            let next = used + c.width().unwrap_or(0);
            if next + 1 > width {
                break;
            }
            used = next;
            text.push(c);
        }
        text.push('…');
        text.extend(std::iter::repeat_n(' ', width.saturating_sub(used + 1)));
        return;
    }
    let blanks = std::iter::repeat_n(' ', width - natural);
    match side {
        Side::Left => {
            text.push_str(cell);
            text.extend(blanks);
        }
        Side::Right => {
            text.extend(blanks);
            text.push_str(cell);
        }
    }
}

/// `1 row`, `2,000 rows`
fn count(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// `1,234,567`
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `0.012 s`
pub fn seconds(elapsed: Duration) -> String {
    format!("{:.3} s", elapsed.as_secs_f64())
}

/// Whether this is what EXPLAIN answers: plans, which are text of many lines and not values.
pub fn is_explanation(schema: &SchemaRef) -> bool {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    names == ["plan_type", "plan"]
        && schema
            .fields()
            .iter()
            .all(|f| matches!(f.data_type(), DataType::Utf8))
}

/// Writes the answer of EXPLAIN as it stands.
pub struct Explanation<'a> {
    output: &'a mut Output,
}

impl<'a> Explanation<'a> {
    /// For a result that [`is_explanation`].
    pub fn new(output: &'a mut Output) -> Self {
        Explanation { output }
    }
}

impl ResultWriter for Explanation<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), PrintError> {
        let (kinds, plans) = (batch.column(0), batch.column(1));
        let (kinds, plans) = (kinds.as_string::<i32>(), plans.as_string::<i32>());
        for row in 0..batch.num_rows() {
            if kinds.is_valid(row) && plans.is_valid(row) {
                writeln!(
                    self.output,
                    "{}\n{}\n",
                    kinds.value(row),
                    plans.value(row).trim_end()
                )?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, elapsed: Option<Duration>) -> Result<(), PrintError> {
        if let Some(elapsed) = elapsed {
            writeln!(self.output, "{}", seconds(elapsed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(cell: &str, width: usize, side: Side) -> String {
        let mut text = String::new();
        push_fitted(cell, width, side, &mut text);
        text
    }

    #[test]
    fn cells_are_padded_or_cut_to_their_width() {
        assert_eq!(fitted("ab", 4, Side::Left), "ab  ");
        assert_eq!(fitted("ab", 4, Side::Right), "  ab");
        assert_eq!(fitted("abcdef", 4, Side::Left), "abc…");
        assert_eq!(fitted("日本語", 6, Side::Left), "日本語");
        assert_eq!(fitted("日本語", 4, Side::Left), "日… ");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(0, "row"), "0 rows");
        assert_eq!(count(1_234_567, "row"), "1,234,567 rows");
        assert_eq!(grouped(999), "999");
    }
}
