//! Decoding: blocks of records as batches of the table's columns.
//!
//! In: a block, what the table's files are like, which columns are wanted.
//! Out: batches.
//! Invariant: a text that is no value of its column's type is an error with its line, column and the option that helps, or
//! its record is left out where that was asked for; nothing becomes NULL by itself.
//! Not here: reading (source.rs), the types of columns (table.rs).

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
use crate::error::types::type_name;
use grouse_text::csv::columns::{Cells, Forms, built, good_rows};
use grouse_text::csv::records::{Misfit, Shape, Short, Table, Unfit, Why};
use grouse_text::csv::values::DateForm;

/// The fields of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Fields of a record.
    pub(crate) fields: usize,
    /// For each column of the table its field.
    pub(crate) of_columns: Vec<Option<usize>>,
}

/// How all files of a table are read.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) dialect: Dialect,
    pub(crate) forms: Forms,
    /// For each column of the table how its dates are written.
    pub(crate) dates: Vec<DateForm>,
    pub(crate) short: Short,
    pub(crate) misfit: Misfit,
    pub(crate) record_bytes_max: usize,
    pub(crate) encoding: Option<&'static Encoding>,
    /// Of most files.
    pub(crate) layout: Layout,
    /// Of files whose columns are found by their names.
    pub(crate) layouts: HashMap<Path, Layout>,
}

impl Rules {
    pub(crate) fn layout(&self, file: &Path) -> &Layout {
        self.layouts.get(file).unwrap_or(&self.layout)
    }
}

/// Where a wanted column comes from.
#[derive(Debug, Clone)]
enum Origin {
    Slot(usize, DateForm),
    Missing,
}

/// Makes batches of one file.
pub(crate) struct Decode {
    rules: Arc<Rules>,
    schema: SchemaRef,
    origins: Vec<Origin>,
    shape: Shape,
    batch_rows: usize,
}

/// Something that does not fit, in a line of a block.
pub(crate) struct Bad {
    /// Where in the block the record begins.
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Decode {
    /// `schema` has the wanted columns, `columns` their numbers in the table.
    pub(crate) fn new(
        rules: Arc<Rules>,
        layout: &Layout,
        (schema, columns): (SchemaRef, &[usize]),
        batch_rows: usize,
    ) -> Decode {
        let mut slots = vec![None; layout.fields];
        let mut wanted = 0;
        let origins = columns.iter().map(|column| {
            let Some(field) = layout.of_columns.get(*column).copied().flatten() else {
                return Origin::Missing;
            };
            let slot = *slots[field].get_or_insert_with(|| {
                wanted += 1;
                wanted as u32 - 1
            });
            Origin::Slot(slot as usize, rules.dates[*column].clone())
        });
        let origins = origins.collect();
        // Slots are numbered in the order of the fields, which is that of the spans.
        let (slots, origins) = in_order_of_fields(slots, origins);
        Decode {
            shape: Shape {
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
            rules,
        }
    }

    /// Where the first record of a block begins that is none of names.
    pub(crate) fn first(&self, block: &Block) -> usize {
        match block.header {
            Header::Names => self.shape.after_first(block.text.as_bytes(), 0),
            Header::Absent => 0,
        }
    }

    /// The records from `at`, and where the next ones begin; `None` = the block has ended.
    pub(crate) fn batch(
        &self,
        block: &Block,
        at: usize,
        table: &mut Table,
    ) -> Result<Option<(RecordBatch, usize)>, Bad> {
        let bytes = block.text.as_bytes();
        let next = self
            .shape
            .read(bytes, at, self.batch_rows, table)
            .map_err(|wrong| self.unfit(wrong))?;
        if table.rows() == 0 {
            return Ok(None);
        }
        let batch = self.columns(&block.text, table)?;
        Ok(Some((batch, next)))
    }

    fn columns(&self, text: &str, table: &Table) -> Result<RecordBatch, Bad> {
        let mut bad_rows = Vec::new();
        let mut arrays = Vec::with_capacity(self.origins.len());
        for (column, origin) in self.origins.iter().enumerate() {
            let (array, bad) = self.column(column, origin, text, table)?;
            if let Some(row) = bad.first()
                && self.shape.misfit == Misfit::Fail
            {
                return Err(self.no_value(column, *row, text, table));
            }
            bad_rows.extend(bad);
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(table.rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let batch = match bad_rows.is_empty() {
            true => batch,
            false => batch
                .and_then(|batch| filter_record_batch(&batch, &good_rows(table.rows(), &bad_rows))),
        };
        batch.map_err(|error| Bad {
            at: table.start(0),
            message: error.to_string(),
        })
    }

    fn column(
        &self,
        column: usize,
        origin: &Origin,
        text: &str,
        table: &Table,
    ) -> Result<(ArrayRef, Vec<usize>), Bad> {
        let kind = self.schema.field(column).data_type();
        let (slot, form) = match origin {
            Origin::Missing => return Ok((new_null_array(kind, table.rows()), Vec::new())),
            Origin::Slot(slot, form) => (*slot, form),
        };
        built(&self.cells(slot, text, table), kind, form).map_err(|error| Bad {
            at: table.start(0),
            message: format!("column '{}': {error}", self.schema.field(column).name()),
        })
    }

    fn cells<'a>(&'a self, slot: usize, text: &'a str, table: &'a Table) -> Cells<'a> {
        Cells {
            table,
            slot,
            text,
            grammar: &self.shape.grammar,
            forms: &self.rules.forms,
        }
    }

    fn no_value(&self, column: usize, row: usize, text: &str, table: &Table) -> Bad {
        let field = self.schema.field(column);
        let value = match &self.origins[column] {
            Origin::Slot(slot, _) => self.cells(*slot, text, table).text(row),
            _ => None,
        };
        Bad {
            at: table.start(row),
            message: format!(
                "column '{}': the value '{}' is no {}{}; read_csv('…', types => {{'{}': 'VARCHAR'}}) reads the column as text, sample_size => -1 looks at all rows before, ignore_errors => true leaves such rows out",
                field.name(),
                shortened(&value.unwrap_or_default()),
                type_name(field.data_type()),
                self.form_of(column),
                field.name(),
            ),
        }
    }

    /// How dates are written where that is not as usual.
    fn form_of(&self, column: usize) -> String {
        let is_time = matches!(
            self.schema.field(column).data_type(),
            DataType::Date32 | DataType::Timestamp(..)
        );
        match &self.origins[column] {
            Origin::Slot(_, form) if is_time && *form != DateForm::ISO => {
                format!(" of the form {}", form.pattern())
            }
            _ => String::new(),
        }
    }

    fn unfit(&self, record: Unfit) -> Bad {
        let columns = self.shape.columns;
        let message = match record.why {
            Why::Torn => {
                "text follows quotes that a line before opened: a quote is missing; ignore_errors => true leaves the record out, quote => '' reads quotes as text".to_string()
            }
            Why::Fields(found) => {
                let filled = match found < columns {
                    true => "null_padding => true fills them up, ",
                    false => "",
                };
                format!(
                    "incorrect number of fields: expected {columns} got {found}; {filled}ignore_errors => true leaves such rows out"
                )
            }
        };
        Bad {
            at: record.at,
            message,
        }
    }
}

/// Numbers the slots anew, in the order of their fields.
fn in_order_of_fields(
    mut slots: Vec<Option<u32>>,
    mut origins: Vec<Origin>,
) -> (Vec<Option<u32>>, Vec<Origin>) {
    let mut renamed = HashMap::new();
    for slot in slots.iter_mut().flatten() {
        let next = renamed.len();
        renamed.insert(*slot as usize, next);
        *slot = next as u32;
    }
    for origin in &mut origins {
        if let Origin::Slot(slot, _) = origin {
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
