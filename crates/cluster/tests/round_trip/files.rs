//! Statements over files: the rows of a plan that went there and back are those of one process.
//!
//! In: Parquet, CSV and JSON files written here. Out: equal rows, plans in stages.
//! Invariant: floats are compared to 10 digits, as sums depend on their order.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use grouse::{Error, Session, SessionOptions};
use grouse_cluster::ClusterShape;
use grouse_cluster::rehearsal::{Outcomes, rehearsing};
use parking_lot::Mutex;

const SHAPE: ClusterShape = ClusterShape {
    vcores: 2,
    partitions: 3,
};

/// Over `t`: an integer `i`, a small one `k`, a string `s`, a double `f`, a decimal `d`, a day `day`, NULLs in `n`.
const STATEMENTS: &[&str] = &[
    "SELECT count(*), sum(i), avg(f), min(s), max(d) FROM t",
    "SELECT k, count(*), sum(i), avg(f), min(s), max(s) FROM t GROUP BY k",
    "SELECT s, count(*), min(f), max(f), sum(d), avg(d) FROM t WHERE i % 3 <> 1 GROUP BY s",
    "SELECT s, k, day, count(n), sum(n) FROM t GROUP BY s, k, day",
    "SELECT f, d, count(*) FROM t GROUP BY f, d",
    "SELECT n, count(*) FROM t WHERE s LIKE '%1%' AND i > 17 GROUP BY n",
    "SELECT k, count(*) AS c FROM t GROUP BY k HAVING count(*) > 100",
    "SELECT k, sum(i + 1), sum(i + 2), sum(i) FROM t GROUP BY k",
    "SELECT k, i * 3 + 1 AS x, count(*) FROM t GROUP BY k, i * 3 + 1",
    "SELECT s, sum(i) AS total FROM t GROUP BY s ORDER BY total DESC, s LIMIT 7",
    "SELECT k, s, count(*) FROM t GROUP BY ROLLUP (k, s)",
    "SELECT k, count(DISTINCT s), count(DISTINCT i % 10), sum(i) FROM t GROUP BY k",
    "SELECT count(DISTINCT s), count(DISTINCT n) FROM t",
    "SELECT DISTINCT k, day FROM t",
    "SELECT k, median(i), stddev(f), var_pop(f), corr(f, i) FROM t GROUP BY k",
    "SELECT k, string_agg(s, ',' ORDER BY i) FROM t WHERE i < 50 GROUP BY k",
    "SELECT k, array_agg(i ORDER BY i DESC) FROM t WHERE i < 50 GROUP BY k",
    "SELECT k, first_value(s ORDER BY i), last_value(s ORDER BY i), max_by(s, i) FROM t GROUP BY k",
    "SELECT k, approx_distinct(s) FROM t GROUP BY k",
    "SELECT a.k, count(*), sum(b.i) FROM t a JOIN t b ON a.i = b.i GROUP BY a.k",
    "SELECT k, count(*) FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY i) AS r FROM t) WHERE r <= 3 GROUP BY k",
    "SELECT day, date_trunc('month', day) AS m, count(*) FROM t GROUP BY day, date_trunc('month', day)",
    "SELECT k, count(*) FILTER (WHERE i % 2 = 0), sum(i) FILTER (WHERE s = 's1') FROM t GROUP BY k",
    "SELECT CASE WHEN n IS NULL THEN 'none' ELSE s END AS x, count(*) FROM t GROUP BY 1",
    "SELECT k, count(*) FROM t WHERE i IN (SELECT i FROM t WHERE n = 2) GROUP BY k",
    "SELECT k, c FROM (SELECT k, count(*) AS c FROM t GROUP BY k UNION ALL SELECT k, count(*) FROM t WHERE i < 9 GROUP BY k)",
    "SELECT date_trunc('hour', to_timestamp_seconds(i)) AS h, count(*) FROM t GROUP BY h",
    "SELECT count(*) FROM t HAVING count(*) > 0",
    "SELECT count(*), sum(i) FROM t GROUP BY GROUPING SETS ((), ())",
    "SELECT n.number, count(*), sum(i) FROM t JOIN numbers(2, 4) AS n ON t.k = n.number GROUP BY n.number",
    "SELECT k, count(*) FROM t CROSS JOIN numbers(3) GROUP BY k",
    "SELECT k, count(*) FROM (SELECT k FROM t UNION ALL SELECT number % 9 FROM numbers(20)) GROUP BY k",
    "SELECT k, upper(s), length(s), round(f, 2), cast(i AS varchar), count(*) FROM t GROUP BY 1, 2, 3, 4, 5",
];

fn traveller() -> (Session, Arc<Mutex<Outcomes>>) {
    let options = SessionOptions {
        threads: 2,
        ..Default::default()
    };
    rehearsing(options, SHAPE, false).expect("a session")
}

fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, Error> {
    let running = async {
        let query = session.query(sql).await?;
        query.execute()?.try_collect().await.map_err(Error::from)
    };
    session.handle().block_on(running)
}

/// The rows as text, sorted.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| {
                let formatter = ArrayFormatter::try_new(column, &options).expect("a cell");
                let text = formatter.value(row).to_string();
                match (column.data_type().is_floating(), text.parse::<f64>()) {
                    (true, Ok(number)) => format!("{number:.9e}"),
                    _ => text,
                }
            });
            rows.push(cells.collect::<Vec<_>>().join(" | "));
        }
    }
    rows.sort();
    rows
}

fn write(folder: &Path) {
    let session = Session::new(Default::default()).expect("a session");
    let rows = "SELECT value AS i, value % 7 AS k, 's' || (value % 23) AS s, value * 0.25 AS f, \
                CAST(value % 100 AS DECIMAL(12, 2)) / 4 AS d, DATE '2024-01-01' + CAST(value % 90 AS INTEGER) AS day, \
                CASE WHEN value % 5 = 0 THEN NULL ELSE value % 4 END AS n FROM range(0, 5000) AS r(value)";
    for (file, part) in [("a", "value < 1700"), ("b", "value >= 1700")] {
        for kind in ["parquet", "csv", "json"] {
            let path = folder.join(kind);
            std::fs::create_dir_all(&path).expect("a folder");
            let path = path.join(format!("{file}.{kind}"));
            let copy = format!("COPY ({rows} WHERE {part}) TO '{}'", path.display());
            run(&session, &copy).expect("a file");
        }
    }
}

#[test]
fn rows_are_those_of_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let plain = Session::new(Default::default()).expect("a session");
    let (cluster, outcomes) = traveller();
    let mut wrong = Vec::new();
    for kind in ["parquet", "csv", "json"] {
        let files = folder.path().join(kind).join(format!("*.{kind}"));
        for statement in STATEMENTS {
            let from = format!("'{}'", files.display());
            let sql = format!("WITH t AS (SELECT * FROM {from}) {statement}");
            let expected = rows(&run(&plain, &sql).expect(statement));
            let before = outcomes.lock().distributed;
            match run(&cluster, &sql) {
                Ok(found) if rows(&found) == expected => {}
                Ok(found) => wrong.push(format!(
                    "{kind}: {statement}\n  {:?}\n  {expected:?}",
                    rows(&found)
                )),
                Err(error) => wrong.push(format!("{kind}: {statement}\n  {error}")),
            }
            if outcomes.lock().distributed == before {
                wrong.push(format!("{kind}: {statement}\n  was not distributed"));
            }
        }
    }
    let outcomes = outcomes.lock();
    println!(
        "{} plans went, here {:?}, refused {:?}",
        outcomes.distributed, outcomes.here, outcomes.refused
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_grouping_is_partial_exchange_and_final() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let (cluster, outcomes) = traveller();
    let files = folder.path().join("parquet").join("*.parquet");
    let sql = format!("SELECT k, count(*) FROM '{}' GROUP BY k", files.display());
    run(&cluster, &sql).expect("rows");
    let plan = outcomes.lock().last.clone();
    let place = |text: &str| {
        plan.find(text)
            .unwrap_or_else(|| panic!("no {text} in\n{plan}"))
    };
    assert!(place("stage=final") < place("RepartitionExec: partitioning=Hash([k@0], 3)"));
    assert!(place("RepartitionExec") < place("stage=partial"));
}

#[test]
fn what_reads_no_files_runs_here() {
    let (cluster, outcomes) = traveller();
    run(
        &cluster,
        "SELECT x, count(*) FROM (VALUES (1), (2)) AS v(x) GROUP BY x",
    )
    .expect("rows");
    let outcomes = outcomes.lock();
    assert_eq!(outcomes.distributed, 0);
    assert_eq!(
        outcomes.here.keys().collect::<Vec<_>>(),
        ["it reads no files"]
    );
}

#[test]
fn many_numbers_are_counted_up_there() {
    let (cluster, outcomes) = traveller();
    let sql = |numbers: usize| {
        format!(
            "SELECT number % 3 AS k, count(*), min(number), max(number), sum(number) FROM numbers(5, {numbers}) GROUP BY k"
        )
    };
    run(&cluster, &sql(10_000_000)).expect("rows");
    assert_eq!(outcomes.lock().distributed, 0);
    let found = rows(&run(&cluster, &sql(12_000_000)).expect("rows"));
    assert_eq!(outcomes.lock().distributed, 1);
    assert_eq!(
        found,
        [
            "0 | 4000000 | 6 | 12000003 | 24000018000000",
            "1 | 4000000 | 7 | 12000004 | 24000022000000",
            "2 | 4000000 | 5 | 12000002 | 24000014000000",
        ]
    );
    let plan = outcomes.lock().last.clone();
    let place = plan.find("[5-4000005], [4000005-8000005], [8000005-12000005]");
    assert!(place.is_some(), "{plan}");
}

#[test]
fn what_cannot_go_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path());
    let (cluster, outcomes) = traveller();
    run(&cluster, "CREATE SEQUENCE numbers_of_rows").expect("a sequence");
    let files = folder.path().join("parquet").join("*.parquet");
    let sql = format!(
        "SELECT k, nextval('numbers_of_rows') FROM '{}'",
        files.display()
    );
    run(&cluster, &sql).expect("rows");
    let outcomes = outcomes.lock();
    let said = outcomes.refused.keys().next().expect("an error");
    assert!(said.contains("the function nextval"), "{said}");
}
