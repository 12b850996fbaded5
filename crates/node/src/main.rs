//! The processes of a grouse cluster: one scheduler, and executors on as many machines as there are.
//! In: arguments. Out: a process that serves until a signal comes, and its exit code.
//! Invariant: 0 says that it was told to end, 1 that it could not go on, 2 that the command line is wrong.
//! Not here: plans and how they travel (crate `grouse-cluster`), scheduling and shuffle files (Ballista).

// From the ground up: a module names only those above it in this list.
mod args;
mod logging;
mod work_folder;
mod ports;
mod stop;
mod shape;
mod connections;
mod writers;
mod stage;
mod peer;
mod executor;
mod lease;
mod attempts;
mod front;
mod scheduler;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Role};

const FAILED: u8 = 1;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if let Err(message) = grouse::processor::check() {
        grouse::processor::tell(message);
        return ExitCode::from(USAGE);
    }
    let args = Args::parse();
    grouse_allocator::keep_pages();
    let ran = match args.role {
        Role::Scheduler(args) => scheduler::run(&args),
        Role::Executor(args) => executor::run(&args),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::say(&format!("error: {error}"));
            ExitCode::from(FAILED)
        }
    }
}
