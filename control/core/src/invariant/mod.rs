//! What is always true of the state, each with a name and one sentence. Defined once; used by unit, property and
//! simulation tests. Checking is a pass over everything: servers don't do it, also not in debug builds. In a simulation one
//! replay of the log is checked after each entry, for all servers, which must have the same state.

mod moves;
mod sealing;
mod trust;

use crate::limits;
use crate::model::{Connection, Node};
use crate::schedule::host_ports;
use crate::state::State;
use std::collections::BTreeSet;
use std::fmt;

macro_rules! invariants {
    ($($(#[$meta:meta])* $variant:ident $sentence:literal;)+) => {
        /// Names what must hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum InvariantId {
            $(#[doc = $sentence] $variant,)+
        }

        impl InvariantId {
            /// All of them.
            pub const ALL: &'static [InvariantId] = &[$(InvariantId::$variant,)+];

            /// What must hold, in one sentence.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(InvariantId::$variant => $sentence,)+
                }
            }
        }
    };
}

invariants! {
    NamesUnique "No two nodes, servers or workloads of one kind have the same name.";
    FingerprintsUnique "No certificate fingerprint belongs to two nodes or servers.";
    PlacedNodeExists "A workload is placed only on a node that exists.";
    DeletingIsPlaced "A workload that is being deleted has a node that must still remove it.";
    GenerationBounded "No placement or status has a generation above the highest that was granted.";
    EpochBounded "No session has an epoch above the highest that was given.";
    OnlineHasSession "A node that is online has a session.";
    PendingNeverConnected "A node is pending exactly until its first session.";
    SessionHasCertificate "A node with a session has a certificate that is not revoked.";
    TokenSpentOnce "A join token let in at most one machine, and only a machine that it is recorded for.";
    RootTokenLeft "After init there is a root token that is neither revoked nor expiring.";
    ServerLeft "After init there is a server, and no server has an id above the highest that was given.";
    HostPortsUnique "No two workloads on one node publish the same host port.";
    Bounded "No list, ring or collection is longer than its limit.";
    OrderedInTime "The events of a node and the audit are in the order of time.";
    RevisionBounded "No object has a revision above the state's.";
    IndexesExact "The indexes are what the objects say.";
    LogTimeRises "Neither the log's time nor its revision goes back.";
    GenerationRises "A workload's highest generation never falls, and a new grant has a higher one.";
    EpochRises "A node's highest epoch never falls.";
    DeletionStands "A workload that is being deleted stays so until it is gone.";
    CordonHolds "No workload is newly given to a node that was cordoned all the while, but by a move that began before.";
    TokenUseStands "Who spent a join token never changes.";
    RunningMoveOnce "At most one move of a workload runs.";
    RunningDrainOnce "At most one drain of a node runs.";
    DrainStops "A drain that runs has no move that has failed.";
    MoveEndsExist "A running move has two nodes that exist and differ.";
    MoveHoldsWorkload "A running move's workload exists, is not being deleted, and is placed on the source until the switch, and on the target from then on.";
    MoveOver "A move or drain is over exactly when it has an end in time, and a move is done exactly when it succeeded.";
    OneRunner "No two nodes are told to run one stateful workload.";
    ServedThroughout "A workload without state that moves is told to run on its source until the move has switched and released the old copy.";
    MoveStands "What a move or drain was about never changes, and one that is over stays so.";
    CommitStands "A move that has switched never goes back.";
    StopBeforeGrant "A stateful workload leaves its node only by the switch of a move that recorded its stop, or when the node was declared lost.";
    StopBeforeStart "The target of a stateful move is told to run only after the source's stop was recorded under its grant.";
    GoneBeforeReturn "The source of a stateful move is told to run again only after the target's copy was reported gone, or the target was declared lost, or it had never been told to run.";
    DataGenerationStands "A data generation changes only at the first grant, at a switch, or after the data were given up.";
    BookedFits "What is asked for on a node never rises above what the node says it can give.";
    LostIsSilent "A node that was declared lost has no session and no placement but those that a running move still needs.";
    RemovedUnneeded "A node is told to remove a volume only while no node is told anything about its data, and no move is.";
    TrustShared "Every machine that may talk trusts the CA of every other's certificates, also while the CA is replaced.";
    TrustRises "The number of changes of whom to trust never falls.";
    SealedByAll "Secrets are sealed anew only under a key that every server has, and all of them at once.";
    SealingKeysDiffer "The sealing key, the next one and the former ones are different keys.";
    CertificateRises "A node's certificate generation never falls, and another certificate has a higher one.";
    RevokedStands "A node whose certificate is revoked gets another one only by being enrolled again.";
    TokenBound "A token that is bound to a node let in no other one.";
}

impl fmt::Display for InvariantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// An invariant that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub id: InvariantId,
    /// About what.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.id, self.detail, self.id.sentence())
    }
}

/// Everything that does not hold of this state; empty when all is well.
pub fn check(state: &State) -> Vec<Violation> {
    let mut found = Found(Vec::new());
    check_identity(state, &mut found);
    check_nodes(state, &mut found);
    check_workloads(state, &mut found);
    check_tokens(state, &mut found);
    check_bound_tokens(state, &mut found);
    check_bounds(state, &mut found);
    check_revisions(state, &mut found);
    moves::check(state, &mut found);
    trust::check(state, &mut found);
    sealing::check(state, &mut found);
    found.expect(state.indexes_are_exact(), InvariantId::IndexesExact, || "rebuilt indexes differ".into());
    found.0
}

/// Everything that does not hold between a state and the one that the next entry of the log makes of it.
pub fn check_step(before: &State, after: &State) -> Vec<Violation> {
    let mut found = Found(check_later(before, after));
    moves::check_step(before, after, &mut found);
    sealing::check_step(before, after, &mut found);
    found.0
}

/// Everything that does not hold between a state and any later one of the same log, however many entries lie between.
fn check_later(before: &State, after: &State) -> Vec<Violation> {
    let mut found = Found(Vec::new());
    let rises = before.at_ms() <= after.at_ms() && before.revision() <= after.revision();
    found.expect(rises, InvariantId::LogTimeRises, || format!("revision {}", after.revision()));
    for old in before.workloads() {
        let Some(new) = after.workload(&old.uid) else { continue };
        let regranted = new.placement.is_some() && new.placement != old.placement;
        // A switch is to the grant that the target took when its move began.
        let switched = before.running_move(&old.uid).map(|mv| mv.target_generation)
            == new.placement.as_ref().map(|placement| placement.generation);
        let rises = !regranted || switched || old.last_generation < new.last_generation;
        let rises = rises && old.last_generation <= new.last_generation;
        found.expect(rises, InvariantId::GenerationRises, || format!("workload {}", old.name));
        found.expect(new.deleting || !old.deleting, InvariantId::DeletionStands, || format!("workload {}", old.name));
    }
    for new in after.workloads() {
        let Some(node) = new.placement.as_ref().map(|placement| &placement.node) else { continue };
        let was_there =
            before.workload(&new.uid).and_then(|old| old.placement.as_ref()).is_some_and(|p| p.node == *node);
        // The same revision: nothing happened to the node in between, an uncordon neither.
        let closed = |state: &State| state.node(node).filter(|n| !n.schedulable).map(|n| n.revision);
        let cordoned = closed(before).is_some() && closed(before) == closed(after);
        let promised = before.running_move(&new.uid).is_some_and(|mv| mv.target == *node);
        found.expect(was_there || promised || !cordoned, InvariantId::CordonHolds, || format!("workload {}", new.name));
    }
    for old in before.nodes() {
        let Some(new) = after.node(&old.id) else { continue };
        found.expect(old.last_epoch <= new.last_epoch, InvariantId::EpochRises, || format!("node {}", old.name));
        let rises = match (&old.certificate, &new.certificate) {
            (Some(old), Some(new)) if old.fingerprint == new.fingerprint => old.generation == new.generation,
            (Some(old), Some(new)) => old.generation < new.generation,
            (Some(_), None) => false,
            (None, _) => true,
        };
        found.expect(rises, InvariantId::CertificateRises, || format!("node {}", old.name));
        let revoked = |node: &Node| node.certificate.as_ref().is_some_and(|c| c.revoked_at_ms.is_some());
        let stands = !revoked(old) || revoked(new) || old.enrolled_with != new.enrolled_with;
        found.expect(stands, InvariantId::RevokedStands, || format!("node {}", old.name));
    }
    for old in before.servers() {
        let Some(new) = after.server(old.id) else { continue };
        let (old, new) = (&old.certificate, &new.certificate);
        let same = old.fingerprint == new.fingerprint && old.generation == new.generation;
        let rises = same || old.fingerprint != new.fingerprint && old.generation < new.generation;
        found.expect(rises, InvariantId::CertificateRises, || format!("server with {}", new.fingerprint));
    }
    let epochs = [before, after].map(|state| state.cluster().map_or(0, |cluster| cluster.trust_epoch));
    found.expect(epochs[0] <= epochs[1], InvariantId::TrustRises, || format!("{epochs:?}"));
    for old in before.join_tokens().filter(|token| token.used.is_some()) {
        let same = after.join_token(&old.id).is_none_or(|new| new.used == old.used);
        found.expect(same, InvariantId::TokenUseStands, || format!("join token {}", old.id));
    }
    moves::check_later(before, after, &mut found);
    found.0
}

struct Found(Vec<Violation>);

impl Found {
    fn expect(&mut self, holds: bool, id: InvariantId, detail: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation { id, detail: detail() });
        }
    }
}

fn check_identity(state: &State, found: &mut Found) {
    let (mut names, mut fingerprints) = (BTreeSet::new(), BTreeSet::new());
    for server in state.servers() {
        found.expect(names.insert(("server", server.name.as_str())), InvariantId::NamesUnique, || server.name.clone());
        let unique = fingerprints.insert(server.certificate.fingerprint.as_str());
        found.expect(unique, InvariantId::FingerprintsUnique, || format!("server {}", server.name));
    }
    for node in state.nodes() {
        found.expect(names.insert(("node", node.name.as_str())), InvariantId::NamesUnique, || node.name.clone());
        let Some(certificate) = &node.certificate else { continue };
        let previous = certificate.previous.as_ref().map(|p| p.fingerprint.as_str());
        for fingerprint in std::iter::once(certificate.fingerprint.as_str()).chain(previous) {
            let unique = fingerprints.insert(fingerprint);
            found.expect(unique, InvariantId::FingerprintsUnique, || format!("node {}", node.name));
        }
    }
    for workload in state.workloads() {
        let unique = names.insert((workload.kind.as_str(), workload.name.as_str()));
        found.expect(unique, InvariantId::NamesUnique, || workload.name.clone());
    }
    if let Some(cluster) = state.cluster() {
        let last = state.servers().last().map(|server| server.id);
        let left = last.is_some_and(|last| last <= cluster.last_server_id);
        found.expect(left, InvariantId::ServerLeft, || format!("{} servers", state.servers().count()));
    }
}

fn check_nodes(state: &State, found: &mut Found) {
    for node in state.nodes() {
        let at = || format!("node {}", node.name);
        let online = node.connection == Connection::Online;
        found.expect(!online || node.session.is_some(), InvariantId::OnlineHasSession, at);
        let pending = node.connection == Connection::Pending;
        found.expect(pending == (node.last_epoch.0 == 0), InvariantId::PendingNeverConnected, at);
        if let Some(session) = &node.session {
            found.expect(session.epoch <= node.last_epoch, InvariantId::EpochBounded, at);
            let valid = node.certificate.as_ref().is_some_and(|c| c.revoked_at_ms.is_none());
            found.expect(valid, InvariantId::SessionHasCertificate, at);
        }
        let events = state.node_events(&node.id);
        found.expect(events.is_sorted_by_key(|event| event.at_ms), InvariantId::OrderedInTime, at);
        let mut ports = BTreeSet::new();
        let unique = state.placed_on(&node.id).flat_map(host_ports).all(|port| ports.insert(port));
        found.expect(unique, InvariantId::HostPortsUnique, at);
    }
    found.expect(state.audit().is_sorted_by_key(|r| r.at_ms), InvariantId::OrderedInTime, || "audit".into());
}

fn check_workloads(state: &State, found: &mut Found) {
    for workload in state.workloads() {
        let at = || format!("workload {}", workload.name);
        found.expect(!workload.deleting || workload.placement.is_some(), InvariantId::DeletingIsPlaced, at);
        let observed = workload.status.as_ref().map(|status| status.observed_generation);
        let granted = workload.placement.as_ref().map(|placement| placement.generation);
        let bounded = granted.into_iter().chain(observed).all(|generation| generation <= workload.last_generation);
        found.expect(bounded, InvariantId::GenerationBounded, at);
        let exists = workload.placement.as_ref().is_none_or(|placement| state.node(&placement.node).is_some());
        found.expect(exists, InvariantId::PlacedNodeExists, at);
    }
}

fn check_tokens(state: &State, found: &mut Found) {
    let mut spent = BTreeSet::new();
    for node in state.nodes() {
        let Some(token) = &node.enrolled_with else { continue };
        let recorded = state.join_token(token).is_none_or(|t| t.used.as_ref().is_some_and(|u| u.node == node.id));
        let once = spent.insert(token.clone()) && recorded;
        found.expect(once, InvariantId::TokenSpentOnce, || format!("join token {token}"));
    }
    let left = state.cluster().is_none() || state.api_tokens().any(|token| token.is_lasting_root());
    found.expect(left, InvariantId::RootTokenLeft, || "no lasting root token".into());
}

fn check_bound_tokens(state: &State, found: &mut Found) {
    for token in state.join_tokens() {
        let (Some(bound), Some(used)) = (&token.bound_node, &token.used) else { continue };
        found.expect(used.node == *bound, InvariantId::TokenBound, || format!("join token {}", token.id));
    }
}

fn check_bounds(state: &State, found: &mut Found) {
    let counts = [
        ("servers", state.servers().count(), limits::SERVERS_MAX),
        ("nodes", state.nodes().len(), limits::NODES_MAX),
        ("workloads", state.workloads().len(), limits::WORKLOADS_MAX),
        ("join tokens", state.join_tokens().len(), limits::JOIN_TOKENS_MAX),
        ("API tokens", state.api_tokens().len(), limits::API_TOKENS_MAX),
        ("audit", state.audit().count(), limits::AUDIT_RECORDS_MAX),
        ("replies", state.replies_kept(), limits::REPLIES_MAX),
        ("moves", state.moves().len(), limits::MOVES_KEPT + limits::MOVES_RUNNING_MAX),
        ("drains", state.drains().len(), limits::DRAINS_KEPT + limits::NODES_MAX),
    ];
    for (what, count, max) in counts {
        found.expect(count <= max, InvariantId::Bounded, || format!("{count} {what}"));
    }
    for node in state.nodes() {
        let events = state.node_events(&node.id).len();
        let bounded = events <= limits::NODE_EVENTS_MAX && node.labels.len() <= limits::LABELS_MAX;
        found.expect(bounded, InvariantId::Bounded, || format!("node {}", node.name));
    }
    for workload in state.workloads() {
        let bounded =
            workload.rejections.len() <= limits::REJECTIONS_KEPT && workload.labels.len() <= limits::LABELS_MAX;
        found.expect(bounded, InvariantId::Bounded, || format!("workload {}", workload.name));
    }
}

fn check_revisions(state: &State, found: &mut Found) {
    let servers = state.servers().map(|server| server.revision);
    let nodes = state.nodes().map(|node| node.revision);
    let workloads = state.workloads().map(|workload| workload.revision);
    let join_tokens = state.join_tokens().map(|token| token.revision);
    let api_tokens = state.api_tokens().map(|token| token.revision);
    let moves = state.moves().map(|mv| mv.revision);
    let drains = state.drains().map(|drain| drain.revision);
    let newest =
        servers.chain(moves).chain(drains).chain(nodes).chain(workloads).chain(join_tokens).chain(api_tokens).max();
    let bounded = newest.is_none_or(|newest| newest <= state.revision());
    found.expect(bounded, InvariantId::RevisionBounded, || format!("{newest:?} above {}", state.revision()));
}
