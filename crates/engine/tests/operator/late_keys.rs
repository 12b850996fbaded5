//! Groups that nobody above wants leave before their keys are decoded: HAVING, and ORDER BY with LIMIT.
//!
//! In: groupings below filters and sorts of all kinds. Out: the rows of DataFusion's operator; plans that say what is left out.
//! Not here: how many groups a sort's LIMIT leaves out, which depends on who is faster.

use super::*;

/// Filters of groups.
const HAVING: &[&str] = &[
    "SELECT text, count(*) FROM t GROUP BY text HAVING count(*) > 200",
    "SELECT wide, sum(long) FROM t GROUP BY wide HAVING sum(long) > 100 AND min(small) < 0",
    "SELECT wide FROM t GROUP BY wide HAVING max(long) IS NULL OR count(DISTINCT text) = 3",
    "SELECT text, long, avg(finite) AS a FROM t GROUP BY text, long HAVING a > 0 AND length(text) > count(*)",
    "SELECT float, pair, count(*) FROM t GROUP BY float, pair HAVING NULL",
    "SELECT list, count(*) FROM t GROUP BY list HAVING count(*) > 1 OR NULL",
    "SELECT text, day, count(*), grouping(text) FROM t GROUP BY CUBE (text, day) HAVING grouping(text) = 0 AND count(*) > 20",
    "SELECT count(*) FROM t HAVING count(*) > 2999",
    "SELECT count(*) FROM t HAVING count(*) > 3000",
    "SELECT count(*) FROM empty HAVING count(*) = 0",
    "SELECT long FROM empty GROUP BY long HAVING sum(small) > 0",
    "SELECT count(*) FROM (SELECT wide FROM t GROUP BY wide HAVING count(*) > 1)",
    "SELECT count(*) FROM (SELECT count(*) FROM t HAVING count(*) > 5000)",
    "SELECT DISTINCT wide % 7 FROM (SELECT wide, count(*) AS n FROM t GROUP BY wide HAVING n > 1)",
    "SELECT a.text, b.c FROM (SELECT text, count(*) AS c FROM t GROUP BY text HAVING c > 100) a \
     JOIN (SELECT seen, count(*) AS c FROM t GROUP BY seen HAVING c < 1000) b ON a.text = b.seen",
];

/// The first groups by orders of all kinds, as whole rows where ties leave a choice.
const FIRST: &[&str] = &[
    "SELECT wide, count(*) AS c FROM t GROUP BY wide ORDER BY c DESC, wide LIMIT 7",
    "SELECT count(*) AS c FROM t GROUP BY wide, text ORDER BY c LIMIT 40",
    "SELECT wide, sum(long) AS s FROM t GROUP BY wide ORDER BY s NULLS FIRST, wide LIMIT 9",
    "SELECT wide, sum(long) AS s FROM t GROUP BY wide ORDER BY s DESC NULLS LAST, wide DESC LIMIT 9",
    "SELECT wide, text, max(long) AS m, min(small) AS n FROM t GROUP BY wide, text \
     ORDER BY m DESC NULLS FIRST, n NULLS LAST, text NULLS FIRST, wide LIMIT 25",
    "SELECT text, day FROM t GROUP BY text, day ORDER BY text DESC NULLS LAST, day LIMIT 5",
    "SELECT float, count(*) FROM t GROUP BY float ORDER BY float DESC NULLS LAST LIMIT 2",
    "SELECT wide, avg(finite) + 1 AS a FROM t GROUP BY wide HAVING count(*) > 1 ORDER BY a, wide LIMIT 5 OFFSET 3",
    "SELECT long, uniq(wide) AS u, count(DISTINCT text) AS d FROM t GROUP BY long ORDER BY d DESC, u DESC, long NULLS LAST LIMIT 3",
    "SELECT wide, c FROM (SELECT wide, count(*) AS c FROM t GROUP BY wide ORDER BY c DESC, wide LIMIT 20) WHERE wide % 2 = 0 ORDER BY wide LIMIT 4",
    "SELECT a.wide, a.c + b.c FROM (SELECT wide, count(*) AS c FROM t GROUP BY wide) a \
     JOIN (SELECT wide, count(*) AS c FROM t GROUP BY wide) b ON a.wide = b.wide ORDER BY 2 DESC, 1 LIMIT 6",
    "SELECT text, long, count(*) AS c FROM t GROUP BY ROLLUP (text, long) ORDER BY c DESC, text NULLS LAST, long NULLS LAST LIMIT 6",
    "SELECT wide, count(*) FROM t GROUP BY wide ORDER BY wide LIMIT 0",
];

#[test]
fn groups_that_nobody_wants_are_those_of_datafusion() {
    let datafusion = datafusion();
    let settings = [("machine", 2), ("machine", 7), ("tiny", 3), ("spilling", 2)];
    let sessions = settings.map(|(sizes, threads)| {
        session(|options| {
            options.set("group_by_sizes", sizes).expect("a size");
            options.threads = threads;
        })
    });
    for ours in &sessions {
        for queries in [HAVING, FIRST] {
            for_each(queries, |sql| compare(ours, sql, &rows(&datafusion, sql)));
        }
    }
}

#[test]
fn the_plan_says_what_is_left_out_and_no_filter_is_left() {
    let session = session(|_| {});
    let plan = explained(
        &session,
        "SELECT text FROM t GROUP BY text HAVING count(*) > 2 AND min(long) = 0",
    );
    assert!(!plan.contains("FilterExec"), "{plan}");
    let having = "projection=[text], having=[count(Int64(1))@1 > 2, min(t.long)@2 = 0]";
    assert!(plan.contains(having), "{plan}");
    let plan = explained(
        &session,
        "SELECT text, count(*) AS c FROM t GROUP BY text ORDER BY c DESC LIMIT 3",
    );
    assert!(plan.contains("having=[DynamicFilter [ empty ]]"), "{plan}");
    let plan = explained(
        &session,
        "SELECT text FROM t GROUP BY text HAVING count(*) > random()",
    );
    assert!(
        plan.contains("FilterExec") && !plan.contains("having="),
        "{plan}"
    );
}

#[test]
fn a_join_leaves_out_groups_that_have_no_partner() {
    let session = session(|_| {});
    let sql = "SELECT count(*) FROM (SELECT DISTINCT long + 400 AS x FROM t WHERE long < 3) s \
               JOIN (SELECT wide, count(*) + 400 AS c, max(small) FROM t GROUP BY wide) g ON g.c = s.x";
    assert_eq!(rows(&session, sql), rows(&datafusion(), sql));
    let text = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains("keys=[wide"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("having=[DynamicFilter"), "{line}");
}

#[test]
fn groups_that_having_leaves_out_do_not_leave_the_node() {
    let text = rows(
        &session(|_| {}),
        "EXPLAIN ANALYZE SELECT wide, count(*) FROM t GROUP BY wide HAVING count(*) > 1000000",
    );
    let text = text.join("\n");
    let line = text.lines().find(|line| line.contains("GroupByExec"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.contains("output_rows=0") && !line.contains("groups_out=0"),
        "{line}"
    );
}

#[test]
fn a_sort_of_the_iteration_before_leaves_nothing_out() {
    let sql = "WITH RECURSIVE r AS (SELECT 0 AS n, CAST(0 AS BIGINT) AS c UNION ALL \
               SELECT * FROM (SELECT n + 1 AS n, count(*) - n AS c FROM r, t WHERE n < 5 GROUP BY n, text ORDER BY c DESC LIMIT 1)) \
               SELECT n, c FROM r";
    assert_eq!(rows(&session(|_| {}), sql), rows(&datafusion(), sql));
}
