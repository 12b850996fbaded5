//! `grouse-datagen`: writes the benchmark's tables as Parquet files.
//!
//! In: a table's name, its size, a path. Out: one file, and a line with rows, bytes and seconds.
//! Invariant: the same arguments give the same values on every machine and for every thread count.
//! Not here: queries and timing, which are `bench/run.py`'s.

mod random;
mod words;
mod hits;
mod g1;
mod tpch;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};

use crate::g1::G1;
use crate::hits::Hits;
use crate::tpch::{Tpch, TpchTable};
use crate::write::{Table, WriteError, Written, write_table};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Writes the tables of the grouse benchmark as Parquet.
#[derive(Parser)]
#[command(name = "grouse-datagen", version)]
struct TableArguments {
    #[command(subcommand)]
    table: Choice,
}

#[derive(Subcommand)]
enum Choice {
    /// Web analytics, 105 columns in the likeness of ClickBench's `hits`
    Hits {
        /// Rows of the table
        #[arg(long, default_value_t = 10_000_000)]
        rows: u64,
        #[command(flatten)]
        target: Target,
    },
    /// The group-by table of db-benchmark (G1)
    G1 {
        /// Rows of the table
        #[arg(long, default_value_t = 10_000_000)]
        rows: u64,
        /// Groups of the low-cardinality keys
        #[arg(long, default_value_t = 100)]
        groups: u64,
        #[command(flatten)]
        target: Target,
    },
    /// One table of TPC-H
    Tpch {
        /// Which of the eight
        #[arg(long, value_enum, default_value_t = TpchTable::Lineitem)]
        table: TpchTable,
        /// Scale factor: 1 gives 6 M rows of lineitem
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Args)]
struct Target {
    /// File to write; it appears only when it is complete
    #[arg(long)]
    out: PathBuf,
    /// Worker threads, 0 = one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

fn main() -> ExitCode {
    let started = Instant::now();
    let written = match TableArguments::parse().table {
        Choice::Hits { rows, target } => write(&Hits::new(rows), &target),
        Choice::G1 {
            rows,
            groups,
            target,
        } => write(&G1::new(rows, groups), &target),
        Choice::Tpch {
            table,
            scale,
            target,
        } => Tpch::new(table, scale).and_then(|table| write(&table, &target)),
    };
    match written {
        Ok(Written { path, rows, bytes }) => {
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{}: {rows} rows, {bytes} bytes, {seconds:.1} s",
                path.display()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("grouse-datagen: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(table: &dyn Table, target: &Target) -> Result<Written, WriteError> {
    let threads = match target.threads {
        0 => std::thread::available_parallelism().map_or(1, |count| count.get()),
        count => count,
    };
    write_table(table, &target.out, threads)
}
