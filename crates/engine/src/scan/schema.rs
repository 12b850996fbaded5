//! The default schema: the statement's own tables first, then registered ones, then files by name.
//!
//! In: a table name of a query. Out: its table.
//! Invariant: a registered table hides a file of the same name. A statement's own tables are seen by no other statement.
//! The exact name comes before the only one that differs in case. A statement finds each file once, however often it is
//! planned. A view reads what its names stand for when it is read. A table takes the place of another at once.
//! Not here: what is a file and how it is read (files.rs).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::datasource::ViewTable;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};

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
    removal: TableRemoval,
}

/// When a table goes that a statement removes.
enum TableRemoval {
    AtOnce,
    /// When the next one is registered; until then this is its name.
    WithNext(Mutex<Option<String>>),
}

impl StatementScope {
    fn new(own: Arc<Tables>, removal: TableRemoval) -> StatementScope {
        static STATEMENTS: AtomicU64 = AtomicU64::new(1);
        StatementScope {
            number: STATEMENTS.fetch_add(1, Ordering::Relaxed),
            own,
            files: Mutex::default(),
            removal,
        }
    }
}

tokio::task_local! {
    /// The scope of the statement that this task plans.
    static SCOPE: StatementScope;
}

/// Runs `planning` with tables that only it sees.
pub(crate) async fn with_own_tables<F: Future>(tables: Arc<Tables>, planning: F) -> F::Output {
    let scope = StatementScope::new(tables, TableRemoval::AtOnce);
    SCOPE.scope(scope, planning).await
}

/// Runs `planning` with further tables that only it sees, beside those that the statement sees.
pub(crate) async fn with_further_tables<F: Future>(further: Tables, planning: F) -> F::Output {
    let own = in_scope(|scope| Some(Tables::clone(&scope.own)));
    let mut tables = own.unwrap_or_default();
    tables.extend(further);
    with_own_tables(Arc::new(tables), planning).await
}

/// Runs what removes a table and registers one: both happen at once, and neither if it fails in between.
pub(crate) async fn replacing<F: Future>(change: F) -> F::Output {
    let removal = TableRemoval::WithNext(Mutex::default());
    let scope = StatementScope::new(Arc::default(), removal);
    SCOPE.scope(scope, change).await
}

/// The same of what waits for nothing.
pub(crate) fn replacing_now<T>(change: impl FnOnce() -> T) -> T {
    let removal = TableRemoval::WithNext(Mutex::default());
    let scope = StatementScope::new(Arc::default(), removal);
    SCOPE.sync_scope(scope, change)
}

/// Looks at the statement's scope; nothing to see outside of one.
fn in_scope<T>(look: impl FnOnce(&StatementScope) -> Option<T>) -> Option<T> {
    SCOPE.try_with(look).ok().flatten()
}

/// Leaves it to the next table to remove this one; whether the statement is one that does so.
fn is_left_to_next(name: &str) -> bool {
    let left = in_scope(|scope| match &scope.removal {
        TableRemoval::AtOnce => None,
        TableRemoval::WithNext(removed) => {
            *removed.lock() = Some(name.to_string());
            Some(())
        }
    });
    left.is_some()
}

/// The table that goes when the statement registers its next one.
fn left_to_next() -> Option<String> {
    in_scope(|scope| match &scope.removal {
        TableRemoval::AtOnce => None,
        TableRemoval::WithNext(removed) => removed.lock().take(),
    })
}

fn own_table(name: &str) -> Option<Arc<dyn TableProvider>> {
    in_scope(|scope| scope.own.get(name).cloned())
}

/// A table of the session.
#[derive(Debug, Clone)]
struct Registered {
    table: Arc<dyn TableProvider>,
    /// The registered tables that it reads, of a view.
    reads: Vec<Arc<dyn TableProvider>>,
}

/// Tables in memory. Unlike in DataFusion's schema a table can take the place of another one while queries look for it.
#[derive(Debug, Default)]
struct RegisteredTables(RwLock<HashMap<String, Registered>>);

impl RegisteredTables {
    fn get(&self, name: &str) -> Option<Registered> {
        self.0.read().get(name).cloned()
    }

    fn has(&self, name: &str) -> bool {
        self.0.read().contains_key(name)
    }

    fn names(&self) -> Vec<String> {
        self.0.read().keys().cloned().collect()
    }

    /// Adds a table, and removes that which is `replaced`.
    fn add(&self, name: String, table: Registered, replaced: Option<&str>) -> Result<()> {
        let mut tables = self.0.write();
        if replaced != Some(&name) && tables.contains_key(&name) {
            return exec_err!("The table {name} already exists");
        }
        if let Some(replaced) = replaced {
            tables.remove(replaced);
        }
        tables.insert(name, table);
        Ok(())
    }

    fn remove(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let removed = self.0.write().remove(name);
        removed.map(|removed| removed.table)
    }
}

/// Tables in memory with the file system behind them.
#[derive(Debug)]
pub(crate) struct FileSchema {
    tables: RegisteredTables,
    files: Arc<FileTables>,
}

impl FileSchema {
    pub(crate) fn new(files: Arc<FileTables>) -> FileSchema {
        FileSchema {
            tables: RegisteredTables::default(),
            files,
        }
    }

    /// The table of exactly this name.
    async fn exact(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        // A statement's own views were planned for it, over what is there now.
        if let Some(table) = own_table(name) {
            return Ok(Some(table));
        }
        match self.tables.get(name) {
            Some(table) => Ok(Some(self.current(name, table, &[]).await)),
            None => Ok(None),
        }
    }

    /// A view over what its names stand for now; other tables are what they are. `around` are the views that read it.
    fn current<'a>(
        &'a self,
        name: &'a str,
        Registered { table, reads }: Registered,
        around: &'a [&'a str],
    ) -> BoxFuture<'a, Arc<dyn TableProvider>> {
        Box::pin(async move {
            let Some(view) = table.downcast_ref::<ViewTable>() else {
                return table;
            };
            match self
                .over_present(name, (view, reads.as_slice()), around)
                .await
            {
                Ok(view) => Arc::new(view) as Arc<dyn TableProvider>,
                Err(error) => Arc::new(BrokenView {
                    schema: view.schema(),
                    definition: view.definition().cloned(),
                    error: Error::from(error),
                }),
            }
        })
    }

    /// The view over the files, tables and views that its names stand for now.
    async fn over_present(
        &self,
        name: &str,
        (view, reads): (&ViewTable, &[Arc<dyn TableProvider>]),
        around: &[&str],
    ) -> Result<ViewTable> {
        let (mut now, views) = views::sources_of(name, view, reads)?;
        let around: Vec<&str> = around.iter().copied().chain([name]).collect();
        now.files.retain(|file, _| !self.tables.has(file));
        for (file, table) in &mut now.files {
            if let Some(found) = self.file(file).await? {
                views::check_columns(name, file, &table.schema(), &found.schema())?;
                *table = found;
            }
        }
        for (read, table) in &mut now.tables {
            table.now = self.beneath(name, read, &around).await?;
        }
        for read in views {
            let table = self.beneath(name, &read, &around).await?;
            now.views.insert(read, table);
        }
        views::marked(name, &views::over(name, view, &now)?)
    }

    /// The registered table that a view reads, as it is now.
    async fn beneath(
        &self,
        view: &str,
        name: &str,
        around: &[&str],
    ) -> Result<Arc<dyn TableProvider>> {
        let Some((name, table)) = self.registered(name) else {
            return Err(views::dropped(view, name).into());
        };
        if around.contains(&name.as_str()) {
            return Err(views::circular(view, &name).into());
        }
        let table = self.current(&name, table, around).await;
        match table.downcast_ref::<BrokenView>() {
            Some(broken) => Err(broken.error.clone().into()),
            None => Ok(table),
        }
    }

    /// The registered table of this name, or of the only one that differs in nothing but case, with its name.
    fn registered(&self, name: &str) -> Option<(String, Registered)> {
        if let Some(table) = self.tables.get(name) {
            return Some((name.to_string(), table));
        }
        let names = self.tables.names();
        let other = only_other_case(name, names.iter().map(String::as_str))?;
        Some((other.to_string(), self.tables.get(other)?))
    }

    /// The registered tables that a table reads, now that it is made; the one that it replaces is registered no longer.
    fn tables_read(
        &self,
        table: &Arc<dyn TableProvider>,
        replaced: Option<&str>,
    ) -> Result<Vec<Arc<dyn TableProvider>>> {
        let Some(view) = table.downcast_ref::<ViewTable>() else {
            return Ok(Vec::new());
        };
        let mut tables = views::tables_of(view.logical_plan())?;
        tables.retain(|(name, table)| {
            let found = self.registered(name);
            found.is_some_and(|(name, found)| {
                replaced != Some(name.as_str()) && Arc::ptr_eq(table, &found.table)
            })
        });
        Ok(tables.into_iter().map(|(_, table)| table).collect())
    }

    /// Registers a table; an older one of the same name is there until this one is.
    pub(crate) fn replace(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<()> {
        self.add(name.to_string(), table, Some(name))
    }

    fn add(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
        replaced: Option<&str>,
    ) -> Result<()> {
        let reads = self.tables_read(&table, replaced)?;
        self.tables.add(name, Registered { table, reads }, replaced)
    }

    /// The only name among the statement's own and the registered tables that differs from `name` in nothing but case.
    fn other_case(&self, name: &str) -> Option<String> {
        let own = in_scope(|scope| Some(scope.own.keys().cloned().collect::<Vec<_>>()));
        let mut names = self.tables.names();
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
        self.tables.names()
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
        let replaced = left_to_next();
        self.add(name, table, replaced.as_deref())?;
        Ok(None)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let name = match self.other_case(name) {
            Some(other) => other,
            None if self.tables.has(name) => name.to_string(),
            None if is_location(name) => {
                return plan_err!("'{name}' is a file and no table of the session");
            }
            None => return Ok(None),
        };
        match self.tables.get(&name) {
            Some(table) if is_left_to_next(&name) => Ok(Some(table.table)),
            _ => Ok(self.tables.remove(&name)),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        own_table(name).is_some() || self.tables.has(name) || self.other_case(name).is_some()
    }
}
