//! A planned query: run it, watch it.
//!
//! In: DataFusion's physical plan.
//! Out: one stream of record batches, whoever polls it; progress while it runs.
//! Invariant: all work runs on the session's workers; dropping the stream stops it.
//! Not here: planning (mod.rs), the operators.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::runtime::fair_shares::{self, EndWhenDropped, taking_turns};
use crate::runtime::options::SessionOptions;
use crate::runtime::trace::{Lane, Phase, Recorder, Trace};
use crate::scan::error_location::locate_error;
use crate::scan::writes::request::Writes;
use crate::session::profile::Recording;
use crate::session::progress::Progress;
use crate::session::timeout;
use crate::session::workers::{Workers, join_error};
use crate::sql::place::told_of_run;

/// Batches that may wait for a slow consumer, per partition.
const WAITING_BATCHES_PER_PARTITION: usize = 2;

/// One planned statement. Statements without rows, such as `SET`, are over when their `Query` exists.
pub struct Query {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    workers: Arc<Workers>,
    clock: Arc<Clock>,
    writes: Arc<Writes>,
    text: Arc<str>,
    trace: Arc<Trace>,
    changes_rows: bool,
}

/// When the first execution started and the last one ended.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    started: OnceLock<Instant>,
    ended: OnceLock<Instant>,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("plan", &self.plan.name())
            .finish_non_exhaustive()
    }
}

impl Query {
    pub(crate) fn new(
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        workers: Arc<Workers>,
    ) -> Query {
        // One that is planned without a trace has none to record.
        let trace = context.session_config().get_extension();
        let trace = trace.unwrap_or_else(|| Arc::new(Trace::new()));
        Query {
            plan,
            context,
            workers,
            clock: Arc::default(),
            writes: Arc::default(),
            text: Arc::default(),
            trace,
            changes_rows: false,
        }
    }

    /// Records from now on what its workers do; the profile is complete once the query is over.
    pub fn record(&self) -> Recording {
        Recording::begin(
            Arc::clone(&self.trace),
            &self.text,
            self.workers.handle().metrics().num_workers(),
        )
    }

    /// The same with the statement that it is, for the places of errors.
    pub(crate) fn of(self, text: &str) -> Query {
        let text = text.into();
        Query { text, ..self }
    }

    /// The same with the files that it writes, which go where it does not come to its end.
    pub(crate) fn writing(self, writes: Arc<Writes>) -> Query {
        Query { writes, ..self }
    }

    /// The same, of a statement that changes rows.
    pub(crate) fn changing_rows(self) -> Query {
        Query {
            changes_rows: true,
            ..self
        }
    }

    /// Whether the statement changes rows, and its batches tell how many. Some change them while they are planned, others
    /// when they run: to plan or run such a statement again is to change rows again.
    pub fn changes_rows(&self) -> bool {
        self.changes_rows
    }

    /// The schema of the batches, which is the physical plan's.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The physical plan.
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// Starts the query on the session's workers; its batches arrive in one stream, none of them empty.
    ///
    /// Errors in the stream turn into [`Error`] with `Error::from`.
    pub fn execute(&self) -> Result<SendableRecordBatchStream> {
        self.clock.started.get_or_init(Instant::now);
        let partitions = self
            .plan
            .properties()
            .output_partitioning()
            .partition_count();
        let waiting = (partitions * WAITING_BATCHES_PER_PARTITION).max(1);
        let (sender, receiver) = mpsc::channel(waiting);
        let options = SessionOptions::of(self.context.session_config().options());
        let limit = options.statement_timeout;
        let timeout = timeout::clock(limit, &sender, self.workers.handle());
        let mut tasks = JoinSet::new();
        let share = fair_shares::PROCESS.begin();
        for partition in 0..partitions {
            let plan = Arc::clone(&self.plan);
            let context = Arc::clone(&self.context);
            let sender = sender.clone();
            let work = run_partition(plan, partition, context, sender);
            tasks.spawn_on(
                taking_turns(Arc::clone(&share), work),
                self.workers.handle(),
            );
        }
        Ok(Box::pin(MergedPartitions {
            schema: self.schema(),
            receiver,
            tasks,
            clock: Arc::clone(&self.clock),
            state: ResultState::Running,
            writes: Arc::clone(&self.writes),
            context: Arc::clone(&self.context),
            text: Arc::clone(&self.text),
            share: EndWhenDropped(share),
            _timeout: timeout,
            _workers: Arc::clone(&self.workers),
        }))
    }

    /// Whether it is a COPY to standard output, whose count of rows would follow the file's bytes there.
    pub fn writes_to_stdout(&self) -> bool {
        self.writes.to_stdout
    }

    /// Where the query stands.
    pub fn progress(&self) -> Progress {
        let elapsed = match (self.clock.started.get(), self.clock.ended.get()) {
            (None, _) => Default::default(),
            (Some(start), None) => start.elapsed(),
            (Some(start), Some(end)) => end.duration_since(*start),
        };
        Progress::of(&self.plan, self.context.memory_pool().reserved(), elapsed)
    }
}

type Item = Result<RecordBatch, DataFusionError>;

/// Runs one partition to its end; a consumer that is gone ends it too.
async fn run_partition(
    plan: Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<Item>,
) {
    let trace = context.session_config().get_extension::<Trace>();
    let recorder = Recorder::new(trace.as_ref(), Lane::Stream(partition));
    let end = match plan.execute(partition, Arc::clone(&context)) {
        Ok(stream) => forward(stream, &plan.schema(), &sender, &recorder).await,
        Err(error) => Err(error),
    };
    if let Err(error) = end {
        let error = locate_error(error.into(), &plan, context).await;
        // The consumer may be gone: then nobody wants the error either.
        let _ = sender.send(Err(error.into())).await;
    }
}

async fn forward(
    mut stream: SendableRecordBatchStream,
    schema: &SchemaRef,
    sender: &mpsc::Sender<Item>,
    recorder: &Recorder,
) -> Result<(), DataFusionError> {
    let rows = |next: &Option<Item>| {
        let batch = next.as_ref().and_then(|next| next.as_ref().ok());
        batch.map_or(0, RecordBatch::num_rows)
    };
    while let Some(batch) = recorder.polls(Phase::Output, stream.next(), rows).await {
        let batch = under(schema, batch?);
        if batch.num_rows() > 0 && sender.send(Ok(batch)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The batch under the schema of the whole query. A scan says of a folder's column that it is never NULL where its file's value
/// is not. Readers of a stream in one schema (pyarrow, tables in memory) refuse batches in others.
fn under(schema: &SchemaRef, batch: RecordBatch) -> RecordBatch {
    if batch.schema_ref() == schema {
        return batch;
    }
    let same = batch.clone().with_schema(Arc::clone(schema));
    same.unwrap_or(batch)
}

/// All partitions as one stream.
struct MergedPartitions {
    schema: SchemaRef,
    receiver: mpsc::Receiver<Item>,
    /// Dropped, it aborts every task that still runs.
    tasks: JoinSet<()>,
    clock: Arc<Clock>,
    state: ResultState,
    writes: Arc<Writes>,
    context: Arc<TaskContext>,
    text: Arc<str>,
    /// Dropped, it tells tasks that do not give way.
    share: EndWhenDropped,
    /// Dropped, it stops the clock.
    _timeout: JoinSet<()>,
    _workers: Arc<Workers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultState {
    /// Batches may come.
    Running,
    /// Every task has let go of the channel; they are asked whether they panicked.
    Joining,
    /// Nothing comes any more.
    Done,
}

impl MergedPartitions {
    fn end(&mut self) {
        self.state = ResultState::Done;
        self.share.0.end();
        self.tasks.abort_all();
        self.writes.discard();
        self.clock.ended.get_or_init(Instant::now);
    }

    fn fail(&mut self, error: DataFusionError) -> Poll<Option<Item>> {
        self.end();
        let error = told_of_run(Error::from(error), self.context.as_ref(), &self.text);
        Poll::Ready(Some(Err(error.into())))
    }
}

impl Stream for MergedPartitions {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        loop {
            match self.state {
                ResultState::Done => return Poll::Ready(None),
                ResultState::Running => match ready!(self.receiver.poll_recv(cx)) {
                    Some(Ok(batch)) => return Poll::Ready(Some(Ok(batch))),
                    Some(Err(error)) => return self.fail(error),
                    None => self.state = ResultState::Joining,
                },
                ResultState::Joining => match ready!(self.tasks.poll_join_next(cx)) {
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        let error = join_error(error);
                        return self.fail(error.into());
                    }
                    None => self.end(),
                },
            }
        }
    }
}

impl RecordBatchStream for MergedPartitions {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for MergedPartitions {
    fn drop(&mut self) {
        // At once, and not when the tasks notice: the process may be about to end.
        self.writes.discard();
        self.clock.ended.get_or_init(Instant::now);
    }
}
