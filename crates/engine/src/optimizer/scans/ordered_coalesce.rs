//! Partitions put together in their order, while several of them are read ahead.
//!
//! In: a plan whose partitions follow each other. Out: its rows in one stream, those of the first partition first.
//! Invariant: rows that wait for their turn hold at most `READ_AHEAD_BYTES`, and nothing that the session's limit has no room
//! for. The partition whose turn it is has always room for a batch, so that nothing waits for ever.
//! Not here: how a scan is cut into partitions (row_order.rs).

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, Statistics, exec_datafusion_err, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::expr::plan_nodes::{node_methods, only_input};

/// Bytes of rows that wait for their turn.
const READ_AHEAD_BYTES: usize = 64 << 20;

/// The node.
#[derive(Debug)]
pub(super) struct OrderedCoalesceExec {
    input: Arc<dyn ExecutionPlan>,
    /// Partitions that are read at once.
    readers: usize,
    /// OrderedRows after which it stops.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl OrderedCoalesceExec {
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        readers: usize,
        fetch: Option<usize>,
    ) -> OrderedCoalesceExec {
        let mut equivalences = input.equivalence_properties().clone();
        // Each partition may be sorted for itself.
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        OrderedCoalesceExec {
            input,
            readers: readers.max(1),
            fetch,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for OrderedCoalesceExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fetch {
            Some(fetch) => write!(f, "OrderedCoalesceExec: fetch={fetch}"),
            None => f.write_str("OrderedCoalesceExec"),
        }
    }
}

impl ExecutionPlan for OrderedCoalesceExec {
    node_methods!(
        with_new_children,
        no_expressions,
        properties,
        metrics,
        input
    );

    fn name(&self) -> &'static str {
        "OrderedCoalesceExec"
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(OrderedCoalesceExec::new(
            only_input(self.name(), children)?,
            self.readers,
            self.fetch,
        )))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!(
                "OrderedCoalesceExec has one partition, not {}",
                partition + 1
            );
        }
        let reservation = MemoryConsumer::new("rows read ahead").register(context.memory_pool());
        let rows = OrderedRows {
            partitions: self.input.output_partitioning().partition_count(),
            input: Arc::clone(&self.input),
            context,
            begun: 0,
            reading: VecDeque::new(),
            readers: self.readers,
            left: self.fetch.unwrap_or(usize::MAX),
            room: Arc::new(Room {
                held: Mutex::new(HeldBytes {
                    bytes: 0,
                    turn: 0,
                    reservation,
                }),
                freed: Notify::new(),
            }),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            rows.into_stream(),
        )))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [rows] => Ok(Arc::new(
                rows.as_ref().clone().with_fetch(self.fetch, 0, 1)?,
            )),
            _ => internal_err!("OrderedCoalesceExec has one input, not {}", inputs.len()),
        }
    }
}

/// The rows of one execution.
struct OrderedRows {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    partitions: usize,
    /// How many partitions are read or over.
    begun: usize,
    /// Those that are read, the one whose turn it is first.
    reading: VecDeque<PartitionRead>,
    readers: usize,
    /// OrderedRows until `fetch`.
    left: usize,
    room: Arc<Room>,
    metrics: BaselineMetrics,
}

/// One partition; it is no longer read once this is dropped.
struct PartitionRead {
    batches: mpsc::UnboundedReceiver<WaitingBatch>,
    waiting: Arc<AtomicUsize>,
    task: SpawnedTask<Result<()>>,
}

/// A batch that waits, and what is held for it.
struct WaitingBatch {
    batch: RecordBatch,
    bytes: usize,
}

impl OrderedRows {
    fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        stream::unfold(Some(self), |rows| async {
            let mut rows = rows?;
            match rows.next().await {
                Ok(Some(batch)) => Some((Ok(batch), Some(rows))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            while self.reading.len() < self.readers && self.begun < self.partitions {
                let reading = self.begin();
                self.reading.push_back(reading);
            }
            let Some(first) = self.reading.front_mut() else {
                break;
            };
            match first.batches.recv().await {
                Some(WaitingBatch { batch, bytes }) => {
                    first.waiting.fetch_sub(1, Ordering::Relaxed);
                    self.room.give_back(bytes);
                    let rows = batch.num_rows().min(self.left);
                    self.left -= rows;
                    self.metrics.record_output(rows);
                    return Ok(Some(batch.slice(0, rows)));
                }
                None => self.end_first().await?,
            }
        }
        self.reading.clear();
        self.metrics.done();
        Ok(None)
    }

    fn begin(&mut self) -> PartitionRead {
        let (sender, batches) = mpsc::unbounded_channel();
        let partition = self.begun;
        self.begun += 1;
        let (input, context) = (Arc::clone(&self.input), Arc::clone(&self.context));
        let room = Arc::clone(&self.room);
        let waiting = Arc::default();
        let line = Line {
            partition,
            batches: sender,
            waiting: Arc::clone(&waiting),
        };
        let task = SpawnedTask::spawn(read(input, context, line, room));
        PartitionRead {
            batches,
            waiting,
            task,
        }
    }

    /// The first partition has no more rows: its errors are told, and the turn goes on.
    async fn end_first(&mut self) -> Result<()> {
        if let Some(first) = self.reading.pop_front() {
            let end = first.task.join().await;
            end.map_err(|error| exec_datafusion_err!("a reader ended early: {error}"))??;
        }
        self.room.next_turn();
        Ok(())
    }
}

/// The batches of one partition that wait.
struct Line {
    partition: usize,
    batches: mpsc::UnboundedSender<WaitingBatch>,
    /// How many they are.
    waiting: Arc<AtomicUsize>,
}

async fn read(
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    line: Line,
    room: Arc<Room>,
) -> Result<()> {
    let mut batches = input.execute(line.partition, context)?;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let bytes = room.take(&line, bytes_of(&batch)).await;
        line.waiting.fetch_add(1, Ordering::Relaxed);
        if line.batches.send(WaitingBatch { batch, bytes }).is_err() {
            break;
        }
        // Whoever hands the rows on runs on these threads, too: without this, it had the first row when all were read.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Room for rows that wait.
struct Room {
    held: Mutex<HeldBytes>,
    /// Told when room was given back, and when the turn went on.
    freed: Notify,
}

struct HeldBytes {
    bytes: usize,
    /// The partition whose rows go out.
    turn: usize,
    reservation: MemoryReservation,
}

impl Room {
    /// Waits for room for a batch; how much is held for it. None is held for one that goes out next.
    async fn take(&self, line: &Line, bytes: usize) -> usize {
        loop {
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable();
            {
                let mut held = self.held.lock();
                let has_room = held.bytes == 0 || held.bytes + bytes <= READ_AHEAD_BYTES;
                if has_room && held.reservation.try_grow(bytes).is_ok() {
                    held.bytes += bytes;
                    return bytes;
                }
                if held.turn == line.partition && line.waiting.load(Ordering::Relaxed) == 0 {
                    return 0;
                }
            }
            freed.await;
        }
    }

    fn give_back(&self, bytes: usize) {
        let mut held = self.held.lock();
        held.bytes -= bytes;
        held.reservation.shrink(bytes);
        drop(held);
        self.freed.notify_waiters();
    }

    fn next_turn(&self) {
        self.held.lock().turn += 1;
        self.freed.notify_waiters();
    }
}

/// Bytes of a batch's rows; slices share their arrays with others.
fn bytes_of(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| bytes_of_column(column))
        .sum()
}

fn bytes_of_column(column: &dyn Array) -> usize {
    let views = column.len() * size_of::<u128>();
    match column.data_type() {
        DataType::Utf8View => views + column.as_string_view().total_bytes_len(),
        DataType::BinaryView => views + column.as_binary_view().total_bytes_len(),
        _ => {
            let bytes = column.to_data().get_slice_memory_size();
            bytes.unwrap_or_else(|_| column.get_array_memory_size())
        }
    }
}
