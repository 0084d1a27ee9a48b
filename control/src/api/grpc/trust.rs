//! A session's part in the replacement of the CA: telling the agent whom to trust, hearing whom it trusts, and seeing to it
//! that it uses its renewed certificate.
//!
//! Level-triggered: said at the begin of each session and when it has changed; what an agent has not done yet is said again
//! with each heartbeat.

use std::time::Duration;

use cara_core::State;
use cara_proto::agent::server_frame::Frame as To;
use cara_proto::agent::{Goodbye, Trust};

use super::session::Session;

/// An agent that was told to renew gets this long, before it is told again, or sent away to come back with what it has by
/// then: it renews within ten seconds, so that not all nodes do so at once.
const RENEW_GRACE: Duration = Duration::from_secs(20);

/// What was said in this session, and when.
pub(super) struct Told {
    epoch: u64,
    renew: bool,
    at: Duration,
}

/// Has the CA that signed the session's certificate been replaced?
pub(super) enum Outlived {
    No,
    /// The node has another certificate already, and shall come back with it.
    Renewed,
    /// The agent has to be told, or told again.
    NotRenewed,
}

/// Of the session's end when the agent shall come back with its other certificate.
pub(super) fn renewed() -> Goodbye {
    let message =
        "the certificate of this session is of a CA that is being replaced; come back with the renewed one".to_owned();
    Goodbye { code: "renewed".to_owned(), message, leader: String::new() }
}

impl Session {
    /// Says whom to trust, unless that was said in this session. False when the agent is gone.
    pub(super) async fn tell_trust(&self, told: &mut Option<Told>) -> bool {
        let (ca_pem, epoch) = self.api.trusted();
        let renew = self.is_of_former_ca();
        if told.as_ref().is_some_and(|told| (told.epoch, told.renew) == (epoch, renew)) || (epoch == 0 && !renew) {
            return true;
        }
        *told = Some(Told { epoch, renew, at: self.api.env.clock.monotonic() });
        self.send(To::Trust(Trust { ca_pem, epoch, renew })).await
    }

    /// Keeps what the agent trusts, when that is news. Nobody waits for that: it says so again.
    pub(super) fn note_trust(&self, trusted: &[String]) {
        let Some(ca) = self.api.newly_trusted(&self.node, trusted) else { return };
        let (api, node) = (self.api.clone(), self.node.clone());
        drop(cara_env::spawn(async move { api.record_trust(&node, ca).await }));
    }

    fn is_of_former_ca(&self) -> bool {
        self.api.read_local(|state| self.presented_ca(state).is_some_and(|ca| ca < signing(state)))
    }

    /// What is to be done about the certificate with which the session was opened.
    pub(super) fn outlived(&self, told: &mut Option<Told>) -> Outlived {
        if !self.is_of_former_ca() {
            return Outlived::No;
        }
        if told.as_ref().is_some_and(|told| self.api.env.clock.monotonic() < told.at + RENEW_GRACE) {
            return Outlived::No;
        }
        let current = self.api.read_local(|state| {
            state.node(&self.node).and_then(|node| node.certificate.as_ref()).map(|of| of.fingerprint.clone())
        });
        if current.as_ref() == Some(&self.presented) {
            *told = None;
            return Outlived::NotRenewed;
        }
        Outlived::Renewed
    }

    /// The number of the CA that signed the certificate of this session.
    fn presented_ca(&self, state: &State) -> Option<u64> {
        let certificate = state.node(&self.node)?.certificate.as_ref()?;
        if certificate.fingerprint == self.presented {
            return Some(certificate.ca_number());
        }
        let previous = certificate.previous.as_ref().filter(|of| of.fingerprint == self.presented);
        previous.map(|of| of.ca_number())
    }
}

fn signing(state: &State) -> u64 {
    state.cluster().map_or(1, |cluster| cluster.signing_ca())
}
