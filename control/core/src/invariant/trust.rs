//! What holds of certificates and the CAs that signed them.

use super::{Found, InvariantId};
use crate::model::Certificate;
use crate::state::State;

/// Everybody trusts the CA of everybody else's certificates: the pairs need not be looked at one by one, because trust is in
/// all CAs from the cluster's own up to the newest that a machine has named.
pub(super) fn check(state: &State, found: &mut Found) {
    let Some(cluster) = state.cluster() else { return };
    let servers = state.servers().map(|server| ("server", server.name.as_str(), &server.certificate));
    let nodes = state.nodes().filter_map(|node| Some(("node", node.name.as_str(), node.certificate.as_ref()?)));
    let members: Vec<_> = servers.chain(nodes).filter(|(.., of)| of.revoked_at_ms.is_none()).collect();
    let least = members.iter().map(|(.., of)| of.newest_trusted()).min().unwrap_or(1);
    let newest_used = |of: &Certificate| of.ca_number().max(of.previous.as_ref().map_or(1, |p| p.ca_number()));
    for (kind, name, of) in &members {
        let (oldest, newest) = (of.oldest_ca(), newest_used(of));
        let holds = cluster.ca_number() <= oldest && newest <= least && of.newest_trusted() <= cluster.newest_ca();
        found.expect(holds, InvariantId::TrustShared, || {
            let all = cluster.ca_number()..=cluster.newest_ca();
            format!(
                "{kind} {name} has certificates of CA {oldest} to {newest}; trusted are {all:?}, by all up to {least}"
            )
        });
    }
}
