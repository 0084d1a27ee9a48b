//! Makes the cluster: identity, CA, first server and first root token in one entry. The first entry of a log.

use crate::entry::Context;
use crate::event::Event;
use crate::id::Generation;
use crate::model::{ApiToken, Cluster, Server};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Makes the cluster. Sent again with the same cluster id it changes nothing.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct InitCluster {
    /// Random; 1 to 64 of letters, digits, `_` and `-`.
    #[prost(string, tag = "1")]
    pub cluster_id: String,
    /// At least 1.
    #[prost(uint64, tag = "2")]
    pub incarnation: u64,
    /// What the first server supports.
    #[prost(uint32, tag = "3")]
    pub feature_level: u32,
    /// PEM.
    #[prost(string, tag = "4")]
    pub ca_cert_pem: String,
    /// Sealed under the key file of the servers.
    #[prost(bytes = "vec", tag = "5")]
    pub ca_key_sealed: Vec<u8>,
    /// The first server; `joined_at_ms` and `revision` are set by apply.
    #[prost(message, required, tag = "6")]
    pub server: Server,
    /// A root token that never expires; `created_at_ms` and `revision` are set by apply.
    #[prost(message, required, tag = "7")]
    pub root_token: ApiToken,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: InitCluster) -> Result<Vec<Event>, Rejected> {
    if let Some(cluster) = state.cluster() {
        if cluster.cluster_id == cmd.cluster_id {
            return Ok(Vec::new());
        }
        return Err(Rejected::AlreadyInitialised { cluster: cluster.cluster_id.clone() });
    }
    super::check_id("cluster_id", &cmd.cluster_id)?;
    if cmd.incarnation == 0 {
        return Err(Problem::new("incarnation", "must be at least 1").into());
    }
    super::put_server::check(state, &cmd.server)?;
    super::put_api_token::check(state, &cmd.root_token)?;
    let token = ApiToken { revoked_at_ms: None, ..cmd.root_token };
    if !token.is_lasting_root() {
        return Err(Problem::new("root_token", "must have the ability root, no scope, and never expire").into());
    }
    let mut server = cmd.server;
    server.joined_at_ms = cx.at_ms;
    server.certificate.generation = Generation(1);
    let token = ApiToken { created_at_ms: cx.at_ms, last_used_ms: 0, ..token };
    let events = vec![
        Event::ClusterInitialised { cluster_id: cmd.cluster_id.clone() },
        Event::ServerAdded { server: server.id, name: server.name.clone() },
        Event::ApiTokenCreated { token: token.id.clone(), name: token.name.clone() },
    ];
    state.set_cluster(Cluster {
        cluster_id: cmd.cluster_id,
        incarnation: cmd.incarnation,
        feature_level: cmd.feature_level,
        ca_cert_pem: cmd.ca_cert_pem,
        ca_key_sealed: cmd.ca_key_sealed,
        created_at_ms: cx.at_ms,
        last_server_id: server.id,
    });
    state.put_server(cx, server);
    state.put_api_token(cx, token);
    Ok(events)
}
