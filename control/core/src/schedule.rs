//! Which node takes a workload: the one with the fewest, ties by node id, among those that can. Pure; runs inside apply,
//! so that it sees every placement before it.

use crate::id::NodeId;
use crate::model::{Connection, Node, Protocol, Rejection, Workload};
use crate::rejected::Rejected;
use crate::state::State;
use std::collections::BTreeSet;

/// The node for a workload, or why each node was not taken (in the order of node ids).
pub fn choose(state: &State, workload: &Workload) -> Result<NodeId, Vec<Rejection>> {
    let mut best: Option<(usize, &NodeId)> = None;
    let mut rejections = Vec::new();
    for node in state.nodes() {
        match unfit(state, node, workload) {
            Some(reason) => rejections.push(Rejection { node: node.id.clone(), reason }),
            None => {
                let candidate = (state.placed_count(&node.id), &node.id);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
            }
        }
    }
    best.map(|(_, id)| id.clone()).ok_or(rejections)
}

/// Why this node can't take the workload now; `None` when it can.
pub fn unfit(state: &State, node: &Node, workload: &Workload) -> Option<String> {
    if let Some(explicit) = &workload.explicit_node
        && *explicit != node.id
    {
        return Some("another node was asked for".to_owned());
    }
    match node.connection {
        Connection::Pending => return Some("has not connected yet".to_owned()),
        Connection::Offline => return Some("offline".to_owned()),
        Connection::Online => {}
    }
    if !node.schedulable {
        return Some("cordoned".to_owned());
    }
    if !node.accepts(workload.kind) {
        return Some(format!("does not accept kind {}", workload.kind));
    }
    if let Some((key, value)) = workload.spec.selector.iter().find(|(key, value)| node.labels.get(*key) != Some(value))
    {
        return Some(format!("lacks label {key}={value}"));
    }
    host_port_conflict(state, &node.id, workload).map(|(port, by)| format!("host port {port} is taken by {by}"))
}

/// Refuses unless the node that the user named exists and can take the workload now.
pub(crate) fn check_explicit(state: &State, node: &NodeId, workload: &Workload) -> Result<(), Rejected> {
    let node = state.node(node).ok_or_else(|| Rejected::UnknownNode { node: node.to_string() })?;
    match unfit(state, node, workload) {
        Some(reason) => Err(Rejected::NodeNotEligible { node: node.name.clone(), reason }),
        None => Ok(()),
    }
}

/// The first host port of the workload that another one on the node has, and that one's name.
pub(crate) fn host_port_conflict(state: &State, node: &NodeId, workload: &Workload) -> Option<(u32, String)> {
    let wanted = host_ports(workload);
    if wanted.is_empty() {
        return None;
    }
    for other in state.placed_on(node).filter(|other| other.uid != workload.uid) {
        if let Some((port, _)) = host_ports(other).intersection(&wanted).next() {
            return Some((*port, other.name.clone()));
        }
    }
    None
}

fn host_ports(workload: &Workload) -> BTreeSet<(u32, Protocol)> {
    let ports = workload.spec.services.iter().flat_map(|service| &service.ports);
    ports.filter_map(|port| port.host_port.map(|host| (host, port.protocol))).collect()
}
