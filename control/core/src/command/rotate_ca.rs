//! Begins to replace the CA: the next one is told to everyone, and signs nothing yet. See `model/ca.rs` for the steps.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::model::{CaRotation, Cluster, RotationPhase};
use crate::rejected::Rejected;
use crate::state::State;

/// Begins to replace the CA. The leader has made the next one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RotateCa {
    /// Its certificate, PEM.
    #[prost(string, tag = "1")]
    pub certificate_pem: String,
    /// Its private key, sealed.
    #[prost(bytes = "vec", tag = "2")]
    pub key_sealed: Vec<u8>,
    /// Its name and key, signed by the CA before, PEM.
    #[prost(string, tag = "3")]
    pub cross_pem: String,
    /// The number of the CA that it is to replace.
    #[prost(uint64, tag = "4")]
    pub expect_ca: u64,
    /// Id of the key under which its private key is sealed; empty = the one that was made with the cluster.
    #[prost(string, tag = "5")]
    pub sealing_key: String,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RotateCa) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let cluster = state.cluster().cloned().ok_or(Rejected::NotInitialised {})?;
    if let Some(rotation) = &cluster.rotation {
        return Err(Rejected::CaRotationRunning { phase: rotation.phase.to_string() });
    }
    if cmd.expect_ca != cluster.ca_number() {
        let (given, current) = (cmd.expect_ca.to_string(), cluster.ca_number().to_string());
        return Err(Rejected::StaleCa { given, current });
    }
    // If all was sealed anew since, this key would open with one that the servers forget.
    super::check_sealed_under(&cluster.sealing_key, &cmd.sealing_key)?;
    super::check_ca_pem("certificate_pem", &cmd.certificate_pem)?;
    super::check_ca_pem("cross_pem", &cmd.cross_pem)?;
    super::check_sealed("key_sealed", &cmd.key_sealed)?;
    let event = Event::CaRotationStarted { ca: cluster.ca_number() + 1 };
    let rotation = Some(CaRotation {
        certificate_pem: cmd.certificate_pem,
        key_sealed: cmd.key_sealed,
        cross_pem: cmd.cross_pem,
        phase: RotationPhase::Distribute,
        started_at_ms: cx.at_ms,
    });
    state.set_cluster(Cluster { rotation, trust_epoch: cluster.trust_epoch + 1, ..cluster });
    Ok(vec![event])
}
