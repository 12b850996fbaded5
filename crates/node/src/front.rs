//! The scheduler's port: Ballista's calls, and what clients of ours ask beside them.
//! In: calls of clients and executors. Out: Ballista's answers, with figures of the cluster and of jobs in their headers.
//! Invariant: plans come as physical plans of ours alone. A job lives as long as its client keeps it (lease.rs).
//! Not here: scheduling (Ballista).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::ConfigProducer;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigHelperExt;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult,
    CreateUpdateSessionParams, CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult,
    ExecutorRegistration, ExecutorStoppedParams, ExecutorStoppedResult, GetJobMetricsParams,
    GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult, HeartBeatParams, HeartBeatResult,
    PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult,
    RemoveSessionParams, RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult,
};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::StreamExt;
use grouse_cluster::scheduler::keys;
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use crate::attempts::{Scheduler, running, watched};
use crate::lease::{Lease, Release, Released, States};

/// A task that is cancelled may be about to write its last file when the job's are removed: they are once more, so long after.
const REMOVED_AFTER: [Duration; 2] = [Duration::from_millis(500), LAST_REMOVAL];

/// By then tasks have ended.
const LAST_REMOVAL: Duration = Duration::from_secs(5);

/// Where executors are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// At the port that they say is for tasks.
    AtControlPort,
    /// At that for rows, which takes calls with certificates alone.
    AtRowsPort,
}

/// States of a job that wait for its client: one for each stage and attempt, and Ballista drops those that have no place.
const STATES_WAITING: usize = 1024;

/// The scheduler behind its port.
#[derive(Clone)]
pub struct Front {
    scheduler: Scheduler,
    /// The options with which a job begins.
    options: ConfigProducer,
    called: Called,
}

type Answer<T> = Result<Response<T>, Status>;

impl Front {
    /// In front of this scheduler.
    pub fn new(scheduler: Scheduler, options: ConfigProducer, called: Called) -> Front {
        Front {
            scheduler,
            options,
            called,
        }
    }

    /// An executor as Ballista is to know it.
    fn known(&self, executor: &mut Option<ExecutorRegistration>) -> Result<(), Status> {
        let Some(executor) = executor else {
            return Err(Status::invalid_argument("an executor says who it is"));
        };
        if executor.host.is_none() {
            return Err(Status::invalid_argument("an executor says where it is"));
        }
        if self.called == Called::AtRowsPort {
            executor.grpc_port = executor.port;
        }
        Ok(())
    }

    async fn vcores(&self) -> Result<u64, Status> {
        let executors = self.scheduler.state.executor_manager.get_executors_state();
        let executors = executors
            .await
            .map_err(|error| Status::internal(error.to_string()))?;
        let vcores = executors.iter().map(|(of, ..)| of.specification.vcores);
        Ok(vcores.map(u64::from).sum())
    }

    /// All stages of a job that runs, and those that are over.
    async fn stages(&self, job: &str) -> Option<(usize, usize)> {
        let found = running(&self.scheduler, job)?;
        let graph = found.execution_graph.read().await;
        Some((graph.stage_count(), graph.completed_stages()))
    }

    /// Begins a job: its name, and its states. Ballista's own call says the name no sooner than a stage has ended, and who
    /// does not know it cannot cancel the job.
    async fn begun(&self, asked: ExecuteQueryParams) -> Result<(String, States), Status> {
        let Some(Query::PhysicalPlan(message)) = asked.query else {
            return Err(Status::unimplemented(
                "clients of grouse plan by themselves",
            ));
        };
        let internal = |error: BallistaError| Status::internal(error.to_string());
        let state = &self.scheduler.state;
        let options = (self.options)().update_from_key_value_pair(&asked.settings);
        let session = state
            .session_manager
            .create_or_update_session(&asked.session_id, &options);
        let session = session.await.map_err(internal)?;
        let codec = state.codec.physical_extension_codec();
        let plan = PhysicalPlanNode::try_decode(&message)
            .and_then(|node| node.try_into_physical_plan(&session.task_ctx(), codec));
        let plan = plan.map_err(|error| Status::invalid_argument(error.strip_backtrace()))?;
        let (subscriber, mut states) = mpsc::channel(STATES_WAITING);
        let job = self
            .scheduler
            .submit_physical_plan("", session, plan, Some(subscriber));
        let job = job.await.map_err(internal)?;
        let states = futures::stream::poll_fn(move |context| states.poll_recv(context));
        let states = states.map(|status| {
            Ok(GetJobStatusResult {
                status: Some(status),
                flight_proxy: None,
            })
        });
        let job = job.to_string();
        let states = watched(states.boxed(), job.clone(), self.scheduler.clone());
        Ok((job, states))
    }

    async fn cancel(&self, job_id: &str) {
        let cancel = CancelJobParams {
            job_id: job_id.to_string(),
        };
        let cancelled = SchedulerGrpc::cancel_job(&self.scheduler, Request::new(cancel));
        if let Err(status) = cancelled.await {
            log::warn!("job {job_id} cannot be cancelled: {status}");
        }
    }

    /// Ends what clients let go of.
    fn release(&self) -> Release {
        let front = self.clone();
        Arc::new(move |released| {
            let front = front.clone();
            tokio::spawn(async move { front.end(released).await });
        })
    }

    async fn end(&self, released: Released) {
        let (job_id, waits) = match released {
            Released::Running(job_id) => {
                self.cancel(&job_id).await;
                (job_id, &REMOVED_AFTER[..])
            }
            Released::Over(job_id) => (job_id, &[Duration::ZERO, LAST_REMOVAL][..]),
        };
        for wait in waits {
            tokio::time::sleep(*wait).await;
            // One that was still being planned was not there to be cancelled.
            if self.stages(&job_id).await.is_some() {
                self.cancel(&job_id).await;
            }
            // Without stages, all of them.
            let clean = CleanJobDataParams {
                job_id: job_id.clone(),
                remove_stage_ids: Vec::new(),
            };
            let cleaned = SchedulerGrpc::clean_job_data(&self.scheduler, Request::new(clean));
            if let Err(status) = cleaned.await {
                log::warn!("files of job {job_id} stay: {status}");
            }
        }
    }
}

fn add<T>(answer: &mut Response<T>, key: &'static str, figure: u64) {
    answer
        .metadata_mut()
        .insert(key, MetadataValue::from(figure));
}

/// What a call becomes.
type Answering<'a, T> = Pin<Box<dyn Future<Output = Answer<T>> + Send + 'a>>;

/// Calls that Ballista answers, in the form that the trait has without its attribute.
macro_rules! passed_on {
    ($($call:ident($asked:ident) -> $answered:ident;)*) => {
        $(fn $call<'me, 'call>(&'me self, call: Request<$asked>) -> Answering<'call, $answered>
        where
            'me: 'call,
            Self: 'call,
        {
            SchedulerGrpc::$call(&self.scheduler, call)
        })*
    };
}

/// Calls of executors that say who they are.
macro_rules! of_executors {
    ($($call:ident($asked:ident) -> $answered:ident;)*) => {
        $(fn $call<'me, 'call>(&'me self, mut call: Request<$asked>) -> Answering<'call, $answered>
        where
            'me: 'call,
            Self: 'call,
        {
            match self.known(&mut call.get_mut().metadata) {
                Ok(()) => SchedulerGrpc::$call(&self.scheduler, call),
                Err(status) => Box::pin(async move { Err(status) }),
            }
        })*
    };
}

#[tonic::async_trait]
impl SchedulerGrpc for Front {
    type ExecuteQueryPushStream = Lease;

    of_executors! {
        poll_work(PollWorkParams) -> PollWorkResult;
        register_executor(RegisterExecutorParams) -> RegisterExecutorResult;
        heart_beat_from_executor(HeartBeatParams) -> HeartBeatResult;
    }

    passed_on! {
        update_task_status(UpdateTaskStatusParams) -> UpdateTaskStatusResult;
        remove_session(RemoveSessionParams) -> RemoveSessionResult;
        get_job_metrics(GetJobMetricsParams) -> GetJobMetricsResult;
        executor_stopped(ExecutorStoppedParams) -> ExecutorStoppedResult;
        cancel_job(CancelJobParams) -> CancelJobResult;
        clean_job_data(CleanJobDataParams) -> CleanJobDataResult;
    }

    /// How large the cluster is. Jobs bring their own sessions.
    async fn create_update_session(
        &self,
        call: Request<CreateUpdateSessionParams>,
    ) -> Answer<CreateUpdateSessionResult> {
        let mut answer = Response::new(CreateUpdateSessionResult {
            session_id: call.into_inner().session_id,
        });
        add(&mut answer, keys::VCORES, self.vcores().await?);
        let version = MetadataValue::from_static(env!("CARGO_PKG_VERSION"));
        answer.metadata_mut().insert(keys::VERSION, version);
        Ok(answer)
    }

    async fn execute_query_push(
        &self,
        call: Request<ExecuteQueryParams>,
    ) -> Answer<Self::ExecuteQueryPushStream> {
        let (job, states) = self.begun(call.into_inner()).await?;
        let name = MetadataValue::try_from(&job);
        let lease = Lease::new(job, states, self.release());
        let mut answer = Response::new(lease);
        let name = name.map_err(|error| Status::internal(error.to_string()))?;
        answer.metadata_mut().insert(keys::JOB, name);
        Ok(answer)
    }

    async fn execute_query(&self, _: Request<ExecuteQueryParams>) -> Answer<ExecuteQueryResult> {
        Err(Status::unimplemented("clients of grouse keep their jobs"))
    }

    async fn get_job_status(
        &self,
        call: Request<GetJobStatusParams>,
    ) -> Answer<GetJobStatusResult> {
        let job = call.get_ref().job_id.clone();
        let mut answer = SchedulerGrpc::get_job_status(&self.scheduler, call).await?;
        if let Some((stages, over)) = self.stages(&job).await {
            add(&mut answer, keys::STAGES, stages as u64);
            add(&mut answer, keys::STAGES_OVER, over as u64);
        }
        Ok(answer)
    }
}
