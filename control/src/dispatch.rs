//! Tells sessions what concerns them: a desired set that may have changed, an identity that ended.
//!
//! Runs on every server and finds sessions only on the leader. It may wake too often and never too seldom: the session
//! sends the whole desired set, whatever woke it.

use cara_core::{Event, MoveId, NodeId, State};

use crate::api::SharedApi;

/// Events looked at in one go.
const BATCH: usize = 1024;

/// Runs until the server stops.
pub async fn run(api: SharedApi) {
    let mut changed = api.changed.clone();
    let mut after = api.raft.with_state(|machine| machine.applied());
    while changed.changed().await.is_ok() {
        loop {
            let found = api.raft.with_state(|machine| {
                let events = machine.events_after(after, BATCH)?;
                let state = machine.state();
                Ok::<_, crate::machine::Compacted>(
                    events.iter().map(|e| (e.revision, news(state, &e.event))).collect::<Vec<_>>(),
                )
            });
            match found {
                Ok(events) if events.is_empty() => break,
                Ok(events) => {
                    for (revision, news) in events {
                        after = revision;
                        tell(&api, news);
                    }
                }
                Err(compacted) => {
                    after = compacted.oldest;
                    api.sessions.wake_all();
                }
            }
        }
    }
}

/// What an event means for a session.
enum News {
    Nothing,
    Desired(Vec<NodeId>),
    Ended(NodeId, &'static str, &'static str),
    MoveOver(MoveId, Vec<NodeId>),
}

fn news(state: &State, event: &Event) -> News {
    match event {
        Event::WorkloadPlaced { uid, node, .. } | Event::WorkloadUnplaced { uid, node, .. } => {
            let now = state.workload(uid).and_then(|w| w.placement.as_ref()).map(|p| p.node.clone());
            News::Desired(now.into_iter().chain([node.clone()]).collect())
        }
        Event::WorkloadUpdated { uid, .. } | Event::WorkloadDeletionStarted { uid, .. } => News::Desired(
            state.workload(uid).and_then(|w| w.placement.as_ref()).map(|p| p.node.clone()).into_iter().collect(),
        ),
        // Sessions tell their agents whom to trust.
        Event::CaRotationStarted { .. } | Event::CaTakenOver { .. } | Event::CaRotated { .. } => {
            News::Desired(state.nodes().map(|node| node.id.clone()).collect())
        }
        // Its node is not in the event: with `force` it may have been anywhere. Rare; every session looks once.
        Event::WorkloadDeleted { .. } => News::Desired(state.nodes().map(|node| node.id.clone()).collect()),
        // What was to be removed may be gone: the agent need not remember it.
        Event::VolumeRemovalAsked { node, .. } | Event::NodeUpdated { node, .. } => News::Desired(vec![node.clone()]),
        Event::NodeDeleted { node, .. } => News::Ended(node.clone(), "deleted", "the node was deleted"),
        Event::NodeCertificateRevoked { node, .. } => {
            News::Ended(node.clone(), "revoked", "the node's certificate was revoked")
        }
        Event::NodeEnrolled { node, .. } => News::Ended(node.clone(), "replaced", "the node was enrolled again"),
        Event::NodeLost { node, .. } => News::Ended(node.clone(), "lost", "the node was declared lost"),
        Event::MoveStarted { id, .. } | Event::MoveAdvanced { id, .. } => {
            News::Desired(state.get_move(id).map(|mv| vec![mv.source.clone(), mv.target.clone()]).unwrap_or_default())
        }
        Event::MoveFinished { id, source, target, .. } => {
            News::MoveOver(id.clone(), vec![source.clone(), target.clone()])
        }
        _ => News::Nothing,
    }
}

fn tell(api: &SharedApi, news: News) {
    match news {
        News::Nothing => {}
        News::Desired(nodes) => nodes.iter().for_each(|node| api.sessions.wake(node)),
        News::Ended(node, code, message) => api.sessions.end(&node, code, message),
        News::MoveOver(id, ends) => {
            api.transfers.forget(&id);
            ends.iter().for_each(|node| api.sessions.wake(node));
        }
    }
}
