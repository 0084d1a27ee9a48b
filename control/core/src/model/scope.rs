//! What an API token with scopes may touch: one node, or the workloads whose names begin alike.
//!
//! A scope narrows, an ability allows: a token needs the ability for a route and, if it has scopes, one that covers what
//! the request is about. Whatever is neither a node nor a workload is outside of every scope.

use crate::id::{NodeId, is_well_formed};
use crate::rejected::Problem;
use std::fmt;

/// One part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The node with this id, written `node:{id}`. A node that is deleted and declared again has another id.
    Node(NodeId),
    /// The workloads of any kind whose name begins so, written `workload:{prefix}`.
    Workload(String),
}

impl Scope {
    /// Reads `node:{id}` or `workload:{prefix}`.
    ///
    /// # Errors
    /// When it is neither; `field` is named.
    pub fn parse(field: &str, text: &str) -> Result<Scope, Problem> {
        match text.split_once(':') {
            Some(("node", id)) if is_well_formed(id) => Ok(Scope::Node(NodeId::from(id))),
            Some(("workload", prefix)) if is_name_prefix(prefix) => Ok(Scope::Workload(prefix.to_owned())),
            Some(_) | None => Err(Problem::new(field, format!("{text:?} must be node:ID or workload:NAME-PREFIX"))),
        }
    }

    /// Is everything that the other one covers covered by this one?
    pub fn covers(&self, other: &Scope) -> bool {
        match (self, other) {
            (Scope::Node(own), Scope::Node(other)) => own == other,
            (Scope::Workload(own), Scope::Workload(other)) => other.starts_with(own.as_str()),
            (Scope::Node(_), Scope::Workload(_)) | (Scope::Workload(_), Scope::Node(_)) => false,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Node(id) => write!(f, "node:{id}"),
            Scope::Workload(prefix) => write!(f, "workload:{prefix}"),
        }
    }
}

/// The begin of a workload's name, which may have any length and end anywhere.
fn is_name_prefix(prefix: &str) -> bool {
    (1..=crate::limits::SCOPE_PREFIX_BYTES_MAX).contains(&prefix.len())
        && prefix.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.')
}
