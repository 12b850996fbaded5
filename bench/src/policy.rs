//! `grouse-policy`: what workers decide about a full table, beside both choices forced upon them.
//!
//! In: flags. Out: a line of CSV per case and choice: CPU time per row of the best of some rounds, in builds and in merges.
//! Invariant: the choices of a case see the same batches, made beforehand, and take turns. Both are forced by the sizes
//! alone: a table of any size is kept, or each is emptied after one batch and the next rows go by it.
//! Not here: time of queries.

use std::process::ExitCode;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringViewBuilder};
use arrow::datatypes::{DataType, Field};
use clap::Parser;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::runtime::Topology;
use grouse_groupby::states::{self, Aggregate, Extreme, Spread};
use grouse_groupby::{Arguments, Batch, Sizes, Spec, TableKind};

#[path = "measure.rs"]
mod measure;
#[path = "random.rs"]
#[allow(
    dead_code,
    reason = "shared with the generator, which draws more shapes"
)]
mod random;
use measure::{BATCH_ROWS, Outcome, run};
use random::Bits;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sweeps groups, order, keys and states.
#[derive(Parser)]
#[command(name = "grouse-policy", version)]
struct PolicyFlags {
    /// Rows of a case
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Groups
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,10000,100000,200000,500000,1000000,3000000,10000000"
    )]
    groups: Vec<u64>,
    /// Workers, each a thread
    #[arg(long, value_delimiter = ',', default_value = "1,2,16")]
    workers: Vec<usize>,
    /// Bytes of a key: 8 is an integer, others are strings
    #[arg(long, value_delimiter = ',', default_value = "8,12,40,200")]
    widths: Vec<usize>,
    /// Only orders whose name contains this
    #[arg(long, default_value = "")]
    order: String,
    /// Only aggregates whose name contains this
    #[arg(long, default_value = "")]
    states: String,
    /// One of so many cases, drawn evenly
    #[arg(long, default_value_t = 1)]
    one_in: u64,
    /// Timed runs of each choice; the best counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// The group of a row.
type Order = fn(row: u64, rows: u64, groups: u64) -> u64;

/// Rows of one group anywhere, side by side, near each other, unevenly many, and both kinds of a change half way.
const ORDERS: &[(&str, Order)] = &[
    ("random", |row, _, groups| Bits::of(1, row).below(groups)),
    ("sorted", |row, rows, groups| row * groups / rows),
    ("clustered", |row, rows, groups| {
        let near = (rows / groups).max(1) * 64;
        row / near * 64 + Bits::of(1, row).below(64)
    }),
    ("zipf", |row, _, groups| Bits::of(1, row).zipf(groups, 1.0)),
    ("repeated, then new", |row, rows, groups| {
        match row < rows / 2 {
            true => Bits::of(1, row).below(groups / 100 + 1),
            false => Bits::of(1, row).below(groups),
        }
    }),
    ("new, then repeated", |row, rows, groups| {
        match row < rows / 2 {
            true => Bits::of(1, row).below(groups),
            false => Bits::of(1, row).below(groups / 100 + 1),
        }
    }),
];

/// Aggregates of one integer and one double, by the size of their states.
const STATES: &[&str] = &["count", "max, min", "sum, avg", "ten"];

/// Each with its argument: the integer, the double or none.
fn aggregates(name: &str) -> Vec<(Arc<dyn Aggregate>, Option<usize>)> {
    let (int, double) = (DataType::Int32, DataType::Float64);
    let extreme = |of| (states::min_max("extreme", of, &int, &int), Some(0));
    let sum = || (states::sum("sum", &int, &DataType::Int64), Some(0));
    let avg = || (states::avg("avg", &double, &double), Some(1));
    let spread = |of| (states::variance("spread", of, &double), Some(1));
    let all = match name {
        "count" => vec![(states::count("count"), None)],
        "max, min" => vec![extreme(Extreme::Max), extreme(Extreme::Min)],
        "sum, avg" => vec![sum(), avg()],
        _ => vec![
            sum(),
            avg(),
            spread(Spread::DeviationSample),
            spread(Spread::VarianceSample),
            extreme(Extreme::Max),
            extreme(Extreme::Min),
        ],
    };
    let native = |(aggregate, column): (Option<_>, _)| (aggregate.expect("native states"), column);
    all.into_iter().map(native).collect()
}

/// One point of the sweep, without workers: they see the same rows.
struct Case {
    rows: u64,
    groups: u64,
    order: (&'static str, Order),
    width: usize,
    states: &'static str,
}

impl Case {
    fn spec(&self, sizes: Sizes) -> Arc<Spec> {
        let field = Arc::new(Field::new("key", self.key_type(), false));
        let keys = KeyLayout::new(&[field], TableKind::Auto).expect("one key");
        let aggregates = aggregates(self.states).into_iter();
        Arc::new(Spec::new(
            keys,
            aggregates.map(|(one, _)| one).collect(),
            sizes,
        ))
    }

    fn key_type(&self) -> DataType {
        match self.width {
            8 => DataType::Int64,
            _ => DataType::Utf8View,
        }
    }

    fn batches(&self) -> Vec<Batch> {
        let columns: Vec<_> = aggregates(self.states)
            .into_iter()
            .map(|(_, of)| of)
            .collect();
        let starts = (0..self.rows).step_by(BATCH_ROWS);
        let batch = |start: u64| {
            let rows = start..(start + BATCH_ROWS as u64).min(self.rows);
            let ints = rows.clone().map(|row| Bits::of(2, row).below(100) as i32);
            let doubles = rows.clone().map(|row| Bits::of(3, row).unit());
            let values: [ArrayRef; 2] = [
                Arc::new(ints.collect::<Int32Array>()),
                Arc::new(doubles.collect::<Float64Array>()),
            ];
            let arguments = columns.iter().map(|of| Arguments {
                columns: of.map(|at| Arc::clone(&values[at])).into_iter().collect(),
                filter: None,
            });
            let groups = rows
                .clone()
                .map(|row| self.order.1(row, self.rows, self.groups));
            let (rows, keys) = ((rows.end - rows.start) as usize, self.keys(groups));
            Batch::new(rows, vec![keys], arguments.collect())
        };
        starts.map(batch).collect()
    }

    /// Integers over 64 bits, so that no array takes them; strings that share their beginning.
    fn keys(&self, groups: impl Iterator<Item = u64>) -> ArrayRef {
        if self.width == 8 {
            let spread = groups.map(|group| group.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64);
            return Arc::new(spread.collect::<Int64Array>());
        }
        let mut strings = StringViewBuilder::new();
        for group in groups {
            strings.append_value(format!("{group:x>width$}", width = self.width));
        }
        Arc::new(strings.finish())
    }

    fn is_drawn(&self, one_in: u64) -> bool {
        let named = self.order.0.len() * 31 + self.states.len() * 7 + self.width;
        Bits::of(self.groups, named as u64).below(one_in) == 0
    }
}

/// What is decided, and what is forced.
const CHOICES: &[&str] = &["measured", "look up", "go by"];

fn sizes(workers: usize, choice: &str) -> Sizes {
    let sizes = Sizes::for_machine(workers, Topology::of_this_machine().l2_bytes(workers));
    match choice {
        "look up" => Sizes {
            hot_bytes: usize::MAX,
            ..sizes
        },
        "go by" => Sizes {
            hot_bytes: 0,
            grown_bytes: 0,
            ..sizes
        },
        _ => sizes,
    }
}

fn cases(flags: &PolicyFlags) -> Vec<Case> {
    let mut cases = Vec::new();
    for &groups in &flags.groups {
        for order in ORDERS {
            for &width in &flags.widths {
                let all = STATES.iter().map(|states| Case {
                    rows: flags.rows,
                    groups: groups.min(flags.rows),
                    order: *order,
                    width,
                    states,
                });
                cases.extend(all);
            }
        }
    }
    let named =
        |case: &Case| case.order.0.contains(&flags.order) && case.states.contains(&flags.states);
    cases.retain(|case| named(case) && case.is_drawn(flags.one_in));
    cases
}

fn main() -> ExitCode {
    let flags = PolicyFlags::parse();
    println!(
        "rows,groups,order,width,states,workers,choice,build_ns,merge_ns,wall_ms,flushes,bypassed,longest"
    );
    for case in cases(&flags) {
        let batches = case.batches();
        for &workers in &flags.workers {
            measure_choices(&case, &batches, workers, flags.rounds);
        }
    }
    ExitCode::SUCCESS
}

fn measure_choices(case: &Case, batches: &[Batch], workers: usize, rounds: usize) {
    let specs = CHOICES
        .iter()
        .map(|choice| case.spec(sizes(workers, choice)));
    let specs: Vec<_> = specs.collect();
    let mut best: Vec<Option<Outcome>> = CHOICES.iter().map(|_| None).collect();
    for _ in 0..rounds {
        for (spec, best) in specs.iter().zip(&mut best) {
            let outcome = run(spec, batches, workers);
            let cpu = |outcome: &Outcome| outcome.build_cpu + outcome.merge_cpu;
            if best.as_ref().is_none_or(|best| cpu(&outcome) < cpu(best)) {
                *best = Some(outcome);
            }
        }
    }
    let groups = best.iter().flatten().map(|outcome| outcome.groups);
    let groups: Vec<usize> = groups.collect();
    assert!(
        groups.windows(2).all(|pair| pair[0] == pair[1]),
        "{groups:?} groups by choice"
    );
    for (choice, outcome) in CHOICES.iter().zip(best) {
        if let Some(outcome) = outcome {
            print(case, workers, choice, &outcome);
        }
    }
}

fn print(case: &Case, workers: usize, choice: &str, outcome: &Outcome) {
    let rows = case.rows as f64;
    println!(
        "{},{},\"{}\",{},\"{}\",{workers},{choice},{:.2},{:.2},{:.1},{},{:.3},{:.3}",
        case.rows,
        case.groups,
        case.order.0,
        case.width,
        case.states,
        outcome.build_cpu.as_nanos() as f64 / rows,
        outcome.merge_cpu.as_nanos() as f64 / rows,
        (outcome.build + outcome.merge).as_secs_f64() * 1e3,
        outcome.counters.flushes,
        outcome.counters.bypassed_rows as f64 / rows,
        outcome.longest.percent() / 100.0,
    );
}
