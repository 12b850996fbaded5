//! Sums of one column with constants: by one sum and one count they are the same as each by itself.
//!
//! In: sums of small integers, some with a constant, under all that may stand around them. Out: equal rows and schemas;
//! plans with one sum, or with all of them.
//! Not here: sums as such (the .slt files).

use super::*;

/// Sums that share.
const SHARED: &[&str] = &[
    "SELECT sum(small), sum(small + 1), sum(small - 3), sum(7 + small) FROM t",
    "SELECT sum(small + 1), sum(small + 2), count(small) FROM t",
    "SELECT text, sum(small + 1), sum(small + 2) AS two FROM t GROUP BY text",
    "SELECT text, sum(small + 1) FILTER (WHERE wide > 500), sum(small + 2) FILTER (WHERE wide > 500), sum(small + 9) FROM t GROUP BY text",
    "SELECT long, day, sum(small + 1), sum(small + 2), avg(small), min(wide) FROM t GROUP BY CUBE (long, day)",
    "SELECT sum(arrow_cast(long, 'Int8') + 100), sum(arrow_cast(long, 'Int8') + 200) FROM t",
    "SELECT sum(arrow_cast(long, 'UInt16') + 100), sum(arrow_cast(long, 'UInt16') - 200) FROM t",
    "SELECT sum(small + 1), sum(small + 2) FROM empty",
    "SELECT long, sum(small + 1), sum(small + 2) FROM empty GROUP BY long",
    "SELECT text, sum(small + 1) FROM t GROUP BY text HAVING sum(small + 2) > 100 ORDER BY sum(small + 3)",
    "SELECT a + b FROM (SELECT sum(small + 1) AS a, sum(small + 2) AS b FROM t)",
    "SELECT sum(small + 4611686018427387904) FILTER (WHERE wide < 0), sum(small - 4611686018427387904) FILTER (WHERE wide < 0) FROM t",
    "SELECT (SELECT sum(s.small + 1) + sum(s.small + 2) FROM t s WHERE s.long = t.long) FROM t",
    "SELECT small AS \"sum(x)\", sum(small + 1) AS a, sum(small + 2) AS b FROM t GROUP BY small",
    "SELECT text, (SELECT sum(small + 1) + sum(small + 2) FROM t) AS s FROM t",
];

/// Sums that stay as they are.
const ALONE: &[&str] = &[
    "SELECT sum(small + 1), count(small) FROM t",
    "SELECT sum(small + 1), sum(small + 1) AS again FROM t",
    "SELECT sum(long + 1), sum(long + 2) FROM t",
    "SELECT sum(float + 1), sum(float + 2) FROM t",
    "SELECT sum(money + 1), sum(money + 2) FROM t",
    "SELECT sum(DISTINCT small + 1), sum(DISTINCT small + 2) FROM t",
    "SELECT sum(small + 1) FILTER (WHERE wide > 500), sum(small + 2) FILTER (WHERE wide > 400) FROM t",
    "SELECT sum(small % 3 + 100), sum(small % 3) FROM t",
    "SELECT sum(small * 2), sum(small * 3), sum(2 - small), sum(1 - small) FROM t",
    "SELECT sum(arrow_cast(long, 'UInt32') + 1), sum(arrow_cast(long, 'UInt32') + 2) FROM t",
    // two of the columns would have one name
    "SELECT sum(small + 1), sum(small + 2), sum(CAST(small AS DOUBLE)) FROM t",
    "SELECT sum(small + 1), sum(small + 2), count(CAST(small AS BIGINT)) FROM t",
    "SELECT sum(CAST(long AS INT) + 1), sum(CAST(long AS INT) + 2), sum(long) FROM t",
    "SELECT sum(CAST(long AS INT) + 1), sum(CAST(long AS INT) + 2), sum(CAST(long AS SMALLINT) + 3), sum(CAST(long AS SMALLINT) + 4) FROM t",
    "SELECT sum(small + NULL), sum(small + 2) FROM t",
    "SELECT sum(small + 1) OVER (), sum(small + 2) OVER () FROM t",
];

const SHIFTED: &str = "shifted_sum(";

#[test]
fn shared_sums_are_those_of_datafusion() {
    are_those_of_datafusion(SHARED);
    are_those_of_datafusion(ALONE);
}

#[test]
fn the_plan_says_which_sums_are_shared() {
    let ours = session(|_| {});
    plans_have(&ours, SHARED, SHIFTED, true);
    plans_have(&ours, ALONE, SHIFTED, false);
    plans_have(&datafusion(), SHARED, SHIFTED, false);
    let volatile =
        "SELECT sum(CAST(random() * 9 AS INT) + 1), sum(CAST(random() * 9 AS INT) + 2) FROM t";
    plans_have(&ours, &[volatile], SHIFTED, false);
}

#[test]
fn many_sums_are_two_aggregates() {
    let sums: Vec<_> = (0..90).map(|at| format!("sum(small + {at})")).collect();
    let sql = format!("SELECT {} FROM t", sums.join(", "));
    let ours = session(|_| {});
    let text = explained(&ours, &sql);
    let line = text.lines().find(|line| line.contains("GroupByExec"));
    let line = line.expect("our operator");
    assert_eq!(line.matches("sum(").count(), 1, "{line}");
    assert_eq!(line.matches("count(").count(), 1, "{line}");
    assert_eq!(compare(&ours, &sql, &rows(&datafusion(), &sql)), Ok(()));
}

#[test]
fn a_shared_sum_that_does_not_fit_names_the_aggregate_as_written() {
    let sql = "SELECT sum(small + 1), sum(small + 4000000000000000000) FROM t";
    let ours = session(|_| {});
    let error = collect(&ours, &plan(&ours, sql)).expect_err("3,000 times 4e18");
    assert!(matches!(error.kind(), Error::Overflow { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("small + 4000000000000000000"), "{text}");
    assert!(text.contains("DECIMAL(38,0)"), "{text}");
}
