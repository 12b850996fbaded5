//! `numbers(n)` and `numbers(start, n)`: rows, statistics, limits and wrong arguments.

use crate::support::{error, rows, run, session};

#[track_caller]
fn check(sql: &str, expected: &[&str]) {
    assert_eq!(rows(&session(), sql), expected, "{sql}");
}

#[test]
fn counts_and_sums() {
    check(
        "SELECT count(*), min(number), max(number), sum(number) FROM numbers(1000000)",
        &["1000000|0|999999|499999500000"],
    );
    check(
        "SELECT count(*), min(number), max(number) FROM numbers(10, 5)",
        &["5|10|14"],
    );
    check("SELECT count(*) FROM numbers(0)", &["0"]);
    check("SELECT sum(number) FROM numbers(0)", &["NULL"]);
    check(
        "SELECT count(number % 7) FROM numbers(100003) WHERE number % 3 = 0",
        &["33335"],
    );
    check(
        "SELECT max(number) FROM numbers(18446744073709551610, 5)",
        &["18446744073709551614"],
    );
    check("SELECT count(*) FROM NUMBERS(1e3)", &["1000"]);
    check(
        "SELECT n.number FROM numbers(3, 2) AS n ORDER BY 1",
        &["3", "4"],
    );
    check(
        "SELECT a.number, b.number FROM numbers(2) a, numbers(2) b ORDER BY 1, 2",
        &["0|0", "0|1", "1|0", "1|1"],
    );
}

#[test]
fn every_number_comes_once() {
    let sql = "SELECT count(*), count(DISTINCT number) FROM numbers(5, 100000)";
    check(sql, &["100000|100000"]);
}

#[test]
fn limits_generate_no_more_than_they_need() {
    assert_eq!(
        rows(
            &session(),
            "SELECT number FROM numbers(18446744073709551615) LIMIT 3"
        )
        .len(),
        3
    );
    check(
        "SELECT count(*) FROM (SELECT * FROM numbers(10000000000000) LIMIT 12345)",
        &["12345"],
    );
    assert_eq!(
        rows(
            &session(),
            "SELECT number FROM numbers(100) LIMIT 7 OFFSET 5"
        )
        .len(),
        7
    );
    assert_eq!(
        rows(&session(), "SELECT number FROM numbers(4) LIMIT 7 OFFSET 2").len(),
        2
    );
}

#[test]
fn the_row_count_is_known_without_reading() {
    let plan = rows(
        &session(),
        "EXPLAIN SELECT count(*) FROM numbers(1000000000000000)",
    )
    .join("\n");
    assert!(!plan.contains("NumbersExec"), "{plan}");
}

#[test]
fn as_many_partitions_as_threads() {
    let session = session();
    let plan = |session| rows(session, "EXPLAIN SELECT * FROM numbers(100)").join("\n");
    assert!(plan(&session).contains("rows=100, partitions=2"));
    run(&session, "SET threads = 7").unwrap();
    assert!(plan(&session).contains("rows=100, partitions=7"));
    // Pieces whose rows go out in their order.
    let plan = rows(&session, "EXPLAIN SELECT * FROM numbers(10000000)").join("\n");
    assert!(
        plan.contains("OrderedCoalesceExec") && plan.contains("partitions=77"),
        "{plan}"
    );
}

#[test]
fn batches_have_the_session_s_size() {
    let session = session();
    run(&session, "SET batch_size = 100").unwrap();
    let batches = run(&session, "SELECT * FROM numbers(1000)").unwrap();
    assert!(
        batches.iter().all(|batch| batch.num_rows() <= 100),
        "{batches:?}"
    );
    assert_eq!(
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        1000
    );
}

#[test]
fn wrong_arguments_are_named() {
    for (sql, part) in [
        ("SELECT * FROM numbers(-1)", "-1"),
        ("SELECT * FROM numbers(NULL)", "NULL"),
        ("SELECT * FROM numbers(1.5)", "1.5"),
        ("SELECT * FROM numbers('10')", "10"),
        ("SELECT * FROM numbers()", "0 values"),
        ("SELECT * FROM numbers(1, 2, 3)", "3 values"),
        ("SELECT * FROM numbers(18446744073709551615, 2)", "go past"),
        (
            "SELECT * FROM numbers(18446744073709551616)",
            "whole number",
        ),
    ] {
        let text = error(&session(), sql).to_string();
        assert!(
            text.contains("numbers") && text.contains(part),
            "{sql}: {text}"
        );
    }
}

#[test]
fn literals_take_the_type_of_the_numbers() {
    check(
        "SELECT arrow_typeof(number + 1), arrow_typeof(7 * number), arrow_typeof(number - 0), \
         arrow_typeof(number / 2), arrow_typeof((number % 10 + 3) * 2) FROM numbers(1)",
        &["UInt64|UInt64|UInt64|UInt64|UInt64"],
    );
    check(
        "SELECT number + 1, 7 * number, 10 - number, number / 2, number % 2 * 3 \
         FROM numbers(3, 2) ORDER BY 1",
        &["4|21|7|1|3", "5|28|6|2|0"],
    );
    check(
        "SELECT number % 3 AS k, sum(number % 2) FROM numbers(9) WHERE number % 5 > 0 GROUP BY k ORDER BY k",
        &["0|1", "1|2", "2|0"],
    );
    let sql = "SELECT number % 7, count(*) FROM numbers(10) WHERE number % 3 = 0 GROUP BY 1";
    let plan = rows(&session(), &format!("EXPLAIN {sql}")).join("\n");
    assert!(!plan.contains("Decimal"), "{plan}");
    let session = session();
    let query = session.handle().block_on(session.query(sql)).unwrap();
    let name = query.schema().field(0).name().clone();
    assert!(name.ends_with("number % 7"), "{name}");
    // Below zero there is no such number: the result is a decimal, as between other types.
    check("SELECT number + -5 FROM numbers(1)", &["-5"]);
}
