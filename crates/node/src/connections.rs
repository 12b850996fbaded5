//! Connections to other executors, from which tasks fetch their inputs: one to each, however many tasks fetch.
//! In: a place. Out: a client. Its channel connects anew where it has broken.
//! Not here: the fetching (Ballista).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::client::BallistaClient;
use ballista_core::client_pool::{BallistaClientPool, PooledClient};
use ballista_core::error::Result;
use ballista_core::extension::BallistaConfigGrpcEndpoint;
use ballista_core::utils::GrpcClientConfig;
use tokio::sync::Mutex;

/// Clients by host and port.
#[derive(Default)]
pub struct Connections(Mutex<HashMap<(String, u16), BallistaClient>>);

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

#[async_trait]
impl BallistaClientPool for Connections {
    async fn acquire(
        &self,
        host: &str,
        port: u16,
        config: &GrpcClientConfig,
        customize_endpoint: Option<Arc<BallistaConfigGrpcEndpoint>>,
    ) -> Result<PooledClient> {
        let place = (host.to_owned(), port);
        if let Some(client) = self.0.lock().await.get(&place) {
            return Ok(PooledClient::new(client.clone(), Box::new(drop)));
        }
        let client = BallistaClient::try_new(
            host,
            port,
            config.max_message_size,
            config.use_tls,
            customize_endpoint,
            config.io_retries_times,
            config.io_retry_wait_time_ms,
            config.initial_connection_window_size,
            config.initial_stream_window_size,
        )
        .await?;
        self.0.lock().await.insert(place, client.clone());
        Ok(PooledClient::new(client, Box::new(drop)))
    }

    async fn evict_idle(&self) {}
}
