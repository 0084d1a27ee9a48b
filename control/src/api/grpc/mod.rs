//! The machines' side: agents and other servers. Who calls is proven by the certificate on the connection.

mod agent;
mod cluster;
mod instance;
mod preflight;
mod readmit;
mod relay;
mod report;
mod session;
mod trust;

pub use agent::AgentService;
pub use cluster::ClusterService;
pub use relay::{FRAME_BYTES_MAX, RelayService};

use std::time::Duration;

use cara_transport::{Caller, Peer, Role};
use tonic::{Request, Status};

use super::Api;
use crate::error::ApiError;

/// How long the leader tries to reach a machine that wants to join; shorter than the joiner's own patience.
const DIAL_BACK: Duration = Duration::from_secs(3);

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

/// The new machine or server must answer at this address.
///
/// # Errors
/// `address-unreachable`, with who tried and what the system said.
async fn dial_back(api: &Api, who: &str, address: &str, hint: &'static str) -> Result<(), ApiError> {
    let env = &api.env;
    let reason = match cara_env::timeout(&*env.clock, DIAL_BACK, env.net.connect(address)).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {DIAL_BACK:?}"),
    };
    Err(ApiError::Bad {
        status: http::StatusCode::BAD_REQUEST,
        code: "address-unreachable",
        detail: format!("{} can't reach the new {who} at {address}: {reason}", api.identity.name),
        hint,
    })
}

/// Refuses, with the leader's address, when this server doesn't lead.
fn check_leads(api: &Api) -> Result<(), Status> {
    if api.leads() { Ok(()) } else { Err(ApiError::NotLeader { leader: api.leader_elsewhere() }.to_status()) }
}
