//! A move: takes one workload from the node that it runs on to another, each step checked before the next.
//!
//! ```text
//! stateless: preflight -----------------------------> place -> verify -> stop_old -> finalize -> done
//! stateful:  preflight -> stop_source -> copy_volumes -> place -> verify -> stop_old -> finalize -> done
//!                |            |              |             |        |
//!                +------------+--------------+-------------+--------+--> rollback (ends rolled_back)
//! ```
//! The phase is what is wanted; agents see it through their desired set and report what came of it; the leader compares
//! the two and asks for the next phase (`crate::moves`). Entering `stop_old` commits: from there nothing rolls back.
//!
//! `Invariant:` at most one running move of a workload. Of a stateful workload, source and target are never both told to
//! run: the target only after the source's stop was recorded, the source again only after the target's copy was reported
//! gone, or given up.

use super::{Workload, WorkloadKind, WorkloadStatus};
use crate::id::{DrainId, Generation, MoveId, NodeId, Revision, WorkloadUid};
use crate::wire::wire_enum;

/// A move, running or over.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Move {
    /// Never given twice.
    #[prost(message, required, tag = "1")]
    pub id: MoveId,
    /// What moves.
    #[prost(message, required, tag = "2")]
    pub workload: WorkloadUid,
    /// Its kind, so that the record can be read when it is gone.
    #[prost(message, required, tag = "3")]
    pub kind: WorkloadKind,
    /// Its name, for the same reason.
    #[prost(string, tag = "4")]
    pub name: String,
    /// True when two running copies could damage data, as of the start.
    #[prost(bool, tag = "5")]
    pub stateful: bool,
    /// Where it runs at the start.
    #[prost(message, required, tag = "6")]
    pub source: NodeId,
    /// Where it shall run.
    #[prost(message, required, tag = "7")]
    pub target: NodeId,
    /// True when the scheduler chose the target.
    #[prost(bool, tag = "8")]
    pub auto_target: bool,
    /// The drain that it belongs to.
    #[prost(message, optional, tag = "9")]
    pub drain: Option<DrainId>,
    /// The source's grant at the start.
    #[prost(message, required, tag = "10")]
    pub source_generation: Generation,
    /// The target's grant, and the data generation of what it stages.
    #[prost(message, required, tag = "11")]
    pub target_generation: Generation,
    /// The data generation of what is copied.
    #[prost(message, required, tag = "12")]
    pub source_data_generation: Generation,
    /// How patient it is; kept here so that a new leader is as patient as the one before.
    #[prost(message, required, tag = "13")]
    pub settings: MoveSettings,
    /// What is wanted now; of a move that is over: the phase that it ended in.
    #[prost(message, required, tag = "14")]
    pub phase: MovePhase,
    /// Whether it is over, and how.
    #[prost(message, required, tag = "15")]
    pub status: MoveStatus,
    /// Attempts at the present phase (or round), from 1.
    #[prost(uint32, tag = "16")]
    pub attempt: u32,
    /// The round of copying that is wanted, from 1; 0 = nothing to copy.
    #[prost(uint32, tag = "17")]
    pub round: u32,
    /// True once the target was told to run: from then on its copy may exist until it is reported gone.
    #[prost(bool, tag = "18")]
    pub ordered_to_run: bool,
    /// What the target reported last under its grant.
    #[prost(message, optional, tag = "19")]
    pub target_status: Option<WorkloadStatus>,
    /// The source reported its old copy gone, after the switch.
    #[prost(bool, tag = "20")]
    pub source_removed: bool,
    /// The target reported its copy gone, in a rollback.
    #[prost(bool, tag = "21")]
    pub target_removed: bool,
    /// The newest 64 steps, oldest first.
    #[prost(message, repeated, tag = "22")]
    pub steps: Vec<MoveStep>,
    /// How many steps there ever were: a command from a decision says which it saw last.
    #[prost(uint32, tag = "23")]
    pub step_count: u32,
    /// In ms since 1970.
    #[prost(uint64, tag = "24")]
    pub started_at_ms: u64,
    /// In ms since 1970; none while it runs.
    #[prost(uint64, optional, tag = "25")]
    pub finished_at_ms: Option<u64>,
    /// When the source was recorded as stopped, in ms since 1970; none when nothing had to stop.
    #[prost(uint64, optional, tag = "26")]
    pub stopped_at_ms: Option<u64>,
    /// From the recorded stop to the switch; none until then, and when nothing had to stop.
    #[prost(uint64, optional, tag = "27")]
    pub downtime_ms: Option<u64>,
    /// Why it did not succeed, for people; empty otherwise.
    #[prost(string, tag = "28")]
    pub error: String,
    /// Set by apply.
    #[prost(message, required, tag = "29")]
    pub revision: Revision,
    /// How far the round of copying had come when it failed last: an attempt that got further is not held against it.
    #[prost(uint64, tag = "30")]
    pub bytes_at_error: u64,
    /// After the switch of what has no state: the source was told to remove its old copy, which had gone on until then.
    #[prost(bool, tag = "31")]
    pub source_released: bool,
    /// The phase in which a database that the workload uses was last given to another node; none = in none. A copy that was
    /// told to run until then has the old address.
    #[prost(message, optional, tag = "32")]
    pub database_placed_in: Option<MovePhase>,
}

/// How patient a move is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MoveSettings {
    /// How long the source may take to stop, and the target to start and become healthy.
    #[prost(uint64, tag = "1")]
    pub verify_timeout_ms: u64,
    /// Attempts at a phase that failed, until the move is rolled back.
    #[prost(uint32, tag = "2")]
    pub attempts_max: u32,
    /// Between two attempts.
    #[prost(uint64, tag = "3")]
    pub interval_ms: u64,
    /// How long the old copy of what has no state goes on after the switch, so that clients which found it still get their
    /// answers and find the new one. 0 = it is removed at once.
    #[prost(uint64, tag = "4")]
    pub shutdown_delay_ms: u64,
}

impl MoveSettings {
    /// Five minutes to verify, five attempts, three seconds apart.
    pub fn usual() -> MoveSettings {
        MoveSettings { verify_timeout_ms: 300_000, attempts_max: 5, interval_ms: 3_000, shutdown_delay_ms: 0 }
    }
}

/// One thing that happened in a move.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MoveStep {
    /// In which phase.
    #[prost(message, required, tag = "1")]
    pub phase: MovePhase,
    /// What came of it.
    #[prost(message, required, tag = "2")]
    pub outcome: StepOutcome,
    /// For people.
    #[prost(string, tag = "3")]
    pub detail: String,
    /// In ms since 1970, the entry's time.
    #[prost(uint64, tag = "4")]
    pub at_ms: u64,
    /// Which attempt it was, from 1.
    #[prost(uint32, tag = "5")]
    pub attempt: u32,
}

wire_enum! {
    /// What a move wants now.
    MovePhase {
        /// The target gets image and network ready; volumes are copied while the source still runs.
        1 => Preflight "preflight",
        /// The source stops, and proves it.
        2 => StopSource "stop_source",
        /// What changed since the last round is copied; digests must be equal.
        3 => CopyVolumes "copy_volumes",
        /// The target starts.
        4 => Place "place",
        /// The target shows that it works.
        5 => Verify "verify",
        /// Committed: the source's old copy goes.
        6 => StopOld "stop_old",
        /// Whoever uses it is restarted.
        7 => Finalize "finalize",
        /// All is done.
        8 => Done "done",
        /// The target's copy goes, the source runs again.
        9 => Rollback "rollback",
    }
}

wire_enum! {
    /// Whether a move is over, and how.
    MoveStatus {
        /// Not over.
        1 => Running "running",
        /// The target has the workload.
        2 => Succeeded "succeeded",
        /// Neither end could keep it.
        3 => Failed "failed",
        /// The source has it, as before.
        4 => RolledBack "rolled_back",
    }
}

wire_enum! {
    /// What came of a step.
    StepOutcome {
        /// It goes on.
        1 => Ok "ok",
        /// It failed and is tried again.
        2 => Retry "retry",
        /// It has not come to an end yet.
        3 => Waiting "waiting",
        /// It failed for good.
        4 => Failed "failed",
    }
}

impl Move {
    /// True until it is over.
    pub fn is_running(&self) -> bool {
        self.status == MoveStatus::Running
    }

    /// True once the target has the workload: nothing rolls back from there.
    pub fn is_committed(&self) -> bool {
        match self.phase {
            MovePhase::StopOld | MovePhase::Finalize | MovePhase::Done => true,
            MovePhase::Preflight
            | MovePhase::StopSource
            | MovePhase::CopyVolumes
            | MovePhase::Place
            | MovePhase::Verify
            | MovePhase::Rollback => false,
        }
    }

    /// True after the switch of what has no state, until the source is told to remove its old copy of this workload: both
    /// copies serve. Of what is suspended nothing does.
    pub fn old_copy_serves(&self, workload: &Workload) -> bool {
        !self.stateful && self.phase == MovePhase::StopOld && !self.source_released && !workload.spec.suspended
    }

    /// True while it may still be taken back.
    pub fn can_roll_back(&self) -> bool {
        self.is_running() && !self.is_committed() && self.phase != MovePhase::Rollback
    }

    /// True when the copy that is left by a move which ends this way has an old address of a database that it uses: the
    /// source's, or the target's once it was told to run.
    pub fn leaves_old_address(&self, status: MoveStatus) -> bool {
        match (status, self.database_placed_in) {
            (_, None) => false,
            (MoveStatus::Running | MoveStatus::Failed | MoveStatus::RolledBack, Some(_)) => true,
            (MoveStatus::Succeeded, Some(MovePhase::Preflight | MovePhase::StopSource | MovePhase::CopyVolumes)) => {
                false
            }
            (MoveStatus::Succeeded, Some(MovePhase::Place | MovePhase::Verify | MovePhase::StopOld)) => true,
            (MoveStatus::Succeeded, Some(MovePhase::Finalize | MovePhase::Done | MovePhase::Rollback)) => true,
        }
    }

    /// True while the source of what has state must not run, because the target may.
    pub fn target_may_run(&self) -> bool {
        self.stateful && self.ordered_to_run
    }
}
