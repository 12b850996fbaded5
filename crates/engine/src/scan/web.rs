//! Files on web servers.
//!
//! In: addresses. Out: a store of them.
//! Invariant: a file is read by ranges where its server answers them and names its version. Else it is fetched once and as a
//! whole into a temporary file. All bytes of a query are of one version.
//! Not here: which files an address stands for (location.rs), stores with listings (stores.rs).

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use grouse_groupby::{Disk, ScratchFile};
use object_store::client::{
    HttpClient, HttpConnector, HttpRequest, HttpRequestBody, HttpResponse, ReqwestConnector,
};
use object_store::path::Path;
use object_store::{
    Attributes, ClientOptions, CopyOptions, Error as StoreError, GetOptions, GetResult,
    GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use parking_lot::RwLock;
use url::Url;

use super::parquet::Bytes;
use crate::error::Error;
use crate::runtime::temp::{Shared, TempFolders};

/// How often a server that is busy is asked, and how long it is left alone after the first time.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// What is read at once from a file that was fetched.
const READ_BYTES: u64 = 1 << 20;

/// One server.
pub(crate) struct Web {
    client: HttpClient,
    base: Url,
    temp: Arc<TempFolders>,
    /// Addresses that are more than a path, by the path that stands for them.
    addresses: RwLock<HashMap<Path, Url>>,
    files: RwLock<HashMap<Path, Known>>,
}

/// How a file is read.
#[derive(Clone)]
enum Known {
    ByRanges(ObjectMeta),
    Fetched(ObjectMeta, Arc<dyn ScratchFile>),
}

impl Known {
    fn meta(&self) -> &ObjectMeta {
        match self {
            Known::ByRanges(meta) | Known::Fetched(meta, _) => meta,
        }
    }
}

/// Stands for `/` in queries, and before them: no path may have an empty part, and none looks like a path with a query.
const SLASH: &str = "\u{2215}";

/// An address whose query is part of its path, as paths are all that stores know.
pub(crate) fn as_path(url: &Url) -> Url {
    let mut path = url.clone();
    if let Some(query) = url.query() {
        let query = query.replace('%', "%25").replace('/', SLASH);
        path.set_path(&format!("{}?{SLASH}{query}", url.path()));
        path.set_query(None);
    }
    path.set_fragment(None);
    path
}

impl Web {
    /// The server at `base`, such as `https://example.org:8080`.
    pub(crate) fn new(base: &Url, temp: Arc<TempFolders>) -> StoreResult<Web> {
        // A large file takes as long as it takes.
        let options = ClientOptions::new()
            .with_allow_http(true)
            .with_timeout_disabled();
        Ok(Web {
            client: ReqwestConnector::default().connect(&options)?,
            base: base.clone(),
            temp,
            addresses: RwLock::default(),
            files: RwLock::default(),
        })
    }

    /// Notes which address the path of `url` stands for.
    pub(crate) fn remember(&self, url: &Url) {
        if url.path().len() > 1
            && let Ok(path) = Path::from_url_path(as_path(url).path())
        {
            self.addresses.write().insert(path, url.clone());
        }
    }

    fn address(&self, location: &Path) -> Url {
        if let Some(address) = self.addresses.read().get(location) {
            return address.clone();
        }
        let mut address = self.base.clone();
        address.set_path(location.as_ref());
        address
    }

    /// The server's answer, whatever it is.
    async fn ask(
        &self,
        method: &str,
        location: &Path,
        range: Option<Range<u64>>,
    ) -> StoreResult<HttpResponse> {
        let address = self.address(location);
        let mut pause = PAUSE;
        for attempt in 1.. {
            let request = request(method, &address, range.as_ref())?;
            let answer = self.client.execute(request).await;
            let is_busy = match &answer {
                Ok(answer) => matches!(answer.status().as_u16(), 429 | 500 | 502..=504),
                Err(_) => true,
            };
            if !is_busy || attempt == TRIES {
                return answer.map_err(|error| refused(&address, &reason(&error)));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(refused(&address, "the server does not answer"))
    }

    /// How the file is read, as its server says now.
    async fn look(&self, location: &Path) -> StoreResult<Known> {
        let head = self.ask("HEAD", location, None).await?;
        if head.status().is_success()
            && header(&head, "accept-ranges").is_some_and(|unit| unit.contains("bytes"))
            && let Some(size) = number(&head, "content-length")
            && let Some(version) = version(&head)
        {
            let meta = meta(version, location, size);
            return Ok(self.keep(Known::ByRanges(meta)));
        }
        // Servers that do not answer HEAD, or do not say whether they know ranges, are tried.
        let first = self.ask("GET", location, Some(0..1)).await?;
        match first.status().as_u16() {
            206 => match (version(&first), total(&first)) {
                (Some(version), Some(size)) => {
                    let meta = meta(version, location, size);
                    Ok(self.keep(Known::ByRanges(meta)))
                }
                _ => self.fetch_anew(location).await,
            },
            // The first byte of an empty file is out of reach.
            416 => self.fetch_anew(location).await,
            200 => self.fetch(location, first).await,
            _ => Err(self.failure(location, &first)),
        }
    }

    async fn fetch_anew(&self, location: &Path) -> StoreResult<Known> {
        let whole = self.ask("GET", location, None).await?;
        match whole.status().as_u16() {
            200 => self.fetch(location, whole).await,
            _ => Err(self.failure(location, &whole)),
        }
    }

    /// Writes the whole file to disk, unless this version of it is there. Where the server names no version, the bytes do.
    async fn fetch(&self, location: &Path, whole: HttpResponse) -> StoreResult<Known> {
        let version = version(&whole).map(str::to_string);
        if let Some(known @ Known::Fetched(old, _)) = self.files.read().get(location)
            && version.is_some()
            && old.e_tag == version
            && number(&whole, "content-length").is_none_or(|size| size == old.size)
        {
            return Ok(known.clone());
        }
        let address = self.address(location);
        let expected = number(&whole, "content-length");
        let disk = |error: std::io::Error| refused(&address, &error.to_string());
        let (file, _) = Shared(Arc::clone(&self.temp)).create().map_err(disk)?;
        let mut body = whole.into_body().bytes_stream();
        let (mut size, mut seen) = (0, DefaultHasher::new());
        while let Some(bytes) = body.next().await {
            let bytes = bytes.map_err(|error| refused(&address, &reason(&error)))?;
            file.write(&bytes, size).map_err(disk)?;
            seen.write(&bytes);
            size += bytes.len() as u64;
        }
        if expected.is_some_and(|expected| expected != size) {
            return Err(refused(&address, "the server sent less than it announced"));
        }
        let version = version.unwrap_or_else(|| format!("{:016x}", seen.finish()));
        let meta = meta(&version, location, size);
        Ok(self.keep(Known::Fetched(meta, Arc::from(file))))
    }

    fn keep(&self, known: Known) -> Known {
        let location = known.meta().location.clone();
        self.files.write().insert(location, known.clone());
        known
    }

    fn failure(&self, location: &Path, answer: &HttpResponse) -> StoreError {
        let address = self.address(location);
        match answer.status().as_u16() {
            404 | 410 => refused(&address, "it does not exist"),
            401 | 407 => refused(&address, "the server asks for valid credentials"),
            403 => refused(&address, "permission denied"),
            _ => refused(&address, &format!("the server answers {}", answer.status())),
        }
    }

    /// Bytes of a file of which the server sends ranges.
    async fn range(&self, known: &ObjectMeta, range: Range<u64>) -> StoreResult<GetResultPayload> {
        let is_part = range != (0..known.size);
        let wanted = is_part.then(|| range.clone());
        let answer = self.ask("GET", &known.location, wanted).await?;
        let address = self.address(&known.location);
        match (answer.status().as_u16(), is_part) {
            (206, true) | (200, false) => {}
            (200, true) => {
                return match self.fetch(&known.location, answer).await? {
                    Known::Fetched(_, file) => Ok(stored(file, range)),
                    Known::ByRanges(_) => Err(refused(&address, "the server sends no ranges")),
                };
            }
            _ => return Err(self.failure(&known.location, &answer)),
        }
        let size = match is_part {
            true => total(&answer),
            false => number(&answer, "content-length"),
        };
        if version(&answer) != known.e_tag.as_deref() || size.is_some_and(|size| size != known.size)
        {
            return Err(refused(
                &address,
                "it changed on the server while the query read it; run the query again",
            ));
        }
        let mut left = range.end - range.start;
        let body = answer.into_body().bytes_stream();
        let bytes = body.map(Some).chain(futures::stream::iter([None]));
        let bytes = bytes.map(move |bytes| match bytes {
            Some(Ok(bytes)) => {
                left = left.saturating_sub(bytes.len() as u64);
                Ok(bytes)
            }
            Some(Err(error)) => Err(refused(&address, &reason(&error))),
            None if left > 0 => Err(refused(
                &address,
                "the server sent less than it was asked for",
            )),
            None => Ok(Bytes::new()),
        });
        Ok(GetResultPayload::Stream(bytes.boxed()))
    }
}

/// Bytes of a file that was fetched.
fn stored(file: Arc<dyn ScratchFile>, range: Range<u64>) -> GetResultPayload {
    let next = |(file, range): (Arc<dyn ScratchFile>, Range<u64>)| async move {
        let wanted = (range.end - range.start).min(READ_BYTES);
        if wanted == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or_default()];
        file.read(&mut bytes, range.start)
            .map_err(|error| StoreError::Generic {
                store: "http",
                source: Box::new(error),
            })?;
        let rest = range.start + wanted..range.end;
        Ok(Some((Bytes::from(bytes), (file, rest))))
    };
    GetResultPayload::Stream(futures::stream::try_unfold((file, range), next).boxed())
}

fn request(method: &str, address: &Url, range: Option<&Range<u64>>) -> StoreResult<HttpRequest> {
    let invalid = |_| refused(address, "it is no address of the web");
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = method.parse().map_err(|_| refused(address, "no method"))?;
    let mut whole = address.clone();
    whole.set_fragment(None);
    *request.uri_mut() = whole.as_str().parse().map_err(invalid)?;
    if let Some(range) = range {
        let bytes = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let bytes = bytes.parse().map_err(|_| refused(address, "no range"))?;
        request.headers_mut().insert("range", bytes);
    }
    Ok(request)
}

/// Our error on its way through a store.
fn refused(address: &Url, message: &str) -> StoreError {
    StoreError::Generic {
        store: "http",
        source: Box::new(Error::Io {
            path: address.to_string(),
            message: message.to_string(),
        }),
    }
}

/// The innermost of an error's reasons.
fn reason(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

fn header<'a>(answer: &'a HttpResponse, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

fn number(answer: &HttpResponse, name: &str) -> Option<u64> {
    header(answer, name)?.trim().parse().ok()
}

/// The size of the file of which a range was sent: `bytes 0-0/1234`.
fn total(answer: &HttpResponse) -> Option<u64> {
    let (_, total) = header(answer, "content-range")?.rsplit_once('/')?;
    total.trim().parse().ok()
}

/// What tells versions of a file apart: its tag or its age, if the server says one.
fn version(answer: &HttpResponse) -> Option<&str> {
    header(answer, "etag").or_else(|| header(answer, "last-modified"))
}

/// A file's description. DataFusion's caches of footers and statistics tell versions by size and time, so each version has its own time.
fn meta(version: &str, location: &Path, size: u64) -> ObjectMeta {
    let mut hasher = DefaultHasher::new();
    hasher.write(version.as_bytes());
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(hasher.finish() >> 2);
    ObjectMeta {
        location: location.clone(),
        last_modified: time.into(),
        size,
        e_tag: Some(version.to_string()),
        version: None,
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str())
    }
}

#[async_trait]
impl ObjectStore for Web {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let known = self.files.read().get(location).cloned();
        let known = match known {
            // Planning asks for the head: it wants to know the present version.
            Some(known) if !options.head => known,
            _ => self.look(location).await?,
        };
        let meta = known.meta().clone();
        let range = match &options.range {
            _ if options.head => 0..0,
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| refused(&self.address(location), &error.to_string()))?,
            None => 0..meta.size,
        };
        let payload = match known {
            _ if range.is_empty() => GetResultPayload::Stream(futures::stream::empty().boxed()),
            Known::ByRanges(meta) => self.range(&meta, range.clone()).await?,
            Known::Fetched(_, file) => stored(file, range.clone()),
        };
        Ok(GetResult {
            payload,
            meta,
            range,
            attributes: Attributes::default(),
        })
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        _options: PutOptions,
    ) -> StoreResult<PutResult> {
        let address = self.address(location);
        let mut request = request("PUT", &address, None)?;
        *request.body_mut() = HttpRequestBody::from(payload);
        let answer = self.client.execute(request).await;
        let answer = answer.map_err(|error| refused(&address, &reason(&error)))?;
        match answer.status().is_success() {
            true => Ok(PutResult {
                e_tag: header(&answer, "etag").map(str::to_string),
                version: None,
            }),
            false => Err(self.failure(location, &answer)),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let message = "a web server takes no file that is larger than one upload";
        Err(refused(&self.address(location), message))
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        let base = self.base.clone();
        locations
            .and_then(move |_| {
                let error = refused(&base, "nothing is deleted on a web server");
                async { Err(error) }
            })
            .boxed()
    }

    fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let error = refused(
            &self.base,
            "a web server does not list its files; name each",
        );
        futures::stream::iter([Err(error)]).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> StoreResult<ListResult> {
        let message = "a web server does not list its files; name each";
        Err(refused(&self.base, message))
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> StoreResult<()> {
        Err(refused(&self.base, "nothing is copied on a web server"))
    }
}
