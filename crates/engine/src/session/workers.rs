//! Workers: the threads of a session.
//!
//! In: how many. Out: a runtime that planning and queries run on.
//! Invariant: dropping them never blocks, wherever that happens.
//! Not here: when they are replaced (mod.rs).

use std::fmt;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinError;

use crate::error::{Error, Result};

/// Stack of a worker: planning deeply nested SQL needs more than the usual 2 MiB; untouched pages cost nothing.
const WORKER_STACK_BYTES: usize = 64 << 20;

/// The threads of a session.
pub(crate) struct Workers {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Workers {
    pub(crate) fn new(threads: usize) -> Result<Workers> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("grouse-worker")
            .thread_stack_size(WORKER_STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| {
                Error::Execution(format!("cannot start {threads} worker threads: {error}"))
            })?;
        Ok(Workers {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a task that did not return was: stopped, or a defect of ours.
pub(crate) fn join_error(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Error::Internal(text.unwrap_or("a worker panicked").to_string())
        }
        Err(_) => Error::Cancelled,
    }
}
