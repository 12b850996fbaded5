//! Bound data as parameters: each row is one run of the statement.
//!
//! In: a batch or a stream, and the names of the statement's parameters. Out: [`Params`], row by row.
//! Invariant: a statement with `$name` takes the columns by name, one with `?` or `$1` in their order. Text that is not UTF-8 is an error.
//! A stream is read as its rows are needed.
//! Not here: which types a parameter may have, which the engine says.

use std::collections::HashMap;
use std::sync::Arc;

use adbc_core::error::Error as AdbcError;
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, ScalarValue};
use grouse::{Params, Text, admit, admitted_schema};

use crate::error::{Result, adbc};

/// A source of batches.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// What was bound to a statement.
pub enum Bound {
    /// One batch, which stays for further runs.
    Batch(RecordBatch),
    /// A stream, which one run takes.
    Stream(Reader),
}

/// The parameters of each run.
pub enum Runs {
    /// One run without any.
    One(Option<Params>),
    /// One for each row.
    PerRow(Rows),
}

/// The rows of what was bound.
pub struct Rows {
    reader: Reader,
    schema: SchemaRef,
    names: Names,
    batch: Option<RecordBatch>,
    row: usize,
}

/// How parameters find their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// By their order.
    Places,
    /// By name.
    Columns,
}

impl Names {
    /// What a statement with these parameters needs.
    pub fn of(parameters: &[String]) -> Names {
        match parameters.iter().all(|name| is_number(name)) {
            true => Names::Places,
            false => Names::Columns,
        }
    }
}

/// Whether a parameter has no name but its place.
pub fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

impl Runs {
    /// One run for each row of `reader`.
    pub fn per_row(reader: Reader, names: Names) -> Runs {
        Runs::PerRow(Rows {
            schema: admitted_schema(&reader.schema()),
            reader,
            names,
            batch: None,
            row: 0,
        })
    }

    /// The schema of all runs, if that of one of them is `schema`: where one row's value is NULL another's need not be.
    pub fn schema(&self, schema: SchemaRef) -> SchemaRef {
        match self {
            Runs::One(_) => schema,
            Runs::PerRow(_) => {
                let fields = schema.fields().iter();
                let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
                let fields: Vec<Field> = fields.collect();
                Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
            }
        }
    }

    /// Parameters of the right types without values, where there is no row.
    pub fn typed_nulls(&self) -> Result<Params> {
        let Runs::PerRow(rows) = self else {
            return Ok(Params::None);
        };
        let fields = rows.schema.fields().iter();
        let values = fields.map(|field| ScalarValue::try_from(field.data_type()));
        let values = values.collect::<std::result::Result<Vec<_>, _>>();
        Ok(rows.params(values.map_err(engine)?))
    }
}

impl Iterator for Runs {
    type Item = Result<Params>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Runs::One(params) => params.take().map(Ok),
            Runs::PerRow(rows) => rows.next().transpose(),
        }
    }
}

impl Rows {
    fn next(&mut self) -> Result<Option<Params>> {
        loop {
            if let Some(batch) = &self.batch
                && self.row < batch.num_rows()
            {
                let columns = batch.columns().iter();
                let values = columns.map(|column| ScalarValue::try_from_array(column, self.row));
                let values = values.collect::<std::result::Result<Vec<_>, _>>();
                let params = self.params(values.map_err(engine)?);
                self.row += 1;
                return Ok(Some(params));
            }
            let Some(batch) = self.reader.next() else {
                return Ok(None);
            };
            let admitted = batch.and_then(|batch| admit(&batch, &self.schema, Text::Unknown));
            self.batch = Some(admitted.map_err(|error| adbc(error.into()))?);
            self.row = 0;
        }
    }

    fn params(&self, values: Vec<ScalarValue>) -> Params {
        match self.names {
            Names::Places => Params::Positional(values),
            Names::Columns => {
                let fields = self.schema.fields().iter();
                let named = fields.map(|field| field.name().clone()).zip(values);
                Params::Named(named.collect::<HashMap<_, _>>())
            }
        }
    }
}

fn engine(error: DataFusionError) -> AdbcError {
    adbc(error.into())
}
