//! Targets: where the files of a COPY or INSERT go.
//!
//! In: the path or address as it is written, and what DataFusion makes of it. Out: a [`WriteTarget`].
//! Invariant: devices, pipes and the process's own streams are written in place; all else is replaced when it is whole.
//! Not here: writing (stage.rs).

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path as SystemPath, PathBuf};
use std::sync::Arc;

use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::execution::TaskContext;
use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

use crate::error::{Error, Result};
use crate::scan::access::Access;
use crate::scan::location::home;

/// The message of an error about a pipe that nobody reads any more.
pub const READER_GONE: &str = "its reader has gone away";

/// Where files go.
#[derive(Debug)]
pub(super) enum WriteTarget {
    /// A device, a pipe or a stream of this process.
    Stream(File),
    /// A file of this machine.
    File(PathBuf),
    /// A folder of this machine.
    Folder(PathBuf),
    /// An object behind an address.
    Object(Arc<dyn ObjectStore>, Path),
    /// A folder behind an address.
    Objects(Arc<dyn ObjectStore>, Path),
}

impl WriteTarget {
    /// The target of a sink.
    pub(super) fn of(config: &FileSinkConfig, context: &TaskContext) -> Result<WriteTarget> {
        let name = name_of(config);
        let is_file = is_one_file(config);
        let access = Access::of(context.session_config())?;
        let Some(path) = local_path(&name)? else {
            access.check_network(&name)?;
            let store = context
                .runtime_env()
                .object_store(&config.object_store_url)?;
            let prefix = config.table_paths[0].prefix().clone();
            return Ok(match is_file {
                true => WriteTarget::Object(store, prefix),
                false => WriteTarget::Objects(store, prefix),
            });
        };
        access.check_path(&path, &name)?;
        let failed = |error: io::Error| io_error(&name, &error);
        if let Some(file) = open_in_place(&path).map_err(failed)? {
            return Ok(WriteTarget::Stream(file));
        }
        match (is_file, fs::metadata(&path)) {
            (true, Ok(meta)) if meta.is_dir() => Err(Error::Io {
                path: name,
                message: "it is a folder; write / after its name to put files into it".to_string(),
            }),
            (false, Ok(meta)) if !meta.is_dir() => Err(Error::Io {
                path: name,
                message: "it is a file, and a folder is needed".to_string(),
            }),
            (true, _) => Ok(WriteTarget::File(path)),
            (false, _) => Ok(WriteTarget::Folder(path)),
        }
    }
}

/// The target as a user would write it.
pub(super) fn name_of(config: &FileSinkConfig) -> String {
    // DataFusion does not tell it for an INSERT.
    let name = match config.original_url.as_str() {
        "" => config.table_paths[0].as_str(),
        name => name,
    };
    match Url::parse(name).map(|url| (url.scheme() == "file").then(|| url.to_file_path())) {
        Ok(Some(Ok(path))) => path.display().to_string(),
        _ => name.to_string(),
    }
}

/// Whether the sink writes one file of the very name that it was given.
pub(super) fn is_one_file(config: &FileSinkConfig) -> bool {
    let one = config
        .file_output_mode
        .single_file_output(&config.table_paths[0]);
    config.table_partition_cols.is_empty() && one
}

/// The path on this machine, unless it is an address.
fn local_path(name: &str) -> Result<Option<PathBuf>> {
    match name.split_once("://") {
        Some(("file", _)) => Err(Error::Io {
            path: name.to_string(),
            message: "it is not a path on this machine".to_string(),
        }),
        Some(_) => Ok(None),
        None => Ok(Some(PathBuf::from(home(name)))),
    }
}

/// Whether a path is standard output, by its name.
pub(super) fn is_stdout(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1")
}

/// What is written in place, a device, a pipe or a stream of this process, opened; `None` = it is none of these.
pub fn open_in_place(path: &SystemPath) -> io::Result<Option<File>> {
    // By name: where standard output is a file, the path leads to that file, which must not be replaced.
    let own = match path.to_str() {
        Some(path) if is_stdout(path) => Some(io::stdout().as_fd().try_clone_to_owned()?),
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => {
            Some(io::stderr().as_fd().try_clone_to_owned()?)
        }
        _ => None,
    };
    if let Some(own) = own {
        return Ok(Some(File::from(own)));
    }
    let is_descriptor = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    let kind = match fs::metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_descriptor => return Ok(None),
        Err(error) => return Err(error),
    };
    let in_place = kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    if !in_place && !is_descriptor {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    // Of a descriptor that is a file the end is where its owner would write next.
    options.write(true).append(kind.is_file());
    options.open(path).map(Some)
}

/// A failure of the system as one of this target.
pub(super) fn io_error(name: &str, error: &io::Error) -> Error {
    let message = match error.kind() {
        ErrorKind::NotFound => "the folder that it is to be in does not exist".to_string(),
        ErrorKind::PermissionDenied => "permission denied".to_string(),
        ErrorKind::StorageFull => "the disk is full".to_string(),
        ErrorKind::QuotaExceeded => "the quota of the disk is used up".to_string(),
        ErrorKind::FileTooLarge => "the file gets too large for its file system".to_string(),
        ErrorKind::BrokenPipe => READER_GONE.to_string(),
        ErrorKind::IsADirectory => "it is a folder".to_string(),
        ErrorKind::NotADirectory => "it is below a file, where a folder is needed".to_string(),
        _ => error.to_string(),
    };
    Error::Io {
        path: name.to_string(),
        message,
    }
}
