//! The cluster's certificate authorities (CAs): the one that signs, the one that is about to, and those before.
//!
//! ```text
//!                    RotateCa              AdvanceCa                    AdvanceCa
//!        stable ───────────────► distribute ─────────► renew ───────────────────────► stable, one number higher
//! signs     n                        n                  n+1                              n+1
//! trusted  {n}                    {n, n+1}           {n, n+1}                           {n+1}
//! goes on when           every server and node   no certificate that is
//!                        has said that it        accepted is of n any
//!                        trusts n+1              more
//! ```
//! A machine's word that it trusts n+1 is recorded with its certificate (`Certificate::trusts`), and it has written that
//! down before. So at each step everybody trusts the CA of everybody else's certificates; what holds a step back is a list
//! of names (`State::held_back`). Nodes whose certificate is revoked talk to nobody and hold nothing back.
//!
//! The next CA is signed by the one before as well (`cross_pem`). Servers send that along, so that a client that has
//! pinned the CA before finds its way to the new one; for the last three CAs.

use super::Cluster;
use crate::wire::wire_enum;

/// A CA that is about to take over.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CaRotation {
    /// The next CA's certificate, PEM.
    #[prost(string, tag = "1")]
    pub certificate_pem: String,
    /// Its private key, sealed as that of the cluster's CA.
    #[prost(bytes = "vec", tag = "2")]
    pub key_sealed: Vec<u8>,
    /// The next CA's name and key, signed by the CA before, PEM.
    #[prost(string, tag = "3")]
    pub cross_pem: String,
    /// How far it is.
    #[prost(message, required, tag = "4")]
    pub phase: RotationPhase,
    /// In ms since 1970, the entry's time.
    #[prost(uint64, tag = "5")]
    pub started_at_ms: u64,
}

/// A CA that signs no more, for clients that still pin it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct FormerCa {
    /// Its certificate, PEM.
    #[prost(string, tag = "1")]
    pub certificate_pem: String,
    /// The CA after it, signed by it, PEM.
    #[prost(string, tag = "2")]
    pub cross_pem: String,
}

wire_enum! {
    /// How far the replacement of the CA is.
    RotationPhase {
        /// The next CA is told to everyone; the one before still signs.
        1 => Distribute "distribute",
        /// The next CA signs; certificates of the one before are replaced.
        2 => Renew "renew",
    }
}

impl Cluster {
    /// The number of the CA that `ca_cert_pem` is of.
    pub fn ca_number(&self) -> u64 {
        self.ca.max(1)
    }

    /// The number of the newest CA that is trusted.
    pub fn newest_ca(&self) -> u64 {
        self.ca_number() + u64::from(self.rotation.is_some())
    }

    /// The number of the CA that signs.
    pub fn signing_ca(&self) -> u64 {
        self.ca_number() + u64::from(self.next_signs())
    }

    /// Certificate and sealed key of the CA that signs.
    pub fn signing(&self) -> (&str, &[u8]) {
        match &self.rotation {
            Some(next) if self.next_signs() => (&next.certificate_pem, &next.key_sealed),
            Some(_) | None => (&self.ca_cert_pem, &self.ca_key_sealed),
        }
    }

    fn next_signs(&self) -> bool {
        self.rotation.as_ref().is_some_and(|next| next.phase == RotationPhase::Renew)
    }

    /// The certificates of all CAs that are trusted now, PEM, the oldest first.
    pub fn bundle_pem(&self) -> String {
        let next = self.rotation.as_ref().map(|next| next.certificate_pem.as_str());
        join_pem(std::iter::once(self.ca_cert_pem.as_str()).chain(next))
    }

    /// What servers send along beside the trusted CAs: the way from each CA that may still be pinned to the one that signs.
    pub fn chain_pem(&self) -> String {
        let cross = self.rotation.as_ref().map(|next| next.cross_pem.as_str());
        let former = self.former_cas.iter().flat_map(|ca| [ca.cross_pem.as_str(), ca.certificate_pem.as_str()]);
        join_pem(cross.into_iter().chain(former))
    }
}

/// One after the other, each on lines of its own.
fn join_pem<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.map(|part| format!("{}\n", part.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(phase: Option<RotationPhase>) -> Cluster {
        let rotation = phase.map(|phase| CaRotation {
            certificate_pem: "new".into(),
            key_sealed: vec![2],
            cross_pem: "cross".into(),
            phase,
            started_at_ms: 1,
        });
        let former_cas = vec![FormerCa { certificate_pem: "older".into(), cross_pem: "cross before".into() }];
        Cluster {
            ca_cert_pem: "old\n".into(),
            ca_key_sealed: vec![1],
            ca: 2,
            rotation,
            former_cas,
            ..Cluster::default()
        }
    }

    #[test]
    fn the_next_ca_is_trusted_before_it_signs() {
        let stable = cluster(None);
        assert_eq!((stable.newest_ca(), stable.signing_ca(), stable.signing()), (2, 2, ("old\n", &[1][..])));
        assert_eq!((stable.bundle_pem().as_str(), stable.chain_pem().as_str()), ("old\n", "cross before\nolder\n"));
        let told = cluster(Some(RotationPhase::Distribute));
        assert_eq!((told.newest_ca(), told.signing_ca(), told.signing().0), (3, 2, "old\n"));
        assert_eq!(told.bundle_pem(), "old\nnew\n");
        let renewing = cluster(Some(RotationPhase::Renew));
        assert_eq!((renewing.newest_ca(), renewing.signing_ca(), renewing.signing()), (3, 3, ("new", &[2][..])));
        assert_eq!(renewing.chain_pem(), "cross\ncross before\nolder\n");
        assert_eq!(Cluster::default().ca_number(), 1, "a cluster of a release that did not count them");
    }
}
