//! Statements: a text or a table to fill, what is bound, one run after the other.
//!
//! In: SQL, bound batches and streams, ADBC's options of statements. Out: readers, counts, schemas.
//! Invariant: a statement sees what its connection's database holds when it runs. A cancel from another thread ends the run and
//! the reader that it gave.
//! Not here: the runs themselves (running.rs), filling tables (ingest.rs).

use std::sync::{Arc, Weak};

use adbc_core::options::{OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Optionable, PartitionedResult, Statement};
use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::datatypes::{DataType, Field, Schema};
use grouse::{Description, Error, Query, Session};

use crate::error::{Result, adbc, not_found, not_implemented, wrong_state};
use crate::ingest::Target;
use crate::options::{boolean, check_fixed, number, set_statement, text, value};
use crate::params::{Bound, Names, Reader, Runs, is_number};
use crate::running::{self, Batches, Outcome};
use crate::stop::{Begun, Interrupts};

/// ADBC's option for parameters that go by the names of their columns.
const BIND_BY_NAME: &str = "adbc.statement.bind_by_name";

const PARTITIONS: &str = "partitioned results; execute gives all of them in one stream";
const SUBSTRAIT: &str = "Substrait plans; give the query as SQL";
const BYTES: &str = "options that are bytes; all of them are text or numbers";

/// A statement of a connection.
pub struct AdbcStatement {
    session: Session,
    connection: Interrupts,
    own: Interrupts,
    text: Option<Arc<str>>,
    bound: Option<Bound>,
    /// Whether columns are parameters of their names, whatever the statement has.
    binds_by_name: bool,
    target: Target,
    /// The query of the newest reader, as long as it runs.
    query: Weak<Query>,
}

impl AdbcStatement {
    pub fn new(session: Session, connection: Interrupts) -> AdbcStatement {
        AdbcStatement {
            session,
            connection,
            own: Interrupts::default(),
            text: None,
            bound: None,
            binds_by_name: false,
            target: Target::default(),
            query: Weak::new(),
        }
    }

    fn begin(&self) -> Begun {
        self.own.begin(&self.connection)
    }

    fn text(&self) -> Result<Arc<str>> {
        let missing = || wrong_state("the statement has neither a query nor a table to fill");
        self.text.clone().ok_or_else(missing)
    }

    /// What is bound: a batch stays for the next run, a stream goes.
    fn take_bound(&mut self) -> Option<Reader> {
        match self.bound.take()? {
            Bound::Stream(reader) => Some(reader),
            Bound::Batch(batch) => {
                let schema = batch.schema();
                self.bound = Some(Bound::Batch(batch.clone()));
                Some(Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
            }
        }
    }

    /// Runs the statement, or fills the table.
    fn run(&mut self) -> Result<Outcome> {
        self.query = Weak::new();
        if self.target.is_set() {
            let missing = || wrong_state("no rows are bound to fill the table with");
            let reader = self.take_bound().ok_or_else(missing)?;
            let rows = self.target.fill(&self.session, reader, self.begin())?;
            return Ok(Outcome {
                reader: Batches::of(Arc::new(Schema::empty()), Vec::new()),
                changed: Some(rows),
            });
        }
        let text = self.text()?;
        let statements = Session::split(&text).map_err(adbc)?;
        let bound = self.take_bound();
        let outcome = match (statements.as_slice(), bound) {
            ([] | [_], None) => self.start(text, Runs::One(Some(grouse::Params::None)))?,
            ([] | [_], Some(reader)) => {
                let names = match self.binds_by_name {
                    true => Names::Columns,
                    false => Names::of(&Session::parameters(&text).map_err(adbc)?),
                };
                self.start(text, Runs::per_row(reader, names))?
            }
            (_, Some(_)) => {
                return Err(wrong_state(
                    "several statements take no parameters; run them one at a time",
                ));
            }
            (several, None) => self.run_script(several)?,
        };
        self.query = outcome.reader.query();
        Ok(outcome)
    }

    fn start(&self, text: Arc<str>, runs: Runs) -> Result<Outcome> {
        let statement = running::Statement {
            session: self.session.clone(),
            text,
            runs,
            begun: self.begin(),
        };
        statement.start()
    }

    /// Runs all statements in order; the outcome is that of the last one.
    fn run_script(&self, statements: &[grouse::Statement]) -> Result<Outcome> {
        let mut last = None;
        for statement in statements {
            // What was not read of the one before stops here.
            drop(last.take());
            let runs = Runs::One(Some(grouse::Params::None));
            last = Some(self.start(statement.text.as_str().into(), runs)?);
        }
        last.ok_or_else(|| wrong_state("the statement is empty"))
    }

    fn describe(&self) -> Result<Description> {
        let text = self.text()?;
        let described = self.described(&text);
        described.map_err(adbc)
    }

    fn described(&self, text: &str) -> grouse::Result<Description> {
        let description = self.session.describe(text);
        let described = self.begin().wait(&self.session, description);
        described.and_then(|described| described)
    }

    /// The parameters, with types as far as they are known. A statement that cannot be planned before its parameters have
    /// values may be right all the same.
    fn parameters(&self) -> Result<Vec<(String, Option<DataType>)>> {
        let text = self.text()?;
        let error = match self.described(&text) {
            Ok(description) => return Ok(description.parameters),
            Err(error) => error,
        };
        let names = Session::parameters(&text).map_err(adbc)?;
        if names.is_empty() || is_wrong_whatever(&error) {
            return Err(adbc(error));
        }
        Ok(names.into_iter().map(|name| (name, None)).collect())
    }
}

/// Whether a statement fails so whatever its parameters are.
fn is_wrong_whatever(error: &Error) -> bool {
    matches!(
        error.kind(),
        Error::UnknownTable { .. }
            | Error::UnknownColumn { .. }
            | Error::UnknownFunction { .. }
            | Error::Io { .. }
            | Error::Cancelled
    )
}

impl Statement for AdbcStatement {
    fn bind(&mut self, batch: RecordBatch) -> Result<()> {
        self.bound = Some(Bound::Batch(batch));
        Ok(())
    }

    fn bind_stream(&mut self, reader: Box<dyn RecordBatchReader + Send>) -> Result<()> {
        self.bound = Some(Bound::Stream(reader));
        Ok(())
    }

    fn execute(&mut self) -> Result<Box<dyn RecordBatchReader + Send + 'static>> {
        Ok(Box::new(self.run()?.reader))
    }

    fn execute_update(&mut self) -> Result<Option<i64>> {
        let outcome = self.run()?;
        let changed = outcome.changed;
        for batch in outcome.reader {
            batch.map_err(|failure| adbc(failure.into()))?;
        }
        Ok(changed)
    }

    fn execute_schema(&mut self) -> Result<Schema> {
        Ok(self.describe()?.columns.as_ref().clone())
    }

    fn execute_partitions(&mut self) -> Result<PartitionedResult> {
        Err(not_implemented(PARTITIONS))
    }

    fn get_parameter_schema(&self) -> Result<Schema> {
        let parameters = self.parameters()?.into_iter();
        let fields = parameters.map(|(name, kind)| {
            let name = if is_number(&name) { "" } else { &name };
            Field::new(name, kind.unwrap_or(DataType::Null), true)
        });
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn prepare(&mut self) -> Result<()> {
        if self.target.is_set() {
            return Ok(());
        }
        let text = self.text()?;
        match Session::split(&text).map_err(adbc)?.as_slice() {
            [] | [_] => self.parameters().map(|_| ()),
            // The later ones may need what the first ones make.
            _ => Ok(()),
        }
    }

    fn set_sql_query(&mut self, query: impl AsRef<str>) -> Result<()> {
        self.text = Some(query.as_ref().into());
        // What was bound was for the statement before.
        self.bound = None;
        self.target.clear();
        self.query = Weak::new();
        Ok(())
    }

    fn set_substrait_plan(&mut self, _: impl AsRef<[u8]>) -> Result<()> {
        Err(not_implemented(SUBSTRAIT))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(self.own.clone())
    }
}

impl Optionable for AdbcStatement {
    type Option = OptionStatement;

    fn set_option(&mut self, key: OptionStatement, value: OptionValue) -> Result<()> {
        if self.target.set(&key, &value)? {
            if self.target.is_set() {
                self.text = None;
            }
            return Ok(());
        }
        let name = key.as_ref().to_string();
        match key {
            OptionStatement::Other(key) if key == BIND_BY_NAME => {
                self.binds_by_name = boolean(&name, &text(&name, &value)?)?;
                Ok(())
            }
            OptionStatement::Incremental => {
                let is_wanted = boolean(&name, &text(&name, &value)?)?;
                match is_wanted {
                    true => Err(not_implemented(PARTITIONS)),
                    false => Ok(()),
                }
            }
            OptionStatement::Progress | OptionStatement::MaxProgress => {
                check_fixed(&name, &value, "", "setting the progress of a query")
            }
            _ => {
                let statement = set_statement(&name, &value)?;
                let setting = self.session.query(&statement);
                let set = self.begin().wait(&self.session, setting);
                set.and_then(|set| set).map(|_| ()).map_err(adbc)
            }
        }
    }

    fn get_option_string(&self, key: OptionStatement) -> Result<String> {
        if let Some(value) = self.target.get(&key) {
            return value;
        }
        match key {
            OptionStatement::Other(key) if key == BIND_BY_NAME => {
                Ok(self.binds_by_name.to_string())
            }
            OptionStatement::Incremental => Ok("false".to_string()),
            OptionStatement::Progress | OptionStatement::MaxProgress => {
                Ok(self.get_option_double(key)?.to_string())
            }
            other => value(&self.session.options(), other.as_ref()),
        }
    }

    fn get_option_bytes(&self, _: OptionStatement) -> Result<Vec<u8>> {
        Err(not_implemented(BYTES))
    }

    fn get_option_int(&self, key: OptionStatement) -> Result<i64> {
        let name = key.as_ref().to_string();
        number(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionStatement) -> Result<f64> {
        match key {
            // The share of the input that has been read, where its size is known.
            OptionStatement::Progress => {
                let query = self.query.upgrade();
                let share = query.and_then(|query| query.progress().input_share);
                share.ok_or_else(|| not_found("no query runs whose progress is known".to_string()))
            }
            OptionStatement::MaxProgress => Ok(1.0),
            other => {
                let name = other.as_ref().to_string();
                number(&name, &self.get_option_string(other)?)
            }
        }
    }
}
