//! The driver, and the databases that it makes: a session of the engine each.
//!
//! In: ADBC's options of databases. Out: databases, their connections.
//! Invariant: a database has workers, memory and tables of its own, in memory; they go when it and its connections are gone.
//! Not here: which options there are (options.rs).

use std::sync::Arc;

use adbc_core::options::{OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{Database, Driver, Optionable};
use grouse::{Session, processor};
use grouse_cluster::Clusters;

use crate::connection::AdbcConnection;
use crate::error::{Result, adbc, not_implemented};
use crate::options::{number, session_options, set_statement, value};

/// The driver.
#[derive(Debug, Default)]
pub struct AdbcDriver {}

impl Driver for AdbcDriver {
    type DatabaseType = AdbcDatabase;

    fn new_database(&mut self) -> Result<AdbcDatabase> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<AdbcDatabase> {
        processor::check().map_err(not_implemented)?;
        grouse_allocator::keep_pages();
        let session = Session::new(session_options(opts)?).map_err(adbc)?;
        let clusters = Arc::new(Clusters::default());
        session.reach_clusters_by(clusters).map_err(adbc)?;
        Ok(AdbcDatabase { session })
    }
}

/// A database.
pub struct AdbcDatabase {
    session: Session,
}

impl Database for AdbcDatabase {
    type ConnectionType = AdbcConnection;

    fn new_connection(&self) -> Result<AdbcConnection> {
        self.new_connection_with_opts([])
    }

    fn new_connection_with_opts(
        &self,
        opts: impl IntoIterator<Item = (OptionConnection, OptionValue)>,
    ) -> Result<AdbcConnection> {
        let mut connection = AdbcConnection::new(self.session.clone());
        for (key, value) in opts {
            connection.set_option(key, value)?;
        }
        Ok(connection)
    }
}

impl Optionable for AdbcDatabase {
    type Option = OptionDatabase;

    fn set_option(&mut self, key: OptionDatabase, value: OptionValue) -> Result<()> {
        let statement = set_statement(key.as_ref(), &value)?;
        let setting = self.session.query(&statement);
        let set = self.session.handle().block_on(setting);
        set.map(|_| ()).map_err(adbc)
    }

    fn get_option_string(&self, key: OptionDatabase) -> Result<String> {
        let name = match &key {
            OptionDatabase::Uri => "cluster",
            other => other.as_ref(),
        };
        value(&self.session.options(), name)
    }

    fn get_option_bytes(&self, _: OptionDatabase) -> Result<Vec<u8>> {
        Err(not_implemented(
            "options that are bytes; all of them are text or numbers",
        ))
    }

    fn get_option_int(&self, key: OptionDatabase) -> Result<i64> {
        let name = key.as_ref().to_string();
        number(&name, &self.get_option_string(key)?)
    }

    fn get_option_double(&self, key: OptionDatabase) -> Result<f64> {
        let name = key.as_ref().to_string();
        number(&name, &self.get_option_string(key)?)
    }
}
