//! Connections: what they know of the database, and the statements they make.
//!
//! In: a database's session. Out: statements; information, objects, schemas of tables.
//! Invariant: connections of one database see the same tables, views, functions and options; a cancel of one ends its own
//! statements alone. Every statement takes effect by itself, and there is no transaction around several.
//! Not here: running statements (statement.rs).

use std::collections::HashSet;

use adbc_core::options::{InfoCode, ObjectDepth, OptionConnection, OptionValue};
use adbc_core::{CancelHandle, Connection, Optionable};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::Schema;
use grouse::Session;

use crate::error::{Result, adbc, not_implemented};
use crate::info::info;
use crate::ingest::{columns_of, quoted};
use crate::objects::{Wanted, objects, table_kinds};
use crate::options::{boolean, check_fixed, number, set_statement, text, value};
use crate::running::Batches;
use crate::statement::AdbcStatement;
use crate::stop::{Begun, Interrupts};

/// The catalog and schema of a database's tables.
const CATALOG: &str = "datafusion";
const SCHEMA: &str = "public";
/// ADBC's word for the isolation that a database has by itself.
const ISOLATION: &str = "adbc.connection.transaction.isolation.default";

const TRANSACTIONS: &str = "transactions; each statement takes effect by itself (autocommit)";
const STATISTICS: &str = "statistics of tables; SUMMARIZE has those of a table's columns";
const PARTITIONS: &str = "partitioned results";
const BYTES: &str = "options that are bytes; all of them are text or numbers";

type Stream = Box<dyn RecordBatchReader + Send + 'static>;

/// A connection of a database.
pub struct AdbcConnection {
    session: Session,
    interrupts: Interrupts,
}

impl AdbcConnection {
    pub fn new(session: Session) -> AdbcConnection {
        AdbcConnection {
            session,
            interrupts: Interrupts::default(),
        }
    }

    fn begin(&self) -> Begun {
        Interrupts::default().begin(&self.interrupts)
    }
}

impl Connection for AdbcConnection {
    type StatementType = AdbcStatement;

    fn new_statement(&mut self) -> Result<AdbcStatement> {
        let session = self.session.clone();
        Ok(AdbcStatement::new(session, self.interrupts.clone()))
    }

    fn get_cancel_handle(&self) -> Box<dyn CancelHandle> {
        Box::new(self.interrupts.clone())
    }

    fn get_info(&self, codes: Option<HashSet<InfoCode>>) -> Result<Stream> {
        Ok(stream(info(codes)?))
    }

    fn get_objects(
        &self,
        depth: ObjectDepth,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: Option<&str>,
        table_type: Option<Vec<&str>>,
        column_name: Option<&str>,
    ) -> Result<Stream> {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let kinds = table_type.map(|kinds| kinds.into_iter().map(str::to_owned).collect());
        let wanted = Wanted {
            depth,
            catalog: owned(catalog),
            schema: owned(db_schema),
            table: owned(table_name),
            kinds,
            column: owned(column_name),
        };
        let found = objects(&self.session, &wanted);
        let found = self.begin().wait(&self.session, found);
        Ok(stream(found.and_then(|found| found).map_err(adbc)?))
    }

    fn get_table_schema(
        &self,
        catalog: Option<&str>,
        db_schema: Option<&str>,
        table_name: &str,
    ) -> Result<Schema> {
        // A catalog alone has its default schema.
        let schema = db_schema.or(catalog.map(|_| SCHEMA));
        let parts = [catalog, schema, Some(table_name)].into_iter().flatten();
        let parts: Vec<String> = parts.map(quoted).collect();
        let found = columns_of(&self.session, &parts.join("."), &mut self.begin());
        Ok(found.map_err(adbc)?.as_ref().clone())
    }

    fn get_table_types(&self) -> Result<Stream> {
        Ok(stream(table_kinds()?))
    }

    fn get_statistic_names(&self) -> Result<Stream> {
        Err(not_implemented(STATISTICS))
    }

    fn get_statistics(
        &self,
        _: Option<&str>,
        _: Option<&str>,
        _: Option<&str>,
        _: bool,
    ) -> Result<Stream> {
        Err(not_implemented(STATISTICS))
    }

    fn commit(&mut self) -> Result<()> {
        Err(not_implemented(TRANSACTIONS))
    }

    fn rollback(&mut self) -> Result<()> {
        Err(not_implemented(TRANSACTIONS))
    }

    fn read_partition(&self, _: impl AsRef<[u8]>) -> Result<Stream> {
        Err(not_implemented(PARTITIONS))
    }
}

fn stream(batch: RecordBatch) -> Stream {
    Box::new(Batches::of(batch.schema(), vec![batch]))
}

impl Optionable for AdbcConnection {
    type Option = OptionConnection;

    fn set_option(&mut self, key: OptionConnection, value: OptionValue) -> Result<()> {
        let name = key.as_ref().to_string();
        match key {
            OptionConnection::AutoCommit => match boolean(&name, &text(&name, &value)?)? {
                true => Ok(()),
                false => Err(not_implemented(TRANSACTIONS)),
            },
            OptionConnection::ReadOnly => match boolean(&name, &text(&name, &value)?)? {
                false => Ok(()),
                true => Err(not_implemented(
                    "connections that only read; the database option safe=true reaches no file",
                )),
            },
            OptionConnection::CurrentCatalog => check_fixed(
                &name,
                &value,
                CATALOG,
                "another current catalog than datafusion",
            ),
            OptionConnection::CurrentSchema => {
                check_fixed(&name, &value, SCHEMA, "another current schema than public")
            }
            OptionConnection::IsolationLevel => {
                check_fixed(&name, &value, ISOLATION, "levels of isolation")
            }
            _ => {
                let statement = set_statement(&name, &value)?;
                let setting = self.session.query(&statement);
                let set = self.begin().wait(&self.session, setting);
                set.and_then(|set| set).map(|_| ()).map_err(adbc)
            }
        }
    }

    fn get_option_string(&self, key: OptionConnection) -> Result<String> {
        Ok(match key {
            OptionConnection::AutoCommit => "true".to_string(),
            OptionConnection::ReadOnly => "false".to_string(),
            OptionConnection::CurrentCatalog => CATALOG.to_string(),
            OptionConnection::CurrentSchema => SCHEMA.to_string(),
            OptionConnection::IsolationLevel => ISOLATION.to_string(),
            other => value(&self.session.options(), other.as_ref())?,
        })
    }

    fn get_option_bytes(&self, _: OptionConnection) -> Result<Vec<u8>> {
        Err(not_implemented(BYTES))
    }

    fn get_option_int(&self, key: OptionConnection) -> Result<i64> {
        let name = key.as_ref().to_string();
        number(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionConnection) -> Result<f64> {
        let name = key.as_ref().to_string();
        number(&name, &self.get_option_string(key)?)
    }
}
