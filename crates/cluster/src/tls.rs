//! Certificates: both ends of each connection of a cluster show one that the cluster's own authority has signed.
//!
//! In: three files in PEM. Out: tonic's settings of servers and clients, and the change that makes a plain endpoint one of TLS.
//! Invariant: a server with certificates takes no connection of a client without one.
//! Not here: which ports there are (crate `grouse-node`), how certificates are made (docs/cluster.md).

use std::error::Error as StdError;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ballista_core::extension::EndpointOverrideFn;
use grouse::{Error, Result};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A peer that does not answer for so long is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Where the certificates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of this process, and those up to the authority's.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority that has signed the certificates of all others.
    pub ca: PathBuf,
}

impl TlsFiles {
    /// Those in a folder, under their usual names.
    pub fn in_folder(folder: &Path) -> TlsFiles {
        TlsFiles {
            cert: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            ca: folder.join("ca.pem"),
        }
    }

    /// Their content.
    pub fn read(&self) -> Result<Tls> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|error| Error::Io {
                path: path.display().to_string(),
                message: error.to_string(),
            })
        };
        Ok(Tls {
            identity: Identity::from_pem(read(&self.cert)?, read(&self.key)?),
            ca: Certificate::from_pem(read(&self.ca)?),
        })
    }
}

/// The certificates of one process.
#[derive(Clone)]
pub struct Tls {
    identity: Identity,
    ca: Certificate,
}

/// Without the private key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// What a server asks of its clients and shows them.
    pub fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity.clone())
            .client_ca_root(self.ca.clone())
    }

    /// The endpoint at the same address, with certificates.
    pub fn secured(&self, plain: &Endpoint) -> Result<Endpoint, tonic::transport::Error> {
        let authority = plain.uri().authority().map_or("", |of| of.as_str());
        let client = ClientTlsConfig::new()
            .identity(self.identity.clone())
            .ca_certificate(self.ca.clone());
        timed(Endpoint::from_shared(format!("https://{authority}"))?).tls_config(client)
    }

    /// The same as Ballista takes it for all of its connections.
    pub fn everywhere(self: Arc<Self>) -> EndpointOverrideFn {
        Arc::new(
            move |plain: Endpoint| -> Result<Endpoint, Box<dyn StdError + Send + Sync>> {
                Ok(self.secured(&plain)?)
            },
        )
    }
}

/// The endpoint that finds out within seconds that its peer is gone.
pub fn timed(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
}
