//! The kinds of faults and operations, and whom a fault may hit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens. Every fault ends, at the latest when the world is healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The process dies and starts again at the end; written data stays.
    Crash,
    /// The process is asked to end, and starts again at the end.
    Stop,
    /// As `stop`, and what starts again is of today's release, on machines that ran the one before.
    Upgrade,
    /// The machine falls silent, loses what it did not sync, and starts again at the end.
    PowerLoss,
    /// SIGSTOP, then SIGCONT.
    Freeze,
    /// A handful of task polls a tick.
    SlowCpu,
    /// Nothing reaches it, nothing leaves it.
    Isolate,
    /// Nothing passes from the targets to `to`; in both directions unless `dir = "oneway"`.
    Partition,
    /// Each target reaches only its two neighbours.
    Ring,
    /// Both halves of the targets see only the machine in the middle.
    Bridge,
    /// What targets send to `to` waits until the end, and then arrives.
    Clog,
    /// What passes between targets and `to`, in both directions, waits until the end.
    Hold,
    /// What targets send to `to` takes longer, by `add`.
    SlowLink,
    /// No more than `bytes_per_second` pass from targets to `to`; the rest waits its turn.
    NarrowLink,
    /// All connections between targets and `to` are reset.
    Reset,
    /// The wall clock jumps `by` so much, and back at the end.
    ClockStep,
    /// All clocks run faster or slower by `ppm`.
    ClockDrift,
    /// Syncs take `add` longer.
    SlowDisk,
    /// Syncs don't end.
    StallDisk,
    /// No room.
    DiskFull,
    /// Writes fail with an input/output error.
    WriteError,
    /// Syncs fail with an input/output error.
    SyncError,
    /// A bit of an old log entry flips while the power is off.
    BitFlip,
    /// A loss of power that leaves the last log entry cut short.
    TornTail,
    /// Syncs are acknowledged and not kept. No software survives that together with a loss of power.
    LyingSync,
    /// The machine comes back with the data that it had when the fault began.
    OldData,
    /// The machine comes back with an empty disk. A server is taken out of the cluster and joins as a new one.
    Wipe,
    /// A second machine runs with a copy of the target's data folder until the end.
    Clone,
    /// An operator shuts the node out, and brings it back at the end.
    Revoke,
    /// An operator brings the node back under a new identity.
    Reenrol,
    /// An operator empties and deletes the node, and installs its machine anew, which joins under the old name.
    Rejoin,
    /// `by` passes at once on every machine of the world, switched off or not: days in which nothing else happens.
    TimePasses,
    /// Containers can't be started.
    StartFails,
    /// Starts of containers don't end.
    StartHangs,
    /// All containers of the node end.
    ContainerExits,
    /// No image can be found.
    ImageMissing,
    /// The container engine accepts calls and never answers.
    EngineAway,
    /// The container engine is not running.
    EngineDown,
    /// Volumes can't be made or removed.
    VolumeError,
    /// Making and removing volumes takes long.
    SlowVolume,
    /// What is in volumes can't be read, as when a move copies it. Containers run on.
    VolumeReadError,
    /// Reading and writing what is in volumes takes `add` longer, piece by piece, as when a move copies it.
    SlowCopy,
    /// A spare server joins. It stays.
    AddServer,
    /// A server is taken out of the cluster. It does not come back.
    RemoveServer,
}

/// Whom a fault may hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Servers.
    Server,
    /// Agents.
    Agent,
    /// Any machine.
    Any,
}

impl Kind {
    /// Whom it may hit.
    pub fn hits(self) -> Role {
        match self {
            Self::SlowDisk | Self::StallDisk | Self::DiskFull | Self::WriteError | Self::SyncError | Self::BitFlip => {
                Role::Server
            }
            Self::TornTail | Self::LyingSync | Self::AddServer | Self::RemoveServer => Role::Server,
            // A server with older data has forgotten votes that it gave, and two servers of one identity vote twice: no
            // raft survives that, and the runbook forbids it.
            Self::Revoke | Self::Reenrol | Self::Rejoin => Role::Agent,
            Self::Clone | Self::OldData | Self::StartFails | Self::StartHangs | Self::ContainerExits => Role::Agent,
            Self::ImageMissing | Self::EngineAway | Self::EngineDown | Self::VolumeError | Self::SlowVolume => {
                Role::Agent
            }
            Self::VolumeReadError | Self::SlowCopy => Role::Agent,
            _ => Role::Any,
        }
    }

    /// Does it need the other end of a link?
    pub fn needs_to(self) -> bool {
        matches!(self, Self::Partition | Self::Clog | Self::Hold | Self::SlowLink | Self::NarrowLink | Self::Reset)
    }

    /// Does it look at `add`?
    pub fn takes_add(self) -> bool {
        matches!(self, Self::SlowLink | Self::SlowDisk | Self::SlowCopy)
    }

    /// Does it look at `bytes_per_second`?
    pub fn takes_rate(self) -> bool {
        self == Self::NarrowLink
    }

    /// Does it look at `by`?
    pub fn takes_by(self) -> bool {
        matches!(self, Self::ClockStep | Self::TimePasses)
    }

    /// Does it look at `ppm`?
    pub fn takes_ppm(self) -> bool {
        self == Self::ClockDrift
    }

    /// May it lose what a server promised to keep? Of these at most a minority of servers is hit in one run.
    pub fn destroys(self) -> bool {
        matches!(self, Self::BitFlip | Self::LyingSync | Self::Wipe)
    }

    /// The name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Stop => "stop",
            Self::Upgrade => "upgrade",
            Self::PowerLoss => "power_loss",
            Self::Freeze => "freeze",
            Self::SlowCpu => "slow_cpu",
            Self::Isolate => "isolate",
            Self::Partition => "partition",
            Self::Ring => "ring",
            Self::Bridge => "bridge",
            Self::Clog => "clog",
            Self::Hold => "hold",
            Self::SlowLink => "slow_link",
            Self::NarrowLink => "narrow_link",
            Self::Reset => "reset",
            Self::ClockStep => "clock_step",
            Self::ClockDrift => "clock_drift",
            Self::SlowDisk => "slow_disk",
            Self::StallDisk => "stall_disk",
            Self::DiskFull => "disk_full",
            Self::WriteError => "write_error",
            Self::SyncError => "sync_error",
            Self::BitFlip => "bit_flip",
            Self::TornTail => "torn_tail",
            Self::LyingSync => "lying_sync",
            Self::OldData => "old_data",
            Self::Wipe => "wipe",
            Self::Clone => "clone",
            Self::Revoke => "revoke",
            Self::Reenrol => "reenrol",
            Self::Rejoin => "rejoin",
            Self::TimePasses => "time_passes",
            Self::StartFails => "start_fails",
            Self::StartHangs => "start_hangs",
            Self::ContainerExits => "container_exits",
            Self::ImageMissing => "image_missing",
            Self::EngineAway => "engine_away",
            Self::EngineDown => "engine_down",
            Self::VolumeError => "volume_error",
            Self::SlowVolume => "slow_volume",
            Self::VolumeReadError => "volume_read_error",
            Self::SlowCopy => "slow_copy",
            Self::AddServer => "add_server",
            Self::RemoveServer => "remove_server",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// Writes a register.
    Write,
    /// Reads a register.
    Read,
    /// Creates an app.
    Create,
    /// Creates a project with a volume.
    Project,
    /// Changes the spec of one of its apps.
    Spec,
    /// Deletes one of its workloads.
    Delete,
    /// Cordons a node.
    Cordon,
    /// Lets a node take workloads again.
    Uncordon,
    /// Labels a node.
    Label,
    /// Lets a new machine join.
    Enrol,
    /// Describes a machine by a manifest, with a label and cordoned, and then lets it join.
    Declare,
    /// Lets machines race for one join token, three unless the scenario says otherwise.
    TokenRace,
    /// Makes an API token, uses it, revokes it, and tries it on every server.
    ApiToken,
    /// Lets a node's certificate come of age, so that it is renewed.
    Renew,
    /// Moves one of its workloads to another node.
    Move,
    /// Drains a node. It takes workloads again once everything is healed, or by an `uncordon`.
    Drain,
    /// Replaces the cluster's CA. Not drawn by itself: clients follow the last three, so a run has at most three.
    RotateCa,
    /// Replaces the sealing key.
    RotateSealingKey,
}

impl OpKind {
    /// How often each kind is drawn when a scenario says nothing; the others only where one asks for them.
    pub const USUAL: &'static [(Self, u64)] = &[
        (Self::Write, 30),
        (Self::Read, 40),
        (Self::Create, 12),
        (Self::Project, 3),
        (Self::Spec, 4),
        (Self::Delete, 8),
        (Self::Cordon, 1),
        (Self::Uncordon, 2),
        (Self::Label, 2),
        (Self::Enrol, 1),
        (Self::TokenRace, 1),
        (Self::Renew, 1),
        (Self::Move, 6),
        (Self::Drain, 1),
    ];
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Create => "create",
            Self::Project => "project",
            Self::Spec => "spec",
            Self::Delete => "delete",
            Self::Cordon => "cordon",
            Self::Uncordon => "uncordon",
            Self::Label => "label",
            Self::Enrol => "enrol",
            Self::Declare => "declare",
            Self::TokenRace => "token_race",
            Self::ApiToken => "api_token",
            Self::Renew => "renew",
            Self::Move => "move",
            Self::Drain => "drain",
            Self::RotateCa => "rotate_ca",
            Self::RotateSealingKey => "rotate_sealing_key",
        })
    }
}
