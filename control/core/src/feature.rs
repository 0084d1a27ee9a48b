//! What needs all servers to be of a newer version: allowed once the cluster's feature level has reached it.
//!
//! ```text
//! server starts -> PutServer (its level) -> reconcile: all of them higher -> SetFeatureLevel -> new commands are let in
//! ```
//! An older server would pass over a field or a command that it does not know, and end up with another state than its
//! peers. So what is new is refused, or left out of reports, until every server can do the same with it. Agents say their
//! level as well: what a node's agent does not know is not asked of that node.
//!
//! A level is said in fields that each release knows; 0 there was written by a release from before levels were said.

use crate::id::NodeId;
use crate::model::{Node, Server};
use crate::rejected::Rejected;
use crate::state::State;

/// What a server or an agent supports that said nothing.
pub const FEATURE_LEVEL_MIN: u32 = 1;

/// Something that came after the first version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Moves, drains, lost nodes, suspended workloads, dependencies, resource requests.
    Moves,
    /// Enrolling again, rotation of the CA and of the sealing key, scopes of API tokens, and what came with them in the
    /// records of nodes, tokens and the audit.
    Lifecycle,
}

impl Feature {
    /// The feature level from which on it is allowed.
    pub fn level(self) -> u32 {
        match self {
            Feature::Moves => 2,
            Feature::Lifecycle => 3,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Feature::Moves => "moving, draining, suspending and resource requests",
            Feature::Lifecycle => {
                "enrolling again, rotation of the CA and of the sealing key, and scopes of API tokens"
            }
        }
    }
}

impl Server {
    /// The highest feature level that it supports.
    pub fn level(&self) -> u32 {
        self.feature_level.max(FEATURE_LEVEL_MIN)
    }
}

impl Node {
    /// False when its agent has said a level that is too low. An agent whose session was opened under a server that did
    /// not ask is taken for as new as the cluster, as that server took it.
    pub fn supports(&self, feature: Feature) -> bool {
        self.feature_level == 0 || self.feature_level >= feature.level()
    }
}

impl State {
    /// True when the cluster's level allows it.
    pub fn supports(&self, feature: Feature) -> bool {
        self.cluster().is_some_and(|cluster| cluster.feature_level >= feature.level())
    }

    /// The highest level that every server supports; 0 without a server.
    pub fn common_level(&self) -> u32 {
        self.servers().map(Server::level).min().unwrap_or_default()
    }

    pub(crate) fn check_supports(&self, feature: Feature) -> Result<(), Rejected> {
        if self.supports(feature) {
            return Ok(());
        }
        let current = self.cluster().map_or(0, |cluster| cluster.feature_level).to_string();
        Err(Rejected::FeatureNeeded { what: feature.words().into(), needed: feature.level().to_string(), current })
    }

    /// Refuses when the node's agent does not know it. A node that is gone is not judged here.
    pub(crate) fn check_agent(&self, node: &NodeId, feature: Feature) -> Result<(), Rejected> {
        match self.node(node).filter(|node| !node.supports(feature)) {
            Some(node) => Err(Rejected::AgentOutdated {
                node: node.name.clone(),
                supports: node.feature_level.to_string(),
                needed: feature.level().to_string(),
            }),
            None => Ok(()),
        }
    }
}
