//! Which volumes in quarantine may go, and which are to go. What was on one may be the only copy of something, so nothing
//! goes without an operator's word, and nothing that a workload or a move still needs goes with it.

use crate::id::NodeId;
use crate::model::QuarantinedVolume;
use crate::state::State;

/// Why a volume must stay, for people; none when nobody needs it.
///
/// Data are judged as a whole, by their data generation: a volume that a spec does not name at the moment belongs to its
/// workload all the same, and is mounted again as soon as the spec names it.
pub(crate) fn needed_by(state: &State, volume: &QuarantinedVolume) -> Option<String> {
    let workload = state.workload(&volume.workload)?;
    let name = &workload.name;
    if workload.data_generation == volume.data_generation && !workload.fresh_data {
        return Some(format!("it belongs to the data that workload {name} has now"));
    }
    let mv = state.running_move(&volume.workload)?;
    let is_end = [mv.source_data_generation, mv.target_generation].contains(&volume.data_generation);
    is_end.then(|| format!("it belongs to the data that move {} of workload {name} works with", mv.id))
}

/// The volumes that the node is told to remove. Each was judged when it was asked for, and is judged again here: data from
/// before moves have no generation of their own, and a workload whose data were given up may have them again.
pub fn removals<'a>(state: &'a State, node: &NodeId) -> impl Iterator<Item = &'a QuarantinedVolume> {
    let kept = state.node(node).into_iter().flat_map(|node| &node.quarantine);
    kept.filter(|kept| kept.removal_asked_at_ms.is_some() && needed_by(state, kept).is_none())
}
