//! What a statement is before it runs: its parameters, and the columns of its result.
//!
//! In: the text of a statement. Out: a [`Description`].
//! Invariant: nothing is run and nothing changes, whatever the statement is; a statement that would change something is said
//! to have no columns. A type that only a value could tell is left open.
//! Not here: running it (query.rs), statements that get their values later (prepared.rs).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as DataFusionStatement;

use super::Session;
use crate::error::Result;
use crate::sql::params::{self, Params};
use crate::sql::reads;
use crate::sql::statement::{self, DataFusionRequest, Request};

/// A statement before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Its parameters in their order, without the dollar sign: `1` for `$1` and the first `?`, `name` for `$name`. The type is
    /// that which the place demands, if it demands one.
    pub parameters: Vec<(String, Option<DataType>)>,
    /// The columns of its result; none of a statement that gives no rows, or changes something.
    pub columns: SchemaRef,
}

impl Session {
    /// The names of a statement's parameters in their order, without the dollar sign.
    pub fn parameters(text: &str) -> Result<Vec<String>> {
        Ok(match statement::parse(text)? {
            Request::DataFusion(request) => params::names(&request.statement),
            Request::SetVariable {
                value: Some(request),
                ..
            } => params::names(&request.statement),
            _ => Vec::new(),
        })
    }

    /// Describes one statement.
    pub async fn describe(&self, text: &str) -> Result<Description> {
        let (session, statement) = (self.clone(), text.to_string());
        let planning = async move { session.described(&statement).await };
        self.on_workers(text, Arc::default(), planning).await
    }

    async fn described(&self, text: &str) -> Result<Description> {
        let names = Session::parameters(text)?;
        let Request::DataFusion(request) = statement::parse(text)? else {
            return Ok(Description::without_columns(names));
        };
        let mut types = self.demanded_types(&request, &names).await;
        let columns = match gives_rows(&request.statement) {
            true => self.columns_with(text, *request, &names, &types).await?,
            false => Arc::new(Schema::empty()),
        };
        let parameters = names.into_iter().map(|name| {
            let kind = types.remove(&name);
            (name, kind)
        });
        Ok(Description {
            parameters: parameters.collect(),
            columns,
        })
    }

    /// The types that the places of parameters demand. DataFusion knows some; a statement that it cannot plan without values has
    /// none that are known.
    async fn demanded_types(
        &self,
        request: &DataFusionRequest,
        names: &[String],
    ) -> HashMap<String, DataType> {
        if names.is_empty() || !request.files.is_empty() {
            return HashMap::new();
        }
        let state = self.context().state();
        let plan = self.resolve(&state, request.statement.clone()).await;
        let found = plan.ok().and_then(|plan| plan.get_parameter_types().ok());
        let found = found.into_iter().flatten();
        let known = found.filter_map(|(name, kind)| {
            let kind = kind.filter(|kind| !kind.is_null())?;
            Some((name.strip_prefix('$')?.to_string(), kind))
        });
        known.collect()
    }

    /// The columns of a query whose parameters are NULL.
    async fn columns_with(
        &self,
        text: &str,
        request: DataFusionRequest,
        names: &[String],
        types: &HashMap<String, DataType>,
    ) -> Result<SchemaRef> {
        let nulls = names.iter().map(|name| {
            let kind = types.get(name).unwrap_or(&DataType::Null);
            Ok((name.clone(), ScalarValue::try_from(kind)?))
        });
        let params = match names.is_empty() {
            true => Params::None,
            false => Params::Named(nulls.collect::<Result<_>>()?),
        };
        let query = Box::pin(self.plan_datafusion(text, request, params)).await?;
        Ok(query.schema())
    }
}

impl Description {
    fn without_columns(names: Vec<String>) -> Description {
        Description {
            parameters: names.into_iter().map(|name| (name, None)).collect(),
            columns: Arc::new(Schema::empty()),
        }
    }
}

/// Whether a statement gives rows, and its plan is all there is of it until it runs.
fn gives_rows(statement: &DataFusionStatement) -> bool {
    !matches!(statement, DataFusionStatement::CopyTo(_)) && reads::keeps_nothing(statement)
}
