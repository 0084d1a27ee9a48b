//! What only the leader does: prove that it leads, reconcile, and let go.
//!
//! ```text
//! elected -> barrier (a majority agrees, all before is applied) -> leading(term) -> passes ... -> deposed -> end sessions
//! ```
//! A pass is level-triggered: the whole state and all that was heard go into `cara_core::reconcile`, commands come out.
//! Nothing is owed to a missed wake-up; the next pass repairs it.
//!
//! Invariant: silence is judged on this server's monotonic clock only, and never silence from before it began to lead, or
//! in which it could not hear.

use std::collections::BTreeSet;
use std::time::Duration;

use cara_core::command::{CheckpointSeen, Seen};
use cara_core::model::Connection;
use cara_core::reconcile::{Decision, Heard, Settings, reconcile};
use cara_core::{Command, NodeId, limits};
use raft_store::Role;
use tokio::sync::watch;

use crate::api::SharedApi;
use crate::error::ApiError;
use crate::membership;
use crate::wire::millis;

/// Passes are at least this far apart: a burst of changes costs one pass, not a hundred.
const PASS_SPACING: Duration = Duration::from_millis(100);
/// A pass comes at the latest after this, whatever was missed.
const PASS_MAX: Duration = Duration::from_secs(10);
/// "Last seen" survives a change of leader to this precision.
const CHECKPOINT: Duration = Duration::from_secs(30);
/// So often a leader listens again that stood still while it listened.
const LISTENINGS_MAX: u32 = 5;
/// Between two attempts to prove leadership.
const PROOF_RETRY: Duration = Duration::from_millis(100);

/// Runs until the server stops. `leading` tells everyone else the term in which this server leads; 0 = it doesn't.
pub async fn run(api: SharedApi, leading: watch::Sender<u64>) {
    let mut shutdown = api.shutdown.clone();
    let work = async {
        let mut changed = api.raft.changed();
        loop {
            changed.borrow_and_update();
            let status = api.raft.status();
            if status.role != Role::Leader {
                if changed.changed().await.is_err() {
                    return;
                }
                continue;
            }
            if let Err(error) = api.barrier().await {
                tracing::debug!(%error, term = status.term, "elected, but a majority doesn't confirm it yet");
                api.env.clock.sleep(PROOF_RETRY).await;
                continue;
            }
            if !still_leads(&api, status.term) {
                continue;
            }
            tracing::info!(term = status.term, "leading");
            cara_env::point("leader.proven", || format!("term={}", status.term)).await;
            api.sessions.begin(api.mono_ms());
            leading.send_replace(status.term);
            let members = cara_env::spawn(membership::run(api.clone(), status.term));
            lead(&api, status.term).await;
            leading.send_replace(0);
            members.abort();
            let leader = api.leader_elsewhere();
            tracing::info!(term = status.term, ?leader, "not leading any more");
            if !cara_env::planted("deposed-leader-keeps-sessions") {
                api.sessions.end_all("not_leader", "this server leads no more", leader.as_deref());
            }
            api.transfers.forget_all();
        }
    };
    tokio::select! {
        biased;
        _ = async { shutdown.wait_for(|stop| *stop).await.map(drop) } => {}
        () = work => {}
    }
    leading.send_replace(0);
    api.sessions.end_all("shutdown", "the server is stopping", api.leader_elsewhere().as_deref());
}

/// True while raft says that this server leads `term`.
pub fn still_leads(api: &SharedApi, term: u64) -> bool {
    let status = api.raft.status();
    status.role == Role::Leader && status.term == term
}

async fn lead(api: &SharedApi, term: u64) {
    let settings = Settings {
        heartbeat_timeout_ms: millis(api.config.agent_timeout()),
        feature_level_max: api.config.feature_level_max,
        pending_stale_ms: millis(api.config.pending_stale_after),
        ..Settings::default()
    };
    let since_ms = if cara_env::planted("fresh-window-missing-after-election") { 0 } else { api.mono_ms() };
    let mut heard = Heard { leader_since_ms: since_ms, ..Heard::default() };
    let mut told = BTreeSet::new();
    let mut checkpoint_at = api.env.clock.monotonic() + CHECKPOINT;
    let mut raft = api.raft.changed();
    let mut state = api.changed.clone();
    while still_leads(api, term) {
        raft.borrow_and_update();
        state.borrow_and_update();
        let Some(wake_at) = pass(api, &settings, &mut heard, &mut told).await else { return };
        if api.env.clock.monotonic() >= checkpoint_at {
            checkpoint(api, &heard).await;
            checkpoint_at = api.env.clock.monotonic() + CHECKPOINT;
        }
        api.env.clock.sleep(PASS_SPACING).await;
        let wait = Duration::from_millis(wake_at.saturating_sub(api.mono_ms())).min(PASS_MAX);
        let stop = tokio::select! {
            biased;
            ended = raft.changed() => ended.is_err(),
            ended = state.changed() => ended.is_err(),
            () = api.env.clock.sleep(wait) => false,
        };
        if stop {
            return;
        }
    }
}

/// One comparison of state and ears. Returns when to look again, or none when this server must stop leading.
async fn pass(api: &SharedApi, settings: &Settings, heard: &mut Heard, told: &mut BTreeSet<NodeId>) -> Option<u64> {
    let mut decision = look(api, settings, heard);
    if decision.suspects_itself && api.barrier().await.is_err() {
        tracing::warn!("most nodes are silent and no majority answers: the fault is on this side");
        return None;
    }
    if decision.suspects_itself || decision.commands.iter().any(is_offline) {
        listen(api).await;
        decision = look(api, settings, heard);
    }
    for reason in &decision.reasons {
        tracing::info!(%reason, "reconcile");
    }
    tell_never_connected(api, told, &decision.never_connected);
    if decision.suspects_itself {
        cara_env::mark("brake.on", || format!("term={}", *api.leading.borrow()));
    }
    let declares_offline = decision.commands.iter().any(is_offline);
    if decision.suspects_itself && declares_offline {
        heard.last_braked_ms = Some(api.mono_ms());
    }
    if cara_env::planted("offline-edge-without-sequence") && declares_offline {
        api.env.clock.sleep(Duration::from_secs(2)).await; // A node that flaps shall not fill the log.
    }
    let proposals = decision.commands.into_iter().map(|command| async move {
        cara_env::point("reconcile.write", || format!("command={}", command.name())).await;
        api.propose("leader", "", command).await
    });
    for outcome in futures_util::future::join_all(proposals).await {
        match outcome {
            // A decision is made on a snapshot; what has passed since is refused, and the next pass sees why.
            Ok(_) | Err(ApiError::Rejected(_)) => {}
            Err(error) => tracing::debug!(%error, "a decision was not recorded; the next pass repeats it"),
        }
    }
    Some(decision.wake_at.unwrap_or(u64::MAX))
}

/// What the state and the ears ask for now.
fn look(api: &SharedApi, settings: &Settings, heard: &mut Heard) -> Decision {
    heard.wall_ms = api.env.clock.wall_ms();
    let now = api.mono_ms();
    api.read_local(|state| {
        api.sessions.retain(|node| state.node(node).is_some());
        // Ears after the state: whoever has a session in it was greeted before.
        heard.nodes = api.sessions.all_heard();
        heard.cuts = api.sessions.all_cuts();
        heard.observe(state, now);
        reconcile(state, heard, settings, now)
    })
}

/// Gives the sessions time to read what has arrived. When this process stood still, the silence of all nodes is its own
/// deafness: their heartbeats lie unread in the sockets, and this task may be the first that runs again. A pause that takes
/// far longer than it should was interrupted in the same way, and does not count.
async fn listen(api: &SharedApi) {
    let deaf = api.config.agent_timeout() / 4;
    for _ in 0..LISTENINGS_MAX {
        let from = api.env.clock.monotonic();
        api.env.clock.sleep(PASS_SPACING).await;
        if api.env.clock.monotonic().saturating_sub(from) < PASS_SPACING + deaf {
            return;
        }
    }
}

fn is_offline(command: &Command) -> bool {
    matches!(command, Command::TransitionNode(change) if change.to == Connection::Offline)
}

/// Says once, under each leader, who was let in and never came.
fn tell_never_connected(api: &SharedApi, told: &mut BTreeSet<NodeId>, waiting: &[NodeId]) {
    for node in waiting.iter().filter(|node| !told.contains(node)) {
        let name = api.node_name(node);
        tracing::warn!(node = %name, "it has never connected; `caractrl nodes health {name}` says what to look at");
        cara_env::mark("node.never_connected", || format!("node={name} term={}", *api.leading.borrow()));
    }
    *told = waiting.iter().cloned().collect();
}

async fn checkpoint(api: &SharedApi, heard: &Heard) {
    let (mono, wall) = (api.mono_ms(), api.env.clock.wall_ms());
    let seen: Vec<_> = heard
        .nodes
        .iter()
        .map(|(node, beat)| Seen {
            node: node.clone(),
            epoch: beat.epoch,
            last_seen_ms: wall.saturating_sub(mono.saturating_sub(beat.at_ms)),
        })
        .collect();
    for batch in seen.chunks(limits::CHECKPOINT_NODES_MAX) {
        let command = Command::CheckpointSeen(CheckpointSeen { seen: batch.to_vec() });
        if let Err(error) = api.propose("leader", "", command).await {
            tracing::debug!(%error, "last-seen times were not recorded");
            return;
        }
    }
}
