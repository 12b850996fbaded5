//! Rows that several nodes hand out and one of them reads.
//!
//! In: the nodes' inputs, which are the same query. Out: the rows of the input that was read first, to each node.
//! Invariant: all is read before the first row leaves; a read that is broken off has handed out nothing, and may begin anew.
//! Not here: which parts of a plan share rows (mod.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, execute_stream,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use crate::expr::plan_nodes::{node_methods, only_input};

/// Rows in memory, once they are read.
#[derive(Debug, Default)]
pub(super) struct SharedRows(OnceCell<(Vec<RecordBatch>, MemoryReservation)>);

impl SharedRows {
    pub async fn get(
        &self,
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Vec<RecordBatch>> {
        let read = || async {
            let consumer = MemoryConsumer::new("rows that are read twice");
            let reservation = consumer.register(context.memory_pool());
            let mut rows = execute_stream(input, Arc::clone(&context))?;
            let mut batches = Vec::new();
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                reservation.try_grow(batch.get_array_memory_size())?;
                batches.push(batch);
            }
            Ok::<_, datafusion::common::DataFusionError>((batches, reservation))
        };
        let (batches, _) = self.0.get_or_try_init(read).await?;
        Ok(batches.clone())
    }
}

/// One of the nodes.
#[derive(Debug)]
pub(super) struct ReadOnceExec {
    input: Arc<dyn ExecutionPlan>,
    rows: Arc<SharedRows>,
    properties: Arc<PlanProperties>,
}

impl ReadOnceExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, rows: Arc<SharedRows>) -> ReadOnceExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        ReadOnceExec {
            input,
            rows,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for ReadOnceExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadOnceExec")
    }
}

impl ExecutionPlan for ReadOnceExec {
    node_methods!(with_new_children, no_expressions, properties, input);

    fn name(&self) -> &'static str {
        "ReadOnceExec"
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = only_input(self.name(), children)?;
        Ok(Arc::new(ReadOnceExec::new(input, Arc::clone(&self.rows))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("ReadOnceExec has one partition, not {}", partition + 1);
        }
        let (rows, input) = (Arc::clone(&self.rows), Arc::clone(&self.input));
        let batches = async move { rows.get(input, context).await };
        let batches = futures::stream::once(batches);
        let batches = batches.map_ok(|batches| futures::stream::iter(batches.into_iter().map(Ok)));
        let schema = self.input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            batches.try_flatten(),
        )))
    }
}
