//! Averages beside the sum or the count of the same column: as each by itself.
//!
//! In: averages of all types beside sums and counts, under all that may stand around them. Out: equal rows and schemas; plans
//! with `mean`, or with all averages.
//! Not here: averages as such (the .slt files).

use super::*;

/// Averages that share.
const SHARED: &[&str] = &[
    "SELECT sum(small), avg(small) FROM t",
    "SELECT text, sum(small), avg(small), count(small), count(*) FROM t GROUP BY text",
    "SELECT text, sum(long) AS s, avg(long) AS a FROM t GROUP BY text ORDER BY a, text",
    "SELECT text, avg(long), avg(long) AS again, sum(long) FROM t GROUP BY text",
    "SELECT text, avg(arrow_cast(small, 'Int16')), count(arrow_cast(small, 'Int16')) FROM t GROUP BY text",
    "SELECT text, avg(wide), sum(wide), count(*) FROM t GROUP BY text",
    "SELECT text, avg(money), count(money), max(money) FROM t GROUP BY text",
    "SELECT text, avg(money + 1), sum(money + 1) FROM t GROUP BY text",
    "SELECT text, avg(float), sum(float), count(float) FROM t GROUP BY text",
    "SELECT text, avg(float), count(float) AS n FROM t WHERE float < 9 GROUP BY text",
    "SELECT avg(arrow_cast(long, 'Float32')), sum(arrow_cast(long, 'Float32')) FROM t",
    "SELECT avg(arrow_cast(long, 'UInt64')), sum(arrow_cast(long, 'UInt64')) FROM t",
    "SELECT avg(arrow_cast(long, 'UInt16')), count(arrow_cast(long, 'UInt16')) FROM t",
    "SELECT text, sum(long) FILTER (WHERE wide > 500), avg(long) FILTER (WHERE wide > 500), avg(long) FROM t GROUP BY text",
    "SELECT text, sum(long), avg(long) FROM t GROUP BY text HAVING avg(long) > 40",
    "SELECT wide, sum(long), avg(long) AS a FROM t GROUP BY wide ORDER BY a DESC NULLS LAST, wide LIMIT 7",
    "SELECT long, day, sum(small), avg(small), min(wide) FROM t GROUP BY CUBE (long, day)",
    "SELECT text, sum(small), avg(small), count(DISTINCT long) FROM t GROUP BY text",
    "SELECT sum(small), avg(small), count(small) FROM empty",
    "SELECT long, sum(small), avg(small) FROM empty GROUP BY long",
    "SELECT text, sum(small), avg(small) FROM t WHERE small IS NULL GROUP BY text",
    "SELECT sum(small + 1), sum(small + 2), avg(small) FROM t",
    "SELECT (SELECT sum(s.small) + avg(s.small) FROM t s WHERE s.long = t.long) FROM t",
    "SELECT sum(long * 2), avg(long * 2), count(long * 2) FROM t",
    "SELECT a FROM (SELECT text, sum(small) AS s, avg(small) AS a FROM t GROUP BY text)",
];

/// Averages that stay as they are.
const ALONE: &[&str] = &[
    "SELECT avg(small), sum(long) FROM t",
    "SELECT avg(small), count(*) FROM t",
    "SELECT text, avg(small), count(small) FROM t GROUP BY text",
    "SELECT avg(long), count(long) FROM t",
    "SELECT avg(small), count(long) FROM t",
    "SELECT avg(DISTINCT small), sum(small) FROM t",
    "SELECT avg(small), sum(DISTINCT small) FROM t",
    "SELECT avg(small) FILTER (WHERE wide > 500), sum(small) FROM t",
    "SELECT avg(arrow_cast(money, 'Decimal128(38, 2)')), count(arrow_cast(money, 'Decimal128(38, 2)')) FROM t",
    "SELECT avg(arrow_cast(small, 'Decimal256(40, 2)')), sum(arrow_cast(small, 'Decimal256(40, 2)')) FROM t",
    "SELECT avg(small) OVER (), sum(small) OVER () FROM t",
    "SELECT a FROM (SELECT text, sum(long) AS s, avg(long) AS a FROM t GROUP BY text)",
    "SELECT count(*) AS n, avg(1) FROM t",
];

const MEAN: &str = "mean(";

#[test]
fn shared_averages_are_those_of_datafusion() {
    are_those_of_datafusion(SHARED);
    are_those_of_datafusion(ALONE);
}

#[test]
fn the_plan_says_which_averages_are_shared() {
    let ours = session(|_| {});
    plans_have(&ours, SHARED, MEAN, true);
    plans_have(&ours, ALONE, MEAN, false);
    plans_have(&datafusion(), SHARED, MEAN, false);
    let volatile = "SELECT sum(random()), avg(random()) FROM t";
    plans_have(&ours, &[volatile], MEAN, false);
}

/// Who is not asked for a sum does not get its error.
#[test]
fn an_average_is_not_lost_with_a_sum_that_does_not_fit() {
    let ours = session(|_| {});
    let values = "FROM (VALUES (9223372036854775807), (9223372036854775807)) v(x)";
    let both = format!("SELECT sum(x), avg(x), count(x) {values}");
    let error = collect(&ours, &plan(&ours, &both)).expect_err("2^64");
    assert!(matches!(error.kind(), Error::Overflow { .. }), "{error:?}");
    assert!(error.to_string().contains("sum("), "{error}");
    let alone = format!("SELECT a, n FROM (SELECT sum(x) s, avg(x) a, count(x) n {values})");
    assert_eq!(rows(&ours, &alone), ["9.223372037e18 | 2"]);
}

#[test]
fn a_mean_that_does_not_fit_names_the_average_as_written() {
    let ours = session(|_| {});
    let value = "SELECT arrow_cast(9e33, 'Decimal128(38, 4)') AS x FROM t LIMIT 1";
    for (aggregates, is_shared) in [("avg(x)", false), ("avg(x), sum(x)", true)] {
        let sql = format!("SELECT {aggregates} FROM ({value})");
        assert_eq!(explained(&ours, &sql).contains(MEAN), is_shared);
        let error = collect(&ours, &plan(&ours, &sql)).expect_err("42 digits");
        assert!(matches!(error.kind(), Error::Overflow { .. }), "{error:?}");
        assert!(error.to_string().contains("avg(x)"), "{error}");
    }
}
