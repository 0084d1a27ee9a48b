//! Who looks on while an agent holds its sessions, to measure it. Nothing depends on what a witness does, and it is called
//! between two awaits: it must be quick.

/// Told what becomes of the sessions of one agent.
pub trait Witness: Send + Sync {
    /// A server has let the agent in.
    fn opened(&self, server: &str);
    /// A heartbeat is about to be sent. Sequences begin at 1 in each session.
    fn sent(&self, sequence: u64);
    /// The server has acknowledged a heartbeat.
    fn acknowledged(&self, sequence: u64);
    /// The session has ended.
    fn ended(&self);
}
