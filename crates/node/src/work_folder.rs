//! An executor's folder within the work folder: results of stages, and what memory has no room for.
//! In: the work folder. Out: a folder of this process, which goes with it.
//! Invariant: what a killed executor left goes when the next one begins; a folder whose executor lives is left alone.
//! Not here: what lies in it (Ballista, the engine's temporary files).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The ending of folders of executors.
const ENDING: &str = "executor";

/// The file that its process holds locked.
const LOCK: &str = "lock";

/// A folder of this process.
#[derive(Debug)]
pub struct WorkFolder {
    path: PathBuf,
    /// Locked as long as the process lives, however it ends.
    _lock: File,
}

impl WorkFolder {
    /// A new one in `parent`, by this name; those of processes that are gone go first.
    pub fn new(parent: &Path, name: &str) -> io::Result<WorkFolder> {
        fs::create_dir_all(parent)?;
        sweep(parent)?;
        let path = parent.canonicalize()?.join(format!("{name}.{ENDING}"));
        fs::create_dir(&path)?;
        let lock = File::create(path.join(LOCK))?;
        lock.try_lock()?;
        for part in [path.join("stages"), path.join("spill")] {
            fs::create_dir(part)?;
        }
        Ok(WorkFolder { path, _lock: lock })
    }

    /// Where Ballista keeps what stages hand on.
    pub fn stages(&self) -> PathBuf {
        self.path.join("stages")
    }

    /// Where operators write for want of memory.
    pub fn spill(&self) -> PathBuf {
        self.path.join("spill")
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            log::warn!("{} stays: {error}", self.path.display());
        }
    }
}

/// Removes folders whose processes are gone.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) && is_left(&path) {
            log::info!("{} is of an executor that is gone", path.display());
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// Whether nobody holds its lock. A folder that is being made has none yet.
fn is_left(path: &Path) -> bool {
    File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_go_with_their_processes() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("gone.executor");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("rows"), "x").unwrap();
        let first = WorkFolder::new(parent.path(), "first").unwrap();
        assert!(!left.exists());
        let second = WorkFolder::new(parent.path(), "second").unwrap();
        assert!(first.stages().is_dir() && second.spill().is_dir());
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
