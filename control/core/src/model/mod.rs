//! The nouns that are replicated. Plain data: each is a prost message with append-only tags, stored under its own key.
//!
//! Who writes which field: the user writes spec, labels and flags; the leader writes placement, connection and
//! certificates; the agent writes status and facts, under its session's epoch. No field has two writers.

mod api_token;
mod audit;
mod ca;
mod certificate;
mod cluster;
mod drain;
mod join_token;
mod node;
mod scope;
mod sealing;
mod server;
mod spec;
mod status;
mod verified_move;
mod workload;

pub use api_token::{Ability, ApiToken};
pub use audit::AuditRecord;
pub use ca::{CaRotation, FormerCa, RotationPhase};
pub use certificate::{Certificate, Previous};
pub use cluster::Cluster;
pub use drain::{Blocked, Drain, DrainStatus};
pub use join_token::{JoinToken, TokenPurpose, TokenUse};
pub use node::{
    CloneSeen, Connection, Facts, Node, NodeEvent, NodeEvents, NodeView, Quarantine, QuarantinedVolume, Session,
};
pub use scope::Scope;
pub use sealing::NextSealingKey;
pub use server::Server;
pub use spec::{
    DatabaseSpec, Engine, HealthCheck, Ingress, Port, Probe, Protocol, Resources, ServiceSpec, VolumeKind, VolumeMount,
    VolumeSpec, WorkloadSpec,
};
pub use status::{
    ContainerState, ContainerStatus, Phase, RemovedGrant, StatusReport, TransferError, VolumeTransfer, WorkloadStatus,
};
pub use verified_move::{Move, MovePhase, MoveSettings, MoveStatus, MoveStep, StepOutcome};
pub use workload::{Placement, Rejection, Workload, WorkloadKind};
