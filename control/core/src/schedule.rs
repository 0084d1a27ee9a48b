//! Which node takes a workload: the one with the fewest, ties by node id, among those that can. Pure; runs inside
//! apply, so that it sees every placement before it. What is being moved to a node counts as being there.

use crate::feature::Feature;
use crate::id::NodeId;
use crate::limits;
use crate::model::{Connection, Node, Protocol, Rejection, Resources, Workload, WorkloadKind};
use crate::planted::planted;
use crate::quantity;
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
    /// The workload is there already.
    #[error("it is there already")]
    Source,
    /// Its agent does not know what would be asked of it: its feature level, and the one that is needed.
    #[error("its agent supports feature level {0}, this needs {1}: upgrade cara-agent there")]
    Agent(u32, u32),
    /// It asks for more than is free: the resource, what is free, what is wanted.
    #[error("{0}: {1} free, {2} wanted")]
    Resources(&'static str, String, String),
}

/// What a node is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// A workload without a node.
    Place,
    /// A move away from this node: the user's node does not bind it.
    Move {
        /// Where the workload is.
        source: &'a NodeId,
    },
}

/// The node for a workload, or why there is none.
pub fn choose(state: &State, workload: &Workload, purpose: Purpose<'_>) -> Result<NodeId, NoNode> {
    let fits = |id: &NodeId| state.node(id).is_some_and(|node| unfit(state, node, workload, purpose).is_none());
    let chosen = match (purpose, &workload.explicit_node) {
        (Purpose::Place, Some(explicit)) => Some(explicit).filter(|id| fits(id)),
        _ => fewest(state, fits),
    };
    chosen.cloned().ok_or_else(|| why_none(state, workload, purpose))
}

/// The open node with the fewest workloads among those that fit.
fn fewest(state: &State, fits: impl Fn(&NodeId) -> bool) -> Option<&NodeId> {
    let mut best: Option<(usize, &NodeId)> = None;
    for (placed, id) in state.open_nodes_by_placed() {
        // From here on all have more, whatever moves to them besides. In a large fleet the first ones decide.
        if best.is_some_and(|best| best < (placed, id)) {
            break;
        }
        let has = (placed + state.incoming(id).count(), id);
        if best.is_none_or(|best| has < best) && fits(id) {
            best = Some(has);
        }
    }
    best.map(|(_, id)| id)
}

/// True when the node takes new placements at all; of what kind, and how much, is another question. A large drain or
/// outage must not make each placement walk past the nodes it has emptied.
pub(crate) fn is_open(node: &Node) -> bool {
    node.connection == Connection::Online && (node.schedulable || planted("cordon-ignored-by-scheduler"))
}

/// What to say when no node can take the workload: then each of them was rejected, and only the first ones are asked why.
fn why_none(state: &State, workload: &Workload, purpose: Purpose<'_>) -> NoNode {
    let rejection = |node: &Node| {
        let reason = unfit(state, node, workload, purpose)?.to_string();
        Some(Rejection { node: node.id.clone(), reason })
    };
    let rejections = state.nodes().filter_map(rejection).take(limits::REJECTIONS_KEPT).collect();
    NoNode { rejections, count: u32::try_from(state.nodes().len()).unwrap_or(u32::MAX) }
}

/// Why this node can't take the workload now; `None` when it can.
pub fn unfit<'a>(state: &'a State, node: &'a Node, workload: &'a Workload, purpose: Purpose<'_>) -> Option<Unfit<'a>> {
    match purpose {
        Purpose::Place if workload.explicit_node.as_ref().is_some_and(|explicit| *explicit != node.id) => {
            return Some(Unfit::NotAsked);
        }
        Purpose::Move { source } if *source == node.id => return Some(Unfit::Source),
        Purpose::Place | Purpose::Move { .. } => {}
    }
    match node.connection {
        Connection::Pending => return Some(Unfit::Pending),
        Connection::Offline => return Some(Unfit::Offline),
        Connection::Online => {}
    }
    let asks = matches!(purpose, Purpose::Move { .. }) || workload.spec.suspended;
    if asks && !node.supports(Feature::Moves) {
        return Some(Unfit::Agent(node.feature_level, Feature::Moves.level()));
    }
    if !is_open(node) {
        return Some(Unfit::Cordoned);
    }
    if !node.accepts(workload.kind) {
        return Some(Unfit::Kind(workload.kind));
    }
    let lacking = workload.spec.selector.iter().find(|(key, value)| node.labels.get(*key) != Some(value));
    if let Some((key, value)) = lacking {
        return Some(Unfit::Label(key, value));
    }
    if let Some((port, by)) = host_port_conflict(state, &node.id, workload) {
        return Some(Unfit::HostPort(port, by));
    }
    shortage(node, state.booked(&node.id), Booked::of(workload))
}

/// What of a node is spoken for. Wide enough for any sum of what specs may say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Booked {
    /// Thousandths of a core.
    pub cpu_millis: u128,
    /// Bytes.
    pub memory_bytes: u128,
    /// Bytes.
    pub disk_bytes: u128,
}

/// The name of an amount, its value, and how it is written.
type Amount = (&'static str, u128, fn(u128) -> String);

impl Booked {
    pub fn of(workload: &Workload) -> Booked {
        let Resources { cpu_millis, memory_bytes, disk_bytes } = workload.spec.requests();
        Booked { cpu_millis: cpu_millis.into(), memory_bytes: memory_bytes.into(), disk_bytes: disk_bytes.into() }
    }

    pub fn add(&mut self, other: Booked) {
        self.cpu_millis += other.cpu_millis;
        self.memory_bytes += other.memory_bytes;
        self.disk_bytes += other.disk_bytes;
    }

    /// Takes back what was added.
    pub fn take(&mut self, other: Booked) {
        self.cpu_millis -= other.cpu_millis;
        self.memory_bytes -= other.memory_bytes;
        self.disk_bytes -= other.disk_bytes;
    }

    /// Each amount with its name among the facts of a node, and how it is written.
    pub fn amounts(self) -> [Amount; 3] {
        [
            ("cpu", self.cpu_millis, quantity::cpu),
            ("memory", self.memory_bytes, quantity::bytes),
            ("disk", self.disk_bytes, quantity::bytes),
        ]
    }
}

/// The first amount that is wanted and not free on the node. What the node does not tell is not judged.
fn shortage<'a>(node: &Node, booked: Booked, wanted: Booked) -> Option<Unfit<'a>> {
    for ((name, wanted, written), (_, booked, _)) in wanted.amounts().into_iter().zip(booked.amounts()) {
        let Some(allocatable) = node.facts.allocatable.get(name).filter(|_| wanted > 0) else { continue };
        let free = u128::from(*allocatable).saturating_sub(booked);
        if wanted > free {
            return Some(Unfit::Resources(name, written(free), written(wanted)));
        }
    }
    None
}

/// Why the node that has the workload can't keep it under another spec: an amount that rises above what is free.
pub(crate) fn shortage_after<'a>(state: &State, node: &Node, old: &Workload, new: &Workload) -> Option<Unfit<'a>> {
    let (mut booked, mut rises) = (state.booked(&node.id), Booked::of(new));
    let before = Booked::of(old);
    booked.take(before);
    // An amount that does not rise is no reason, even where the node has shrunk below what is booked.
    for (rises, before) in [
        (&mut rises.cpu_millis, before.cpu_millis),
        (&mut rises.memory_bytes, before.memory_bytes),
        (&mut rises.disk_bytes, before.disk_bytes),
    ] {
        if *rises <= before {
            *rises = 0;
        }
    }
    shortage(node, booked, rises)
}

/// Refuses unless the node that the user named exists and can take the workload now.
pub(crate) fn check_explicit(state: &State, node: &NodeId, workload: &Workload) -> Result<(), Rejected> {
    let node = state.node(node).ok_or_else(|| Rejected::UnknownNode { node: node.to_string() })?;
    match unfit(state, node, workload, Purpose::Place) {
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
    let coming = state.incoming(node).filter_map(|mv| state.workload(&mv.workload));
    for other in state.placed_on(node).chain(coming).filter(|other| other.uid != workload.uid) {
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
