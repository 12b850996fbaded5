//! Bulk ingestion: bound batches into a table, without a statement of the caller's.
//!
//! In: ADBC's options of ingestion, a stream of batches. Out: the number of rows that came in.
//! Invariant: all rows are in the table, or none. Columns find theirs by name. The stream is pulled by the engine, and read once.
//! Not here: parameters of a statement (params.rs).

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::options::{IngestMode, OptionStatement, OptionValue};
use arrow::array::RecordBatchReader;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use grouse::{Error, Params, Session, Tables, Text, admit, admitted_schema};

use crate::error::{Result, adbc, already_exists, invalid, not_found, not_implemented};
use crate::options::{boolean, text};
use crate::params::Reader;
use crate::stop::Begun;

/// The name of the bound rows in the statement that takes them.
const ROWS: &str = "adbc_bound_rows";
/// Batches that are read ahead.
const AHEAD_BATCHES: usize = 2;

/// Where the rows go.
#[derive(Debug, Clone)]
pub struct Target {
    table: Option<String>,
    schema: Option<String>,
    catalog: Option<String>,
    mode: IngestMode,
}

impl Default for Target {
    fn default() -> Target {
        Target {
            table: None,
            schema: None,
            catalog: None,
            mode: IngestMode::Create,
        }
    }
}

impl Target {
    /// Takes one of ADBC's options of ingestion; false of any other.
    pub fn set(&mut self, key: &OptionStatement, value: &OptionValue) -> Result<bool> {
        let name = key.as_ref();
        match key {
            OptionStatement::TargetTable => self.table = Some(text(name, value)?),
            OptionStatement::TargetDbSchema => self.schema = filled(text(name, value)?),
            OptionStatement::TargetCatalog => self.catalog = filled(text(name, value)?),
            OptionStatement::IngestMode => self.mode = IngestMode::try_from(value)?,
            OptionStatement::Temporary => {
                if boolean(name, &text(name, value)?)? {
                    return Err(not_implemented(
                        "temporary tables; all tables go with the database, which is in memory",
                    ));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The text of one of these options; `None` of any other.
    pub fn get(&self, key: &OptionStatement) -> Option<Result<String>> {
        let value = match key {
            OptionStatement::TargetTable => self.table.clone(),
            OptionStatement::TargetDbSchema => self.schema.clone(),
            OptionStatement::TargetCatalog => self.catalog.clone(),
            OptionStatement::IngestMode => Some(self.mode.into()),
            OptionStatement::Temporary => Some("false".to_string()),
            _ => return None,
        };
        Some(value.ok_or_else(|| not_found(format!("option {} is not set", key.as_ref()))))
    }

    /// Forgets the table: a statement is run instead.
    pub fn clear(&mut self) {
        *self = Target::default();
    }

    /// Whether there is a table to fill.
    pub fn is_set(&self) -> bool {
        self.table.is_some()
    }

    /// Puts all rows into the table, and tells how many there were.
    pub fn fill(&self, session: &Session, reader: Reader, mut begun: Begun) -> Result<i64> {
        let table = self.qualified()?;
        let columns = admitted_schema(&reader.schema());
        if columns.fields().is_empty() {
            return Err(invalid(
                "data",
                "it has no columns, so that there is no table to make of it",
            ));
        }
        let there = self.there(session, &table, &mut begun)?;
        let text = match (self.mode, &there) {
            (IngestMode::Append, None) => return Err(missing(&table)),
            (IngestMode::Create, Some(_)) => {
                return Err(already_exists(format!("table {table} already exists")));
            }
            (IngestMode::Replace, _) => {
                format!("CREATE OR REPLACE TABLE {table} AS SELECT * FROM {ROWS}")
            }
            (_, None) => format!("CREATE TABLE {table} AS SELECT * FROM {ROWS}"),
            (_, Some(there)) => {
                let names = appended(&table, &columns, there)?;
                format!("INSERT INTO {table} ({names}) SELECT {names} FROM {ROWS}")
            }
        };
        let rows = Arc::new(BoundRows::new(reader, columns));
        let run = run(session, &text, Arc::clone(&rows));
        begun.wait(session, run).and_then(|run| run).map_err(adbc)?;
        Ok(rows.count.load(Ordering::Relaxed))
    }

    /// The table's name as SQL has it.
    fn qualified(&self) -> Result<String> {
        let Some(table) = &self.table else {
            return Err(invalid("target table", "none is named"));
        };
        if self.catalog.is_some() && self.schema.is_none() {
            return Err(invalid(
                "target catalog",
                "a catalog is named without a schema",
            ));
        }
        let parts = [&self.catalog, &self.schema].into_iter().flatten();
        let parts: Vec<String> = parts.chain([table]).map(|part| quoted(part)).collect();
        Ok(parts.join("."))
    }

    /// The columns of the table, if it is there.
    fn there(
        &self,
        session: &Session,
        table: &str,
        begun: &mut Begun,
    ) -> Result<Option<SchemaRef>> {
        match columns_of(session, table, begun) {
            Ok(schema) => Ok(Some(schema)),
            Err(Error::UnknownTable { .. }) => Ok(None),
            Err(error) => Err(adbc(error)),
        }
    }
}

fn filled(name: String) -> Option<String> {
    (!name.is_empty()).then_some(name)
}

/// A name in SQL, letter for letter.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns that a query of all of a table has.
pub fn columns_of(session: &Session, table: &str, begun: &mut Begun) -> grouse::Result<SchemaRef> {
    let text = format!("SELECT * FROM {table}");
    let query = begun
        .wait(session, session.query(&text))
        .and_then(|query| query)?;
    Ok(query.schema())
}

/// The names of the columns to append, each of which the table has.
fn appended(table: &str, columns: &SchemaRef, there: &SchemaRef) -> Result<String> {
    let mut names = Vec::with_capacity(columns.fields().len());
    for field in columns.fields() {
        if there.field_with_name(field.name()).is_err() {
            return Err(already_exists(format!(
                "table {table} already exists, and has no column {} to append to",
                quoted(field.name())
            )));
        }
        names.push(quoted(field.name()));
    }
    Ok(names.join(", "))
}

fn missing(table: &str) -> adbc_core::error::Error {
    adbc(Error::UnknownTable {
        name: table.replace('"', ""),
        nearest: Vec::new(),
        position: None,
    })
}

/// Runs the statement that takes the rows.
async fn run(session: &Session, text: &str, rows: Arc<BoundRows>) -> grouse::Result<()> {
    let schema = Arc::clone(&rows.schema);
    let table: Arc<dyn TableProvider> = Arc::new(StreamingTable::try_new(schema, vec![rows])?);
    let tables = Tables::from([(ROWS.to_string(), table)]);
    let query = session
        .query_over(text, Params::None, Arc::new(tables))
        .await?;
    let mut stream = query.execute()?;
    while let Some(batch) = stream.next().await {
        batch?;
    }
    Ok(())
}

/// The rows of a bound stream as a table of one statement.
struct BoundRows {
    schema: SchemaRef,
    reader: Mutex<Option<Reader>>,
    count: Arc<AtomicI64>,
}

impl BoundRows {
    fn new(reader: Reader, schema: SchemaRef) -> BoundRows {
        BoundRows {
            schema,
            reader: Mutex::new(Some(reader)),
            count: Arc::default(),
        }
    }
}

impl fmt::Debug for BoundRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundRows")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for BoundRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, schema) = (reader.take(), Arc::clone(&self.schema));
        let count = Arc::clone(&self.count);
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), AHEAD_BATCHES);
        let sender = builder.tx();
        // The reader is the caller's, and may wait for a query of ours: it has a thread on which that may be waited for.
        builder.spawn_blocking(move || {
            let reader = reader.ok_or_else(read_twice)?;
            for batch in reader {
                let batch = batch.and_then(|batch| admit(&batch, &schema, Text::Unknown));
                let batch = batch.map_err(DataFusionError::from);
                let rows = batch.as_ref().map_or(0, |batch| batch.num_rows());
                let failed = batch.is_err();
                if sender.blocking_send(batch).is_err() || failed {
                    break;
                }
                count.fetch_add(rows as i64, Ordering::Relaxed);
            }
            Ok(())
        });
        builder.build()
    }
}

fn read_twice() -> DataFusionError {
    Error::Internal("a bound stream was asked for a second time".to_string()).into()
}
