//! The scheduler: Ballista's, for plans of ours.
//! In: its arguments. Out: a scheduler that serves until a signal comes. It keeps its state in memory: jobs end with it.
//! Invariant: it reads no files. Plans are decoded with our codec and functions, and planned as they come.
//! Not here: its port (front.rs).

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::ConfigProducer;
use ballista_core::config::{BallistaConfig, TaskSchedulingPolicy};
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_executor::terminate::sig_term;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use datafusion::common::DataFusionError;
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
use crate::logging;

/// How often the scheduler looks for executors that say nothing, in seconds.
const EXPIRY_INTERVAL_S: u64 = 1;

/// A client that does not answer for so long is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Runs a scheduler until it is told to end.
pub fn run(args: &SchedulerArgs) -> Result<(), Box<dyn StdError + Send + Sync>> {
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
) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let listener = TcpListener::bind((args.process.bind, args.port)).await?;
    let port = listener.local_addr()?.port();
    let options = options(session.clone());
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
fn options(session: Session) -> ConfigProducer {
    Arc::new(move || {
        let config = session.context().copied_config();
        config
            .with_option_extension(BallistaConfig::default())
            .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES)
    })
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
