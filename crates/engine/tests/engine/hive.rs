//! Folders whose names are values, names that are there twice, files that are named twice.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::support::{check, error, rows, run, sample, session, write_parquet};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use tempfile::TempDir;

fn put(folder: &TempDir, name: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match name.ends_with(".parquet") {
        true => write_parquet(&path, &sample()),
        false => fs::write(&path, "id,name\n1,a\n2,b\n3,c\n").unwrap(),
    }
}

fn at(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

// `WHERE month = 7` found nothing in `month=07`, because DataFusion looked for a folder `month=7`.
#[test]
fn padded_numbers_are_numbers() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for month in ["07", "8", "12"] {
        put(&folder, &format!("h/year=2024/month={month}/x.parquet"));
    }
    let h = at(&folder, "h");
    for (filter, expected) in [
        ("month = 7", "3"),
        ("month <= 7", "3"),
        ("month > 7", "6"),
        ("month IN (7, 12)", "6"),
        ("month BETWEEN 8 AND 11", "3"),
        ("year = 2024 AND month = 12", "3"),
        ("month <> 7", "6"),
        ("id = 1 AND month = 7", "1"),
        ("month IS NULL", "0"),
        ("month = id", "0"),
        ("month - 6 = id", "2"),
    ] {
        for from in [
            format!("'{h}'"),
            format!("'{h}/*/*/*.parquet'"),
            format!("read_parquet('{h}/**/*.parquet')"),
        ] {
            check(
                &session,
                &format!("SELECT count(*) FROM {from} WHERE {filter}"),
                &[expected],
            );
        }
    }
    check(
        &session,
        &format!("SELECT month, count(*) FROM '{h}' GROUP BY month ORDER BY month"),
        &["7|3", "8|3", "12|3"],
    );
    let view = format!("CREATE VIEW v AS SELECT * FROM '{h}'");
    run(&session, &view).unwrap();
    check(
        &session,
        "SELECT count(*), min(month) FROM v WHERE month < 9",
        &["6|7"],
    );
}

#[test]
fn types_come_from_all_values() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for value in ["5", "__HIVE_DEFAULT_PARTITION__", "12"] {
        put(&folder, &format!("n/k={value}/x.parquet"));
    }
    put(&folder, "d/day=2024-01-31/x.csv");
    put(&folder, "d/day=2024-02-01/x.csv");
    put(&folder, "t/k=a%2Fb%20c/x.csv");
    put(&folder, "t/k=7/x.csv");
    put(&folder, "t/k=/x.csv");
    let n = at(&folder, "n");
    check(
        &session,
        &format!("SELECT k, count(*) FROM '{n}' GROUP BY k ORDER BY k NULLS LAST"),
        &["5|3", "12|3", "NULL|3"],
    );
    for (filter, expected) in [
        ("k IS NULL", "3"),
        ("k = 5", "3"),
        ("k IS NOT NULL", "6"),
        ("NOT k = 5", "3"),
    ] {
        check(
            &session,
            &format!("SELECT count(*) FROM '{n}' WHERE {filter}"),
            &[expected],
        );
    }
    check(
        &session,
        &format!("SELECT min(k), max(k), count(k), count(*) FROM '{n}'"),
        &["5|12|6|9"],
    );
    let d = at(&folder, "d");
    check(
        &session,
        &format!(
            "SELECT max(day), arrow_typeof(max(day)) FROM '{d}' WHERE day < DATE '2024-02-01'"
        ),
        &["2024-01-31|Date32"],
    );
    let t = at(&folder, "t");
    check(
        &session,
        &format!("SELECT k, count(*) FROM '{t}' GROUP BY k ORDER BY k"),
        &["|3", "7|3", "a/b c|3"],
    );
    check(
        &session,
        &format!("SELECT count(*) FROM '{t}' WHERE k = ''"),
        &["3"],
    );
}

#[test]
fn options() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    put(&folder, "h/k=07/x.parquet");
    put(&folder, "h/k=12/x.parquet");
    let glob = format!("{}/*/*.parquet", at(&folder, "h"));
    let first = |options: &str| {
        format!("SELECT * FROM read_parquet('{glob}', {options}) ORDER BY id, 3 LIMIT 1")
    };
    check(&session, &first("hive_partitioning => true"), &["1|a|7"]);
    check(
        &session,
        &first("hive_types => {'k': 'VARCHAR'}"),
        &["1|a|07"],
    );
    check(
        &session,
        &first("hive_types => {'k': DOUBLE}"),
        &["1|a|7.0"],
    );
    check(
        &session,
        &first("hive_types_autocast => false"),
        &["1|a|07"],
    );
    let none = format!("SELECT * FROM read_parquet('{glob}', hive_partitioning => false) LIMIT 1");
    check(&session, &none, &["1|a"]);
    let names = format!(
        "SELECT DISTINCT filename FROM read_parquet('{glob}', filename => true) ORDER BY 1"
    );
    assert_eq!(
        rows(&session, &names),
        [
            at(&folder, "h/k=07/x.parquet"),
            at(&folder, "h/k=12/x.parquet")
        ]
    );
    let one = at(&folder, "h/k=07/x.parquet");
    check(&session, &format!("SELECT max(k) FROM '{one}'"), &["7"]);
    let wrong = format!("SELECT * FROM read_parquet('{glob}', hive_types => {{'k': DATE}})");
    assert!(
        error(&session, &wrong).to_string().contains("k=07"),
        "{}",
        error(&session, &wrong)
    );
    let wrong = format!("SELECT * FROM read_parquet('{glob}', hive_types => {{'j': DATE}})");
    assert!(error(&session, &wrong).to_string().contains("'j=…'"));
}

#[test]
fn columns_in_path_and_file_are_those_of_the_path() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    put(&folder, "h/name=x/id=07/f.parquet");
    let h = at(&folder, "h");
    check(&session, &format!("SELECT * FROM '{h}' LIMIT 1"), &["7|x"]);
    check(
        &session,
        &format!("SELECT count(*) FROM '{h}' WHERE id = 7 AND name = 'x'"),
        &["3"],
    );
    check(
        &session,
        &format!("SELECT count(*) FROM '{h}' WHERE id = 1"),
        &["0"],
    );
}

#[test]
fn stray_and_hidden_files() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for name in [
        "i/k=1/a.parquet",
        "i/k=1/.a.parquet",
        "i/k=1/_a.parquet",
        "i/k=1/_temporary/0/a.parquet",
        "i/_delta_log/a.parquet",
        "j/_k=1/a.parquet",
    ] {
        put(&folder, name);
    }
    let i = at(&folder, "i");
    for from in [
        format!("'{i}'"),
        format!("'{i}/**/*.parquet'"),
        format!("'{i}/*/*.parquet'"),
    ] {
        check(
            &session,
            &format!("SELECT count(*), max(k) FROM {from}"),
            &["3|1"],
        );
    }
    for named in [
        "i/k=1/.a.parquet",
        "i/*/.a.parquet",
        "i/_delta_log/*.parquet",
    ] {
        check(
            &session,
            &format!("SELECT count(*) FROM '{}'", at(&folder, named)),
            &["3"],
        );
    }
    check(
        &session,
        &format!("SELECT max(_k) FROM '{}'", at(&folder, "j")),
        &["1"],
    );
    put(&folder, "i/stray.parquet");
    let stray = error(&session, &format!("SELECT count(*) FROM '{i}'")).to_string();
    assert!(
        stray.contains("stray.parquet") && stray.contains("hive_partitioning"),
        "{stray}"
    );
    fs::rename(
        folder.path().join("i/stray.parquet"),
        folder.path().join("i/k=1/stray.csv"),
    )
    .unwrap();
    let kinds = error(&session, &format!("SELECT count(*) FROM '{i}'")).to_string();
    assert!(
        kinds.contains("stray.csv") && kinds.contains("a.parquet"),
        "{kinds}"
    );
}

// NULL and '' were both written to `k=`, NULL numbers to `k=0`.
#[test]
fn copy_writes_null_apart() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let values = "(VALUES (1, '', 10, DATE '2024-01-01'), (2, NULL, NULL, NULL), (3, 'a/b c=d', 0, DATE '2024-02-01')) AS t(a, k, n, d)";
    for (column, null, others) in [
        ("k", "2", ["1||", "3|a/b c=d|"]),
        ("n", "2", ["1|10|", "3|0|"]),
        ("d", "2", ["1|2024-01-01|", "3|2024-02-01|"]),
    ] {
        for format in ["PARQUET", "CSV", "JSON"] {
            let target = at(&folder, &format!("{column}-{format}/"));
            let sql = format!(
                "COPY (SELECT a, {column} FROM {values}) TO '{target}' STORED AS {format} PARTITIONED BY ({column})"
            );
            run(&session, &sql).unwrap();
            assert!(
                Path::new(&target)
                    .join(format!("{column}=__HIVE_DEFAULT_PARTITION__"))
                    .is_dir()
            );
            check(
                &session,
                &format!("SELECT a FROM '{target}' WHERE {column} IS NULL"),
                &[null],
            );
            let sql = format!(
                "SELECT a, {column}, '' FROM '{target}' WHERE {column} IS NOT NULL ORDER BY a"
            );
            check(&session, &sql, &others);
        }
    }
}

// DataFusion's sinks took no NULL for a column of folders.
#[test]
fn insert_writes_null_apart() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for format in ["PARQUET", "CSV", "JSON"] {
        let target = at(&folder, &format!("{format}/"));
        let create = format!(
            "CREATE EXTERNAL TABLE {format}_t (a BIGINT, k INT) STORED AS {format} PARTITIONED BY (k) LOCATION '{target}'"
        );
        run(&session, &create).unwrap();
        run(
            &session,
            &format!("INSERT INTO {format}_t VALUES (1, 5), (2, NULL)"),
        )
        .unwrap();
        check(
            &session,
            &format!("SELECT a, k FROM {format}_t ORDER BY a"),
            &["1|5", "2|NULL"],
        );
        check(
            &session,
            &format!("SELECT a FROM {format}_t WHERE k IS NULL"),
            &["2"],
        );
    }
}

#[test]
fn files_named_twice_are_read_twice_and_linked_folders_once() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for name in ["x.csv", "x.parquet", "d/y.csv"] {
        put(&folder, name);
    }
    fs::write(
        folder.path().join("x.json"),
        "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n",
    )
    .unwrap();
    for (function, file) in [
        ("csv", "x.csv"),
        ("parquet", "x.parquet"),
        ("json", "x.json"),
    ] {
        let file = at(&folder, file);
        check(
            &session,
            &format!("SELECT count(*), sum(id) FROM read_{function}(['{file}', '{file}'])"),
            &["6|12"],
        );
        check(
            &session,
            &format!(
                "SELECT id, count(*) FROM read_{function}(['{file}', '{file}', '{file}']) GROUP BY id ORDER BY id"
            ),
            &["1|3", "2|3", "3|3"],
        );
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(".", folder.path().join("d/self")).unwrap();
        std::os::unix::fs::symlink("..", folder.path().join("d/up")).unwrap();
        fs::remove_file(folder.path().join("x.parquet")).unwrap();
        fs::remove_file(folder.path().join("x.json")).unwrap();
        let d = at(&folder, "d");
        check(&session, &format!("SELECT count(*) FROM '{d}'"), &["6"]);
    }
}

// Of two columns of one name one was lost.
#[test]
fn names_that_are_there_twice() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let schema = Schema::new(vec![field("a"), field("a"), field("b"), field("a_1")]);
    let column = |value: i64| Arc::new(Int64Array::from(vec![value, value + 10])) as ArrayRef;
    let batch = RecordBatch::try_new(
        Arc::new(schema),
        vec![column(1), column(2), column(3), column(4)],
    )
    .unwrap();
    let path = folder.path().join("twice.parquet");
    write_parquet(&path, &batch);
    let path = path.display();
    check(
        &session,
        &format!("SELECT * FROM '{path}'"),
        &["1|2|3|4", "11|12|13|14"],
    );
    check(
        &session,
        &format!("SELECT a, a_1, b, a_1_1 FROM '{path}' WHERE a_1 = 12"),
        &["11|12|13|14"],
    );
    check(
        &session,
        &format!("SELECT a_1, sum(a_1_1), min(a), max(a_1) FROM '{path}' GROUP BY a_1 ORDER BY 1"),
        &["2|4|1|2", "12|14|11|12"],
    );
    check(
        &session,
        &format!("SELECT min(a), max(a), min(a_1), max(a_1), count(a_1_1) FROM '{path}'"),
        &["1|11|2|12|2"],
    );
}
