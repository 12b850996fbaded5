//! Where workers get batches from: the input's streams, each pulled by one worker at a time.
//!
//! In: the input plan. Out: batches, each to one worker.
//! Invariant: a worker that holds a source drives it itself: a batch is decoded and grouped on one core. A worker
//! whose own source has ended helps with those of others, unless order matters.
//! Not here: what is done with a batch; with which source a worker helps (source_scheduler.rs).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use futures::stream::{Stream, StreamExt, select_all};
use tokio::sync::Mutex;

use super::order::InputOrder;
use super::recording_filter::RecordingFilterExec;
use super::selections::SelectingFilterExec;
use super::source_scheduler::SourceScheduler;
use crate::runtime::wakeups;
use crate::scan::numbers::NumbersExec;
use crate::scan::parquet::recording::parquet_scan;

/// A batch of a scan that is no larger than this is still in the core's own cache when it is grouped.
const BATCH_BYTES: usize = 512 << 10;
/// Batches of a scan have at most so many times the session's rows. Each costs 2 us beside its rows, a tenth of the time
/// of `count(*)` by a short key. Of 77 queries those of narrow columns took 0.9 to 0.98 of the time with four times the
/// rows, those of four decimals or whole strings 1.0 to 1.06. Counts of 100 M numbers by 10,000 values took 0.84.
const BATCH_TIMES_MAX: usize = 4;
/// Whoever asks for fewer rows has another reason than speed.
const BATCH_ROWS_MIN: usize = 1 << 10;

type Batches = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

/// All sources of one execution.
pub(super) struct Sources {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sources: Vec<StreamGroup>,
    /// Which of them a worker reads.
    pub scheduler: SourceScheduler,
}

/// Some of the input's streams, read as one.
struct StreamGroup {
    partitions: Vec<usize>,
    state: Mutex<StreamState>,
}

enum StreamState {
    Waiting,
    Running(Batches),
    Ended,
}

/// How many workers read an input of `partitions` streams.
pub(super) fn readers(partitions: usize, workers: usize, input_order: InputOrder) -> usize {
    match input_order {
        InputOrder::Any => workers,
        InputOrder::Preserved => partitions.max(1),
    }
}

/// The context for `input`: with more rows in a batch where it is numbers or a scan of a Parquet file's narrow columns.
fn for_input(input: &Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Arc<TaskContext> {
    let rows = context.session_config().batch_size();
    let times = row_bytes(input).map_or(1, |bytes| BATCH_BYTES / rows.saturating_mul(bytes.max(1)));
    if times <= 1 || rows < BATCH_ROWS_MIN {
        return context;
    }
    let config = context.session_config().clone();
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config.with_batch_size(rows * times.min(BATCH_TIMES_MAX)),
        // Expressions have theirs; copies of these lists of hundreds took a fiftieth of a short query.
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        context.runtime_env(),
    ))
}

/// Bytes of a row of the Parquet scan or the numbers below filters and projections; none where it is another input, or a
/// column's values have no fixed width.
fn row_bytes(input: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let mut scan = input;
    while scan.is::<FilterExec>()
        || scan.is::<RecordingFilterExec>()
        || scan.is::<SelectingFilterExec>()
        || scan.is::<ProjectionExec>()
    {
        scan = scan.children()[0];
    }
    let files = scan.downcast_ref::<DataSourceExec>();
    let is_parquet = files.is_some_and(|of| parquet_scan(of).is_some());
    if !is_parquet && !scan.is::<NumbersExec>() {
        return None;
    }
    let schema = scan.schema();
    let fields = schema.fields().iter();
    fields.map(|field| value_bytes(field.data_type())).sum()
}

/// Bytes of a value in a batch.
fn value_bytes(kind: &DataType) -> Option<usize> {
    match kind {
        DataType::Boolean => Some(1),
        DataType::Dictionary(code, _) => value_bytes(code),
        kind => kind.primitive_width(),
    }
}

impl Sources {
    /// Deals these `partitions` of `input` out to `readers` workers.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        partitions: Vec<usize>,
        context: Arc<TaskContext>,
        readers: usize,
        input_order: InputOrder,
    ) -> Sources {
        let context = for_input(&input, context);
        let count = partitions.len().min(readers);
        let own = |source: usize| partitions.iter().copied().skip(source).step_by(count);
        let sources = (0..count)
            .map(|source| StreamGroup {
                partitions: own(source).collect(),
                state: Mutex::new(StreamState::Waiting),
            })
            .collect();
        Sources {
            input,
            context,
            sources,
            scheduler: SourceScheduler::new(count, input_order == InputOrder::Any),
        }
    }

    /// The next batch of a source, with a selection where its filter selects rows; `None` when it has ended.
    pub async fn next(&self, source: usize) -> Result<Option<RecordBatch>> {
        let mut state = self.sources[source].state.lock().await;
        self.scheduler.reached(source);
        loop {
            match &mut *state {
                StreamState::Waiting => {
                    *state = StreamState::Running(self.open(&self.sources[source].partitions)?);
                }
                StreamState::Running(stream) => match stream.next().await {
                    Some(batch) => {
                        drop(state);
                        if self.scheduler.taken(source) {
                            wakeups::share();
                        }
                        return batch.map(Some);
                    }
                    None => *state = StreamState::Ended,
                },
                StreamState::Ended => {
                    self.scheduler.ended(source);
                    drop(state);
                    wakeups::share();
                    return Ok(None);
                }
            }
        }
    }

    /// Several streams are read in turn: those of an exchange would buffer without bound if one were left alone.
    fn open(&self, partitions: &[usize]) -> Result<Batches> {
        let filter = self.input.downcast_ref::<SelectingFilterExec>();
        let open = |partition: &usize| -> Result<Batches> {
            let context = Arc::clone(&self.context);
            Ok(match filter {
                Some(filter) => Box::pin(filter.execute_selecting(*partition, context)?),
                None => self.input.execute(*partition, context)?,
            })
        };
        let mut streams = partitions.iter().map(open).collect::<Result<Vec<_>>>()?;
        Ok(match streams.pop() {
            Some(one) if streams.is_empty() => one,
            last => Box::pin(select_all(streams.into_iter().chain(last))),
        })
    }
}
