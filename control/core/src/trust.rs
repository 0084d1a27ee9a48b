//! Who still holds the replacement of the CA or of the sealing key back, and why. Pure: what apply, the leader and the operator go by.

use crate::event::ObjectKind;
use crate::model::{Certificate, RotationPhase, Server};
use crate::planted::planted;
use crate::state::State;

/// What a machine still has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// It has not said that it trusts the next CA.
    Trust,
    /// Its certificate is of the CA before.
    Certificate,
    /// It has a certificate of the next CA, and was not seen using it.
    Use,
}

impl Lack {
    /// For programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Lack::Trust => "trust",
            Lack::Certificate => "certificate",
            Lack::Use => "use",
        }
    }
}

/// A machine that holds the replacement of the CA back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// Server or node.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// What it still has to do.
    pub lack: Lack,
}

impl State {
    /// Who must do something before the replacement of the CA goes on: servers first, each by id. Empty when there is none.
    pub fn held_back(&self) -> Vec<HeldBack> {
        let Some(cluster) = self.cluster() else { return Vec::new() };
        let Some(rotation) = &cluster.rotation else { return Vec::new() };
        let (phase, next) = (rotation.phase, cluster.newest_ca());
        let of = |kind: ObjectKind, name: &str, certificate: &Certificate| {
            let lack = lack(certificate, phase, next)?;
            Some(HeldBack { kind, name: name.to_owned(), lack })
        };
        let servers = self.servers().filter_map(|s| of(ObjectKind::Server, &s.name, &s.certificate));
        let nodes = self.nodes().filter_map(|node| of(ObjectKind::Node, &node.name, node.certificate.as_ref()?));
        servers.chain(nodes).collect()
    }

    /// The servers that have not said that they have the next sealing key, by id. Empty when there is none.
    pub fn lacking_next_key(&self) -> impl Iterator<Item = &Server> {
        let next = self.cluster().and_then(|cluster| cluster.next_sealing_key.as_ref());
        let next = next.filter(|_| !planted("sealed-under-a-key-that-not-all-have"));
        next.into_iter().flat_map(|next| self.servers().filter(|server| !next.is_held_by(server.id)))
    }
}

/// A revoked certificate is accepted by nobody: it lacks nothing.
fn lack(certificate: &Certificate, phase: RotationPhase, next: u64) -> Option<Lack> {
    match phase {
        _ if certificate.revoked_at_ms.is_some() => None,
        RotationPhase::Distribute if planted("next-ca-signs-before-all-trust-it") => None,
        RotationPhase::Renew if planted("ca-dropped-while-it-is-used") => None,
        RotationPhase::Distribute => (certificate.newest_trusted() < next).then_some(Lack::Trust),
        RotationPhase::Renew if certificate.ca_number() < next => Some(Lack::Certificate),
        RotationPhase::Renew => (certificate.oldest_ca() < next).then_some(Lack::Use),
    }
}
