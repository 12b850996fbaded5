//! The default schema: the statement's own tables first, then registered ones, then files by name.
//!
//! In: a table name of a query. Out: its table.
//! Invariant: a registered table hides a file of the same name; a statement's own tables are seen by no other statement.
//! Not here: what is a file and how it is read (files.rs).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::Result;

use super::files::FileTables;

/// Tables by name.
pub type Tables = HashMap<String, Arc<dyn TableProvider>>;

tokio::task_local! {
    /// The tables of the statement that this task plans.
    static OWN: Arc<Tables>;
}

/// Runs `planning` with tables that only it sees.
pub(crate) async fn with_own_tables<F: Future>(tables: Arc<Tables>, planning: F) -> F::Output {
    OWN.scope(tables, planning).await
}

fn own_table(name: &str) -> Option<Arc<dyn TableProvider>> {
    OWN.try_with(|tables| tables.get(name).cloned())
        .ok()
        .flatten()
}

/// The host's in-memory schema with the file system behind it.
#[derive(Debug)]
pub(crate) struct FileSchema {
    tables: MemorySchemaProvider,
    files: Arc<FileTables>,
}

impl FileSchema {
    pub(crate) fn new(files: Arc<FileTables>) -> FileSchema {
        FileSchema {
            tables: MemorySchemaProvider::new(),
            files,
        }
    }
}

#[async_trait]
impl SchemaProvider for FileSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = own_table(name) {
            return Ok(Some(table));
        }
        match self.tables.table(name).await? {
            Some(table) => Ok(Some(table)),
            None => Ok(self.files.table(name).await?),
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.tables.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        own_table(name).is_some() || self.tables.table_exist(name)
    }
}
