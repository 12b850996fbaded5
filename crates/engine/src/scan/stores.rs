//! Stores: the file system, web servers and buckets behind addresses, opened on demand.
//!
//! In: the address of a file.
//! Out: the host's object store for it, one per server or bucket and session.
//! Invariant: credentials come from the AWS environment variables or the machine, never from SQL text.
//! Not here: which files an address stands for (location.rs).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore};
use parking_lot::RwLock;
use url::Url;

use crate::error::Error;
use crate::options::SessionOptions;

/// The stores of one session.
#[derive(Debug)]
pub(crate) struct Stores {
    local: Arc<dyn ObjectStore>,
    remote: RwLock<Remote>,
}

#[derive(Debug, Default)]
struct Remote {
    region: Option<String>,
    endpoint: Option<String>,
    open: HashMap<String, Arc<dyn ObjectStore>>,
}

impl Stores {
    pub(crate) fn new(options: &SessionOptions) -> Stores {
        let stores = Stores {
            local: Arc::new(LocalFileSystem::new()),
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

    /// True if paths of `file://` are those of this machine: no other store was registered for them.
    pub(crate) fn has_own_files(&self) -> bool {
        !self.remote.read().open.contains_key("file://")
    }

    fn open(&self, url: &Url, key: &str) -> Result<Arc<dyn ObjectStore>> {
        match url.scheme() {
            "s3" => {
                let remote = self.remote.read();
                open_s3(url, remote.region.as_deref(), remote.endpoint.as_deref())
            }
            "http" | "https" => {
                let client = ClientOptions::new().with_allow_http(true);
                let store = HttpBuilder::new()
                    .with_url(key)
                    .with_client_options(client)
                    .build();
                Ok(Arc::new(store.map_err(|error| refused(key, &error))?))
            }
            scheme => Err(Error::Unsupported {
                message: format!("addresses that start with {scheme}://"),
            }
            .into()),
        }
    }
}

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
        &url[url::Position::BeforeHost..url::Position::AfterPort]
    )
}

impl ObjectStoreRegistry for Stores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.remote.write().open.insert(key_of(url), store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = key_of(url);
        let unknown = || Error::Io {
            path: key.clone(),
            message: "it is not open".to_string(),
        };
        self.remote
            .write()
            .open
            .remove(&key)
            .ok_or_else(|| unknown().into())
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let key = key_of(url);
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
