//! The command line.
//! In: the arguments. Out: [`Args`].
//! Invariant: help says what each port, folder and figure is for; what is wrong is refused with exit code 2.
//! Not here: what the processes do with it.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use grouse::SessionOptions;
use grouse_cluster::address::SCHEDULER_PORT;
use grouse_cluster::tls::TlsFiles;

const EXAMPLES: &str = "\
One machine has the scheduler, the others executors:
  grouse-cluster scheduler --bind 0.0.0.0 --host head
  grouse-cluster executor --scheduler head:50050 --bind 0.0.0.0 --host node1 --vcores 8 --memory 24GB --work-folder /fast/grouse
  grouse --cluster df://head:50050 \"SELECT …\"

Files are read by executors: a path has to mean the same file on each, or an address in an object store.

Ports: clients and executors reach the scheduler at its --port. The scheduler, other executors and clients reach an executor at its
--port (rows) and its --control-port (tasks). Without certificates whoever reaches a port can run plans and read files: keep them
inside a trusted network, or give all processes --tls-cert, --tls-key and --tls-ca.";

/// Scheduler and executors of a grouse cluster.
#[derive(Debug, Parser)]
#[command(name = "grouse-cluster", version, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub role: Role,
}

/// What the process is.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// Cuts plans into stages and hands their tasks to executors; one per cluster
    Scheduler(SchedulerArgs),
    /// Runs tasks; one per machine
    Executor(ExecutorArgs),
}

/// The scheduler's.
#[derive(Debug, ClapArgs)]
pub struct SchedulerArgs {
    /// Port for clients and executors; 0 = any that is free
    #[arg(long, default_value_t = SCHEDULER_PORT)]
    pub port: u16,

    /// Name or address by which executors reach this machine
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,

    /// Seconds after which an executor that says nothing is lost, and its tasks run elsewhere
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub executor_timeout: u64,

    /// Seconds that jobs wait for an executor once the last one is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub grace: u64,

    /// An option of Ballista for all jobs, such as ballista.shuffle.compression.codec=lz4; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    #[command(flatten)]
    pub process: ProcessArgs,
}

/// An executor's.
#[derive(Debug, ClapArgs)]
pub struct ExecutorArgs {
    /// The scheduler, as host:port; it is waited for
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub scheduler: (String, u16),

    /// Port at which other executors and clients fetch rows; 0 = any that is free
    #[arg(long, default_value_t = 50051)]
    pub port: u16,

    /// Port at which the scheduler hands out tasks; 0 = any that is free. With certificates it is for this machine alone, and tasks come by --port
    #[arg(long, default_value_t = 50052)]
    pub control_port: u16,

    /// Name or address by which the scheduler, other executors and clients reach this machine
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,

    /// Partitions that it works on at a time, and threads; 0 = as many as the machine has cores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub vcores: usize,

    /// Memory that its tasks may hold together, such as 24GB or 80%; beyond that they write to the work folder
    #[arg(long, value_name = "SIZE", default_value = "70%", value_parser = memory)]
    pub memory: u64,

    /// Folder for results of stages and for what does not fit into memory: fast and local, as large as the largest exchange
    #[arg(long, value_name = "PATH")]
    pub work_folder: PathBuf,

    /// Seconds between two signs of life
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    pub heartbeat: u64,

    /// The only folders whose files tasks read, with ':' between them; may be repeated
    #[arg(long, value_name = "PATH")]
    pub allowed_directories: Vec<String>,

    /// An option of its sessions for object stores, such as s3_region=eu-west-1; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    #[command(flatten)]
    pub process: ProcessArgs,
}

/// What both have.
#[derive(Debug, ClapArgs)]
pub struct ProcessArgs {
    /// Address to listen at; 0.0.0.0 = all of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: std::net::IpAddr,

    /// Certificate of this process in PEM; connections without a certificate of the cluster's authority are refused then
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    pub tls_cert: Option<PathBuf>,

    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Certificate of the authority that has signed those of all processes and clients
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,

    /// What is written to standard error
    #[arg(long, value_enum, default_value_t = LogLevel::Warn)]
    pub log: LogLevel,
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What went wrong
    Error,
    /// And what may go wrong
    Warn,
    /// And each task
    Info,
    /// And each plan
    Debug,
}

impl ProcessArgs {
    /// The certificates, if it has some.
    pub fn tls_files(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            cert: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            ca: self.tls_ca.clone()?,
        })
    }
}

impl ExecutorArgs {
    /// Partitions at a time (never 0).
    pub fn vcores_effective(&self) -> usize {
        match self.vcores {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            vcores => vcores,
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let expected = || "expected HOST:PORT".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    match (host.is_empty(), port.parse()) {
        (false, Ok(port)) => Ok((host.to_owned(), port)),
        _ => Err(expected()),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    let mut options = SessionOptions::default();
    options
        .set("memory_limit", text)
        .map_err(|error| error.to_string())?;
    Ok(options.memory_limit_bytes())
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_executor_needs_a_scheduler_and_a_folder() {
        let parse = |line: &str| Args::try_parse_from(line.split(' '));
        let all = "grouse-cluster executor --scheduler h:1 --work-folder w --memory 1GB --vcores 3";
        let Role::Executor(args) = parse(all).unwrap().role else {
            panic!("no executor");
        };
        assert_eq!(args.scheduler, ("h".to_owned(), 1));
        assert_eq!((args.memory, args.vcores_effective()), (1_000_000_000, 3));
        for wrong in [
            "grouse-cluster executor --work-folder w",
            "grouse-cluster executor --scheduler h --work-folder w",
            "grouse-cluster executor --scheduler h:1",
            "grouse-cluster scheduler --tls-cert c",
            "grouse-cluster scheduler --executor-timeout 0",
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
