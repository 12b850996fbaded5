//! `grouse-operator`: the group-by alone, without SQL and files, on keys made for one decision each.
//!
//! In: flags. Out: a line per key distribution, of the best of some rounds: time of each phase, what was decided.
//! Invariant: all rounds see the same batches, made beforehand.
//! Not here: speed claims about queries; they are `run.py`'s.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field};
use clap::Parser;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::runtime::Topology;
use grouse_groupby::{Arguments, Batch, Sizes, Spec, TableKind, states};

#[path = "measure.rs"]
mod measure;
use measure::{BATCH_ROWS, run};

#[path = "random.rs"]
#[allow(
    dead_code,
    reason = "shared with the generator, which draws more shapes"
)]
mod random;
use random::Bits;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Times the operator on synthetic keys.
#[derive(Parser)]
#[command(name = "grouse-operator", version)]
struct OperatorFlags {
    /// Rows
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Worker threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Workers that partitions and tasks are made for; by default the threads
    #[arg(long)]
    workers: Option<usize>,
    /// Timed runs of each; the best counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only distributions whose name contains this
    #[arg(long, default_value = "")]
    keys: String,
    /// Bytes of a hot table; by default most of the core's second-level cache
    #[arg(long)]
    hot: Option<usize>,
    /// Bytes that a table may grow to
    #[arg(long)]
    grown: Option<usize>,
}

/// A key distribution: its name and the key of each row.
type Keys = (&'static str, fn(row: u64, rows: u64) -> u64);

/// What each is made for: few keys, many that fit, too many, skew, runs, change in the middle.
const KEYS: &[Keys] = &[
    ("uniform 1 k", |row, _| Bits::of(1, row).below(1_000)),
    ("uniform 100 k", |row, _| Bits::of(1, row).below(100_000)),
    ("uniform 1 M", |row, _| Bits::of(1, row).below(1_000_000)),
    ("uniform rows / 3", |row, rows| {
        Bits::of(1, row).below(rows / 3)
    }),
    ("unique", |row, _| row),
    ("zipf 0.5", |row, rows| zipf(row, rows, 0.5)),
    ("zipf 0.8", |row, rows| zipf(row, rows, 0.8)),
    ("zipf 1.0", |row, rows| zipf(row, rows, 1.0)),
    ("zipf 1.2", |row, rows| zipf(row, rows, 1.2)),
    ("one key in half of the rows", |row, rows| match row % 2 {
        0 => 7,
        _ => Bits::of(1, row).below(rows),
    }),
    ("runs of 5", |row, _| row / 5),
    ("sessions", |row, rows| {
        // A user's rows lie near each other, not side by side.
        (row / 64 * 64 + Bits::of(2, row).below(64) * 8) % (rows / 2)
    }),
    ("dense 10 k", |row, _| row % 10_000),
    ("dense 1 M", |row, _| row % 1_000_000),
    ("dense uniform 100 k", |row, _| {
        Bits::of(1, row).below(100_000)
    }),
    ("dense uniform 1 M", |row, _| {
        Bits::of(1, row).below(1_000_000)
    }),
    ("dense uniform 3 M", |row, _| {
        Bits::of(1, row).below(3_000_000)
    }),
    ("dense unique", |row, _| row),
    ("unique, then repeated", |row, rows| match row < rows / 2 {
        true => row,
        false => Bits::of(1, row).below(1_000),
    }),
    ("repeated, then unique", |row, rows| match row < rows / 2 {
        true => Bits::of(1, row).below(1_000),
        false => row,
    }),
];

/// Of `rows` keys the k-th with a frequency of about k to the power of -`skew`: the inverse of the continuous distribution.
fn zipf(row: u64, rows: u64, skew: f64) -> u64 {
    let unit = Bits::of(1, row).unit();
    let most = rows as f64 + 1.0;
    let drawn = match skew == 1.0 {
        true => most.powf(unit),
        false => {
            let rest = 1.0 - skew;
            (1.0 + unit * (most.powf(rest) - 1.0)).powf(1.0 / rest)
        }
    };
    (drawn as u64).clamp(1, rows) - 1
}

/// Keys are spread over 64 bits, so that no table of small integers takes them, but for those that are made for it.
fn spread(name: &str, key: u64) -> i64 {
    match name.starts_with("dense") {
        true => key as i64,
        false => key.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64,
    }
}

fn main() -> ExitCode {
    let flags = OperatorFlags::parse();
    let workers = flags.workers.unwrap_or(flags.threads);
    let l2_bytes = Topology::of_this_machine().l2_bytes(workers);
    let mut sizes = Sizes::for_machine(workers, l2_bytes);
    sizes.hot_bytes = flags.hot.unwrap_or(sizes.hot_bytes);
    sizes.grown_bytes = flags.grown.unwrap_or(sizes.grown_bytes);
    println!(
        "{:<28} {:>9} {:>8} {:>8} {:>8}   ns per row: {:>6} {:>6} {:>6} {:>6} {:>9}   {:>7} {:>7} {:>8}",
        "keys",
        "groups",
        "ms",
        "build",
        "merge",
        "cpu",
        "hash",
        "assign",
        "update",
        "partition",
        "flushes",
        "bypass",
        "longest"
    );
    for (name, key) in KEYS.iter().filter(|(name, _)| name.contains(&flags.keys)) {
        let batches = batches(flags.rows, name, *key);
        let spec = spec(sizes);
        let best = (0..flags.rounds)
            .map(|_| run(&spec, &batches, flags.threads))
            .min_by_key(|outcome| outcome.build + outcome.merge);
        let Some(best) = best else { continue };
        let per_row = |ns: u64| ns as f64 / flags.rows as f64;
        let cpu = per_row((best.build_cpu + best.merge_cpu).as_nanos() as u64);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let counters = &best.counters;
        println!(
            "{:<28} {:>9} {:>8.1} {:>8.1} {:>8.1}               {:>6.1} {:>6.2} {:>6.2} {:>6.2} {:>9.2}   {:>7} {:>6.0}% {:>7.1}%",
            name,
            best.groups,
            ms(best.build + best.merge),
            ms(best.build),
            ms(best.merge),
            cpu,
            per_row(counters.hash_ns),
            per_row(counters.assign_ns),
            per_row(counters.update_ns),
            per_row(counters.partition_ns),
            counters.flushes,
            counters.bypassed_rows as f64 * 100.0 / flags.rows as f64,
            best.longest.percent(),
        );
    }
    ExitCode::SUCCESS
}

fn batches(rows: u64, name: &str, key: fn(u64, u64) -> u64) -> Vec<Batch> {
    let starts = (0..rows).step_by(BATCH_ROWS);
    let batch = |start: u64| {
        let end = (start + BATCH_ROWS as u64).min(rows);
        let keys: Int64Array = (start..end)
            .map(|row| spread(name, key(row, rows)))
            .collect();
        let keys: ArrayRef = Arc::new(keys);
        Batch::new(keys.len(), vec![keys], vec![Arguments::default()])
    };
    starts.map(batch).collect()
}

/// A count by one integer.
fn spec(sizes: Sizes) -> Arc<Spec> {
    let field = Arc::new(Field::new("key", DataType::Int64, false));
    let count = states::count("count(*)").expect("count has states");
    let keys = KeyLayout::new(&[field], TableKind::Auto).expect("an integer key");
    Arc::new(Spec::new(keys, vec![count], sizes))
}
