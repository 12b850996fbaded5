//! The tables `reject_errors` and `reject_scans`, or as a call names them.
//!
//! In: the names, the session that has or gets tables of these names.
//! Out: tables that show what the last statement that read files under these names has left out.
//! Invariant: no other table is replaced or shown.
//! Not here: what is kept (rejects.rs), the options (options.rs).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DataFusionResult, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use parking_lot::Mutex;

use super::options::RejectOptions;
use super::rejects::{RejectsOf, ShownRejects, errors_schema, scans_schema};
use crate::error::{Error, Result};

/// What a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Errors,
    Scans,
}

/// The tables of a call, and what else is known of it before its files are.
pub(crate) async fn rejects_of(
    options: &RejectOptions,
    state: &SessionState,
    (scan, statement): (u64, u64),
) -> Result<RejectsOf> {
    let errors = shown_in("rejects_table", &options.errors, About::Errors, state).await?;
    let scans = shown_in("rejects_scan", &options.scans, About::Scans, state).await?;
    Ok(RejectsOf {
        scan,
        statement,
        limit: options.limit,
        pool: Arc::clone(&state.runtime_env().memory_pool),
        tables: [errors, scans],
    })
}

/// What the table of such a name shows; it is made where there is none.
async fn shown_in(
    option: &str,
    name: &str,
    about: About,
    state: &SessionState,
) -> Result<Arc<Mutex<ShownRejects>>> {
    let schema = state.schema_for_ref(TableReference::bare(name))?;
    let known = match schema.table_exist(name) {
        true => schema.table(name).await?,
        false => None,
    };
    let Some(known) = known else {
        let (table, shown) = RejectTable::new(about)?;
        schema.register_table(name.to_string(), Arc::new(table))?;
        return Ok(shown);
    };
    let ours = known.downcast_ref::<RejectTable>();
    match ours.filter(|ours| ours.about == about) {
        Some(ours) => Ok(Arc::clone(&ours.shown)),
        None => Err(Error::invalid(
            "argument of read_csv",
            format!(
                "{option}: there is a table '{name}', which has no such rows; {option} => '…' gives another name"
            ),
        )),
    }
}

/// A table of rejects.
#[derive(Debug)]
struct RejectTable {
    about: About,
    shown: Arc<Mutex<ShownRejects>>,
    stream: StreamingTable,
}

impl RejectTable {
    fn new(about: About) -> Result<(RejectTable, Arc<Mutex<ShownRejects>>)> {
        let shown: Arc<Mutex<ShownRejects>> = Arc::default();
        let schema = match about {
            About::Errors => errors_schema(),
            About::Scans => scans_schema(),
        };
        let partition = RejectStream {
            about,
            schema: Arc::clone(&schema),
            shown: Arc::clone(&shown),
        };
        let table = RejectTable {
            about,
            shown: Arc::clone(&shown),
            stream: StreamingTable::try_new(schema, vec![Arc::new(partition)])?,
        };
        Ok((table, shown))
    }
}

#[async_trait]
impl TableProvider for RejectTable {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.stream.scan(state, projection, filters, limit).await
    }
}

#[derive(Debug)]
struct RejectStream {
    about: About,
    schema: SchemaRef,
    shown: Arc<Mutex<ShownRejects>>,
}

impl PartitionStream for RejectStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        type Batches = Box<dyn Iterator<Item = DataFusionResult<RecordBatch>> + Send>;
        let rows = context.session_config().batch_size();
        let kept = self.shown.lock().kept.clone().into_iter();
        let batches: Batches = match self.about {
            About::Errors => Box::new(kept.flat_map(move |kept| kept.errors(rows))),
            About::Scans => Box::new(kept.map(|kept| kept.scans())),
        };
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::iter(batches),
        ))
    }
}
