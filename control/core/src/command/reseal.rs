//! All secrets, sealed under the next key, once every server has it: the last step of replacing the sealing key.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::model::Cluster;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Replaces all that is sealed by the same, sealed under the next key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Reseal {
    /// Id of the key under which it is sealed now.
    #[prost(string, tag = "1")]
    pub key_id: String,
    /// The trust epoch in which the CAs' keys were read: a step of the CA's replacement has other ones.
    #[prost(uint64, tag = "2")]
    pub expect_epoch: u64,
    /// The CA's private key.
    #[prost(bytes = "vec", tag = "3")]
    pub ca_key_sealed: Vec<u8>,
    /// That of the next CA; empty when there is none.
    #[prost(bytes = "vec", tag = "4")]
    pub next_ca_key_sealed: Vec<u8>,
}

pub(crate) fn apply(state: &mut State, _: &Context, cmd: Reseal) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let mut cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    super::check_next_key(&mut cluster, &cmd.key_id)?;
    if cmd.expect_epoch != cluster.trust_epoch {
        let (given, current) = (cmd.expect_epoch.to_string(), cluster.trust_epoch.to_string());
        return Err(Rejected::StaleRotation { given, current });
    }
    let lacking: Vec<_> = state.lacking_next_key().map(|server| server.name.clone()).collect();
    if !lacking.is_empty() {
        return Err(Rejected::SealingHeldBack { who: lacking.join(", ") });
    }
    super::check_sealed("ca_key_sealed", &cmd.ca_key_sealed)?;
    match &mut cluster.rotation {
        Some(next) => {
            super::check_sealed("next_ca_key_sealed", &cmd.next_ca_key_sealed)?;
            next.key_sealed = cmd.next_ca_key_sealed;
        }
        None if cmd.next_ca_key_sealed.is_empty() => {}
        None => return Err(Problem::new("next_ca_key_sealed", "there is no next CA").into()),
    }
    let old = std::mem::replace(&mut cluster.sealing_key, cmd.key_id);
    super::rotate_sealing_key::former(&mut cluster, old);
    let event = Event::SealingKeyRotated { key: cluster.sealing_key.clone() };
    state.set_cluster(Cluster { ca_key_sealed: cmd.ca_key_sealed, next_sealing_key: None, ..cluster });
    Ok(vec![event])
}
