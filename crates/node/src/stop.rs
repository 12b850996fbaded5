//! The node below a task's writer that ends the task's work: Ballista's own cancel leaves the writer's tasks running.
//! In: a plan. Out: its rows, until the task is over. Then the plan's streams are dropped, at once and whoever waits for them,
//! and its operators end as they do for a reader that has gone.
//! Invariant: a stopped stream ends in an error, never in silence: what was written of it is no result.
//! Not here: when a task is over (stage.rs).

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use grouse::distribution::only_input;
use grouse::{Error, node_methods};
use tokio::sync::watch;

/// What a task shares with its streams.
#[derive(Debug)]
pub struct Task {
    is_over: watch::Sender<bool>,
    /// The plan as it ran: Ballista rebuilds parts of what it is given.
    ran: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl Task {
    /// One that has not begun.
    pub fn new() -> Arc<Task> {
        Arc::new(Task {
            is_over: watch::Sender::new(false),
            ran: OnceLock::new(),
        })
    }

    /// The plan that ran, if it did.
    pub fn ran(&self) -> Option<&Arc<dyn ExecutionPlan>> {
        self.ran.get()
    }

    /// Ends the task's streams when it is dropped, also with the future that holds it.
    pub fn ending(self: &Arc<Self>) -> Ending {
        Ending(Arc::clone(self))
    }
}

/// Dropped, it ends its task.
pub struct Ending(Arc<Task>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.is_over.send_replace(true);
    }
}

/// A plan that ends with its task.
#[derive(Debug)]
pub struct StopExec {
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<Task>,
}

impl StopExec {
    /// `plan` as part of `task`.
    pub fn new(plan: Arc<dyn ExecutionPlan>, task: Arc<Task>) -> StopExec {
        StopExec { plan, task }
    }
}

impl DisplayAs for StopExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopExec")
    }
}

impl ExecutionPlan for StopExec {
    node_methods!(with_new_children, no_expressions);

    fn name(&self) -> &'static str {
        "StopExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = only_input(self.name(), children)?;
        Ok(Arc::new(StopExec::new(plan, Arc::clone(&self.task))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.task.ran.get_or_init(|| Arc::clone(&self.plan));
        let mut is_over = self.task.is_over.subscribe();
        let over = async move {
            // The sender lives in the task, which the stream holds.
            let _ = is_over.wait_for(|over| *over).await;
        };
        Ok(Box::pin(Stopped {
            schema: self.schema(),
            rows: Some(self.plan.execute(partition, context)?),
            over: over.boxed(),
            _task: Arc::clone(&self.task),
        }))
    }
}

/// Rows until the task is over.
struct Stopped {
    schema: SchemaRef,
    /// None once it is.
    rows: Option<SendableRecordBatchStream>,
    over: BoxFuture<'static, ()>,
    _task: Arc<Task>,
}

impl Stream for Stopped {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.rows.is_some() && self.over.poll_unpin(context).is_ready() {
            self.rows = None;
            return Poll::Ready(Some(Err(Error::Cancelled.into())));
        }
        match &mut self.rows {
            Some(rows) => rows.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for Stopped {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::physical_plan::streaming::PartitionStream;
    use datafusion::physical_plan::streaming::StreamingTableExec;

    use super::*;

    /// Never has a row, and knows whether somebody waits.
    #[derive(Debug)]
    struct Silent {
        schema: SchemaRef,
        waited_for: OnceLock<Weak<()>>,
    }

    impl PartitionStream for Silent {
        fn schema(&self) -> &SchemaRef {
            &self.schema
        }

        fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
            let held = Arc::new(());
            self.waited_for.set(Arc::downgrade(&held)).unwrap();
            let rows = futures::stream::poll_fn(move |_| {
                let _held = &held;
                Poll::Pending
            });
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                rows,
            ))
        }
    }

    #[tokio::test]
    async fn a_stream_that_waits_ends_with_its_task() {
        let schema = SchemaRef::new(datafusion::arrow::datatypes::Schema::empty());
        let silent = Arc::new(Silent {
            schema: Arc::clone(&schema),
            waited_for: OnceLock::new(),
        });
        let source = StreamingTableExec::try_new(
            Arc::clone(&schema),
            vec![Arc::clone(&silent) as _],
            None,
            [],
            false,
            None,
        );
        let task = Task::new();
        let plan = StopExec::new(Arc::new(source.unwrap()), Arc::clone(&task));
        let mut rows = plan.execute(0, Arc::default()).unwrap();
        let ending = task.ending();
        let reading = tokio::spawn(async move { (rows.next().await, rows.next().await) });
        tokio::task::yield_now().await;
        let held = silent.waited_for.get().unwrap();
        assert!(held.upgrade().is_some() && !reading.is_finished());
        drop(ending);
        let (end, none) = reading.await.unwrap();
        assert_eq!(Error::from(end.unwrap().unwrap_err()), Error::Cancelled);
        assert!(none.is_none() && held.upgrade().is_none());
    }
}
