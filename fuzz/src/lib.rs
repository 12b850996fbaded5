//! What the fuzz targets share: a session that reaches one folder, and how a statement may end.
//!
//! In: bytes of libFuzzer's. Out: nothing, or a panic that ends the run.
//! Invariant: statements end in rows or in an error that is not internal, within their time and memory. The file of one
//! input takes the place of the one before.
//! Not here: time and memory of the process (libFuzzer's `-timeout` and `-rss_limit_mb`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use futures::StreamExt;
use grouse::{Error, Session, SessionOptions};
use tempfile::TempDir;

/// Statements over a file; `FILE` is its path.
const STATEMENTS: [&str; 2] = ["SELECT * FROM 'FILE'", "SELECT count(*) FROM 'FILE'"];

/// The process's session.
pub struct Closed {
    session: Session,
    folder: TempDir,
}

/// The session; the first call makes it.
pub fn closed() -> &'static Closed {
    static CLOSED: OnceLock<Closed> = OnceLock::new();
    CLOSED.get_or_init(|| {
        // Panics of decoders are errors about their file, and internal errors are told below: libFuzzer's own hook would
        // end the process before either.
        std::panic::set_hook(Box::new(|_| {}));
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let mut options = SessionOptions {
            threads: 1,
            memory_limit: Some(64 << 20),
            allow_files: false,
            allowed_directories: vec![folder.path().to_path_buf()],
            allow_network: false,
            ..Default::default()
        };
        options
            .set("statement_timeout", "10s")
            .expect("an option that there is");
        let session = Session::new(options).expect("a session");
        Closed { session, folder }
    })
}

impl Closed {
    /// The folder that statements reach.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Plans a statement and does not run it.
    pub fn plan(&self, sql: &str) {
        let planned = self.session.handle().block_on(self.session.query(sql));
        told(planned.map(|_| ()), sql);
    }

    /// Runs a statement to its end.
    pub fn run(&self, sql: &str) {
        let reading = async {
            let mut stream = self.session.query(sql).await?.execute()?;
            while let Some(batch) = stream.next().await {
                batch.map_err(Error::from)?;
            }
            Ok(())
        };
        told(self.session.handle().block_on(reading), sql);
    }

    /// Reads these bytes as a file of this name.
    pub fn read(&self, name: &str, bytes: &[u8]) {
        let path = self.write(name, bytes);
        for statement in STATEMENTS {
            self.run(&statement.replace("FILE", &path.display().to_string()));
        }
    }

    /// Runs a statement over the table `t`, which is this batch.
    pub fn query_batch(&self, batch: RecordBatch, sql: &str) {
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]);
        let table = table.expect("a batch of its own schema");
        told(self.session.register("t", Arc::new(table)), sql);
        self.run(sql);
        told(self.session.deregister("t"), sql);
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder().join(name);
        fs::write(&path, bytes).expect("the folder for temporary files has room");
        path
    }
}

/// An internal error is a fault of ours, and so is a statement that does not end.
fn told(ended: Result<(), Error>, sql: &str) {
    if let Err(error) = ended {
        let is_fault = matches!(error.kind(), Error::Internal(_))
            || error.to_string().contains("statement_timeout");
        assert!(!is_fault, "{sql}: {error}");
    }
}
