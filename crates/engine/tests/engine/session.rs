//! Sessions: statements, options, parameters, the life of a query.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{error, rows, run, sample, session, write_parquet};
use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use futures::{StreamExt, TryStreamExt};
use grouse::{Error, Params, Session, SessionOptions};

#[test]
fn scripts_are_cut_into_statements() {
    let script = "SELECT 1; -- one; not two\n\n  SELECT ';' /* ; */ AS \"a;b\";;\nSELECT 'é', 2";
    let statements = Session::split(script).unwrap();
    let strings: Vec<&str> = statements
        .iter()
        .map(|statement| statement.text.as_str())
        .collect();
    assert_eq!(
        strings,
        ["SELECT 1", "SELECT ';' /* ; */ AS \"a;b\"", "SELECT 'é', 2"]
    );
    assert_eq!(statements[1].start, grouse::Position { line: 3, column: 3 });
    for statement in &statements {
        assert!(script[statement.offset..].starts_with(&statement.text));
    }
    assert_eq!(Session::split(" ; -- nothing\n").unwrap(), []);
    assert!(matches!(
        Session::split("SELECT 1;\nSELECT 'x"),
        Err(Error::Syntax { line: 2, .. })
    ));
}

#[test]
fn options_are_set_shown_and_reset() {
    let session = session();
    run(&session, "SET memory_limit = '2GB'").unwrap();
    run(&session, "SET grouse.batch_size = 1000").unwrap();
    run(&session, "SET group_by_operator = datafusion").unwrap();
    assert_eq!(session.options().memory_limit, Some(2_000_000_000));
    assert_eq!(session.options().batch_size, 1000);
    assert_eq!(
        rows(&session, "SHOW batch_size"),
        ["grouse.batch_size|1000"]
    );
    assert_eq!(
        rows(&session, "SHOW datafusion.execution.batch_size"),
        ["datafusion.execution.batch_size|1000"]
    );
    run(&session, "RESET batch_size").unwrap();
    assert_eq!(
        session.options().batch_size,
        SessionOptions::default().batch_size
    );
    run(
        &session,
        "SET datafusion.execution.parquet.pushdown_filters = true",
    )
    .unwrap();
    assert_eq!(
        rows(
            &session,
            "SHOW datafusion.execution.parquet.pushdown_filters"
        ),
        ["datafusion.execution.parquet.pushdown_filters|true"]
    );
}

#[test]
fn wrong_options_are_errors_that_name_them() {
    let session = session();
    for (sql, part) in [
        ("SET threads = 'many'", "threads"),
        ("SET threads = -3", "threads"),
        ("SET theads = 3", "threads"),
        ("SET memory_limit = '5 apples'", "memory_limit"),
        ("SET datafusion.execution.batch_size = 0", "batch_size"),
        ("SET datafusion.nonsense = 1", "nonsense"),
    ] {
        let error = error(&session, sql);
        assert!(matches!(error, Error::Invalid { .. }), "{sql}: {error:?}");
        assert!(error.to_string().contains(part), "{sql}: {error}");
    }
}

#[test]
fn threads_change_while_the_session_lives() {
    let session = session();
    for threads in [1, 5, 2] {
        run(&session, &format!("SET threads = {threads}")).unwrap();
        assert_eq!(
            session.context().state().config().target_partitions(),
            threads
        );
        assert_eq!(
            rows(
                &session,
                "SELECT count(*) FROM numbers(1000) WHERE number % 2 = 0"
            ),
            ["500"]
        );
    }
}

#[test]
fn a_limit_that_the_threads_exceed_is_refused_with_the_smallest_that_works() {
    let session = session();
    for (sql, smallest) in [
        ("SET memory_limit = '10MB'", "16777216"),
        ("SET threads = 200", "1677721600"),
    ] {
        match error(&session, sql) {
            Error::Invalid { name, message } => {
                assert_eq!(name, "memory_limit", "{sql}");
                assert!(message.contains(smallest), "{sql}: {message}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    let options = session.options();
    assert_eq!((options.threads, options.memory_limit), (2, Some(1 << 30)));
    for name in ["memory_limit", "temp_directory", "max_temp_directory_size"] {
        for sql in [
            format!("SET datafusion.runtime.{name} = '1G'"),
            format!("RESET datafusion.runtime.{name}"),
        ] {
            let error = error(&session, &sql).to_string();
            assert!(error.contains(&format!("SET {name}")), "{sql}: {error}");
        }
    }
    run(&session, "SET memory_limit = '16MiB'").unwrap();
    run(&session, "SET threads = 1").unwrap();
    run(&session, "SET memory_limit = '10MB'").unwrap();
}

#[test]
fn memory_is_bounded_and_the_error_is_typed() {
    let session = session();
    run(&session, "SET memory_limit = '20MB'").unwrap();
    run(&session, "SET group_by_operator = datafusion").unwrap();
    run(
        &session,
        "SET datafusion.execution.sort_spill_reservation_bytes = 0",
    )
    .unwrap();
    let sql = "SELECT array_agg(number) FROM numbers(10000000)";
    match error(&session, sql) {
        Error::OutOfMemory(out) => {
            assert_eq!(out.limit_bytes, 20_000_000);
            assert!(!out.operator.is_empty());
        }
        other => panic!("{other:?}"),
    }
    run(&session, "SET memory_limit = '4GB'").unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM numbers(10)"), ["10"]);
}

#[test]
fn parameters() {
    let session = session();
    let run_with = |sql: &str, params: Params| {
        session.handle().block_on(async {
            let query = session.query_with(sql, params).await?;
            let batches: Vec<_> = query.execute()?.try_collect().await.map_err(Error::from)?;
            Ok::<_, Error>(batches.iter().map(|batch| batch.num_rows()).sum::<usize>())
        })
    };
    let five = ScalarValue::UInt64(Some(5));
    let sql = "SELECT * FROM numbers(10) WHERE number < $1";
    assert_eq!(run_with(sql, Params::Positional(vec![five.clone()])), Ok(5));
    let sql = "SELECT * FROM numbers(10) WHERE number < ? AND number >= ?";
    assert_eq!(
        run_with(
            sql,
            Params::Positional(vec![five.clone(), ScalarValue::Int64(Some(2))])
        ),
        Ok(3)
    );
    let sql = "SELECT * FROM numbers(10) WHERE number < $limit";
    let named = HashMap::from([("limit".to_string(), five.clone())]);
    assert_eq!(run_with(sql, Params::Named(named)), Ok(5));
    let is_invalid = |error: Error| matches!(error.kind(), Error::Invalid { .. });
    assert!(run_with(sql, Params::None).is_err_and(is_invalid));
    assert!(run_with("SELECT 1", Params::Positional(vec![five])).is_err_and(is_invalid));
}

/// A statement is described without being run.
#[test]
fn described() {
    let session = session();
    let describe = |sql: &str| session.handle().block_on(session.describe(sql));
    let run = |sql: &str| session.handle().block_on(session.query(sql)).map(|_| ());
    let names = |sql: &str| {
        let columns = describe(sql).map(|described| described.columns);
        columns.map(|columns| {
            let names = columns.fields().iter().map(|field| field.name().clone());
            names.collect::<Vec<_>>()
        })
    };
    run("CREATE TABLE described (a BIGINT, b VARCHAR)").expect("it creates");
    assert_eq!(
        names("SELECT a, b || ? AS c FROM described"),
        Ok(vec!["a".into(), "c".into()])
    );
    for changing in [
        "CREATE TABLE other AS SELECT 1 AS a",
        "INSERT INTO described VALUES (1, 'x')",
        "SET batch_size = 1000",
        "DROP TABLE described",
        "COPY described TO '/nowhere/described.csv'",
    ] {
        assert_eq!(names(changing), Ok(Vec::new()), "{changing}");
    }
    assert_eq!(session.tables(), ["described"]);
    assert_ne!(
        session.options().get("batch_size"),
        Ok(Some("1000".to_string()))
    );
    let parameters = |sql: &str| describe(sql).map(|described| described.parameters);
    let typed = vec![
        ("1".to_string(), Some(DataType::Int64)),
        ("2".to_string(), None),
    ];
    assert_eq!(
        parameters("SELECT a FROM described WHERE a = ? AND ? IS NULL"),
        Ok(typed)
    );
    let named = parameters("SELECT $low, $high, $low").map(|found| {
        let names = found.into_iter().map(|(name, _)| name);
        names.collect::<Vec<_>>()
    });
    assert_eq!(named, Ok(vec!["high".to_string(), "low".to_string()]));
    assert!(matches!(
        describe("SELECT a FROM nowhere"),
        Err(Error::UnknownTable { .. })
    ));
}

/// DataFusion takes a parameter without a type for NULL, of which there is no `||` and no sum.
#[test]
fn parameters_have_the_types_of_their_values() {
    let session = session();
    let answer = |sql: &str, values: Vec<ScalarValue>| {
        session.handle().block_on(async {
            let query = session.query_with(sql, Params::Positional(values)).await?;
            let batches: Vec<RecordBatch> =
                query.execute()?.try_collect().await.map_err(Error::from)?;
            let text = array_value_to_string(batches[0].column(0), 0).unwrap();
            Ok::<_, Error>((query.schema().field(0).name().clone(), text))
        })
    };
    let named = |name: &str, value: &str| Ok::<_, Error>((name.to_string(), value.to_string()));
    let (one, two) = (ScalarValue::from(1_i64), ScalarValue::from(2_i64));
    let letters = vec![ScalarValue::from("a"), ScalarValue::from("b")];
    assert_eq!(
        answer("SELECT ? || ?", letters.clone()),
        named("? || ?", "ab")
    );
    assert_eq!(
        answer("SELECT (SELECT ? || ?) AS x", letters),
        named("x", "ab")
    );
    assert_eq!(
        answer("SELECT $1 << $2 AS x", vec![one, two.clone()]),
        named("x", "4")
    );
    assert_eq!(
        answer("SELECT sum(?) AS x", vec![two.clone()]),
        named("x", "2")
    );
    assert_eq!(
        answer("SELECT count(*) AS x FROM numbers(?)", vec![two]),
        named("x", "2")
    );
}

#[test]
fn tables_come_and_go() {
    let session = session();
    let batch = sample();
    let table = Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap());
    assert_eq!(
        session
            .unresolved("SELECT * FROM t JOIN numbers(3) n ON n.number = t.id, 'x.csv'")
            .unwrap(),
        ["t"]
    );
    session.register("t", Arc::clone(&table) as _).unwrap();
    session.register("t", table).unwrap();
    assert_eq!(session.tables(), ["t"]);
    assert_eq!(
        session.unresolved("SELECT * FROM t").unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(rows(&session, "SELECT max(name) FROM t"), ["c"]);
    assert!(
        run(&session, "CREATE TABLE u AS SELECT id FROM t WHERE id > 1")
            .unwrap()
            .is_empty()
    );
    run(&session, "CREATE VIEW v AS SELECT id * 2 AS d FROM u").unwrap();
    assert_eq!(rows(&session, "SELECT sum(d) FROM v"), ["10"]);
    assert_eq!(session.tables(), ["t", "u", "v"]);
    run(&session, "DROP VIEW v").unwrap();
    session.deregister("t").unwrap();
    session.deregister("t").unwrap();
    assert_eq!(session.tables(), ["u"]);
}

#[test]
fn the_schema_is_the_batches_schema() {
    let session = session();
    session.handle().block_on(async {
        let query = session
            .query("SELECT 1 AS a UNION ALL SELECT 2.5")
            .await
            .unwrap();
        let schema = query.schema();
        let mut stream = query.execute().unwrap();
        while let Some(batch) = stream.next().await {
            assert_eq!(batch.unwrap().schema(), schema);
        }
    });
}

#[test]
fn dropping_the_stream_stops_the_workers() {
    let session = session();
    let sql = "SELECT count(*) FROM numbers(1000000000000000) WHERE number % 3 = 1";
    session.handle().block_on(async {
        let query = session.query(sql).await.unwrap();
        let mut stream = query.execute().unwrap();
        let first = tokio::time::timeout(Duration::from_millis(50), stream.next()).await;
        assert!(first.is_err(), "the query cannot be over");
        drop(stream);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let rows = query.progress().input_rows;
        assert!(rows > 0);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(query.progress().input_rows, rows, "a worker still runs");
    });
}

#[test]
fn a_slow_consumer_holds_the_query_back() {
    let session = session();
    session.handle().block_on(async {
        let query = session
            .query("SELECT * FROM numbers(100000000)")
            .await
            .unwrap();
        let mut stream = query.execute().unwrap();
        stream.next().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let progress = query.progress();
        assert!(progress.input_rows < 1_000_000, "{progress:?}");
        assert!(progress.input_share.unwrap() < 0.01, "{progress:?}");
        assert!(
            progress.elapsed >= Duration::from_millis(50),
            "{progress:?}"
        );
    });
}

#[test]
fn consumers_may_sit_on_any_runtime_or_on_none() {
    let session = session();
    let query =
        futures::executor::block_on(session.query("SELECT * FROM numbers(100000)")).unwrap();
    let stream = query.execute().unwrap();
    let other = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let batches: Vec<_> = other.block_on(stream.try_collect()).unwrap();
    assert_eq!(
        batches.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        100_000
    );
    let progress = query.progress();
    assert_eq!(progress.input_rows, 100_000);
    assert_eq!(progress.input_share, Some(1.0));
}

#[test]
fn a_session_may_be_dropped_inside_its_own_runtime() {
    let session = session();
    let handle = session.handle().clone();
    let start = Instant::now();
    let _ = handle.block_on(async move {
        let query = session
            .query("SELECT * FROM numbers(10000000)")
            .await
            .unwrap();
        let mut stream = query.execute().unwrap();
        stream.next().await.unwrap().unwrap();
        drop(session);
        drop(query);
        stream.next().await.unwrap().unwrap();
        tokio::spawn(async move { drop(stream) }).await
    });
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn duckdb_like_sql_is_understood() {
    let session = session();
    for (sql, expected) in [
        (
            "SELECT number % 2 AS k, count(*) AS n FROM numbers(10) GROUP BY k ORDER BY k",
            "0|5",
        ),
        (
            "SELECT number % 2 AS k, count(*) AS n FROM numbers(10) GROUP BY ALL ORDER BY k",
            "0|5",
        ),
        (
            "SELECT count(*) FILTER (WHERE number > 3) FROM numbers(10)",
            "6",
        ),
        ("SELECT * EXCLUDE (n) FROM (SELECT 1 AS n, 2 AS m)", "2"),
        ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", "1"),
        (
            "SELECT number AS a FROM numbers(5) QUALIFY row_number() OVER (ORDER BY number) = 1",
            "0",
        ),
    ] {
        let rows = rows(&session, sql);
        assert_eq!(rows.first().map(String::as_str), Some(expected), "{sql}");
    }
}

fn column<const ROWS: usize>(name: &str, values: [i64; ROWS]) -> (&str, ArrayRef) {
    (name, Arc::new(Int64Array::from_iter_values(values)))
}

fn strings<'a, const ROWS: usize>(name: &'a str, values: [&str; ROWS]) -> (&'a str, ArrayRef) {
    (name, Arc::new(StringArray::from_iter_values(values)))
}

fn register(session: &Session, name: &str, batch: &RecordBatch) {
    let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
    session.register(name, Arc::new(table)).unwrap();
}

fn hits() -> RecordBatch {
    RecordBatch::try_from_iter([
        column("UserID", [1, 2, 2]),
        strings("URL", ["a", "b", "b"]),
        column("Width", [10, 20, 30]),
    ])
    .unwrap()
}

/// `Hits` and `visits`, with columns in mixed case.
fn with_hits() -> Session {
    let session = session();
    register(&session, "Hits", &hits());
    let visits =
        RecordBatch::try_from_iter([column("UserID", [2, 3]), strings("Name", ["x", "y"])])
            .unwrap();
    register(&session, "visits", &visits);
    session
}

#[test]
fn names_match_whatever_their_case() {
    let session = with_hits();
    let cases: &[(&str, &[&str])] = &[
        ("SELECT UserID FROM hits ORDER BY userid", &["1", "2", "2"]),
        (
            "SELECT USERID, count(*) AS Total FROM HITS GROUP BY userid ORDER BY total DESC",
            &["2|2", "1|1"],
        ),
        (
            "SELECT UserID AS u, sum(Width) FROM hits GROUP BY u ORDER BY u",
            &["1|10", "2|50"],
        ),
        (
            "SELECT UserID FROM hits GROUP BY userid HAVING SUM(width) > 20",
            &["2"],
        ),
        (
            "SELECT count(*) FILTER (WHERE width > 10), max(url) FROM hits",
            &["2|b"],
        ),
        (
            "SELECT h.userid, V.Name FROM hits h JOIN visits AS v ON h.USERID = v.userid LIMIT 1",
            &["2|x"],
        ),
        (
            "SELECT UserID, name FROM hits JOIN visits USING (userid)",
            &["2|x", "2|x"],
        ),
        (
            "WITH c AS (SELECT UserID AS userid, Width FROM hits) \
             SELECT userid, max(width) FROM c GROUP BY userid ORDER BY 1",
            &["1|10", "2|30"],
        ),
        (
            "SELECT total FROM (SELECT sum(WIDTH) AS Total FROM hits) AS s",
            &["60"],
        ),
        (
            "SELECT url FROM hits h WHERE EXISTS (SELECT 1 FROM visits v WHERE v.userid = h.userid)",
            &["b", "b"],
        ),
        (
            "SELECT url, row_number() OVER (PARTITION BY userid ORDER BY WIDTH DESC) AS n \
             FROM hits ORDER BY URL, N",
            &["a|1", "b|1", "b|2"],
        ),
        (
            "SELECT UserID FROM hits UNION SELECT userid FROM visits ORDER BY USERID",
            &["1", "2", "3"],
        ),
        (
            "SELECT * EXCLUDE (url, WIDTH) FROM hits ORDER BY 1",
            &["1", "2", "2"],
        ),
        (
            "SELECT url || '!' FROM hits ORDER BY URL || '!'",
            &["a!", "b!", "b!"],
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(rows(&session, sql), *expected, "{sql}");
    }
}

#[test]
fn an_alias_comes_before_a_column_in_another_case() {
    let session = with_hits();
    for (sql, expected) in [
        (
            "SELECT -Width AS userid FROM hits ORDER BY userid",
            ["-30", "-20", "-10"],
        ),
        (
            "SELECT -Width AS width FROM hits ORDER BY width",
            ["-30", "-20", "-10"],
        ),
    ] {
        assert_eq!(rows(&session, sql), expected, "{sql}");
    }
}

#[test]
fn columns_of_files_match_whatever_their_case() {
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("hits.parquet");
    write_parquet(&parquet, &hits());
    let csv = folder.path().join("visits.csv");
    std::fs::write(&csv, "UserID,Name\n2,x\n3,y\n").unwrap();
    let session = session();
    let sql = format!(
        "SELECT UserID, count(*) FROM '{}' WHERE url <> 'c' GROUP BY UserID ORDER BY userid",
        parquet.display()
    );
    assert_eq!(rows(&session, &sql), ["1|1", "2|2"]);
    let query = session.handle().block_on(session.query(&sql)).unwrap();
    assert_eq!(query.schema().field(0).name(), "UserID");
    let sql = format!(
        "SELECT max(userid), min(NAME) FROM read_csv('{}')",
        csv.display()
    );
    assert_eq!(rows(&session, &sql), ["3|x"]);
}

#[test]
fn quoted_names_stay_exact() {
    let session = with_hits();
    match error(&session, "SELECT \"userid\" FROM hits") {
        Error::UnknownColumn { name, nearest, .. } => {
            let nearest: Vec<&str> = nearest.iter().map(String::as_str).collect();
            let meant = ["'userid' (text takes single quotes)", "UserID"];
            assert_eq!(
                (name.as_str(), nearest.as_slice()),
                ("userid", meant.as_slice())
            );
        }
        other => panic!("{other:?}"),
    }
    match error(&session, "SELECT UserID, nme FROM visits") {
        Error::UnknownColumn {
            name,
            nearest,
            position,
        } => {
            assert_eq!((name.as_str(), nearest), ("nme", vec!["Name".into()]));
            let place = grouse::Position {
                line: 1,
                column: 16,
            };
            assert_eq!(position, Some(place));
        }
        other => panic!("{other:?}"),
    }
    let mixed = RecordBatch::try_from_iter([
        column("a", [1]),
        column("A", [2]),
        column("Bc", [3]),
        column("bC", [4]),
    ])
    .unwrap();
    register(&session, "mixed", &mixed);
    assert_eq!(
        rows(&session, "SELECT A, \"A\", \"bC\" FROM mixed"),
        ["1|2|4"]
    );
    let error = error(&session, "SELECT bc FROM mixed");
    assert!(matches!(error, Error::UnknownColumn { .. }), "{error:?}");
}

#[test]
fn a_table_in_another_case_is_found_if_it_is_the_only_one() {
    let session = with_hits();
    let unresolved = |sql| session.unresolved(sql).unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM HITS"), ["3"]);
    assert_eq!(unresolved("SELECT * FROM hits, absent"), ["absent"]);
    register(&session, "HITS", &sample());
    assert_eq!(unresolved("SELECT * FROM hits"), ["hits"]);
    assert_eq!(
        rows(&session, "SELECT max(\"UserID\") FROM \"Hits\""),
        ["2"]
    );
    session.deregister("hits").unwrap();
    assert_eq!(session.tables(), ["HITS", "Hits", "visits"]);
    session.deregister("HITS").unwrap();
    run(&session, "DROP TABLE hits").unwrap();
    assert_eq!(session.tables(), ["visits"]);
}

#[test]
fn what_takes_longer_than_the_timeout_ends() {
    let session = session();
    let long = "SELECT sum(number % 7) FROM numbers(1000000000000)";
    run(&session, "SET statement_timeout = '50ms'").unwrap();
    for sql in [long, &format!("CREATE TABLE t AS {long}")] {
        let error = error(&session, sql);
        let limit = "50ms".to_string();
        assert_eq!(error, Error::Timeout { limit }, "{sql}");
    }
    assert!(session.tables().is_empty());
    run(&session, "RESET statement_timeout").unwrap();
    assert_eq!(
        rows(&session, "SELECT sum(number % 7) FROM numbers(7)"),
        ["21"]
    );
    let error = error(&session, "SET statement_timeout = 'soon'").to_string();
    assert!(
        error.contains("'soon'") && error.contains("'30s'"),
        "{error}"
    );
}

/// CREATE OR REPLACE and RENAME removed the old table before the new one was there: a query in between found neither.
#[test]
fn a_table_takes_the_place_of_another_at_once() {
    let session = session();
    rows(&session, "CREATE VIEW v AS SELECT 1 AS x");
    rows(&session, "CREATE TABLE t AS SELECT 1 AS x");
    let changing = session.clone();
    let changes = std::thread::spawn(move || {
        for round in 0..100 {
            for kind in ["VIEW v", "TABLE t"] {
                rows(
                    &changing,
                    &format!("CREATE OR REPLACE {kind} AS SELECT {round} AS x"),
                );
            }
        }
    });
    while !changes.is_finished() {
        assert_eq!(rows(&session, "SELECT count(*) FROM v, t"), ["1"]);
    }
    changes.join().unwrap();
    assert_eq!(rows(&session, "SELECT v.x, t.x FROM v, t"), ["99|99"]);
    rows(&session, "ALTER TABLE t RENAME TO u");
    assert_eq!(session.tables(), ["u", "v"]);
    error(
        &session,
        "CREATE OR REPLACE EXTERNAL TABLE u STORED AS PARQUET LOCATION '/no/such/file.parquet'",
    );
    assert_eq!(rows(&session, "SELECT x FROM u"), ["99"]);
    // A view that replaces what it reads keeps on reading that.
    rows(
        &session,
        "CREATE OR REPLACE VIEW u AS SELECT x + 1 AS x FROM u",
    );
    assert_eq!(rows(&session, "SELECT x FROM u"), ["100"]);
    rows(&session, "DROP VIEW u");
    assert_eq!(session.tables(), ["v"]);
}

#[test]
fn a_query_is_a_table_of_another() {
    let session = session();
    let inlined = |text: &str, params: Params, tables| {
        let planned = session.inlined(text, params, tables);
        session.handle().block_on(planned).unwrap()
    };
    let first = "SELECT number AS n FROM numbers(100) WHERE number >= $1";
    let values = Params::Positional(vec![ScalarValue::from(90_i64)]);
    let first = inlined(first, values, Arc::default()).expect("it is a query");
    let tables = Arc::new(HashMap::from([("base".to_string(), first)]));
    let second = inlined("SELECT n + 1 AS n FROM base", Params::None, tables);
    let second = second.expect("it is a query");
    let tables = Arc::new(HashMap::from([("base".to_string(), second)]));
    let query = session.query_over(
        "SELECT count(*) AS c, max(n) AS m FROM base WHERE n > 95",
        Params::None,
        tables,
    );
    let query = session.handle().block_on(query).unwrap();
    let plan = displayable(query.plan().as_ref()).indent(true).to_string();
    assert!(!plan.contains("StreamingTable"), "{plan}");
    let batches: Vec<RecordBatch> = session
        .handle()
        .block_on(query.execute().unwrap().try_collect())
        .unwrap();
    let value =
        |column: usize| array_value_to_string(batches[0].column(column), 0).expect("it has a text");
    assert_eq!((value(0), value(1)), ("5".to_string(), "100".to_string()));
}

#[test]
fn other_statements_are_no_tables() {
    let session = session();
    for text in [
        "SET batch_size = 100",
        "SHOW batch_size",
        "CREATE TABLE t (x INT)",
    ] {
        let planned = session.inlined(text, Params::None, Arc::default());
        let planned = session.handle().block_on(planned).unwrap();
        assert!(planned.is_none(), "{text}");
    }
    assert_eq!(session.tables(), Vec::<String>::new());
}
