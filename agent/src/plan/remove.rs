//! Volumes in quarantine that an operator has given up: the one reason for which a managed volume goes that may have run.
//!
//! The servers have checked that nobody needs it. Here it is checked again, against what this node was given and what exists
//! on it; and the engine refuses what any container mounts, ours or not.

use std::time::Duration;

use cara_proto::agent::VolumeRemoval;
use cara_proto::workload::Assignment;

use super::{Action, Step, wake};
use crate::observed::{Footprint, StoredVolume};
use crate::tracker::Tracker;

/// Adds the removal of those volumes of a workload that were given up and that nothing here needs.
pub(super) fn given_up(
    removals: &[VolumeRemoval],
    assignment: Option<&Assignment>,
    (uid, footprint): (&str, &Footprint),
    tracker: &Tracker,
    now: Duration,
    list: &mut Vec<Action>,
    wake_at: &mut Option<Duration>,
) {
    let asked = |volume: &&StoredVolume| removals.iter().any(|removal| is_meant(removal, uid, volume));
    let unneeded = |volume: &&StoredVolume| !is_needed(volume, assignment, footprint);
    for volume in footprint.managed_volumes().filter(asked).filter(unneeded) {
        let part = part(&volume.name);
        let not_before = tracker.not_before(uid, &part);
        if not_before > now {
            wake(wake_at, not_before);
        } else {
            list.push(Action { service: part, step: Step::RemoveVolume(volume.name.clone()) });
        }
    }
}

/// Exactly this one, in every word.
fn is_meant(removal: &VolumeRemoval, uid: &str, volume: &StoredVolume) -> bool {
    removal.engine_name == volume.name
        && removal.uid == uid
        && removal.volume == volume.volume
        && removal.data_generation == volume.data_generation
}

/// Does this node's own role, an end of a move included, work with these data, or may a container still mount them?
fn is_needed(volume: &StoredVolume, assignment: Option<&Assignment>, footprint: &Footprint) -> bool {
    let data = assignment.iter().flat_map(|assignment| {
        let transfer = assignment.transfer.iter().flat_map(|t| [t.from_data_generation, t.to_data_generation]);
        transfer.chain([assignment.data_generation])
    });
    data.into_iter().any(|data| data == volume.data_generation) || has_left_over(assignment, footprint)
}

/// Are there containers of another grant than the present one? They may mount any volume of the workload; one that was made
/// for the present grant mounts that grant's data and no other.
pub(crate) fn has_left_over(assignment: Option<&Assignment>, footprint: &Footprint) -> bool {
    let current = assignment.map(|assignment| assignment.generation);
    footprint.containers.iter().any(|held| Some(held.generation) != current)
}

/// What the tracker calls it. No service has such a name: a volume that can't be removed is no trouble of the workload.
fn part(volume: &str) -> String {
    format!("volume {volume}")
}
