//! The next step of replacing the CA, once nobody would be shut out by it; see `model/ca.rs`.
//!
//! With `force` it goes on without the nodes that hold it back: their certificates are revoked, and they come back by
//! enrolling again. A server is never left behind: without it, what it has acknowledged would count for a majority that it
//! can't be asked about any more. One that is gone is removed first.

use crate::entry::Context;
use crate::event::{Event, ObjectKind};
use crate::feature::Feature;
use crate::model::{CaRotation, Cluster, FormerCa, RotationPhase};
use crate::rejected::Rejected;
use crate::state::State;
use crate::{HeldBack, limits};

/// Takes the next step.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AdvanceCa {
    /// The trust epoch that the step follows.
    #[prost(uint64, tag = "1")]
    pub expect_epoch: u64,
    /// Without the nodes that hold it back.
    #[prost(bool, tag = "2")]
    pub force: bool,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: AdvanceCa) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    let Some(rotation) = cluster.rotation.clone() else { return Err(Rejected::NoCaRotation {}) };
    if cmd.expect_epoch != cluster.trust_epoch {
        let (given, current) = (cmd.expect_epoch.to_string(), cluster.trust_epoch.to_string());
        return Err(Rejected::StaleRotation { given, current });
    }
    let (nodes, servers): (Vec<_>, Vec<_>) = state.held_back().into_iter().partition(|of| of.kind == ObjectKind::Node);
    let hinders = if cmd.force || !servers.is_empty() { &servers } else { &nodes };
    if !hinders.is_empty() {
        return Err(Rejected::CaHeldBack { phase: rotation.phase.to_string(), who: some_names(hinders) });
    }
    let mut events = Vec::new();
    if cmd.force {
        for node in &nodes {
            events.extend(shut_out(state, cx, &node.name)?);
        }
    }
    let next = cluster.ca_number() + 1;
    let cluster = Cluster { trust_epoch: cluster.trust_epoch + 1, ..cluster };
    match rotation.phase {
        RotationPhase::Distribute => {
            let rotation = Some(CaRotation { phase: RotationPhase::Renew, ..rotation });
            state.set_cluster(Cluster { rotation, ..cluster });
            events.insert(0, Event::CaTakenOver { ca: next });
        }
        RotationPhase::Renew => {
            state.set_cluster(replaced(cluster, rotation, next));
            events.insert(0, Event::CaRotated { ca: next });
        }
    }
    Ok(events)
}

/// The cluster with its next CA, and the one before among the former ones.
fn replaced(cluster: Cluster, rotation: CaRotation, ca: u64) -> Cluster {
    let mut former_cas = cluster.former_cas;
    former_cas.insert(0, FormerCa { certificate_pem: cluster.ca_cert_pem, cross_pem: rotation.cross_pem });
    former_cas.truncate(limits::FORMER_CAS_MAX);
    Cluster {
        ca_cert_pem: rotation.certificate_pem,
        ca_key_sealed: rotation.key_sealed,
        ca,
        rotation: None,
        former_cas,
        ..cluster
    }
}

fn shut_out(state: &mut State, cx: &Context, name: &str) -> Result<Vec<Event>, Rejected> {
    let node = state.node_by_name(name).map(|node| node.id.clone());
    let node = node.ok_or_else(|| Rejected::UnknownNode { node: name.to_owned() })?;
    super::revoke_certificate::apply(state, cx, super::RevokeCertificate { node })
}

/// The first few names: the whole list is for who asks how far it is.
fn some_names(all: &[HeldBack]) -> String {
    const NAMED: usize = 5;
    let names: Vec<_> = all.iter().take(NAMED).map(|of| format!("{} {}", of.kind.as_str(), of.name)).collect();
    let more = all.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}
