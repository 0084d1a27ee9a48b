//! Lets newer commands in, once all servers support them. Only rises. The leader asks for it by itself (`reconcile`).

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
    // A server that has announced nothing is not judged: logs from before announcements mean what they meant.
    if let Some(behind) = state.servers().find(|s| s.feature_level != 0 && s.feature_level < cmd.level) {
        return Err(Rejected::FeatureHeldBack {
            wanted: cmd.level.to_string(),
            server: behind.name.clone(),
            supports: behind.feature_level.to_string(),
        });
    }
    cluster.feature_level = cmd.level;
    state.set_cluster(cluster);
    Ok(vec![Event::FeatureLevelRaised { level: cmd.level }])
}
