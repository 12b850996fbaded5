//! The first rows of each group: by the operator and by DataFusion's window they are the same.
//!
//! In: filters on row numbers over orders that leave no choice. Out: equal rows; plans with and without the window.
//! Not here: what the states do (`groupby/tests/states`).

use super::*;

/// Row numbers that are cut: the operator runs all of these.
const CUT: &[&str] = &[
    "SELECT small, wide, n FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide DESC) AS n FROM t) WHERE n <= 2",
    "SELECT wide FROM (SELECT wide, row_number() OVER (PARTITION BY text ORDER BY wide) AS n FROM t) WHERE n < 3",
    "SELECT * FROM (SELECT small, text, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n = 1",
    "SELECT * FROM (SELECT small, text, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE 2 >= n",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n BETWEEN 2 AND 4",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n = 3",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n IN (1, 4)",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n <= 64 AND wide % 2 = 0",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n <= 5 AND n < 3",
    // the other columns go with the row
    "SELECT small, long, text, seen, float, flag, day, time, money, list, pair FROM t \
     QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 2",
    "SELECT wide, text FROM t WHERE long > 40 QUALIFY row_number() OVER (PARTITION BY seen ORDER BY wide DESC) = 1",
    // orders of all types, NULLs at both ends
    "SELECT wide, long FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY long, wide) <= 3",
    "SELECT wide, long FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY long NULLS FIRST, wide) <= 40",
    "SELECT wide, long FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY long DESC NULLS LAST, wide DESC) <= 3",
    "SELECT wide, float FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY float DESC, wide) <= 60",
    "SELECT wide, float FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY float, wide) <= 60",
    "SELECT wide, text FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY text DESC, seen, wide) <= 5",
    "SELECT wide, seen FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY seen, wide) <= 5",
    "SELECT wide, money FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY money, wide) <= 5",
    "SELECT wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY flag, day DESC, time, list, pair, wide) <= 5",
    "SELECT wide FROM t QUALIFY row_number() OVER (PARTITION BY day ORDER BY arrow_cast(wide, 'Decimal256(40, 2)') DESC) <= 5",
    "SELECT wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY 0 - wide, long) <= 2",
    // keys of all kinds
    "SELECT small, text, wide FROM t QUALIFY row_number() OVER (PARTITION BY small, text ORDER BY wide) <= 2",
    "SELECT text, wide FROM t QUALIFY row_number() OVER (PARTITION BY text, seen, day ORDER BY wide) <= 2",
    "SELECT coded, wide FROM t QUALIFY row_number() OVER (PARTITION BY coded ORDER BY wide) <= 2",
    "SELECT list, wide FROM t QUALIFY row_number() OVER (PARTITION BY list, pair ORDER BY wide) <= 2",
    "SELECT money, wide FROM t QUALIFY row_number() OVER (PARTITION BY money ORDER BY wide) <= 1",
    "SELECT wide, text FROM t QUALIFY row_number() OVER (PARTITION BY wide ORDER BY text) <= 2",
    "SELECT wide FROM t QUALIFY row_number() OVER (PARTITION BY wide % 10, length(text) ORDER BY wide) <= 2",
    "SELECT small FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY small) <= 2",
    "SELECT small FROM t QUALIFY row_number() OVER (PARTITION BY small) <= 2",
    "SELECT count(*), count(DISTINCT day) FROM (SELECT day, row_number() OVER (PARTITION BY day) AS n FROM t) WHERE n = 1",
    // DataFusion above and below
    "SELECT count(*), sum(small), sum(wide), max(n) FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n <= 2",
    "SELECT text, sum(wide) FROM (SELECT text, wide, row_number() OVER (PARTITION BY text ORDER BY wide) AS n FROM t) WHERE n <= 5 GROUP BY text",
    "SELECT text, s FROM (SELECT small, text, sum(wide) AS s FROM t GROUP BY small, text) QUALIFY row_number() OVER (PARTITION BY small ORDER BY s DESC, text) <= 2",
    "SELECT small, wide, n * 2 AS twice FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n <= 2 ORDER BY wide DESC LIMIT 7",
    "SELECT * FROM (SELECT a.wide, b.wide, a.small, b.small AS other, row_number() OVER (PARTITION BY a.small, b.small ORDER BY a.wide, b.wide) AS n \
     FROM t a JOIN t b ON a.wide = b.wide + 103 OR a.wide = b.wide) WHERE n <= 2",
    "SELECT a.wide FROM t a JOIN (SELECT day, wide, row_number() OVER (PARTITION BY day ORDER BY wide) AS n FROM t) b ON a.wide = b.wide AND b.n = 1",
    "SELECT wide FROM (SELECT wide, small FROM t UNION ALL SELECT wide + 1000000, small FROM t) QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide DESC) <= 2",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY small ORDER BY wide DESC) AS m FROM \
     (SELECT small, day, wide, row_number() OVER (PARTITION BY day ORDER BY wide) AS n FROM t) WHERE n <= 9) WHERE m <= 3",
    "SELECT small, wide FROM empty QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 2",
];

/// Windows that stay.
const UNCUT: &[&str] = &[
    "SELECT small, wide FROM t QUALIFY rank() OVER (PARTITION BY small ORDER BY wide) <= 2",
    "SELECT small, wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 65",
    "SELECT small, wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) >= 290",
    "SELECT small, wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 0",
    "SELECT small, wide FROM t QUALIFY row_number() OVER (ORDER BY wide) <= 2",
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n FROM t) WHERE n <= 2 OR wide < 1000",
    // also another window
    "SELECT * FROM (SELECT small, wide, row_number() OVER (PARTITION BY small ORDER BY wide) AS n, \
     sum(wide) OVER (PARTITION BY small ORDER BY wide) AS s FROM t) WHERE n <= 2",
    // both zeros
    "SELECT float, wide FROM t QUALIFY row_number() OVER (PARTITION BY float ORDER BY wide) <= 2",
    // dictionary codes of several batches
    "SELECT coded, wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 2",
    // sorted as the window wants it
    "SELECT * FROM (SELECT small, wide FROM t ORDER BY small, wide LIMIT 500) QUALIFY row_number() OVER (PARTITION BY small ORDER BY wide) <= 2",
];

const WINDOW: &str = "WindowAggExec";

#[test]
fn first_rows_are_those_of_datafusion() {
    let datafusion = datafusion();
    let ours = [1, 2, 7].map(|threads| session(|options| options.threads = threads));
    for queries in [CUT, UNCUT] {
        for_each(queries, |sql| {
            let expected = rows(&datafusion, sql);
            ours.iter()
                .try_for_each(|session| compare(session, sql, &expected))
        });
    }
}

#[test]
fn first_rows_of_every_table_and_size_are_those_of_datafusion() {
    let datafusion = datafusion();
    let ours = ["auto", "packed", "row"].map(|table| {
        session(|options| {
            options.set("group_by_table", table).expect("a table kind");
            options.set("group_by_sizes", "tiny").expect("a size");
            options.batch_size = 100;
        })
    });
    for_each(CUT, |sql| {
        let expected = rows(&datafusion, sql);
        ours.iter()
            .try_for_each(|session| compare(session, sql, &expected))
    });
}

#[test]
fn a_window_that_is_cut_is_a_grouping() {
    let (ours, datafusion) = (session(|_| {}), datafusion());
    for_each(CUT, |sql| {
        let (text, window) = (explained(&ours, sql), explained(&datafusion, sql));
        let grouped = text.contains("top_rows(") && !text.contains(WINDOW);
        let same = plan(&ours, sql).schema() == plan(&datafusion, sql).schema();
        let native = text
            .lines()
            .filter(|line| line.contains("top_rows("))
            .all(|line| !line.contains("datafusion_states"));
        match grouped && window.contains(WINDOW) && same && native {
            true => Ok(()),
            false => Err(text),
        }
    });
    for_each(UNCUT, |sql| {
        let text = explained(&ours, sql);
        match text.contains("top_rows(") {
            false => Ok(()),
            true => Err(text),
        }
    });
}

#[test]
fn the_plan_says_which_rows_are_kept() {
    let session = session(|_| {});
    for (order, shown) in [
        ("long DESC", "top_rows(2, long DESC)"),
        ("long", "top_rows(2, long)"),
        (
            "long NULLS FIRST, wide DESC NULLS LAST",
            "top_rows(2, long NULLS FIRST, wide DESC)",
        ),
    ] {
        let sql = format!(
            "SELECT wide FROM t QUALIFY row_number() OVER (PARTITION BY small ORDER BY {order}) <= 2"
        );
        let text = explained(&session, &sql);
        assert!(text.contains(shown), "{shown}\n{text}");
        assert!(
            text.contains("GroupByExec: keys=[small@0 as small]"),
            "{text}"
        );
    }
}

#[test]
fn rows_that_are_kept_count_as_memory_and_go_to_disk() {
    let session = session(|options| {
        options.threads = 2;
        options.set("memory_limit", "20MB").expect("a limit");
    });
    let sql = "SELECT number FROM numbers(3000000) \
               QUALIFY row_number() OVER (PARTITION BY number % 300000 ORDER BY number DESC) <= 5";
    let query = plan(&session, sql);
    let batches = collect(&session, &query).expect("a result");
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 1_500_000);
    let spilled = query.progress().spilled_bytes;
    assert!(spilled > 10_000_000, "{spilled}");
}
