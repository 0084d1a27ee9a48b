//! What the leader does by itself: compare the whole state with what it heard, ask for commands.
//!
//! Pure and level-triggered: no hints, any time, and a fixed point: run again after its own commands were applied, it
//! asks for nothing. Each command says what it assumed, and apply refuses it when that has passed.

mod ca;
mod drains;
mod expiry;
mod feature_level;
mod lost;
mod moves;
mod node_health;
mod pending;
mod placement;

use crate::command::Command;
use crate::id::{Epoch, MoveId, NodeId};
use crate::model::{Connection, Move, MovePhase};
use crate::state::State;
use std::collections::BTreeMap;

/// What the leader heard; soft, in its memory only. Times are of its own monotonic clock, in ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// When this leader began to lead: nobody is judged by silence before it.
    pub leader_since_ms: u64,
    /// The last sign of life of each node. Opening a session counts as one: note it when `OpenSession` was applied.
    pub nodes: BTreeMap<NodeId, Heartbeat>,
    /// When this leader first saw each offline node offline; kept by `observe`.
    pub offline_since_ms: BTreeMap<NodeId, u64>,
    /// The leader's wall clock in ms since 1970, for `expireAt` only; 0 = unknown, nothing expires.
    pub wall_ms: u64,
    /// When this leader last proposed to set a node offline while it suspected itself: note it when a decision with
    /// `suspects_itself` has such a command. The brake's pace counts from it.
    pub last_braked_ms: Option<u64>,
    /// How the connection of a node's session broke, if it did and no newer session has begun.
    pub cuts: BTreeMap<NodeId, Cut>,
    /// How long this leader has seen each running move where it is; kept by `observe`.
    pub moves: BTreeMap<MoveId, Watched>,
}

impl Heard {
    /// Notes who is offline since when and which move stands where since when, and forgets what is gone. Call it before
    /// each `reconcile`.
    pub fn observe(&mut self, state: &State, now_mono_ms: u64) {
        self.nodes.retain(|id, _| state.node(id).is_some());
        let offline = |id: &NodeId| state.node(id).is_some_and(|node| node.connection == Connection::Offline);
        self.offline_since_ms.retain(|id, _| offline(id));
        for node in state.nodes().filter(|node| offline(&node.id)) {
            self.offline_since_ms.entry(node.id.clone()).or_insert(now_mono_ms);
        }
        self.moves.retain(|id, _| state.get_move(id).is_some_and(Move::is_running));
        for mv in state.running_moves() {
            let phase_since_ms =
                self.moves.get(&mv.id).filter(|seen| seen.phase == mv.phase).map_or(now_mono_ms, |s| s.phase_since_ms);
            let fresh = Watched { phase: mv.phase, phase_since_ms, step: mv.step_count, step_since_ms: now_mono_ms };
            let seen = self.moves.entry(mv.id.clone()).or_insert(fresh);
            if !seen.is_of(mv) {
                *seen = fresh;
            }
        }
    }
}

/// A connection that broke without a goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The session that it carried.
    pub epoch: Epoch,
    /// When, on the leader's monotonic clock.
    pub at_ms: u64,
    /// True when the other end had answered nothing for a while: it stands still, or the network swallows what is sent.
    /// False when it ended by itself, as when a process dies.
    pub unanswered: bool,
}

/// Since when a move stands where it stands, on the leader's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its phase.
    pub phase: MovePhase,
    /// Since when it is in this phase.
    pub phase_since_ms: u64,
    /// Its step count.
    pub step: u32,
    /// Since when it is at this step.
    pub step_since_ms: u64,
}

impl Watched {
    fn is_of(&self, mv: &Move) -> bool {
        self.phase == mv.phase && self.step == mv.step_count
    }
}

/// The last sign of life of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The session that it came on; 0 when it asks for one.
    pub epoch: Epoch,
    /// When, on the leader's monotonic clock.
    pub at_ms: u64,
}

/// How patient the leader is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Silence until a node is offline. 3 heartbeat intervals.
    pub heartbeat_timeout_ms: u64,
    /// How long a node may be offline until its stateless workloads are placed elsewhere.
    pub lost_grace_ms: u64,
    /// Nodes due at once that make the leader suspect itself: more than half of those online, and at least this many.
    pub brake_nodes_min: usize,
    /// While it suspects itself it sets one node offline in this time.
    pub brake_interval_ms: u64,
    /// How long a node may wait for its first session until people are told that it has never connected.
    pub pending_stale_ms: u64,
    /// Placements, and deletions, asked for in one pass; the rest follows in the next.
    pub commands_per_pass_max: usize,
    /// The highest feature level that this leader supports.
    pub feature_level_max: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            heartbeat_timeout_ms: 45_000,
            lost_grace_ms: 180_000,
            brake_nodes_min: 3,
            brake_interval_ms: 5_000,
            pending_stale_ms: 300_000,
            commands_per_pass_max: 256,
            feature_level_max: crate::FEATURE_LEVEL,
        }
    }
}

/// What the leader should do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// To propose, in this order.
    pub commands: Vec<Command>,
    /// When to look again at the latest, on the monotonic clock; `None` = when something changes.
    pub wake_at: Option<u64>,
    /// Why, for the log and for people.
    pub reasons: Vec<String>,
    /// True while more than half of the nodes are silent: check the quorum first, the fault may be the leader's own.
    pub suspects_itself: bool,
    /// Nodes that have waited too long for their first session, each to be told once.
    pub never_connected: Vec<NodeId>,
}

/// Compares state and ears, and decides. `now_mono_ms` is the leader's monotonic clock.
pub fn reconcile(state: &State, heard: &Heard, settings: &Settings, now_mono_ms: u64) -> Decision {
    let mut decision = Decision::default();
    feature_level::decide(state, settings, &mut decision);
    ca::decide(state, &mut decision);
    node_health::decide(state, heard, settings, now_mono_ms, &mut decision);
    pending::decide(state, heard, settings, now_mono_ms, &mut decision);
    placement::decide(state, settings, &mut decision);
    lost::decide(state, heard, settings, now_mono_ms, &mut decision);
    expiry::decide(state, heard, settings, now_mono_ms, &mut decision);
    moves::decide(state, heard, now_mono_ms, &mut decision);
    drains::decide(state, &mut decision);
    decision
}

/// Looks again at this time, or earlier.
fn wake(decision: &mut Decision, at_ms: u64) {
    decision.wake_at = Some(decision.wake_at.map_or(at_ms, |earlier| earlier.min(at_ms)));
}
