//! One statement, from its text to its last row.
//! In: a statement and where its rows go. Out: the rows there, or why not.
//! Invariant: planning and running happen on the engine's threads, so that this one always sees a signal, the
//! progress and the next batch, whichever comes first. Only [`Runner::rows`] collects a result.
//! Not here: which statements run, and what happens after one has failed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use grouse::READER_GONE;
use grouse::{Error, Profile, Progress, Query, Session, SessionOptions};
use grouse_cluster::Clusters;
use tokio::runtime::Runtime;
use tokio::task::JoinError;

use crate::interrupt::Interrupts;
use crate::output::Output;
use crate::print::{self, Fit, Format, Look, PrintError};
use crate::progress::{self, Bar};

/// A session that reaches clusters.
pub fn session(options: SessionOptions) -> Result<Session, Error> {
    let session = Session::new(options)?;
    session.reach_clusters_by(Arc::new(Clusters::default()))?;
    Ok(session)
}

/// Runs statements one after the other.
pub struct Runner {
    session: Session,
    interrupts: Interrupts,
    /// This thread's own: timers and signals must not wait for the engine's busy workers.
    runtime: Runtime,
}

/// Where and how rows are written.
pub struct Sink<'a> {
    /// The place.
    pub output: &'a mut Output,
    /// The format.
    pub format: Format,
    /// How it is to look.
    pub look: &'a Look,
    /// The size of tables.
    pub fit: Fit,
    /// Whether footers show the time.
    pub footer_time: FooterTime,
    /// Results written to this output so far.
    pub results: &'a mut usize,
}

/// Whether footers show the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FooterTime {
    /// They do.
    Shown,
    /// They do not.
    Hidden,
}

/// Why a statement did not run to its end.
#[derive(Debug)]
pub enum Failure {
    /// The engine says so.
    Engine(Box<Error>),
    /// The rows could not be written.
    Print(PrintError),
    /// The format holds one result, and this would be the second.
    SecondResult(Format),
    /// A signal came.
    Interrupted,
    /// The reader of the output has gone away, which is its right.
    ReaderGone,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            // A COPY to standard output: that its reader has had enough is no error.
            Error::Io { path, message } if path == "/dev/stdout" && message == READER_GONE => {
                Failure::ReaderGone
            }
            _ => Failure::Engine(Box::new(error)),
        }
    }
}

impl From<PrintError> for Failure {
    fn from(error: PrintError) -> Self {
        Failure::Print(error)
    }
}

impl Runner {
    /// For this session.
    pub fn new(session: Session, interrupts: Interrupts) -> std::io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        Ok(Runner {
            session,
            interrupts,
            runtime,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The signals that cancel.
    pub fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Runs one statement; gives the time that it took.
    pub fn run(&self, text: &str, sink: Sink<'_>) -> Result<Duration, Failure> {
        let _running = self.interrupts.running();
        self.runtime.block_on(async {
            let started = Instant::now();
            let mut bar = Bar::start();
            let query = self.planned(text, &mut bar).await?;
            let mut execution = self.execution(query, bar)?;
            execution.started = started;
            execution.covered = sink.output.pager_is_up();
            execution.write(sink).await?;
            Ok(started.elapsed())
        })
    }

    /// Runs one statement for its profile, without its rows; the profile also of one that fails or is stopped.
    pub fn profiled(&self, text: &str) -> Result<(Profile, Result<(), Failure>), Failure> {
        let _running = self.interrupts.running();
        self.runtime.block_on(async {
            let mut bar = Bar::start();
            let query = self.planned(text, &mut bar).await?;
            let recording = query.record();
            let mut execution = self.execution(query, bar)?;
            let ran = loop {
                match execution.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(()),
                    Err(failure) => break Err(failure),
                }
            };
            drop(execution);
            let stopped = Error::Cancelled;
            let failure = match &ran {
                Ok(()) => None,
                Err(Failure::Engine(error)) => Some(error.as_ref()),
                Err(_) => Some(&stopped),
            };
            Ok((recording.finish(failure), ran))
        })
    }

    /// Runs one statement for its rows, of which there are few.
    pub fn rows(&self, text: &str) -> Result<Vec<RecordBatch>, Failure> {
        let _running = self.interrupts.running();
        self.runtime.block_on(async {
            let mut bar = Bar::start();
            let query = self.planned(text, &mut bar).await?;
            let mut execution = self.execution(query, bar)?;
            let mut batches = Vec::new();
            while let Some(batch) = execution.next().await? {
                batches.push(batch);
            }
            Ok(batches)
        })
    }

    /// Plans one statement without running it.
    pub fn plan(&self, text: &str) -> Result<Query, Failure> {
        let _running = self.interrupts.running();
        self.runtime.block_on(self.planned(text, &mut Bar::start()))
    }

    fn execution(&self, query: Query, bar: Bar) -> Result<Execution<'_>, Failure> {
        let rows = query.execute()?;
        Ok(Execution {
            query,
            rows,
            bar,
            interrupts: &self.interrupts,
            started: Instant::now(),
            covered: Arc::default(),
        })
    }

    /// Statements without rows, such as CREATE TABLE AS, are run by this.
    async fn planned(&self, text: &str, bar: &mut Bar) -> Result<Query, Failure> {
        let (session, text) = (self.session.clone(), text.to_owned());
        let handle = self.session.handle();
        let mut planning = handle.spawn(async move { session.query(&text).await });
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.next() => {
                    planning.abort();
                    return Err(Failure::Interrupted);
                }
                planned = &mut planning => return Ok(planned.map_err(defect)??),
                () = tokio::time::sleep(progress::INTERVAL) => bar.draw(&Progress::default()),
            }
        }
    }
}

/// A running query. Dropped, it stops whatever still runs.
struct Execution<'a> {
    query: Query,
    rows: SendableRecordBatchStream,
    bar: Bar,
    interrupts: &'a Interrupts,
    started: Instant,
    /// Whether another program has the terminal, so that no bar is drawn there.
    covered: Arc<AtomicBool>,
}

impl Execution<'_> {
    async fn write(&mut self, mut sink: Sink<'_>) -> Result<(), Failure> {
        if self.query.schema().fields().is_empty() || self.query.writes_to_stdout() {
            while self.next().await?.is_some() {}
            return Ok(());
        }
        // A reader of a stream takes one array after the other, one of a file does not.
        let is_one = sink.format == Format::Json && sink.output.is_file();
        if (is_one || sink.format.is_binary()) && *sink.results > 0 {
            return Err(Failure::SecondResult(sink.format));
        }
        *sink.results += 1;
        let written = self.write_rows(&mut sink).await;
        let flushed = sink.output.flush().map_err(PrintError::Io);
        match written {
            Err(Failure::Print(_)) | Ok(()) if sink.output.reader_is_gone() => {
                Err(Failure::ReaderGone)
            }
            Ok(()) => Ok(flushed?),
            failed => failed,
        }
    }

    async fn write_rows(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        // Headers are written when the first row is there: the bar may be on the same terminal until then, and a
        // query that fails at once leaves no header behind.
        let mut next = self.next().await?;
        let look = (sink.look, sink.fit);
        let mut writer = print::writer(sink.format, look, &self.query.schema(), sink.output)?;
        while let Some(batch) = next {
            writer.write(&batch)?;
            next = self.next().await?;
        }
        let elapsed = self.started.elapsed();
        writer.finish((sink.footer_time == FooterTime::Shown).then_some(elapsed))?;
        Ok(())
    }

    /// The next batch, with the bar kept up to date until it comes and off the terminal when it does.
    async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            tokio::select! {
                biased;
                () = self.interrupts.next() => return Err(Failure::Interrupted),
                batch = self.rows.next() => {
                    self.bar.erase();
                    return Ok(batch.transpose().map_err(Error::from)?);
                }
                () = tokio::time::sleep(progress::INTERVAL) => {
                    if !self.covered.load(Ordering::Relaxed) {
                        self.bar.draw(&self.query.progress());
                    }
                }
            }
        }
    }
}

/// A task that fell over, which is a defect of the engine and not the user's error.
fn defect(error: JoinError) -> Error {
    let message = match error.try_into_panic() {
        Ok(payload) => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => payload
                .downcast_ref::<&str>()
                .map_or_else(String::new, |text| (*text).to_owned()),
        },
        Err(error) => error.to_string(),
    };
    Error::Internal(message)
}
