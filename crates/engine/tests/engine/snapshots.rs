//! Files that somebody replaces, cuts short or writes to while a query reads them: an error, or the one old version.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{run, session, write_parquet};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::ipc;
use futures::TryStreamExt;
use grouse::{Error, Session};

const ROWS: i64 = 50_000;
const FORMATS: [&str; 4] = ["csv", "json", "parquet", "arrow"];

/// Writes a file of so many rows that all hold `value`.
fn write(path: &Path, value: i64, rows: i64) {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![value; rows as usize]));
    let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "csv" => fs::write(
            path,
            format!("v\n{}", format!("{value}\n").repeat(rows as usize)),
        ),
        "json" => fs::write(path, format!("{{\"v\":{value}}}\n").repeat(rows as usize)),
        "arrow" => {
            let file = fs::File::create(path).unwrap();
            let mut writer = ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            Ok(())
        }
        _ => {
            write_parquet(path, &batch);
            Ok(())
        }
    }
    .unwrap();
}

/// Plans a sum, changes the file, and runs what was planned.
fn sum_after(session: &Session, path: &Path, change: impl FnOnce()) -> Result<i64, Error> {
    let sql = format!("SELECT sum(v) FROM '{}' WHERE v > 0", path.display());
    let handle = session.handle();
    let query = handle.block_on(session.query(&sql)).unwrap();
    change();
    let batches: Vec<RecordBatch> =
        handle.block_on(async { query.execute()?.try_collect().await.map_err(Error::from) })?;
    Ok(sum_of(&batches))
}

fn sum_of(batches: &[RecordBatch]) -> i64 {
    let column = batches[0].column(0);
    let column = column.as_any().downcast_ref::<Int64Array>().unwrap();
    column.value(0)
}

#[track_caller]
fn check(answer: Result<i64, Error>, path: &Path, old: i64) {
    let name = path.file_name().unwrap().to_str().unwrap();
    match answer {
        Ok(sum) => assert_eq!(sum, old, "{name}"),
        Err(error) => {
            assert!(
                matches!(error.kind(), Error::Io { .. }),
                "{name}: {error:?}"
            );
            let text = error.to_string();
            assert!(
                text.contains(name) && text.contains("run the query again"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_file_that_changes_after_planning() {
    let (folder, session) = (tempfile::tempdir().unwrap(), session());
    for format in FORMATS {
        let path = folder.path().join(format!("x.{format}"));
        let fresh = folder.path().join(format!("fresh.{format}"));
        write(&path, 1, ROWS);
        let replaced = sum_after(&session, &path, || {
            write(&fresh, 2, ROWS);
            fs::rename(&fresh, &path).unwrap();
        });
        check(replaced, &path, ROWS);
        write(&path, 1, ROWS);
        let cut = sum_after(&session, &path, || {
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(100).unwrap();
        });
        check(cut, &path, ROWS);
        write(&path, 1, ROWS);
        let grown = sum_after(&session, &path, || write(&path, 1, 2 * ROWS));
        check(grown, &path, ROWS);
        write(&path, 1, ROWS);
        let gone = sum_after(&session, &path, || fs::remove_file(&path).unwrap());
        assert!(
            matches!(&gone, Err(error) if matches!(error.kind(), Error::Io { .. }))
                || gone == Ok(ROWS),
            "{gone:?}"
        );
        // The next query sees what there is now.
        write(&path, 3, ROWS);
        let now = sum_after(&session, &path, || ());
        assert_eq!(now, Ok(3 * ROWS), "{format}");
    }
}

/// Replaces a file again and again until it is told to stop.
fn replacing(path: PathBuf, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let fresh = path.with_file_name(format!(
            "fresh.{}",
            path.extension().unwrap().to_str().unwrap()
        ));
        let mut value = 1;
        while !stop.load(Ordering::Relaxed) {
            value = value % 9 + 1;
            write(&fresh, value, ROWS);
            fs::rename(&fresh, &path).unwrap();
        }
    })
}

#[test]
fn no_answer_mixes_two_versions() {
    for format in FORMATS {
        let (folder, session) = (tempfile::tempdir().unwrap(), session());
        run(
            &session,
            "SET datafusion.optimizer.repartition_file_min_size = 0",
        )
        .unwrap();
        let path = folder.path().join(format!("x.{format}"));
        write(&path, 1, ROWS);
        let stop = Arc::new(AtomicBool::new(false));
        let writer = replacing(path.clone(), Arc::clone(&stop));
        let mut answers = 0;
        for _ in 0..40 {
            let sql = format!("SELECT sum(v) FROM '{}' WHERE v > 0", path.display());
            match run(&session, &sql) {
                Ok(batches) => {
                    let sum = sum_of(&batches);
                    assert!(
                        sum % ROWS == 0 && (1..=9).contains(&(sum / ROWS)),
                        "{format}: {sum}"
                    );
                    answers += 1;
                }
                Err(error) => {
                    assert!(
                        matches!(error.kind(), Error::Io { .. }),
                        "{format}: {error:?}"
                    );
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        println!("{format}: {answers} of 40 answered");
    }
}

// A file that lost its bytes under a query kept a core busy for ever.
#[test]
fn a_file_that_is_cut_while_it_is_read() {
    for format in ["csv", "json"] {
        let (folder, session) = (tempfile::tempdir().unwrap(), session());
        run(
            &session,
            "SET datafusion.optimizer.repartition_file_min_size = 0",
        )
        .unwrap();
        let path = folder.path().join(format!("x.{format}"));
        write(&path, 1, 2_000_000);
        let cutting = path.clone();
        let cutter = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(15));
            let file = fs::OpenOptions::new().write(true).open(cutting).unwrap();
            file.set_len(100).unwrap();
        });
        let sql = format!("SELECT v, count(*) FROM '{}' GROUP BY v", path.display());
        match run(&session, &sql) {
            Ok(batches) => assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1),
            Err(error) => assert!(error.to_string().contains("x."), "{error:?}"),
        }
        cutter.join().unwrap();
    }
}
