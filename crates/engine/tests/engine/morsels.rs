//! Parquet scans in morsels: which rows are in them, and that answers stay the same.

use std::path::Path;
use std::sync::Arc;

use crate::support::{by_datafusion, rows, two_streams, write_parquet_as};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use futures::TryStreamExt;
use grouse::{Progress, Session, SessionOptions};

const ROWS: i64 = 90_000;

/// Three row groups of 40,000, 40,000 and 10,000 rows; `site` is sorted, a text has 300 bytes. Without `pages`, nothing
/// says where a page begins.
fn write(path: &Path, pages: bool) {
    write_as(path, pages, ["site", "key", "text"]);
}

fn write_as(path: &Path, pages: bool, names: [&str; 3]) {
    let statistics = match pages {
        true => EnabledStatistics::Page,
        false => EnabledStatistics::Chunk,
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(40_000))
        .set_data_page_row_count_limit(2_000)
        .set_dictionary_page_size_limit(1 << 10)
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(!pages)
        .build();
    let site: Int64Array = (0..ROWS).map(|row| Some(row / 7_000)).collect();
    let key: Int64Array = (0..ROWS)
        .map(|row| (row % 13 != 0).then_some(row % 97))
        .collect();
    let text: StringArray = (0..ROWS).map(|row| Some(format!("{row:0300}"))).collect();
    let batch = RecordBatch::try_from_iter([
        (names[0], Arc::new(site) as ArrayRef),
        (names[1], Arc::new(key)),
        (names[2], Arc::new(text)),
    ])
    .unwrap();
    write_parquet_as(path, &batch, Some(properties));
}

/// How many pieces of files the plan names; it leaves out all but the first five of a stream.
fn pieces(session: &Session, sql: &str) -> usize {
    let plan = rows(session, &format!("EXPLAIN {sql}")).join("\n");
    assert!(plan.contains("GroupByExec"), "{plan}");
    let files = plan
        .split_once("file_groups={")
        .map_or("", |(_, files)| files);
    let files = files.split_once('}').map_or("", |(files, _)| files);
    files.matches("t.parquet").count() - files.matches("t.parquet:").count()
}

#[test]
fn every_row_is_in_one_morsel() {
    let folder = tempfile::tempdir().unwrap();
    for (name, pages) in [("paged", true), ("plain", false)] {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        write(&folder.join("t.parquet"), pages);
        let file = format!("'{}'", folder.join("t.parquet").display());
        let ours = two_streams();
        let datafusion = by_datafusion(two_streams());
        for (filter, least) in [
            ("", if pages { 4 } else { 3 }),
            ("WHERE site <> 3 AND key < 50", 3),
            // 14,000 rows of one row group, 56,000 of two.
            ("WHERE site BETWEEN 1 AND 2", 0),
            ("WHERE site BETWEEN 2 AND 9", 2),
            ("WHERE site = 99", 0),
        ] {
            let sql = format!(
                "SELECT key, count(*) AS c, min(text) AS lo, max(text) AS hi, sum(length(text) + site) AS s \
                 FROM {file} {filter} GROUP BY key ORDER BY key"
            );
            assert_eq!(
                rows(&ours, &sql),
                rows(&datafusion, &sql),
                "{name}: {filter}"
            );
            assert!(pieces(&ours, &sql) >= least, "{name}: {filter}");
        }
        rows(
            &ours,
            "SET datafusion.execution.enable_file_stream_work_stealing = false",
        );
        let sql = format!("SELECT key, min(text) FROM {file} GROUP BY key");
        assert_eq!(pieces(&ours, &sql), 0, "{name}");
    }
}

/// A session whose scans have a stream for each of `threads` workers.
fn streams(threads: usize) -> Session {
    let options = SessionOptions {
        threads,
        memory_limit: Some(1 << 30),
        ..Default::default()
    };
    let session = Session::new(options).unwrap();
    rows(
        &session,
        "SET datafusion.optimizer.repartition_file_min_size = 0",
    );
    session
}

#[test]
fn what_a_scan_can_do_does_not_depend_on_how_many_workers_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let low: StringArray = (0..ROWS)
        .map(|row| Some(["air", "rail", "ship"][row as usize % 3]))
        .collect();
    let number: Int64Array = (0..ROWS).collect();
    let columns = [
        ("low", Arc::new(low) as ArrayRef),
        ("number", Arc::new(number)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(40_000));
    write_parquet_as(&path, &batch, Some(properties.build()));
    let sql = format!(
        "SELECT count(*), sum(number) FROM '{}' WHERE low LIKE '%ai%'",
        path.display()
    );
    for threads in [1, 2, 7, 32] {
        let session = streams(threads);
        let plan = rows(&session, &format!("EXPLAIN {sql}")).join("\n");
        assert!(plan.contains("per_value("), "{threads}: {plan}");
        assert!(pieces(&session, &sql) > 0, "{threads}: {plan}");
        assert_eq!(rows(&session, &sql), ["60000|2699940000"], "{threads}");
    }
}

fn progress_of(session: &Session, sql: &str) -> Progress {
    session.handle().block_on(async {
        let query = session.query(sql).await.unwrap();
        let _batches: Vec<_> = query.execute().unwrap().try_collect().await.unwrap();
        query.progress()
    })
}

/// A session and a query of the last rows of a file with pages, which it writes.
fn late_sites(folder: &Path) -> (Session, String) {
    write(&folder.join("t.parquet"), true);
    let sql = format!(
        "SELECT key, min(text) FROM '{}/t.parquet' WHERE site > 4 GROUP BY key",
        folder.display()
    );
    (two_streams(), sql)
}

#[test]
fn progress_counts_the_rows_of_morsels() {
    let folder = tempfile::tempdir().unwrap();
    let (session, sql) = late_sites(folder.path());
    assert!(pieces(&session, &sql) > 2);
    let progress = progress_of(&session, &sql);
    // Site 5 begins at row 35,000, a page every 2,000 rows or a little more.
    assert!(
        (55_000..=58_000).contains(&progress.input_rows),
        "{progress:?}"
    );
    assert_eq!(progress.input_share, Some(1.0));
}

#[test]
fn a_partition_column_is_what_the_path_says() {
    let folder = tempfile::tempdir().unwrap();
    for year in ["2024", "2025"] {
        let folder = folder.path().join(format!("year={year}"));
        std::fs::create_dir(&folder).unwrap();
        // It holds a column of that name, too, with other values.
        let names = ["year", "n", "text"];
        write_as(&folder.join("t.parquet"), true, names);
    }
    let ours = two_streams();
    let datafusion = by_datafusion(two_streams());
    let table = format!(
        "CREATE EXTERNAL TABLE t (n BIGINT, text VARCHAR, year BIGINT) STORED AS PARQUET \
         PARTITIONED BY (year) LOCATION '{}/'",
        folder.path().display()
    );
    for session in [&ours, &datafusion] {
        rows(session, &table);
    }
    for filter in ["year = 2025 OR n = 1000", "year = 2024 OR n = 7"] {
        let sql =
            format!("SELECT n, count(*), min(text) FROM t WHERE {filter} GROUP BY n ORDER BY n");
        assert_eq!(rows(&ours, &sql), rows(&datafusion, &sql), "{filter}");
        assert!(rows(&ours, &sql).len() > 90, "{filter}");
    }
}

#[test]
fn nothing_is_skipped_where_the_options_forbid_it() {
    let folder = tempfile::tempdir().unwrap();
    let (session, sql) = late_sites(folder.path());
    for option in ["pruning", "enable_page_index"] {
        rows(
            &session,
            &format!("SET datafusion.execution.parquet.{option} = false"),
        );
    }
    let progress = progress_of(&session, &sql);
    assert_eq!(progress.input_rows, ROWS as u64);
    assert_eq!(progress.input_share, Some(1.0));
}

/// Batches that the scan hands on.
fn batches(session: &Session, sql: &str) -> usize {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let (_, scan) = plan.split_once("DataSourceExec").unwrap();
    let (_, count) = scan.split_once("output_batches=").unwrap();
    let digits = count.split(|one: char| !one.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

#[test]
fn narrow_columns_come_in_larger_batches() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("t.parquet"), true);
    let session = two_streams();
    let file = format!("'{}/t.parquet'", folder.path().display());
    let narrow = format!("SELECT key, count(*) FROM {file} GROUP BY key");
    let wide = format!("SELECT key, min(text) FROM {file} GROUP BY key");
    rows(&session, "SET batch_size = 1024");
    // A piece or a row group may end a batch: the last ones are shorter.
    let (narrow_batches, wide_batches) = (batches(&session, &narrow), batches(&session, &wide));
    assert!((22..45).contains(&narrow_batches), "{narrow_batches}");
    assert!((88..120).contains(&wide_batches), "{wide_batches}");
    // Whoever wants short batches gets them.
    rows(&session, "SET batch_size = 100");
    assert!(batches(&session, &narrow) >= 900);
}
