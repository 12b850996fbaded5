//! Statements that wait for their values: PREPARE and EXECUTE.
//!
//! In: what sql/prepared.rs makes of them. Out: nothing of PREPARE; the query of EXECUTE.
//! Invariant: a query that names a table or a column that is not there fails when it is prepared, whatever its values.
//! Not here: what a prepared statement is (sql/prepared.rs).

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use futures::TryStreamExt;

use super::Session;
use crate::error::{Error, Result};
use crate::session::query::Query;
use crate::sql::params::{self, Params};
use crate::sql::planned;
use crate::sql::prepared::{self, ExecuteStatement, Prepared};
use crate::sql::statement::{self, DataFusionRequest, Request};

impl Session {
    /// Runs PREPARE.
    pub(super) async fn prepare(
        &self,
        name: &str,
        prepared: Prepared,
        request: Request,
    ) -> Result<Query> {
        if let Request::DataFusion(request) = request
            && is_query(&request.statement)
        {
            let params = params::without_values(&request.statement);
            // What its values decide is known when they are.
            let planned = Box::pin(self.plan_datafusion(&prepared.text, *request, params)).await;
            if let Err(
                error @ (Error::UnknownTable { .. }
                | Error::UnknownColumn { .. }
                | Error::UnknownFunction { .. }),
            ) = planned.map_err(Error::without_position)
            {
                return Err(error);
            }
        }
        self.shared.definitions.prepare(name, prepared);
        Ok(self.nothing())
    }

    /// The query of EXECUTE; DEALLOCATE is done here. `None` of other statements.
    pub(super) async fn of_prepared(
        &self,
        statement: &DataFusionStatement,
        text: &str,
        state: &SessionState,
        params: &Params,
    ) -> Result<Option<Query>> {
        if let Some(name) = prepared::deallocated(statement) {
            self.shared.definitions.deallocate(name)?;
            return Ok(Some(self.nothing()));
        }
        let Some(execution) = prepared::execution(statement) else {
            return Ok(None);
        };
        planned::check(statement, text, state)?;
        let query = self.execute_prepared(execution, params.clone()).await?;
        Ok(Some(query))
    }

    /// Plans what EXECUTE stands for.
    async fn execute_prepared(
        &self,
        execution: ExecuteStatement<'_>,
        params: Params,
    ) -> Result<Query> {
        let prepared = self.shared.definitions.prepared(&execution.name)?;
        let values = match execution.values(&prepared)? {
            None => Vec::new(),
            Some(sql) => match statement::parse(&sql)? {
                Request::DataFusion(request) => {
                    let row = self.first_row(&sql, *request, params).await;
                    row.map_err(Error::without_position)?
                }
                _ => return Err(Error::Internal(format!("no query: {sql}"))),
            },
        };
        let params = execution.params(values)?;
        let text = format!("{}{}", execution.prefix, prepared.text);
        Box::pin(self.plan(&text, params))
            .await
            .map_err(Error::without_position)
    }

    /// The values in the first row of a query; none if it has no row.
    pub(super) async fn first_row(
        &self,
        text: &str,
        request: DataFusionRequest,
        params: Params,
    ) -> Result<Vec<ScalarValue>> {
        let query = Box::pin(self.plan_datafusion(text, request, params)).await?;
        let batches: Vec<RecordBatch> = query.execute()?.try_collect().await?;
        let Some(row) = batches.first() else {
            return Ok(Vec::new());
        };
        let values = row.columns().iter();
        let values = values.map(|column| Ok(ScalarValue::try_from_array(column, 0)?));
        values.collect()
    }
}

fn is_query(statement: &DataFusionStatement) -> bool {
    match statement {
        DataFusionStatement::Statement(sql) => matches!(sql.as_ref(), SqlStatement::Query(_)),
        _ => false,
    }
}
