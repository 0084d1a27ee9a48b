//! Raises the cluster's feature level once every server, voter or learner, has announced a higher one.
//!
//! Never above what this leader supports itself: its own record may still be of the release that ran there before.

use super::{Decision, Settings};
use crate::command::SetFeatureLevel;
use crate::state::State;

pub(super) fn decide(state: &State, settings: &Settings, decision: &mut Decision) {
    let Some(cluster) = state.cluster() else { return };
    let level = state.common_level().min(settings.feature_level_max);
    if level <= cluster.feature_level {
        return;
    }
    let (count, now) = (state.servers().count(), cluster.feature_level);
    decision.reasons.push(format!("all {count} servers support feature level {level}, the cluster is at {now}"));
    decision.commands.push(SetFeatureLevel { level }.into());
}
