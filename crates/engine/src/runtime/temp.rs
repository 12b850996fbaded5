//! Temporary files of one session: in its folders, without a name, within one limit.
//!
//! In: DataFusion's operators (sorts, joins) and ours, with more rows than memory holds. Out: files.
//! Invariant: on Linux a file never has a name, so that the system frees it however the process ends (elsewhere it loses
//! the name before anything is written). What all files of a session hold together stays within the limit.
//! Not here: what is written (`grouse_groupby::spill`, DataFusion).

use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder};
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use grouse_groupby::{Disk, ScratchFile};
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::runtime::accounted::Bytes;
use crate::runtime::memory::take;
use crate::runtime::options::SessionOptions;

/// DataFusion's operators read their files in pieces of so many bytes.
const READ_BYTES: u64 = 128 << 10;

/// Where a session's temporary files lie, and how much they hold.
#[derive(Debug)]
pub(crate) struct TempFolders {
    folders: RwLock<Vec<PathBuf>>,
    next: AtomicUsize,
    used_bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
}

impl TempFolders {
    /// As `options` say.
    ///
    /// Every file is open as long as it is there, and DataFusion writes many small ones. So the process may open as many
    /// as the system's hard limit says; where that is refused, the limit that there is stands.
    pub fn new(options: &SessionOptions) -> Result<Arc<TempFolders>> {
        rlimit::increase_nofile_limit(u64::MAX).ok();
        let folders = TempFolders {
            folders: RwLock::default(),
            next: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            limit_bytes: AtomicUsize::new(usize::MAX),
        };
        folders.apply(options)?;
        Ok(Arc::new(folders))
    }

    /// Uses the folders that `options` name, which are made where they are missing, or the system's.
    pub fn apply(&self, options: &SessionOptions) -> Result<()> {
        for folder in &options.temp_directory {
            let made = match folder.is_dir() {
                true => Ok(()),
                false => std::fs::create_dir(folder),
            };
            made.and_then(|()| tempfile::tempfile_in(folder))
                .map_err(|error| Error::Io {
                    path: folder.display().to_string(),
                    message: format!("no temporary file can be made there: {error}"),
                })?;
        }
        *self.folders.write() = match options.temp_directory.is_empty() {
            true => vec![std::env::temp_dir()],
            false => options.temp_directory.clone(),
        };
        let limit_bytes = options.max_temp_directory_size.unwrap_or(u64::MAX);
        let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Where DataFusion's operators find the folders.
    pub fn disk_manager(self: &Arc<Self>) -> DiskManagerBuilder {
        DiskManager::builder().with_temp_file_factory(Arc::new(Shared(Arc::clone(self))))
    }

    /// A new file, in the folder whose turn it is.
    fn create(self: &Arc<Self>) -> std::io::Result<TempFile> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = {
            let folders = self.folders.read();
            folders[turn % folders.len()].clone()
        };
        let file = tempfile::tempfile_in(&folder).map_err(|error| at(&folder, error))?;
        Ok(TempFile {
            file,
            folder,
            taken: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            folders: Arc::clone(self),
        })
    }

    fn take(&self, bytes: usize) -> std::io::Result<()> {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        take(&self.used_bytes, bytes, limit).map_err(|used| {
            IoError::new(
                ErrorKind::QuotaExceeded,
                format!(
                    "temporary files hold {used} of the {limit} bytes that they may, and {bytes} more are \
                     needed; max_temp_directory_size raises that"
                ),
            )
        })
    }
}

/// A failure with the folder where it was, which the operators hand on as it is.
fn at(folder: &Path, error: IoError) -> IoError {
    if error.get_ref().is_some_and(|inner| inner.is::<Error>()) {
        return error;
    }
    let message = match error.kind() {
        ErrorKind::StorageFull => format!(
            "no space is left for temporary files ({error}); free some, or name another folder with temp_directory"
        ),
        ErrorKind::QuotaExceeded => error.to_string(),
        _ => format!("in the temporary folder: {error}"),
    };
    let path = folder.display().to_string();
    IoError::new(error.kind(), Error::Io { path, message })
}

/// A file that is gone with its last handle.
#[derive(Debug)]
struct TempFile {
    file: File,
    folder: PathBuf,
    /// Bytes that count in the session's limit.
    taken: AtomicUsize,
    /// Bytes that can be read: DataFusion reads files that it still writes to.
    written: AtomicU64,
    folders: Arc<TempFolders>,
}

impl TempFile {
    fn append(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        let end = at + bytes.len() as u64;
        self.folders.take(bytes.len())?;
        self.taken.fetch_add(bytes.len(), Ordering::Relaxed);
        ScratchFile::write(&self.file, bytes, at)?;
        self.written.store(end, Ordering::Release);
        Ok(())
    }

    fn end(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.folders.used_bytes.fetch_sub(taken, Ordering::Relaxed);
    }
}

impl ScratchFile for TempFile {
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        self.append(bytes, at)
            .map_err(|error| self::at(&self.folder, error))
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        ScratchFile::read(&self.file, bytes, at).map_err(|error| self::at(&self.folder, error))
    }
}

/// The folders as DataFusion and the operator ask for them.
#[derive(Debug)]
pub(crate) struct Shared(pub Arc<TempFolders>);

impl Disk for Shared {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        let file = self.0.create()?;
        let name = file.folder.display().to_string();
        Ok((Box::new(file), name))
    }
}

impl TempFileFactory for Shared {
    fn create_temp_file(&self, _description: &str) -> DataFusionResult<Arc<dyn SpillFile>> {
        Ok(Arc::new(DataFusionFile(Arc::new(self.0.create()?))))
    }
}

/// A file that DataFusion writes from its beginning to its end, and then reads.
struct DataFusionFile(Arc<TempFile>);

impl SpillFile for DataFusionFile {
    fn size(&self) -> Option<u64> {
        Some(self.0.end())
    }

    fn read_stream(
        &self,
    ) -> DataFusionResult<Pin<Box<dyn Stream<Item = DataFusionResult<Bytes>> + Send>>> {
        let start = (Arc::clone(&self.0), 0);
        Ok(Box::pin(futures::stream::try_unfold(start, next_piece)))
    }

    fn open_writer(&self) -> DataFusionResult<Box<dyn SpillWriter>> {
        Ok(Box::new(DataFusionWriter(Arc::clone(&self.0))))
    }
}

/// The bytes from `at` on, and where those after them begin.
async fn next_piece(
    (file, at): (Arc<TempFile>, u64),
) -> DataFusionResult<Option<(Bytes, (Arc<TempFile>, u64))>> {
    let left = file.end().saturating_sub(at);
    if left == 0 {
        return Ok(None);
    }
    let piece = left.min(READ_BYTES);
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; piece as usize];
        let read = file.read(&mut bytes, at);
        read.map(|()| (Bytes::from(bytes), (file, at + piece)))
    });
    let read = reading
        .await
        .map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?;
    Ok(Some(read?))
}

struct DataFusionWriter(Arc<TempFile>);

impl Write for DataFusionWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.0.append(bytes, self.0.end());
        written.map_err(|error| at(&self.0.folder, error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for DataFusionWriter {
    fn finish(&mut self) -> DataFusionResult<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_folder() {
        let full = at(Path::new("/tmp"), ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        let Error::Io { path, message } = Error::from(DataFusionError::IoError(full)) else {
            panic!("another error");
        };
        assert_eq!(path, "/tmp");
        assert!(message.contains("no space is left") && message.contains("temp_directory"));
    }

    fn folders(limit: Option<u64>) -> (tempfile::TempDir, Arc<TempFolders>) {
        let folder = tempfile::tempdir().unwrap();
        let options = SessionOptions {
            temp_directory: vec![folder.path().to_path_buf()],
            max_temp_directory_size: limit,
            ..Default::default()
        };
        (folder, TempFolders::new(&options).unwrap())
    }

    #[tokio::test]
    async fn datafusion_reads_what_it_has_written_while_it_writes_more() {
        let (_folder, folders) = folders(None);
        let manager = Arc::new(folders.disk_manager().build().unwrap());
        let file = manager.create_tmp_file("a test").unwrap();
        let mut writer = file.open_writer().unwrap();
        let piece: Vec<u8> = (0..=250).collect();
        writer.write_all(&piece).unwrap();
        let stream = file.read_stream().unwrap();
        let writing = std::thread::spawn(move || {
            for _ in 1..4000 {
                writer.write_all(&piece).unwrap();
            }
        });
        let early: Vec<Bytes> = stream.try_collect().await.unwrap();
        writing.join().unwrap();
        let late: Vec<Bytes> = file.read_stream().unwrap().try_collect().await.unwrap();
        let (early, late) = (early.concat(), late.concat());
        assert_eq!((late.len(), file.size()), (251 * 4000, Some(251 * 4000)));
        assert!(early.len() >= 251 && late.starts_with(&early));
        assert!(
            late.iter()
                .enumerate()
                .all(|(at, byte)| usize::from(*byte) == at % 251)
        );
        drop(file);
        assert_eq!(folders.used_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn past_the_limit_the_error_names_the_option_and_nothing_stays_taken() {
        let (folder, folders) = folders(Some(100));
        let file = Shared(Arc::clone(&folders)).create().unwrap().0;
        file.write(&[1; 60], 0).unwrap();
        let error = file.write(&[1; 60], 60).unwrap_err().to_string();
        assert!(error.contains("60 of the 100 bytes"), "{error}");
        assert!(error.contains("max_temp_directory_size"), "{error}");
        file.write(&[1; 40], 60).unwrap();
        drop(file);
        assert_eq!(folders.used_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
