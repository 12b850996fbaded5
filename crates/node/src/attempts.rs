//! Jobs whose stages begin anew: they end with an error.
//!
//! In: the states of a job, and its stages. Out: the same states, the last one an error where a stage began anew.
//! Invariant: no answer has rows of two attempts of one stage. When a stage whose input is lost begins anew, Ballista keeps what
//! its first attempt has handed on, so that these rows would count twice. It may also wait for ever for vcores of cancelled tasks.
//! Not here: tasks that run once more within an attempt; their lost results are taken out.

use std::time::Duration;

use ballista_core::serde::protobuf::job_status::Status as State;
use ballista_core::serde::protobuf::{FailedJob, GetJobStatusResult, JobStatus};
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::execution_stage::ExecutionStage;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::StreamExt;
use tonic::Status;

use crate::lease::States;

/// Ballista's scheduler.
pub type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// A job that runs. Ballista's `get_running_jobs` has those that are over.
pub fn running(scheduler: &Scheduler, job: &str) -> Option<JobInfoCache> {
    let jobs = scheduler.state.task_manager.get_running_job_cache();
    let (_, found) = jobs.iter().find(|(id, _)| id.as_str() == job)?;
    Some(found.clone())
}

/// How often the stages are looked at; states may come much later.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the client is told.
const TEXT: &str = "an executor was lost while others read its results; run the statement again";

/// The states of a job, watched.
pub fn watched(states: States, job: String, scheduler: Scheduler) -> States {
    let watch = Watch {
        states,
        job,
        scheduler,
        found: None,
        is_over: false,
    };
    let states = futures::stream::unfold(watch, |mut watch| async move {
        let state = watch.next().await?;
        Some((state, watch))
    });
    states.boxed()
}

struct Watch {
    states: States,
    job: String,
    scheduler: Scheduler,
    /// The job, once it runs; it is not found any more when it is over.
    found: Option<JobInfoCache>,
    is_over: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Result<GetJobStatusResult, Status>> {
        while !self.is_over {
            let state = tokio::time::timeout(LOOK_EVERY, self.states.next()).await;
            if self.has_begun_anew().await {
                self.is_over = true;
                return Some(Ok(self.given_up()));
            }
            if let Ok(state) = state {
                return state;
            }
        }
        None
    }

    async fn has_begun_anew(&mut self) -> bool {
        if self.found.is_none() {
            self.found = running(&self.scheduler, &self.job);
        }
        match &self.found {
            Some(job) => {
                let graph = job.execution_graph.read().await;
                graph.stages().values().any(|stage| attempt_of(stage) > 0)
            }
            None => false,
        }
    }

    fn given_up(&self) -> GetJobStatusResult {
        let failed = FailedJob {
            error: TEXT.to_string(),
            ..FailedJob::default()
        };
        GetJobStatusResult {
            status: Some(JobStatus {
                job_id: self.job.clone(),
                job_name: String::new(),
                status: Some(State::Failed(failed)),
            }),
            flight_proxy: None,
        }
    }
}

/// How often a stage has begun anew.
fn attempt_of(stage: &ExecutionStage) -> usize {
    match stage {
        ExecutionStage::UnResolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Resolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Running(stage) => stage.stage_attempt_num,
        ExecutionStage::Successful(stage) => stage.stage_attempt_num,
        ExecutionStage::Failed(stage) => stage.stage_attempt_num,
    }
}
