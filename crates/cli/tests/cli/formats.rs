//! Every format, byte for byte where it is text.

use crate::grouse::{command, grouse, grouse_fed};

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

#[test]
fn list_and_line() {
    check(
        "list",
        MIXED,
        "id|name|x|flag\n1|plain|1.5|true\n2|NULL|NULL|false\n3||-0.25|NULL\n4|a,\"b\"|c|1e300|true\n",
    );
    let sql = format!("SELECT id, name FROM ({MIXED}) WHERE id < 3 ORDER BY id");
    check(
        "line",
        &sql,
        "  id = 1\nname = plain\n\n  id = 2\nname = NULL\n",
    );
    check("line", "SELECT 'a' || chr(10) || 'b' AS t", "t = a\\nb\n");
}

#[test]
fn columns_are_as_wide_as_their_values() {
    let sql = "SELECT * FROM (VALUES (1, 'a', 1.5), (1000, 'longer', 2.25)) AS t(id, name, x) ORDER BY id";
    check(
        "column",
        sql,
        "  id  name       x\n----  ------  ----\n   1  a        1.5\n1000  longer  2.25\n",
    );
    check("column", "SELECT 1 AS a WHERE false", "a\n-\n");
    // The widths are those of the first rows; a wider value later is whole.
    let text = grouse(&[
        "--format",
        "column",
        "SELECT number + 98000 AS n, 'x' AS c FROM numbers(3000) ORDER BY number",
    ])
    .succeeded();
    let last = text.lines().last().unwrap();
    assert_eq!((last, text.lines().count()), ("100999  x", 3002));
}

#[test]
fn boxes() {
    let sql = "SELECT * FROM (VALUES (1, 'a'), (20, NULL)) AS t(id, name) ORDER BY id";
    assert_eq!(
        table(&["--format", "box", sql]),
        "┌────┬──────┐\n│ id │ name │\n├────┼──────┤\n│  1 │ a    │\n│ 20 │ NULL │\n└────┴──────┘\n2 rows"
    );
    assert_eq!(
        table(&["--format", "ascii", sql]),
        "+----+------+\n| id | name |\n+----+------+\n|  1 | a    |\n| 20 | NULL |\n+----+------+\n2 rows"
    );
}

#[test]
fn html_and_latex_are_escaped() {
    let sql = "SELECT 1 AS \"a&b\", '<i>x</i>' AS t, NULL::varchar AS n";
    check(
        "html",
        sql,
        "<table>\n<thead>\n<tr><th>a&amp;b</th><th>t</th><th>n</th></tr>\n</thead>\n<tbody>\n\
         <tr><td style=\"text-align:right\">1</td><td>&lt;i&gt;x&lt;/i&gt;</td><td>NULL</td></tr>\n</tbody>\n</table>\n",
    );
    check(
        "latex",
        "SELECT 1 AS a_b, '50%' AS t",
        "\\begin{tabular}{|r|l|}\n\\hline\na\\_b & t \\\\\n\\hline\n1 & 50\\% \\\\\n\\hline\n\\end{tabular}\n",
    );
}

#[test]
fn literals_are_sql() {
    check(
        "quote",
        MIXED,
        "'id','name','x','flag'\n1,'plain',1.5,true\n2,NULL,NULL,false\n3,'',-0.25,NULL\n4,'a,\"b\"|c',1e300,true\n",
    );
    check(
        "insert",
        "SELECT 1 AS id, 'it''s' AS \"a b\"",
        "INSERT INTO \"table\" (\"id\", \"a b\") VALUES (1, 'it''s');\n",
    );
}

/// Every kind of literal is read as the value that it was written for.
#[test]
fn inserts_bring_the_values_back() {
    let make = "CREATE TABLE t AS SELECT 9007199254740993 AS i, 0.1::float AS f, 'NaN'::double AS nan, '-Infinity'::double AS inf, \
        '12345678901234567.89'::decimal(20,2) AS d, 'it''s' AS s, x'00ff' AS b, date '2024-02-29' AS day, \
        time '01:02:03.5' AS c, timestamp '2024-02-29 12:00:00.123456' AS at, interval '1 month 2 days' AS span, \
        [1, NULL] AS l, {'a': date '2024-01-01', 'it''s': [0.5]} AS st, map(['k'], [1]) AS m, NULL::bigint AS nothing, true AS yes;\n";
    let dumped = grouse_fed(&format!("{make}.dump t\n"), &[]).succeeded();
    let again = format!("{dumped}SELECT * FROM t;\n");
    let first = format!("{make}SELECT * FROM t;\n");
    assert_eq!(
        grouse_fed(&again, &["-csv"])
            .stdout
            .replace("count\n1\n", ""),
        grouse_fed(&first, &["-csv"]).succeeded(),
        "{dumped}"
    );
}

#[test]
fn nothing_is_written_to_trash() {
    check("trash", "SELECT number FROM numbers(1000)", "");
}

#[test]
fn other_names_of_formats() {
    check("tabs", "SELECT 1 AS a, 2 AS b", "a\tb\n1\t2\n");
    check("jsonl", "SELECT 1 AS a", "{\"a\":1}\n");
    assert_eq!(grouse(&["-csv", "SELECT 1 AS a"]).succeeded(), "a\n1\n");
    assert_eq!(
        grouse(&["-json", "SELECT 1 AS a"]).succeeded(),
        "[{\"a\":1}]\n"
    );
}
