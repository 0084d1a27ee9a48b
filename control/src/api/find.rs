//! What a request names, looked up, or an answer that says what is missing.

use cara_core::model::{Node, Workload, WorkloadKind};
use cara_core::{NodeId, Rejected, State};
use cara_transport::JoinToken;

use super::rest::Asker;
use crate::error::ApiError;
use crate::wire::kind_path;
use cara_env::Rng;

/// A node by name or id.
pub fn node<'a>(state: &'a State, name: &str) -> Result<&'a Node, ApiError> {
    let found = state.node_by_name(name).or_else(|| state.node(&NodeId::from(name)));
    found.ok_or_else(|| Rejected::UnknownNode { node: name.to_owned() }.into())
}

/// The node that a field names; an empty one names none.
pub fn chosen_node(state: &State, name: &str) -> Result<Option<NodeId>, ApiError> {
    if name.is_empty() { Ok(None) } else { node(state, name).map(|node| Some(node.id.clone())) }
}

/// A workload by kind and name.
pub fn workload<'a>(state: &'a State, kind: WorkloadKind, name: &str) -> Result<&'a Workload, ApiError> {
    let missing = || Rejected::UnknownWorkload { workload: format!("{}/{name}", kind_path(kind)) };
    state.workload_by_name(kind, name).ok_or_else(|| missing().into())
}

/// The id of what a request begins: the same for the same request, so that a retry finds what the first attempt began;
/// drawn when the caller has named no request.
pub fn new_id(prefix: &str, asker: &Asker, rng: &dyn Rng) -> String {
    if asker.request_id.is_empty() {
        return format!("{prefix}_{}", cara_env::hex(rng, 8));
    }
    let hash = JoinToken::hash(&format!("{prefix}|{}|{}", asker.actor, asker.request_id));
    format!("{prefix}_{}", &hash[..16])
}
