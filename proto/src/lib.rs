//! The wire: every message that crosses a process boundary, one module per noun, and no logic.
//!
//! gRPC messages (`agent`, `cluster`, `node`, `raft`, `volume`, `workload`) are generated from `proto/*.proto`; tags are
//! append-only. [`rest`] holds the JSON bodies of the operator's API, written by hand because their shapes are what
//! people type into manifests.
//!
//! Invariant: nothing here opens a connection, checks a rule or knows a default that isn't part of the format.

pub mod codec;
mod debug;
pub mod rest;

/// Agent sessions, enrolment, logs.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in agent.proto.
pub mod agent {
    tonic::include_proto!("cara.agent");
}

/// Servers joining, and requests carried to the leader.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in cluster.proto.
pub mod cluster {
    tonic::include_proto!("cara.cluster");
}

/// Facts about a machine.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in node.proto.
pub mod node {
    tonic::include_proto!("cara.node");
}

/// Replication between servers.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in raft.proto.
pub mod raft {
    tonic::include_proto!("cara.raft");
}

/// A volume's content between two nodes, and the tunnel through the leader.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in volume.proto.
pub mod volume {
    tonic::include_proto!("cara.volume");
}

/// What a node shall run and what it reports.
#[allow(missing_docs, clippy::all)] // Generated; the documentation is in workload.proto.
pub mod workload {
    tonic::include_proto!("cara.workload");
}

/// gRPC metadata key: host:port of the leader, in the answer of a server that isn't it.
pub const LEADER_KEY: &str = "cara-leader";
/// gRPC metadata key: stable code of a refusal.
pub const CODE_KEY: &str = "cara-code";
/// gRPC metadata key: the next step for a person after a refusal.
pub const HINT_KEY: &str = "cara-hint";
