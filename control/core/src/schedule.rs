//! Which node takes a workload: the one with the fewest, ties by node id, among those that can. Pure; runs inside
//! apply, so that it sees every placement before it.

use crate::id::NodeId;
use crate::limits;
use crate::model::{Connection, Node, Protocol, Rejection, Workload, WorkloadKind};
use crate::planted::planted;
use crate::rejected::Rejected;
use crate::state::State;
use std::collections::BTreeSet;

/// No node can take the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNode {
    /// Why, for the first 16 nodes by id.
    pub rejections: Vec<Rejection>,
    /// How many nodes were rejected.
    pub count: u32,
}

/// Why one node can't take one workload now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit<'a> {
    /// The user named another node.
    #[error("another node was asked for")]
    NotAsked,
    /// Its machine has never connected.
    #[error("has not connected yet")]
    Pending,
    /// It is not heard.
    #[error("offline")]
    Offline,
    /// It takes no new placements.
    #[error("cordoned")]
    Cordoned,
    /// It does not take this kind.
    #[error("does not accept kind {0}")]
    Kind(WorkloadKind),
    /// It lacks a label of the selector.
    #[error("lacks label {0}={1}")]
    Label(&'a str, &'a str),
    /// A neighbour has a host port that the workload needs.
    #[error("host port {0} is taken by {1}")]
    HostPort(u32, &'a str),
}

/// The node for a workload, or why there is none.
pub fn choose(state: &State, workload: &Workload) -> Result<NodeId, NoNode> {
    let mut best: Option<(usize, &NodeId)> = None;
    let mut none = NoNode { rejections: Vec::new(), count: 0 };
    for node in state.nodes() {
        match unfit(state, node, workload) {
            Some(unfit) => {
                none.count += 1;
                if none.rejections.len() < limits::REJECTIONS_KEPT {
                    none.rejections.push(Rejection { node: node.id.clone(), reason: unfit.to_string() });
                }
            }
            None => {
                let candidate = (state.placed_count(&node.id), &node.id);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
            }
        }
    }
    best.map(|(_, id)| id.clone()).ok_or(none)
}

/// Why this node can't take the workload now; `None` when it can.
pub fn unfit<'a>(state: &'a State, node: &'a Node, workload: &'a Workload) -> Option<Unfit<'a>> {
    if workload.explicit_node.as_ref().is_some_and(|explicit| *explicit != node.id) {
        return Some(Unfit::NotAsked);
    }
    match node.connection {
        Connection::Pending => return Some(Unfit::Pending),
        Connection::Offline => return Some(Unfit::Offline),
        Connection::Online => {}
    }
    if !node.schedulable && !planted("cordon-ignored-by-scheduler") {
        return Some(Unfit::Cordoned);
    }
    if !node.accepts(workload.kind) {
        return Some(Unfit::Kind(workload.kind));
    }
    let lacking = workload.spec.selector.iter().find(|(key, value)| node.labels.get(*key) != Some(value));
    if let Some((key, value)) = lacking {
        return Some(Unfit::Label(key, value));
    }
    host_port_conflict(state, &node.id, workload).map(|(port, by)| Unfit::HostPort(port, by))
}

/// Refuses unless the node that the user named exists and can take the workload now.
pub(crate) fn check_explicit(state: &State, node: &NodeId, workload: &Workload) -> Result<(), Rejected> {
    let node = state.node(node).ok_or_else(|| Rejected::UnknownNode { node: node.to_string() })?;
    match unfit(state, node, workload) {
        Some(unfit) => Err(Rejected::NodeNotEligible { node: node.name.clone(), reason: unfit.to_string() }),
        None => Ok(()),
    }
}

/// The first host port of the workload that another one on the node has, and that one's name.
pub(crate) fn host_port_conflict<'a>(state: &'a State, node: &NodeId, workload: &Workload) -> Option<(u32, &'a str)> {
    let wanted = host_ports(workload);
    if wanted.is_empty() {
        return None;
    }
    for other in state.placed_on(node).filter(|other| other.uid != workload.uid) {
        if let Some((port, _)) = host_ports(other).intersection(&wanted).next() {
            return Some((*port, &other.name));
        }
    }
    None
}

/// The ports that a workload publishes on its node.
pub(crate) fn host_ports(workload: &Workload) -> BTreeSet<(u32, Protocol)> {
    let ports = workload.spec.services.iter().flat_map(|service| &service.ports);
    ports.filter_map(|port| port.host_port.map(|host| (host, port.protocol))).collect()
}
