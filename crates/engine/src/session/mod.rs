//! A session: SQL text in, planned queries out.
//!
//! In: one statement at a time, options, tables to register.
//! Out: a [`Query`] for each; statements without rows are run here and give an empty one.
//! Invariant: planning and running happen on the session's own workers, so callers may sit on any runtime or on none.
//! Not here: parsing (statement.rs), values of parameters (params.rs), files (scan/), the operator (optimizer/, exec/).

mod definitions;
mod caller_functions;
mod options;
mod prepared;
pub(crate) mod described;
mod inlined;
mod returned_rows;
mod row_changes;
mod tables_alike;
mod inserted_rows;
mod merged_rows;
mod constraint_tables;
mod information_schema;
pub(crate) mod workers;
mod machine;
mod timeout;
pub(crate) mod remote;
pub(crate) mod query;
pub(crate) mod profile;
pub(crate) mod progress;

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Schema, UInt64Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, ScalarValue, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionContext;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{Query as SqlQuery, Statement as SqlStatement};
use futures::TryStreamExt;
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;

use crate::error::{Error, Result};
use crate::functions;
use crate::functions::Sequences;
use crate::optimizer::joins;
use crate::optimizer::{fixes, passes};
use crate::runtime::datafusion_options;
use crate::runtime::fair_shares;
use crate::runtime::memory::SessionPool;
use crate::runtime::options::SessionOptions;
use crate::runtime::temp::TempFolders;
use crate::runtime::trace::{Trace, thread_cpu};
use crate::runtime::warnings::Warnings;
use crate::scan::access::Access;
use crate::scan::checked_table::{self, CheckedTable, Rules};
use crate::scan::external;
use crate::scan::files::FileTables;
use crate::scan::json::JsonFactory;
use crate::scan::location::is_location;
use crate::scan::numbers;
use crate::scan::parquet::ParquetFactory;
use crate::scan::plain_types::with_plain_types;
use crate::scan::schema::{FileSchema, Tables, replacing, with_own_tables};
use crate::scan::sql_types::MapTypes;
use crate::scan::stores::Stores;
use crate::scan::views;
use crate::scan::writes::arrow::ArrowFactory;
use crate::scan::writes::request::Writes;
use crate::session::query::Query;
use crate::session::remote::RemoteExecution;
use crate::session::workers::Workers;
use crate::sql::copy::{self, Columns};
use crate::sql::definitions::Definitions;
use crate::sql::expand::{self, Catalog, Column, TableFacts, default_values, hidden, outer_fields};
use crate::sql::fixes::inner_values::ValuesPlanner;
use crate::sql::fixes::samples::SamplePlanner;
use crate::sql::naming::{named_casts, repeated_names, spelling, using};
use crate::sql::params::Params;
use crate::sql::statement::{self, DataFusionRequest, Request, Statement};
use crate::sql::{changes, reads};
use caller_functions::CallerFunctions;
use information_schema::InformationSchema;
use options::{name_option, option_of};

/// DataFusion's default catalog and schema, in which tables are registered.
const CATALOG: &str = "datafusion";
const SCHEMA: &str = "public";

/// A connection to the engine; clones share everything.
#[derive(Clone)]
pub struct Session {
    shared: Arc<SharedSession>,
}

struct SharedSession {
    context: SessionContext,
    /// The workers the session began with: callers and planning use these for its whole life.
    first_workers: Arc<Workers>,
    /// The workers that queries run on; `SET threads` replaces them.
    workers: RwLock<Arc<Workers>>,
    stores: Arc<Stores>,
    pool: Arc<SessionPool>,
    temp: Arc<TempFolders>,
    files: Arc<FileTables>,
    definitions: Definitions,
    caller_functions: CallerFunctions,
    sequences: Arc<Sequences>,
    warnings: Arc<Warnings>,
    /// What reaches clusters, in programs that can.
    remote: OnceLock<Arc<dyn RemoteExecution>>,
    /// Held while options change: a change is made of the options that the last one left.
    changing: Mutex<()>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("options", &self.options())
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session with a worker pool, a memory pool and a catalog of its own.
    pub fn new(options: SessionOptions) -> Result<Session> {
        options.check()?;
        fair_shares::follow_spawned();
        let temp = TempFolders::new(&options)?;
        let access = Access::new(&options)?;
        let stores = Stores::new(&options, Arc::clone(&temp), Arc::clone(&access));
        let stores = Arc::new(stores);
        let pool = Arc::new(SessionPool::new(options.memory_limit_bytes()));
        let runtime = Arc::new(runtime_env(&stores, &pool, &temp)?);
        let scans = passes::Scans {
            footers: runtime.cache_manager.get_file_metadata_cache(),
            stores: Arc::clone(&stores),
            pool: Arc::clone(&pool),
        };
        let warnings = Arc::new(Warnings::default());
        let mut state = SessionStateBuilder::new()
            .with_config(
                datafusion_options::session_config(&options)?
                    .with_extension(Arc::clone(&pool))
                    .with_extension(Arc::clone(&temp))
                    .with_extension(access)
                    .with_extension(Arc::clone(&warnings)),
            )
            .with_runtime_env(Arc::clone(&runtime))
            .with_query_planner(fixes::query_planner())
            .with_expr_planners(passes::expr_planners(passes::ALL))
            .with_relation_planners(vec![Arc::new(SamplePlanner), Arc::new(ValuesPlanner)])
            .with_type_planner(Arc::new(MapTypes))
            .with_default_features()
            .with_table_factories(external::factories())
            .with_analyzer_rules(passes::analyzer_rules()?)
            .with_optimizer_rules(passes::optimizer_rules(passes::ALL)?)
            .with_physical_optimizer_rules(passes::physical_rules(Some(scans), passes::ALL)?)
            .build();
        state.register_file_format(Arc::new(ParquetFactory::default()), true)?;
        state.register_file_format(Arc::new(ArrowFactory), true)?;
        state.register_file_format(Arc::new(JsonFactory::default()), true)?;
        let context = SessionContext::new_with_state(state);
        let files = Arc::new(FileTables::default());
        files.attach(context.state_weak_ref());
        register(&context, &files)?;
        let sequences = Arc::default();
        functions::register_sequences(&context, &sequences);
        let workers = Arc::new(Workers::new(options.threads_effective())?);
        let shared = SharedSession {
            context,
            first_workers: Arc::clone(&workers),
            workers: RwLock::new(workers),
            stores,
            pool,
            temp,
            files,
            definitions: Definitions::default(),
            caller_functions: CallerFunctions::default(),
            sequences,
            warnings,
            remote: OnceLock::new(),
            changing: Mutex::default(),
        };
        Ok(Session {
            shared: Arc::new(shared),
        })
    }

    /// DataFusion's session.
    pub fn context(&self) -> &SessionContext {
        &self.shared.context
    }

    /// The runtime of the session's workers, for callers that have none: `session.handle().block_on(…)`.
    pub fn handle(&self) -> &Handle {
        self.shared.first_workers.handle()
    }

    /// The options in effect.
    pub fn options(&self) -> SessionOptions {
        SessionOptions::of(self.context().state_ref().read().config_options())
    }

    /// What a user should know of the statements so far, each once: their answers are right.
    pub fn take_warnings(&self) -> Vec<String> {
        self.shared.warnings.take()
    }

    /// Cuts a script into statements.
    pub fn split(text: &str) -> Result<Vec<Statement>> {
        statement::split(text)
    }

    /// Plans one statement. DDL and `SET` are run here and give an empty result.
    pub async fn query(&self, text: &str) -> Result<Query> {
        self.query_with(text, Params::None).await
    }

    /// Plans one statement with values for its parameters.
    pub async fn query_with(&self, text: &str, params: Params) -> Result<Query> {
        self.query_over(text, params, Arc::default()).await
    }

    /// Plans one statement that also sees tables which no other statement sees; they hide those of the session.
    pub async fn query_over(
        &self,
        text: &str,
        params: Params,
        tables: Arc<Tables>,
    ) -> Result<Query> {
        let (session, statement) = (self.clone(), text.to_string());
        let planning = async move { session.plan(&statement, params).await };
        let query = self.on_workers(text, tables, planning).await?;
        Ok(query.of(text))
    }

    /// Registers a table; an older one of the same name is replaced.
    pub fn register(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<()> {
        let schema = self.schema();
        let files = schema
            .as_ref()
            .and_then(|schema| schema.downcast_ref::<FileSchema>());
        let files = files.ok_or_else(|| Error::Internal("no default schema".to_string()))?;
        Ok(files.replace(name, with_plain_types(table))?)
    }

    /// Removes the table of exactly this name; it is no error if there is none.
    pub fn deregister(&self, name: &str) -> Result<()> {
        // The catalog alone would take the only name in another case for it, as DROP TABLE does.
        if self.tables().iter().any(|table| table == name) {
            self.context()
                .deregister_table(TableReference::bare(name))?;
        }
        Ok(())
    }

    /// Names of the registered tables and views, sorted.
    pub fn tables(&self) -> Vec<String> {
        let mut names = self
            .schema()
            .map(|schema| schema.table_names())
            .unwrap_or_default();
        names.sort();
        names
    }

    fn schema(&self) -> Option<Arc<dyn SchemaProvider>> {
        self.context().catalog(CATALOG)?.schema(SCHEMA)
    }

    /// Names in FROM that are neither tables nor files: a caller may register them and plan then.
    pub fn unresolved(&self, text: &str) -> Result<Vec<String>> {
        let parsed = match statement::parse(text)? {
            Request::Prepare { request, .. } => *request,
            other => other,
        };
        let request = match parsed {
            Request::DataFusion(request) => request,
            Request::SetVariable {
                value: Some(request),
                ..
            } => request,
            _ => return Ok(Vec::new()),
        };
        // A copy of it is all functions by name.
        let state = self.context().state_ref();
        let references = state.read().resolve_table_references(&request.statement)?;
        let changed = reads::changed_table(&request.statement);
        let calls: Vec<String> = request.files.iter().map(|call| call.table_name()).collect();
        let unknown = references.into_iter().filter(|reference| {
            let name = reference.table();
            let is_bare = reference.schema().is_none();
            let is_function = state.read().table_functions().contains_key(name);
            is_bare
                && changed.as_deref() != Some(name)
                && !is_function
                && !is_location(name)
                && !calls.iter().any(|call| call == name)
                && !self
                    .context()
                    .table_exist(reference.clone())
                    .unwrap_or(false)
        });
        Ok(unknown
            .map(|reference| reference.table().to_string())
            .collect())
    }

    async fn plan(&self, text: &str, params: Params) -> Result<Query> {
        match statement::parse(text)? {
            Request::SetOption { name, value } => {
                self.change_options(&name, |options| options.set(&name, &value))
            }
            Request::Nothing => Ok(self.nothing()),
            Request::ResetOption { name } => {
                self.change_options(&name, |options| options.reset(&name))
            }
            Request::SetVariable { name, value } => {
                let value = match value {
                    Some(request) => {
                        let row = self.first_row(text, *request, params).await?;
                        Some(row.into_iter().next().unwrap_or(ScalarValue::Null))
                    }
                    None => None,
                };
                self.shared.definitions.set_variable(&name, value);
                Ok(self.nothing())
            }
            Request::Prepare {
                name,
                prepared,
                request,
            } => self.prepare(&name, prepared, *request).await,
            Request::DropMacro { name, missing } => self.drop_macro(&name, missing),
            Request::ChangeSequence(change) => self.change_sequence(change),
            Request::DataFusion(request) => self.plan_datafusion(text, *request, params).await,
        }
    }

    async fn plan_datafusion(
        &self,
        text: &str,
        request: DataFusionRequest,
        params: Params,
    ) -> Result<Query> {
        let (trace, cpu) = (Arc::new(Trace::new()), thread_cpu());
        for call in request.files {
            self.shared.files.add_call(call);
        }
        let (mut state, mut statement) = (self.context().state(), request.statement);
        if request.columns == Columns::ByName {
            copy::read_by_name(&mut statement, self.context()).await?;
        }
        if self.defines(&statement)? {
            return Ok(self.nothing());
        }
        if let Some(query) = self.of_prepared(&statement, text, &state, &params).await? {
            return Ok(query);
        }
        self.bind(&mut statement, &params, &mut state)?;
        let planning = Planning {
            session: self,
            state: &state,
        };
        if let Some(query) = self.run_now(&planning, &mut statement, &params).await? {
            return Ok(query);
        }
        let plan = self.logical(&planning, statement, text, params).await?;
        if let LogicalPlan::Ddl(_) = &plan
            && hidden::counts_rows(&plan)
        {
            return Err(rows_without_order());
        }
        if let LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) = plan {
            let made = checked_table::create(self.context(), table, request.constraints.as_ref());
            with_own_tables(Arc::default(), made).await?;
            return Ok(self.nothing());
        }
        let option = option_of(&plan, &self.options())?;
        let matching = changes::matching(&plan)?;
        matching
            .as_ref()
            .map_or(Ok(()), row_changes::check_condition)?;
        if let Some(matching) = matching
            && counted(&state, &matching).await? == 0
        {
            changes::check(&plan, &state)?;
            let (plan, context) = self.plan_execution(state, &matching).await?;
            return Ok(Query::new(plan, context, self.workers()).changing_rows());
        }
        let changes_rows = matches!(plan, LogicalPlan::Dml(_));
        let (plan, writes) = Writes::take(plan)?;
        let frame = self.begun(plan, option).await?;
        let (mut state, plan) = frame.into_parts();
        state = self.for_cluster(state, &plan).await?;
        let writes = Arc::new(writes);
        state.config_mut().set_extension(Arc::clone(&writes));
        state.config_mut().set_extension(Arc::clone(&trace));
        let (plan, context) = self.plan_execution(state, &plan).await?;
        trace.planned(thread_cpu().saturating_sub(cpu));
        let query = Query::new(plan, context, self.workers()).writing(writes);
        Ok(match changes_rows {
            true => query.changing_rows(),
            false => query,
        })
    }

    /// Runs a statement that is not DataFusion's; `None` of any other.
    async fn run_now(
        &self,
        planning: &Planning<'_>,
        statement: &mut DataFusionStatement,
        params: &Params,
    ) -> Result<Option<Query>> {
        if let Some(alike) = changes::tables_alike::of(statement)? {
            return self.create_alike(planning, alike).await.map(Some);
        }
        expand::expand_change(statement, planning)?;
        self.change_table(planning, statement, params).await
    }

    /// What DataFusion makes of a plan; one that changes the session's tables has its effect now, among the names of the session.
    async fn begun(&self, plan: LogicalPlan, option: Option<String>) -> Result<DataFrame> {
        let replaced = match &plan {
            LogicalPlan::Ddl(DdlStatement::CreateView(view)) if view.or_replace => Some(&view.name),
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) if table.or_replace => {
                Some(&table.name)
            }
            _ => None,
        };
        let lost = match &plan {
            LogicalPlan::Ddl(DdlStatement::DropTable(table)) => Some(&table.name),
            _ => replaced,
        };
        let lost = match lost.cloned() {
            Some(name) if self.context().table_exist(name.clone())? => {
                self.context().table_provider(name).await.ok()
            }
            _ => None,
        };
        let is_replacement = replaced.is_some();
        let changes_tables = matches!(plan, LogicalPlan::Ddl(_));
        let begun = self.context().execute_logical_plan(plan);
        let frame = match changes_tables {
            true if is_replacement => replacing(begun).await,
            true => with_own_tables(Arc::default(), begun).await,
            false => begun.await,
        };
        let frame = frame.map_err(|error| name_option(Error::from(error), option))?;
        checked_table::retire(lost).await;
        Ok(frame)
    }

    /// DataFusion's plan of execution; joins whose hash tables memory has no room for are merged.
    async fn plan_execution(
        &self,
        mut state: SessionState,
        plan: &LogicalPlan,
    ) -> Result<(Arc<dyn ExecutionPlan>, Arc<TaskContext>)> {
        let limit_bytes = self.shared.pool.limit() as u64;
        let counts_rows = hidden::counts_rows(plan);
        if counts_rows {
            let datafusion = state.config_mut().options_mut();
            datafusion.execution.target_partitions = 1;
        }
        let mut planned = match state.create_physical_plan(plan).await {
            // An estimate that fails is no reason to fail.
            Err(error) if matches!(error.find_root(), DataFusionError::Internal(_)) => {
                let datafusion = state.config_mut().options_mut();
                datafusion.execution.collect_statistics = false;
                state.create_physical_plan(plan).await?
            }
            planned => planned?,
        };
        let explained = match plan {
            LogicalPlan::Explain(explain) => state.create_physical_plan(&explain.plan).await.ok(),
            _ => Some(Arc::clone(&planned)),
        };
        if let Some(found) = &explained
            && joins::has_unordered_keys(found)?
        {
            let datafusion = state.config_mut().options_mut();
            datafusion.optimizer.enable_join_dynamic_filter_pushdown = false;
            planned = state.create_physical_plan(plan).await?;
        }
        // An estimate that fails is no reason to fail.
        if let Some(explained) = explained
            && joins::had_better_merge(&explained, limit_bytes).unwrap_or(false)
        {
            let datafusion = state.config_mut().options_mut();
            datafusion.optimizer.prefer_hash_join = false;
            planned = state.create_physical_plan(plan).await?;
        }
        if counts_rows && merges_partitions(&planned) {
            return Err(rows_without_order());
        }
        Ok((planned, state.task_ctx()))
    }

    /// A statement that is done.
    fn nothing(&self) -> Query {
        let plan = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        Query::new(plan, self.context().task_ctx(), self.workers())
    }

    /// DataFusion's plan. Columns that are only written in another case are respelled: before, where that is sure to be meant,
    /// or once it misses them. Where it does, or meets a name twice, it is asked again.
    async fn resolve(
        &self,
        state: &SessionState,
        mut statement: DataFusionStatement,
    ) -> Result<LogicalPlan> {
        let mut columns: Option<Vec<String>> = None;
        // Whoever writes capitals means columns that have them, most likely: one failure less.
        if spelling::has_capitals(&mut statement) {
            let found = self.columns_of(state, &statement).await;
            spelling::respell_plain(&mut statement, &found);
            columns = Some(found);
        }
        self.write_joins(state, &mut statement).await;
        loop {
            let error = match state.statement_to_plan(statement.clone()).await {
                Ok(plan) => return Ok(views::without_marks(plan)?),
                Err(error) => error,
            };
            let unknown = spelling::unknown_columns(&error);
            if columns.is_none() && !unknown.is_empty() {
                let found = self.columns_of(state, &statement).await;
                let respelled = spelling::respell_plain(&mut statement, &found);
                columns = Some(found);
                if respelled {
                    continue;
                }
            }
            let columns = columns.as_deref().unwrap_or_default();
            let is_rewritten = spelling::respell(&mut statement, &unknown, columns)
                || repeated_names::rename_repeated(&mut statement, &error)
                || repeated_names::is_repeated(&error) && named_casts::name_casts(&mut statement)
                || repeated_names::rename_place(&mut statement, &error)
                || outer_fields::access_fields(&mut statement, &error);
            if !is_rewritten {
                return Err(error.into());
            }
        }
    }

    /// Writes joins with USING as joins with ON, the inner ones first.
    async fn write_joins(&self, state: &SessionState, statement: &mut DataFusionStatement) {
        let mut known = using::ColumnsByQuery::new();
        loop {
            let wanted = using::wanted(statement, &known);
            for query in wanted {
                let columns = self.columns_of_query(state, &query).await;
                known.insert(query, columns);
            }
            if known.is_empty() || !using::rewrite(statement, &known) {
                return;
            }
        }
    }

    /// Names of the columns of a query; `None` if it cannot be planned on its own.
    async fn columns_of_query(&self, state: &SessionState, query: &str) -> Option<Vec<String>> {
        let Request::DataFusion(request) = statement::parse(query).ok()? else {
            return None;
        };
        let plan = state.statement_to_plan(request.statement).await.ok()?;
        let names = plan.schema().fields().iter();
        Some(names.map(|field| field.name().clone()).collect())
    }

    /// Names of the columns of all tables that a statement names.
    async fn columns_of(
        &self,
        state: &SessionState,
        statement: &DataFusionStatement,
    ) -> Vec<String> {
        let mut columns = Vec::new();
        for table in state
            .resolve_table_references(statement)
            .unwrap_or_default()
        {
            // A table that is missing is DataFusion's error to tell.
            if let Ok(table) = self.context().table_provider(table).await {
                let schema = table.schema();
                columns.extend(schema.fields().iter().map(|field| field.name().clone()));
            }
        }
        columns
    }

    fn workers(&self) -> Arc<Workers> {
        Arc::clone(&self.shared.workers.read())
    }
}

/// What the expansion of a statement asks while it is planned.
pub(super) struct Planning<'a> {
    session: &'a Session,
    state: &'a SessionState,
}

impl Planning<'_> {
    /// The plan of a query. It blocks this worker, for which the runtime puts another one in place.
    fn plan(&self, query: SqlQuery) -> Result<LogicalPlan> {
        let statement = SqlStatement::Query(Box::new(query));
        let statement = DataFusionStatement::Statement(Box::new(statement));
        block(self.session.resolve(self.state, statement))
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| Handle::current().block_on(future))
}

/// The columns of a plan that a user sees.
fn columns_of(plan: &LogicalPlan) -> Vec<Column> {
    let columns = plan.schema().iter().map(|(table, field)| Column {
        table: table.map(TableReference::to_vec).unwrap_or_default(),
        field: field.as_ref().clone(),
    });
    let is_seen = |column: &Column| !hidden::is_hidden(column.name());
    columns.filter(is_seen).collect()
}

/// What is known of the table that a plan is all of.
fn facts_of(plan: &LogicalPlan) -> Result<TableFacts> {
    let LogicalPlan::Projection(all) = plan else {
        return Ok(TableFacts::default());
    };
    let LogicalPlan::TableScan(scan) = all.input.as_ref() else {
        return Ok(TableFacts::default());
    };
    let table = source_as_provider(&scan.source)?;
    let checked = table.downcast_ref::<CheckedTable>();
    let rules = checked.map(CheckedTable::rules);
    let fields = scan.source.schema();
    let default = |name: &String| {
        let default = scan.source.get_column_default(name)?;
        default_values::written(default).ok()
    };
    let names = fields.fields().iter().map(|field| field.name());
    Ok(TableFacts {
        defaults: names.map(default).collect(),
        keys: rules.map_or_else(Vec::new, |rules| rules.keys().to_vec()),
        checks: rules.map_or_else(Vec::new, Rules::checks),
        is_in_memory: checked.is_some() || table.is::<MemTable>(),
    })
}

impl Catalog for Planning<'_> {
    fn columns(&self, query: SqlQuery) -> Result<Vec<Column>> {
        Ok(columns_of(&self.plan(query)?))
    }

    fn rows(&self, query: SqlQuery) -> Result<Vec<RecordBatch>> {
        let plan = self.plan(query)?;
        let session = self.session;
        block(async {
            let (plan, context) = session.plan_execution(self.state.clone(), &plan).await?;
            let query = Query::new(plan, context, session.workers());
            let batches: Vec<RecordBatch> = query.execute()?.try_collect().await?;
            Ok(batches)
        })
    }

    fn described(&self, query: SqlQuery) -> Result<(Vec<Column>, TableFacts)> {
        let plan = self.plan(query)?;
        Ok((columns_of(&plan), facts_of(&plan)?))
    }

    fn tables(&self) -> Vec<String> {
        self.session.tables()
    }

    fn is_aggregate(&self, name: &str) -> bool {
        self.state.aggregate_functions().contains_key(name)
    }

    fn is_volatile(&self, name: &str) -> bool {
        let function = self.state.scalar_functions().get(name);
        function.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
    }
}

/// The number that a plan of one count gives.
async fn counted(state: &SessionState, plan: &LogicalPlan) -> Result<u64> {
    let counts = DataFrame::new(state.clone(), plan.clone())
        .collect()
        .await?;
    let count = counts.first().map(|batch| batch.column(0));
    let count = count.and_then(|counts| counts.as_primitive_opt::<UInt64Type>());
    Ok(count
        .and_then(|counts| counts.values().first().copied())
        .unwrap_or(0))
}

fn rows_without_order() -> Error {
    Error::unsupported(
        "POSITIONAL JOIN of a table that is read in parallel or written to one, since its rows have no order; join by a column",
    )
}

/// Whether a plan puts rows of several partitions together in no order.
fn merges_partitions(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_merge = plan.name() == "CoalescePartitionsExec" || plan.name() == "RepartitionExec";
    is_merge || plan.children().into_iter().any(merges_partitions)
}

/// Everything that is registered in a new session: tables, functions, table functions.
fn register(context: &SessionContext, files: &Arc<FileTables>) -> Result<()> {
    let catalog = context
        .catalog(CATALOG)
        .ok_or_else(|| Error::Internal("no default catalog".to_string()))?;
    catalog.register_schema(SCHEMA, Arc::new(FileSchema::new(Arc::clone(files))))?;
    context.register_udtf(numbers::NAME, Arc::new(numbers::NumbersFunction));
    functions::register(context);
    let information = InformationSchema::new(&context.state());
    catalog.register_schema(information_schema::NAME, Arc::new(information))?;
    Ok(())
}
fn runtime_env(
    stores: &Arc<Stores>,
    pool: &Arc<SessionPool>,
    temp: &Arc<TempFolders>,
) -> Result<RuntimeEnv> {
    let builder = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(pool) as _)
        .with_disk_manager_builder(temp.disk_manager())
        .with_object_store_registry(Arc::clone(stores) as _);
    Ok(datafusion_options::apply_runtime(builder)?.build()?)
}
