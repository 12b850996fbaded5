//! Where a cluster's scheduler listens, as users write it.
//!
//! In: `df://host:50050`, with `?tls=folder` where the cluster wants certificates. Out: host, port and that folder.
//! Invariant: what is not such an address is an error of the option `cluster` with the text that was written.
//! Not here: connections (scheduler.rs), certificates (tls.rs).

use std::fmt;
use std::path::PathBuf;

use grouse::{Error, Result};
use url::Url;

/// The port of a scheduler that says no other.
pub const SCHEDULER_PORT: u16 = 50050;

/// Where a scheduler listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// Its name or number.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The folder with the certificates that the cluster asks for.
    pub tls: Option<PathBuf>,
}

impl Address {
    /// The address that `text` means.
    pub fn parse(text: &str) -> Result<Address> {
        let refused = |why: &str| Error::Invalid {
            name: "cluster".to_string(),
            message: format!("'{text}' is not possible: {why}"),
        };
        let shape = "it must be an address such as 'df://host:50050'";
        let url = Url::parse(text).map_err(|_| refused(shape))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let (Some(host), "df", "" | "/") = (host, url.scheme(), url.path()) else {
            return Err(refused(shape));
        };
        let mut tls = None;
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "tls" if !value.is_empty() => tls = Some(PathBuf::from(value.as_ref())),
                "tls" => return Err(refused("tls is a folder")),
                _ => {
                    let why = format!("it has '{name}', and takes tls alone after its '?'");
                    return Err(refused(&why));
                }
            }
        }
        Ok(Address {
            host: host.to_string(),
            port: url.port().unwrap_or(SCHEDULER_PORT),
            tls,
        })
    }

    /// The address for connections; what they carry is decided by certificates.
    pub fn uri(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let plain = Address::parse("df://host").unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("host", SCHEDULER_PORT));
        let full = Address::parse("df://[::1]:7/?tls=/etc/my%20keys").unwrap();
        assert_eq!((full.host.as_str(), full.port), ("[::1]", 7));
        assert_eq!(full.tls, Some("/etc/my keys".into()));
        assert_eq!(full.uri(), "https://[::1]:7");
    }

    #[test]
    fn others_are_refused_with_their_text() {
        for text in [
            "",
            "host:50050",
            "http://host:50050",
            "df://",
            "df://host/x",
            "df://host:99999",
            "df://host?x=1",
            "df://host?tls=",
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains("cluster") && error.contains(text), "{error}");
        }
    }
}
