//! Placement: where a workload is, where it may be, and the labels that say so.

use std::collections::BTreeMap;

use cara_core::command::ApplyWorkload;
use cara_core::model::{Workload, WorkloadKind};
use cara_core::{Command, Purpose, Rejected, Reply, Revision, State, unfit};
use cara_proto::rest::{PlacementReport, Rejection};

use super::rest::Asker;
use super::{Api, find};
use crate::error::ApiError;
use crate::wire::node_name;

/// How often a change is tried on a workload that changes meanwhile: its agent reports a few times while it starts.
const ATTEMPTS_MAX: u32 = 5;

impl Api {
    /// Where a workload is and which nodes could take it now.
    ///
    /// # Errors
    /// 404 when it isn't there.
    pub fn placement(&self, kind: WorkloadKind, name: &str) -> Result<PlacementReport, ApiError> {
        self.read_local(|state| find::workload(state, kind, name).map(|workload| report(state, workload)))
    }

    /// Replaces the labels that a node must have. Moves and restarts nothing: they count when it is placed next.
    ///
    /// # Errors
    /// 404 when it isn't there, 409 while it is being moved or when somebody else changed it meanwhile.
    pub async fn set_selector(
        &self,
        asker: &Asker,
        kind: WorkloadKind,
        name: &str,
        selector: BTreeMap<String, String>,
    ) -> Result<PlacementReport, ApiError> {
        let mut proposed = self.propose_selector(asker, kind, name, &selector).await;
        for _ in 1..ATTEMPTS_MAX {
            // Whoever has set no condition doesn't care that its agent has reported meanwhile.
            if asker.if_match.is_some() || !is_outdated(&proposed) {
                break;
            }
            proposed = self.propose_selector(asker, kind, name, &selector).await;
        }
        proposed.map_err(|error| match error {
            ApiError::Rejected(Rejected::InvalidField { field, problem }) => {
                Rejected::InvalidField { field: field.replace("spec.selector", "node_selector"), problem }.into()
            }
            other => other,
        })?;
        self.placement(kind, name)
    }

    /// On the workload as it is now: its other fields must not go back to what they were when it was read.
    async fn propose_selector(
        &self,
        asker: &Asker,
        kind: WorkloadKind,
        name: &str,
        selector: &BTreeMap<String, String>,
    ) -> Result<Reply, ApiError> {
        let command = self.read_local(|state| {
            let workload = find::workload(state, kind, name)?;
            let mut spec = workload.spec.clone();
            spec.selector.clone_from(selector);
            Ok::<_, ApiError>(ApplyWorkload {
                uid: workload.uid.clone(),
                kind,
                name: name.to_owned(),
                labels: workload.labels.clone(),
                annotations: workload.annotations.clone(),
                spec,
                node: None,
                expect_revision: Some(asker.if_match.map_or(workload.revision, Revision)),
            })
        })?;
        self.propose(&asker.actor, &asker.request_id, Command::ApplyWorkload(command)).await
    }
}

fn is_outdated(proposed: &Result<Reply, ApiError>) -> bool {
    matches!(proposed, Err(ApiError::Rejected(Rejected::RevisionMismatch { .. })))
}

fn report(state: &State, workload: &Workload) -> PlacementReport {
    let placement = workload.placement.as_ref();
    let own = placement.map(|placement| &placement.node);
    // What it has on its own node is booked there already; nothing of it has to fit in once more.
    let mut at_home = workload.clone();
    at_home.explicit_node = None;
    at_home.spec.services.iter_mut().for_each(|service| service.resources = None);
    let (mut eligible_node_ids, mut rejected) = (Vec::new(), Vec::new());
    for node in state.nodes() {
        let unfit = match own {
            Some(own) if *own == node.id => unfit(state, node, &at_home, Purpose::Place),
            Some(own) => unfit(state, node, workload, Purpose::Move { source: own }),
            None => unfit(state, node, workload, Purpose::Place),
        };
        match unfit {
            None => eligible_node_ids.push(node.id.to_string()),
            Some(unfit) => rejected.push(Rejection { node: node.name.clone(), reason: unfit.to_string() }),
        }
    }
    PlacementReport {
        node_id: own.map(ToString::to_string),
        node_name: own.map(|own| node_name(state, own)),
        auto_placed: placement.is_some_and(|placement| placement.auto_placed),
        node_selector: workload.spec.selector.clone(),
        eligible_node_ids,
        rejected,
    }
}
