//! Past the memory limit: the same rows as without one, by way of files of which nothing is left.
//!
//! In: queries of more groups, or larger ones, than the limit holds. Out: equal rows, bytes written, no file, no byte kept.
//! Not here: every setting over small tables (the .slt files, the fuzzer), damaged files (`groupby/spill.rs`).

use std::path::Path;

use super::*;

const LIMIT_BYTES: u64 = 16 << 20;

fn limited(folder: &Path) -> Session {
    session(|options| {
        options.memory_limit = Some(LIMIT_BYTES);
        options.temp_directory = Some(folder.to_path_buf());
    })
}

/// Files at any depth.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

#[test]
fn more_groups_than_memory_holds_give_the_same_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, large) = (limited(folder.path()), session(|_| {}));
    let groupings: [(&[&str], &[&str], u64); 7] = [
        (
            &["number % 900000"],
            &["count(*)", "sum(number)", "max(number % 7)"],
            2_500_000,
        ),
        (
            &["'a key too long for its view ' || (number % 400000)"],
            &["min(number)", "max('text ' || number)"],
            1_000_000,
        ),
        (
            &[
                "number % 500000",
                "'text ' || (number % 3) || ' and a few more letters'",
            ],
            &["avg(number)"],
            1_500_000,
        ),
        (
            &["number % 200000"],
            &[
                "median(number)",
                "count(DISTINCT number)",
                "first_value(number ORDER BY number DESC)",
            ],
            1_600_000,
        ),
        (
            &["number % 100000"],
            &[
                "array_sort(array_agg(number))",
                "uniq(number)",
                "round(stddev(number), 3)",
            ],
            1_600_000,
        ),
        (&["[number, number + 1]"], &["count(*)"], 700_000),
        (
            &["arrow_cast(number % 500000, 'Float64')"],
            &["count(*) FILTER (WHERE number > 9)"],
            1_500_000,
        ),
    ];
    for (keys, aggregates, numbers) in groupings {
        let columns = keys.iter().chain(aggregates).enumerate();
        let named: Vec<String> = columns
            .clone()
            .map(|(at, column)| format!("{column} AS c{at}"))
            .collect();
        let texts: Vec<String> = columns.map(|(at, _)| format!("c{at}::text")).collect();
        let (named, texts, keys) = (named.join(", "), texts.join(" || ',' || "), keys.join(", "));
        // A row that is lost, doubled or changed changes the count of some hashes.
        let sql = format!(
            "WITH g AS (SELECT {named} FROM numbers({numbers}) GROUP BY {keys}), \
             t AS (SELECT {texts} AS t FROM g) \
             SELECT substr(md5(t), 1, 2), count(*), min(t), max(t) FROM t GROUP BY 1"
        );
        let query = plan(&small, &sql);
        let ours = collect(&small, &query).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let spilled = query.progress().spilled_bytes;
        assert!(spilled > 1 << 20, "{sql}: {spilled} bytes");
        assert_eq!(text_of(&ours), rows(&large, &sql), "{sql}");
    }
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn a_query_that_is_dropped_leaves_no_file_and_no_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = limited(folder.path());
    let sql = "SELECT number, count(*) FROM numbers(100000000) GROUP BY number";
    let query = plan(&session, sql);
    let mut stream = query.execute().expect("a stream");
    let waiting = Instant::now();
    session.handle().block_on(async {
        while query.progress().spilled_bytes == 0 {
            assert!(
                waiting.elapsed() < Duration::from_secs(60),
                "nothing is written"
            );
            let next = tokio::time::timeout(Duration::from_millis(5), stream.next());
            assert!(
                next.await.is_err(),
                "a group came out before all rows were seen"
            );
        }
    });
    drop(stream);
    let pool = Arc::clone(&session.context().runtime_env().memory_pool);
    let waiting = Instant::now();
    while pool.reserved() > 0 {
        assert!(waiting.elapsed() < Duration::from_secs(5), "memory is kept");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn a_folder_that_is_gone_is_an_error_and_the_session_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = limited(folder.path());
    std::fs::remove_dir_all(folder.path()).expect("an empty folder");
    let sql = "SELECT number, count(*) FROM numbers(3000000) GROUP BY number";
    let query = plan(&session, sql);
    let error = collect(&session, &query).expect_err("no folder");
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert_eq!(
        rows(
            &session,
            "SELECT count(*) FROM numbers(10) GROUP BY number % 1"
        ),
        ["10"]
    );
}
