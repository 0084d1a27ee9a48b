//! What parent and workers say to each other, one JSON object a line.

use serde::{Deserialize, Serialize};

/// The first line to a worker.
#[derive(Serialize, Deserialize)]
pub struct Setup {
    /// The first two numbers of its source addresses follow from it.
    pub worker: u8,
    /// Agents that enrol at a time.
    pub at_once: usize,
    pub agents: Vec<Seat>,
}

/// One agent.
#[derive(Serialize, Deserialize)]
pub struct Seat {
    pub name: String,
    pub token: String,
}

/// The lines after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// End this agent and start it again, as after a reboot.
    Restart(usize),
}

/// What happened since the last tick, and how it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Agents that have an identity.
    pub enrolled: u64,
    /// Agents with a session in which a heartbeat was acknowledged.
    pub online: u64,
    /// Sessions that became so, ever.
    pub came_online: u64,
    /// Heartbeats sent, acknowledged, acknowledged late and never acknowledged, since the last tick.
    pub sent: u64,
    pub acknowledged: u64,
    pub late: u64,
    pub missed: u64,
    /// Microseconds and counts, since the last tick.
    pub round_trips: Vec<(u64, u64)>,
    /// From the restart of an agent to its session, likewise.
    pub returns: Vec<(u64, u64)>,
    /// Agents that have ended by themselves, and why the last one did.
    pub failed: u64,
    pub failure: String,
}
