//! Named chaos points: places in the code that the simulator wants to hear of, and at which it may stop the host.
//!
//! A point has a name of the field's words (`raft.elected`, `enrol.saved`, `session.opened`) and a detail: words of the
//! form `key=value`. Fault schedules are written against these names, so they are an interface: a renamed point is a
//! changed scenario file. Without the feature `chaos` both functions are empty and their arguments are never computed;
//! no production build has that feature, because only the simulator asks for it.
//!
//! All points, by the host that reaches them, with the keys of their detail. A `*` marks those at which a host can't be
//! held.
//!
//! On any server:
//! - `raft.elected` (term): it leads a new term, and nobody in this process knows it yet
//! - `raft.deposed` (term): it leads that term no more
//! - `raft.vote_written` (term): a vote is written, and not synced
//! - `raft.vote_saved` (term): it is synced, and not told
//! - `raft.membership_changed` (index, voters): an entry that changes the members is applied here
//! - `raft.snapshot_built` (index): a snapshot of the own state is complete and synced
//! - `raft.snapshot_received` (chunks): all of a leader's snapshot is here, nothing is installed
//! - `raft.snapshot_written` (index): it is in force on disk, and not synced
//! - `raft.snapshot_installed` (index): it is synced, readers still see the state before
//! - `raft.purged` (index): the log is removed up to here
//! - `server.opened` (fresh): the database is open, `server.json` is not yet marked as used
//! - `join.key_saved`: a new server's key is on disk
//! - `join.sent` (server): its request is about to leave
//! - `join.answered` (ok): the answer is here, or there was none
//! - `join.saved` (server): `server.json` is on disk
//! - `leaf.sent`, `leaf.answered` (server): a server's request for its next certificate, and the answer; nothing is written
//! - `leaf.saved` (server): that certificate is on disk and used for new connections, nobody was told
//! - `bundle.saved` (host, epoch): whom to trust is on disk and in use, nobody was told; on agents as well
//! - `bundle.attested` (server, ca): the leader was told
//! - `seal.pulled` (server): the next sealing key came from another server, nothing is written
//! - `seal.saved` (server): it is on disk, nobody was told
//! - `seal.forgotten` (server): the key before is not on disk any more
//!
//! On the leader:
//! - `leader.proven` (term): a majority agrees that it leads; it begins to act as leader
//! - `reconcile.write` (command): the reconciler is about to propose a command
//! - `brake.on` * (term): it suspects itself, because most nodes are silent
//! - `heartbeat.received` * (node, epoch): a heartbeat has re-armed the node's timer
//! - `session.opened` (node, term, revision): a session's epoch is committed, the agent is not welcomed yet
//! - `session.closed` (node, epoch, reason): a session's stream has ended, for whatever reason
//! - `node.offline`, `node.online` (node, term, revision): the edge that silence or heartbeats asked for is committed
//! - `node.left` (node, term, revision): the agent said goodbye, and that is committed
//! - `node.never_connected` * (node, term): a node has waited too long for its first session; once under each leader
//! - `enrol.signed` (node), `join.signed` (server): a certificate is signed, nothing is recorded
//! - `token.minted` (token, term, revision): a join token is committed, and not shown to anybody
//! - `api_token.made` (token, term, revision): an API token is committed, and not shown to anybody
//! - `api_token.revoked` (token, term, revision): the end of an API token is committed, and not told to anybody
//! - `token.spent` (by, term, revision): machine and token are committed, the machine hasn't heard of it
//! - `cert.renewed` (node, term, revision): a node's next certificate is committed, and not sent
//! - `leaf.recorded` (server, term, revision): a server's next certificate is committed, and not sent
//! - `bundle.recorded` (server, node, term, revision): that a machine trusts the newest CA is committed
//! - `ca.made` (ca): the next CA is made, nothing is recorded
//! - `ca.phase` (phase, term, revision): a step of the CA's replacement is committed, nobody was told
//! - `seal.made`: the next sealing key is on the leader's disk, nothing is recorded
//! - `seal.announced` (term, revision): which key comes next is committed, nobody was told
//! - `seal.held` (server, term, revision): that a server has the next sealing key is committed
//! - `seal.resealed` (term, revision): all secrets are sealed under the next key, nobody was told
//! - `cert.revoked` (node, term, revision): a node is shut out, and its session doesn't know yet
//! - `clone.refused` * (node): a second machine with a copy of a node's identity is about to be told
//! - `workload.applied` (workload, term, revision): committed, and not answered
//! - `workload.deleted`, `workload.placed`, `workload.revoked` (uid, term, revision): the same
//! - `move.phase` (move, phase, shape, source, target, term, revision): a move's next phase is committed, its ends don't know yet
//! - `drain.started` (drain, node, term, revision): cordon and plan are committed, nothing moves yet
//! - `node.lost` (node, term, revision): a node is given up
//! - `relay.joined` (move): both ends of a move have met, no byte has passed
//!
//! On an agent:
//! - `enrol.key_saved` (node): the key is on disk
//! - `enrol.checked` (server, node): all that joining needs was tried, nothing is spent
//! - `enrol.sent` (node, token, key): a round of requests is about to leave
//! - `enrol.answered` (server, certificate): the answer is here, nothing is written
//! - `enrol.refused` (server, code): the answer is a refusal, and the agent gives up
//! - `enrol.saved` (node): the identity is on disk, and the pending key is still there
//! - `enrol.done` (node): the pending key is removed
//! - `renew.sent`, `renew.answered`: the same steps of a renewal
//! - `renew.prev_saved`: the identity before it is kept, the renewed one is not on disk
//! - `renew.saved`: it is on disk and in use for new connections, and no server was asked about it
//! - `renew.done`: a server has accepted it, or none could be asked
//! - `reenrol.saved` (node): what `cara-agent reenroll` got is on disk, the agent has not seen it
//! - `reenrol.adopted` * (node): it is this machine's identity, and still there to be taken over
//! - `heartbeat.sent` * (sequence): a heartbeat is in the outbox
//! - `ledger.saved` (incarnation, term, revision): a desired set is on disk, nothing of it is done
//! - `ledger.refused` (incarnation, term, revision): a desired set was older than the last one, or not saved
//! - `plan.begun` (workload, generation): a workload's actions begin
//! - `plan.executed` (workload, complete): they are done, or given up
//! - `container.created`, `container.started`, `container.stopped`, `container.removed` (workload, generation,
//!   container): the engine has said so
//! - `container.stop_confirmed` (workload, generation): a listing has proven a stop that was wanted, nobody was told
//! - `volume.staged` (workload, generation, volume): an empty volume is there to be filled
//! - `volume.discarded` (workload, generation, volume): a volume and its content are gone
//! - `transfer.begun` (workload, move, round, final): a round begins at the target
//! - `transfer.chunk` (workload, move, round, final): a chunk was taken, and not written
//! - `transfer.differs` (workload, move, round, final): the final copy isn't the original; the round is done again
//! - `transfer.round` (workload, move, round, final): a round is finished and on disk, nobody was told

/// Tells the simulator that this place was reached. For code that can't wait.
#[cfg(feature = "chaos")]
pub fn mark(name: &'static str, detail: impl FnOnce() -> String) {
    if let Some(host) = crate::current_host() {
        host.reached(name, &detail());
    }
}

/// Tells the simulator that this place was reached. For code that can't wait.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub fn mark(_name: &'static str, _detail: impl FnOnce() -> String) {}

/// As [`mark`], and nothing after this place happens before the simulator has had its turn: a crash, a freeze or a cut
/// that hangs on this point hits exactly here.
#[cfg(feature = "chaos")]
pub async fn point(name: &'static str, detail: impl FnOnce() -> String) {
    let Some(host) = crate::current_host() else { return };
    if !host.reached(name, &detail()) {
        return;
    }
    // The gate is shut from now on. Give way once; the gate keeps the waker until it opens.
    let mut gave_way = false;
    std::future::poll_fn(move |cx| {
        if gave_way {
            return std::task::Poll::Ready(());
        }
        gave_way = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// As [`mark`], and nothing after this place happens before the simulator has had its turn: a crash, a freeze or a cut
/// that hangs on this point hits exactly here.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub async fn point(_name: &'static str, _detail: impl FnOnce() -> String) {}
