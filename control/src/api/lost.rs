//! A node that an operator gives up.

use cara_core::command::LoseNode;
use cara_core::model::{Connection, Workload};
use cara_core::{Command, Event, NodeId, Rejected, State, WorkloadUid};
use cara_proto::rest::{GivenUp, LostRequest, LostView};
use http::StatusCode;

use super::rest::Asker;
use super::{Api, find};
use crate::error::ApiError;
use crate::wire::{kind_word, node_name};

impl Api {
    /// Declares that a node never comes back with what it has.
    ///
    /// # Errors
    /// 409 while it is online, and without `confirm`: then the detail says what would be given up.
    pub async fn lose_node(&self, asker: &Asker, name: &str, request: &LostRequest) -> Result<LostView, ApiError> {
        let node = self.read_local(|state| find::node(state, name).map(|node| node.id.clone()))?;
        if !request.confirm {
            return Err(self.read_local(|state| unconfirmed(state, &node)));
        }
        let command = Command::LoseNode(LoseNode { node: node.clone(), reason: request.reason.clone() });
        let reply = self.propose(&asker.actor, &asker.request_id, command).await?;
        // From the entry's own events, so that a retry is told the same.
        let events = self.events_of(reply.revision.0);
        Ok(self.read_local(|state| {
            let mut view = LostView { node: node_name(state, &node), ..LostView::default() };
            for event in &events {
                match event {
                    Event::WorkloadUnplaced { uid, .. } => view.given_up.extend(stateful(state, uid)),
                    Event::MoveFinished { id, .. } | Event::MoveAdvanced { id, .. } => view.moves.push(id.to_string()),
                    _ => {}
                }
            }
            view.moves.extend(state.moves_on(&node).map(|mv| mv.id.to_string()));
            view.moves.sort();
            view.moves.dedup();
            view
        }))
    }
}

fn stateful(state: &State, uid: &WorkloadUid) -> Option<GivenUp> {
    state.workload(uid).filter(|workload| workload.is_stateful()).map(given_up)
}

fn given_up(workload: &Workload) -> GivenUp {
    GivenUp {
        kind: kind_word(workload.kind).into(),
        name: workload.name.clone(),
        volumes: workload.spec.managed_volumes().map(str::to_owned).collect(),
    }
}

/// Says what is at stake, for somebody who has not seen it yet.
fn unconfirmed(state: &State, id: &NodeId) -> ApiError {
    let Some(node) = state.node(id) else { return Rejected::UnknownNode { node: id.to_string() }.into() };
    if node.connection == Connection::Online {
        return Rejected::NodeOnline { node: node.name.clone() }.into();
    }
    // What a move takes away from here without needing it any more is not lost.
    let goes_on = |workload: &Workload| {
        use cara_core::model::MovePhase::{Place, Rollback, Verify};
        let mv = state.running_move(&workload.uid).filter(|mv| mv.source == *id);
        mv.is_some_and(|mv| matches!(mv.phase, Place | Verify) || mv.phase == Rollback && mv.target_may_run())
    };
    let (stateful, stateless): (Vec<_>, Vec<_>) =
        state.placed_on(id).filter(|workload| !goes_on(workload)).partition(|workload| workload.is_stateful());
    let described = |workload: &&Workload| {
        let volumes = workload.spec.managed_volumes().collect::<Vec<_>>().join(", ");
        format!("{} {} (volumes: {volumes})", kind_word(workload.kind), workload.name)
    };
    let lost = stateful.iter().map(described).collect::<Vec<_>>().join("; ");
    let lost = if lost.is_empty() { "no data".to_owned() } else { format!("the data of {lost}") };
    ApiError::Bad {
        status: StatusCode::CONFLICT,
        code: "confirmation-needed",
        detail: format!(
            "to declare node {0} lost gives up {lost}; {1} workloads without state are placed elsewhere. To do it: \
             caractrl nodes lost {0} --confirm",
            node.name,
            stateless.len()
        ),
        hint: "bring the node back if you can; if not, repeat it with confirm",
    }
}
