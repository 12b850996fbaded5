//! The scheduler: Ballista's, for plans of ours.
//! In: its arguments. Out: a scheduler that serves until a signal comes. It keeps its state in memory: jobs end with it.
//! Invariant: it reads no files. Plans are decoded with our codec and functions, and planned as they come.
//! Not here: its port (front.rs).

use std::sync::Arc;
use std::time::Duration;

use ballista_core::ConfigProducer;
use ballista_core::config::{
    BALLISTA_SHUFFLE_COMPRESSION_CODEC, BallistaConfig, TaskSchedulingPolicy,
};
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_executor::terminate::sig_term;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion::common::DataFusionError;
use datafusion::config::{ConfigExtension, ExtensionOptions};
use datafusion::prelude::SessionConfig;
use grouse::{Session, SessionOptions};
use grouse_cluster::scheduler::MESSAGE_BYTES;
use grouse_cluster::tls::Tls;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::args::SchedulerArgs;
use crate::attempts::Scheduler;
use crate::front::{Called, Front};
use crate::logging::{self, Failure};

/// How often the scheduler looks for executors that say nothing, in seconds.
const EXPIRY_INTERVAL_S: u64 = 1;

/// A client that does not answer for so long is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Options of jobs that differ from Ballista's, and may be set. As zstd, pairs of a region and a phrase of hits take 0.54 of their
/// bytes as lz4, pairs of a region and a random integer 0.93. The former take 1.7 times as long to write.
const OF_JOBS: [(&str, &str); 1] = [(BALLISTA_SHUFFLE_COMPRESSION_CODEC, "zstd")];

/// Runs a scheduler until it is told to end.
pub fn run(args: &SchedulerArgs) -> Result<(), Failure> {
    logging::begin(args.process.log);
    let tls = match args.process.tls_files() {
        Some(files) => Some(Arc::new(files.read()?)),
        None => None,
    };
    let session = Session::new(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    })?;
    Runtime::new()?.block_on(serve(args, session, tls))
}

async fn serve(
    args: &SchedulerArgs,
    session: Session,
    tls: Option<Arc<Tls>>,
) -> Result<(), Failure> {
    let options = options(&session, &args.settings)?;
    let listener = TcpListener::bind((args.process.bind, args.port)).await?;
    let port = listener.local_addr()?.port();
    let config = Arc::new(config(args, port, session, tls.clone(), &options));
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler: Scheduler = create_scheduler(cluster, config).await?;
    let called = match tls {
        Some(_) => Called::AtRowsPort,
        None => Called::AtControlPort,
    };
    let front = SchedulerGrpcServer::new(Front::new(scheduler, options, called))
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let mut server = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE));
    if let Some(tls) = &tls {
        server = server.tls_config(tls.server())?;
    }
    logging::announce(&format!("scheduler at {}:{port}", args.host));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = server.add_service(front).serve_with_incoming(incoming);
    tokio::select! {
        served = serving => Ok(served?),
        // Not until all connections are idle: clients keep theirs, and executors notice that it is gone.
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = sig_term() => Ok(()),
    }
}

/// The options with which a job begins, before those of its client.
fn options(session: &Session, settings: &[(String, String)]) -> Result<ConfigProducer, Failure> {
    let ballista = of_jobs(settings)?;
    let session = session.clone();
    Ok(Arc::new(move || {
        let config = session.context().copied_config();
        config
            .with_option_extension(ballista.clone())
            .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES)
    }))
}

/// Ballista's, with ours and then these in their places.
fn of_jobs(settings: &[(String, String)]) -> Result<BallistaConfig, Failure> {
    let mut config = BallistaConfig::default();
    let given = settings.iter().map(|(name, value)| (&**name, &**value));
    for (name, value) in OF_JOBS.into_iter().chain(given) {
        let key = name.strip_prefix(BallistaConfig::PREFIX);
        let key = key.and_then(|key| key.strip_prefix('.'));
        let (Some(key), Some(known)) = (key, BallistaConfig::valid_entries().get(name)) else {
            return Err(format!("Ballista has no option {name}").into());
        };
        BallistaConfig::parse_value(value, known.data_type().clone())
            .map_err(|_| format!("{name} cannot be {value}"))?;
        config.set(key, value)?;
    }
    config.shuffle_compression_codec()?;
    Ok(config)
}

fn config(
    args: &SchedulerArgs,
    port: u16,
    session: Session,
    tls: Option<Arc<Tls>>,
    options: &ConfigProducer,
) -> SchedulerConfig {
    let state = move |config: SessionConfig| {
        let mut state = session.context().state();
        *state.config_mut() = config;
        Ok::<_, DataFusionError>(state)
    };
    SchedulerConfig {
        external_host: args.host.clone(),
        bind_host: args.process.bind.to_string(),
        bind_port: port,
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // All executors have a part of each stage, and not one of them all.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        // Files go when their client lets go of the job, however long it reads.
        finished_job_data_clean_up_interval_seconds: 0,
        executor_timeout_seconds: args.executor_timeout,
        expire_dead_executor_interval_seconds: EXPIRY_INTERVAL_S,
        no_executors_grace_period_seconds: args.grace,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES as u32,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES as u32,
        grpc_client_max_message_size: MESSAGE_BYTES as u32,
        override_config_producer: Some(Arc::clone(options)),
        override_session_builder: Some(Arc::new(state)),
        override_physical_codec: Some(grouse_cluster::codec()),
        use_tls: tls.is_some(),
        override_create_grpc_client_endpoint: tls.map(Tls::everywhere),
        ..SchedulerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> Result<BallistaConfig, Failure> {
        of_jobs(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn options_of_jobs_may_be_set() {
        let codec = |config: &BallistaConfig| config.shuffle_compression_codec().unwrap();
        let lz4 = set(BALLISTA_SHUFFLE_COMPRESSION_CODEC, "lz4").unwrap();
        let none = set(BALLISTA_SHUFFLE_COMPRESSION_CODEC, "none").unwrap();
        let usual = of_jobs(&[]).unwrap();
        assert_ne!(codec(&usual), codec(&lz4));
        assert_ne!(codec(&usual), codec(&none));
        let static_one = set("ballista.planner.adaptive.enabled", "false").unwrap();
        assert!(!static_one.adaptive_query_planner_enabled());
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for (name, value) in [
            ("ballista.nothing", "1"),
            ("nothing", "1"),
            ("ballista.planner.adaptive.enabled", "perhaps"),
            (BALLISTA_SHUFFLE_COMPRESSION_CODEC, "rar"),
        ] {
            assert!(set(name, value).is_err(), "{name}={value}");
        }
    }
}
