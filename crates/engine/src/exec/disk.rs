//! Files for records that memory does not hold: in the session's temporary folders, without a name.
//!
//! In: the host's disk manager, which knows the folders. Out: open files.
//! Invariant: a file loses its name before anything is written to it, so that the system frees it however the process ends.
//! Not here: what is written (`grouse_groupby::spill`).

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::disk_manager::DiskManager;
use grouse_groupby::{Disk, ScratchFile, Spill};

use super::NAME;

/// The session's temporary folders.
struct Folders(Arc<DiskManager>);

/// What the workers of one run write to, if the session may write at all.
pub(super) fn spill(context: &TaskContext) -> Option<Arc<Spill>> {
    let manager = &context.runtime_env().disk_manager;
    let folders = Folders(Arc::clone(manager));
    manager
        .tmp_files_enabled()
        .then(|| Arc::new(Spill::new(folders)))
}

impl Disk for Folders {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        let named = self.0.create_tmp_file(NAME).map_err(own_words)?;
        let path = named.path().ok_or(ErrorKind::Unsupported)?;
        let file = File::options().read(true).write(true).open(path)?;
        // Dropping `named` removes the name.
        Ok((Box::new(file), path.display().to_string()))
    }
}

fn own_words(error: DataFusionError) -> Error {
    match error {
        DataFusionError::IoError(error) => error,
        other => Error::other(other),
    }
}
