//! DISTINCT beside other aggregates: the same rows as DataFusion's, whatever the shape of groups and values.
//!
//! In: inputs of one group, of groups of one row, of equal and of different pairs. Out: equal rows; plans that say how.
//! Not here: DISTINCT of all kinds over small tables (`filter_distinct_order.slt`), more pairs than memory holds
//! (spill.rs).

use super::*;

/// Groups `g` and values `x`.
const INPUTS: [&str; 9] = [
    "SELECT 1 AS g, number AS x FROM numbers(30000)",
    "SELECT number % 100 AS g, number AS x FROM numbers(30000)",
    "SELECT 1 AS g, 7 AS x FROM numbers(30000)",
    "SELECT number % 1000 AS g, number % 2 AS x FROM numbers(30000)",
    "SELECT number * 1000003 AS g, number AS x FROM numbers(30000)",
    "SELECT number % 5 AS g, repeat(chr(arrow_cast(65 + number % 26, 'Int64')), 10000) AS x FROM numbers(3000)",
    "SELECT number % 3 AS g, CASE WHEN number % 3 = 1 THEN NULL ELSE number / 2 END AS x FROM numbers(30000)",
    "SELECT 'group ' || (number % 70) AS g, 'value ' || (number % 900) AS x FROM numbers(30000)",
    // Half of all rows in one group.
    "SELECT CASE WHEN number % 2 = 0 THEN 0 ELSE number END AS g, number % 5000 AS x FROM numbers(30000)",
];

#[test]
fn pairs_of_every_shape_are_counted_once() {
    let mut settings = Vec::new();
    for sizes in ["machine", "tiny", "spilling"] {
        for threads in [1, 3, 16] {
            settings.push((sizes, threads));
        }
    }
    let datafusion = datafusion();
    let aggregates = "count(*), count(DISTINCT x), min(x), count(DISTINCT x) FILTER (WHERE g > '1'), \
                      count(DISTINCT substr(x, 1, 2)), bool_or(x > '3'), \
                      bool_and(CASE WHEN g < '3' THEN NULL ELSE x > '2' END), \
                      bit_xor(CASE WHEN g > '2' THEN NULL ELSE 5 END) FILTER (WHERE x < '9')";
    for input in INPUTS {
        let input = format!(
            "(SELECT arrow_cast(g, 'Utf8') AS g, arrow_cast(x, 'Utf8') AS x FROM ({input})) AS t"
        );
        let grouped = format!("SELECT g, {aggregates} FROM {input} GROUP BY g");
        let global = format!("SELECT {aggregates} FROM {input}");
        let sets = format!("SELECT g, {aggregates} FROM {input} GROUP BY ROLLUP (g)");
        for sql in [grouped, global, sets] {
            let expected = rows(&datafusion, &sql);
            for (sizes, threads) in &settings {
                let session = session(|options| {
                    options.threads = *threads;
                    options.set("group_by_sizes", sizes).expect("sizes");
                });
                assert_eq!(rows(&session, &sql), expected, "{sizes} {threads}: {sql}");
            }
        }
    }
}

#[test]
fn numbers_of_every_shape_add_up_once() {
    let datafusion = datafusion();
    let aggregates =
        "count(*), count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x), max(x), sum(x)";
    for input in INPUTS
        .iter()
        .filter(|input| !input.contains('\'') && !input.contains("chr"))
    {
        for by in ["GROUP BY g", "GROUP BY GROUPING SETS ((g), (), (g))"] {
            let sql = format!("SELECT g, {aggregates} FROM ({input}) AS t {by}");
            let expected = rows(&datafusion, &sql);
            for sizes in ["machine", "tiny", "spilling"] {
                let session =
                    session(|options| options.set("group_by_sizes", sizes).expect("sizes"));
                assert_eq!(rows(&session, &sql), expected, "{sizes}: {sql}");
            }
        }
    }
}

#[test]
fn the_most_frequent_values_are_those_that_a_count_finds() {
    let datafusion = datafusion();
    for input in INPUTS {
        // Some values more often than others.
        let input = format!(
            "(SELECT arrow_cast(g, 'Utf8') AS g, arrow_cast(x, 'Utf8') AS x FROM ({input}) AS once UNION ALL \
              SELECT arrow_cast(g, 'Utf8'), arrow_cast(x, 'Utf8') FROM ({input}) AS again WHERE arrow_cast(x, 'Utf8') LIKE '%3%') AS t"
        );
        let ranked = format!(
            "SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY c DESC, x) AS rank FROM \
             (SELECT g, x, CASE WHEN x IS NULL THEN -1 ELSE count(*) END AS c FROM {input} GROUP BY g, x) AS counted"
        );
        let expected = rows(
            &datafusion,
            &format!(
                "SELECT g, max(x) FILTER (WHERE rank = 1), array_agg(x ORDER BY rank) FILTER (WHERE rank <= 3 AND x IS NOT NULL) \
                 FROM ({ranked}) AS ranked GROUP BY g"
            ),
        );
        let sql = format!("SELECT g, mode(x), approx_top_k(x, 3) FROM {input} GROUP BY g");
        assert_eq!(rows(&datafusion, &sql), expected, "stock: {sql}");
        for sizes in ["machine", "tiny", "spilling"] {
            for threads in [1, 3, 16] {
                let session = session(|options| {
                    options.threads = threads;
                    options.set("group_by_sizes", sizes).expect("sizes");
                });
                assert_eq!(rows(&session, &sql), expected, "{sizes} {threads}: {sql}");
                let beside = sql.replace("mode(x)", "mode(x), count(*), count(DISTINCT x)");
                let wanted = format!("SELECT g, a, b FROM ({beside}) AS t(g, a, n, d, b)");
                assert_eq!(
                    rows(&session, &wanted),
                    expected,
                    "{sizes} {threads}: {wanted}"
                );
            }
        }
    }
}

#[test]
fn a_million_groups_of_one_value_are_counted() {
    let session = session(|_| {});
    let sql = "SELECT count(*), sum(d), sum(c), sum(e) FROM (SELECT number AS g, count(*) AS c, \
               count(DISTINCT number % 7) AS d, count(DISTINCT nullif(number, 3)) AS e FROM numbers(1000000) GROUP BY number)";
    assert_eq!(
        rows(&session, sql),
        ["1000000 | 1000000 | 1000000 | 999999"]
    );
}

#[test]
fn several_columns_are_one_value_and_none_of_them_null() {
    let session = session(|_| {});
    let sql = "SELECT g, count(DISTINCT a, b), count(*) FROM (VALUES \
               (1, 1, 'x'), (1, 1, 'x'), (1, 1, 'y'), (1, 2, NULL), (2, NULL, 'x')) AS t(g, a, b) GROUP BY g";
    assert_eq!(rows(&session, sql), ["1 | 2 | 4", "2 | 0 | 1"]);
}

/// A struct of NULLs is a value, as NULL in one of its fields is.
#[test]
fn fields_of_a_struct_are_compared_as_columns() {
    for keys in ["", "small", "text, flag"] {
        for of in [
            "(long, text)",
            "(long, float, list)",
            "struct(text)",
            "named_struct('a', small, 'b', nullif(long, 3), 'c', 7)",
            "struct(struct(long, small), flag)",
        ] {
            for others in ["", ", count(*), sum(long)", ", count(DISTINCT long)"] {
                let filter = "FILTER (WHERE wide > 100)";
                let select = format!("count(DISTINCT {of}), count(DISTINCT {of}) {filter}{others}");
                let sql = match keys {
                    "" => format!("SELECT {select} FROM t"),
                    keys => format!("SELECT {keys}, {select} FROM t GROUP BY {keys}"),
                };
                are_those_of_datafusion(&[&sql]);
            }
        }
    }
    let session = session(|_| {});
    let sql = "SELECT small, count(DISTINCT (long, text)) FROM t GROUP BY small";
    assert!(
        explained(&session, sql).contains("distinct_groupings=[count("),
        "{sql}"
    );
}

#[test]
fn the_plan_says_which_aggregates_take_pairs() {
    let session = session(|_| {});
    let sql = "SELECT small, count(DISTINCT long), count(*), sum(DISTINCT long), count(DISTINCT list), array_agg(DISTINCT long) \
               FROM t GROUP BY small";
    let text = explained(&session, sql);
    assert!(
        text.contains(
            "distinct_groupings=[count(DISTINCT t.long), sum(DISTINCT t.long), count(DISTINCT t.list)]"
        ),
        "{text}"
    );
    assert!(text.contains("datafusion_states=[array_agg]"), "{text}");
    let sql = "SELECT small, mode(long), approx_top_k(long, 64), approx_top_k(long, 65), mode(list) FROM t GROUP BY small";
    let text = explained(&session, sql);
    assert!(
        text.contains("distinct_groupings=[mode(t.long), approx_top_k(t.long, 64), mode(t.list)]"),
        "{text}"
    );
    assert!(text.contains("datafusion_states=[approx_top_k]"), "{text}");
}
