//! Queries as tables of other queries, which plan them as parts of themselves.
//!
//! In: the text of a query, its parameters, its own tables. Out: a table of its columns; the plan behind it.
//! Invariant: the query around it pushes its filters and columns into it, as into a view; names in it mean what they mean alone.
//! Not here: views that the session keeps (scan/views.rs).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DataFusionStatement;
use tokio::task::JoinSet;

use super::{Planning, Session};
use crate::error::{Error, Result};
use crate::optimizer::fixes;
use crate::scan::schema::{Tables, with_own_tables};
use crate::session::timeout::within;
use crate::session::workers::join_error;
use crate::sql::params::{self, Params};
use crate::sql::place::told;
use crate::sql::statement::{self, Request};
use crate::sql::{expand, name_tables_of_functions, planned, reads};

impl Session {
    /// A query as a table for [`Session::query_over`]; `None` of other statements, and of a query that gives a name twice.
    pub async fn inlined(
        &self,
        text: &str,
        params: Params,
        tables: Arc<Tables>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let (session, statement) = (self.clone(), text.to_string());
        let planning = async move { session.plan_inlined(&statement, params).await };
        self.on_workers(text, tables, planning).await
    }

    /// Plans on the session's workers, with tables that no other statement sees.
    pub(super) async fn on_workers<T: Send + 'static>(
        &self,
        text: &str,
        tables: Arc<Tables>,
        planning: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let mut task = JoinSet::new();
        let planning = within(self.options().statement_timeout, planning);
        task.spawn_on(with_own_tables(tables, planning), self.handle());
        match task.join_next().await {
            Some(Ok(planned)) => {
                planned.map_err(|error| told(error, self.context(), &self.tables(), text))
            }
            Some(Err(error)) => Err(join_error(error)),
            None => Err(Error::Internal("a plan without a task".to_string())),
        }
    }

    async fn plan_inlined(
        &self,
        text: &str,
        params: Params,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let Request::DataFusion(request) = statement::parse(text)? else {
            return Ok(None);
        };
        if !reads::is_query(&request.statement) {
            return Ok(None);
        }
        for call in request.files {
            self.shared.files.add_call(call);
        }
        let (mut state, mut statement) = (self.context().state(), request.statement);
        self.bind(&mut statement, &params, &mut state)?;
        let planning = Planning {
            session: self,
            state: &state,
        };
        let plan = self.logical(&planning, statement, text, params).await?;
        let mut names = HashSet::new();
        let is_named_once = |name: &String| names.insert(name.clone());
        let mut columns = plan.schema().fields().iter().map(|field| field.name());
        if !columns.all(is_named_once) {
            return Ok(None);
        }
        Ok(Some(Arc::new(ViewTable::new(plan, None))))
    }

    /// Puts the values of parameters and variables into a statement, and what macros stand for.
    pub(super) fn bind(
        &self,
        statement: &mut DataFusionStatement,
        params: &Params,
        state: &mut SessionState,
    ) -> Result<()> {
        let definitions = &self.shared.definitions;
        definitions.expand_macros(statement)?;
        name_tables_of_functions(statement, self.shared.caller_functions.volatile())?;
        let variables = definitions.bind_variables(statement);
        params::bind(statement, params, variables, state)?;
        Ok(fixes::keep_long_literals(statement, state)?)
    }

    /// The logical plan of a bound statement.
    pub(super) async fn logical(
        &self,
        planning: &Planning<'_>,
        mut statement: DataFusionStatement,
        text: &str,
        params: Params,
    ) -> Result<LogicalPlan> {
        expand::expand(&mut statement, planning)?;
        planned::check(&statement, text, planning.state)?;
        let plan = self.resolve(planning.state, statement).await?;
        params::resolve(fixes::count_equal_rows(plan)?, params)
    }
}
