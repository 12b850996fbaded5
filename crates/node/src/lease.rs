//! A job's states on their way to its client, as long as that keeps the job.
//! In: Ballista's stream of states. Out: the same states; after the last one, silence until the client lets go.
//! Invariant: when the client lets go, be it that it has read the result, was interrupted or is dead, its job ends, and its
//! files on all executors go.
//! Not here: what ends and removes (front.rs).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ballista_core::serde::protobuf::GetJobStatusResult;
use ballista_core::serde::protobuf::job_status::Status as State;
use futures::{Stream, StreamExt};
use tonic::Status;

/// States as they come.
pub type States = Pin<Box<dyn Stream<Item = Result<GetJobStatusResult, Status>> + Send>>;

/// What a client has let go of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// A job that may still run.
    Running(String),
    /// One that is over.
    Over(String),
}

/// Told what a client lets go of.
pub type Release = Arc<dyn Fn(Released) + Send + Sync>;

/// The states of one job.
pub struct Lease {
    job: String,
    states: States,
    is_over: bool,
    release: Release,
}

impl Lease {
    /// Of the job of this name. Ballista tells of its states when a stage ends, so none may come for long.
    pub fn new(job: String, states: States, release: Release) -> Lease {
        Lease {
            job,
            states,
            is_over: false,
            release,
        }
    }
}

fn is_last(state: &GetJobStatusResult) -> bool {
    let status = state.status.as_ref().and_then(|of| of.status.as_ref());
    matches!(status, Some(State::Failed(_) | State::Successful(_)))
}

impl Stream for Lease {
    type Item = Result<GetJobStatusResult, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Pending;
        }
        let next = ready!(self.states.poll_next_unpin(context));
        self.is_over = next.iter().flatten().any(is_last);
        Poll::Ready(next)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let job = std::mem::take(&mut self.job);
        (self.release)(match self.is_over {
            true => Released::Over(job),
            false => Released::Running(job),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ballista_core::serde::protobuf::{JobStatus, RunningJob, SuccessfulJob};

    use super::*;

    fn state(status: State) -> Result<GetJobStatusResult, Status> {
        Ok(GetJobStatusResult {
            status: Some(JobStatus {
                job_id: "j".to_string(),
                job_name: String::new(),
                status: Some(status),
            }),
            flight_proxy: None,
        })
    }

    /// What is released when a client lets go after so many states.
    async fn released_after(read: usize) -> Option<Released> {
        let states = [
            state(State::Running(RunningJob::default())),
            state(State::Successful(SuccessfulJob::default())),
        ];
        let released = Arc::new(Mutex::new(None));
        let told = Arc::clone(&released);
        let release: Release = Arc::new(move |what| *told.lock().unwrap() = Some(what));
        let states = futures::stream::iter(states).boxed();
        let mut lease = Lease::new("j".to_string(), states, release);
        for _ in 0..read {
            lease.next().await.unwrap().unwrap();
        }
        drop(lease);
        released.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn jobs_end_when_their_client_lets_go() {
        let running = Some(Released::Running("j".to_string()));
        assert_eq!(released_after(0).await, running);
        assert_eq!(released_after(1).await, running);
        assert_eq!(
            released_after(2).await,
            Some(Released::Over("j".to_string()))
        );
    }
}
