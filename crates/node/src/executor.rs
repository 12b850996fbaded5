//! The executor: Ballista's process with our execution, memory and folders.
//! In: its arguments. Out: an executor that serves until a signal comes, or until its scheduler has been gone for some time.
//! Invariant: all tasks share one memory pool, one folder, one set of object stores. What they left goes with the process.
//! Not here: what a task does (stage.rs), what connections with certificates reach (peer.rs).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ballista_core::ConfigProducer;
use ballista_core::config::BallistaConfig;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigExt;
use ballista_core::ids::new_instance_id;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::utils::GrpcServerConfig;
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::shutdown::Shutdown;
use datafusion::prelude::SessionConfig;
use futures::FutureExt;
use futures::future::BoxFuture;
use grouse::{Session, SessionOptions};
use grouse_cluster::scheduler::MESSAGE_BYTES;
use grouse_cluster::tls::Tls;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::args::ExecutorArgs;
use crate::logging::{self, Failure};
use crate::peer;
use crate::ports::chosen;
use crate::stage::Engine;
use crate::work_folder::WorkFolder;

/// Share of the memory that the writers of exchanges may buffer beside the operators, as a divisor.
const WRITERS_SHARE: u64 = 4;

/// What one writer buffers at least, whatever the memory.
const WRITER_BYTES_MIN: u64 = 8 << 20;

/// And at most: Ballista's own figure.
const WRITER_BYTES_MAX: u64 = 256 << 20;

/// Seconds for which an executor waits for its scheduler when it begins.
const SCHEDULER_WAIT_S: u16 = 600;

/// Runs an executor until it is told to end.
pub fn run(args: &ExecutorArgs) -> Result<(), Failure> {
    logging::begin(args.process.log);
    let id = new_instance_id();
    let folder = WorkFolder::new(&args.work_folder, &id)
        .map_err(|error| format!("{}: {error}", args.work_folder.display()))?;
    let session = session(args, &folder)?;
    let tls = match args.process.tls_files() {
        Some(files) => Some(Arc::new(files.read()?)),
        None => None,
    };
    let process = Process {
        args,
        id,
        folder: &folder,
        session: &session,
        tls,
    };
    Runtime::new()?.block_on(process.serve())
}

/// What the tasks run within.
fn session(args: &ExecutorArgs, folder: &WorkFolder) -> Result<Session, grouse::Error> {
    let mut options = SessionOptions {
        threads: args.vcores_effective(),
        memory_limit: Some(args.memory),
        temp_directory: vec![folder.spill()],
        ..SessionOptions::default()
    };
    for (name, value) in &args.settings {
        options.set(name, value)?;
    }
    if !args.allowed_directories.is_empty() {
        options.set("allowed_directories", &args.allowed_directories.join(":"))?;
    }
    Session::new(options)
}

struct Process<'a> {
    args: &'a ExecutorArgs,
    id: String,
    folder: &'a WorkFolder,
    session: &'a Session,
    tls: Option<Arc<Tls>>,
}

impl Process<'_> {
    async fn serve(self) -> Result<(), Failure> {
        let config = self.config()?;
        let (host, port) = (&self.args.host, config.port);
        logging::announce(&format!("executor {} at {host}:{port}", self.id));
        match self.secured(&config).await? {
            None => Ok(start_executor_process(Arc::new(config)).await?),
            Some(secured) => tokio::select! {
                ended = start_executor_process(Arc::new(config)) => Ok(ended?),
                ended = secured => Ok(ended?),
            },
        }
    }

    /// What serves with certificates, which has to listen before the scheduler is told of it.
    async fn secured(
        &self,
        config: &ExecutorProcessConfig,
    ) -> Result<Option<BoxFuture<'static, Result<(), tonic::transport::Error>>>, Failure> {
        let Some(tls) = self.tls.clone() else {
            return Ok(None);
        };
        let listener = TcpListener::bind((self.args.process.bind, config.port)).await?;
        let stages = self.stages()?;
        let control = SocketAddr::from((Ipv4Addr::LOCALHOST, config.grpc_port));
        let serving = async move { peer::serve(listener, stages, control, &tls).await };
        Ok(Some(serving.boxed()))
    }

    fn config(&self) -> Result<ExecutorProcessConfig, Failure> {
        let args = self.args;
        let bind = args.process.bind;
        let control = match self.tls {
            Some(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
            None => bind,
        };
        let (scheduler_host, scheduler_port) = args.scheduler.clone();
        let runtime = self.session.context().runtime_env();
        Ok(ExecutorProcessConfig {
            executor_id: self.id.clone(),
            bind_host: match control {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            },
            external_host: Some(args.host.clone()),
            port: chosen(bind, args.port)?,
            grpc_port: chosen(control, args.control_port)?,
            scheduler_host,
            scheduler_port,
            scheduler_connect_timeout_seconds: SCHEDULER_WAIT_S,
            vcores: args.vcores_effective(),
            work_dir: Some(self.stages()?),
            grpc_max_decoding_message_size: MESSAGE_BYTES as u32,
            grpc_max_encoding_message_size: MESSAGE_BYTES as u32,
            executor_heartbeat_interval_seconds: args.heartbeat,
            // No pool of Ballista's: the session's is everybody's.
            memory_pool_size: Some(0),
            override_execution_engine: Some(Arc::new(self.engine())),
            override_function_registry: Some(Arc::new(functions(self.session))),
            override_runtime_producer: Some(Arc::new(move |_: &SessionConfig| {
                Ok(Arc::clone(&runtime))
            })),
            override_config_producer: Some(self.options()),
            override_physical_codec: Some(grouse_cluster::codec()),
            override_arrow_flight_service: self.tls.as_ref().map(|_| elsewhere()),
            override_create_grpc_client_endpoint: self.tls.clone().map(Tls::everywhere),
            ..ExecutorProcessConfig::default()
        })
    }

    fn stages(&self) -> Result<String, Failure> {
        let path = self.folder.stages();
        let text = path.to_str().ok_or("the work folder's path is no text")?;
        Ok(text.to_owned())
    }

    fn engine(&self) -> Engine {
        let writers = self.args.memory / WRITERS_SHARE / self.args.vcores_effective() as u64;
        let writer_bytes = writers.clamp(WRITER_BYTES_MIN, WRITER_BYTES_MAX);
        let disk = format!("{}:{}", self.args.host, self.args.work_folder.display());
        Engine::new(self.session.clone(), writer_bytes as usize, &disk)
    }

    /// The options with which a task begins, before those of its job.
    fn options(&self) -> ConfigProducer {
        let (session, tls) = (self.session.clone(), self.tls.clone());
        Arc::new(move || {
            let config = session.context().copied_config();
            let config = config
                .with_option_extension(BallistaConfig::default())
                .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES);
            match &tls {
                Some(tls) => config
                    .with_ballista_use_tls(true)
                    .with_ballista_override_create_grpc_client_endpoint(
                        Arc::clone(tls).everywhere(),
                    ),
                None => config,
            }
        })
    }
}

/// In the place of Ballista's own server of rows, where one with certificates serves them.
fn elsewhere() -> Arc<ArrowFlightServerProvider> {
    Arc::new(
        |_: String, _: SocketAddr, mut shutdown: Shutdown, _: GrpcServerConfig| {
            tokio::spawn(async move {
                shutdown.recv().await;
                Ok::<(), BallistaError>(())
            })
        },
    )
}

/// The functions that plans name.
fn functions(session: &Session) -> BallistaFunctionRegistry {
    let state = session.context().state();
    BallistaFunctionRegistry {
        scalar_functions: state.scalar_functions().clone(),
        aggregate_functions: state.aggregate_functions().clone(),
        window_functions: state.window_functions().clone(),
        higher_order_functions: state.higher_order_functions().clone(),
    }
}
