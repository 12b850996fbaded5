//! A client's connection to a scheduler: how large the cluster is, jobs, their results.
//!
//! In: an address; plans as messages. Out: vcores; the job's progress, its figures, and its rows in the order of its partitions.
//! Invariant: a job is kept by the stream of its states. Dropped, that has the scheduler stop the job and remove its files, as
//! the end of the client's process does.
//! Not here: which plans there are (distribute.rs), the node that stands for a job in a plan (exec.rs).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::client::BallistaClient;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::job_status::Status as State;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CreateUpdateSessionParams, ExecuteQueryParams, GetJobMetricsParams, GetJobStatusParams,
    GetJobStatusResult, JobStageMetrics, KeyValuePair, PartitionLocation,
};
use ballista_core::version::insert_version_header;
use datafusion::execution::SendableRecordBatchStream;
use grouse::{Error, Result};
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;
use tonic::Streaming;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};

use crate::address::Address;
use crate::failures::of_job;
use crate::tls::{Tls, TlsFiles, timed};

/// The largest message: plans with thousands of files are some megabytes.
pub const MESSAGE_BYTES: usize = 64 << 20;

/// How often a client asks how far its job is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// How long a client waits for a cluster's first executor.
const EXECUTORS_WAIT: Duration = Duration::from_secs(10);

/// Tries to fetch a part of a result, and the time between two.
const FETCHES: (u8, u64) = (3, 500);

/// Keys of what a scheduler of ours says beside Ballista's answers.
pub mod keys {
    /// All executors' vcores.
    pub const VCORES: &str = "grouse-vcores";
    /// The version of the scheduler.
    pub const VERSION: &str = "grouse-version";
    /// The name of a job that has begun.
    pub const JOB: &str = "grouse-job";
    /// A job's stages.
    pub const STAGES: &str = "grouse-stages";
    /// Those that are over.
    pub const STAGES_OVER: &str = "grouse-stages-over";
}

/// A connection to a scheduler.
#[derive(Debug, Clone)]
pub struct Scheduler {
    address: Address,
    client: SchedulerGrpcClient<Channel>,
    tls: Option<Arc<Tls>>,
}

/// How far a job is, in stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StagesOver {
    /// All of them.
    pub stages: usize,
    /// Those that are over.
    pub over: usize,
}

impl Scheduler {
    /// Connects to the scheduler at `address`.
    pub async fn connect(address: &Address) -> Result<Scheduler> {
        let unreachable = |why: String| Error::Io {
            path: address.to_string(),
            message: format!("there is no scheduler that answers: {why}"),
        };
        let tls = match &address.tls {
            Some(folder) => Some(Arc::new(TlsFiles::in_folder(folder).read()?)),
            None => None,
        };
        let plain = Endpoint::from_shared(address.uri());
        let endpoint = plain.and_then(|plain| match &tls {
            Some(tls) => tls.secured(&plain),
            None => Ok(timed(plain)),
        });
        let endpoint = endpoint.map_err(|error| unreachable(innermost(&error)))?;
        let channel = endpoint.connect().await;
        let channel = channel.map_err(|error| unreachable(innermost(&error)))?;
        let client = SchedulerGrpcClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES);
        Ok(Scheduler {
            address: address.clone(),
            client,
            tls,
        })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The vcores of the executors that are there; one that is about to come is waited for.
    pub async fn vcores(&self) -> Result<usize> {
        let asked = tokio::time::Instant::now();
        loop {
            let request = CreateUpdateSessionParams::default();
            let answer = self.client.clone().create_update_session(request).await;
            let answer = answer.map_err(|status| self.failure(&status))?;
            let Some(vcores) = figure(answer.metadata(), keys::VCORES) else {
                return Err(Error::Unsupported {
                    message: format!("{} is no scheduler of grouse", self.address),
                });
            };
            if vcores > 0 {
                return Ok(vcores);
            }
            if asked.elapsed() > EXECUTORS_WAIT {
                let text = format!("the cluster at {} has no executors", self.address);
                return Err(Error::Execution(text));
            }
            tokio::time::sleep(PROGRESS_INTERVAL).await;
        }
    }

    /// Has the scheduler run a plan.
    pub async fn submit(&self, plan: Vec<u8>, settings: Vec<KeyValuePair>) -> Result<Job> {
        let mut request = tonic::Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(plan)),
            settings,
            session_id: uuid::Uuid::new_v4().to_string(),
            operation_id: uuid::Uuid::new_v4().to_string(),
        });
        insert_version_header(request.metadata_mut());
        let states = self.client.clone().execute_query_push(request).await;
        let states = states.map_err(|status| self.failure(&status))?;
        let id = states.metadata().get(keys::JOB);
        let id = id.and_then(|id| id.to_str().ok()).map(str::to_string);
        let unnamed = || Error::Internal("the scheduler has not named the job".to_string());
        Ok(Job {
            id: id.ok_or_else(unnamed)?,
            scheduler: self.clone(),
            states: states.into_inner(),
        })
    }

    fn failure(&self, status: &tonic::Status) -> Error {
        // What the scheduler says has no source here; what the connection says has one.
        let has_source = std::error::Error::source(status).is_some();
        match has_source || status.code() == tonic::Code::Unavailable {
            true => Error::Io {
                path: self.address.to_string(),
                message: format!("the scheduler is gone: {}", innermost(status)),
            },
            false => of_job(status.message()),
        }
    }
}

/// A job; dropped, it is stopped and its files are removed.
pub struct Job {
    scheduler: Scheduler,
    states: Streaming<GetJobStatusResult>,
    id: String,
}

impl Job {
    /// Waits for its end, and gives the places of its rows. `progress` is told meanwhile how far it is.
    pub async fn run(&mut self, progress: impl Fn(StagesOver)) -> Result<Vec<PartitionLocation>> {
        let mut due = tokio::time::interval(PROGRESS_INTERVAL);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // By the clock: states come more often than that.
            let next = tokio::select! {
                next = self.states.message() => next,
                _ = due.tick() => {
                    if let Some(over) = self.stages_over().await {
                        progress(over);
                    }
                    continue;
                }
            };
            let state = next.map_err(|status| self.scheduler.failure(&status))?;
            let gone = || Error::Execution("the scheduler has lost the job".to_string());
            let status = state.and_then(|state| state.status).ok_or_else(gone)?;
            match status.status {
                None | Some(State::Queued(_) | State::Running(_)) => {}
                Some(State::Failed(failed)) => return Err(of_job(&failed.error)),
                Some(State::Successful(done)) => {
                    let mut places = done.partition_location;
                    places
                        .sort_by_key(|place| place.partition_id.as_ref().map(|of| of.partition_id));
                    return Ok(places);
                }
            }
        }
    }

    /// How far it is; `None` where nobody knows.
    async fn stages_over(&self) -> Option<StagesOver> {
        let job_id = self.id.clone();
        let request = GetJobStatusParams { job_id };
        let asked = self.scheduler.client.clone().get_job_status(request).await;
        let answer = asked.ok()?;
        Some(StagesOver {
            stages: figure(answer.metadata(), keys::STAGES)?,
            over: figure(answer.metadata(), keys::STAGES_OVER)?,
        })
    }

    /// What its stages did, once it is over.
    pub async fn figures(&self) -> Vec<JobStageMetrics> {
        let job_id = self.id.clone();
        let mut client = self.scheduler.client.clone();
        match client.get_job_metrics(GetJobMetricsParams { job_id }).await {
            Ok(answer) => answer.into_inner().stages,
            Err(status) => {
                log::warn!("the scheduler has no figures of the job: {status}");
                Vec::new()
            }
        }
    }

    /// The rows of one part of its result, from the executor that has them.
    pub async fn rows(
        &self,
        executors: &Executors,
        place: PartitionLocation,
    ) -> Result<SendableRecordBatchStream> {
        let layout = place.layout();
        let absent = |what: &str| Error::Internal(format!("a part of a result has no {what}"));
        let executor = place.executor_meta.ok_or_else(|| absent("executor"))?;
        let part = place.partition_id.ok_or_else(|| absent("number"))?;
        let port = u16::try_from(executor.port).map_err(|_| absent("port"))?;
        let lost = |error: &dyn std::error::Error| {
            let at = format!("{}:{}", executor.host, executor.port);
            Error::Execution(format!(
                "the executor at {at}, which has a part of the result, is gone: {}",
                innermost(error)
            ))
        };
        let client = executors
            .client(&self.scheduler, &executor.host, port)
            .await;
        let mut client = client.map_err(|error| lost(&error))?;
        let rows = client
            .fetch_partition_proxied(
                &executor.id,
                &part.into(),
                place.file_id,
                layout,
                &executor.host,
                port,
                true,
            )
            .await;
        rows.map_err(|error| lost(&error))
    }
}

/// Connections to executors, one to each.
#[derive(Default)]
pub struct Executors(Mutex<HashMap<(String, u16), BallistaClient>>);

impl Executors {
    async fn client(
        &self,
        scheduler: &Scheduler,
        host: &str,
        port: u16,
    ) -> Result<BallistaClient, ballista_core::error::BallistaError> {
        let place = (host.to_string(), port);
        if let Some(client) = self.0.lock().get(&place) {
            return Ok(client.clone());
        }
        let tls = scheduler.tls.clone();
        let endpoint = tls.map(|tls| Arc::new(BallistaConfigGrpcEndpoint::new(tls.everywhere())));
        let (tries, wait_ms) = FETCHES;
        let is_tls = scheduler.tls.is_some();
        let client = BallistaClient::try_new(
            host,
            port,
            MESSAGE_BYTES,
            is_tls,
            endpoint,
            tries,
            wait_ms,
            0,
            0,
        )
        .await?;
        self.0.lock().insert(place, client.clone());
        Ok(client)
    }
}

fn figure(metadata: &MetadataMap, key: &str) -> Option<usize> {
    metadata.get(key)?.to_str().ok()?.parse().ok()
}

/// The text of the last error in the chain: those before say that there was one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
