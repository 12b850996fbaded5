//! Statements of thousands of operands: they are answered, or refused with a reason; no stack is ever too small.

use grouse::Error;

use crate::support::{error, rows, session};

/// `0` for each operand, with its number in the place of `#`.
fn chain(operand: &str, between: &str, operands: usize) -> String {
    let operands = (0..operands).map(|at| operand.replace('#', &at.to_string()));
    operands.collect::<Vec<_>>().join(between)
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    assert_eq!(rows(&session(), sql), [expected]);
}

#[test]
fn ten_thousand_conditions() {
    let any = chain("number = #", " OR ", 10_000);
    check(
        &format!("SELECT count(*) FROM numbers(20000) WHERE {any}"),
        "10000",
    );
    let all = chain("number <> #", " AND ", 10_000);
    check(
        &format!("SELECT count(*) FROM numbers(20000) WHERE {all}"),
        "10000",
    );
}

#[test]
fn a_thousand_sums_and_strings() {
    let sum = chain("number", " + ", 1_000);
    check(&format!("SELECT max({sum}) FROM numbers(3)"), "2000");
    let text = chain("k", " || ", 1_000);
    check(
        &format!("SELECT length({text}) FROM (VALUES ('ab')) t(k)"),
        "2000",
    );
}

#[test]
fn three_thousand_queries() {
    let all = chain("SELECT # AS k", " UNION ALL ", 3_000);
    check(
        &format!("SELECT count(*), sum(k), min(k) FROM ({all})"),
        "3000|4498500|0",
    );
}

#[test]
fn a_longer_sum_is_refused_with_a_reason() {
    let sum = chain("1", " - ", 10_000);
    let Error::Execution(message) = error(&session(), &format!("SELECT {sum}")) else {
        panic!("another error");
    };
    assert!(message.contains("more than 4000 operands"), "{message}");
}

#[test]
fn a_cube_of_too_many_keys_is_refused_with_a_reason() {
    let keys = chain("number % # + #", ", ", 20).replace("% 0", "% 1");
    let sql = format!("SELECT count(*) FROM numbers(10) GROUP BY CUBE ({keys})");
    let message = error(&session(), &sql).to_string();
    assert!(
        message.contains("CUBE of 20 elements makes 2^20 grouping sets"),
        "{message}"
    );
}

#[test]
fn combinations_of_cubes_are_counted_before_they_are_made() {
    let keys = |from: i64| {
        (from..from + 7)
            .map(|at| format!("number % {at}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sql = format!(
        "SELECT count(*) FROM numbers(10) GROUP BY CUBE ({}), CUBE ({})",
        keys(1),
        keys(8)
    );
    let message = error(&session(), &sql).to_string();
    assert!(
        message.contains("GROUP BY has 16384 grouping sets; 4096 is the most"),
        "{message}"
    );
}

#[test]
fn operators_behind_an_operand_are_as_many_as_operators_between_two() {
    for (first, again) in [
        ("1", "::INT"),
        ("1", " IS NULL"),
        ("true", " IN (true)"),
        ("1", " BETWEEN 1 AND 1"),
        ("now()", " AT TIME ZONE 'UTC'"),
        ("1", " - 1"),
    ] {
        let sql = format!("SELECT {first}{}", again.repeat(20_000));
        let Error::Execution(message) = error(&session(), &sql) else {
            panic!("another error of {again}");
        };
        assert!(message.contains("more than 4000 operands"), "{message}");
    }
}

#[test]
fn chains_of_queries_are_answered_or_refused() {
    let of = |between: &str, queries: usize| chain("SELECT # AS k", between, queries);
    let counted = |chain: String| format!("SELECT count(*) FROM ({chain})");
    check(&counted(of(" UNION ", 500)), "500");
    check(&counted(of(" EXCEPT ", 100)), "1");
    for between in [" EXCEPT ", " INTERSECT ", " INTERSECT ALL "] {
        let Error::Execution(message) = error(&session(), &of(between, 10_000)) else {
            panic!("another error of {between}");
        };
        assert!(message.contains("more than 1000 queries"), "{message}");
    }
    let mixed = format!("SELECT 0 UNION {}", of(" INTERSECT ", 10_000));
    assert!(matches!(error(&session(), &mixed), Error::Execution(_)));
}

#[test]
fn types_nest_as_deep_as_expressions() {
    for (open, close) in [
        ("STRUCT(a ", ")"),
        ("ARRAY<", ">"),
        ("STRUCT<a ", ">"),
        ("", "[]"),
    ] {
        let sql = format!(
            "SELECT NULL::{}INT{}",
            open.repeat(10_000),
            close.repeat(10_000)
        );
        let error = error(&session(), &sql);
        assert!(matches!(error, Error::Syntax { .. }), "{error:?}");
    }
}
