//! Where SQL comes from: files, standard input, and commands among it.

use crate::grouse::{grouse, grouse_fed};

#[test]
fn a_file_of_statements() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.sql");
    let script = "-- a table\nCREATE TABLE t AS\n  SELECT number AS n FROM numbers(10);\n\n\
        SELECT count(*) AS c,\n       sum(n) AS s\nFROM t -- no semicolon at the end";
    std::fs::write(&file, script).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        grouse(&["--format", "csv", "-f", path]).succeeded(),
        "c,s\n10,45\n"
    );

    std::fs::write(
        &file,
        "SELECT 1 AS a;\n\n\nSELECT\n  nmber FROM numbers(1);\nSELECT 2 AS b;",
    )
    .unwrap();
    let ran = grouse(&["--format", "csv", "-f", path]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), "a\n1\n"),
        "{}",
        ran.stderr
    );
    let place = "   5 |   nmber FROM numbers(1);\n         ^\n";
    assert!(
        ran.stderr.contains(path) && ran.stderr.contains(place),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("line 5, column 3"), "{}", ran.stderr);
}

#[test]
fn standard_input() {
    assert_eq!(
        grouse_fed("SELECT 1 AS a;\nSELECT\n2 AS b", &["--format", "csv"]).succeeded(),
        "a\n1\nb\n2\n"
    );
    assert_eq!(
        grouse_fed("SELECT ';\n' AS a", &["--format", "csv", "-f", "-"]).succeeded(),
        "a\n\";\n\"\n"
    );
    assert_eq!(grouse_fed("", &[]).succeeded(), "");
    assert_eq!(
        grouse_fed("\u{feff}SELECT 1 AS a;\r\n", &["--format", "csv"]).succeeded(),
        "a\n1\n"
    );
}

#[test]
fn a_failure_ends_the_input() {
    let ran = grouse_fed("SELECT nonsense;\nSELECT 1 AS a;\n", &["--format", "csv"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("standard input"), "{}", ran.stderr);
}

#[test]
fn commands() {
    let script = ".mode csv\nCREATE TABLE t AS SELECT 1::bigint AS id, 'x' AS name;\n.tables\n.schema t\n\
        SELECT * FROM t;\n.mode\n.exit\nSELECT 2;\n";
    let text = grouse_fed(script, &[]).succeeded();
    let (tables, rest) = text.split_once("id,name\n").unwrap();
    assert!(
        tables.starts_with("t\nt\n  id    int64") && tables.contains("  name  varchar"),
        "{text}"
    );
    assert_eq!(rest, "1,x\ncsv\n");
}

#[test]
fn the_schema_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    std::fs::write(&file, "region,visits\nnorth,1\n").unwrap();
    let text = grouse_fed(&format!(".schema '{}'\n", file.display()), &[]).succeeded();
    assert!(
        text.contains("  region  varchar") && text.contains("  visits  int64"),
        "{text}"
    );
}

#[test]
fn the_timer() {
    let ran = grouse_fed(".timer off\nSELECT 1 AS a;\n", &[]).succeeded();
    assert!(ran.ends_with("1 row\n"), "{ran}");
    let ran = grouse_fed(".timer on\n.mode csv\nSELECT 1 AS a;\n", &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\n1\n"));
    assert!(ran.stderr.ends_with(" s\n"), "{}", ran.stderr);
}

#[test]
fn wrong_commands() {
    for (script, part) in [
        (".frobnicate\n", ".help"),
        (".mode xml\n", "ndjson"),
        (".timer\n", ".timer on|off"),
        (".maxrows x\n", ".maxrows [N]"),
        (".tabels\n", "did you mean .tables?"),
        (".s\n", ".schema, .separator, .shell, .show, .system"),
        ("\\z\n", "\\z"),
        (".schema nothing\n", "table 'nothing' does not exist\n"),
    ] {
        let message = grouse_fed(script, &[]).failed(1);
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    assert!(grouse_fed(".help\n", &[]).succeeded().contains(".tables"));
}

#[test]
fn data_in_a_pipe() {
    let sql = "SELECT k, sum(n) AS s FROM read_csv('/dev/stdin') GROUP BY k ORDER BY k";
    let ran = grouse_fed("k,n\na,1\nb,2\na,3\n", &["--format", "csv", sql]);
    assert_eq!(ran.succeeded(), "k,s\na,4\nb,2\n");
    let sql = "SELECT sum(n) AS s FROM read_json('/dev/stdin')";
    let ran = grouse_fed("{\"n\": 1}\n{\"n\": 2}\n", &["--format", "csv", sql]);
    assert_eq!(ran.succeeded(), "s\n3\n");
    let sql = "SELECT count(*) AS c FROM read_csv('/dev/stdin') a, read_csv('/dev/stdin') b";
    let ran = grouse_fed("k,n\na,1\n", &["--format", "csv", sql]);
    assert!(
        ran.code == Some(1) && ran.stderr.contains("twice"),
        "{}",
        ran.stderr
    );
}

// A damaged page index was passed over in silence.
#[test]
fn warnings_go_to_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    let path = path.to_str().unwrap();
    let sql = format!("COPY (SELECT number AS n FROM numbers(10)) TO '{path}'");
    grouse(&[sql.as_str()]).succeeded();
    let mut bytes = std::fs::read(path).unwrap();
    let end = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    // The page index lies before the footer.
    bytes[end - footer - 40..end - footer].fill(0xff);
    std::fs::write(path, bytes).unwrap();
    let sql = format!("SELECT sum(n) AS s FROM '{path}'; SELECT count(*) AS c FROM '{path}'");
    let ran = grouse(&["--format", "csv", sql.as_str()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "s\n45\nc\n10\n"));
    assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("page index") && ran.stderr.contains(path));
}
