//! What this server supports, and what the cluster expects: announces the one, and ends the server when the other is more.
//!
//! Level-triggered: the record in the state is compared with the configuration whenever something changes, so that a lost
//! call, a new leader or a restart under an older release costs another look.

use std::time::Duration;

use cara_core::command::PutServer;
use cara_core::model::Server;
use cara_core::{Command, Rejected, ServerId};

use crate::api::{Api, Leader, SharedApi};
use crate::error::ApiError;

/// Between two attempts to announce.
const RETRY: Duration = Duration::from_secs(1);

/// Announces until the record says what this server supports, and again if it no longer does. Runs until the server stops.
pub async fn announce(api: SharedApi) {
    let own = api.config.feature_level_max;
    let mut changed = api.administration.clone();
    loop {
        changed.borrow_and_update();
        // A server that just joined finds its record once the log has come so far.
        let recorded = api.read_local(|state| state.server(ServerId(api.identity.server_id)).map(Server::level));
        if recorded.is_none_or(|recorded| recorded == own) {
            if changed.changed().await.is_err() {
                return;
            }
            continue;
        }
        match tell_leader(&api).await {
            Ok(()) => tracing::info!(level = own, ?recorded, "feature level announced"),
            Err(error) => tracing::debug!(%error, "the feature level is not announced yet; trying again"),
        }
        api.env.clock.sleep(RETRY).await;
    }
}

async fn tell_leader(api: &SharedApi) -> Result<(), ApiError> {
    let (level, limit) = (api.config.feature_level_max, api.config.request_deadline);
    match api.find_leader(limit).await? {
        Leader::Here => api.record_level(api.identity.server_id, level).await,
        Leader::At(address) => api.forwarder.announce(&address, level, limit).await,
        Leader::None => Err(ApiError::NotLeader { leader: None }),
    }
}

/// Returns the cluster's level once it is beyond what this server supports: what follows in the log it would misread.
pub async fn outgrown(api: &SharedApi) -> u32 {
    let mut changed = api.administration.clone();
    loop {
        changed.borrow_and_update();
        let level = api.read_local(|state| state.cluster().map_or(0, |cluster| cluster.feature_level));
        if level > api.config.feature_level_max {
            return level;
        }
        if changed.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

impl Api {
    /// Writes down what a server supports. Only the leader can.
    ///
    /// # Errors
    /// When there is no such server, when the cluster is beyond that level, or when it can't be recorded now.
    pub async fn record_level(&self, server: u64, feature_level: u32) -> Result<(), ApiError> {
        let known = self.read_local(|state| state.server(ServerId(server)).cloned());
        let known = known.ok_or_else(|| Rejected::UnknownServer { server: server.to_string() })?;
        let command = PutServer { server: Server { feature_level, ..known }, token_hash: None };
        self.propose(&format!("server:{server}"), "", Command::PutServer(command)).await.map(drop)
    }
}
