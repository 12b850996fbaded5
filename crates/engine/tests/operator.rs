//! The operator against DataFusion's: the same query, once with our rule and once without, has to give the same rows.
//!
//! In: one table of awkward values, SQL text. Out: equal rows, plans without exchange, workers that stop.
//! Not here: results as such (the .slt files), random queries (the fuzzer).

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::{Accumulator, Volatility, create_udaf};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use futures::StreamExt;
use grouse::{Error, GroupByOperator, Query, Session, SessionOptions};

#[path = "operator/averages.rs"]
mod averages;
#[path = "operator/distinct.rs"]
mod distinct;
#[path = "operator/late_keys.rs"]
mod late_keys;
#[path = "operator/shifted_sums.rs"]
mod shifted_sums;
#[path = "operator/spill.rs"]
mod spill;
#[path = "operator/stages.rs"]
mod stages;
#[path = "operator/stepped.rs"]
mod stepped;
#[path = "operator/top_rows.rs"]
mod top_rows;

const ROWS: usize = 3000;
const PARTITIONS: usize = 3;
const BATCH_ROWS: usize = 250;

fn session(change: impl FnOnce(&mut SessionOptions)) -> Session {
    let mut options = SessionOptions {
        threads: 2,
        ..SessionOptions::default()
    };
    change(&mut options);
    let session = Session::new(options).expect("a session");
    session.register("t", Arc::new(table())).expect("table t");
    session
        .register("empty", Arc::new(empty()))
        .expect("table empty");
    session
}

fn datafusion() -> Session {
    session(|options| options.group_by_operator = GroupByOperator::DataFusion)
}

/// Rows with NULLs, NaN, both zeros, long strings and nested values, in several streams of several batches.
fn table() -> MemTable {
    let batches: Vec<_> = (0..ROWS / BATCH_ROWS)
        .map(|at| batch(at * BATCH_ROWS..(at + 1) * BATCH_ROWS))
        .collect();
    let schema = batches[0].schema();
    let mut partitions = vec![Vec::new(); PARTITIONS];
    for (at, batch) in batches.into_iter().enumerate() {
        partitions[at % PARTITIONS].push(batch);
    }
    MemTable::try_new(schema, partitions).expect("a table")
}

fn empty() -> MemTable {
    MemTable::try_new(batch(0..1).schema(), vec![Vec::new()]).expect("a table")
}

fn batch(rows: std::ops::Range<usize>) -> RecordBatch {
    let rows: Vec<usize> = rows
        .map(|row| row.wrapping_mul(2_654_435_761) >> 3)
        .collect();
    let every = |n: usize, row: usize| row.is_multiple_of(n);
    let opt = |n: usize, row: usize| (!every(n, row)).then_some(());
    let words = [
        "a",
        "",
        "ab",
        "a rather long string that does not fit twelve bytes",
        "ab\0",
        "β",
    ];
    let word = |row: usize| words[row % words.len()];
    let floats = [0.0, -0.0, f64::NAN, f64::NAN, 1.5, f64::INFINITY, -2.25];
    let strings: Vec<_> = rows
        .iter()
        .map(|row| opt(7, *row).map(|()| word(row / 5)))
        .collect();
    let dictionary: DictionaryArray<Int32Type> = strings.iter().copied().collect();
    let lists = rows
        .iter()
        .map(|row| opt(5, *row).map(|()| vec![Some((row % 3) as i64), None]));
    let longs: Vec<_> = rows
        .iter()
        .map(|row| opt(11, *row).map(|()| (row % 97) as i64))
        .collect();
    let structs = StructArray::from(vec![(
        Arc::new(Field::new("f", DataType::Int64, true)),
        Arc::new(Int64Array::from(
            longs.iter().map(|x| x.map(|x| x % 4)).collect::<Vec<_>>(),
        )) as ArrayRef,
    )]);
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        (
            "small",
            Arc::new(Int32Array::from_iter(
                rows.iter()
                    .map(|row| opt(13, *row).map(|()| (row % 10) as i32 - 4)),
            )),
        ),
        ("long", Arc::new(Int64Array::from(longs))),
        ("text", Arc::new(StringArray::from(strings.clone()))),
        ("seen", Arc::new(StringViewArray::from(strings))),
        ("coded", Arc::new(dictionary)),
        (
            "float",
            Arc::new(Float64Array::from_iter(
                rows.iter()
                    .map(|row| opt(9, *row).map(|()| floats[row % 7])),
            )),
        ),
        (
            "flag",
            Arc::new(BooleanArray::from_iter(
                rows.iter().map(|row| opt(4, *row).map(|()| row % 3 == 0)),
            )),
        ),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        ),
        ("pair", Arc::new(structs)),
    ];
    columns.extend(columns_without_nulls(&rows));
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .expect("a batch")
}

fn columns_without_nulls(rows: &[usize]) -> Vec<(&'static str, ArrayRef)> {
    vec![
        (
            "wide",
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| *row as i64 * 103 - 77),
            )),
        ),
        (
            "finite",
            Arc::new(Float64Array::from_iter_values(
                rows.iter().map(|row| (row % 1000) as f64 / 4.0),
            )),
        ),
        (
            "day",
            Arc::new(Date32Array::from_iter_values(
                rows.iter().map(|row| (row % 40) as i32),
            )),
        ),
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                rows.iter().map(|row| (row % 50) as i64 * 3_600_000_000),
            )),
        ),
        (
            "money",
            Arc::new(
                Decimal128Array::from_iter_values(
                    rows.iter().map(|row| (row % 10_000) as i128 - 5000),
                )
                .with_precision_and_scale(12, 2)
                .expect("a decimal"),
            ),
        ),
    ]
}

fn plan(session: &Session, sql: &str) -> Query {
    session
        .handle()
        .block_on(session.query(sql))
        .unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

fn collect(session: &Session, query: &Query) -> Result<Vec<RecordBatch>, Error> {
    session.handle().block_on(async {
        let mut stream = query.execute()?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            batches.push(batch.map_err(Error::from)?);
        }
        Ok(batches)
    })
}

/// All rows as text, sorted; NaN without its sign, floats to nine digits, as sums may differ in their last bits.
fn text_of(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| {
                ArrayFormatter::try_new(column.as_ref(), &options).expect("a printable type")
            })
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<_> = columns
                .iter()
                .map(|column| rounded(column.value(row).to_string()))
                .collect();
            rows.push(cells.join(" | "));
        }
    }
    rows.sort();
    rows
}

fn rounded(cell: String) -> String {
    match cell.parse::<f64>() {
        Ok(0.0) => "0".to_string(),
        Ok(number) if cell.contains(['.', 'e']) => format!("{number:.9e}"),
        _ => cell,
    }
}

fn rows(session: &Session, sql: &str) -> Vec<String> {
    let query = plan(session, sql);
    text_of(&collect(session, &query).unwrap_or_else(|error| panic!("{sql}\n{error}")))
}

/// Runs `check` for each query and tells all that failed at once.
fn for_each_query(check: impl Fn(&str) -> Result<(), String>) {
    for_each(QUERIES, check);
}

fn for_each(queries: &[&str], check: impl Fn(&str) -> Result<(), String>) {
    let failed: Vec<_> = queries
        .iter()
        .filter_map(|sql| check(sql).err().map(|why| format!("{sql}\n{why}")))
        .collect();
    assert!(
        failed.is_empty(),
        "{} queries failed:\n\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

/// Compares the rows of one query on `session` with `expected`.
fn compare(session: &Session, sql: &str, expected: &[String]) -> Result<(), String> {
    let run = || {
        let query = session.handle().block_on(session.query(sql))?;
        Ok(text_of(&collect(session, &query)?))
    };
    let found = run().map_err(|error: Error| error.to_string())?;
    if found == expected {
        return Ok(());
    }
    let only = |these: &[String], those: &[String]| {
        let rows: Vec<_> = these
            .iter()
            .filter(|row| !those.contains(row))
            .take(3)
            .cloned()
            .collect();
        rows.join("\n    ")
    };
    Err(format!(
        "  {} rows, expected {}\n  only ours:\n    {}\n  only DataFusion's:\n    {}",
        found.len(),
        expected.len(),
        only(&found, expected),
        only(expected, &found)
    ))
}

/// The queries give DataFusion's rows under DataFusion's schema.
fn are_those_of_datafusion(queries: &[&str]) {
    let (datafusion, ours) = (datafusion(), session(|_| {}));
    for_each(queries, |sql| {
        compare(&ours, sql, &rows(&datafusion, sql))?;
        match plan(&ours, sql).schema() == plan(&datafusion, sql).schema() {
            true => Ok(()),
            false => Err("another schema".to_string()),
        }
    });
}

/// The plans have `part`, or have it not.
fn plans_have(session: &Session, queries: &[&str], part: &str, expected: bool) {
    for_each(queries, |sql| {
        let text = explained(session, sql);
        match text.contains(part) == expected {
            true => Ok(()),
            false => Err(text),
        }
    });
}

fn explained(session: &Session, sql: &str) -> String {
    displayable(plan(session, sql).plan().as_ref())
        .indent(true)
        .to_string()
}

/// Queries that our operator has to run, without any exchange below it.
const QUERIES: &[&str] = &[
    // no keys
    "SELECT count(*), count(long), sum(long), min(text), max(text), avg(finite), min(day), max(time) FROM t",
    "SELECT sum(wide), avg(money), sum(money), min(money), max(money), min(flag), max(seen) FROM t",
    "SELECT count(*), sum(long), min(text), avg(finite), median(long), array_agg(long) FROM t WHERE long < 0",
    "SELECT count(*) FILTER (WHERE small > 0), sum(long) FILTER (WHERE flag), min(text) FILTER (WHERE false) FROM t",
    "SELECT count(DISTINCT long), sum(DISTINCT small), count(DISTINCT text), count(long) FROM t",
    "SELECT stddev(finite), var_pop(finite), corr(finite, long), bit_and(long), bool_or(flag), median(long) FROM t",
    "SELECT count(*), sum(long), count(DISTINCT long) FROM empty",
    // one key of each kind
    "SELECT small, count(*), sum(long), min(text), max(finite) FROM t GROUP BY small",
    "SELECT long, count(*), avg(finite), min(day), max(time) FROM t GROUP BY long",
    "SELECT wide, count(*), sum(long) FROM t GROUP BY wide",
    "SELECT text, count(*), sum(long), min(seen) FROM t GROUP BY text",
    "SELECT seen, count(*), sum(money) FROM t GROUP BY seen",
    "SELECT coded, count(*), min(coded), max(long) FROM t GROUP BY coded",
    "SELECT float, count(*), sum(long) FROM t GROUP BY float",
    "SELECT flag, count(*), bool_and(flag), max(text) FROM t GROUP BY flag",
    "SELECT day, count(*), avg(money) FROM t GROUP BY day",
    "SELECT time, count(*) FROM t GROUP BY time",
    "SELECT money, count(*), sum(money) FROM t GROUP BY money",
    "SELECT list, count(*), sum(long) FROM t GROUP BY list",
    "SELECT pair, count(*), sum(long) FROM t GROUP BY pair",
    "SELECT date_trunc('day', time), count(*) FROM t GROUP BY 1",
    "SELECT small, count(*) FROM empty GROUP BY small",
    // several keys
    "SELECT small, flag, count(*), sum(long) FROM t GROUP BY small, flag",
    "SELECT small, long, day, count(*) FROM t GROUP BY small, long, day",
    "SELECT small, text, count(*), min(long) FROM t GROUP BY small, text",
    "SELECT text, seen, coded, float, count(*) FROM t GROUP BY text, seen, coded, float",
    "SELECT wide, money, time, day, small, count(*) FROM t GROUP BY wide, money, time, day, small",
    "SELECT DISTINCT small, flag FROM t",
    "SELECT DISTINCT * FROM t",
    "SELECT small + 1, long % 3, count(*), sum(small + 1) FROM t GROUP BY small + 1, long % 3",
    // a key of few literals
    "SELECT CASE WHEN long < 10 THEN 'low' WHEN long < 40 THEN 'middle' WHEN long < 60 THEN 'low' ELSE 'high' END AS c, flag, count(*), min(text) FROM t GROUP BY 1, 2",
    "SELECT CASE small WHEN 1 THEN 'a' WHEN 2 THEN NULL WHEN 3 THEN '' END AS c, count(*), count(DISTINCT long), max(CASE small WHEN 1 THEN 'a' WHEN 2 THEN NULL WHEN 3 THEN '' END) \
     FROM t GROUP BY 1",
    "SELECT wide, CASE WHEN text > 'm' THEN arrow_cast('a text that fits no view', 'Utf8View') ELSE text END, count(*) FROM t GROUP BY 1, 2",
    "SELECT CASE WHEN flag THEN 'yes' ELSE 'no' END AS c, small, wide, count(*) FROM t GROUP BY ROLLUP (CASE WHEN flag THEN 'yes' ELSE 'no' END, small, wide)",
    "SELECT DISTINCT CASE WHEN flag THEN arrow_cast('yes', 'LargeUtf8') END, money FROM t",
    "SELECT CASE WHEN flag THEN 'yes' ELSE 'no' END, count(*) FROM empty GROUP BY 1",
    "SELECT c, d, count(*), sum(w) FROM (SELECT CASE WHEN NOT (long < 10 OR flag) AND small IS NOT NULL THEN 'one' WHEN flag THEN NULL \
       WHEN small IS NULL THEN 'none' ELSE 'one' END AS c, CASE WHEN small = 0 THEN 'zero' WHEN 10 / small > 2 THEN 'few' END AS d, \
       long + 1 AS w FROM t) GROUP BY c, d",
    "SELECT c, count(*), count(c), min(c), sum(n ORDER BY n) FILTER (WHERE b) FROM (SELECT CASE WHEN long >= 40 THEN 'high' END AS c, \
       small % 2 = 0 AS b, small AS n FROM t WHERE wide > 0) GROUP BY c",
    // sketches, which DataFusion's operators hold too
    "SELECT number % 3, uniq(number), approx_distinct(number % 9000), uniq(number, number % 2) FROM numbers(40000) GROUP BY 1",
    "SELECT uniq(number), uniq(number::varchar) FILTER (WHERE number % 2 = 0), uniq(DISTINCT number % 7000) FROM numbers(40000)",
    "SELECT wide, uniq(text, long), approx_distinct(list), uniq(finite) FILTER (WHERE flag) FROM t GROUP BY wide",
    // DataFusion's states
    "SELECT small, stddev(finite), covar_samp(finite, long), regr_slope(finite, long) FROM t GROUP BY small",
    "SELECT small, median(long), approx_distinct(text), bit_xor(long) FROM t GROUP BY small",
    "SELECT small, median(finite), quantile_cont(finite, 0.1), quantile_cont(finite, 0.9) FILTER (WHERE flag), median(money), \
     percentile_cont(0.3) WITHIN GROUP (ORDER BY finite DESC), median(finite) FILTER (WHERE flag), median(finite) + 1 FROM t GROUP BY small",
    "SELECT median(long), quantile_cont(long, 0.25), first_value(long ORDER BY wide, day), first_value(day ORDER BY wide, day), sum(long) FROM t",
    "SELECT wide, quantile_cont(long, 0.25), median(long), quantile_cont(long, 0.75) FROM t GROUP BY wide HAVING median(long) > 3",
    "SELECT quantile_cont(long, 0.25), median(long) FROM empty",
    "SELECT small, count(DISTINCT text), sum(DISTINCT long), count(*) FROM t GROUP BY small",
    "SELECT wide, median(long), stddev(finite), count(DISTINCT text) FROM t GROUP BY wide",
    "SELECT small, count(text, long), count(NULL), count(1) FROM t GROUP BY small",
    // order inside aggregates
    "SELECT small, array_agg(wide ORDER BY wide) FROM t GROUP BY small",
    "SELECT small, array_agg(wide ORDER BY wide DESC), array_agg(wide ORDER BY wide) FROM t GROUP BY small",
    "SELECT small, first_value(text ORDER BY wide), last_value(text ORDER BY wide) FROM t GROUP BY small",
    "SELECT small, array_sort(string_to_array(string_agg(DISTINCT text, ' ~ '), ' ~ ')), count(DISTINCT text) FROM t GROUP BY small",
    "SELECT wide, length(string_agg(DISTINCT text, NULL) FILTER (WHERE flag)), string_agg(DISTINCT text, ',' ORDER BY text) FROM t GROUP BY wide",
    "SELECT length(string_agg(DISTINCT text, ', ')), string_agg(DISTINCT text, 'x') FILTER (WHERE false) FROM t",
    "SELECT small, array_agg(text ORDER BY flag, wide DESC NULLS LAST), nth_value(text, -2 ORDER BY finite, wide) FROM t GROUP BY small",
    "SELECT wide, array_agg(list ORDER BY long, small) FILTER (WHERE flag), array_agg(small ORDER BY long, small) IGNORE NULLS FROM t GROUP BY wide",
    "SELECT array_agg(long ORDER BY long DESC) FILTER (WHERE small = 1), string_agg(text, NULL ORDER BY wide, text), nth_value(wide, 3 ORDER BY wide) FROM t",
    "SELECT small, array_agg(long ORDER BY wide), array_agg(DISTINCT text ORDER BY text), sum(long) FROM t GROUP BY small",
    "SELECT wide, array_agg(DISTINCT long ORDER BY long DESC NULLS LAST), string_agg(DISTINCT text, '; ' ORDER BY text DESC) FROM t GROUP BY wide",
    "SELECT array_agg(DISTINCT flag ORDER BY flag), array_agg(DISTINCT list ORDER BY list) FILTER (WHERE small > 1) FROM t",
    "SELECT small, nth_value(long, 2 ORDER BY wide), string_agg(text, ',' ORDER BY wide) FROM t GROUP BY small",
    "SELECT array_agg(wide ORDER BY wide), first_value(long ORDER BY wide DESC) FROM t",
    "SELECT small, first_value(long ORDER BY wide) FILTER (WHERE flag) FROM t GROUP BY small",
    "SELECT small, first_value(long) IGNORE NULLS IS NULL FROM t GROUP BY small",
    "SELECT text, first_value(text), last_value(text), any_value(text), last_value(DISTINCT text) FROM t GROUP BY text",
    "SELECT small, first_value(text ORDER BY flag DESC NULLS LAST, finite, wide), last_value(long ORDER BY text, wide) FROM t GROUP BY small",
    "SELECT wide, first_value(long ORDER BY coded, wide, long), last_value(coded ORDER BY wide, long), array_agg(long ORDER BY coded, long) FROM t GROUP BY wide",
    "SELECT wide, max_by(text, wide % 3) IS NULL, first_value(flag ORDER BY arrow_cast(long, 'Dictionary(Int32, Int64)'), flag) FROM t GROUP BY wide",
    "SELECT last_value(text ORDER BY wide) IGNORE NULLS, first_value(flag ORDER BY wide DESC) FILTER (WHERE long % 2 = 0) FROM t",
    "SELECT small, first_value(text ORDER BY small, wide), first_value(small ORDER BY small, wide), sum(long), last_value(long ORDER BY wide DESC) FROM t GROUP BY small",
    "SELECT small, first_value(long ORDER BY wide) FILTER (WHERE flag), first_value(text ORDER BY wide) FILTER (WHERE flag), first_value(list ORDER BY wide), \
     first_value(small ORDER BY wide) FILTER (WHERE flag), last_value(pair ORDER BY wide DESC NULLS FIRST) FROM t GROUP BY small",
    "SELECT first_value(text ORDER BY day, wide), last_value(coded ORDER BY wide), first_value(coded ORDER BY wide DESC), first_value(long ORDER BY day, wide) FROM t",
    "SELECT first_value(text ORDER BY day, wide), first_value(long ORDER BY day, wide), first_value(time ORDER BY day, wide) FROM empty",
    "SELECT wide, long, last_value(text ORDER BY wide, day, text), last_value(wide ORDER BY wide, day, text) FROM t GROUP BY wide, long",
    "SELECT small, flag, first_value(text ORDER BY small, wide), last_value(small ORDER BY small, wide), count(*) FROM t GROUP BY ROLLUP (small, flag)",
    "SELECT DISTINCT ON (small, flag) flag, wide, text, small FROM t ORDER BY small, flag, finite DESC, wide",
    "SELECT DISTINCT ON (long) money, seen FROM t ORDER BY long DESC, wide, small",
    "SELECT small, first_value(long ORDER BY flag, wide) AS f FROM t GROUP BY small HAVING first_value(long ORDER BY flag, wide) > 10 ORDER BY f, small LIMIT 3",
    "SELECT float, first_value(long ORDER BY float, wide, long), first_value(text ORDER BY float, wide, long), last_value(float ORDER BY float, wide, long) FROM t GROUP BY float",
    "SELECT small, first_value(small ORDER BY small), last_value(flag ORDER BY small) IS NULL OR true FROM t GROUP BY small",
    // any row will do, but one it has to be
    "SELECT count(*) FROM (SELECT wide, first_value(text) AS x, last_value(long) AS y, any_value(finite) AS z FROM t GROUP BY wide) AS p \
     WHERE NOT (EXISTS (SELECT 1 FROM t WHERE t.wide IS NOT DISTINCT FROM p.wide AND t.text IS NOT DISTINCT FROM x) \
     AND EXISTS (SELECT 1 FROM t WHERE t.wide IS NOT DISTINCT FROM p.wide AND t.long IS NOT DISTINCT FROM y) \
     AND EXISTS (SELECT 1 FROM t WHERE t.wide IS NOT DISTINCT FROM p.wide AND t.finite IS NOT DISTINCT FROM z))",
    // filters
    "SELECT small, count(*) FILTER (WHERE long > 40), sum(long) FILTER (WHERE text = 'a') FROM t GROUP BY small",
    "SELECT text, median(long) FILTER (WHERE flag), count(*) FILTER (WHERE flag IS NULL) FROM t GROUP BY text",
    "SELECT small, count(*) FROM t GROUP BY small HAVING count(*) > 100",
    "SELECT small, sum(long) FROM t GROUP BY small HAVING small > 1 AND sum(long) > 10",
    // grouping sets
    "SELECT small, flag, count(*), grouping(small), grouping(flag) FROM t GROUP BY ROLLUP (small, flag)",
    "SELECT small, flag, sum(long), grouping(small, flag) FROM t GROUP BY CUBE (small, flag)",
    "SELECT small, text, count(*) FROM t GROUP BY GROUPING SETS ((small), (text), ())",
    "SELECT small, count(*) FROM t GROUP BY GROUPING SETS ((small), (small), (), ())",
    "SELECT small, count(*), sum(long) FROM empty GROUP BY GROUPING SETS ((small), ())",
    "SELECT count(*), count(DISTINCT long) FROM empty GROUP BY GROUPING SETS ((), ())",
    "SELECT small, coded, median(long) FROM empty GROUP BY CUBE (small, coded)",
    "SELECT small, coded, count(*) FROM t GROUP BY CUBE (small, coded)",
    "SELECT wide, small, count(*), sum(long), avg(finite), min(text), max(coded), median(long) FROM t GROUP BY ROLLUP (wide, small)",
    "SELECT small, flag, coded, sum(money), stddev(finite), uniq(text), count(text) FILTER (WHERE long > 3), min(day) FROM t GROUP BY CUBE (small, flag, coded)",
    "SELECT text, list, max_by(long, wide), count(DISTINCT small), bit_xor(long), array_agg(wide ORDER BY wide) FROM t GROUP BY GROUPING SETS ((text, list), (list), (list))",
    "SELECT small, text, count(*), sum(DISTINCT long), string_agg(text, ',' ORDER BY wide), mode(small) FROM t GROUP BY GROUPING SETS ((small), (text))",
    "SELECT wide, text FROM t GROUP BY GROUPING SETS ((wide, text), (text), ())",
    // above and below
    "SELECT count(*), sum(n) FROM (SELECT long, count(*) AS n FROM t GROUP BY long)",
    "SELECT long, count(*) AS n FROM t GROUP BY long ORDER BY n DESC, long LIMIT 5",
    "SELECT small, count(*) FROM (SELECT small FROM t UNION ALL SELECT long FROM t UNION ALL SELECT 1) GROUP BY small",
    "SELECT small, sum(n) FROM (SELECT small, flag, count(*) AS n FROM t GROUP BY small, flag) GROUP BY small",
    "SELECT small, count(*) FROM t WHERE small = 3 GROUP BY small",
    "SELECT 1, count(*) FROM t GROUP BY 1",
    "SELECT sum(long + 1), sum(long + 2), count(long) FROM t",
];

/// Queries with operators of DataFusion above and below ours, which may exchange rows for their own sake.
const SURROUNDED: &[&str] = &[
    "SELECT a.small, a.n, b.s FROM (SELECT small, count(*) AS n FROM t GROUP BY small) a \
     JOIN (SELECT small, sum(long) AS s FROM t GROUP BY small) b ON a.small = b.small",
    "SELECT a.long, count(*), sum(b.long) FROM t a JOIN t b ON a.wide = b.wide GROUP BY a.long",
    "SELECT x.small, y.n FROM (SELECT DISTINCT small FROM t) x LEFT JOIN \
     (SELECT long, count(*) AS n FROM t GROUP BY long) y ON x.small = y.long",
    "SELECT small, n, sum(n) OVER (ORDER BY small) FROM (SELECT small, count(*) AS n FROM t GROUP BY small)",
    "SELECT small FROM t GROUP BY small UNION SELECT long FROM t GROUP BY long",
    "SELECT small, count(*) FROM t GROUP BY small UNION ALL SELECT count(*), sum(small) AS total FROM t",
    "SELECT small FROM t INTERSECT SELECT long FROM t",
    "SELECT small, count(*) FROM t WHERE long > (SELECT avg(long) FROM t) GROUP BY small",
    "SELECT small, count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.long = a.small GROUP BY b.long) GROUP BY small",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50) SELECT n % 3, count(*), sum(n) FROM r GROUP BY 1",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT DISTINCT n + 1 FROM r WHERE n < 20) SELECT count(*), sum(n) FROM r",
    "SELECT a, b, count(*) FROM (SELECT x.small AS a, y.small AS b FROM t x JOIN t y ON x.wide = y.wide AND x.small = y.small) \
     GROUP BY CUBE (a, b) ORDER BY a, b",
    "SELECT small, max(n) FROM (SELECT small, flag, count(*) AS n FROM t GROUP BY CUBE (small, flag)) GROUP BY small",
];

#[test]
fn datafusion_above_and_below_sees_what_it_expects() {
    let datafusion = datafusion();
    let ours = [1, 2, 5].map(|threads| session(|options| options.threads = threads));
    for_each(SURROUNDED, |sql| {
        let expected = rows(&datafusion, sql);
        ours.iter()
            .try_for_each(|session| compare(session, sql, &expected))
    });
}

#[test]
fn every_shape_gives_datafusions_rows() {
    let datafusion = datafusion();
    let ours = [1, 2, 7].map(|threads| session(|options| options.threads = threads));
    for_each_query(|sql| {
        let expected = rows(&datafusion, sql);
        ours.iter()
            .try_for_each(|session| compare(session, sql, &expected))
    });
}

#[test]
fn decimals_are_added_and_multiplied_as_datafusion_does() {
    let (ours, datafusion) = (session(|_| {}), datafusion());
    let queries = [
        "SELECT small, sum(money * (1 - money)), min(money - 1), max((money + 2) * (money - 3) + money) FROM t GROUP BY small",
        "SELECT money * money AS p, count(*) FROM t GROUP BY money * money ORDER BY p LIMIT 9",
        "SELECT (money + 1.25) / 3, money * arrow_cast(money, 'Decimal128(38, 10)') FROM t",
        "SELECT sum(p) FROM (SELECT money * 1.5 AS p FROM (SELECT * FROM t ORDER BY money * 1.5, wide LIMIT 100) ORDER BY p)",
        "SELECT CASE WHEN money > 0 THEN 10 / money ELSE money - 0.5 END FROM t",
        "SELECT small, sum(CASE WHEN small > 2 THEN money ELSE 0.5 END * money) FROM t GROUP BY small",
    ];
    for_each(&queries, |sql| compare(&ours, sql, &rows(&datafusion, sql)));
    let product = "SELECT money * money FROM t";
    let shown = "(money@0 * money@0)";
    assert!(explained(&ours, product).contains(shown));
    assert!(!explained(&datafusion, product).contains(shown));
    let of_one = "SELECT CASE WHEN small > 2 THEN money ELSE money + 1 END * money FROM t";
    let chosen = explained(&ours, of_one);
    assert!(chosen.contains("END * money@"), "{chosen}");
}

#[test]
fn every_table_and_tiny_sizes_give_the_same_rows() {
    let datafusion = datafusion();
    let tables = ["auto", "direct", "packed", "bytes", "row"];
    let ours = tables.map(|table| {
        session(|options| {
            options.set("group_by_table", table).expect("a table kind");
            options.set("group_by_sizes", "tiny").expect("a size");
            options.batch_size = 100;
        })
    });
    for_each_query(|sql| {
        let expected = rows(&datafusion, sql);
        let each = ours.iter().zip(tables);
        each.into_iter().try_for_each(|(session, table)| {
            compare(session, sql, &expected).map_err(|why| format!("  table {table}\n{why}"))
        })
    });
}

#[test]
fn no_exchange_and_none_of_datafusions_aggregation_is_planned() {
    let session = session(|_| {});
    for_each_query(|sql| {
        let text = explained(&session, sql);
        // A filter may spread its input over the workers; what groups never does.
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let exchanged = lines
            .windows(2)
            .any(|pair| pair[0].starts_with("GroupByExec") && pair[1].starts_with("Repart"));
        // Subqueries are joins, whose inputs may be exchanged.
        let hashed =
            text.contains("RepartitionExec: partitioning=Hash") && !text.contains("HashJoinExec");
        match text.contains("GroupByExec")
            && !text.contains("AggregateExec")
            && !exchanged
            && !hashed
        {
            true => Ok(()),
            false => Err(text),
        }
    });
}

#[test]
fn the_plan_says_keys_aggregates_workers_and_table() {
    let session = session(|options| options.threads = 3);
    let text = explained(
        &session,
        "SELECT small, sum(long), bit_or(long) FROM t GROUP BY small",
    );
    for part in [
        "keys=[small@",
        "aggregates=[sum(",
        "workers=3",
        "table=direct",
        "datafusion_states=[bit_or]",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let native = [
        "stddev(long), stddev_pop(long), var(long), var_pop(long)",
        "covar(long, finite), covar_pop(long, finite), corr(long, finite)",
        "regr_slope(long, finite), regr_intercept(long, finite), regr_count(long, finite), regr_r2(long, finite)",
        "regr_avgx(long, finite), regr_avgy(long, finite), regr_sxx(long, finite), regr_syy(long, finite)",
        "regr_sxy(long, finite), median(long), median(finite), quantile_cont(long, 0.3)",
        "percentile_cont(0.9) WITHIN GROUP (ORDER BY finite DESC)",
        "array_agg(long), array_agg(text), string_agg(text, ','), array_agg(list)",
        "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY finite DESC), approx_median(long), approx_percentile_cont(0.2, 50) WITHIN GROUP (ORDER BY long)",
    ];
    for aggregates in native {
        let text = explained(
            &session,
            &format!("SELECT small, {aggregates} FROM t GROUP BY small"),
        );
        assert!(text.contains("GroupByExec"), "{text}");
        assert!(!text.contains("datafusion_states"), "{text}");
    }
    let sketched = "SELECT small, uniq(long), uniq(DISTINCT text, list), approx_distinct(float) FROM t GROUP BY small";
    let text = explained(&session, sketched);
    assert!(!text.contains("datafusion_states"), "{text}");
    let kinds = [
        ("text", "direct"),
        ("wide", "direct"),
        ("money", "packed"),
        ("small, text", "direct"),
        ("money, text", "packed"),
        ("small, list", "row"),
        ("list", "row"),
    ];
    for (keys, table) in kinds {
        let text = explained(
            &session,
            &format!("SELECT {keys}, count(*) FROM t GROUP BY {keys}"),
        );
        assert!(
            text.contains(&format!("table={table}")),
            "{keys}: {table}\n{text}"
        );
    }
    assert!(explained(&session, "SELECT sum(long) FROM t").contains("table=none"));
}

#[test]
fn the_plan_says_which_columns_somebody_reads() {
    let session = session(|_| {});
    for (sql, projection) in [
        (
            "SELECT count(*) FROM (SELECT DISTINCT small, text FROM t)",
            Some("projection=[]"),
        ),
        (
            "SELECT text FROM t GROUP BY small, text",
            Some("projection=[text]"),
        ),
        (
            "SELECT sum(long), text FROM t GROUP BY small, text",
            Some("projection=[sum(t.long), text]"),
        ),
        ("SELECT small, text FROM t GROUP BY small, text", None),
    ] {
        let text = explained(&session, sql);
        let is_node = |line: &&str| line.trim().starts_with("GroupByExec");
        let node = text.lines().rfind(is_node).expect("a node of ours");
        let expected = projection.unwrap_or("projection=");
        assert_eq!(
            node.contains(expected),
            projection.is_some(),
            "{sql}\n{text}"
        );
    }
}

#[test]
fn analyze_says_what_happened() {
    let session = session(|_| {});
    let text = rows(
        &session,
        "EXPLAIN ANALYZE SELECT wide, sum(long) FROM t GROUP BY wide",
    )
    .join("\n");
    let parts = [
        "rows_in=3",
        "groups_out=",
        "build_time=",
        "merge_time=",
        "emit_time=",
        "evaluate_time=",
        "table=",
        "partitions=",
        "blocks=",
        "probes_per_row=",
        "build_bytes_peak=",
        "merge_bytes_peak=",
    ];
    for part in parts {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn the_schema_is_that_of_datafusion() {
    let (ours, datafusion) = (session(|_| {}), datafusion());
    for_each_query(|sql| {
        let (ours, datafusion) = (plan(&ours, sql).schema(), plan(&datafusion, sql).schema());
        if ours == datafusion {
            Ok(())
        } else {
            Err(format!("{ours:?}\n{datafusion:?}"))
        }
    });
}

#[test]
fn a_sorted_input_stays_with_datafusion() {
    let session = session(|_| {});
    let sorted =
        "SELECT long, count(*) FROM (SELECT long FROM t ORDER BY long LIMIT 1000) GROUP BY long";
    assert!(explained(&session, sorted).contains("AggregateExec"));
    assert_eq!(rows(&session, sorted), rows(&datafusion(), sorted));
}

#[test]
fn distinct_with_a_limit_stops_early() {
    let session = session(|options| options.threads = 1);
    let sql = "SELECT DISTINCT number % 1000000007 FROM numbers(1000000000000) LIMIT 10";
    assert!(
        explained(&session, sql).contains("limit=10"),
        "{}",
        explained(&session, sql)
    );
    let started = Instant::now();
    assert_eq!(rows(&session, sql).len(), 10);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "the whole input was read"
    );
}

#[test]
fn aggregates_with_a_limit_keep_rows_of_few_groups() {
    let session = session(|options| options.threads = 1);
    // Strings of many values, keys that go around the table, and an array.
    for (key, rows_each, is_left_out) in [
        ("'a group ' || number % 50000", 20, true),
        ("number * 1234567", 1, true),
        ("'a group of its own ' || number", 1, true),
        ("number % 100", 10_000, false),
    ] {
        let sql = format!("SELECT {key}, count(*) FROM numbers(1000000) GROUP BY 1 LIMIT 3");
        let text = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
        assert!(text.contains("rows_not_chosen="), "{text}");
        let are_all_kept = text.contains("rows_not_chosen=0,");
        assert_eq!(!are_all_kept, is_left_out, "{text}");
        let counted = format!("SELECT count(*), min(c), max(c) FROM ({sql}) AS t(k, c)");
        let expected = format!("SELECT 3, {rows_each}, {rows_each}");
        assert_eq!(rows(&session, &counted), rows(&session, &expected), "{sql}");
    }
}

#[test]
fn rows_with_their_own_order_keep_it() {
    let session = session(|options| options.threads = 4);
    let sql = "SELECT array_agg(wide) FROM (SELECT wide FROM t ORDER BY wide LIMIT 2000)";
    assert_eq!(rows(&session, sql), rows(&datafusion(), sql));
}

#[test]
fn a_query_can_run_again() {
    let session = session(|_| {});
    for sql in [
        "SELECT small, count(*) FROM t GROUP BY small",
        "SELECT count(*), sum(long) FROM t",
    ] {
        let query = plan(&session, sql);
        let first = text_of(&collect(&session, &query).expect("rows"));
        assert_eq!(
            text_of(&collect(&session, &query).expect("rows")),
            first,
            "{sql}"
        );
        assert!(!first.is_empty());
    }
}

/// The first node with several streams from the top: what a consumer of partitions sees.
fn partitioned(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if plan.output_partitioning().partition_count() > 1 {
        return Arc::clone(plan);
    }
    partitioned(
        plan.children()
            .first()
            .expect("a node with several streams"),
    )
}

#[test]
fn streams_that_are_not_polled_hold_nothing_up() {
    let session = session(|options| {
        options.threads = 4;
        options.batch_size = 10;
    });
    let query = plan(&session, "SELECT wide, count(*) FROM t GROUP BY wide");
    let plan = partitioned(query.plan());
    let context = session.context().task_ctx();
    session.handle().block_on(async {
        let mut streams: Vec<_> = (0..4)
            .map(|at| plan.execute(at, Arc::clone(&context)).expect("a stream"))
            .collect();
        // One is polled once and never again, one never. Its poll finds a batch where workers were faster.
        let polled = pin!(streams[1].next()).poll(&mut Context::from_waker(Waker::noop()));
        let mut groups = match polled {
            Poll::Ready(batch) => batch.map_or(0, |batch| batch.expect("a batch").num_rows()),
            Poll::Pending => 0,
        };
        let rest = tokio::time::timeout(Duration::from_secs(20), async {
            while let Some(batch) = streams[0].next().await {
                groups += batch.expect("a batch").num_rows();
            }
        });
        rest.await.expect("the other streams held it up");
        assert_eq!(groups, distinct_wide());
        assert!(streams[3].next().await.is_none());
    });
}

#[test]
fn a_stream_that_is_left_early_leaves_the_rest_to_the_others() {
    let session = session(|options| {
        options.threads = 2;
        options.batch_size = 10;
    });
    let query = plan(&session, "SELECT wide, count(*) FROM t GROUP BY wide");
    let plan = partitioned(query.plan());
    let context = session.context().task_ctx();
    let groups = session.handle().block_on(async {
        let mut first = plan.execute(0, Arc::clone(&context)).expect("a stream");
        let mut groups = first
            .next()
            .await
            .expect("a batch")
            .expect("no error")
            .num_rows();
        drop(first);
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut second = plan.execute(1, context).expect("a stream");
        while let Some(batch) = second.next().await {
            groups += batch.expect("a batch").num_rows();
        }
        groups
    });
    assert_eq!(groups, distinct_wide());
}

fn distinct_wide() -> usize {
    let batches: Vec<_> = (0..ROWS / BATCH_ROWS)
        .map(|at| batch(at * BATCH_ROWS..(at + 1) * BATCH_ROWS))
        .collect();
    let values = batches.iter().flat_map(|batch| {
        let column = batch.column_by_name("wide").expect("a column").clone();
        column
            .as_any()
            .downcast_ref::<Int64Array>()
            .expect("integers")
            .values()
            .to_vec()
    });
    values.collect::<BTreeSet<_>>().len()
}

#[test]
fn dropping_the_stream_stops_all_workers() {
    let session = session(|options| options.threads = 2);
    let queries = [
        "SELECT number % 10, count(*) FROM numbers(1000000000000) GROUP BY 1",
        "SELECT sum(number) FROM numbers(1000000000000)",
        "SELECT number % 5000000, sum(number) FROM numbers(1000000000000) GROUP BY 1",
    ];
    for sql in queries {
        let idle = session.handle().metrics().num_alive_tasks();
        let query = plan(&session, sql);
        let stream = query.execute().expect("a stream");
        std::thread::sleep(Duration::from_millis(300));
        assert!(
            session.handle().metrics().num_alive_tasks() > idle,
            "{sql}: it was over already"
        );
        drop(stream);
        let dropped = Instant::now();
        while session.handle().metrics().num_alive_tasks() > idle {
            assert!(
                dropped.elapsed() < Duration::from_secs(5),
                "{sql}: workers go on"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        // The bound is 100 ms; a machine that is busy with other tests gets some more.
        assert!(
            dropped.elapsed() < Duration::from_millis(500),
            "{sql}: {:?}",
            dropped.elapsed()
        );
    }
}

#[test]
fn an_error_in_the_middle_ends_the_query_and_its_workers() {
    let session = session(|options| options.threads = 3);
    let idle = session.handle().metrics().num_alive_tasks();
    for sql in [
        "SELECT small, sum(1 / (long - 5)) FROM t GROUP BY small",
        "SELECT 1 / (long - 5), count(*) FROM t GROUP BY 1",
        "SELECT sum(1 / (long - 5)) FROM t",
        "SELECT count(*) FILTER (WHERE 1 / (long - 5) > 0) FROM t",
    ] {
        let query = plan(&session, sql);
        let error = collect(&session, &query).expect_err(sql);
        assert_eq!(*error.kind(), Error::DivideByZero, "{sql}");
    }
    let waiting = Instant::now();
    while session.handle().metrics().num_alive_tasks() > idle {
        assert!(waiting.elapsed() < Duration::from_secs(5), "workers go on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let session = session(|_| {});
    for sql in [
        "SELECT sum(9223372036854775807 - number) FROM numbers(3)",
        "SELECT number % 2, sum(9223372036854775807 - number) FROM numbers(6) GROUP BY 1",
    ] {
        let sql = sql.replace(
            "9223372036854775807 - number",
            "9223372036854775807 - CAST(number AS BIGINT)",
        );
        let query = plan(&session, &sql);
        let error = collect(&session, &query).expect_err(&sql);
        assert!(
            matches!(error.kind(), Error::Overflow { .. }),
            "{sql}: {error}"
        );
        assert!(error.to_string().contains("sum"), "{error}");
    }
}

#[test]
fn past_the_memory_limit_the_error_names_operator_amount_limit_and_option() {
    let session = session(|options| options.memory_limit = Some(48 << 20));
    // A group is never cut: one of 80 MB of values has to fit.
    for sql in [
        "SELECT median(number) FROM numbers(20000000)",
        "SELECT number % 2, median(number) FROM numbers(20000000) GROUP BY 1",
    ] {
        let query = plan(&session, sql);
        let error = collect(&session, &query).expect_err(sql);
        let Error::OutOfMemory(out) = &error else {
            panic!("{sql}: {error}")
        };
        assert_eq!(out.operator, "median(numbers().number) in GroupByExec");
        assert_eq!(out.limit_bytes, 48 << 20);
        assert!(
            out.asked_bytes > 0 && error.to_string().contains("memory_limit"),
            "{error}"
        );
    }
    // Workers that were stopped give their memory back when they next look.
    let waiting = Instant::now();
    while session.context().runtime_env().memory_pool.reserved() > 0 {
        assert!(
            waiting.elapsed() < Duration::from_secs(5),
            "memory is not given back"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn all_nan_are_one_group_and_both_zeros_too() {
    let session = session(|_| {});
    let strings = "(VALUES ('NaN'), ('-NaN'), ('0'), ('-0'), ('-0')) AS v(text)";
    for keys in ["x", "x, CAST(x IS NULL AS text)"] {
        let sql = format!(
            "SELECT count(*) FROM (SELECT CAST(text AS double) AS x FROM {strings}) GROUP BY {keys}"
        );
        assert_eq!(rows(&session, &sql), ["2", "3"], "{keys}");
    }
}

/// Counts rows, whatever their values; only in the form for one group.
#[derive(Debug, Default)]
struct Rows(i64);

impl Accumulator for Rows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> datafusion::common::Result<()> {
        self.0 += values[0].len() as i64;
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> datafusion::common::Result<()> {
        self.0 += states[0]
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .sum::<i64>();
        Ok(())
    }

    fn state(&mut self) -> datafusion::common::Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> datafusion::common::Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(self.0)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[test]
fn a_users_aggregate_runs_even_under_a_name_of_ours() {
    let session = session(|options| options.set("group_by_sizes", "tiny").expect("a size"));
    for name in ["rows_of", "count"] {
        let function = create_udaf(
            name,
            vec![DataType::Int64],
            Arc::new(DataType::Int64),
            Volatility::Immutable,
            Arc::new(|_| Ok(Box::<Rows>::default())),
            Arc::new(vec![DataType::Int64]),
        );
        session.context().register_udaf(function);
        let grouped = format!("SELECT small, {name}(long) FROM t GROUP BY small");
        let text = explained(&session, &grouped);
        assert!(
            text.contains(&format!("datafusion_states=[{name}]")),
            "{text}"
        );
        // Unlike DataFusion's count it counts NULLs too.
        assert_eq!(
            rows(&session, &grouped),
            rows(
                &datafusion(),
                "SELECT small, count(*) FROM t GROUP BY small"
            )
        );
        assert_eq!(
            rows(&session, &format!("SELECT {name}(long) FROM t")),
            [ROWS.to_string()]
        );
        assert_eq!(
            rows(&session, &format!("SELECT {name}(long) FROM empty")),
            ["0"]
        );
    }
}

#[test]
fn the_errors_of_all_sums_are_typed() {
    let session = session(|_| {});
    for function in ["sum(x)", "sum(DISTINCT x)", "sum(x) OVER ()"] {
        let sql = format!("SELECT {function} FROM (VALUES (9223372036854775807), (1)) AS v(x)");
        let error = collect(&session, &plan(&session, &sql)).expect_err(&sql);
        assert!(
            matches!(error.kind(), Error::Overflow { .. }),
            "{sql}: {error:?}"
        );
        assert!(error.to_string().contains("does not fit BIGINT"), "{error}");
    }
}
