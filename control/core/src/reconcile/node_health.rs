//! Who is silent, and who is back. Edges only; a new leader gives each node one full fresh timeout.
//!
//! When more than half of the online nodes have been silent for half a timeout, the leader suspects itself first: it
//! says so, and sets one node offline at a time, slowly.
//!
//! The reason says what kind of silence it was, as far as it can be told from here: a connection that ended (a process that
//! died, a machine that was switched off in order), one that answered no more (a machine that stands still, a network that
//! swallows), one that is open while no heartbeat comes (an agent that hangs), or none at all under this leader.

use super::{Decision, Heard, Settings, wake};
use crate::command::{Command, TransitionNode};
use crate::model::{Connection, Node, Session};
use crate::planted::planted;
use crate::state::State;

pub(super) fn decide(state: &State, heard: &Heard, settings: &Settings, now_ms: u64, decision: &mut Decision) {
    let timeout_ms = settings.heartbeat_timeout_ms;
    let (mut online, mut silent) = (0usize, 0usize);
    let mut due = Vec::new();
    for node in state.nodes() {
        let Some(session) = &node.session else { continue };
        let last = heard.nodes.get(&node.id);
        match node.connection {
            Connection::Online => {
                // Of whatever session: one that has just been opened isn't heard yet, and whoever opened it was alive then.
                let last_ms = last.map_or(0, |last| last.at_ms).max(heard.leader_since_ms);
                let silence_ms = now_ms.saturating_sub(last_ms);
                online += 1;
                silent += usize::from(silence_ms > timeout_ms / 2);
                if silence_ms >= timeout_ms {
                    due.push((last_ms, node, session));
                } else {
                    wake(decision, last_ms.saturating_add(timeout_ms));
                }
            }
            Connection::Offline => {
                let heard_ms = last.filter(|last| last.epoch == session.epoch).map(|last| last.at_ms);
                if heard_ms.is_some_and(|heard_ms| now_ms.saturating_sub(heard_ms) < timeout_ms) {
                    decision.reasons.push(format!("node {} is heard again", node.name));
                    decision.commands.push(transition(node, session, Connection::Online, "heartbeats came back"));
                }
            }
            Connection::Pending => {}
        }
    }
    due.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id))); // The longest silent first; ties by id.
    let braked = !planted("mass-down-brake-missing") && silent * 2 > online && silent >= settings.brake_nodes_min;
    let next_ms = heard.last_braked_ms.map_or(0, |last| last.saturating_add(settings.brake_interval_ms));
    if !due.is_empty() && (braked || now_ms < next_ms) {
        decision.suspects_itself = true;
        decision.reasons.push(format!(
            "{silent} of {online} online nodes are silent: the fault may be this leader's own, so nodes go offline one \
             at a time, every {} ms",
            settings.brake_interval_ms
        ));
        if now_ms < next_ms {
            wake(decision, next_ms);
            return;
        }
        if due.len() > 1 {
            wake(decision, now_ms.saturating_add(settings.brake_interval_ms));
        }
        due.truncate(1);
    }
    for (last_ms, node, session) in due {
        let reason = silence(heard, node, session, last_ms, now_ms);
        decision.reasons.push(format!("node {}: {reason}", node.name));
        decision.commands.push(transition(node, session, Connection::Offline, &reason));
    }
}

/// Why a node is taken for gone, for people.
fn silence(heard: &Heard, node: &Node, session: &Session, last_ms: u64, now_ms: u64) -> String {
    let seconds = |ms: u64| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    let silent = seconds(now_ms.saturating_sub(last_ms));
    let was_heard = heard.nodes.get(&node.id).is_some_and(|heard| heard.epoch == session.epoch);
    let cut = heard.cuts.get(&node.id).filter(|cut| cut.epoch == session.epoch);
    match cut {
        Some(cut) => {
            let ago = seconds(now_ms.saturating_sub(cut.at_ms));
            let how = if cut.unanswered { "answered no more and was given up" } else { "broke" };
            format!("no heartbeat for {silent}; its connection {how} {ago} ago")
        }
        None if was_heard => {
            format!("no heartbeat for {silent}, though its connection is open: its agent stands still")
        }
        None if last_ms > heard.leader_since_ms => format!("no heartbeat in the {silent} since it came back"),
        None => format!("it has not come back in the {silent} since this server leads"),
    }
}

fn transition(node: &Node, session: &Session, to: Connection, reason: &str) -> Command {
    TransitionNode { node: node.id.clone(), epoch: session.epoch, to, reason: reason.to_owned() }.into()
}
