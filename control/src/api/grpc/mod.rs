//! The machines' side: agents and other servers. Who calls is proven by the certificate on the connection.

mod agent;
mod cluster;
mod instance;
mod readmit;
mod relay;
mod report;
mod session;

pub use agent::AgentService;
pub use cluster::ClusterService;
pub use relay::{FRAME_BYTES_MAX, RelayService};

use cara_transport::{Caller, Peer, Role};
use tonic::{Request, Status};

use super::Api;
use crate::error::ApiError;

/// The caller's certificate, which must be of this cluster.
fn peer<T>(api: &Api, request: &Request<T>) -> Result<Peer, Status> {
    let peer = request.extensions().get::<Caller>().and_then(|caller| caller.peer.clone());
    let refuse = |why| Err(ApiError::Unauthenticated(why).to_status());
    match peer {
        None => refuse("this call needs a client certificate of the cluster"),
        Some(peer) if peer.cluster != api.identity.cluster_id => refuse("the certificate is of another cluster"),
        Some(peer) => Ok(peer),
    }
}

/// As [`peer`], and it must be a server.
pub fn server_peer<T>(api: &Api, request: &Request<T>) -> Result<u64, Status> {
    match peer(api, request)?.role {
        Role::Server(id) => Ok(id),
        Role::Node(_) => Err(ApiError::Unauthenticated("this call is for servers").to_status()),
    }
}

/// Refuses, with the leader's address, when this server doesn't lead.
fn check_leads(api: &Api) -> Result<(), Status> {
    if api.leads() { Ok(()) } else { Err(ApiError::NotLeader { leader: api.leader_elsewhere() }.to_status()) }
}
