//! The functions of our own, on DataFusion's operators: plain, grouped, partial and final, distinct, sliding window.
//!
//! In: SQL over VALUES and small tables. Out: rows as text, or the error.
//! Not here: aggregates in our own operator, which the whole-system tests compare with these.

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};
use grouse::parts::register;

fn context() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    register(&context);
    context
}

/// The rows of a query, values joined by a space, rows by a comma.
async fn run(context: &SessionContext, sql: &str) -> Result<String, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let format = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in &batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &format).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values: Vec<_> = columns.iter().map(|c| c.value(row).to_string()).collect();
            rows.push(values.join(" "));
        }
    }
    Ok(rows.join(", "))
}

#[track_caller]
fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
        .block_on(future)
}

#[track_caller]
fn check(sql: &str, expected: &str) {
    assert_eq!(
        block(run(&context(), sql)).as_deref(),
        Ok(expected),
        "{sql}"
    );
}

#[track_caller]
fn check_error(sql: &str, parts: &[&str]) {
    let error = block(run(&context(), sql)).expect_err(sql);
    for part in parts {
        assert!(error.contains(part), "{sql}\n  {error}\n  lacks {part}");
    }
}

const MAX: &str = "9223372036854775807";

#[test]
fn sum_that_does_not_fit_is_an_error_with_a_way_out() {
    let table = format!("(VALUES (1, {MAX}), (1, 1), (2, 3)) t(g, x)");
    let parts = [
        "sum(t.x)",
        "does not fit BIGINT",
        "sum(CAST(x AS DECIMAL(38,0)))",
    ];
    check_error(&format!("SELECT sum(x) FROM {table}"), &parts);
    check_error(&format!("SELECT g, sum(x) FROM {table} GROUP BY g"), &parts);
    check_error(
        &format!("SELECT sum(DISTINCT x) FROM {table}"),
        &["does not fit BIGINT"],
    );
    check_error(
        &format!("SELECT g, sum(DISTINCT x) FROM {table} GROUP BY g"),
        &["does not fit BIGINT"],
    );
    check_error(
        &format!("SELECT sum(x) OVER (ORDER BY g) FROM {table}"),
        &["does not fit BIGINT"],
    );
    check(
        &format!("SELECT sum(CAST(x AS DECIMAL(38,0))) FROM {table}"),
        "9223372036854775811",
    );
    check(&format!("SELECT sum(x) FROM {table} WHERE g = 2"), "3");
}

#[test]
fn sum_whose_overflow_cancels_out_is_right() {
    let table = format!("(VALUES (1, {MAX}), (1, {MAX}), (1, -{MAX}), (1, 5), (2, NULL)) t(g, x)");
    check_error(&format!("SELECT sum(x) FROM {table}"), &["does not fit"]);
    let table = format!("(VALUES (1, {MAX}), (1, {MAX}), (1, -{MAX}), (1, -5), (2, NULL)) t(g, x)");
    check(
        &format!("SELECT sum(x) FROM {table}"),
        "9223372036854775802",
    );
    check(
        &format!("SELECT g, sum(x) FROM {table} GROUP BY g ORDER BY g"),
        "1 9223372036854775802, 2 NULL",
    );
}

#[test]
fn averages_of_integers_are_exact() {
    // Added up in doubles, 141 times this comes to 98100620957196.66 on average, and the two large values to 0.
    let same =
        "(SELECT value % 2 AS g, 98100620957197 AS x FROM generate_series(1, 282) AS s(value))";
    check(
        &format!("SELECT avg(x), mean(x) FROM {same}"),
        "98100620957197.0 98100620957197.0",
    );
    check(
        &format!("SELECT g, avg(x) FROM {same} GROUP BY g ORDER BY g"),
        "0 98100620957197.0, 1 98100620957197.0",
    );
    let large = "(VALUES (1, 9007199254740993), (1, -9007199254740992), (1, -9007199254740992), (2, 7), (3, NULL)) \
                 t(g, x)";
    let means = [
        ("avg(x)", "1 -3002399751580330.5, 2 7.0, 3 NULL"),
        ("avg(DISTINCT x)", "1 0.5, 2 7.0, 3 NULL"),
        (
            "avg(x) FILTER (WHERE x > 7)",
            "1 9007199254740992.0, 2 NULL, 3 NULL",
        ),
    ];
    for (mean, expected) in means {
        check(
            &format!("SELECT g, {mean} FROM {large} GROUP BY g ORDER BY g"),
            expected,
        );
    }
    check(
        &format!("SELECT avg(DISTINCT x) FROM {large} WHERE g = 1"),
        "0.5",
    );
    check(&format!("SELECT avg(x) FROM {large} WHERE g = 3"), "NULL");
    check(
        "SELECT avg(x) FROM (VALUES (CAST(18446744073709551615 AS BIGINT UNSIGNED)), (18446744073709551613)) t(x)",
        "1.8446744073709552e19",
    );
}

#[test]
fn averages_slide_without_drift() {
    let table = "(VALUES (1, 9007199254740993), (2, -9007199254740992), (3, 5), (4, 5), (5, NULL), (6, NULL)) t(n, x)";
    let frame = "OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    check(
        &format!("SELECT avg(x) {frame}, avg(DISTINCT x) {frame} FROM {table} ORDER BY n"),
        "9007199254740992.0 9007199254740992.0, 0.5 0.5, -4503599627370493.5 -4503599627370493.5, 5.0 5.0, 5.0 5.0, \
         NULL NULL",
    );
}

#[test]
fn averages_of_other_types_are_those_of_datafusion() {
    let means = [
        ("CAST(x AS DOUBLE)", "1.5"),
        ("CAST(x AS FLOAT)", "1.5"),
        ("CAST(x AS TINYINT)", "1.5"),
        ("CAST(x AS DECIMAL(9, 2))", "1.500000"),
        ("arrow_cast(x, 'Dictionary(Int32, Int32)')", "1.5"),
        ("arrow_cast(x, 'Duration(Second)')", "PT2S"),
    ];
    for (value, mean) in means {
        check(
            &format!("SELECT avg({value}) FROM (VALUES (1), (2)) t(x)"),
            mean,
        );
    }
    check_error("SELECT avg('a')", &["avg"]);
}

#[test]
fn partial_sums_may_overflow_between_partitions() {
    // Each of the two inputs overflows on its own; their partial states cancel out.
    let half = |sign: &str| format!("SELECT 1 AS g, {sign}{MAX} AS x FROM generate_series(1, 3)");
    let table = format!(
        "({} UNION ALL {} UNION ALL SELECT 1, 7)",
        half(""),
        half("-")
    );
    check(&format!("SELECT sum(x) FROM {table}"), "7");
    check(&format!("SELECT g, sum(x) FROM {table} GROUP BY g"), "1 7");
    check(
        &format!("SELECT g, sum(DISTINCT x) FROM {table} GROUP BY g"),
        "1 7",
    );
}

#[test]
fn sum_of_every_type_is_typed_like_those_of_datafusion() {
    let types = [
        ("TINYINT", "Int64"),
        ("INT UNSIGNED", "UInt64"),
        ("BIGINT", "Int64"),
        ("FLOAT", "Float64"),
        ("DECIMAL(5,2)", "Decimal128(15, 2)"),
        ("DECIMAL(38,0)", "Decimal128(38, 0)"),
        ("DECIMAL(50,3)", "Decimal256(60, 3)"),
    ];
    for (argument, result) in types {
        let sql = format!(
            "SELECT arrow_typeof(sum(CAST(x AS {argument}))), sum(CAST(x AS {argument})) = 6 \
             FROM (VALUES (1), (2), (3)) t(x)"
        );
        check(&sql, &format!("{result} true"));
    }
    check(
        "SELECT sum(arrow_cast(x, 'Duration(Second)')) FROM (VALUES (1), (2)) t(x)",
        "PT3S",
    );
    check(
        "SELECT sum(x) FROM (VALUES (INTERVAL '1 day'), (INTERVAL '2 day')) t(x)",
        "3 days",
    );
    check(
        "SELECT sum(x), sum(DISTINCT x) FROM (VALUES (1.5), (1.5), (NULL)) t(x)",
        "3.0 1.5",
    );
    check("SELECT sum(x) FROM (SELECT 1 AS x WHERE false)", "NULL");
}

#[test]
fn decimal_sum_that_does_not_fit_is_an_error() {
    let nines = "9".repeat(38);
    let table = format!(
        "(VALUES (1, CAST('{nines}' AS DECIMAL(38,0))), (1, CAST('1' AS DECIMAL(38,0)))) t(g, x)"
    );
    let parts = ["does not fit DECIMAL(38,0)", "DECIMAL(76,0)"];
    check_error(&format!("SELECT sum(x) FROM {table}"), &parts);
    check_error(&format!("SELECT g, sum(x) FROM {table} GROUP BY g"), &parts);
    check(
        &format!("SELECT sum(CAST(x AS DECIMAL(76,0))) FROM {table}"),
        &format!("1{}", "0".repeat(38)),
    );
    let nines = "9".repeat(76);
    let table = format!(
        "(VALUES (1, CAST('{nines}' AS DECIMAL(76,0))), (1, CAST('1' AS DECIMAL(76,0)))) t(g, x)"
    );
    check_error(
        &format!("SELECT g, sum(x) FROM {table} GROUP BY g"),
        &["does not fit DECIMAL(76"],
    );
}

#[test]
fn sliding_sum_takes_rows_back() {
    let frame = "OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let table = format!("(VALUES (1, {MAX}), (2, -1), (3, 1), (4, NULL), (5, NULL)) t(i, x)");
    check(
        &format!("SELECT sum(x) {frame} FROM {table} ORDER BY i"),
        &format!("{MAX}, 9223372036854775806, 0, 1, NULL"),
    );
    check_error(
        &format!("SELECT sum(x) {frame} FROM (VALUES (1, {MAX}), (2, 1), (3, 1)) t(i, x)"),
        &["does not fit BIGINT"],
    );
    check(
        &format!(
            "SELECT sum(DISTINCT x::decimal(3,1)) {frame} FROM (VALUES (1, 2.5), (2, 2.5), (3, 1.0)) t(i, x) ORDER BY i"
        ),
        "2.5, 2.5, 3.5",
    );
}

#[test]
fn sum_filters_and_monotone_uses() {
    check(
        "SELECT sum(x) FILTER (WHERE x > 1) FROM (VALUES (1), (2), (3)) t(x)",
        "5",
    );
    check(
        "SELECT g, sum(x) FILTER (WHERE x > 1) FROM (VALUES (1, 1), (2, 2), (2, 3)) t(g, x) GROUP BY g ORDER BY g",
        "1 NULL, 2 5",
    );
}

#[test]
fn max_by_and_min_by_take_the_x_of_the_extreme_y() {
    let table = "(VALUES (1, 'a', 2), (1, 'b', 5), (1, 'c', 1), (2, NULL, 9), (2, 'd', NULL), (3, 'e', 7)) t(g, x, y)";
    check(
        &format!("SELECT max_by(x, y), arg_max(x, y), min_by(x, y), arg_min(x, y) FROM {table}"),
        "e e c c",
    );
    check(
        &format!("SELECT g, max_by(x, y), min_by(x, y) FROM {table} GROUP BY g ORDER BY g"),
        "1 b c, 2 NULL NULL, 3 e e",
    );
    check(
        &format!(
            "SELECT g, max_by(y, x) FILTER (WHERE x <> 'b') FROM {table} GROUP BY g ORDER BY g"
        ),
        "1 1, 2 NULL, 3 7",
    );
    check(
        "SELECT max_by(x, y) FROM (SELECT 1 AS x, 2 AS y WHERE false)",
        "NULL",
    );
    check_error("SELECT max_by(1)", &["max_by"]);
}

#[test]
fn ties_and_unusual_floats() {
    // As in DuckDB: the first of equal rows, one zero, NaN above everything.
    check(
        "SELECT max_by(x, y), min_by(x, y) FROM (VALUES (1, 0.0), (2, -0.0), (3, 0.0)) t(x, y)",
        "1 1",
    );
    check(
        "SELECT max_by(x, y), min_by(x, y) FROM (VALUES (1, 'inf'::double), (2, 'nan'::double), (3, 3.0)) t(x, y)",
        "2 3",
    );
    check(
        "SELECT max_by(x, -y) FROM (VALUES (1, 'inf'::double), (2, 'nan'::double)) t(x, y)",
        "2",
    );
}

#[test]
fn max_by_in_an_order_is_the_first_of_the_equals() {
    let table = "(VALUES (1, 1, 3), (2, 1, 1), (3, 0, 2), (NULL, 1, 0)) t(x, y, z)";
    check(&format!("SELECT max_by(x, y ORDER BY z) FROM {table}"), "2");
    check(
        &format!("SELECT max_by(x, y ORDER BY z DESC) FROM {table}"),
        "1",
    );
}

#[test]
fn max_by_of_every_kind_of_argument() {
    let kinds = [
        ("x", "1"),
        ("CAST(x AS DECIMAL(50,2))", "1.00"),
        ("x::text", "1"),
        (
            "'a longer string than a view holds ' || x",
            "a longer string than a view holds 1",
        ),
        ("arrow_cast('k' || x, 'Dictionary(Int8, Utf8)')", "k1"),
        ("[x, x + 1]", "[1, 2]"),
        ("{a: x}", "{a: 1}"),
        ("x = 1", "true"),
        (
            "arrow_cast(x, 'Timestamp(Second, None)')",
            "1970-01-01T00:00:01",
        ),
        ("arrow_cast('b' || x, 'Binary')", "6231"),
        ("x::double", "1.0"),
    ];
    let table = "generate_series(0, 1)";
    for (kind, expected) in kinds {
        // As x, ordered by a number; then as y, and x a string.
        let x = format!("SELECT max_by({kind}, x) FROM (SELECT value AS x FROM {table})");
        check(&x, expected);
        let grouped = format!(
            "SELECT g, max_by({kind}, x), max_by('x' || x, {kind}) \
             FROM (SELECT value AS x, 0 AS g FROM {table}) GROUP BY g"
        );
        check(&grouped, &format!("0 {expected} x1"));
        check(
            &format!("SELECT max_by('x' || x, {kind}) FROM (SELECT value AS x FROM {table})"),
            "x1",
        );
    }
}

#[test]
fn max_by_over_many_groups_and_batches() {
    // 40,000 rows, 1,000 groups, five batches per input: overtaken rows are swept out several times.
    let sql = "SELECT count(*), sum(CASE WHEN m = 39000 + g AND s = 'row ' || (39000 + g) AND n = g THEN 1 ELSE 0 END) \
               FROM (SELECT value % 1000 AS g, max_by(value, value) AS m, max_by('row ' || value, value) AS s, \
                            min_by(value, 'k' || lpad(value::text, 6, '0')) AS n \
                     FROM generate_series(0, 39999) GROUP BY 1)";
    check(sql, "1000 1000");
}

#[test]
fn max_by_in_a_sliding_window() {
    let frame = "OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    check(
        &format!(
            "SELECT max_by(x, y) {frame}, min_by(x, y) {frame} \
             FROM (VALUES (1, 'a', 3), (2, 'b', 1), (3, 'c', 1), (4, NULL, 9), (5, NULL, 9)) t(i, x, y) ORDER BY i"
        ),
        "a a, a b, b b, c c, NULL NULL",
    );
}

#[test]
fn uniq_counts_distinct_values_of_any_type() {
    for kind in [
        "x",
        "x::double",
        "x::float",
        "x = 3",
        "x::text",
        "[x]",
        "{a: x}",
        "CAST(x AS DECIMAL(9,2))",
        "CAST(x AS DECIMAL(60,2))",
        "x::smallint",
        "arrow_cast(x::text, 'Dictionary(Int32, Utf8)')",
        "arrow_cast(x, 'Timestamp(Second, None)')",
    ] {
        let expected = if kind == "x = 3" { 2 } else { 3 };
        let table = "(VALUES (1, 1), (1, 2), (1, 2), (1, 3), (1, NULL)) t(g, x)";
        let counts = format!("uniq({kind}), uniq_exact({kind})");
        let filter = if kind.starts_with(['[', '{']) {
            "WHERE x IS NOT NULL"
        } else {
            ""
        };
        check(
            &format!("SELECT {counts} FROM {table} {filter}"),
            &format!("{expected} {expected}"),
        );
        check(
            &format!("SELECT g, {counts} FROM {table} {filter} GROUP BY g"),
            &format!("1 {expected} {expected}"),
        );
    }
}

#[test]
fn uniq_of_several_arguments_counts_tuples() {
    let table = "(VALUES (1, 1, 'a'), (1, 1, 'a'), (1, 1, 'b'), (1, NULL, 'b'), (2, NULL, NULL)) t(g, x, y)";
    check(
        &format!("SELECT uniq(x, y), uniq_exact(x, y) FROM {table}"),
        "2 2",
    );
    check(
        &format!(
            "SELECT g, uniq(x, y), uniq_exact(x, y), uniq_exact(x, y) FILTER (WHERE y = 'a') FROM {table} GROUP BY g ORDER BY g"
        ),
        "1 2 2 1, 2 0 0 0",
    );
}

#[test]
fn uniq_treats_zeros_and_nans_as_one() {
    check(
        "SELECT uniq(x) FROM (VALUES (0.0), (-0.0), ('nan'::double), (-'nan'::double)) t(x)",
        "2",
    );
}

#[test]
fn uniq_over_a_window_and_over_nothing() {
    check(
        "SELECT uniq(x) OVER (), uniq_exact(x) OVER () FROM (VALUES (1), (1)) t(x)",
        "1 1, 1 1",
    );
    check(
        "SELECT uniq(x), uniq_exact(x) FROM (SELECT 1.5 AS x WHERE false)",
        "0 0",
    );
    check_error(
        "SELECT uniq_exact(x, x) OVER () FROM (VALUES (1)) t(x)",
        &["takes one argument"],
    );
}

#[test]
fn uniq_goes_on_counting_after_a_look() {
    let table = "(VALUES (1, 'a'), (2, 'b'), (3, 'a'), (4, NULL), (5, 'c')) t(i, x)";
    check(
        &format!(
            "SELECT uniq(x) OVER (ORDER BY i), approx_distinct(x) OVER (ORDER BY i) FROM {table} ORDER BY i"
        ),
        "1 1, 2 2, 2 2, 2 2, 3 3",
    );
    let sql = "SELECT count(DISTINCT u), max(u) > 9800 AND max(u) < 10200 FROM \
               (SELECT uniq(value) OVER (ORDER BY value ROWS BETWEEN UNBOUNDED PRECEDING AND 9000 FOLLOWING) AS u \
                FROM generate_series(1, 10000))";
    assert!(block(run(&context(), sql)).is_ok_and(|rows| rows.ends_with("true")));
}

#[test]
fn approx_distinct_counts_as_uniq_does() {
    check(
        "SELECT approx_distinct(x) = uniq(x), approx_distinct(x % 5000) FROM (SELECT value AS x FROM generate_series(1, 50000) AS s(value))",
        "true 5000",
    );
    check_error("SELECT approx_distinct()", &["approx_distinct"]);
}

#[test]
fn uniq_is_close_and_uniq_exact_exact() {
    let sql = "SELECT abs(uniq(value::double) - 100000) < 3000, uniq_exact(value::double) FROM generate_series(1, 100000) AS s(value)";
    check(sql, "true 100000");
}

#[test]
fn patterns_are_found_as_datafusion_finds_them() {
    // Of 100 strings, of as many as there are rows, and of one, each with NULLs and empty ones.
    let strings = [
        "concat('https://www.site-', i % 100, '.org/page/', i % 7)",
        "concat('https://site-', i * 7919, '.org/', repeat('x', i % 40))",
        "concat('http://www.', CASE i % 4 WHEN 0 THEN '/x' WHEN 1 THEN chr(10) || '/' WHEN 2 THEN 'é/' || chr(10) ELSE '' END)",
        "'no address'",
    ];
    let types = ["Utf8", "LargeUtf8", "Utf8View"];
    let calls = [
        r"regexp_replace(t, '^https?://(?:www\.)?([^/]+)/.*$', '\1')",
        r"regexp_replace(t, '^https?://(?:www\.)?([^/]+)', '[\1]')",
        r"regexp_replace(t, '^(https|http)(://)(www\.|)([a-z.-]*)', '\\4\2\1\7', 'g')",
        "regexp_replace(t, '^no|^$', 'x')",
        r"regexp_replace(t, '^(h){0}(http)', '[\1\2]')",
        r"regexp_replace(t, '^(h)(?x)#.*$', '\1')",
        r"regexp_replace(t, '^h(?R)(.*)$', '<\1>')",
        "regexp_replace(t, '^(.*)$', '$1-${1}', 's')",
        "regexp_replace(t, 'E', '<&>', 'gi')",
        r"regexp_match(t, 'site-(\d+)\.(org)')",
        "regexp_count(t, 'site|page', 1, 'i')",
        r"regexp_instr(t, '\d+')",
        // Of a pattern per row DataFusion decides row by row.
        "regexp_replace(t, CAST(i % 10 AS VARCHAR), '-')",
    ];
    for (text, of) in strings
        .iter()
        .flat_map(|text| types.iter().map(move |of| (text, of)))
    {
        let rows = format!(
            "SELECT i, arrow_cast(CASE i % 50 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE {text} END, '{of}') AS t \
             FROM (SELECT unnest(generate_series(1, 5000)) AS i)"
        );
        for call in calls {
            let sql = format!("SELECT i, {call} FROM ({rows}) ORDER BY i");
            let stock = SessionContext::new();
            let expected = block(run(&stock, &sql));
            assert!(expected.is_ok(), "{expected:?}");
            assert_eq!(block(run(&context(), &sql)), expected, "{sql}");
        }
    }
    let bad = "SELECT regexp_replace(t, '(', '') FROM (SELECT unnest(['a', 'b']) AS t)";
    assert_eq!(
        block(run(&context(), bad)),
        block(run(&SessionContext::new(), bad))
    );
}
