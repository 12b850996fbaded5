//! Every format, byte for byte where it is text.

use crate::grouse::{command, grouse};

const MIXED: &str = "SELECT * FROM (VALUES \
    (1, 'plain', 1.5, true), (2, NULL, NULL, false), (3, '', -0.25, NULL), (4, 'a,\"b\"|c', 1e300, true)) \
    AS t(id, name, x, flag) ORDER BY id";

#[track_caller]
fn check(format: &str, sql: &str, expected: &str) {
    assert_eq!(grouse(&["--format", format, sql]).succeeded(), expected);
}

/// A table without the time in its footer.
fn table(arguments: &[&str]) -> String {
    let text = grouse(arguments).succeeded();
    let (table, time) = text
        .rsplit_once(" in ")
        .expect("the footer ends with the time");
    assert!(time.ends_with(" s\n"), "{time}");
    table.to_owned()
}

#[test]
fn csv() {
    let expected = "id,name,x,flag\n1,plain,1.5,true\n2,,,false\n3,\"\",-0.25,\n4,\"a,\"\"b\"\"|c\",1e300,true\n";
    check("csv", MIXED, expected);
}

#[test]
fn tsv() {
    let expected = "id\tname\tx\tflag\n1\tplain\t1.5\ttrue\n2\t\t\tfalse\n3\t\"\"\t-0.25\t\n4\t\"a,\"\"b\"\"|c\"\t1e300\ttrue\n";
    check("tsv", MIXED, expected);
}

#[test]
fn json() {
    let expected = "[{\"id\":1,\"name\":\"plain\",\"x\":1.5,\"flag\":true},\n\
        {\"id\":2,\"name\":null,\"x\":null,\"flag\":false},\n\
        {\"id\":3,\"name\":\"\",\"x\":-0.25,\"flag\":null},\n\
        {\"id\":4,\"name\":\"a,\\\"b\\\"|c\",\"x\":1.0e300,\"flag\":true}]\n";
    check("json", MIXED, expected);
    check("json", "SELECT 1 AS a WHERE false", "[]\n");
}

#[test]
fn ndjson() {
    let expected = "{\"id\":1,\"name\":\"plain\"}\n{\"id\":2,\"name\":null}\n";
    check(
        "ndjson",
        &format!("SELECT id, name FROM ({MIXED}) WHERE id < 3 ORDER BY id"),
        expected,
    );
    check("ndjson", "SELECT 1 AS a WHERE false", "");
    let intervals = "SELECT INTERVAL '1 month 2 days' AS i, TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS d, {'x': INTERVAL '90 minutes'} AS s";
    let expected = "{\"i\":\"1 mon 2 days\",\"d\":\"1 day\",\"s\":{\"x\":\"01:30:00\"}}\n";
    check("ndjson", intervals, expected);
}

#[test]
fn json_stays_valid_whatever_the_values() {
    let sql = "SELECT 'NaN'::double AS nan, '-Infinity'::double AS inf, 0.1::decimal(20,10) AS d, \
        timestamp '2024-02-29 12:00:00.5' AS t, date '2024-02-29' AS day, x'00ff' AS bytes";
    let expected = "{\"nan\":null,\"inf\":null,\"d\":0.1000000000,\"t\":\"2024-02-29T12:00:00.500\",\
        \"day\":\"2024-02-29\",\"bytes\":\"00ff\"}\n";
    check("ndjson", sql, expected);
    check(
        "ndjson",
        "SELECT map([1, 2], ['a', NULL]) AS m",
        "{\"m\":{\"1\":\"a\",\"2\":null}}\n",
    );
    let twice = "SELECT * FROM (SELECT 1 AS id) a JOIN (SELECT 1 AS id) b ON a.id = b.id";
    check("ndjson", twice, "{\"id\":1,\"id_1\":1}\n");
}

#[test]
fn nested_values_are_json_in_csv() {
    let sql = "SELECT [1, NULL, 3] AS l, {'a': 1, 'b': 'x'} AS s";
    check(
        "csv",
        sql,
        "l,s\n\"[1,null,3]\",\"{\"\"a\"\":1,\"\"b\"\":\"\"x\"\"}\"\n",
    );
}

#[test]
fn times_in_text() {
    let sql = "SELECT timestamp '2024-02-29 12:00:00.5' AS t, date '2024-02-29' AS d, time '01:02:03' AS c";
    check(
        "csv",
        sql,
        "t,d,c\n2024-02-29 12:00:00.5,2024-02-29,01:02:03\n",
    );
}

#[test]
fn markdown() {
    let sql = format!("SELECT id, name FROM ({MIXED}) WHERE id IN (2, 4) ORDER BY id");
    check(
        "markdown",
        &sql,
        "| id | name |\n|---:|---|\n| 2 | NULL |\n| 4 | a,\"b\"\\|c |\n",
    );
}

#[test]
fn a_table_has_names_types_and_a_footer() {
    let found = table(&["SELECT * FROM (VALUES (1, 'a'), (20, NULL)) AS t(id, name) ORDER BY id"]);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines,
        [
            "┌───────┬─────────┐",
            "│    id │ name    │",
            "│ int64 │ varchar │",
            "├───────┼─────────┤",
            "│     1 │ a       │",
            "│    20 │ NULL    │",
            "└───────┴─────────┘",
            "2 rows"
        ]
    );
}

#[test]
fn a_large_result_shows_its_head_and_its_tail() {
    let found = table(&[
        "--max-rows",
        "3",
        "SELECT number FROM numbers(1000000) ORDER BY number",
    ]);
    let lines: Vec<&str> = found.lines().skip(4).collect();
    assert_eq!(
        lines,
        [
            "│      0 │",
            "│      1 │",
            "│      · │",
            "│      · │",
            "│      · │",
            "│ 999999 │",
            "└────────┘",
            "1,000,000 rows (3 shown)"
        ]
    );
    let found = table(&["--max-rows", "0", "SELECT number FROM numbers(12000)"]);
    assert_eq!(found.lines().count(), 4 + 12_000 + 2);
}

#[test]
fn without_a_terminal_long_values_are_whole() {
    let found = table(&["SELECT repeat('x', 1000) AS long"]);
    assert!(found.contains(&"x".repeat(1000)));
}

#[test]
fn an_empty_result_still_has_names() {
    let found = table(&["SELECT 1 AS a WHERE false"]);
    assert!(
        found.contains("│     a │") && found.ends_with("0 rows"),
        "{found}"
    );
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let found = table(&["SELECT chr(27) || '[2J' || chr(10) AS a"]);
    assert!(found.contains("│ \\u{1b}[2J\\n │"), "{found}");
}

#[test]
fn plans_are_written_as_they_stand() {
    let text =
        grouse(&["EXPLAIN SELECT number % 7, count(*) FROM numbers(1000) GROUP BY 1"]).succeeded();
    assert!(
        text.starts_with("logical_plan\n") && !text.contains("\\n"),
        "{text}"
    );
}

#[test]
fn arrow_on_standard_output_is_a_stream() {
    let output = command(&["--format", "arrow", "SELECT number FROM numbers(100000)"])
        .output()
        .unwrap();
    let reader = arrow::ipc::reader::StreamReader::try_new(output.stdout.as_slice(), None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((output.status.code(), rows), (Some(0), 100_000));
}

#[test]
fn several_results_follow_each_other_in_text() {
    check("csv", "SELECT 1 AS a; SELECT 2 AS b", "a\n1\nb\n2\n");
}
