//! Decoding: blocks of records as batches of the table's columns.
//!
//! In: a block, what the table's files are like, which columns are wanted.
//! Out: batches, and what was left out of them.
//! Invariant: a text that is no value of its column's type is an error with its line, column and the option that helps.
//! Its record is left out instead where that was asked for; nothing becomes NULL by itself.
//! Not here: reading (source.rs), the types of columns (table.rs), what becomes of records that are left out (rejects.rs).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use encoding_rs::Encoding;
use object_store::path::Path;

use super::blocks::Block;
use super::dialect::{Dialect, Header};
use super::rejects::{Reject, RejectKind, Rejects};
use crate::error::types::type_name;
use grouse_text::csv::columns::{Cells, Forms, built, good_rows};
use grouse_text::csv::records::{Misfit, RecordShape, Short, Table, Unfit, Why};
use grouse_text::csv::values::DateForm;

/// The fields of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldLayout {
    /// Fields of a record.
    pub(crate) fields: usize,
    /// For each column of the table its field.
    pub(crate) of_columns: Vec<Option<usize>>,
}

/// How all files of a table are read.
#[derive(Debug)]
pub(crate) struct ReadingRules {
    pub(crate) dialect: Dialect,
    pub(crate) forms: Forms,
    /// For each column of the table how its dates are written.
    pub(crate) dates: Vec<DateForm>,
    /// For each column of the table whether no text is NULL.
    pub(crate) never_null: Vec<bool>,
    pub(crate) short: Short,
    pub(crate) misfit: Misfit,
    pub(crate) record_bytes_max: usize,
    pub(crate) encoding: Option<&'static Encoding>,
    /// Of most files.
    pub(crate) layout: FieldLayout,
    /// Of files whose columns are found by their names.
    pub(crate) layouts: HashMap<Path, FieldLayout>,
    /// Where records go that are left out.
    pub(crate) rejects: Option<Arc<Rejects>>,
}

impl ReadingRules {
    pub(crate) fn layout(&self, file: &Path) -> &FieldLayout {
        self.layouts.get(file).unwrap_or(&self.layout)
    }
}

/// Where a wanted column comes from.
#[derive(Debug, Clone)]
enum ColumnOrigin {
    /// Its slot, how its dates are written, and how its values are.
    Slot(usize, DateForm, Arc<Forms>),
    Missing,
}

/// Makes batches of one file.
pub(crate) struct Decode {
    schema: SchemaRef,
    origins: Vec<ColumnOrigin>,
    shape: RecordShape,
    batch_rows: usize,
}

/// Something that does not fit, in a line of a block.
pub(crate) struct Bad {
    /// Where in the block the record begins.
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// Records of a block.
pub(crate) struct Decoded {
    /// `None` = the block has ended.
    pub(crate) batch: Option<RecordBatch>,
    /// Where the next ones begin.
    pub(crate) next: usize,
    /// Those between that were left out, if somebody keeps them.
    pub(crate) rejects: Vec<Reject>,
}

impl Decode {
    /// `schema` has the wanted columns, `columns` their numbers in the table.
    pub(crate) fn new(
        rules: &ReadingRules,
        layout: &FieldLayout,
        (schema, columns): (SchemaRef, &[usize]),
        batch_rows: usize,
    ) -> Decode {
        let (usual, never_null) = both_forms(&rules.forms);
        let forms_of = |column: usize| match rules.never_null.get(column) {
            Some(true) => Arc::clone(&never_null),
            _ => Arc::clone(&usual),
        };
        let mut slots = vec![None; layout.fields];
        let mut wanted = 0;
        let origins = columns.iter().map(|column| {
            let Some(field) = layout.of_columns.get(*column).copied().flatten() else {
                return ColumnOrigin::Missing;
            };
            let slot = *slots[field].get_or_insert_with(|| {
                wanted += 1;
                wanted as u32 - 1
            });
            let form = rules.dates[*column].clone();
            ColumnOrigin::Slot(slot as usize, form, forms_of(*column))
        });
        let origins = origins.collect();
        // Slots are numbered in the order of the fields, which is that of the spans.
        let (slots, origins) = in_order_of_fields(slots, origins);
        Decode {
            shape: RecordShape {
                grammar: rules.dialect.grammar,
                columns: layout.fields,
                slots,
                wanted,
                short: rules.short,
                misfit: rules.misfit,
            },
            schema,
            origins,
            batch_rows,
        }
    }

    /// Where the first record of a block begins that is none of names.
    pub(crate) fn first(&self, block: &Block) -> usize {
        match block.header {
            Header::Names => self.shape.after_first(block.text.as_bytes(), 0),
            Header::Absent => 0,
        }
    }

    /// The line of a place in a block.
    pub(crate) fn line_at(&self, block: &Block, at: usize) -> u64 {
        let before = &block.text.as_bytes()[..at];
        block.lines_before + self.shape.grammar.lines_in(before) + 1
    }

    /// The records from `at`.
    pub(crate) fn batch(
        &self,
        block: &Block,
        at: usize,
        table: &mut Table,
    ) -> Result<Decoded, Bad> {
        let bytes = block.text.as_bytes();
        let next = self
            .shape
            .read(bytes, at, self.batch_rows, table)
            .map_err(|wrong| self.unfit(wrong))?;
        let (batch, no_values) = match table.rows() {
            0 => (None, Vec::new()),
            _ => {
                let (batch, no_values) = self.columns(&block.text, table)?;
                (Some(batch), no_values)
            }
        };
        Ok(Decoded {
            batch,
            next,
            rejects: match self.shape.misfit {
                Misfit::List => self.rejects(block, table, no_values),
                Misfit::Fail | Misfit::Drop => Vec::new(),
            },
        })
    }

    /// The batch without the rows that have a string which is no value, and where these strings are: column and row.
    fn columns(
        &self,
        text: &str,
        table: &Table,
    ) -> Result<(RecordBatch, Vec<(usize, usize)>), Bad> {
        let mut no_values = Vec::new();
        let mut arrays = Vec::with_capacity(self.origins.len());
        for (column, origin) in self.origins.iter().enumerate() {
            let (array, bad) = self.column(column, origin, text, table)?;
            if let Some(row) = bad.first()
                && self.shape.misfit == Misfit::Fail
            {
                return Err(self.not_read(column, *row, text, table));
            }
            no_values.extend(bad.into_iter().map(|row| (column, row)));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(table.rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let batch = match no_values.is_empty() {
            true => batch,
            false => {
                let rows: Vec<usize> = no_values.iter().map(|(_, row)| *row).collect();
                let good = good_rows(table.rows(), &rows);
                batch.and_then(|batch| filter_record_batch(&batch, &good))
            }
        };
        let batch = batch.map_err(|error| Bad {
            at: table.start(0),
            message: error.to_string(),
        })?;
        Ok((batch, no_values))
    }

    fn column(
        &self,
        column: usize,
        origin: &ColumnOrigin,
        text: &str,
        table: &Table,
    ) -> Result<(ArrayRef, Vec<usize>), Bad> {
        let kind = self.schema.field(column).data_type();
        let (cells, form) = match origin {
            ColumnOrigin::Missing => return Ok((new_null_array(kind, table.rows()), Vec::new())),
            ColumnOrigin::Slot(slot, form, forms) => {
                (self.cells((*slot, forms), text, table), form)
            }
        };
        built(&cells, kind, form).map_err(|error| Bad {
            at: table.start(0),
            message: format!("column '{}': {error}", self.schema.field(column).name()),
        })
    }

    fn cells<'a>(
        &'a self,
        (slot, forms): (usize, &'a Forms),
        text: &'a str,
        table: &'a Table,
    ) -> Cells<'a> {
        Cells {
            table,
            slot,
            text,
            grammar: &self.shape.grammar,
            forms,
        }
    }

    /// The error of a text that is no value.
    fn not_read(&self, column: usize, row: usize, text: &str, table: &Table) -> Bad {
        let name = self.schema.field(column).name();
        Bad {
            at: table.start(row),
            message: format!(
                "column '{name}': {}; read_csv('…', types => {{'{name}': 'VARCHAR'}}) reads the column as text, sample_size => -1 looks at all rows before, ignore_errors => true leaves such rows out",
                self.no_value(column, row, text, table)
            ),
        }
    }

    /// What is wrong with a text that is no value.
    fn no_value(&self, column: usize, row: usize, text: &str, table: &Table) -> String {
        let value = match &self.origins[column] {
            ColumnOrigin::Slot(slot, _, forms) => self.cells((*slot, forms), text, table).text(row),
            _ => None,
        };
        format!(
            "the value '{}' is no {}{}",
            shortened(&value.unwrap_or_default()),
            type_name(self.schema.field(column).data_type()),
            self.form_of(column),
        )
    }

    /// The records that were left out, in their order.
    fn rejects(&self, block: &Block, table: &Table, no_values: Vec<(usize, usize)>) -> Vec<Reject> {
        let unfit = table.left_out().iter().map(|record| {
            let (kind, field) = match record.why {
                Why::Torn(field) => (RejectKind::TornQuotes, field),
                Why::Fields(found) if found < self.shape.columns => (RejectKind::TooFew, found),
                Why::Fields(_) => (RejectKind::TooMany, self.shape.columns),
            };
            (record.at, kind, field, self.misfit(record.why))
        });
        let no_values = no_values.into_iter().filter_map(|(column, row)| {
            let ColumnOrigin::Slot(slot, ..) = &self.origins[column] else {
                return None;
            };
            let field = (self.shape.slots.iter()).position(|of| *of == Some(*slot as u32))?;
            let message = self.no_value(column, row, &block.text, table);
            Some((table.start(row), RejectKind::NoValue, field, message))
        });
        let mut found: Vec<_> = unfit.chain(no_values).collect();
        found.sort_by_key(|(record, _, field, _)| (*record, *field));
        let (mut counted, mut line) = (0, block.lines_before + 1);
        let rejects = found.into_iter().map(|(record, kind, field, message)| {
            let bytes = block.text.as_bytes();
            let fields = self.shape.fields(bytes, record);
            line += self.shape.grammar.lines_in(&bytes[counted..record]);
            counted = record;
            let end = fields.last().map_or(record, |last| last.end);
            let place = match kind {
                RejectKind::NoValue | RejectKind::TornQuotes => {
                    fields.get(field).map(|of| of.start)
                }
                RejectKind::TooFew => Some(end),
                RejectKind::TooMany => field
                    .checked_sub(1)
                    .and_then(|last| fields.get(last))
                    .map(|of| of.end),
            };
            Reject {
                line,
                record: block.at + record as u64,
                place: block.at + place.unwrap_or(record) as u64,
                field,
                kind,
                text: block.text[record..end].to_string(),
                message,
            }
        });
        rejects.collect()
    }

    /// How dates are written where that is not as usual.
    fn form_of(&self, column: usize) -> String {
        let is_time = matches!(
            self.schema.field(column).data_type(),
            DataType::Date32 | DataType::Timestamp(..)
        );
        match &self.origins[column] {
            ColumnOrigin::Slot(_, form, _) if is_time && *form != DateForm::ISO => {
                format!(" of the form {}", form.pattern())
            }
            _ => String::new(),
        }
    }

    /// The error of a record that does not fit.
    fn unfit(&self, record: Unfit) -> Bad {
        let way_out = match record.why {
            Why::Torn(_) => {
                "ignore_errors => true leaves the record out, quote => '' reads quotes as text"
            }
            Why::Fields(found) if found < self.shape.columns => {
                "null_padding => true fills them up, ignore_errors => true leaves such rows out"
            }
            Why::Fields(_) => "ignore_errors => true leaves such rows out",
        };
        Bad {
            at: record.at,
            message: format!("{}; {way_out}", self.misfit(record.why)),
        }
    }

    /// What is wrong with it.
    fn misfit(&self, why: Why) -> String {
        match why {
            Why::Torn(_) => {
                "text follows quotes that a line before opened: a quote is missing".to_string()
            }
            Why::Fields(found) => format!(
                "incorrect number of fields: expected {} got {found}",
                self.shape.columns
            ),
        }
    }
}

/// How values are written, and the same where no text is NULL.
fn both_forms(forms: &Forms) -> (Arc<Forms>, Arc<Forms>) {
    let never_null = Forms {
        nulls: Vec::new(),
        ..forms.clone()
    };
    (Arc::new(forms.clone()), Arc::new(never_null))
}

/// Numbers the slots anew, in the order of their fields.
fn in_order_of_fields(
    mut slots: Vec<Option<u32>>,
    mut origins: Vec<ColumnOrigin>,
) -> (Vec<Option<u32>>, Vec<ColumnOrigin>) {
    let mut renamed = HashMap::new();
    for slot in slots.iter_mut().flatten() {
        let next = renamed.len();
        renamed.insert(*slot as usize, next);
        *slot = next as u32;
    }
    for origin in &mut origins {
        if let ColumnOrigin::Slot(slot, ..) = origin {
            *slot = renamed[slot];
        }
    }
    (slots, origins)
}

/// A value that a line of text can show.
fn shortened(value: &str) -> String {
    const SHOWN: usize = 60;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_string(),
    }
}
