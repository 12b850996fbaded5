//! Locations: which files a path, glob, folder or address stands for.
//!
//! In: the text in FROM.
//! Out: the files behind it with size and age, in the order of their names.
//! Invariant: at least one file, or an error that names the text.
//! Not here: formats (format.rs), stores (stores.rs).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path as SystemPath, PathBuf};
use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use super::access::Access;
use super::format::{FileKind, Reading, known_extensions};
use super::pipe::is_pipe;
use super::web::as_path;
use crate::error::from_datafusion::object_store as store_error;
use crate::error::{Error, Result};

/// Requests for the age and size of single files that run at the same time.
const HEADS_AT_ONCE: usize = 32;

/// One file.
#[derive(Debug, Clone)]
pub struct File {
    /// As a user would write it.
    pub name: String,
    /// As DataFusion wants it.
    pub url: ListingTableUrl,
    /// Size and age.
    pub meta: ObjectMeta,
}

/// The files of one table.
#[derive(Debug)]
pub struct Found {
    /// Where they are.
    pub store: Arc<dyn ObjectStore>,
    /// In the order of their names.
    pub files: Vec<File>,
    /// The folder that was asked for, if one was: hive partitions are read from the paths below it.
    pub folder: Option<ListingTableUrl>,
}

/// Whether a table name can only be a file, folder or address.
pub fn is_location(name: &str) -> bool {
    name.contains('/')
        || name.starts_with('~')
        || has_glob(name)
        || Reading::of_name(name).is_some()
}

pub(super) fn has_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files behind `text`, as far as `access` allows them; `kind` narrows a folder to files of that format.
pub(crate) async fn find(
    text: &str,
    kind: Option<FileKind>,
    access: &Access,
    runtime: &RuntimeEnv,
) -> Result<Found> {
    access.check_location(text)?;
    match text.split_once("://") {
        Some(("file", _)) => {
            let url = parse_url(text)?;
            let path = url
                .to_file_path()
                .map_err(|()| not_found(text, "it is not a path on this machine"))?;
            let found = local_paths(text, &path.to_string_lossy(), kind, access)?;
            find_local(found, runtime).await
        }
        Some(("http" | "https", _)) => find_http(text, text, runtime).await,
        Some(("hf", _)) => find_http(text, &hub_address(text)?, runtime).await,
        Some(("s3" | "s3a" | "gs" | "gcs" | "az" | "azure" | "abfs" | "abfss", _)) => {
            find_in_bucket(text, kind, runtime).await
        }
        Some((scheme, _)) => Err(Error::unsupported(format!(
            "addresses that start with {scheme}:// (in '{text}'); known are file, http, https, s3, gs, az, abfss and hf"
        ))),
        None => find_local(local_paths(text, text, kind, access)?, runtime).await,
    }
}

/// Paths on this machine, and the folder if they are all that is in one.
type LocalPaths = (Vec<PathBuf>, Option<PathBuf>);

fn local_paths(
    text: &str,
    path: &str,
    kind: Option<FileKind>,
    access: &Access,
) -> Result<LocalPaths> {
    let path = home(path);
    let system = SystemPath::new(&path);
    let (paths, folder) = match std::fs::metadata(system) {
        Ok(meta) if meta.is_dir() => (walk(system, kind, access)?, Some(system.to_path_buf())),
        Ok(_) => (vec![system.to_path_buf()], None),
        Err(_) if has_glob(&path) => (expand(text, &path)?, None),
        Err(error) => return Err(not_found(text, &system_reason(&error))),
    };
    if paths.is_empty() {
        let reason = match folder {
            Some(_) => format!(
                "the folder has no data files; known extensions are {}",
                known_extensions()
            ),
            None => "no file matches".to_string(),
        };
        return Err(not_found(text, &reason));
    }
    Ok((paths, folder))
}

/// The store has a look at each file, and asks what may be opened.
async fn find_local((paths, folder): LocalPaths, runtime: &RuntimeEnv) -> Result<Found> {
    let store = store_of(&parse_url("file:///")?, runtime)?;
    let metas = futures::stream::iter(paths)
        .map(|path| local_file(path, &store))
        .buffered(HEADS_AT_ONCE)
        .try_collect::<Vec<File>>();
    let files = metas.await?;
    let folder = folder
        .map(|path| local_url(&path, Url::from_directory_path))
        .transpose()?;
    Ok(Found {
        store,
        files,
        folder,
    })
}

async fn local_file(path: PathBuf, store: &Arc<dyn ObjectStore>) -> Result<File> {
    let name = path.display().to_string();
    let url = local_url(&path, Url::from_file_path)?;
    let meta = store
        .head(url.prefix())
        .await
        .map_err(|error| named(store_error(&error), &name))?;
    Ok(File { name, url, meta })
}

fn local_url(path: &SystemPath, to_url: fn(PathBuf) -> Result<Url, ()>) -> Result<ListingTableUrl> {
    let name = path.display().to_string();
    let absolute =
        std::path::absolute(path).map_err(|error| not_found(&name, &error.to_string()))?;
    let url = to_url(absolute)
        .map_err(|()| not_found(&name, "the path cannot be written as an address"))?;
    // Parsing again removes `.` and `..`.
    let url = parse_url(url.as_str())?;
    Ok(ListingTableUrl::try_new(url, None)?)
}

pub(super) fn home(path: &str) -> String {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
        _ => path.to_string(),
    }
}

/// All data files below a folder, by name, each real folder once; hidden names are others' bookkeeping.
fn walk(folder: &SystemPath, kind: Option<FileKind>, access: &Access) -> Result<Vec<PathBuf>> {
    let failed =
        |error: std::io::Error| not_found(&folder.display().to_string(), &system_reason(&error));
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    let mut walked = HashSet::new();
    while let Some(folder) = open.pop() {
        access.check_path(&folder, &folder.display().to_string())?;
        // A link may lead to a folder that is walked anyway, even to one around it.
        if !walked.insert(std::fs::canonicalize(&folder).map_err(failed)?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            if is_hidden(&name) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if is_wanted(&name, kind) {
                files.push(regular(path)?);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A file and no pipe, which would be waited for and cannot be read beside others.
fn regular(path: PathBuf) -> Result<PathBuf> {
    match is_pipe(&path.to_string_lossy()) {
        true => Err(not_found(
            &path.display().to_string(),
            "it is a pipe, which is no file of a folder or glob; name it alone",
        )),
        false => Ok(path),
    }
}

/// Names of what others keep beside data: `.x`, `_SUCCESS`, `_temporary`. A folder `_x=1` is a column.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || name.starts_with('_') && !name.contains('=')
}

/// Whether a path that a glob matches has a hidden part that the glob does not ask for. A part is held against that part of the
/// glob that matches it, or, below `**`, against those that stand between two of these.
fn is_hidden_match(path: &str, pattern: &str) -> bool {
    fn parts(text: &str) -> Vec<&str> {
        let parts = text.split('/');
        parts.filter(|part| !matches!(*part, "" | ".")).collect()
    }
    let (path, pattern) = (parts(path), parts(pattern));
    let any_depth = |part: &&str| *part == "**";
    let head = pattern.iter().take_while(|part| !any_depth(part)).count();
    let tail = pattern.iter().rev().take_while(|part| !any_depth(part));
    let tail = match head == pattern.len() {
        true => 0,
        false => tail.count(),
    };
    let middle = &pattern[head..pattern.len() - tail];
    let tail_start = path.len().saturating_sub(tail);
    path.iter().enumerate().any(|(at, part)| {
        let asked = match at {
            at if at < head => &pattern[at..=at],
            at if at < tail_start => middle,
            at => {
                let asked = pattern.len() - (path.len() - at);
                &pattern[asked..=asked]
            }
        };
        *part != ".." && is_hidden(part) && !asked.iter().any(|asked| asks_hidden(asked, part))
    })
}

/// Whether a part of a glob asks for names with the first character of `part`.
fn asks_hidden(asked: &str, part: &str) -> bool {
    let first = &part[..1]; // `.` or `_`
    match asked
        .strip_prefix('[')
        .filter(|rest| !rest.starts_with('!'))
    {
        Some(class) => class
            .split(']')
            .next()
            .is_some_and(|class| class.contains(first)),
        None => asked.starts_with(first),
    }
}

fn is_wanted(name: &str, kind: Option<FileKind>) -> bool {
    Reading::of_name(name).is_some_and(|reading| kind.is_none_or(|kind| kind == reading.kind))
}

fn expand(text: &str, pattern: &str) -> Result<Vec<PathBuf>> {
    let options = glob::MatchOptions {
        require_literal_separator: true,
        ..Default::default()
    };
    // The crate lets `**` at the end match folders only.
    let files_too = pattern.ends_with("/**") || pattern == "**";
    let pattern = &format!("{pattern}{}", if files_too { "/*" } else { "" });
    let paths = glob::glob_with(pattern, options).map_err(|error| bad_glob(text, &error))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| not_found(text, &error.to_string()))?;
        if !path.is_dir() && !is_hidden_match(&path.to_string_lossy(), pattern) {
            files.push(regular(path)?);
        }
    }
    files.sort();
    if pattern.contains("**") {
        // Links between folders lead to the same file on many ways.
        let mut seen = HashSet::new();
        files.retain(|path| {
            let folder = path.parent().map(std::fs::canonicalize);
            match folder {
                Some(Ok(folder)) => seen.insert((folder, path.file_name().map(OsStr::to_owned))),
                _ => true,
            }
        });
    }
    Ok(files)
}

/// The file at `address`, which the user knows as `text`.
async fn find_http(text: &str, address: &str, runtime: &RuntimeEnv) -> Result<Found> {
    let url = parse_url(address)?;
    let store = store_of(&url, runtime)?;
    let url = ListingTableUrl::try_new(as_path(&url), None)?;
    let meta = store
        .head(url.prefix())
        .await
        .map_err(|error| named(store_error(&error), text))?;
    let files = vec![File {
        name: text.to_string(),
        url,
        meta,
    }];
    Ok(Found {
        store,
        files,
        folder: None,
    })
}

/// Where the files of `hf://` are, unless the hub's own variable says otherwise.
const HUB: (&str, &str) = ("HF_ENDPOINT", "https://huggingface.co");

/// The address of `hf://datasets/owner/name[@revision]/path`.
fn hub_address(text: &str) -> Result<String> {
    let invalid = || {
        Error::invalid(
            "address",
            format!(
                "'{text}': write hf://datasets/owner/name/path or hf://datasets/owner/name@revision/path, a single file"
            ),
        )
    };
    let rest = text.strip_prefix("hf://").ok_or_else(invalid)?;
    let parts: Vec<&str> = rest.splitn(4, '/').collect();
    let [kind @ ("datasets" | "spaces"), owner, name, path] = parts[..] else {
        return Err(invalid());
    };
    if path.is_empty() || path.ends_with('/') || has_glob(path) {
        return Err(invalid());
    }
    let (name, revision) = name.split_once('@').unwrap_or((name, "main"));
    let revision = revision.replace("~", "refs%2Fconvert%2F");
    let hub = std::env::var(HUB.0).unwrap_or_else(|_| HUB.1.to_string());
    let hub = hub.trim_end_matches('/');
    Ok(format!(
        "{hub}/{kind}/{owner}/{name}/resolve/{revision}/{path}"
    ))
}

async fn find_in_bucket(text: &str, kind: Option<FileKind>, runtime: &RuntimeEnv) -> Result<Found> {
    // `?` in a glob must not become the start of a query.
    let url = parse_url(&text.replacen("s3a://", "s3://", 1).replace('?', "%3F"))?;
    let bucket = format!("{}/", &url[..url::Position::AfterPort]);
    let store = store_of(&url, runtime)?;
    let key =
        Path::from_url_path(url.path()).map_err(|error| not_found(text, &error.to_string()))?;
    let failed = |error: object_store::Error| named(store_error(&error), text);
    let file = |meta: ObjectMeta| -> Result<File> {
        let name = format!("{bucket}{}", meta.location);
        Ok(File {
            url: ListingTableUrl::try_new(parse_url(&name)?, None)?,
            name,
            meta,
        })
    };
    let is_glob = has_glob(key.as_ref());
    if !is_glob && !url.path().ends_with('/') {
        match store.head(&key).await {
            Ok(meta) => {
                return Ok(Found {
                    store,
                    files: vec![file(meta)?],
                    folder: None,
                });
            }
            // Without an extension it may be a folder.
            Err(object_store::Error::NotFound { .. }) if Reading::of_name(text).is_none() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let mut metas = list_bucket(text, &key, kind, &store).await?;
    metas.sort_by(|a, b| a.location.cmp(&b.location));
    let files = metas.into_iter().map(file).collect::<Result<Vec<File>>>()?;
    let folder = match is_glob {
        true => None,
        false => Some(ListingTableUrl::try_new(
            parse_url(&format!("{bucket}{key}/"))?,
            None,
        )?),
    };
    Ok(Found {
        store,
        files,
        folder,
    })
}

/// The objects below a folder, or those that match a glob.
async fn list_bucket(
    text: &str,
    key: &Path,
    kind: Option<FileKind>,
    store: &Arc<dyn ObjectStore>,
) -> Result<Vec<ObjectMeta>> {
    let is_glob = has_glob(key.as_ref());
    let failed = |error: object_store::Error| named(store_error(&error), text);
    let prefix = if is_glob {
        fixed_part(key)
    } else {
        key.clone()
    };
    let mut metas: Vec<ObjectMeta> = store
        .list(Some(&prefix))
        .try_collect()
        .await
        .map_err(failed)?;
    metas.retain(|meta| {
        let location = meta.location.as_ref();
        match is_glob {
            true => !is_hidden_match(location, key.as_ref()),
            false => {
                let rest = location.strip_prefix(prefix.as_ref()).unwrap_or_default();
                !rest.split('/').any(is_hidden)
            }
        }
    });
    if is_glob {
        let pattern = glob::Pattern::new(key.as_ref()).map_err(|error| bad_glob(text, &error))?;
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..Default::default()
        };
        metas.retain(|meta| pattern.matches_with(meta.location.as_ref(), options));
    } else {
        metas.retain(|meta| is_wanted(meta.location.as_ref(), kind));
    }
    if metas.is_empty() {
        return Err(not_found(text, "no file matches"));
    }
    Ok(metas)
}

/// The folders of a glob before its first wildcard.
fn fixed_part(key: &Path) -> Path {
    Path::from_iter(key.parts().take_while(|part| !has_glob(part.as_ref())))
}

fn store_of(url: &Url, runtime: &RuntimeEnv) -> Result<Arc<dyn ObjectStore>> {
    Ok(runtime.object_store_registry.get_store(url)?)
}

fn parse_url(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| Error::invalid("address", format!("'{text}': {error}")))
}

fn system_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_string(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        _ => error.to_string(),
    }
}

fn not_found(text: &str, reason: &str) -> Error {
    Error::Io {
        path: text.to_string(),
        message: reason.to_string(),
    }
}

fn bad_glob(text: &str, error: &glob::PatternError) -> Error {
    Error::invalid("glob", format!("'{text}': {error}"))
}

/// The name by which a user knows a file of a store.
pub(super) fn name_in_store(store: &str, location: &Path) -> String {
    match store {
        "file:///" => format!("/{location}"),
        url => format!("{url}{location}"),
    }
}

/// The same error with the name that the user knows the file by.
pub(crate) fn named(error: Error, name: &str) -> Error {
    match error {
        Error::Io { message, .. } => Error::Io {
            path: name.to_string(),
            message,
        },
        Error::Format { line, message, .. } => Error::Format {
            path: name.to_string(),
            line,
            message,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_locations() {
        for yes in [
            "a/b",
            "x.parquet",
            "*.csv",
            "s3://b/k",
            "~/x",
            "http://h/x.csv.gz",
            "./d",
        ] {
            assert!(is_location(yes), "{yes}");
        }
        for no in ["t", "my.table", "x.txt", "numbers"] {
            assert!(!is_location(no), "{no}");
        }
    }

    #[test]
    fn hidden_matches_of_globs() {
        for (path, pattern, expected) in [
            ("d/.x.csv", "d/*.csv", true),
            ("d/_x.csv", "d/*.csv", true),
            ("d/_x.csv", "d/_*.csv", false),
            ("d/_temporary/0/x.csv", "d/**/*.csv", true),
            ("d/_k=1/x.csv", "d/*/*.csv", false),
            ("../.d/x.csv", "../.d/*.csv", false),
            ("d/x.csv", "d/*.csv", false),
            ("/tmp/.d/k=1/.x.csv", "/tmp/.d/*/*.csv", true),
            ("/tmp/.d/k=1/x.csv", "/tmp/.d/*/*.csv", false),
            ("/tmp/.d/_t/0/x.csv", "/tmp/.d/**/*.csv", true),
            ("/tmp/.d/x.csv", "/tmp/.d/**/*.csv", false),
            ("d/e/.x.csv", "d/**/.x.csv", false),
            ("d/.e/.x.csv", "d/**/.x.csv", true),
            ("d/_log/0/x.csv", "d/**/_log/**/*.csv", false),
            ("d/.x.csv", "./d//[._]*.csv", false),
            ("d/.x.csv", "d/[!a]*.csv", true),
        ] {
            assert_eq!(is_hidden_match(path, pattern), expected, "{path} {pattern}");
        }
    }

    #[test]
    fn fixed_parts_of_globs() {
        let parse = |text| Path::parse(text).expect("a path");
        assert_eq!(fixed_part(&parse("a/b*/c")).as_ref(), "a");
        assert_eq!(fixed_part(&parse("*.parquet")).as_ref(), "");
    }
}
