//! Group keys that a Parquet scan hands out as codes: who gets them, and that answers are the same.

use std::path::Path;
use std::sync::Arc;

use crate::support::{
    Sides, assert_as_datafusion, by_datafusion, error, plan, rows, run, session, sorted,
};
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// Writes a file whose row groups have so many rows, its text as bytes without any annotation if `bare`.
fn write(path: &Path, batch: &RecordBatch, group_rows: usize, bare: bool) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_dictionary_page_size_limit(24 << 10)
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(bare);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// `low` has `values` values and NULLs, `long` the same as long strings, `high` one value per row, `whole` no NULL.
fn table(rows: i64, values: i64, shift: i64) -> RecordBatch {
    let text = |row: i64| (row % 11 != 0).then(|| format!("v{}", (row * 7 + shift) % values));
    let low: StringArray = (0..rows).map(text).collect();
    let long = |row: i64| text(row).map(|text| format!("a text that fits no view: {text}"));
    let long: StringArray = (0..rows).map(long).collect();
    let high: StringArray = (0..rows).map(|row| Some(format!("row {row:07}"))).collect();
    let number: Int64Array = (0..rows).map(|row| Some(row % 5)).collect();
    let whole: StringArray = (0..rows)
        .map(|row| Some(format!("w{}", (row / 3 + shift) % 40)))
        .collect();
    RecordBatch::try_from_iter([
        ("low", Arc::new(low) as ArrayRef),
        ("long", Arc::new(long)),
        ("high", Arc::new(high)),
        ("n", Arc::new(number)),
        ("whole", Arc::new(whole)),
    ])
    .unwrap()
}

fn two_files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Chunks end in the middle of batches; the files' dictionaries differ.
    write(
        &folder.path().join("a.parquet"),
        &table(30_000, 90, 0),
        10_007,
        false,
    );
    write(
        &folder.path().join("b.parquet"),
        &table(20_000, 120, 1),
        20_000,
        false,
    );
    folder
}

#[test]
fn keys_come_as_codes_and_answers_stay_the_same() {
    let sides = Sides::over(two_files());
    for (query, codes) in [
        ("low, count(*), sum(n) FROM {} GROUP BY low", Some("low")),
        (
            "low, long, count(*) FROM {} GROUP BY low, long",
            Some("low, long"),
        ),
        (
            "low, n, count(high) FROM {} WHERE n > 1 GROUP BY low, n",
            Some("low"),
        ),
        (
            "low, count(*) FROM {} WHERE high < 'row 0015000' GROUP BY low",
            Some("low"),
        ),
        (
            "low, long, count(*) FROM {} GROUP BY GROUPING SETS ((low), (low, long), ())",
            Some("low, long"),
        ),
        (
            "low, m, count(*) FROM (SELECT low, n + 1 AS m FROM {} WHERE n > 0) GROUP BY low, m",
            Some("low"),
        ),
        (
            "low, count(*) FROM {} WHERE low <> 'v3' GROUP BY low",
            Some("low"),
        ),
        // Arguments of DISTINCT, which are grouped as keys are.
        (
            "n, count(DISTINCT low), count(*) FROM {} GROUP BY n",
            Some("low"),
        ),
        (
            "low, count(DISTINCT long) FILTER (WHERE n > 1), count(DISTINCT n), sum(n) FROM {} GROUP BY low",
            Some("low, long"),
        ),
        (
            "n, count(DISTINCT low), count(DISTINCT long), count(*) FROM {} GROUP BY GROUPING SETS ((n), ())",
            Some("low, long"),
        ),
        (
            "n, count(DISTINCT low), min(low) FROM {} GROUP BY n",
            Some("low"),
        ),
        (
            "n, length(string_agg(DISTINCT low, ',')), string_agg(DISTINCT long, ',') FILTER (WHERE n > 9) FROM {} GROUP BY n",
            Some("low, long"),
        ),
        ("n, count(DISTINCT high), count(*) FROM {} GROUP BY n", None),
        // Arguments that are compared, or only counted.
        ("low, max(low) FROM {} GROUP BY low", Some("low")),
        (
            "n, min(low), max(long) FILTER (WHERE n > 1), min(low || 'x') FROM {} GROUP BY n",
            Some("low, long"),
        ),
        (
            "n, min(low), max(low), count(low) FROM {} WHERE n > 0 GROUP BY n",
            Some("low"),
        ),
        (
            "high, min(low), max(long) FROM {} GROUP BY high",
            Some("low, long"),
        ),
        ("n, count(low), count(*) FROM {} GROUP BY n", Some("low")),
        // Arguments that are handed out.
        (
            "low, max_by(low, n), first_value(low) FROM {} GROUP BY low",
            Some("low"),
        ),
        // Pairs of a DISTINCT.
        (
            "n, array_agg(DISTINCT low ORDER BY low), string_agg(DISTINCT whole, ',' ORDER BY whole) FROM {} GROUP BY n",
            Some("low, whole"),
        ),
        // Lists and strings of all rows, whose codes become strings when groups leave.
        ("low, array_agg(low) FROM {} GROUP BY low", Some("low")),
        (
            "n, array_sort(array_agg(low)), length(string_agg(long, ',')) FROM {} GROUP BY n",
            Some("low, long"),
        ),
        (
            "n, array_agg(low ORDER BY high, whole), string_agg(long, ';' ORDER BY high, whole), nth_value(low, 3 ORDER BY high, whole) FROM {} GROUP BY n",
            Some("low, long"),
        ),
        (
            "high, array_sort(array_agg(low)), array_sort(array_agg(long) FILTER (WHERE n > 1)) FROM {} GROUP BY high",
            Some("low, long"),
        ),
        // Read by something else: the SQL type has to be there.
        ("n, array_agg(low ORDER BY low) FROM {} GROUP BY n", None),
        ("low, max_by(low, low) FROM {} GROUP BY low", None),
        ("low, count(*) FROM {} WHERE low <> high GROUP BY low", None),
        ("low || n, count(*) FROM {} WHERE low > '' GROUP BY 1", None),
        // Fell back to plain pages.
        ("high, count(*) FROM {} GROUP BY high", None),
    ] {
        let plan = sides.plan_of_same(query, 1);
        match codes {
            Some(codes) => assert!(plan.contains(&format!("codes=[{codes}]")), "{plan}"),
            None => assert!(!plan.contains("codes="), "{plan}"),
        }
        let is_ordered = query.contains("ORDER BY");
        assert!(!is_ordered || !plan.contains("datafusion_states"), "{plan}");
    }
}

/// Keys that no direct table holds: beside a text of one value per row, a float, many days.
#[test]
fn strings_of_few_values_are_codes_in_keys_of_several_columns() {
    let sides = Sides::over(two_files());
    for (query, bits) in [
        (
            "low, high, count(*), sum(n) FROM {} GROUP BY low, high",
            160 + 2,
        ),
        (
            "high, long, low, whole, count(*) FROM {} GROUP BY high, long, low, whole",
            224 + 4,
        ),
        (
            "long, low, n / 7.0 AS f, max(low) FROM {} WHERE long <> 'x' GROUP BY long, low, n / 7.0",
            128 + 3,
        ),
        (
            "low, count(DISTINCT high) FROM {} GROUP BY low HAVING low > 'v3' AND count(DISTINCT high) > 9",
            160 + 2,
        ),
        (
            "low, high, long, count(*) FROM {} GROUP BY GROUPING SETS ((low, high), (high, long), (low), ())",
            192 + 3 + 8,
        ),
    ] {
        let plan = sides.plan_of_same(query, 1);
        assert!(
            plan.contains(&format!("key_bits={bits}")),
            "{query}: {plan}"
        );
    }
}

/// Writes strings `t` and numbers `n`.
fn write_both(folder: &TempDir, strings: StringArray, numbers: Int64Array, group_rows: usize) {
    let columns = [
        ("t", Arc::new(strings) as ArrayRef),
        ("n", Arc::new(numbers)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&folder.path().join("a.parquet"), &batch, group_rows, false);
}

/// Batches of few rows hold their own strings, not all of the shared dictionary.
#[test]
fn a_batch_that_leaves_holds_no_strings_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let text = |row: i64| format!("{:0200}", row % 90);
    let strings: StringArray = (0..30_000).map(|row| Some(text(row / 10))).collect();
    let numbers: Int64Array = (0..30_000).map(|row| Some(row * 1_000_003)).collect();
    write_both(&folder, strings, numbers, 10_000);
    let ours = session();
    rows(&ours, "SET datafusion.execution.batch_size = 8");
    let files = format!("'{}/*.parquet'", folder.path().display());
    let sql = format!("SELECT t, n, count(*) FROM {files} GROUP BY t, n");
    assert!(plan(&ours, &sql).contains("codes=[t]"));
    let batches = run(&ours, &sql).unwrap();
    assert_eq!(
        batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
        30_000
    );
    let most = batches
        .iter()
        .map(|batch| batch.column(0).get_buffer_memory_size());
    assert!(
        most.max() < Some(90 * 200 / 2),
        "{:?}",
        batches[0].column(0)
    );
}

/// What a query would have to hold until it ends.
#[test]
fn strings_of_large_dictionaries_stay_views_under_a_small_limit() {
    let folder = tempfile::tempdir().unwrap();
    let text = |row: i64| {
        format!(
            "{:x}",
            (row as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
        )
    };
    let strings: StringArray = (0..40_000)
        .map(|row| Some(text(row / 2_000 * 500 + row % 500)))
        .collect();
    let numbers: Int64Array = (0..40_000)
        .map(|row| Some(row % 3_001 * 1_000_003))
        .collect();
    write_both(&folder, strings, numbers, 2_000);
    let sides = Sides::over(folder);
    let query = "t, n, count(*) FROM {} GROUP BY t, n";
    for (limit, bits) in [("1GB", 32 + 32), ("16MiB", 128 + 32)] {
        rows(&sides.ours, &format!("SET memory_limit = '{limit}'"));
        let plan = sides.plan_of_same(query, 100);
        assert!(plan.contains("codes=[t]"), "{plan}");
        assert!(
            plan.contains(&format!("key_bits={bits}")),
            "{limit}: {plan}"
        );
    }
}

#[test]
fn what_is_computed_of_codes_is_computed_once_per_value() {
    let sides = Sides::over(two_files());
    for (query, parts) in [
        ("n, count(*) FROM {} WHERE low LIKE '%1%' GROUP BY n", 1),
        (
            "n, count(*) FROM {} WHERE low IN ('v1', 'v7', 'v80') AND n > 1 AND long <> 'x' GROUP BY n",
            2,
        ),
        // NULLs: as they are, as something else, as all that is wanted.
        ("low IS NULL, count(*) FROM {} GROUP BY 1", 1),
        ("coalesce(low, 'none'), count(*) FROM {} GROUP BY 1", 1),
        ("nullif(low, 'v3'), sum(n) FROM {} GROUP BY 1", 1),
        (
            "nullif(low, 'v3'), upper(low), high, count(*) FROM {} GROUP BY 1, 2, 3",
            2,
        ),
        ("n, count(*) FROM {} WHERE low IS NULL GROUP BY n", 1),
        (
            "n, count(*) FROM {} WHERE low = NULL OR low = 'v2' GROUP BY n",
            1,
        ),
        // Keys: strings of fewer values, other types, two of one column.
        ("upper(low), count(*) FROM {} GROUP BY 1", 1),
        (
            "substr(low, 1, 2), upper(low), count(*) FROM {} GROUP BY 1, 2",
            2,
        ),
        ("length(low), max(n) FROM {} GROUP BY 1", 1),
        (
            "regexp_replace(long, '.*v(.).*', '\\1'), count(*) FROM {} GROUP BY 1 HAVING count(*) > 9",
            1,
        ),
        (
            "u, count(*) FROM (SELECT upper(low) AS u, n FROM {}) WHERE u <> 'V1' AND n < 3 GROUP BY u",
            2,
        ),
        (
            "upper(low), long, count(*) FROM {} GROUP BY GROUPING SETS ((upper(low)), (long), ())",
            1,
        ),
        // Nothing but the column itself, more than one column, other results for the same value.
        ("n, min(low) FROM {} GROUP BY n", 0),
        ("n, count(*) FROM {} WHERE low || n <> 'v11' GROUP BY n", 0),
        (
            "n, count(*) FROM {} WHERE length(low) > random() - 1 GROUP BY n",
            1,
        ),
        (
            "n, count(*) FROM {} WHERE high > 'row 0011111' GROUP BY n",
            0,
        ),
    ] {
        let plan = sides.plan_of_same(query, 1);
        let above = plan.split("DataSourceExec").next().unwrap();
        let found = above.matches("per_value(").count();
        assert_eq!(found, parts, "{query}\n{plan}");
    }
}

#[test]
fn arguments_are_computed_once_per_value() {
    let sides = Sides::over(two_files());
    for (query, codes) in [
        ("n, sum(length(low) + n) FROM {} GROUP BY n", "codes=[low]"),
        (
            "n, count(*) FILTER (WHERE low > 'v5') FROM {} GROUP BY n",
            "codes=[low]",
        ),
        (
            "low, count(*) FILTER (WHERE low > 'v5') FROM {} GROUP BY low",
            "codes=[low]",
        ),
        (
            "n, max(upper(low)), count(DISTINCT length(long)) FROM {} GROUP BY n",
            "codes=[low, long]",
        ),
        (
            "n, sum(CASE WHEN low = 'v1' THEN n WHEN n = 2 THEN length(low) END) FROM {} GROUP BY n",
            "codes=[low]",
        ),
        (
            "sum(length(low)), min(upper(long)), max(coalesce(low, 'none')) FROM {}",
            "codes=[low, long]",
        ),
        (
            "low, first_value(low), last_value(low), any_value(low), max_by(low, n) FROM {} GROUP BY low",
            "codes=[low]",
        ),
        (
            "n, last_value(low ORDER BY high), max_by(long, high) FROM {} GROUP BY n",
            "codes=[low, long]",
        ),
        (
            "n, first_value(upper(low) ORDER BY length(long), high, upper(low)) FROM {} GROUP BY n",
            "codes=[long]",
        ),
    ] {
        let plan = sides.plan_of_same(query, 0);
        assert!(plan.contains(codes), "{query}\n{plan}");
    }
}

#[test]
fn a_value_that_no_row_has_raises_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.parquet");
    let digits = |row: i32| {
        (row % 11 != 0).then(|| match row % 7 {
            0 => "not a number".to_string(),
            digit => digit.to_string(),
        })
    };
    let strings: StringArray = (0..30_000).map(digits).collect();
    let rest: Int64Array = (0..30_000).map(|row| Some(row % 7)).collect();
    let columns = [("k", Arc::new(strings) as ArrayRef), ("n", Arc::new(rest))];
    write(
        &path,
        &RecordBatch::try_from_iter(columns).unwrap(),
        9_000,
        false,
    );
    let ours = session();
    let datafusion = by_datafusion(session());
    let file = path.display();
    for (query, part) in [
        (
            "CAST(k AS INT), count(*) FROM {} WHERE n > 0 GROUP BY 1",
            "per_value(CAST(k",
        ),
        (
            "n, sum(CASE WHEN n > 0 THEN CAST(k AS INT) END) FROM {} GROUP BY n",
            "codes=[k]",
        ),
        (
            "CASE WHEN k < 'a' THEN CAST(k AS INT) END, count(*) FROM {} GROUP BY 1",
            "per_value(CASE",
        ),
    ] {
        let sql = format!("SELECT {}", query.replace("{}", &format!("'{file}'")));
        let plan = plan(&ours, &sql);
        assert!(plan.contains(part), "{plan}");
        assert_as_datafusion(&ours, &datafusion, &sql, 1);
    }
    let sql = format!("SELECT CAST(k AS INT), count(*) FROM '{file}' GROUP BY 1");
    let message = error(&ours, &sql).to_string();
    assert!(message.contains("not a number"), "{message}");
}

#[test]
fn a_condition_before_a_failing_part_holds_as_for_rows() {
    let folder = tempfile::tempdir().unwrap();
    // DataFusion looks at the right side of AND for the rows that are left only where these are few: of the values half are left.
    let strings: StringArray = (0..20_000)
        .map(|row| Some(if row % 20 == 0 { "5" } else { "x" }))
        .collect();
    let numbers: Int64Array = (0..20_000).map(|row| Some(row % 3)).collect();
    let columns = [
        ("k", Arc::new(strings) as ArrayRef),
        ("n", Arc::new(numbers)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for name in ["a.parquet", "b.parquet"] {
        write(&folder.path().join(name), &batch, 20_000, false);
    }
    let sides = Sides::over(folder);
    for query in [
        "n, count(*) FROM {} WHERE k <> 'x' AND CAST(k AS INT) > 2 GROUP BY n",
        "k <> 'x' AND CAST(k AS INT) > 2 AS b, count(*) FROM {} GROUP BY 1",
        "sum(CAST(k AS INT)) FILTER (WHERE k < 'a') FROM {}",
    ] {
        let plan = sides.plan_of_same(query, 0);
        assert!(
            plan.contains("codes=[k]") || plan.contains("FilterExec: per_value("),
            "{plan}"
        );
    }
    // With keys DataFusion computes arguments also where FILTER is not true.
    let filtered = "n, sum(CAST(k AS INT)) FILTER (WHERE k < 'a') FROM {} GROUP BY n";
    let where_true = "n, sum(CAST(k AS INT)) FROM {} WHERE k < 'a' GROUP BY n";
    let of = |query: &str| sorted(&sides.ours, &sides.sql(query));
    assert_eq!(of(filtered), of(where_true));
    let failing =
        "n, sum(CAST(k AS INT)) FILTER (WHERE k < 'a'), max(CAST(k AS INT)) FROM {} GROUP BY n";
    let message = error(&sides.ours, &sides.sql(failing)).to_string();
    assert!(message.contains("'x'"), "{message}");
}

#[test]
fn a_predicate_that_the_scan_alone_has_is_kept() {
    let sides = Sides::over(two_files());
    for session in [&sides.ours, &sides.datafusion] {
        rows(
            session,
            "SET datafusion.execution.parquet.pushdown_filters = true",
        );
    }
    for query in [
        "low, count(*) FROM {} WHERE low = 'v3' GROUP BY low",
        "upper(low), sum(length(long)) FROM {} WHERE long LIKE '%1%' AND n > 2 GROUP BY 1",
    ] {
        sides.plan_of_same(query, 0);
    }
}

/// Many batches of a dictionary, whose rows all have groups after a few of them.
#[test]
fn keys_without_nulls_meet_in_their_groups() {
    let sides = Sides::over(two_files());
    rows(&sides.ours, "SET batch_size = 500");
    for (query, codes) in [
        ("whole, count(*), sum(n) FROM {} GROUP BY whole", "whole"),
        ("whole, n, count(*) FROM {} GROUP BY whole, n", "whole"),
        (
            "whole, low, count(*) FROM {} WHERE low IS NOT NULL GROUP BY whole, low",
            "low, whole",
        ),
        ("whole, count(DISTINCT n) FROM {} GROUP BY whole", "whole"),
    ] {
        let plan = sides.plan_of_same(query, 30);
        assert!(plan.contains(&format!("codes=[{codes}]")), "{plan}");
    }
}

#[test]
fn more_values_than_the_direct_table_takes_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.parquet");
    // Few values in each dictionary, many in all.
    write(&path, &table(60_000, 50_000, 0), 1_500, false);
    let ours = session();
    let datafusion = by_datafusion(session());
    for query in [
        "low, count(*) FROM {} GROUP BY low",
        "n, count(DISTINCT low), count(*) FROM {} GROUP BY n",
    ] {
        let files = format!("'{}'", path.display());
        let sql = format!("SELECT {}", query.replace("{}", &files));
        assert!(plan(&ours, &sql).contains("codes=[low]"));
        assert_eq!(sorted(&ours, &sql), sorted(&datafusion, &sql));
    }
}

#[test]
fn a_table_may_declare_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.parquet");
    let digits: StringArray = (0..3000)
        .map(|row: i32| Some((row % 7).to_string()))
        .collect();
    let batch = RecordBatch::try_from_iter([("k", Arc::new(digits) as ArrayRef)]).unwrap();
    write(&path, &batch, 3000, false);
    let ours = session();
    for (name, declared) in [("i", "INT"), ("v", "VARCHAR")] {
        let path = path.display();
        let create = format!(
            "CREATE EXTERNAL TABLE {name}(k {declared}) STORED AS PARQUET LOCATION '{path}'"
        );
        rows(&ours, &create);
    }
    let count = "SELECT count(*), min(n), max(n) FROM (SELECT k, count(*) AS n FROM {} GROUP BY k)";
    for table in ["i", "v"] {
        assert_eq!(rows(&ours, &count.replace("{}", table)), ["7|428|429"]);
    }
}

#[test]
fn bytes_without_annotation_are_text_only_where_they_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let ours = session();
    let write_bytes = |name: &str, values: Vec<&[u8]>| {
        let path = folder.path().join(name);
        let column: ArrayRef = Arc::new(BinaryArray::from(values));
        write(
            &path,
            &RecordBatch::try_from_iter([("b", column)]).unwrap(),
            100,
            true,
        );
        format!("SELECT b, count(*) FROM '{}' GROUP BY b", path.display())
    };
    let valid = write_bytes("valid.parquet", vec![b"x", "ä".as_bytes(), b"x"]);
    assert!(plan(&ours, &valid).contains("codes=[b]"));
    assert_eq!(sorted(&ours, &valid), ["x|2", "ä|1"]);
    let broken = write_bytes("broken.parquet", vec![b"x", &[0xff, 0xfe]]);
    let message = error(&ours, &broken).to_string();
    assert!(
        message.to_lowercase().contains("utf-8") || message.to_lowercase().contains("utf8"),
        "{message}"
    );
}
