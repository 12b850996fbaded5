//! SQL and expected rows: every `tests/slt/*.slt` under every setting of the matrix, those of `tests/slt/front` under two.
//!
//! In: the .slt files; in `front` lies what is about SQL and files, not about the operator. Out: a failure names the file, the line and the setting.
//! Invariant: no setting may change an answer; floats are compared to 12 digits, because sums depend on their order.
//! `GROUSE_SLT_UPDATE=1` rewrites the expected rows under the first setting; read the diff.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use futures::TryStreamExt;
use grouse::{Audience, Error, Session, SessionOptions};
use grouse_cluster::ClusterShape;
use grouse_cluster::rehearsal::rehearsing;
use grouse_tests::cell::Cell;
use grouse_tests::setting::{FORCED, Setting, matrix};
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_normalizer, default_validator,
    parse_file, strict_column_validator,
};

/// A session as sqllogictest sees it.
struct Engine(Session);

#[async_trait]
impl AsyncDB for Engine {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let query = self.0.query(sql).await?;
        let schema = query.schema();
        let batches: Vec<_> = query.execute()?.try_collect().await.map_err(Error::from)?;
        if schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = schema
            .fields()
            .iter()
            .map(|field| kind(field.data_type()))
            .collect();
        let mut rows = Vec::new();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                rows.push(
                    batch
                        .columns()
                        .iter()
                        .map(|column| show(column, row))
                        .collect(),
                );
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "grouse"
    }
}

fn kind(kind: &DataType) -> DefaultColumnType {
    match kind {
        DataType::Dictionary(_, values) => self::kind(values),
        kind if kind.is_integer() => DefaultColumnType::Integer,
        kind if kind.is_floating() || kind.is_decimal() => DefaultColumnType::FloatingPoint,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DefaultColumnType::Text,
        _ => DefaultColumnType::Any,
    }
}

fn show(column: &arrow::array::ArrayRef, row: usize) -> String {
    match Cell::of(column, row) {
        Cell::Null => "NULL".to_string(),
        Cell::Text(text) if text.is_empty() => "(empty)".to_string(),
        Cell::Float(value) if value.is_finite() => {
            // 12 digits, then the shortest text for what is left; + 0.0 makes -0.0 plain
            let rounded: f64 = format!("{value:.11e}").parse().expect("a float");
            (rounded + 0.0).to_string()
        }
        Cell::Float(value) => value.to_string(),
        _ => {
            let options = FormatOptions::default().with_null("NULL");
            let formatter = ArrayFormatter::try_new(column, &options).expect("a printable type");
            match formatter.value(row).to_string() {
                text if text.is_empty() => "(empty)".to_string(),
                text => text,
            }
        }
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("a folder of tests")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no file", folder.display());
    files
}

fn runner(
    setting: &Setting,
    session: &Session,
) -> Runner<Engine, impl sqllogictest::MakeConnection<Conn = Engine>> {
    let mut runner = Runner::new(move || {
        let session = session.clone();
        async { Ok(Engine(session)) }
    });
    runner.with_column_validator(strict_column_validator);
    runner.set_var("WORKERS".to_string(), setting.workers.to_string());
    runner
}

#[test]
fn answers_are_the_expected_rows_under_every_setting() {
    check(&files("slt"), &matrix());
}

#[test]
fn front_door_answers_are_the_expected_rows() {
    let everyday = |setting: &Setting| setting.workers == 2 && setting.forced[0] == FORCED[0].1[0];
    // Spilling and tasks are about the operator; rows that tie in an ORDER BY come in any order from tasks.
    let of_operator = |value: &&str| ["spilling", "3"].contains(value);
    let mut settings = matrix();
    settings.retain(|setting| everyday(setting) && !setting.forced.iter().any(of_operator));
    check(&files("slt/front"), &settings);
}

#[test]
fn plans_that_have_been_messages_give_the_expected_rows() {
    let shape = ClusterShape {
        vcores: 2,
        partitions: 3,
    };
    let (mut plans, mut stayed, mut wrong) = (0, BTreeMap::new(), Vec::new());
    for file in files("slt") {
        let options = SessionOptions {
            threads: 2,
            settable: Audience::Test,
            ..Default::default()
        };
        let (session, outcomes) = rehearsing(options, shape, true).expect("a session");
        wrong.extend(session.handle().block_on(wrong_records(&file, &session)));
        let outcomes = outcomes.lock();
        plans += outcomes.distributed;
        for (why, times) in outcomes.here.iter().chain(&outcomes.refused) {
            *stayed.entry(why.clone()).or_insert(0) += times;
        }
    }
    let numbers = stayed.keys().find(|why| why.contains("NumbersExec"));
    assert_eq!(numbers, None);
    let mut out = stdout();
    writeln!(out, "note: {plans} plans were messages").expect("standard output");
    for (why, times) in stayed {
        writeln!(out, "note: {times} were not: {why}").expect("standard output");
    }
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
    assert!(plans > 100, "only {plans} plans were messages");
}

/// What is wrong of each statement of a file: one failure hides none of the others.
async fn wrong_records(file: &Path, session: &Session) -> Vec<String> {
    let settings = matrix();
    let mut runner = runner(&settings[1], session);
    let mut wrong = Vec::new();
    for record in parse_file(file).expect("a file of tests") {
        if let Err(error) = runner.run_async(record).await {
            wrong.push(error.to_string());
        }
    }
    wrong
}

fn check(files: &[PathBuf], settings: &[Setting]) {
    if std::env::var_os("GROUSE_SLT_UPDATE").is_some() {
        return update(files, &settings[0]);
    }
    for setting in settings {
        for file in files {
            let session = setting
                .session()
                .unwrap_or_else(|error| panic!("{setting}: {error}"));
            let outcome = session
                .handle()
                .block_on(runner(setting, &session).run_file_async(file));
            outcome.unwrap_or_else(|error| panic!("under {setting}: {error}"));
        }
    }
    writeln!(
        stdout(),
        "note: slt: {} files under {} settings",
        files.len(),
        settings.len()
    )
    .expect("standard output");
}

/// Writes the rows that DataFusion's own aggregation gives: ours has to equal them. `GROUSE_SLT_UPDATE=ours` writes ours, to see
/// all that differ at once.
fn update(files: &[PathBuf], setting: &Setting) {
    for file in files {
        let session = setting.session().expect("the everyday setting");
        if std::env::var("GROUSE_SLT_UPDATE").as_deref() != Ok("ours") {
            let datafusion = session
                .handle()
                .block_on(session.query("SET group_by_operator = 'datafusion'"));
            datafusion.expect("DataFusion's operator");
        }
        session
            .handle()
            .block_on(runner(setting, &session).update_test_file(
                file,
                " ",
                default_validator,
                default_normalizer,
                strict_column_validator,
            ))
            .expect("a file that can be written");
    }
    panic!(
        "the expected rows were rewritten; read the diff and run again without GROUSE_SLT_UPDATE"
    );
}
