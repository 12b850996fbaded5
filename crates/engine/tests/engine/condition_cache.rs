//! The condition cache: what repeated conditions do not read, and that answers are those of the files as they are.

use std::fs::{File, FileTimes};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder,
};
use futures::StreamExt;
use grouse::Session;

use crate::support::{by_datafusion, error, rows, session, sorted, two_streams, write_parquet_as};

const ROWS: i64 = 200_000;
const GROUP_ROWS: usize = 50_000;

/// Four row groups without bounds. `n` counts; `text` has the word `needle` in the rows of `needles`, `key` three values.
fn write(path: &Path, needles: &[i64]) {
    write_as(
        path,
        needles,
        WriterProperties::builder().set_dictionary_enabled(false),
    );
}

fn write_as(path: &Path, needles: &[i64], properties: WriterPropertiesBuilder) {
    let properties = properties
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(2_000)
        .set_write_batch_size(1_000)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let n: Int64Array = (0..ROWS).map(Some).collect();
    let text = |row: i64| match needles.contains(&row) {
        true => format!("needle {row:06}"),
        false => format!("straw {row:07}"),
    };
    let text: StringArray = (0..ROWS).map(|row| Some(text(row))).collect();
    let key: StringArray = (0..ROWS)
        .map(|row| Some(["a", "b", "c"][row as usize % 3]))
        .collect();
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(n) as ArrayRef),
        ("text", Arc::new(text)),
        ("key", Arc::new(key)),
    ]);
    write_parquet_as(path, &batch.unwrap(), Some(properties));
}

/// Until a change is old enough to be told from a next one.
fn wait() {
    std::thread::sleep(Duration::from_millis(2_100));
}

/// Rows and row groups that a query does not read because of the cache.
fn skipped(session: &Session, sql: &str) -> (usize, usize) {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    assert!(plan.contains("GroupByExec"), "{plan}");
    let figure = |name: &str| {
        let Some((_, after)) = plan.split_once(&format!("{name}=")) else {
            return 0;
        };
        let text = after.split([',', ']']).next().unwrap_or_default().trim();
        let (number, times) = match text.strip_suffix(" K") {
            Some(thousands) => (thousands, 1_000.0),
            None => (text, 1.0),
        };
        let number: f64 = number
            .parse()
            .unwrap_or_else(|_| panic!("{name} in {plan}"));
        (number * times) as usize
    };
    (
        figure("condition_cache_rows_skipped"),
        figure("condition_cache_row_groups_skipped"),
    )
}

fn grouped(path: &Path, condition: &str) -> String {
    let path = path.display();
    format!("SELECT key, count(*), min(n) FROM '{path}' WHERE {condition} GROUP BY key")
}

#[test]
fn rows_that_no_condition_holds_for_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, &[120_000, 121_000]);
    let (ours, other, plain) = (two_streams(), session(), by_datafusion(session()));
    wait();
    for condition in [
        "text LIKE '%needle%'",
        "text IN ('needle 120000', 'needle 121000')",
        "n = 120000 OR n = 121000",
        "text LIKE '%needle%' AND n > 120500",
        "text LIKE '%nowhere%'",
        "n < 0",
    ] {
        let sql = grouped(&path, condition);
        let expected = sorted(&plain, &sql);
        assert_eq!(
            skipped(&ours, &sql).0 > 0,
            condition.contains("n > 120500"),
            "{condition}"
        );
        for session in [&ours, &other, &ours] {
            assert_eq!(sorted(session, &sql), expected, "{condition}");
            let (rows, row_groups) = skipped(session, &sql);
            let none = expected.is_empty();
            assert!(
                rows > 3 * GROUP_ROWS - 1 && row_groups >= 3,
                "{condition}: {rows}"
            );
            assert_eq!(
                row_groups == 4 && rows == ROWS as usize,
                none,
                "{condition}: {rows}"
            );
        }
    }
    // Of a larger conjunction, too, whose other parts may be of any kind.
    let sql = grouped(&path, "abs(n) > 120500 AND text LIKE '%needle%'");
    assert!(skipped(&other, &sql).0 >= 3 * GROUP_ROWS);
    assert_eq!(sorted(&other, &sql), ["b|1|121000"]);
    // But not of another column, value or operation.
    let sql = grouped(&path, "text NOT LIKE '%needle%'");
    assert_eq!(skipped(&other, &sql), (0, 0));
    rows(&other, "SET condition_cache = off");
    let sql = grouped(&path, "text LIKE '%needle%'");
    assert_eq!(skipped(&other, &sql), (0, 0));
    assert_eq!(sorted(&other, &sql), sorted(&ours, &sql));
}

// Which rows such a scan leaves out nobody knows; what is known of its pieces is.
#[test]
fn scans_that_leave_rows_out_themselves_are_remembered_piece_by_piece() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let outgrown = WriterProperties::builder().set_dictionary_page_size_limit(1 << 10);
    write_as(&path, &[199_999], outgrown);
    let ours = two_streams();
    wait();
    for (condition, expected) in [
        ("text LIKE '%needle%'", &["b|1|199999"][..]),
        ("text LIKE '%nowhere%'", &[]),
    ] {
        let sql = grouped(&path, condition);
        let plan = rows(&ours, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        assert!(plan.contains("pushdown_rows_pruned="), "{plan}");
        assert!(!plan.contains("pushdown_rows_pruned=0,"), "{plan}");
        assert_eq!(rows(&ours, &sql), expected);
        let (_, row_groups) = skipped(&ours, &sql);
        assert!(row_groups > 0, "{condition}");
        assert_eq!(
            row_groups == 4,
            expected.is_empty(),
            "{condition}: {row_groups}"
        );
        assert_eq!(rows(&ours, &sql), expected);
    }
}

#[test]
fn a_file_that_is_written_anew_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let changed = folder.path().join("changed.parquet");
    write(&path, &[120_000]);
    write(&changed, &[7, 190_000]);
    wait();
    let sql = grouped(&path, "text LIKE '%needle%'");
    for _ in 0..2 {
        assert_eq!(rows(&session(), &sql), ["a|1|120000"]);
    }
    assert!(skipped(&session(), &sql).0 > 0);
    // The same bytes in number, in the same file, with the same time of modification.
    let before = path.metadata().unwrap();
    let bytes = std::fs::read(&changed).unwrap();
    assert_eq!(bytes.len() as u64, before.len());
    let mut file = File::options().write(true).open(&path).unwrap();
    file.write_all(&bytes).unwrap();
    let modified = before.modified().unwrap();
    file.set_times(FileTimes::new().set_modified(modified))
        .unwrap();
    drop(file);
    assert_eq!(path.metadata().unwrap().modified().unwrap(), modified);
    // It is too young to be remembered, and then remembered as what it is.
    for _ in 0..2 {
        assert_eq!(sorted(&session(), &sql), ["b|2|7"]);
        assert_eq!(skipped(&session(), &sql), (0, 0));
    }
    wait();
    assert_eq!(skipped(&session(), &sql), (0, 0));
    assert_eq!(sorted(&session(), &sql), ["b|2|7"]);
    assert!(skipped(&session(), &sql).0 > 0);
}

#[test]
fn two_writes_within_a_tick_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let files = [[1], [150_001]].map(|needles| {
        write(&path, &needles);
        std::fs::read(&path).unwrap()
    });
    let sql = grouped(&path, "text LIKE '%needle%'");
    for (bytes, expected) in files.iter().zip(["b|1|1", "b|1|150001"]).cycle().take(6) {
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        drop(file);
        assert_eq!(rows(&session(), &sql), [expected]);
        assert_eq!(skipped(&session(), &sql), (0, 0));
    }
}

#[test]
fn what_was_not_evaluated_of_all_rows_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, &[5, 199_999]);
    wait();
    let session = two_streams();
    // Cancelled before its end.
    let sql = grouped(&path, "n <> 12");
    session.handle().block_on(async {
        let query = session.query(&sql).await.unwrap();
        let mut batches = query.execute().unwrap();
        let first = tokio::time::timeout(Duration::from_millis(1), batches.next()).await;
        drop((first, batches));
    });
    assert_eq!(
        rows(
            &session,
            &sql.replace("key, ", "").replace(" GROUP BY key", "")
        ),
        ["199999|0"]
    );
    // LIMIT.
    let limited = format!(
        "SELECT DISTINCT text FROM '{}' WHERE text LIKE '%needle%' LIMIT 1",
        path.display()
    );
    assert_eq!(rows(&session, &limited).len(), 1);
    assert_eq!(
        sorted(&session, &grouped(&path, "text LIKE '%needle%'")),
        ["b|1|199999", "c|1|5"]
    );
    // A condition that fails goes on failing, and one behind which it stands is not known by it.
    for _ in 0..2 {
        let failing = grouped(&path, "n > 150000 AND 10 / (n - 199999) > 20");
        assert!(
            error(&session, &failing).to_string().contains("zero"),
            "{failing}"
        );
    }
    // A parameter is its value, and what is volatile is never known.
    for _ in 0..2 {
        let sql = grouped(&path, "random() < 2 AND n = 3");
        assert_eq!(rows(&session, &sql), ["a|1|3"]);
    }
    assert_eq!(skipped(&session, &grouped(&path, "random() < 0")), (0, 0));
    assert_eq!(skipped(&session, &grouped(&path, "random() < 0")), (0, 0));
}
