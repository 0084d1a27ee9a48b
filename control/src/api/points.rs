//! Chaos points of what was committed: one place for all of them, because every command takes the same road.
//!
//! Reached on the proposing leader, after the command was applied there and before anybody is told.

use cara_core::command::TransitionNode;
use cara_core::model::{Connection, MovePhase};
use cara_core::{Command, Event, MoveId, NodeId, Reply};
use cara_env::point;

use super::Api;

/// Tells the simulator what was committed, if it changed anything.
pub async fn committed(api: &Api, command: &Command, reply: &Reply) {
    if !reply.changed {
        return;
    }
    let at = reply.revision.0;
    let node = |id: &NodeId| format!("node={} {}", api.node_name(id), api.term_and(at));
    match command {
        Command::TransitionNode(TransitionNode { node: id, to: Connection::Offline, .. }) => {
            point("node.offline", || node(id)).await;
        }
        Command::TransitionNode(TransitionNode { node: id, .. }) => point("node.online", || node(id)).await,
        Command::OpenSession(opened) => point("session.opened", || node(&opened.node)).await,
        Command::CloseSession(closed) => point("node.left", || node(&closed.node)).await,
        Command::RenewCertificate(renewed) => point("cert.renewed", || node(&renewed.node)).await,
        Command::RenewServer(renewed) => {
            point("leaf.recorded", || format!("server={} {}", renewed.server, api.term_and(at))).await;
        }
        Command::TrustCa(trust) => {
            point("bundle.recorded", || format!("server={} node={} {}", trust.server, trust.node, api.term_and(at)))
                .await;
        }
        Command::RotateCa(_) | Command::AdvanceCa(_) => {
            let phase = api.read_local(|state| {
                let rotation = state.cluster().and_then(|cluster| cluster.rotation.as_ref());
                rotation.map_or("stable", |rotation| rotation.phase.as_str())
            });
            point("ca.phase", || format!("phase={phase} {}", api.term_and(at))).await;
        }
        Command::RotateSealingKey(_) => point("seal.announced", || api.term_and(at)).await,
        Command::HoldSealingKey(held) => {
            point("seal.held", || format!("server={} {}", held.server, api.term_and(at))).await;
        }
        Command::Reseal(_) => point("seal.resealed", || api.term_and(at)).await,
        Command::EnrollNode(enrolled) => {
            point("token.spent", || format!("by={} {}", enrolled.name, api.term_and(at))).await;
        }
        Command::ReenrollNode(back) => {
            point("token.spent", || format!("by={} {}", api.node_name(&back.node), api.term_and(at))).await;
        }
        Command::MintReenrollToken(minted) => {
            point("token.minted", || format!("token={} {}", minted.id, api.term_and(at))).await;
        }
        Command::RevokeCertificate(revoked) => point("cert.revoked", || node(&revoked.node)).await,
        Command::PutServer(put) if put.token_hash.is_some() => {
            point("token.spent", || format!("by={} {}", put.server.name, api.term_and(at))).await;
        }
        Command::MintJoinToken(minted) => {
            point("token.minted", || format!("token={} {}", minted.id, api.term_and(at))).await;
        }
        Command::PutApiToken(put) => {
            point("api_token.made", || format!("token={} {}", put.token.id, api.term_and(at))).await;
        }
        Command::RevokeApiToken(revoked) => {
            point("api_token.revoked", || format!("token={} {}", revoked.id, api.term_and(at))).await;
        }
        Command::ApplyWorkload(applied) => {
            point("workload.applied", || format!("workload={} {}", applied.name, api.term_and(at))).await;
        }
        Command::DeleteWorkload(deleted) => {
            point("workload.deleted", || format!("uid={} {}", deleted.uid, api.term_and(at))).await;
        }
        Command::PlaceWorkload(placed) => {
            point("workload.placed", || format!("uid={} {}", placed.uid, api.term_and(at))).await;
        }
        Command::RevokePlacement(revoked) => {
            point("workload.revoked", || format!("uid={} {}", revoked.uid, api.term_and(at))).await;
        }
        Command::StartMove(_) | Command::CancelMove(_) | Command::StartDrain(_) | Command::AdvanceDrain(_) => {
            moved(api, at, None).await;
        }
        Command::LoseNode(_) => moved(api, at, None).await,
        Command::AdvanceMove(step) => moved(api, at, Some(step.expect_phase)).await,
        _ => {}
    }
}

/// What an entry did to moves, drains and nodes that are given up. A retry or another round of the phase `before` is no
/// new phase.
async fn moved(api: &Api, at: u64, before: Option<MovePhase>) {
    for event in api.events_of(at) {
        match &event {
            Event::MoveStarted { id, .. } => phase(api, at, id, MovePhase::Preflight).await,
            Event::MoveAdvanced { id, phase: now, .. } if before != Some(*now) => phase(api, at, id, *now).await,
            Event::DrainStarted { id, name, .. } => {
                point("drain.started", || format!("drain={id} node={name} {}", api.term_and(at))).await;
            }
            Event::NodeLost { name, .. } => {
                point("node.lost", || format!("node={name} {}", api.term_and(at))).await;
            }
            _ => {}
        }
    }
}

async fn phase(api: &Api, at: u64, id: &MoveId, phase: MovePhase) {
    point("move.phase", || {
        let known = api.read_local(|state| {
            let mv = state.get_move(id)?;
            let shape = if mv.stateful { "stateful" } else { "stateless" };
            Some((shape, mv.source.clone(), mv.target.clone()))
        });
        let (shape, source, target) = known.unwrap_or_default();
        let (source, target) = (api.node_name(&source), api.node_name(&target));
        let at = api.term_and(at);
        format!("move={id} phase={phase} shape={shape} source={source} target={target} {at}")
    })
    .await;
}

impl Api {
    /// A node's name, or its id once it is gone.
    pub(crate) fn node_name(&self, id: &NodeId) -> String {
        self.read_local(|state| state.node(id).map_or_else(|| id.to_string(), |node| node.name.clone()))
    }

    fn term_and(&self, revision: u64) -> String {
        format!("term={} revision={revision}", *self.leading.borrow())
    }
}
