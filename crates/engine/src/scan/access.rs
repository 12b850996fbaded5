//! Access: which files and addresses a session may reach.
//!
//! In: the options `allow_files`, `allowed_directories` and `allow_network`; paths and addresses.
//! Out: nothing, or an error that names the path and the option.
//! Invariant: every path that a statement reaches is asked for here twice. It is asked for as it is written, before anything
//! tells whether it exists, and where it leads, links followed, by the store or the writer that opens it.
//! Not here: files that the process opens for itself: temporary files (temp.rs), the shell's own arguments.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path as SystemPath, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::execution::context::SessionConfig;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result as StoreResult,
};
use parking_lot::{Mutex, RwLock};
use url::Url;

use super::location::{has_glob, home};
use super::parquet::Bytes;
use crate::error::{Error, Result};
use crate::runtime::options::SessionOptions;

/// What one session may reach.
#[derive(Debug)]
pub(crate) struct Access {
    rules: RwLock<AccessRules>,
    /// Files of the session's own that have to be opened by a path.
    own: Mutex<HashSet<PathBuf>>,
}

#[derive(Debug)]
struct AccessRules {
    files: ReachableFiles,
    network: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum ReachableFiles {
    All,
    /// Those in these folders, whose paths have no links.
    In(Vec<PathBuf>),
    None,
}

impl Access {
    /// As `options` say.
    pub(crate) fn new(options: &SessionOptions) -> Result<Arc<Access>> {
        let access = Access {
            rules: RwLock::new(AccessRules {
                files: ReachableFiles::None,
                network: false,
            }),
            own: Mutex::default(),
        };
        access.apply(options)?;
        Ok(Arc::new(access))
    }

    /// Takes over the options.
    pub(crate) fn apply(&self, options: &SessionOptions) -> Result<()> {
        let files = match (options.allowed_directories.as_slice(), options.allow_files) {
            ([], true) => ReachableFiles::All,
            ([], false) => ReachableFiles::None,
            (folders, _) => ReachableFiles::In(
                folders
                    .iter()
                    .map(|folder| real_folder(folder))
                    .collect::<Result<_>>()?,
            ),
        };
        *self.rules.write() = AccessRules {
            files,
            network: options.allow_network,
        };
        Ok(())
    }

    /// What the session of `config` may reach.
    pub(crate) fn of(config: &SessionConfig) -> Result<Arc<Access>> {
        let access = config.get_extension::<Access>();
        access.ok_or_else(|| Error::Internal("a session without rules of access".to_string()))
    }

    /// An error unless what `text` says, a path, glob, folder or address, may be looked for.
    pub(crate) fn check_location(&self, text: &str) -> Result<()> {
        let Some((scheme, _)) = text.split_once("://") else {
            return self.check_glob(text, &home(text));
        };
        if !scheme.eq_ignore_ascii_case("file") {
            return self.check_network(text);
        }
        let path = Url::parse(text).map(|url| url.to_file_path());
        match path {
            Ok(Ok(path)) => self.check_glob(text, &path.to_string_lossy()),
            // Whoever reads it says what is wrong with it.
            _ if self.has_all_files() => Ok(()),
            _ => Err(self.refused(text)),
        }
    }

    fn check_glob(&self, text: &str, pattern: &str) -> Result<()> {
        if self.check_path(SystemPath::new(pattern), text).is_ok() {
            return Ok(());
        }
        let is_fixed = |part: &Component<'_>| !has_glob(&part.as_os_str().to_string_lossy());
        let mut parts = SystemPath::new(pattern).components();
        let fixed: PathBuf = parts.by_ref().take_while(is_fixed).collect();
        // Behind a wildcard they would lead to folders that nobody has asked for.
        if parts.any(|part| part == Component::ParentDir) {
            return Err(self.refused(text));
        }
        let folder = match fixed.as_os_str().is_empty() {
            true => SystemPath::new("."),
            false => fixed.as_path(),
        };
        self.check_path(folder, text)
    }

    /// An error unless the file or folder at `path`, which the user knows as `name`, may be opened, made or replaced.
    pub(crate) fn check_path(&self, path: &SystemPath, name: &str) -> Result<()> {
        let is_allowed = match &self.rules.read().files {
            ReachableFiles::All => true,
            _ if self.own.lock().contains(path) => true,
            ReachableFiles::In(folders) => real_path(path)
                .is_some_and(|real| folders.iter().any(|folder| real.starts_with(folder))),
            ReachableFiles::None => false,
        };
        match is_allowed {
            true => Ok(()),
            false => Err(self.refused(name)),
        }
    }

    /// An error unless addresses such as `name` may be reached.
    pub(crate) fn check_network(&self, name: &str) -> Result<()> {
        match self.rules.read().network {
            true => Ok(()),
            false => Err(Error::Io {
                path: name.to_string(),
                message: "the option allow_network of this session is off".to_string(),
            }),
        }
    }

    fn has_all_files(&self) -> bool {
        self.rules.read().files == ReachableFiles::All
    }

    fn refused(&self, name: &str) -> Error {
        let message = match self.rules.read().files {
            ReachableFiles::In(_) => {
                "it is in none of the folders that the option allowed_directories of this session names"
            }
            _ => "the option allow_files of this session is off",
        };
        Error::Io {
            path: name.to_string(),
            message: message.to_string(),
        }
    }

    /// Lets `path` be opened until what is returned goes.
    pub(crate) fn allow_own(self: &Arc<Self>, path: PathBuf) -> OwnPath {
        self.own.lock().insert(path.clone());
        OwnPath {
            access: Arc::clone(self),
            path,
        }
    }
}

/// A path of the session's own.
#[derive(Debug)]
pub(crate) struct OwnPath {
    access: Arc<Access>,
    path: PathBuf,
}

impl OwnPath {
    pub(crate) fn path(&self) -> &SystemPath {
        &self.path
    }
}

impl Drop for OwnPath {
    fn drop(&mut self) {
        self.access.own.lock().remove(&self.path);
    }
}

fn real_folder(folder: &SystemPath) -> Result<PathBuf> {
    let refused = |message: String| {
        Error::invalid(
            "allowed_directories",
            format!("'{}': {message}", folder.display()),
        )
    };
    let real = fs::canonicalize(folder).map_err(|error| refused(error.to_string()))?;
    match real.is_dir() {
        true => Ok(real),
        false => Err(refused("it is no folder".to_string())),
    }
}

/// Where a path leads, of one that is not there yet where it would be; `None` of a link that leads nowhere, and of `..` below
/// what is not there.
fn real_path(path: &SystemPath) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let (mut known, mut rest) = (absolute.as_path(), Vec::new());
    loop {
        if let Ok(mut real) = fs::canonicalize(known) {
            real.extend(rest.iter().rev());
            return Some(real);
        }
        if fs::symlink_metadata(known).is_ok() {
            return None;
        }
        rest.push(known.file_name()?);
        known = known.parent()?;
    }
}

/// The files of this machine as far as a session may reach them.
#[derive(Debug)]
pub(super) struct AllowedFiles {
    store: LocalFileSystem,
    access: Arc<Access>,
}

impl AllowedFiles {
    pub(super) fn new(access: Arc<Access>) -> AllowedFiles {
        AllowedFiles {
            store: LocalFileSystem::new(),
            access,
        }
    }

    fn check(&self, location: &Path) -> StoreResult<()> {
        if self.access.has_all_files() {
            return Ok(());
        }
        let path = self.store.path_to_filesystem(location)?;
        let checked = self.access.check_path(&path, &path.display().to_string());
        checked.map_err(|error| object_store::Error::Generic {
            store: "file",
            source: Box::new(error),
        })
    }

    fn check_folder(&self, prefix: Option<&Path>) -> StoreResult<()> {
        self.check(prefix.unwrap_or(&Path::default()))
    }

    /// What a listing has found; a link in an allowed folder may lead out of it.
    fn checked(
        &self,
        found: BoxStream<'static, StoreResult<ObjectMeta>>,
    ) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let files = AllowedFiles::new(Arc::clone(&self.access));
        let checked = found.and_then(move |meta| {
            let checked = files.check(&meta.location);
            async move { checked.map(|()| meta) }
        });
        checked.boxed()
    }
}

impl fmt::Display for AllowedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for AllowedFiles {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.check(location)?;
        self.store.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.check(location)?;
        self.store.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.check(location)?;
        self.store.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> StoreResult<Vec<Bytes>> {
        self.check(location)?;
        self.store.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        let files = AllowedFiles::new(Arc::clone(&self.access));
        let locations = locations.and_then(move |location| {
            let checked = files.check(&location);
            async move { checked.map(|()| location) }
        });
        self.store.delete_stream(locations.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        match self.check_folder(prefix) {
            Ok(()) => self.checked(self.store.list(prefix)),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        match self.check_folder(prefix) {
            Ok(()) => self.checked(self.store.list_with_offset(prefix, offset)),
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.check_folder(prefix)?;
        let found = self.store.list_with_delimiter(prefix).await?;
        let all = found.common_prefixes.iter();
        let mut all = all.chain(found.objects.iter().map(|meta| &meta.location));
        all.try_for_each(|location| self.check(location))?;
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.check(from)?;
        self.check(to)?;
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> StoreResult<()> {
        self.check(from)?;
        self.check(to)?;
        self.store.rename_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn access(set: &[(&str, &str)]) -> Arc<Access> {
        let mut options = SessionOptions::default();
        for (name, value) in set {
            options.set(name, value).unwrap();
        }
        Access::new(&options).unwrap()
    }

    /// A folder `in` with a file and links out of it, beside a folder `out`.
    fn folders() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["in/sub", "out", "in-not"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["in/a.csv", "out/b.csv"] {
            fs::write(root.path().join(file), "x\n1\n").unwrap();
        }
        let link = |to: &str, at: &str| symlink(root.path().join(to), root.path().join(at));
        link("out", "in/folder").unwrap();
        link("out/b.csv", "in/file.csv").unwrap();
        link("out/new.csv", "in/dangling.csv").unwrap();
        link("in/a.csv", "out/back.csv").unwrap();
        root
    }

    #[test]
    fn only_what_leads_into_a_folder_is_allowed() {
        let root = folders();
        let folder = root.path().join("in").display().to_string();
        let access = access(&[("allowed_directories", &folder)]);
        let asked =
            |text: &str| access.check_location(&format!("{}/{text}", root.path().display()));
        for inside in [
            "in",
            "in/",
            "in/a.csv",
            "in/sub/../a.csv",
            "in/*.csv",
            "in/**/x?.csv",
            "in/new/deep/c.csv",
            "out/back.csv",
            "out/../in/a.csv",
        ] {
            assert!(asked(inside).is_ok(), "{inside}");
        }
        for outside in [
            "out/b.csv",
            "out/no.csv",
            "in-not/a.csv",
            "in/../out/b.csv",
            "in/folder/b.csv",
            "in/folder/no.csv",
            "in/folder/*.csv",
            "in/file.csv",
            "in/dangling.csv",
            "in/no/../../out/b.csv",
            "in/*/../../out/b.csv",
            "*/b.csv",
            "[i]n/a.csv",
            "",
        ] {
            let error = asked(outside).unwrap_err().to_string();
            assert!(error.contains("allowed_directories"), "{outside}: {error}");
        }
        for outside in [
            "/dev/stdin",
            "/dev/fd/0",
            "/proc/self/environ",
            "",
            "/",
            "file:///etc/x",
        ] {
            assert!(access.check_location(outside).is_err(), "{outside}");
        }
        let address = format!("FILE://{folder}/a.csv");
        assert!(access.check_location(&address).is_ok());
        assert!(access.check_location("https://example.org/x.csv").is_ok());
    }

    #[test]
    fn what_is_off_is_off() {
        let off = access(&[("allow_files", "off"), ("allow_network", "off")]);
        for closed in ["a.csv", "/", "~/x.csv", "*.csv", "file:///a.csv"] {
            let error = off.check_location(closed).unwrap_err().to_string();
            assert!(
                error.contains(closed) && error.contains("allow_files"),
                "{error}"
            );
        }
        for closed in ["http://a/b.csv", "s3://a/b.csv", "HTTPS://a/b", "hf://a"] {
            let error = off.check_location(closed).unwrap_err().to_string();
            assert!(
                error.contains(closed) && error.contains("allow_network"),
                "{error}"
            );
        }
        assert!(access(&[]).check_location("/proc/self/environ").is_ok());
    }

    #[test]
    fn an_own_path_is_allowed_as_long_as_it_is_held() {
        let access = access(&[("allow_files", "off")]);
        let path = SystemPath::new("/dev/fd/99");
        let own = access.allow_own(path.to_path_buf());
        assert!(access.check_path(path, "x").is_ok());
        drop(own);
        assert!(access.check_path(path, "x").is_err());
    }

    #[tokio::test]
    async fn the_store_refuses_what_links_lead_to() {
        let root = folders();
        let folder = root.path().join("in");
        let store = AllowedFiles::new(access(&[(
            "allowed_directories",
            &folder.display().to_string(),
        )]));
        let location = |name: &str| Path::from_absolute_path(root.path().join(name)).unwrap();
        let inside = location("in/a.csv");
        assert!(store.get_opts(&inside, GetOptions::default()).await.is_ok());
        for outside in ["out/b.csv", "in/file.csv", "in/folder/b.csv", "out/no.csv"] {
            let location = location(outside);
            let got = store.get_opts(&location, GetOptions::default()).await;
            let error = crate::error::from_datafusion::object_store(&got.unwrap_err());
            assert!(error.to_string().contains("allowed_directories"), "{error}");
        }
        let new = location("out/c.csv");
        let put = store.put_opts(&new, "x".into(), PutOptions::default());
        assert!(put.await.is_err());
        assert!(!root.path().join("out/c.csv").exists());
        let closed = location("out");
        let listed: Vec<_> = store.list(Some(&closed)).collect().await;
        assert!(matches!(listed.as_slice(), [Err(_)]));
        let open = location("in");
        let listed: StoreResult<Vec<_>> = store.list(Some(&open)).try_collect().await;
        assert!(listed.is_err(), "a link leads out of the folder");
    }
}
