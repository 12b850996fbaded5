//! A file that gets its name only when it is whole.
//!
//! In: the path of a file that may exist. Out: a file without that name, to write to; on commit the old one is replaced.
//! Invariant: the temporary name is new, random and in the same folder, and a link is never followed to it. The file keeps
//! the mode and, where the system allows it, the owner of the one that it replaces. Without a commit nothing is left.
//! Not here: who writes (stage.rs, the shell).

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Before and after the random part of a temporary name: readers of folders leave out what begins with a dot.
const PREFIX: &str = ".grouse-";
const SUFFIX: &str = ".tmp";

/// Random characters in a temporary name.
const RANDOM_CHARACTERS: usize = 16;

/// The permissions that a new file asks for; the process's mask takes some away.
const FILE_MODE: u32 = 0o666;

/// The bits of a mode that are permissions.
const PERMISSIONS: u32 = 0o7777;

/// A file that still has its temporary name. Dropped, it is gone.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    target: PathBuf,
    replaced: Option<Metadata>,
}

impl NewFile {
    /// A new file that will be `target`. Through a link that leads to a file, so that the link stays one.
    pub fn beside(target: &Path) -> io::Result<NewFile> {
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let replaced = match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(meta) => Some(meta),
            Err(_) => None,
        };
        if target.file_name().is_none() {
            return Err(ErrorKind::InvalidFilename.into());
        }
        // No wider than the old file, from its first byte on.
        let mode = replaced
            .as_ref()
            .map_or(FILE_MODE, |meta| meta.mode() & FILE_MODE);
        let file = Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .rand_bytes(RANDOM_CHARACTERS)
            .permissions(Permissions::from_mode(mode | 0o200))
            .tempfile_in(folder_of(&target))?;
        Ok(NewFile {
            file,
            target,
            replaced,
        })
    }

    /// The file, to write to.
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// The temporary name.
    pub fn temporary(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name, once all its bytes are on disk.
    pub fn commit(self) -> io::Result<()> {
        let file = self.file.as_file();
        if let Some(old) = &self.replaced {
            // Only the superuser may give a file away; who may not has written a file of their own.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(Permissions::from_mode(old.mode() & PERMISSIONS))?;
        }
        file.sync_all()?;
        self.file
            .persist(&self.target)
            .map_err(|refused| refused.error)?;
        sync_folder(folder_of(&self.target));
        Ok(())
    }
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes the names in a folder to disk. Some file systems cannot; then the name is as lasting as they make it.
pub(super) fn sync_folder(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// A folder with a temporary name beside `target`. Dropped, it is gone with all that is in it.
pub(super) fn folder_beside(target: &Path) -> io::Result<tempfile::TempDir> {
    let parent = folder_of(target);
    fs::create_dir_all(parent)?;
    folder_in(parent)
}

/// The same in `parent`.
pub(super) fn folder_in(parent: &Path) -> io::Result<tempfile::TempDir> {
    Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .rand_bytes(RANDOM_CHARACTERS)
        .permissions(Permissions::from_mode(0o777))
        .tempdir_in(parent)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(target: &Path, text: &str) -> NewFile {
        let new = NewFile::beside(target).unwrap();
        new.file().write_all(text.as_bytes()).unwrap();
        new
    }

    #[test]
    fn a_file_that_is_not_committed_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        fs::write(&target, "old").unwrap();
        drop(write(&target, "new"));
        assert_eq!(names(folder.path()), ["a.csv"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    }

    #[test]
    fn the_mode_of_the_old_file_stays_and_is_never_wider_before() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
        let new = write(&target, "new");
        let early = new.file().metadata().unwrap().mode() & PERMISSIONS;
        assert_eq!(early & !0o640, 0, "{early:o}");
        new.commit().unwrap();
        let meta = fs::metadata(&target).unwrap();
        assert_eq!(meta.mode() & PERMISSIONS, 0o640);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn a_link_to_a_file_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("a.csv"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, "new").commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }
}
