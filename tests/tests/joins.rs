//! Groupings above and below joins that share one memory limit: TPC-H's queries 13 and 18, scale 1, 300 MB.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt;
use grouse::{Error, Session, SessionOptions};
use grouse_tests::answer::Answer;
use grouse_tests::cell::Cell;
use grouse_tests::endings::program;
use tokio::time::timeout;

/// No query of a test takes so long.
const ENDLESS: Duration = Duration::from_secs(60);

const Q13: &str = "SELECT c_count, count(*) AS custdist FROM (SELECT c_custkey, count(o_orderkey) AS c_count \
    FROM 'customer' LEFT JOIN 'orders' ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' \
    GROUP BY c_custkey) GROUP BY c_count ORDER BY custdist DESC, c_count DESC";

const Q18: &str = "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity \
    FROM 'customer', 'orders', 'lineitem' \
    WHERE o_orderkey IN (SELECT l_orderkey FROM 'lineitem' GROUP BY l_orderkey HAVING sum(l_quantity) > 300) \
    AND c_custkey = o_custkey AND o_orderkey = l_orderkey \
    GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice \
    ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100";

/// Every customer's items: more groups than the limit holds, above two joins, of which one is with a grouping.
const ITEMS: &str = "SELECT count(*), sum(n), sum(s) FROM (SELECT o_custkey, l_partkey, l_shipdate, count(*) AS n, sum(q) AS s \
    FROM 'orders' JOIN 'lineitem' ON o_orderkey = l_orderkey \
    JOIN (SELECT l_suppkey AS k, count(*) AS q FROM 'lineitem' GROUP BY l_suppkey) ON k = l_suppkey \
    GROUP BY o_custkey, l_partkey, l_shipdate)";

fn make(folder: &Path, table: &str) {
    let made = Command::new(program("grouse-datagen"))
        .args(["tpch", "--table", table, "--scale", "1", "--out"])
        .arg(folder.join(format!("{table}.parquet")))
        .output()
        .expect("the generator");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

fn session(limit: &str, folder: &Path) -> Session {
    of_batches(SessionOptions::default().batch_size, limit, folder)
}

fn of_batches(batch_size: usize, limit: &str, folder: &Path) -> Session {
    let mut options = SessionOptions {
        threads: 2,
        batch_size,
        temp_directory: vec![folder.to_path_buf()],
        ..Default::default()
    };
    options.set("memory_limit", limit).expect("a limit");
    Session::new(options).expect("a session")
}

fn plan(session: &Session, sql: &str) -> String {
    let plan = Answer::ask(session, &format!("EXPLAIN {sql}")).expect("a plan");
    format!("{:?}", plan.rows)
}

#[test]
fn groupings_and_joins_do_not_starve_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = ["customer", "orders", "lineitem"];
    for table in tables {
        make(folder.path(), table);
    }
    let (small, large) = (
        session("300MB", folder.path()),
        session("unlimited", folder.path()),
    );
    // The hash tables of the last one's joins would hold 320 MB, and DataFusion writes none to disk.
    for (sql, is_large) in [(Q13, false), (ITEMS, false), (Q18, true)] {
        let mut sql = sql.to_string();
        for table in tables {
            let path = folder.path().join(format!("{table}.parquet"));
            sql = sql.replace(&format!("'{table}'"), &format!("'{}'", path.display()));
        }
        let merges = plan(&small, &sql).contains("SortMergeJoinExec");
        assert_eq!(merges, is_large, "{sql}");
        assert!(!plan(&large, &sql).contains("SortMergeJoinExec"), "{sql}");
        let ours = Answer::ask(&small, &sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let expected = Answer::ask(&large, &sql).expect("an answer");
        assert!(!ours.rows.is_empty(), "{sql}");
        assert_eq!(ours.rows, expected.rows, "{sql}");
    }
}

/// How often the exchanges of a plan that has run wrote to disk.
fn exchanges_wrote(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below = plan.children().into_iter().map(exchanges_wrote).sum();
    match plan.name() {
        "RepartitionExec" => {
            below
                + plan
                    .metrics()
                    .and_then(|set| set.spill_count())
                    .unwrap_or(0)
        }
        _ => below,
    }
}

/// The readers of an exchange wait for batches in one file while its writers wait for them: none may lie in another.
#[test]
fn exchanges_that_write_to_disk_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let sql = "SELECT count(*), sum(c), max(s) FROM (SELECT p.v, count(*) AS c, max(p.s) AS s \
        FROM (SELECT number % 300000 AS k, number AS v, repeat('x', 200) || CAST(number AS VARCHAR) AS s FROM numbers(1000000)) p \
        JOIN (SELECT number AS k FROM numbers(300000)) b ON p.k = b.k GROUP BY p.v)";
    let mut wrote = 0;
    for limit in ["60MB", "65MB", "70MB"] {
        let session = of_batches(256, limit, folder.path());
        let run = async {
            let query = session.query(sql).await?;
            let batches: Vec<_> = query.execute()?.try_collect().await?;
            Ok::<_, Error>((Answer::of(&batches), exchanges_wrote(query.plan())))
        };
        let done = session
            .handle()
            .block_on(async { timeout(ENDLESS, run).await });
        let (answer, times) = done
            .unwrap_or_else(|_| panic!("{limit}: an exchange waits for ever"))
            .expect("an answer");
        let last = format!("{}999999", "x".repeat(200));
        let expected = [Cell::Int(1_000_000), Cell::Int(1_000_000), Cell::Text(last)];
        assert_eq!(answer.rows, [expected], "{limit}");
        wrote += times;
    }
    assert!(wrote > 0, "no exchange wrote anything");
}

/// DataFusion's merge join answers otherwise where floats are keys or conditions stand beside them, and knows fewer types.
#[test]
fn joins_are_merged_where_that_gives_the_same_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = session("20MB", folder.path());
    let plan = |condition: &str| {
        let tables = "numbers(1000000) AS a LEFT JOIN numbers(1000000) AS b";
        plan(
            &small,
            &format!("SELECT count(b.number) FROM {tables} ON {condition}"),
        )
    };
    for (condition, node) in [
        ("a.number = b.number", "SortMergeJoinExec"),
        (
            "CAST(a.number AS VARCHAR) = CAST(b.number AS VARCHAR)",
            "SortMergeJoinExec",
        ),
        (
            "CAST(a.number AS DECIMAL(20, 1)) = b.number AND a.number % 10 = b.number % 7",
            "SortMergeJoinExec",
        ),
        (
            "CAST(a.number AS DOUBLE) = CAST(b.number AS DOUBLE)",
            "HashJoinExec",
        ),
        (
            "a.number = b.number AND a.number + b.number > 7",
            "HashJoinExec",
        ),
        ("[a.number] = [b.number]", "HashJoinExec"),
    ] {
        let plan = plan(condition);
        assert!(plan.contains(node), "{condition}: {plan}");
    }
}
