//! Lets newer commands in, once all voters support them (which the leader checks before it proposes). Only rises.

use crate::entry::Context;
use crate::event::Event;
use crate::rejected::Rejected;
use crate::state::State;

/// Raises the feature level by one or more.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SetFeatureLevel {
    /// The new level.
    #[prost(uint32, tag = "1")]
    pub level: u32,
}

pub(crate) fn apply(state: &mut State, _cx: &Context, cmd: SetFeatureLevel) -> Result<Vec<Event>, Rejected> {
    let mut cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    if cmd.level == cluster.feature_level {
        return Ok(Vec::new());
    }
    if cmd.level < cluster.feature_level {
        let current = cluster.feature_level.to_string();
        return Err(Rejected::FeatureLevel { wanted: cmd.level.to_string(), current });
    }
    cluster.feature_level = cmd.level;
    state.set_cluster(cluster);
    Ok(vec![Event::FeatureLevelRaised { level: cmd.level }])
}
