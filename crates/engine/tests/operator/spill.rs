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
        options.temp_directory = vec![folder.to_path_buf()];
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
    let groupings: [(&[&str], &[&str], u64); 9] = [
        // More pairs than groups.
        (
            &["number % 1000"],
            &[
                "count(DISTINCT number)",
                "sum(DISTINCT number % 200000)",
                "count(*)",
            ],
            3_000_000,
        ),
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
                "array_agg('number ' || number ORDER BY number DESC)",
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
        // A partition of many records and few groups.
        (
            &["CASE WHEN number % 10 < 6 THEN NULL ELSE number END"],
            &["count(*)"],
            3_000_000,
        ),
        // On cores with a small cache most rows wait without a count: their keys alone are more than the limit.
        (
            &["arrow_cast(number % 2800000, 'Float64')"],
            &["count(*) FILTER (WHERE number > 9)"],
            3_000_000,
        ),
    ];
    for (keys, aggregates, numbers) in groupings {
        let columns = keys.iter().chain(aggregates).enumerate();
        let named: Vec<String> = columns
            .clone()
            .map(|(at, column)| format!("{column} AS c{at}"))
            .collect();
        let strings: Vec<String> = columns.map(|(at, _)| format!("c{at}::text")).collect();
        let (named, strings, keys) = (
            named.join(", "),
            strings.join(" || ',' || "),
            keys.join(", "),
        );
        // A row that is lost, doubled or changed changes the count of some hashes.
        let sql = format!(
            "WITH g AS (SELECT {named} FROM numbers({numbers}) GROUP BY {keys}), \
             t AS (SELECT {strings} AS t FROM g) \
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

/// 400,000 groups of which every worker meets all again and again, more rows than memory holds.
#[test]
fn groups_that_repeat_are_combined_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = session(|options| {
        options.memory_limit = Some(128 << 20);
        options.temp_directory = vec![folder.path().to_path_buf()];
    });
    let sql = "SELECT min(c), max(c), count(*) FROM \
               (SELECT number % 400000 AS k, count(*) AS c FROM numbers(16000000) GROUP BY k)";
    let query = plan(&session, sql);
    let ours = collect(&session, &query).expect("an answer");
    assert_eq!(text_of(&ours), ["40 | 40 | 400000"]);
    assert_eq!(query.progress().spilled_bytes, 0);
}

/// Sorted rows meet their groups in their order, also where blocks wait in memory, on disk and are combined.
#[test]
fn aggregates_that_rely_on_the_order_of_rows_keep_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let session = limited(folder.path());
    rows(&session, "SET memory_limit = '100MB'");
    let sql = "SELECT count(*), bool_and(a) FROM (SELECT k, array_agg(n ORDER BY n DESC) = \
               [k + 1200000, k + 900000, k + 600000, k + 300000, k] AS a \
               FROM (SELECT number::bigint AS n, (number % 300000)::bigint AS k FROM numbers(1500000)) GROUP BY k)";
    let query = plan(&session, sql);
    let ours = collect(&session, &query).expect("an answer");
    assert_eq!(text_of(&ours), ["300000 | true"]);
}

/// DataFusion's sorts and joins find room beside groupings that take all they can get.
#[test]
fn sorts_and_joins_of_more_groups_than_memory_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, large) = (limited(folder.path()), session(|_| {}));
    rows(&small, "SET memory_limit = '64MB'");
    for sql in [
        "SELECT sum(k * n) FROM (SELECT k, row_number() OVER (ORDER BY k * 7919 % 1000003, k) AS n \
         FROM (SELECT number AS k, count(*) AS c FROM numbers(3000000) GROUP BY number))",
        "SELECT count(*), sum(a.c) FROM (SELECT number % 100000 AS k, count(*) AS c FROM numbers(4000000) GROUP BY 1) AS a \
         JOIN (SELECT number % 2000000 AS k, count(*) AS c FROM numbers(4000000) GROUP BY 1) AS b ON a.k = b.k",
        "SELECT n, count(*) FROM (SELECT k, row_number() OVER (PARTITION BY k % 1000 ORDER BY k) AS n \
         FROM (SELECT number AS k FROM numbers(1800000) GROUP BY number)) GROUP BY n ORDER BY n LIMIT 3",
        "SELECT sum(n * length(s)) FROM (SELECT s, row_number() OVER (ORDER BY k * 7919 % 100003, s) AS n \
         FROM (SELECT number AS k, lpad(CAST(number AS VARCHAR), 500, 'x') AS s FROM numbers(300000)))",
    ] {
        let query = plan(&small, sql);
        let ours = collect(&small, &query).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(query.progress().spilled_bytes > 0, "{sql}");
        assert_eq!(text_of(&ours), rows(&large, sql), "{sql}");
    }
}

#[test]
fn folders_are_used_in_turn_and_together_hold_what_they_may() {
    let folders = [
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    ];
    let paths: Vec<_> = folders
        .iter()
        .map(|folder| folder.path().to_path_buf())
        .collect();
    let session = session(|options| {
        options.memory_limit = Some(LIMIT_BYTES);
        options.temp_directory = paths.clone();
        options.max_temp_directory_size = Some(4 << 20);
    });
    let sql = "SELECT count(*) FROM (SELECT number FROM numbers(3000000) GROUP BY number)";
    let error = collect(&session, &plan(&session, sql)).expect_err("4 MiB");
    let text = error.to_string();
    assert!(matches!(error.kind(), Error::Io { .. }), "{error:?}");
    assert!(text.contains("max_temp_directory_size"), "{text}");
    rows(&session, "SET max_temp_directory_size = 'unlimited'");
    // Both are written to: one that is gone is missed.
    assert_eq!(rows(&session, sql), ["3000000"]);
    let [_, second] = folders;
    second.close().expect("an empty folder");
    let error = collect(&session, &plan(&session, sql)).expect_err("a folder is gone");
    let gone = paths[1].display().to_string();
    assert!(error.to_string().contains(&gone), "{error}");
    rows(
        &session,
        &format!("SET temp_directory = '{}'", paths[0].display()),
    );
    assert_eq!(rows(&session, sql), ["3000000"]);
    assert_eq!(files(&paths[0]), 0);
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
    assert!(matches!(error.kind(), Error::Io { .. }), "{error:?}");
    assert_eq!(
        rows(
            &session,
            "SELECT count(*) FROM numbers(10) GROUP BY number % 1"
        ),
        ["10"]
    );
}
