//! Groupings in stages: partial states of several tasks, an exchange by the keys, a final stage that merges them.
//!
//! In: the operator's queries with the option that divides groupings. Out: DataFusion's rows; plans with both stages and the
//! exchange between them, or with none of these.
//! Not here: the columns of states (`grouse_groupby`).

use grouse::{Error, Session};

use super::{
    QUERIES, SURROUNDED, collect, compare, datafusion, explained, for_each, plan, rows, session,
};

/// A session whose groupings are divided into so many tasks.
fn divided(tasks: usize, threads: usize, sizes: &str) -> Session {
    session(|options| {
        options.threads = threads;
        options.batch_size = 100;
        options.group_by_tasks = tasks;
        options.set("group_by_sizes", sizes).expect("sizes");
    })
}

#[test]
fn every_shape_gives_the_same_rows_in_stages() {
    let datafusion = datafusion();
    let sessions = [
        divided(1, 2, "machine"),
        divided(3, 1, "machine"),
        divided(3, 3, "tiny"),
        divided(5, 7, "tiny"),
        divided(2, 2, "spilling"),
    ];
    let all: Vec<&str> = QUERIES.iter().chain(SURROUNDED).copied().collect();
    for_each(&all, |sql| {
        let expected = rows(&datafusion, sql);
        let each = sessions.iter().enumerate();
        each.into_iter().try_for_each(|(at, session)| {
            compare(session, sql, &expected).map_err(|why| format!("  session {at}\n{why}"))
        })
    });
}

/// The lines of a plan without what stands behind the name of a node, but for the stage.
fn nodes(session: &Session, sql: &str) -> Vec<String> {
    let text = explained(session, sql);
    let node = |line: &str| {
        let line = line.trim();
        let end = line
            .find(", ")
            .filter(|_| line.starts_with("GroupByExec: stage="));
        let end = end.or_else(|| line.find(':'));
        line[..end.unwrap_or(line.len())].to_string()
    };
    text.lines().map(node).collect()
}

#[test]
fn an_exchange_by_the_keys_stands_between_the_stages() {
    let session = divided(3, 2, "machine");
    for (sql, exchange) in [
        (
            "SELECT small, text, sum(long), min(text) FROM t GROUP BY small, text",
            "RepartitionExec",
        ),
        ("SELECT DISTINCT small FROM t", "RepartitionExec"),
        (
            "SELECT small, count(*) FROM t GROUP BY ROLLUP (small)",
            "RepartitionExec",
        ),
        (
            "SELECT array_agg(long ORDER BY wide), median(long), uniq(text) FROM t",
            "CoalescePartitionsExec",
        ),
    ] {
        let nodes = nodes(&session, sql);
        let stages = [
            "GroupByExec: stage=final",
            exchange,
            "GroupByExec: stage=partial",
        ];
        assert!(
            nodes.windows(3).any(|three| three == stages),
            "{sql}\n{nodes:#?}"
        );
    }
    let text = explained(
        &session,
        "SELECT small, flag, count(*) FROM t GROUP BY small, flag",
    );
    assert!(
        text.contains("partitioning=Hash([small@0, flag@1], 2)"),
        "{text}"
    );
}

#[test]
fn what_has_to_see_all_rows_stays_whole() {
    let session = divided(3, 2, "machine");
    for sql in [
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50) SELECT n % 3, count(*) FROM r GROUP BY 1",
    ] {
        let text = explained(&session, sql);
        assert!(
            text.contains("GroupByExec: keys") && !text.contains("stage="),
            "{text}"
        );
    }
}

#[test]
fn pairs_of_all_tasks_are_told_apart_in_the_final_stage() {
    let (datafusion, session) = (datafusion(), divided(3, 2, "tiny"));
    let queries = [
        "SELECT small, count(DISTINCT long), sum(DISTINCT wide % 5), count(*), min(text) FROM t GROUP BY small",
        "SELECT count(DISTINCT text), count(DISTINCT long) FILTER (WHERE flag), count(DISTINCT long), sum(long) FROM t",
        "SELECT text, count(DISTINCT (small, flag)), count(DISTINCT seen), string_agg(DISTINCT text, ',' ORDER BY text) FROM t GROUP BY text",
        "SELECT small, flag, count(DISTINCT text), avg(DISTINCT long) FROM t GROUP BY CUBE (small, flag)",
        "SELECT small, count(DISTINCT text) FILTER (WHERE false), count(long) FROM t GROUP BY small",
        "SELECT count(DISTINCT long), count(*) FROM empty",
    ];
    for_each(&queries, |sql| {
        let text = explained(&session, sql);
        match text.contains("stage=final") && text.contains("stage=partial") {
            true => compare(&session, sql, &rows(&datafusion, sql)),
            false => Err(text),
        }
    });
    // DataFusion has no mode.
    let modes = "SELECT small % 2, mode(long % 4), count(DISTINCT long), count(*) FROM t WHERE long % 4 <> 2 OR wide % 2 = 0 GROUP BY 1";
    assert_eq!(rows(&session, modes), rows(&super::session(|_| {}), modes));
}

#[test]
fn rows_that_are_shown_in_their_order_are_one_task() {
    let numbers = "SELECT n % 2 AS k, array_agg(n) AS all_of_it FROM (SELECT column1 AS n FROM (VALUES (1), (2), (3), (4), (5), (6))) \
                   GROUP BY 1 ORDER BY 1";
    let expected = rows(&session(|_| {}), numbers);
    assert_eq!(rows(&divided(3, 2, "machine"), numbers), expected);
}

#[test]
fn a_sum_of_all_tasks_that_does_not_fit_is_the_same_error() {
    let session = divided(3, 2, "machine");
    let sql = "SELECT sum(x) FROM (SELECT 9000000000000000000 + wide % 2 AS x FROM t)";
    let query = plan(&session, sql);
    let error = collect(&session, &query).expect_err("a sum that does not fit");
    assert!(matches!(error.kind(), Error::Overflow { .. }), "{error}");
    // What is beyond the type in each task, but not in all.
    let sql = "SELECT sum(x) FROM (SELECT 9000000000000000000 AS x FROM t UNION ALL SELECT -9000000000000000000 FROM t)";
    assert_eq!(rows(&session, sql), ["0"]);
}

#[test]
fn a_limit_stops_early_and_leaves_no_group_incomplete() {
    let session = divided(3, 2, "tiny");
    let distinct = "SELECT count(*) FROM (SELECT DISTINCT wide FROM t LIMIT 7)";
    assert_eq!(rows(&session, distinct), ["7"]);
    let complete = "SELECT count(*) FROM (SELECT long, count(*) AS n, sum(wide) AS s FROM t GROUP BY long LIMIT 9) AS a \
                    JOIN (SELECT long, count(*) AS n, sum(wide) AS s FROM t GROUP BY long) AS b \
                    ON a.long IS NOT DISTINCT FROM b.long AND a.n = b.n AND a.s = b.s";
    assert_eq!(rows(&session, complete), ["9"]);
}
