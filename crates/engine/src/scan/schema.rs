//! The default schema: the statement's own tables first, then registered ones, then files by name.
//!
//! In: a table name of a query. Out: its table.
//! Invariant: a registered table hides a file of the same name; a statement's own tables are seen by no other statement;
//! the exact name comes before the only one that differs in case; a statement finds each file once, however often it is
//! planned.
//! Not here: what is a file and how it is read (files.rs).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::datasource::ViewTable;
use parking_lot::Mutex;

use super::files::FileTables;
use super::location::is_location;
use super::views::{self, BrokenView};
use crate::error::Error;
use crate::error::only_other_case;

/// Tables by name.
pub type Tables = HashMap<String, Arc<dyn TableProvider>>;

/// What one statement sees besides the session's tables.
struct StatementScope {
    /// No other statement of the process has it.
    number: u64,
    own: Arc<Tables>,
    files: Mutex<Tables>,
}

tokio::task_local! {
    /// The scope of the statement that this task plans.
    static SCOPE: StatementScope;
}

/// Runs `planning` with tables that only it sees.
pub(crate) async fn with_own_tables<F: Future>(tables: Arc<Tables>, planning: F) -> F::Output {
    static STATEMENTS: AtomicU64 = AtomicU64::new(1);
    let scope = StatementScope {
        number: STATEMENTS.fetch_add(1, Ordering::Relaxed),
        own: tables,
        files: Mutex::default(),
    };
    SCOPE.scope(scope, planning).await
}

/// Looks at the statement's scope; nothing to see outside of one.
fn in_scope<T>(look: impl FnOnce(&StatementScope) -> Option<T>) -> Option<T> {
    SCOPE.try_with(look).ok().flatten()
}

fn own_table(name: &str) -> Option<Arc<dyn TableProvider>> {
    in_scope(|scope| scope.own.get(name).cloned())
}

/// DataFusion's in-memory schema with the file system behind it.
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

    /// The table of exactly this name.
    async fn exact(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = match own_table(name) {
            Some(table) => Some(table),
            None => self.tables.table(name).await?,
        };
        match table {
            Some(table) => Ok(Some(self.current(name, table).await)),
            None => Ok(None),
        }
    }

    /// A view over files as they are now; other tables are what they are.
    async fn current(&self, name: &str, table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
        let Some(view) = table.downcast_ref::<ViewTable>() else {
            return table;
        };
        match self.over_files(name, view).await {
            Ok(Some(view)) => Arc::new(view),
            Ok(None) => table,
            Err(error) => Arc::new(BrokenView {
                schema: view.schema(),
                definition: view.definition().cloned(),
                error: Error::from(error),
            }),
        }
    }

    /// The view over the tables that its file names stand for now; `None` = it reads no files.
    async fn over_files(&self, name: &str, view: &ViewTable) -> Result<Option<ViewTable>> {
        let mut files = views::files_of(view)?;
        files.retain(|file, _| !self.tables.table_exist(file));
        for (file, table) in &mut files {
            if let Some(now) = self.file(file).await? {
                views::check_columns(name, file, &table.schema(), &now.schema())?;
                *table = now;
            }
        }
        match files.is_empty() {
            true => Ok(None),
            false => views::over(view, &files).map(Some),
        }
    }

    /// The only name among the statement's own and the registered tables that differs from `name` in nothing but case.
    fn other_case(&self, name: &str) -> Option<String> {
        let own = in_scope(|scope| Some(scope.own.keys().cloned().collect::<Vec<_>>()));
        let mut names = self.tables.table_names();
        names.extend(own.unwrap_or_default());
        only_other_case(name, names.iter().map(String::as_str)).map(str::to_string)
    }

    async fn file(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(found) = in_scope(|scope| scope.files.lock().get(name).cloned()) {
            return Ok(Some(found));
        }
        let statement = in_scope(|scope| Some(scope.number)).unwrap_or_default();
        let table = self.files.table(name, statement).await?;
        if let Some(table) = &table {
            in_scope(|scope| {
                let mut files = scope.files.lock();
                files.insert(name.to_string(), Arc::clone(table))
            });
        }
        Ok(table)
    }
}

#[async_trait]
impl SchemaProvider for FileSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.exact(name).await? {
            return Ok(Some(table));
        }
        match self.other_case(name) {
            Some(other) => self.exact(&other).await,
            None => self.file(name).await,
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
        match self.other_case(name) {
            Some(other) => self.tables.deregister_table(&other),
            None if self.tables.table_exist(name) => self.tables.deregister_table(name),
            None if is_location(name) => {
                plan_err!("'{name}' is a file and no table of the session")
            }
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        own_table(name).is_some()
            || self.tables.table_exist(name)
            || self.other_case(name).is_some()
    }
}
