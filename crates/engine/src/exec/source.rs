//! Where workers get batches from: the input's streams, each pulled by one worker at a time.
//!
//! In: the input plan. Out: batches, each to one worker.
//! Invariant: a worker that holds a source drives it itself, so that a batch is decoded and grouped on one core; a
//! worker whose own source has ended helps with those of others, unless order matters.
//! Not here: what is done with a batch.

use std::pin::Pin;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::stream::{Stream, StreamExt, select_all};
use tokio::sync::Mutex;

use super::order::Feed;

/// All sources of one run.
pub(super) struct Sources {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sources: Vec<Source>,
    feed: Feed,
}

/// Some of the input's streams, read as one.
struct Source {
    partitions: Vec<usize>,
    state: Mutex<State>,
}

enum State {
    Waiting,
    Running(Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>),
    Ended,
}

/// How many workers read an input of `partitions` streams.
pub(super) fn readers(partitions: usize, workers: usize, feed: Feed) -> usize {
    match feed {
        Feed::Any => workers,
        Feed::InOrder => partitions.max(1),
    }
}

impl Sources {
    /// Deals the streams of `input` out to `readers` workers.
    pub fn new(
        input: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        readers: usize,
        feed: Feed,
    ) -> Sources {
        let partitions = input.output_partitioning().partition_count();
        let count = partitions.min(readers);
        let sources = (0..count)
            .map(|source| Source {
                partitions: (source..partitions).step_by(count).collect(),
                state: Mutex::new(State::Waiting),
            })
            .collect();
        Sources {
            input,
            context,
            sources,
            feed,
        }
    }

    /// The sources that `worker` reads, its own first.
    pub fn of(&self, worker: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.sources.len();
        let reach = match self.feed {
            Feed::Any => count,
            Feed::InOrder => count.min(1),
        };
        (0..reach).map(move |offset| (worker + offset) % count)
    }

    /// The next batch of a source; `None` when it has ended.
    pub async fn next(&self, source: usize) -> Result<Option<RecordBatch>> {
        let source = &self.sources[source];
        let mut state = source.state.lock().await;
        loop {
            match &mut *state {
                State::Waiting => *state = State::Running(self.open(&source.partitions)?),
                State::Running(stream) => match stream.next().await {
                    Some(batch) => return batch.map(Some),
                    None => *state = State::Ended,
                },
                State::Ended => return Ok(None),
            }
        }
    }

    /// Several streams are read in turn: those of an exchange would buffer without bound if one were left alone.
    fn open(
        &self,
        partitions: &[usize],
    ) -> Result<Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>> {
        let mut streams = partitions
            .iter()
            .map(|partition| self.input.execute(*partition, Arc::clone(&self.context)))
            .collect::<Result<Vec<_>>>()?;
        Ok(match streams.pop() {
            Some(one) if streams.is_empty() => one,
            last => Box::pin(select_all(streams.into_iter().chain(last))),
        })
    }
}
