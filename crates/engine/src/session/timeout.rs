//! `statement_timeout`: what takes longer ends with an error of its own.
//!
//! In: a limit; work, or the channel of a query's batches. Out: the work's result or the error.
//! Invariant: a clock of the session's workers decides, so that callers may sit on any runtime.
//! Not here: how a query is stopped (query.rs).

use std::time::Duration;

use datafusion::common::DataFusionError;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::runtime::options::time_text;

/// The work, as long as it may take.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    match limit {
        None => work.await,
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(error(limit)),
        },
    }
}

/// Sends the error once the limit is reached, unless the channel is closed by then. The clock stops with what is returned.
pub(super) fn clock<T: Send + 'static>(
    limit: Option<Duration>,
    channel: &Sender<Result<T, DataFusionError>>,
    handle: &Handle,
) -> JoinSet<()> {
    let mut clock = JoinSet::new();
    if let Some(limit) = limit {
        let channel = channel.downgrade();
        let ring = async move {
            tokio::time::sleep(limit).await;
            if let Some(channel) = channel.upgrade() {
                // A consumer that is gone wants no error.
                let _ = channel.send(Err(error(limit).into())).await;
            }
        };
        clock.spawn_on(ring, handle);
    }
    clock
}

fn error(limit: Duration) -> Error {
    Error::Timeout {
        limit: time_text(limit),
    }
}
