//! Certificates for etcd, of the kind that our servers have: keys on P-256 and a CA that the client knows by its
//! fingerprint, so that both sides are called in the same way.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use cara_env::Env;
use cara_transport::SERVER_NAME;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use rustls::ClientConfig;

/// A CA, and one certificate for all servers of this run: they are on one machine.
pub struct EtcdTls {
    ca: PathBuf,
    /// The CA behind the leaf, as our servers send it.
    chain: PathBuf,
    key: PathBuf,
    /// For clients.
    pub client: Arc<ClientConfig>,
}

impl EtcdTls {
    /// Makes all of it and writes it into the folder.
    pub fn make(env: &Env, folder: &Path) -> anyhow::Result<Self> {
        let ca_key = KeyPair::generate()?;
        let mut ca_params = CertificateParams::default();
        ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = ca_params.self_signed(&ca_key)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = params.signed_by(&key, &Issuer::new(ca_params, ca_key))?;
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::write(&file, text).with_context(|| format!("can't write {}", file.display()))?;
            anyhow::Ok(file)
        };
        Ok(Self {
            ca: write("ca.pem", ca.pem())?,
            chain: write("chain.pem", leaf.pem() + &ca.pem())?,
            key: write("key.pem", key.serialize_pem())?,
            client: cara_transport::pinned(env, &cara_transport::fingerprint(ca.der()), true),
        })
    }

    /// What a server is started with: its certificate for clients, who bring none, and mutual TLS among the servers.
    pub fn arguments(&self) -> Vec<String> {
        let (ca, chain, key) = (self.ca.display(), self.chain.display(), self.key.display());
        vec![
            format!("--cert-file={chain}"),
            format!("--key-file={key}"),
            format!("--peer-cert-file={chain}"),
            format!("--peer-key-file={key}"),
            format!("--peer-trusted-ca-file={ca}"),
            "--peer-client-cert-auth".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use cara_transport::{Identity, Tls};

    use super::*;

    #[test]
    fn the_files_are_an_identity_as_our_servers_have_one() {
        let env = Env::real();
        let folder = tempfile::tempdir().expect("a folder");
        let made = EtcdTls::make(&env, folder.path()).expect("made");
        let read = |file: &Path| std::fs::read_to_string(file).expect("it was written");
        let identity =
            Identity { certificate_pem: read(&made.chain), key_pem: read(&made.key), ca_pem: read(&made.ca) };
        Tls::new(&env, &identity).expect("certificate, key and CA fit");
        assert_eq!(identity.certificate_pem.matches("BEGIN CERTIFICATE").count(), 2, "the CA is sent along");
        assert!(made.arguments().iter().any(|argument| *argument == format!("--key-file={}", made.key.display())));
    }
}
