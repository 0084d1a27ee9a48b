//! Where a move stands: may it go on, must it wait, has it failed? One answer, from the state alone, for the reconciler
//! that proposes the next phase and for the command that grants it.
//!
//! `Invariant:` what protects data is decided here and nowhere else: the target runs only after the source's stop was
//! recorded under the grant that was told to stop, and a digest of the final round; the source runs again only after the
//! target's copy was reported gone.

use crate::command::clip;
use crate::id::NodeId;
use crate::limits;
use crate::model::{Connection, Move, MovePhase, Phase, VolumeTransfer, Workload, WorkloadKind, WorkloadStatus};
use crate::planted::planted;
use crate::state::State;

/// What the state says about a running move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What its phase wants is so.
    Ready(Next, String),
    /// So too, once the phase has lasted this many ms on the leader's clock.
    Hold(Next, String, u64),
    /// Not yet.
    Wait(String),
    /// It can't be now; another attempt may do.
    Fail(String),
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another round of copying while the source runs.
    Round,
    /// The old copy of what has no state may go: clients had time to find the new one.
    Release,
    /// The next phase.
    Phase(MovePhase),
    /// The end of a rollback.
    RolledBack,
}

/// Judges a running move. One whose workload is gone waits; it can't be, as long as a move holds it.
pub(crate) fn judge(state: &State, mv: &Move) -> Verdict {
    let Some(workload) = state.workload(&mv.workload) else { return wait("the workload is gone") };
    match mv.phase {
        MovePhase::Preflight => preflight(state, mv, workload),
        MovePhase::StopSource => stop_source(state, mv, workload),
        MovePhase::CopyVolumes => copy_volumes(state, mv, workload),
        MovePhase::Place => place(state, mv, workload),
        MovePhase::Verify => verify(state, mv, workload),
        MovePhase::StopOld => stop_old(state, mv, workload),
        MovePhase::Finalize => finalize(state, workload),
        MovePhase::Done => wait("it is over"),
        MovePhase::Rollback => rollback(state, mv),
    }
}

/// What a running move waits for, for people; none when it is over or can go on at once.
pub fn waits_for(state: &State, mv: &Move) -> Option<String> {
    match judge(state, mv) {
        Verdict::Wait(reason) | Verdict::Fail(reason) if mv.is_running() => Some(reason),
        Verdict::Hold(_, detail, delay_ms) => Some(format!("{detail}, {} s in all", delay_ms / 1_000)),
        Verdict::Ready(..) | Verdict::Wait(_) | Verdict::Fail(_) => None,
    }
}

/// The apps that use this database, by uid.
pub(crate) fn dependants<'a>(state: &'a State, database: &'a Workload) -> impl Iterator<Item = &'a Workload> {
    let name = (database.kind == WorkloadKind::Database).then_some(database.name.as_str());
    name.into_iter().flat_map(|name| state.dependants(name))
}

fn preflight(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    if mv.stateful && !is_online(state, &mv.source) {
        return fail(format!("source {} is offline", name(state, &mv.source)));
    }
    let status = match target_status(state, mv) {
        Ok(status) => status,
        Err(problem) => return fail(problem),
    };
    let Some(status) = status.filter(|status| status.ready) else { return wait("target is getting image and network") };
    if !mv.stateful {
        return ready(MovePhase::Place, "target is ready");
    }
    if mv.round == 0 {
        return ready(MovePhase::StopSource, "target is ready; there is no volume to copy");
    }
    let Some(done) = round_done(mv, workload, status) else {
        return copying(mv, status, &format!("round {} is being copied", mv.round));
    };
    let sent = done.iter().fold(0u64, |sum, volume| sum.saturating_add(volume.bytes_sent));
    let total = done.iter().fold(0u64, |sum, volume| sum.saturating_add(volume.bytes_total));
    let detail = format!("round {}: {sent} of {total} bytes sent", mv.round);
    let small = sent < limits::LAST_ROUND_BYTES || u128::from(sent) * 100 < u128::from(total) * LAST_ROUND_PERCENT;
    if small || mv.round >= limits::ROUNDS_MAX {
        Verdict::Ready(Next::Phase(MovePhase::StopSource), detail)
    } else {
        Verdict::Ready(Next::Round, detail)
    }
}

/// A round that had to send less than this of the volumes is the last before the stop: another would save little.
const LAST_ROUND_PERCENT: u128 = 5;

fn stop_source(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    // Under the grant that was told to stop: an agent never starts what it was told to stop, so this stands.
    let stopped = workload
        .status
        .as_ref()
        .is_some_and(|status| status.observed_generation == mv.source_generation && status.phase == Phase::Stopped);
    if stopped {
        return ready(MovePhase::CopyVolumes, "source is stopped");
    }
    if !is_online(state, &mv.source) {
        return fail(format!("source {} is offline and can't prove that it stopped", name(state, &mv.source)));
    }
    wait("source is stopping")
}

fn copy_volumes(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    if workload.spec.managed_volumes().next().is_none() {
        return ready(MovePhase::Place, "there is no volume to copy");
    }
    let status = match target_status(state, mv) {
        Ok(status) => status,
        Err(problem) => return fail(problem),
    };
    if let Some(done) = status.and_then(|status| round_done(mv, workload, status)) {
        let differs =
            |volume: &VolumeTransfer| volume.target_digest.is_empty() || volume.source_digest != volume.target_digest;
        // Rounds before the last have no digest of the source: the comparison alone would guard against the planted bug.
        let differs = |volume: &VolumeTransfer| differs(volume) && !planted("any-round-is-the-last");
        return match done.into_iter().find(|volume| differs(volume)) {
            Some(volume) => fail(format!("volume {} differs between source and target", volume.volume)),
            None => ready(MovePhase::Place, "source and target have the same content"),
        };
    }
    if !is_online(state, &mv.source) {
        return fail(format!("source {} is offline", name(state, &mv.source)));
    }
    let detail = "what changed since the last round is being copied";
    status.map_or_else(|| wait(detail), |status| copying(mv, status, detail))
}

/// A round that is not done: under way, or failed. The target tries on by itself, from where it came to; here is counted
/// how long it may do so without getting further.
fn copying(mv: &Move, status: &WorkloadStatus, detail: &str) -> Verdict {
    let Some(error) = &status.transfer_error else { return wait(detail) };
    let mut problem = format!("round {} can't be copied ({}): {}", mv.round, error.code, error.message);
    clip(&mut problem, limits::TEXT_BYTES_MAX);
    fail(problem)
}

/// True when the target has finished the round that is wanted.
pub(crate) fn has_round(state: &State, mv: &Move) -> bool {
    let done = |workload| round_done(mv, workload, mv.target_status.as_ref()?);
    mv.round > 0 && state.workload(&mv.workload).and_then(done).is_some()
}

fn place(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    match target_status(state, mv) {
        Ok(Some(status)) if !status.containers.is_empty() => ready(MovePhase::Verify, "target has started"),
        Ok(Some(status)) if workload.spec.suspended && status.phase == Phase::Stopped => {
            ready(MovePhase::Verify, "target has it, suspended")
        }
        Ok(Some(_) | None) => wait("target is starting"),
        Err(problem) => fail(problem),
    }
}

fn verify(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    let wanted = if workload.spec.suspended { Phase::Stopped } else { Phase::Running };
    match target_status(state, mv) {
        Ok(Some(status)) if status.phase == wanted => ready(MovePhase::StopOld, "target works"),
        Ok(Some(_) | None) => wait("target is not healthy yet"),
        Err(problem) => wait(problem), // Its agent restarts what failed; how long it may try is the timeout's to say.
    }
}

fn stop_old(state: &State, mv: &Move, workload: &Workload) -> Verdict {
    if mv.source_removed {
        return ready(MovePhase::Finalize, "source has removed its old copy");
    }
    if !is_online(state, &mv.source) {
        let detail = format!("source {} is offline: it removes its old copy when it is back", name(state, &mv.source));
        return Verdict::Ready(Next::Phase(MovePhase::Finalize), detail);
    }
    if mv.old_copy_serves(workload) {
        let detail = "the old copy goes on while clients find the new one";
        return Verdict::Hold(Next::Release, detail.into(), mv.settings.shutdown_delay_ms);
    }
    wait("source is removing its old copy")
}

/// Why a move does not wait any longer for the source's word. Its agent has no grant for the old copy: it can't start it,
/// and removes it as soon as it can; what has state was proven stopped before the switch.
pub(crate) const LEFT_TO_SOURCE: &str = "left to the source's agent, which removes it and never starts it again";

fn finalize(state: &State, workload: &Workload) -> Verdict {
    match dependants(state, workload).find(|dependant| state.running_move(&dependant.uid).is_some()) {
        Some(moving) => wait(format!("{} uses it and is being moved", moving.name)),
        None => ready(MovePhase::Done, "everything is switched"),
    }
}

fn rollback(state: &State, mv: &Move) -> Verdict {
    if mv.target_removed || planted("rollback-does-not-wait") {
        return Verdict::Ready(Next::RolledBack, "target has removed its copy".into());
    }
    let target = name(state, &mv.target);
    match (mv.target_may_run(), is_online(state, &mv.target)) {
        (_, true) => wait("target is removing its copy"),
        (true, false) => {
            wait(format!("target {target} is offline: its copy may run, bring it back or declare it lost"))
        }
        (false, false) => {
            let detail = format!("target {target} is offline: it removes its copy when it is back");
            Verdict::Ready(Next::RolledBack, detail)
        }
    }
}

/// What the target reported under its grant; an error when it is not heard or says that it failed.
fn target_status<'a>(state: &State, mv: &'a Move) -> Result<Option<&'a WorkloadStatus>, String> {
    if !is_online(state, &mv.target) {
        return Err(format!("target {} is offline", name(state, &mv.target)));
    }
    let status = mv.target_status.as_ref();
    match status.filter(|status| status.phase == Phase::Failed) {
        // A container that exists and fails is the business of `verify`, which waits for it to recover.
        Some(failed) if mv.phase != MovePhase::Place || failed.containers.is_empty() => {
            let mut problem = format!("target failed: {} {}", failed.reason, failed.message).trim_end().to_owned();
            clip(&mut problem, limits::TEXT_BYTES_MAX);
            Err(problem)
        }
        Some(_) | None => Ok(status),
    }
}

/// The volumes as the wanted round left them; `None` while one of them is not done.
fn round_done<'a>(mv: &Move, workload: &Workload, status: &'a WorkloadStatus) -> Option<Vec<&'a VolumeTransfer>> {
    let any = planted("any-round-is-the-last") && mv.phase == MovePhase::CopyVolumes;
    let is_wanted = |round: u32| round == mv.round || (any && round > 0);
    let done = |name: &str| status.transfers.iter().find(|t| t.volume == name && is_wanted(t.round_done));
    workload.spec.managed_volumes().map(done).collect()
}

fn is_online(state: &State, id: &NodeId) -> bool {
    state.node(id).is_some_and(|node| node.connection == Connection::Online)
}

fn name(state: &State, id: &NodeId) -> String {
    state.node(id).map_or(id.to_string(), |node| node.name.clone())
}

fn ready(phase: MovePhase, detail: &str) -> Verdict {
    Verdict::Ready(Next::Phase(phase), detail.to_owned())
}

fn wait(detail: impl Into<String>) -> Verdict {
    Verdict::Wait(detail.into())
}

fn fail(detail: impl Into<String>) -> Verdict {
    Verdict::Fail(detail.into())
}
