//! The cluster's certificates: making the CA, sealing its key, signing servers and agents.
//!
//! The CA's private key lives in replicated state, sealed with ChaCha20-Poly1305 under a key file that every server
//! holds; it is opened only for the moment of a signature. Private keys of servers and agents never leave their machine:
//! they send a certificate signing request, of which only the public key counts.
//!
//! Invariant: nothing here decides who may get a certificate; the state machine does, and a certificate that it hasn't
//! recorded is worth nothing.

use std::time::Duration;

use cara_env::{Env, Rng};
use cara_transport::{Peer, Role, SERVER_NAME, fingerprint};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use x509_parser::prelude::FromDer as _;

use crate::identity::to_hex;
use crate::wire::millis;

/// Bytes of the sealing key.
pub const SEALING_KEY_LEN: usize = 32;
const NONCE_LEN: usize = 12;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Leaf certificates live this long; machines renew them at two thirds.
pub const LEAF_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The CA lives this long; replacing it is an operation of its own.
const CA_DAYS: u32 = 3650;
/// Certificates begin this long ago, or a tenth of their life, for machines whose clocks lag.
pub(crate) const BACKDATE: Duration = Duration::from_secs(60 * 60);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The request is not a valid CSR, or its key is of a kind that we refuse.
    #[error("the certificate signing request can't be used: {0}")]
    Csr(String),
    /// The sealed CA key does not open.
    #[error("the CA key can't be opened: this server's sealing key is not the cluster's")]
    Unseal,
    /// The CA certificate or key is not what it should be.
    #[error("the CA can't sign")]
    Ca(#[source] rcgen::Error),
}

/// A signed certificate and what the cluster records of it.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate, PEM.
    pub pem: String,
    /// SHA-256 of the DER, hex.
    pub fingerprint: String,
    /// Serial number, hex.
    pub serial: String,
    /// End of validity.
    pub not_after_ms: u64,
    /// SHA-256 of the public key (SPKI), hex.
    pub key_hash: String,
    /// The number of the CA that signed it.
    pub ca: u64,
    /// The number of the newest CA that the holder is given to trust.
    pub trusts: u64,
}

/// A new CA: certificate and private key, PEM.
pub struct NewCa {
    /// Public.
    pub certificate_pem: String,
    /// To be sealed at once.
    pub key_pem: String,
}

/// The CA that is to follow: certificate, private key, and its name and key signed by the one before; PEM.
pub struct NextCa {
    /// Public.
    pub certificate_pem: String,
    /// To be sealed at once.
    pub key_pem: String,
    /// Public.
    pub cross_pem: String,
}

/// Makes a CA for a new cluster.
pub fn new_ca(env: &Env, cluster_id: &str) -> Result<NewCa, PkiError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::Ca)?;
    let params = ca_params(env, &format!("Caravanserai CA {cluster_id}"));
    let certificate = params.self_signed(&key).map_err(PkiError::Ca)?;
    Ok(NewCa { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
}

fn ca_params(env: &Env, name: &str) -> CertificateParams {
    let mut params = params(env, name, DAY * CA_DAYS);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A key pair and a signing request for it. The key is PEM, the request DER.
pub fn new_request() -> Result<(String, Vec<u8>), PkiError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::Ca)?;
    let csr = CertificateParams::default().serialize_request(&key).map_err(PkiError::Ca)?;
    Ok((key.serialize_pem(), csr.der().to_vec()))
}

/// The signing request for a key that was made before (PEM), with the key.
pub fn request_for(key_pem: &str) -> Result<(String, Vec<u8>), PkiError> {
    let key = KeyPair::from_pem(key_pem).map_err(PkiError::Ca)?;
    let csr = CertificateParams::default().serialize_request(&key).map_err(PkiError::Ca)?;
    Ok((key_pem.to_owned(), csr.der().to_vec()))
}

/// Seals a secret under the servers' key.
pub fn seal(rng: &dyn Rng, sealing_key: &[u8; SEALING_KEY_LEN], secret: &[u8]) -> Vec<u8> {
    let mut nonce = [0; NONCE_LEN];
    rng.fill(&mut nonce);
    let cipher = ChaCha20Poly1305::new(Key::from_slice(sealing_key));
    let sealed = cipher.encrypt(Nonce::from_slice(&nonce), secret).expect("a key of a few hundred bytes can be sealed");
    [nonce.as_slice(), &sealed].concat()
}

/// Opens what [`seal`] made.
pub fn unseal(sealing_key: &[u8; SEALING_KEY_LEN], sealed: &[u8]) -> Result<Vec<u8>, PkiError> {
    let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or(PkiError::Unseal)?;
    let cipher = ChaCha20Poly1305::new(Key::from_slice(sealing_key));
    cipher.decrypt(Nonce::from_slice(nonce), body).map_err(|_| PkiError::Unseal)
}

/// The opened CA, ready to sign.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    cluster_id: String,
    number: u64,
    newest: u64,
    server_life: Duration,
}

impl Ca {
    /// Opens the sealed key.
    pub fn open(
        cluster_id: &str,
        certificate_pem: &str,
        sealed_key: &[u8],
        sealing_key: &[u8; SEALING_KEY_LEN],
    ) -> Result<Self, PkiError> {
        let key_pem = String::from_utf8(unseal(sealing_key, sealed_key)?).map_err(|_| PkiError::Unseal)?;
        let key = KeyPair::from_pem(&key_pem).map_err(PkiError::Ca)?;
        let issuer = Issuer::from_ca_cert_pem(certificate_pem, key).map_err(PkiError::Ca)?;
        let cluster_id = cluster_id.to_owned();
        Ok(Self { issuer, cluster_id, number: 0, newest: 0, server_life: LEAF_LIFE })
    }

    /// Counts CAs: the number of this one, and of the newest that machines are given to trust.
    #[must_use]
    pub fn numbered(mut self, number: u64, newest: u64) -> Self {
        (self.number, self.newest) = (number, newest);
        self
    }

    /// Servers' certificates live this long instead of [`LEAF_LIFE`].
    #[must_use]
    pub fn with_server_life(mut self, life: Duration) -> Self {
        self.server_life = life;
        self
    }

    /// Makes the CA that is to follow this one, and signs it for those who know only this one.
    ///
    /// # Errors
    /// When it can't be signed.
    pub fn next(&self, env: &Env, number: u64) -> Result<NextCa, PkiError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::Ca)?;
        let name = format!("Caravanserai CA {} {number}", self.cluster_id);
        let certificate = ca_params(env, &name).self_signed(&key).map_err(PkiError::Ca)?;
        let cross = ca_params(env, &name).signed_by(&key, &self.issuer).map_err(PkiError::Ca)?;
        Ok(NextCa { certificate_pem: certificate.pem(), key_pem: key.serialize_pem(), cross_pem: cross.pem() })
    }

    /// Signs a certificate for `role`. Servers may serve and dial, and carry `addresses` (hosts without port); agents
    /// may only dial.
    ///
    /// # Errors
    /// When the request isn't valid, isn't signed by its own key, or its key is not ECDSA or Ed25519.
    pub fn issue(&self, env: &Env, role: &Role, csr: &[u8], addresses: &[String]) -> Result<Issued, PkiError> {
        let life = if matches!(role, Role::Server(_)) { self.server_life } else { LEAF_LIFE };
        self.issue_for(env, role, csr, addresses, life)
    }

    /// As [`Ca::issue`], with another life than the usual one.
    ///
    /// # Errors
    /// As there.
    pub fn issue_for(
        &self,
        env: &Env,
        role: &Role,
        csr: &[u8],
        addresses: &[String],
        life: Duration,
    ) -> Result<Issued, PkiError> {
        let csr = CertificateSigningRequestParams::from_der(&csr.into()).map_err(|e| PkiError::Csr(e.to_string()))?;
        // Of the request only the public key is taken; names and usages are ours to give.
        let mut params = params(env, &Peer::uri(&self.cluster_id, role), life);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let uri = Peer::uri(&self.cluster_id, role).try_into().map_err(PkiError::Ca)?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        if matches!(role, Role::Server(_)) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
            for name in std::iter::once(SERVER_NAME).chain(addresses.iter().map(String::as_str)) {
                params.subject_alt_names.push(match name.parse() {
                    Ok(ip) => SanType::IpAddress(ip),
                    Err(_) => SanType::DnsName(name.try_into().map_err(PkiError::Ca)?),
                });
            }
        }
        let serial = params.serial_number.as_ref().map(|s| to_hex(s.as_ref())).unwrap_or_default();
        let not_after_ms = env.clock.wall_ms() + millis(life);
        let certificate = params.signed_by(&csr.public_key, &self.issuer).map_err(PkiError::Ca)?;
        Ok(Issued {
            pem: certificate.pem(),
            fingerprint: fingerprint(certificate.der()),
            serial,
            not_after_ms,
            key_hash: key_hash(certificate.der())?,
            ca: self.number,
            trusts: self.newest,
        })
    }
}

/// SHA-256 of a certificate's public key, hex.
fn key_hash(certificate: &[u8]) -> Result<String, PkiError> {
    let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(certificate)
        .map_err(|error| PkiError::Csr(error.to_string()))?;
    Ok(fingerprint(parsed.public_key().raw))
}

/// What all certificates share: a name, a random serial, a period that begins a little in the past.
fn params(env: &Env, name: &str, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = env.clock.wall_ms();
    params.not_before = at(now.saturating_sub(millis(BACKDATE.min(life / 10))));
    params.not_after = at(now + millis(life));
    let mut serial = [0; 16];
    env.rng.fill(&mut serial);
    serial[0] &= 0x7f; // A serial number is positive.
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params
}

fn at(ms: u64) -> time::OffsetDateTime {
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca(env: &Env, sealing_key: &[u8; 32]) -> (Ca, NewCa) {
        let new = new_ca(env, "c1").unwrap();
        let sealed = seal(&*env.rng, sealing_key, new.key_pem.as_bytes());
        (Ca::open("c1", &new.certificate_pem, &sealed, sealing_key).unwrap(), new)
    }

    #[test]
    fn a_signed_server_certificate_names_its_holder_and_its_key() {
        let env = Env::real();
        let (ca, _) = ca(&env, &[7; 32]);
        let (_, csr) = new_request().unwrap();
        let issued = ca.issue(&env, &Role::Server(3), &csr, &["10.0.0.3".into(), "s3.lan".into()]).unwrap();
        let again = ca.issue(&env, &Role::Server(3), &csr, &[]).unwrap();
        assert_eq!(issued.key_hash, again.key_hash, "the same key has the same hash");
        assert_ne!(issued.fingerprint, again.fingerprint, "each certificate has its own serial");
    }

    #[test]
    fn another_sealing_key_does_not_open_the_ca() {
        let env = Env::real();
        let sealed = seal(&*env.rng, &[7; 32], b"secret");
        assert!(matches!(unseal(&[8; 32], &sealed), Err(PkiError::Unseal)));
        assert!(matches!(unseal(&[7; 32], &sealed[..5]), Err(PkiError::Unseal)));
    }

    #[test]
    fn rubbish_is_no_signing_request() {
        let env = Env::real();
        let (ca, _) = ca(&env, &[7; 32]);
        assert!(matches!(ca.issue(&env, &Role::Node("nd_1".into()), b"rubbish", &[]), Err(PkiError::Csr(_))));
    }
}
