//! Panics of foreign decoders become errors about the file that they read.
//!
//! In: a scan. Out: the same, whose files are decoded under guard, piece by piece.
//! Invariant: a panic in the code of a crate that decodes files is an error that names the file, and nothing is printed. A
//! panic anywhere else goes on as it came.
//! Not here: what is checked before anything is decoded (parquet/decoding.rs, ipc/messages.rs); readers of our own.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use object_store::ObjectStore;
use shared_datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};

use super::location::name_in_store;
use crate::error::Error;
use crate::scan::wrapped::as_wrapped;

/// Crates that make values of a file's bytes. Their assertions are about what the file says.
const DECODERS: [&str; 10] = [
    "parquet",
    "arrow-array",
    "arrow-buffer",
    "arrow-data",
    "arrow-ipc",
    "flatbuffers",
    "bytes",
    "snap",
    "lz4_flex",
    "brotli-decompressor",
];

thread_local! {
    /// Whether this thread decodes a file.
    static DECODES: Cell<bool> = const { Cell::new(false) };
    /// Whether the last panic meanwhile was a decoder's.
    static WAS_DECODERS: Cell<bool> = const { Cell::new(false) };
}

/// Has the process's hook pass panics of decoders by: they are errors, and told as such.
fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            let place = panic.location().filter(|_| DECODES.get());
            WAS_DECODERS.set(place.is_some_and(|place| is_of_decoder(place.file())));
            if !WAS_DECODERS.get() {
                before(panic);
            }
        }));
    });
}

/// Whether a source file lies in the folder of a decoder's crate, which has its version in its name.
fn is_of_decoder(path: &str) -> bool {
    let is_decoders = |folder: &str| {
        DECODERS.iter().any(|name| {
            let version = folder
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('-'));
            version.is_some_and(|version| version.starts_with(|at: char| at.is_ascii_digit()))
        })
    };
    path.split(['/', '\\']).any(is_decoders)
}

/// What `decode` gives, or an error about the file if a decoder panics.
fn guarded<T>(file: &str, decode: impl FnOnce() -> T) -> Result<T> {
    let outer = DECODES.replace(true);
    WAS_DECODERS.set(false);
    // What panicked is dropped and never asked again.
    let done = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(outer);
    match done {
        Ok(done) => Ok(done),
        Err(_) if WAS_DECODERS.take() => Err(damaged(file).into()),
        Err(panic) => resume_unwind(panic),
    }
}

fn damaged(file: &str) -> Error {
    Error::bad_file(
        file.to_string(),
        "its data is not what it says of its data; it is damaged",
    )
}

/// A source whose files are decoded under guard.
pub(crate) struct GuardedSource {
    source: Arc<dyn FileSource>,
}

impl GuardedSource {
    /// In the place of the source of `config`; none if it has its guard.
    pub(crate) fn replacing(config: &FileScanConfig) -> Option<FileScanConfig> {
        let source = config.file_source();
        if source.downcast_ref::<GuardedSource>().is_some() {
            return None;
        }
        watch_panics();
        let source = Arc::new(GuardedSource {
            source: Arc::clone(source),
        });
        let config = FileScanConfigBuilder::from(config.clone()).with_source(source);
        Some(config.build())
    }

    /// A source without its guard.
    pub(super) fn unguarded(source: &Arc<dyn FileSource>) -> &Arc<dyn FileSource> {
        let guarded = source.downcast_ref::<GuardedSource>();
        guarded.map_or(source, |guarded| &guarded.source)
    }
}

impl FileSource for GuardedSource {
    as_wrapped!(
        source: table_schema, filter, projection, metrics, file_type, fmt_extra,
        supports_repartitioning, repartitioned, reorder_files, apply_expressions
    );

    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.source.create_file_opener(store, config, partition)
    }

    fn create_morselizer(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        Ok(Box::new(GuardedFiles {
            files: self.source.create_morselizer(store, config, partition)?,
            store: config.object_store_url.as_str().to_string(),
        }))
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(GuardedSource {
            source: self.source.with_batch_size(rows),
        })
    }
}

#[derive(Debug)]
struct GuardedFiles {
    files: Box<dyn Morselizer>,
    store: String,
}

impl Morselizer for GuardedFiles {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let name = name_in_store(&self.store, &file.object_meta.location);
        let planner = guarded(&name, || self.files.plan_file(file))??;
        Ok(GuardedPlanner::around(planner, &Arc::from(name)))
    }
}

/// Plans pieces of a file.
#[derive(Debug)]
struct GuardedPlanner {
    planner: Box<dyn MorselPlanner>,
    file: Arc<str>,
}

impl GuardedPlanner {
    fn around(planner: Box<dyn MorselPlanner>, file: &Arc<str>) -> Box<dyn MorselPlanner> {
        let file = Arc::clone(file);
        Box::new(GuardedPlanner { planner, file })
    }
}

impl MorselPlanner for GuardedPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let GuardedPlanner { planner, file } = *self;
        let Some(mut plan) = guarded(&file, || planner.plan())?? else {
            return Ok(None);
        };
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|morsel| {
            let file = Arc::clone(&file);
            Box::new(GuardedMorsel { morsel, file }) as Box<dyn Morsel>
        });
        let ready = plan.take_ready_planners().into_iter();
        let ready = ready.map(|planner| GuardedPlanner::around(planner, &file));
        let mut own = MorselPlan::new()
            .with_morsels(morsels.collect())
            .with_planners(ready.collect());
        if let Some(pending) = plan.take_pending_planner() {
            let mut pending = pending.into_future();
            own.set_pending_planner(async move {
                let planner = poll_fn(|context| {
                    guarded(&file, || pending.as_mut().poll(context))
                        .unwrap_or_else(|error| Poll::Ready(Err(error)))
                });
                Ok(GuardedPlanner::around(planner.await?, &file))
            });
        }
        Ok(Some(own))
    }
}

#[derive(Debug)]
struct GuardedMorsel {
    morsel: Box<dyn Morsel>,
    file: Arc<str>,
}

impl Morsel for GuardedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let GuardedMorsel { morsel, file } = *self;
        match guarded(&file, || morsel.into_stream()) {
            Ok(batches) => GuardedBatches {
                batches: Some(batches),
                file,
            }
            .boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}

struct GuardedBatches {
    /// None once a decoder has panicked.
    batches: Option<BoxStream<'static, Result<RecordBatch>>>,
    file: Arc<str>,
}

impl Stream for GuardedBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let GuardedBatches { batches, file } = &mut *self;
        let Some(decoded) = batches else {
            return Poll::Ready(None);
        };
        guarded(file, || decoded.as_mut().poll_next(context)).unwrap_or_else(|error| {
            *batches = None;
            Poll::Ready(Some(Err(error)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use datafusion::arrow::util::bit_chunk_iterator::BitChunks;
    use futures::executor::block_on;

    use super::*;

    fn beyond_its_bytes() -> usize {
        BitChunks::new(black_box(&[]), 0, 64).chunk_len()
    }

    #[test]
    fn panics_of_decoders_are_errors_and_others_go_on() {
        watch_panics();
        assert_eq!(guarded("/x.parquet", || 7).unwrap(), 7);
        let error = guarded("/x.parquet", beyond_its_bytes).unwrap_err();
        let error = Error::from(error).to_string();
        for part in ["/x.parquet", "damaged"] {
            assert!(error.contains(part), "{error}");
        }
        // One of ours, also after one of a decoder that somebody caught.
        let ours = catch_unwind(|| {
            guarded("/x.parquet", || -> usize {
                assert!(catch_unwind(beyond_its_bytes).is_err());
                panic!("ours")
            })
        });
        assert!(ours.is_err());
        // Outside of decoding nothing is caught, and the thread decodes no more.
        assert!(!DECODES.get());
        assert!(catch_unwind(beyond_its_bytes).is_err());
        assert!(!WAS_DECODERS.get());
    }

    #[test]
    fn a_stream_ends_with_the_panic() {
        watch_panics();
        let steps = stream::iter(0..3).map(|step| match step {
            0 => Ok(RecordBatch::new_empty(Arc::new(
                datafusion::arrow::datatypes::Schema::empty(),
            ))),
            _ => unreachable!("{}", beyond_its_bytes()),
        });
        let batches = GuardedBatches {
            batches: Some(steps.boxed()),
            file: Arc::from("/x.parquet"),
        };
        let all: Vec<Result<RecordBatch>> = block_on(batches.collect());
        let is_right: Vec<bool> = all.iter().map(Result::is_ok).collect();
        assert_eq!(is_right, [true, false]);
    }

    #[test]
    fn folders_of_decoders() {
        let cargo = "/root/.cargo/registry/src/index-1949cf8c6b5b557f";
        assert!(is_of_decoder(&format!(
            "{cargo}/parquet-59.3.2/src/util/bit_util.rs"
        )));
        assert!(is_of_decoder(
            "vendor\\arrow-buffer-59.3.2\\src\\util\\bit_chunk_iterator.rs"
        ));
        for other in [
            "crates/engine/src/scan/parquet/levels.rs",
            "/rustc/1234/library/core/src/option.rs",
            &format!("{cargo}/arrow-arith-59.3.2/src/numeric.rs"),
            &format!("{cargo}/parquet-variant-59.3.2/src/lib.rs"),
        ] {
            assert!(!is_of_decoder(other), "{other}");
        }
    }
}
