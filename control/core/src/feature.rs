//! What needs all servers to be of a newer version: allowed once the cluster's feature level has reached it.
//!
//! An older server would pass over a field or a command that it does not know, and end up with another state than its
//! peers. So what is new is refused, or left out of reports, until every server can do the same with it.

use crate::rejected::Rejected;
use crate::state::State;

/// Something that came after the first version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Moves, drains, lost nodes, suspended workloads, dependencies, resource requests.
    Moves,
}

impl Feature {
    /// The feature level from which on it is allowed.
    pub fn level(self) -> u32 {
        match self {
            Feature::Moves => 2,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Feature::Moves => "moving, draining, suspending and resource requests",
        }
    }
}

impl State {
    /// True when the cluster's level allows it.
    pub fn supports(&self, feature: Feature) -> bool {
        self.cluster().is_some_and(|cluster| cluster.feature_level >= feature.level())
    }

    pub(crate) fn check_supports(&self, feature: Feature) -> Result<(), Rejected> {
        if self.supports(feature) {
            return Ok(());
        }
        let current = self.cluster().map_or(0, |cluster| cluster.feature_level).to_string();
        Err(Rejected::FeatureNeeded { what: feature.words().into(), needed: feature.level().to_string(), current })
    }
}
