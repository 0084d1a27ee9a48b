//! Who is at the other end of a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

/// SHA-256 of a DER certificate, lowercase hex.
pub fn fingerprint(der: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, der);
    hex::encode(digest)
}

/// What a certificate allows its holder to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A raft member, by its id.
    Server(u64),
    /// A node's agent, by the node's id.
    Node(String),
}

/// The verified holder of a certificate of the cluster's CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The cluster that the certificate belongs to.
    pub cluster: String,
    /// What it may be.
    pub role: Role,
    /// SHA-256 of the certificate, hex.
    pub fingerprint: String,
}

impl Peer {
    /// The URI name that a certificate carries for `role`.
    pub fn uri(cluster: &str, role: &Role) -> String {
        match role {
            Role::Server(id) => format!("cara://{cluster}/server/{id}"),
            Role::Node(id) => format!("cara://{cluster}/node/{id}"),
        }
    }

    /// Reads the identity from a certificate that TLS has verified; none when it carries no such name.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        parsed.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => names.general_names.iter().find_map(|name| match name {
                GeneralName::URI(uri) => Self::parse(uri, certificate),
                _ => None,
            }),
            _ => None,
        })
    }

    fn parse(uri: &str, certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut parts = uri.strip_prefix("cara://")?.splitn(3, '/');
        let (cluster, role, id) = (parts.next()?, parts.next()?, parts.next()?);
        let role = match role {
            "server" => Role::Server(id.parse().ok()?),
            "node" => Role::Node(id.to_owned()),
            _ => return None,
        };
        Some(Self { cluster: cluster.to_owned(), role, fingerprint: fingerprint(certificate) })
    }
}

/// Attached to each request as an extension.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who it is, when the connection has a client certificate.
    pub peer: Option<Peer>,
    /// Address of the other end, `host:port`.
    pub address: String,
}

impl Caller {
    /// What counts as one source, for bounds.
    pub fn source(&self) -> String {
        source_of(&self.address)
    }
}

/// What counts as one source, for bounds: an address, or the /64 of an IPv6 address, because one machine has a whole one.
pub fn source_of(address: &str) -> String {
    match address.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.to_string(),
        Ok(IpAddr::V6(ip)) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        Err(_) => address.to_owned(),
    }
}

/// Attached to each request as an extension: whether the connection below it was given up because the other end answered
/// no ping. A stream that breaks looks the same from inside, whether a process died or a machine stands still; this tells
/// the two apart.
#[derive(Debug, Clone, Default)]
pub struct Unanswered(Arc<AtomicBool>);

impl Unanswered {
    /// True once the connection was given up for that reason.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_address_without_its_port() {
        assert_eq!(source_of("10.0.0.7:55123"), "10.0.0.7");
        assert_eq!(source_of("[::ffff:10.0.0.7]:55123"), "10.0.0.7");
        assert_eq!(source_of("[2001:db8:1:2:3:4:5:6]:443"), "2001:db8:1:2::/64");
        assert_eq!(source_of("[2001:db8:1:2:ffff::1]:9"), source_of("[2001:db8:1:2::8]:1"));
        assert_eq!(source_of("somewhere"), "somewhere");
    }
}
