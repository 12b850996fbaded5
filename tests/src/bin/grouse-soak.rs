//! The long runs behind `make soak`: the fuzz and groupings of 10^8 rows whose answers follow from arithmetic. Queries that are
//! killed, dropped and cancelled, writes that are interrupted, answers beside renames, and damaged files.
//!
//! In: `--record FILE`, `--seconds N` for each part, and which of `PARTS`; without any all. Out: a report on standard output; exit
//! status 1 on a fault. With a record each part goes on from its seed there, round by round, and adds what it did.
//! Without `--record` parts begin at a seed of the minute.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grouse::{Session, SessionOptions};
use grouse_tests::answer::Answer;
use grouse_tests::cell::Cell;
use grouse_tests::soak_record::{Round, SoakRecord};
use grouse_tests::{damaged, endings, interrupted_writes, oracle, renames, stops};

/// How long each part goes on, unless the caller says.
const SECONDS: u64 = 30 * 60;

/// The parts that go on from seed to seed, and what a round of each is.
const PARTS: [(&str, fn(u64) -> RoundEnd); 7] = [
    ("fuzz", fuzz),
    ("damaged", damaged_files),
    ("kills", kills),
    ("drops", drops),
    ("stops", stopped),
    ("writes", writes),
    ("renames", renamed),
];

/// Rows of the large groupings.
const ROWS: i128 = 100_000_000;

/// What a round did and its report, or the seeds that it used up and its fault.
type RoundEnd = Result<(Round, String), (Round, String)>;

/// A round of so many seeds that counts what it did.
fn ended<R: ToString>(
    report: Result<R, String>,
    seeds: u64,
    counted: impl FnOnce(&R) -> (u64, Duration),
) -> RoundEnd {
    let mut round = Round {
        seeds,
        ..Round::default()
    };
    match report {
        Ok(report) => {
            (round.done, round.worst) = counted(&report);
            Ok((round, report.to_string()))
        }
        Err(fault) => Err((round, fault)),
    }
}

/// Random queries against the peers.
fn fuzz(seed: u64) -> RoundEnd {
    const QUERIES: usize = 2_000;
    let report = oracle::run(seed, QUERIES);
    if let Ok(report) = &report {
        report.assert_broad();
    }
    ended(report, QUERIES as u64, |report| {
        (report.queries as u64, Duration::ZERO)
    })
}

/// Files of all formats with places changed, each of which ends in rows or an error.
fn damaged_files(seed: u64) -> RoundEnd {
    const ROUNDS: u64 = 8;
    let shell = endings::program("grouse");
    let report = damaged::run(&shell, seed, ROUNDS, Duration::MAX);
    ended(report, ROUNDS * damaged::FILES, |report| {
        (report.of_each(), report.longest)
    })
}

/// Processes that are killed while they write temporary files.
fn kills(seed: u64) -> RoundEnd {
    const KILLS: usize = 90;
    let report = endings::kills(&endings::program("grouse"), KILLS, seed);
    ended(report, 1, |_| (KILLS as u64, Duration::ZERO))
}

/// Streams that are dropped while they write temporary files.
fn drops(seed: u64) -> RoundEnd {
    const DROPS: usize = 90;
    ended(endings::cancels(DROPS, seed), 1, |_| {
        (DROPS as u64, Duration::ZERO)
    })
}

/// How long cancelled statements go on.
fn stopped(seed: u64) -> RoundEnd {
    const STOPS: u64 = 100;
    ended(stops::run(STOPS, seed), STOPS, |report| {
        (report.cancelled, report.worst)
    })
}

/// Writes that are interrupted.
fn writes(seed: u64) -> RoundEnd {
    const WRITES: u64 = 200;
    let report = interrupted_writes::run(&endings::program("grouse"), WRITES, seed);
    ended(report, WRITES, |report| {
        (report.interrupted, Duration::ZERO)
    })
}

/// Answers beside renames.
fn renamed(seed: u64) -> RoundEnd {
    const ANSWERS: u64 = 1_000;
    ended(renames::run(ANSWERS, seed), 10, |report| {
        (report.answers, Duration::ZERO)
    })
}

/// Queries over `numbers(ROWS)` that give one row, and that row.
fn large() -> Vec<(String, Vec<i128>)> {
    let total = ROWS * (ROWS - 1) / 2;
    let over = |groups: &str| format!("SELECT count(*), sum(c), sum(s) FROM ({groups})");
    let grouped = |key: &str| {
        over(&format!(
            "SELECT count(*) AS c, sum(number) AS s FROM numbers({ROWS}) GROUP BY {key}"
        ))
    };
    vec![
        (grouped("number % 10000"), vec![10_000, ROWS, total]),
        (grouped("number % 1000003"), vec![1_000_003, ROWS, total]),
        (grouped("number / 10"), vec![ROWS / 10, ROWS, total]),
        (grouped("number % 100, number % 7"), vec![700, ROWS, total]),
        (
            grouped("CAST(number % 100000 AS VARCHAR)"),
            vec![100_000, ROWS, total],
        ),
        (
            format!(
                "SELECT min(u), max(u), count(*) FROM (SELECT uniq_exact(number / 10) AS u FROM numbers({ROWS}) GROUP BY number % 10)"
            ),
            vec![ROWS / 10, ROWS / 10, 10],
        ),
        // Approximate counts are within 2 %.
        (
            format!(
                "SELECT count(*) FROM (SELECT uniq(number) AS u FROM numbers({ROWS}) GROUP BY number % 10) \
                 WHERE abs(CAST(u AS BIGINT) - {exact}) <= {exact} / 50",
                exact = ROWS / 10
            ),
            vec![10],
        ),
        (
            format!(
                "SELECT count(*) FROM (SELECT uniq(number) AS u FROM numbers({ROWS})) \
                 WHERE abs(CAST(u AS BIGINT) - {ROWS}) <= {ROWS} / 50"
            ),
            vec![1],
        ),
    ]
}

/// The groupings of [`large`].
fn groupings() -> bool {
    let session = Session::new(SessionOptions::default()).expect("a session with default options");
    let mut good = true;
    for (sql, expected) in large() {
        let started = Instant::now();
        let expected = vec![expected.into_iter().map(Cell::Int).collect::<Vec<_>>()];
        let verdict = match Answer::ask(&session, &sql) {
            Ok(answer) if answer.rows == expected => "right".to_string(),
            Ok(answer) => format!("WRONG, {:?} instead of {expected:?}", answer.rows),
            Err(error) => format!("FAILED, {error}"),
        };
        good &= verdict == "right";
        println!("{verdict}, {:.2} s: {sql}", started.elapsed().as_secs_f64());
    }
    good
}

/// Rounds of one part until its time is over or it has found a fault.
fn part(
    (name, round): (&str, fn(u64) -> RoundEnd),
    record: &mut Option<SoakRecord>,
    time: Duration,
    first: u64,
) -> Result<bool, String> {
    let started = Instant::now();
    let mut seed = record.as_ref().map_or(first, |known| known.next_seed(name));
    loop {
        let began = Instant::now();
        let end = round(seed);
        let took = began.elapsed();
        let (counts, is_good) = match &end {
            Ok((counts, report)) => {
                println!("{name}, seed {seed}: {report}, {:.0} s", took.as_secs_f64());
                (Ok(*counts), true)
            }
            Err((counts, fault)) => {
                println!("{name}, seed {seed}: FAULT {fault}");
                (Err(*counts), false)
            }
        };
        if let Some(record) = record {
            record.add(name, &counts, took)?;
            println!("{name}: {} in all", record.done(name));
        }
        if !is_good || started.elapsed() >= time {
            return Ok(is_good);
        }
        let (Ok(counts) | Err(counts)) = counts;
        seed += counts.seeds;
    }
}

/// What the command line says: a record, the time of each part, which parts.
fn asked() -> Result<(Option<SoakRecord>, Duration, Vec<String>), String> {
    let (mut record, mut seconds, mut wanted) = (None, SECONDS, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--record" => {
                let path = arguments.next().ok_or("--record has a file behind it")?;
                record = Some(SoakRecord::open(&PathBuf::from(path))?);
            }
            "--seconds" => {
                let said = arguments.next().and_then(|said| said.parse().ok());
                seconds = said.ok_or("--seconds has a number behind it")?;
            }
            name if name == "groupings" || PARTS.iter().any(|(part, _)| *part == name) => {
                wanted.push(name.to_owned());
            }
            other => return Err(format!("there is no part '{other}'")),
        }
    }
    Ok((record, Duration::from_secs(seconds), wanted))
}

fn run() -> Result<bool, String> {
    let (mut record, time, wanted) = asked()?;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = now.map_or(0, |since| since.as_secs()) / 60 * 1_000_000;
    let mut good = true;
    if is_wanted("groupings") {
        good &= groupings();
    }
    for (name, round) in PARTS {
        if is_wanted(name) {
            good &= part((name, round), &mut record, time, first)?;
        }
    }
    Ok(good)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::FAILURE
        }
    }
}
