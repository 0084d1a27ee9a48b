//! What gets replicated: the state machine, as the owner of the domain writes it.

/// A place in the log. Terms and indexes never go back; an index that was committed never changes its term.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Term of the leader that wrote the entry. One leader per term.
    pub term: u64,
    /// Log index, counted from 0. The members that the cluster began with stand at 0.
    pub index: u64,
}

/// What applying one command did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The answer for the one who proposed the command.
    pub reply: Vec<u8>,
    /// The keys that changed and their new values; `None` deletes. Written in one batch with the position, so that a
    /// restart finds exactly what was applied.
    pub writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The stored state can't be read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored state is damaged: {0}")]
pub struct Damaged(pub String);

/// A deterministic machine: the same commands in the same order give the same state on every server.
///
/// The whole state lives in memory and, pair by pair, in the store. What [`StateMachine::apply`] reports as writes must
/// be all that [`StateMachine::load`] needs to build the same state again.
pub trait StateMachine: Send + Sync + 'static {
    /// Applies a committed command. Pure and total: no clock, no randomness, no configuration, no panic; a command that
    /// makes no sense is answered in the reply.
    fn apply(&mut self, at: Position, command: &[u8]) -> Applied;

    /// Replaces everything by these pairs, which come in key order: after a restart and when a snapshot is installed.
    ///
    /// # Errors
    /// The pairs are not what `apply` has written. The server then stops, and says so.
    fn load(&mut self, pairs: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<(), Damaged>;
}
