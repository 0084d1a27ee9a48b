//! Events as a watch shows them.

use cara_core::model::WorkloadKind;
use cara_core::{Event, ObjectKind, State};
use cara_proto::rest::WatchEvent;

use super::rfc3339;
use crate::machine::Logged;

/// One event for the API.
pub fn watch_event(state: &State, logged: &Logged) -> WatchEvent {
    let object = logged.event.object();
    WatchEvent {
        revision: logged.revision,
        at: rfc3339(logged.at_ms),
        event: logged.event.name().into(),
        kind: match (object.kind, workload_kind(&logged.event)) {
            (_, Some(kind)) => kind.as_str(),
            (ObjectKind::Cluster, None) => "Cluster",
            (ObjectKind::Server, None) => "Server",
            (ObjectKind::Node, None) => "Node",
            (ObjectKind::JoinToken, None) => "JoinToken",
            (ObjectKind::ApiToken, None) => "ApiToken",
            (ObjectKind::Workload, None) => "Workload",
            (ObjectKind::Move, None) => "Move",
            (ObjectKind::Drain, None) => "Drain",
        }
        .into(),
        name: object.name,
        message: message(state, &logged.event),
    }
}

fn workload_kind(event: &Event) -> Option<WorkloadKind> {
    match event {
        Event::WorkloadCreated { kind, .. }
        | Event::WorkloadUpdated { kind, .. }
        | Event::WorkloadPlaced { kind, .. }
        | Event::WorkloadUnplaceable { kind, .. }
        | Event::WorkloadUnplaced { kind, .. }
        | Event::WorkloadStatusChanged { kind, .. }
        | Event::WorkloadDeletionStarted { kind, .. }
        | Event::WorkloadDeleted { kind, .. } => Some(*kind),
        _ => None,
    }
}

/// What the event's own name doesn't say.
fn message(state: &State, event: &Event) -> String {
    let node_name = |id| state.node(id).map_or_else(|| id.to_string(), |node| node.name.clone());
    match event {
        Event::NodeConnectionChanged { from, to, reason, .. } => format!("{from} to {to}: {reason}"),
        Event::NodeCloneRefused { hostname, .. } => format!("machine {hostname}"),
        Event::NodeSessionOpened { epoch, .. } => format!("session {epoch}"),
        Event::NodeSessionClosed { epoch, .. } => format!("session {epoch}"),
        Event::WorkloadPlaced { node, generation, .. } => {
            format!("on node {}, generation {generation}", node_name(node))
        }
        Event::WorkloadUnplaced { node, reason, .. } => format!("from node {}: {reason}", node_name(node)),
        Event::WorkloadStatusChanged { uid, .. } => {
            state.workload(uid).map(|workload| workload.phase().to_owned()).unwrap_or_default()
        }
        Event::VolumeRemovalAsked { volume, .. } => format!("volume {volume}"),
        Event::MoveStarted { id, .. } | Event::MoveUpdated { id, .. } => id.to_string(),
        Event::MoveAdvanced { id, phase, .. } => format!("{id} is at {phase}"),
        Event::MoveFinished { id, status, .. } => format!("{id} is over: {status}"),
        Event::DrainStarted { id, .. } | Event::DrainAdvanced { id, .. } => id.to_string(),
        Event::DrainFinished { id, status, .. } => format!("{id} is over: {status}"),
        _ => String::new(),
    }
}
