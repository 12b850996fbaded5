//! What has to be planned for each run of a relation, and a relation as a table of another statement.
//!
//! In: a statement with its parameters, the tables and queries that it names. Out: a plan for one run; a stream of its rows.
//! Invariant: a query of the same connection is planned as a part of the statement around it, so that filters and columns go
//! down into it. One of another connection, or one that outlasts its statement, runs on its own and gives its rows.
//! Not here: finding what the names stand for (variables.rs), runs (relation.rs).

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use grouse::{Error, Params, Query, Session, Tables};

use crate::borrowed::Borrowed;
use crate::relation::source::Lasting;

/// What has to be planned for each run.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub text: Arc<str>,
    pub params: Params,
    pub tables: Arc<Tables>,
    pub queries: Arc<[InnerQuery]>,
    /// Memory behind the tables that may change, those of the queries included.
    pub borrowed: Borrowed,
}

/// A query of the same connection that a statement names as a table.
#[derive(Debug, Clone)]
pub struct InnerQuery {
    pub name: String,
    pub recipe: Recipe,
    /// The schema that was announced.
    pub schema: SchemaRef,
}

impl Recipe {
    /// A plan for one run.
    pub fn plan<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, grouse::Result<Query>> {
        async move {
            let tables = self.all_tables(session).await?;
            let params = self.params.clone();
            session.query_over(&self.text, params, tables).await
        }
        .boxed()
    }

    /// Its tables and queries; these are planned anew, since files under them may have changed.
    fn all_tables<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, grouse::Result<Arc<Tables>>> {
        async move {
            if self.queries.is_empty() {
                return Ok(Arc::clone(&self.tables));
            }
            let mut tables = Tables::clone(&self.tables);
            for query in self.queries.iter() {
                tables.insert(query.name.clone(), query.table(session).await?);
            }
            Ok(Arc::new(tables))
        }
        .boxed()
    }

    /// The same statement in a query of its own, such as `EXPLAIN`.
    pub fn within(&self, before: &str) -> Recipe {
        Recipe {
            text: format!("{before} {}", self.text).into(),
            ..self.clone()
        }
    }

    /// The tables behind a statement may have changed since its schema was announced.
    pub fn check(&self, found: &Schema, announced: &Schema) -> grouse::Result<()> {
        if found.fields() == announced.fields() {
            return Ok(());
        }
        let message =
            "the columns of its tables have changed since it was planned; call sql() again"
                .to_string();
        Err(Error::Planning {
            message,
            position: None,
        })
    }
}

impl InnerQuery {
    /// The query as a table of one run.
    async fn table(&self, session: &Session) -> grouse::Result<Arc<dyn TableProvider>> {
        let recipe = &self.recipe;
        let tables = recipe.all_tables(session).await?;
        let params = recipe.params.clone();
        match session.inlined(&recipe.text, params, tables).await? {
            Some(table) => Ok(table),
            None => {
                let (recipe, session) = (recipe.clone(), session.clone());
                let schema = Arc::clone(&self.schema);
                Ok(on_its_own(recipe, session, schema, Lasting::Statement)?)
            }
        }
    }
}

/// A table that runs a relation's statement whenever it is read.
pub fn on_its_own(
    recipe: Recipe,
    session: Session,
    schema: SchemaRef,
    lasting: Lasting,
) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let partition = RecipeStream {
        recipe,
        session,
        schema: Arc::clone(&schema),
        lasting,
    };
    let table = StreamingTable::try_new(schema, vec![Arc::new(partition)])?;
    Ok(Arc::new(table))
}

/// The rows of another relation, of whatever connection.
#[derive(Debug)]
struct RecipeStream {
    recipe: Recipe,
    session: Session,
    schema: SchemaRef,
    lasting: Lasting,
}

impl PartitionStream for RecipeStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (recipe, session, schema) = (
            self.recipe.clone(),
            self.session.clone(),
            Arc::clone(&self.schema),
        );
        let batches = async move {
            let query = recipe.plan(&session).await?;
            recipe.check(&query.schema(), &schema)?;
            Ok::<_, DataFusionError>(query.execute()?)
        };
        let borrowed = match self.lasting {
            Lasting::Statement => Borrowed::default(),
            Lasting::Longer => self.recipe.borrowed.clone(),
        };
        let stream = futures::stream::once(batches).try_flatten();
        let stream = stream.map(move |batch| Ok(borrowed.owned(batch?)?));
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        ))
    }
}
