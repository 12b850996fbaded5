//! Functions of dates, times and integers, once per step, against DataFusion's, row by row and as keys.
//!
//! In: columns in order and in none, with NULLs, before and after 1970, at the ends of their types. Out: equal rows.

use super::*;

/// Values of `n`: in order, in none, far apart.
const VALUES: [&str; 4] = [
    "n * 7 - 35000",
    "CASE WHEN n % 5 > 0 THEN n * 977 - 3000000 END",
    "(n * 7919) % 100003 - 50000",
    "CASE WHEN n = 77 THEN 9000000000 ELSE n END",
];

const NUMBERS: &str = "(SELECT number, CAST(number AS BIGINT) AS n FROM numbers(10000))";

const TYPES: [&str; 4] = [
    "Timestamp(s)",
    "Timestamp(ms)",
    "Timestamp(µs)",
    "Timestamp(ns)",
];

const OF_TIMES: [&str; 14] = [
    "date_part('year', x)",
    "date_part('week', x)",
    "date_part('dow', x)",
    "date_part('doy', x)",
    "date_part('hour', x)",
    "date_part('minute', x)",
    "date_part('second', x)",
    "date_trunc('quarter', x)",
    "date_trunc('week', x)",
    "date_trunc('hour', x)",
    "date_trunc('second', x)",
    "to_char(x, '%Y-%m-%d %H')",
    "to_char(x, '%a %-d %b, %R:%S')",
    "to_char(x, '%j %% %V')",
];

fn check(call: &str, rows: &str) {
    let (ours, datafusion) = (session(|_| {}), datafusion());
    for sql in [
        format!("SELECT number, {call} AS y FROM ({rows}) ORDER BY number"),
        format!("SELECT {call} AS y, count(*), min(x) FROM ({rows}) GROUP BY y ORDER BY y"),
        format!(
            "SELECT y, z, count(*) FROM (SELECT {call} AS y, number % 2 AS z FROM ({rows})) GROUP BY y, z ORDER BY y, z"
        ),
    ] {
        assert_eq!(
            super::rows(&ours, &sql),
            super::rows(&datafusion, &sql),
            "{sql}"
        );
    }
}

#[test]
fn times_have_datafusions_parts() {
    for (at, call) in OF_TIMES.iter().enumerate() {
        for (number, values) in VALUES.iter().enumerate() {
            let of = TYPES[(at + number) % TYPES.len()];
            let seconds =
                format!("SELECT number, arrow_cast({values}, 'Timestamp(s)') AS s FROM {NUMBERS}");
            check(
                call,
                &format!("SELECT number, arrow_cast(s, '{of}') AS x FROM ({seconds})"),
            );
        }
    }
}

#[test]
fn dates_and_integers_have_datafusions_parts_and_strings() {
    let days = |values: &str| {
        format!("SELECT number, CAST(CAST(({values}) / 500 AS INT) AS DATE) AS x FROM {NUMBERS}")
    };
    for values in &VALUES[..3] {
        for call in [
            "date_part('month', x)",
            "date_part('hour', x)",
            "to_char(x, '%d.%m.%y')",
            "date_trunc('month', x)",
            "CAST(x AS VARCHAR)",
        ] {
            check(call, &days(values));
        }
        for of in [
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "SMALLINT UNSIGNED",
            "BIGINT UNSIGNED",
        ] {
            let rows =
                format!("SELECT number, CAST(abs({values}) % 120 AS {of}) AS x FROM {NUMBERS}");
            check("CAST(x AS VARCHAR)", &rows);
            check("upper(CAST(x AS VARCHAR))", &rows);
        }
    }
    let ends = "SELECT number, CASE number % 3 WHEN 0 THEN -9223372036854775808 WHEN 1 THEN 9223372036854775807 ELSE 0 END AS x FROM numbers(100)";
    check("CAST(x AS VARCHAR)", ends);
}

#[test]
fn times_in_utc_have_datafusions_parts() {
    for (at, call) in OF_TIMES.iter().enumerate() {
        let unit = ["s", "ms", "µs", "ns"][at % 4];
        let values = VALUES[at % VALUES.len()];
        let seconds =
            format!("SELECT number, arrow_cast({values}, 'Timestamp(s)') AS s FROM {NUMBERS}");
        let of = format!("Timestamp({unit}, \"UTC\")");
        check(
            call,
            &format!("SELECT number, arrow_cast(s, '{of}') AS x FROM ({seconds})"),
        );
    }
}

#[test]
fn times_with_a_zone_are_those_of_datafusion() {
    let rows = format!(
        "SELECT number, arrow_cast(n * 977, 'Timestamp(s, \"Asia/Kolkata\")') AS x FROM {NUMBERS}"
    );
    check("date_part('hour', x)", &rows);
    check("date_trunc('day', x)", &rows);
}
