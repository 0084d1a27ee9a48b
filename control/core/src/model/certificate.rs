//! A leaf certificate as the cluster records it. A certificate that was signed but is not recorded is never trusted.

use crate::id::Generation;

/// The record of a node's or a server's certificate.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Certificate {
    /// SHA-256 of the DER, lowercase hex.
    #[prost(string, tag = "1")]
    pub fingerprint: String,
    /// Lowercase hex.
    #[prost(string, tag = "2")]
    pub serial: String,
    /// In ms since 1970.
    #[prost(uint64, tag = "3")]
    pub not_after_ms: u64,
    /// Rises with each renewal and each enrolment again. Set by apply.
    #[prost(message, required, tag = "4")]
    pub generation: Generation,
    /// SHA-256 of the public key's SPKI, lowercase hex. A retry by the same key gets the same certificate.
    #[prost(string, tag = "5")]
    pub key_hash: String,
    /// The certificate itself, PEM; public.
    #[prost(string, tag = "6")]
    pub pem: String,
    /// The one before, until the current one was seen in use. Set by apply.
    #[prost(message, optional, tag = "7")]
    pub previous: Option<Previous>,
    /// In ms since 1970; leaves only by enrolling again. Set by apply.
    #[prost(uint64, optional, tag = "8")]
    pub revoked_at_ms: Option<u64>,
    /// The number of the CA that signed it; 0 = the first.
    #[prost(uint64, tag = "12")]
    pub ca: u64,
    /// The newest CA of which its holder has said that it trusts it; 0 = the first. It has written that down before.
    #[prost(uint64, tag = "13")]
    pub trusts: u64,
}

/// The certificate before the current one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Previous {
    /// SHA-256 of the DER, lowercase hex.
    #[prost(string, tag = "1")]
    pub fingerprint: String,
    /// Its own end of life, in ms since 1970: nobody is locked out by a renewal whose answer was lost.
    #[prost(uint64, tag = "2")]
    pub valid_until_ms: u64,
    /// The number of the CA that signed it; 0 = the first.
    #[prost(uint64, tag = "5")]
    pub ca: u64,
}

impl Previous {
    /// The number of the CA that signed it.
    pub fn ca_number(&self) -> u64 {
        self.ca.max(1)
    }
}

impl Certificate {
    /// The number of the CA that signed it.
    pub fn ca_number(&self) -> u64 {
        self.ca.max(1)
    }

    /// The number of the newest CA that its holder trusts.
    pub fn newest_trusted(&self) -> u64 {
        self.trusts.max(1)
    }

    /// The oldest CA that signed a certificate which is still accepted here.
    pub fn oldest_ca(&self) -> u64 {
        self.previous.as_ref().map_or(self.ca_number(), |previous| previous.ca_number().min(self.ca_number()))
    }

    /// True when a connection that presents `fingerprint` is accepted at `at_ms`: not revoked, and either the current
    /// one or the one before that is still alive. Expiry of the current one is the handshake's to judge.
    pub fn accepts(&self, fingerprint: &str, at_ms: u64) -> bool {
        if self.revoked_at_ms.is_some() {
            return false;
        }
        let previous = self.previous.as_ref();
        self.fingerprint == fingerprint
            || previous.is_some_and(|p| p.fingerprint == fingerprint && at_ms < p.valid_until_ms)
    }
}
