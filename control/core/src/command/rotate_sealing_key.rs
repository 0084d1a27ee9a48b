//! Begins to replace the sealing key: the next one is named, and seals nothing yet. See `model/sealing.rs` for the steps.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::ServerId;
use crate::limits;
use crate::model::{Cluster, NextSealingKey};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Begins to replace the sealing key. The leader has made the next one, and has it on disk.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RotateSealingKey {
    /// The next key's id.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// Id of the key that it is to replace, by which the leader opened what is sealed.
    #[prost(string, tag = "2")]
    pub replaces: String,
    /// The server that made the key.
    #[prost(message, required, tag = "3")]
    pub server: ServerId,
    /// Another one in place of the next key that was named before, if there is one.
    #[prost(bool, tag = "4")]
    pub anew: bool,
}

impl RotateSealingKey {
    /// Whether it would be accepted now, for who must write a key down first.
    ///
    /// # Errors
    /// With what apply would refuse it for.
    pub fn check(&self, state: &State) -> Result<(), Rejected> {
        state.check_supports(Feature::Lifecycle)?;
        let cluster = state.cluster().ok_or(Rejected::NotInitialised {})?;
        super::check_hash("key_id", &self.key_id)?;
        super::check_hash("replaces", &self.replaces)?;
        if state.server(self.server).is_none() {
            return Err(Rejected::UnknownServer { server: self.server.to_string() });
        }
        super::check_sealed_under(&cluster.sealing_key, &self.replaces)?;
        if cluster.next_sealing_key.is_some() && !self.anew {
            return Err(Rejected::SealingRotationRunning {});
        }
        let next = cluster.next_sealing_key.as_ref().map(|next| &next.key_id);
        let mut known = [&self.replaces].into_iter().chain(next).chain(&cluster.former_sealing_keys);
        if known.any(|known| *known == self.key_id) {
            return Err(Problem::new("key_id", "is of a key that was named before").into());
        }
        Ok(())
    }
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RotateSealingKey) -> Result<Vec<Event>, Rejected> {
    cmd.check(state)?;
    let mut cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    if let Some(given_up) = cluster.next_sealing_key.take() {
        former(&mut cluster, given_up.key_id);
    }
    let event = Event::SealingRotationStarted { key: cmd.key_id.clone() };
    let next = NextSealingKey { key_id: cmd.key_id, holders: vec![cmd.server], started_at_ms: cx.at_ms };
    state.set_cluster(Cluster { sealing_key: cmd.replaces, next_sealing_key: Some(next), ..cluster });
    Ok(vec![event])
}

/// A key that nothing is sealed under any more: servers forget it.
pub(super) fn former(cluster: &mut Cluster, key_id: String) {
    cluster.former_sealing_keys.insert(0, key_id);
    cluster.former_sealing_keys.truncate(limits::FORMER_SEALING_KEYS_MAX);
}
