//! What holds of the key under which secrets are sealed.

use std::collections::BTreeSet;

use super::{Found, InvariantId};
use crate::model::Cluster;
use crate::state::State;

pub(super) fn check(state: &State, found: &mut Found) {
    let Some(cluster) = state.cluster() else { return };
    let current = Some(&cluster.sealing_key).filter(|id| !id.is_empty());
    let next = cluster.next_sealing_key.as_ref().map(|next| &next.key_id);
    let mut seen = BTreeSet::new();
    let differ = current.into_iter().chain(next).chain(&cluster.former_sealing_keys).all(|id| seen.insert(id));
    found.expect(differ, InvariantId::SealingKeysDiffer, || format!("{seen:?}"));
}

/// The key changes only to the next one, once every server had said that it has it; then all that is sealed changes as well.
pub(super) fn check_step(before: &State, after: &State, found: &mut Found) {
    let (Some(old), Some(new)) = (before.cluster(), after.cluster()) else { return };
    // A cluster that never replaced its key did not know its id.
    if old.sealing_key == new.sealing_key || old.sealing_key.is_empty() {
        return;
    }
    let next = old.next_sealing_key.as_ref().filter(|next| next.key_id == new.sealing_key);
    let lacking = after.servers().filter(|server| !next.is_some_and(|next| next.is_held_by(server.id)));
    let lacking: Vec<_> = lacking.map(|server| server.name.as_str()).collect();
    found.expect(lacking.is_empty(), InvariantId::SealedByAll, || format!("without {}", lacking.join(", ")));
    let resealed = sealed(old).zip(sealed(new)).all(|(old, new)| old != new);
    let as_many = sealed(old).count() == sealed(new).count();
    found.expect(resealed && as_many, InvariantId::SealedByAll, || "a secret stayed as it was".into());
}

/// All that is sealed.
fn sealed(cluster: &Cluster) -> impl Iterator<Item = &Vec<u8>> {
    std::iter::once(&cluster.ca_key_sealed).chain(cluster.rotation.as_ref().map(|next| &next.key_sealed))
}
