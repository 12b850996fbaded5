//! The stage of one COPY or INSERT: files that nobody sees yet.
//!
//! In: a target, names of files below it, bytes. Out: all files under their names, or none.
//! Invariant: a stage ends once, by commit or by discard, whichever comes first; after a discard no file is made any more,
//! whatever tasks still run. A file is whole when it gets its name; a new or overwritten folder appears as a whole, files
//! that are added to a folder appear one after the other.
//! Not here: the bytes (DataFusion's writers), how they get here (upload.rs), which rows go where (sink.rs).

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path as SystemPath, PathBuf};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::new_file::{NewFile, folder_beside, folder_in, folder_of, sync_folder};
use super::request::Existing;
use super::target::{WriteTarget, io_error};
use crate::error::from_datafusion::object_store as store_error;
use crate::error::{Error, Result};
use crate::scan::access::Access;

/// Files under way.
#[derive(Debug)]
pub(crate) struct StagedFiles {
    /// The target as a user would write it.
    name: String,
    existing: Existing,
    access: Arc<Access>,
    /// `None`: it is over.
    place: Mutex<Option<StagePlace>>,
    failure: Mutex<Option<Error>>,
}

/// Where the files are until then.
#[derive(Debug)]
enum StagePlace {
    Stream(Arc<File>),
    File(NewFile),
    Folder(Folder),
    Objects(Objects),
}

#[derive(Debug)]
struct Folder {
    staging: TempDir,
    target: PathBuf,
    /// Names of the files, below either.
    names: Vec<String>,
}

#[derive(Debug)]
struct Objects {
    store: Arc<dyn ObjectStore>,
    base: Path,
    names: Vec<String>,
    held: Vec<Held>,
}

/// An object whose last step is still to be done.
#[derive(Debug)]
pub(super) enum Held {
    /// All of its bytes.
    Whole(Path, PutPayload),
    /// Bytes that the server has in parts.
    Parts(Box<dyn MultipartUpload>),
}

/// What a file is written to.
pub(super) enum OpenedFile {
    /// A new file.
    File(Arc<File>),
    /// A stream: one writer after the other.
    Stream(Arc<File>),
    /// An object of a store.
    Object(Arc<dyn ObjectStore>, Path),
}

impl StagedFiles {
    /// A stage for `target`.
    pub(super) fn open(
        name: String,
        target: WriteTarget,
        existing: Existing,
        access: Arc<Access>,
    ) -> Result<StagedFiles> {
        let failed = |error: io::Error| io_error(&name, &error);
        let place = match target {
            WriteTarget::Stream(file) => StagePlace::Stream(Arc::new(file)),
            WriteTarget::File(path) => {
                // As for a folder of files, which is made where it is missing.
                fs::create_dir_all(folder_of(&path)).map_err(failed)?;
                StagePlace::File(NewFile::beside(&path).map_err(failed)?)
            }
            WriteTarget::Folder(path) => {
                check_folder(&name, &path, existing)?;
                // Through a link, so that a link to a folder stays one.
                let target = fs::canonicalize(&path).unwrap_or(path);
                let staging = staging_folder(&name, &target, existing, &access)?;
                StagePlace::Folder(Folder {
                    staging,
                    target,
                    names: Vec::new(),
                })
            }
            WriteTarget::Object(store, path) => StagePlace::Objects(Objects::new(store, path)),
            WriteTarget::Objects(store, prefix) => {
                if existing == Existing::Overwritten {
                    return Err(Error::unsupported(format!(
                        "OVERWRITE of a folder behind an address ('{name}')"
                    )));
                }
                StagePlace::Objects(Objects::new(store, prefix))
            }
        };
        Ok(StagedFiles {
            name,
            existing,
            access,
            place: Mutex::new(Some(place)),
            failure: Mutex::new(None),
        })
    }

    /// Whether bytes go where somebody may wait for them.
    pub(super) fn is_stream(&self) -> bool {
        matches!(*self.place.lock(), Some(StagePlace::Stream(_)))
    }

    /// A name for a further file, for the store that writers see; `name` is its place below a folder, or empty for the one
    /// file that the target is.
    pub(super) fn add(&self, name: String) -> Result<Path> {
        let mut place = self.place.lock();
        let names = match place.as_mut() {
            Some(StagePlace::Folder(folder)) => {
                // The name may have `..`, the folder links.
                let path = folder.target.join(&name);
                self.access.check_path(&path, &path.display().to_string())?;
                &mut folder.names
            }
            Some(StagePlace::Objects(objects)) => &mut objects.names,
            Some(StagePlace::File(_) | StagePlace::Stream(_)) => return Ok(Path::from("0")),
            None => return Err(Error::Cancelled),
        };
        names.push(name);
        Ok(Path::from((names.len() - 1).to_string()))
    }

    /// Opens the file that [`StagedFiles::add`] gave this name.
    pub(super) fn create(&self, file: &Path) -> io::Result<OpenedFile> {
        let mut place = self.place.lock();
        match place.as_mut() {
            Some(StagePlace::Stream(stream)) => Ok(OpenedFile::Stream(Arc::clone(stream))),
            Some(StagePlace::File(new)) => Ok(OpenedFile::File(Arc::new(new.file().try_clone()?))),
            Some(StagePlace::Folder(folder)) => {
                let path = folder.staging.path().join(name_at(&folder.names, file)?);
                fs::create_dir_all(folder_of(&path))?;
                Ok(OpenedFile::File(Arc::new(File::create_new(path)?)))
            }
            Some(StagePlace::Objects(objects)) => {
                let path = objects.path(name_at(&objects.names, file)?);
                Ok(OpenedFile::Object(Arc::clone(&objects.store), path))
            }
            None => Err(over()),
        }
    }

    /// Keeps an object for the commit.
    pub(super) fn hold(&self, object: Held) -> io::Result<()> {
        match self.place.lock().as_mut() {
            Some(StagePlace::Objects(objects)) => {
                objects.held.push(object);
                Ok(())
            }
            _ => Err(over()),
        }
    }

    /// Remembers what went wrong; DataFusion's writers tell of it as text at best.
    pub(super) fn fail(&self, error: &io::Error) {
        // What is not the system's follows from something that is.
        if error.raw_os_error().is_none() {
            return;
        }
        let error = io_error(&self.name, error);
        self.failure.lock().get_or_insert(error);
    }

    /// The same for a store.
    pub(super) fn fail_store(&self, error: &object_store::Error) {
        let error = match store_error(error) {
            Error::Io { message, .. } => Error::Io {
                path: self.name.clone(),
                message,
            },
            other => other,
        };
        self.failure.lock().get_or_insert(error);
    }

    /// What went wrong first.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }

    /// Gives all files their names.
    pub(super) async fn commit(self: &Arc<StagedFiles>) -> Result<()> {
        let stage = Arc::clone(self);
        let committing = tokio::task::spawn_blocking(move || stage.commit_local());
        let objects = committing
            .await
            .map_err(|error| Error::Internal(error.to_string()))??;
        let Some(objects) = objects else {
            return Ok(());
        };
        for object in objects.held {
            let done = match object {
                Held::Whole(path, bytes) => objects.store.put(&path, bytes).await,
                Held::Parts(mut parts) => parts.complete().await,
            };
            if let Err(error) = done {
                self.fail_store(&error);
                return Err(self.failure().unwrap_or(Error::Cancelled));
            }
        }
        Ok(())
    }

    /// Under the lock, so that a discard waits for it: where the process ends after that nothing is left half done.
    fn commit_local(&self) -> Result<Option<Objects>> {
        let mut place = self.place.lock();
        let done = match place.take() {
            Some(StagePlace::Stream(_)) => Ok(()),
            Some(StagePlace::File(new)) => new.commit(),
            Some(StagePlace::Folder(folder)) => folder.commit(self.existing),
            Some(StagePlace::Objects(objects)) => return Ok(Some(objects)),
            None => return Err(Error::Cancelled),
        };
        done.map_err(|error| io_error(&self.name, &error))?;
        Ok(None)
    }

    /// Ends the stage without a trace.
    pub(crate) fn discard(&self) {
        let place = self.place.lock().take();
        if let Some(StagePlace::Objects(objects)) = place
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(objects.abort());
        }
    }
}

impl Drop for StagedFiles {
    fn drop(&mut self) {
        self.discard();
    }
}

impl Objects {
    fn new(store: Arc<dyn ObjectStore>, base: Path) -> Objects {
        Objects {
            store,
            base,
            names: Vec::new(),
            held: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> Path {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.base.clone(), |path, part| path.join(part))
    }

    /// Takes back what servers have of objects that will not be.
    async fn abort(self) {
        for object in self.held {
            if let Held::Parts(mut parts) = object {
                // The server then keeps parts that nobody sees, until its own rules remove them.
                let _ = parts.abort().await;
            }
        }
    }
}

impl Folder {
    fn commit(self, existing: Existing) -> io::Result<()> {
        // A temporary name of a folder keeps its permissions: they are those of any new folder.
        for name in &self.names {
            let parent = self.staging.path().join(name);
            sync_folder(folder_of(&parent));
        }
        if !self.target.exists() {
            fs::rename(self.staging.path(), &self.target)?;
        } else {
            let is_inside = self.staging.path().starts_with(&self.target);
            match existing {
                Existing::Refused if !is_inside => fs::rename(self.staging.path(), &self.target)?,
                Existing::Overwritten => exchange(self.staging.path(), &self.target)?,
                Existing::Refused | Existing::Added | Existing::SameNamesReplaced => {
                    self.add(existing)?;
                }
            }
        }
        sync_folder(folder_of(&self.target));
        Ok(())
    }

    /// Moves the files into a folder that stays; where one cannot be, those before it go again.
    fn add(&self, existing: Existing) -> io::Result<()> {
        let mut added: Vec<PathBuf> = Vec::new();
        for name in &self.names {
            let (from, to) = (self.staging.path().join(name), self.target.join(name));
            let moved = fs::create_dir_all(folder_of(&to)).and_then(|()| match existing {
                Existing::SameNamesReplaced => fs::rename(&from, &to),
                _ => move_to_new(&from, &to),
            });
            if let Err(error) = moved {
                if existing != Existing::SameNamesReplaced {
                    added.iter().for_each(|path| {
                        let _ = fs::remove_file(path);
                    });
                }
                return Err(error);
            }
            added.push(to);
        }
        for path in &added {
            sync_folder(folder_of(path));
        }
        Ok(())
    }
}

/// Moves a file to a name that must not be taken.
fn move_to_new(from: &SystemPath, to: &SystemPath) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) if !to.exists() => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// The new folder takes the place of the old one, which goes with the temporary name.
fn exchange(new: &SystemPath, old: &SystemPath) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use shared_rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    // A file system that cannot exchange two names: for a moment there is no folder of this name.
    let aside = folder_beside(old)?;
    fs::rename(old, aside.path().join("old"))?;
    fs::rename(new, old).inspect_err(|_| {
        let _ = fs::rename(aside.path().join("old"), old);
    })
}

/// Refuses a folder whose files would be lost or mixed with others, unless that was asked for.
fn check_folder(name: &str, path: &SystemPath, existing: Existing) -> Result<()> {
    let refuse = |message: &str| {
        Err(Error::Io {
            path: name.to_string(),
            message: message.to_string(),
        })
    };
    match existing {
        Existing::Refused => {
            let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
            if is_empty {
                return Ok(());
            }
            refuse(
                "the folder is not empty; OVERWRITE replaces it, APPEND adds files, OVERWRITE_OR_IGNORE replaces files of the \
                 same names",
            )
        }
        Existing::Overwritten => {
            let (Ok(folder), Ok(here)) = (fs::canonicalize(path), std::env::current_dir()) else {
                return Ok(());
            };
            match here.starts_with(&folder) {
                true => refuse("OVERWRITE would remove the folder that this program runs in"),
                false => Ok(()),
            }
        }
        Existing::Added | Existing::SameNamesReplaced => Ok(()),
    }
}

/// A folder for the files under way: beside the target, or in it where the session does not reach what is around it.
fn staging_folder(
    name: &str,
    target: &SystemPath,
    existing: Existing,
    access: &Access,
) -> Result<TempDir> {
    let is_around_reached = access.check_path(folder_of(target), name).is_ok();
    let staging = match existing {
        _ if is_around_reached => folder_beside(target),
        Existing::Overwritten => {
            return Err(Error::Io {
                path: name.to_string(),
                message: "OVERWRITE puts a new folder in the place of this one, and the option allowed_directories of this session \
                          does not name the folder around it; OVERWRITE_OR_IGNORE replaces files of the same names"
                    .to_string(),
            });
        }
        Existing::Refused | Existing::Added | Existing::SameNamesReplaced => folder_in(target),
    };
    staging.map_err(|error| io_error(name, &error))
}

fn name_at<'a>(names: &'a [String], file: &Path) -> io::Result<&'a str> {
    let index: Option<usize> = file.as_ref().parse().ok();
    let name = index.and_then(|index| names.get(index));
    name.map(String::as_str)
        .ok_or_else(|| io::Error::other("a file that was not announced"))
}

fn over() -> io::Error {
    io::Error::other("the statement was stopped")
}
