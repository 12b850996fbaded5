//! Stores: the file system, web servers and buckets behind addresses, opened on demand.
//!
//! In: the address of a file.
//! Out: DataFusion's object store for it, one per server or bucket and session.
//! Invariant: credentials come from the environment variables of AWS, Azure and Google or from the machine, never from SQL
//! text.
//! Not here: which files an address stands for (location.rs).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use parking_lot::RwLock;
use url::Url;

use super::access::{Access, AllowedFiles};
use super::web::Web;
use crate::error::Error;
use crate::runtime::options::SessionOptions;
use crate::runtime::temp::TempFolders;

/// The stores of one session.
#[derive(Debug)]
pub(crate) struct Stores {
    local: Arc<dyn ObjectStore>,
    remote: RwLock<Remote>,
    temp: Arc<TempFolders>,
    access: Arc<Access>,
}

#[derive(Debug, Default)]
struct Remote {
    region: Option<String>,
    endpoint: Option<String>,
    open: HashMap<String, Arc<dyn ObjectStore>>,
    /// Those of them that the program around the session has put there.
    registered: HashSet<String>,
    /// Those of them that are web servers.
    web: HashMap<String, Arc<Web>>,
}

impl Stores {
    /// Files that are fetched as a whole lie in `temp`.
    pub(crate) fn new(
        options: &SessionOptions,
        temp: Arc<TempFolders>,
        access: Arc<Access>,
    ) -> Stores {
        let stores = Stores {
            temp,
            local: Arc::new(AllowedFiles::new(Arc::clone(&access))),
            access,
            remote: RwLock::default(),
        };
        stores.apply(options);
        stores
    }

    /// Takes over the options; buckets are opened anew where they changed.
    pub(crate) fn apply(&self, options: &SessionOptions) {
        let mut remote = self.remote.write();
        if remote.region != options.s3_region || remote.endpoint != options.s3_endpoint {
            remote.region = options.s3_region.clone();
            remote.endpoint = options.s3_endpoint.clone();
            remote.open.retain(|key, _| !key.starts_with("s3://"));
        }
    }

    /// What files of this machine may be opened.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// True if paths of `file://` are those of this machine: no other store was registered for them.
    pub(crate) fn has_own_files(&self) -> bool {
        !self.remote.read().open.contains_key("file://")
    }

    /// A web server, which learns what the path of `url` stands for.
    fn web(&self, url: &Url, key: String) -> Result<Arc<dyn ObjectStore>> {
        let mut remote = self.remote.write();
        if let Some(registered) = remote.open.get(&key) {
            return Ok(Arc::clone(registered));
        }
        let web = match remote.web.get(&key) {
            Some(web) => Arc::clone(web),
            None => {
                let base = Url::parse(&key)
                    .map_err(|error| Error::invalid("address", format!("'{key}': {error}")))?;
                let web = Web::new(&base, Arc::clone(&self.temp));
                let web = Arc::new(web.map_err(|error| refused(&key, &error))?);
                remote.web.insert(key, Arc::clone(&web));
                web
            }
        };
        web.remember(url);
        Ok(web)
    }

    fn open(&self, url: &Url, key: &str) -> Result<Arc<dyn ObjectStore>> {
        match url.scheme() {
            "s3" => {
                let remote = self.remote.read();
                open_s3(url, remote.region.as_deref(), remote.endpoint.as_deref())
            }
            "gs" | "gcs" => {
                let bucket = url.host_str().unwrap_or_default();
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let store = builder.build().map_err(|error| refused(key, &error))?;
                Ok(Arc::new(store))
            }
            "az" | "azure" | "abfs" | "abfss" => {
                let local = std::env::var(AZURE_ENDPOINT).is_ok_and(|at| at.starts_with("http://"));
                let builder = MicrosoftAzureBuilder::from_env()
                    .with_url(format!("{key}/"))
                    .with_allow_http(local);
                let store = builder.build().map_err(|error| refused(key, &error))?;
                Ok(Arc::new(store))
            }
            scheme => {
                Err(Error::unsupported(format!("addresses that start with {scheme}://")).into())
            }
        }
    }
}

/// Where Azure's storage is, if it is not Azure's own.
const AZURE_ENDPOINT: &str = "AZURE_STORAGE_ENDPOINT";

fn open_s3(
    url: &Url,
    region: Option<&str>,
    endpoint: Option<&str>,
) -> Result<Arc<dyn ObjectStore>> {
    let bucket = url.host_str().unwrap_or_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let store = builder
        .build()
        .map_err(|error| refused(url.as_str(), &error))?;
    Ok(Arc::new(store))
}

fn refused(address: &str, error: &object_store::Error) -> DataFusionError {
    Error::Io {
        path: address.to_string(),
        message: error.to_string(),
    }
    .into()
}

fn key_of(url: &Url) -> String {
    format!(
        "{}://{}",
        url.scheme(),
        &url[url::Position::BeforeUsername..url::Position::AfterPort]
    )
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        let mut remote = self.remote.write();
        remote.registered.insert(key_of(url));
        remote.open.insert(key_of(url), store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = key_of(url);
        let unknown = || Error::Io {
            path: key.clone(),
            message: "it is not open".to_string(),
        };
        let mut remote = self.remote.write();
        remote.registered.remove(&key);
        remote.open.remove(&key).ok_or_else(|| unknown().into())
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = key_of(url);
        if url.scheme() != "file" && !self.remote.read().registered.contains(&key) {
            self.access.check_network(url.as_str())?;
        }
        if matches!(url.scheme(), "http" | "https") {
            return self.web(url, key);
        }
        if let Some(store) = self.remote.read().open.get(&key) {
            return Ok(Arc::clone(store));
        }
        if url.scheme() == "file" {
            return Ok(Arc::clone(&self.local));
        }
        let store = self.open(url, &key)?;
        let mut remote = self.remote.write();
        Ok(Arc::clone(remote.open.entry(key).or_insert(store)))
    }
}
