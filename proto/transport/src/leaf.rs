//! A machine's own certificate, read: until when it is good, and when the next one is due.

use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer as _;

/// What is asked of one's own certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leaf {
    /// SHA-256 of the DER, hex.
    pub fingerprint: String,
    /// Begin of validity, in ms since 1970.
    pub from_ms: u64,
    /// End of validity, in ms since 1970.
    pub until_ms: u64,
}

impl Leaf {
    /// Reads the first certificate of a PEM text.
    ///
    /// # Errors
    /// Says what it is not.
    pub fn of(pem: &str) -> Result<Self, String> {
        let der =
            CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| "the certificate is not PEM".to_owned())?;
        let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(&der).map_err(|e| e.to_string())?;
        let ms = |seconds: i64| u64::try_from(seconds).unwrap_or_default().saturating_mul(1000);
        let validity = parsed.validity();
        Ok(Self {
            fingerprint: crate::fingerprint(&der),
            from_ms: ms(validity.not_before.timestamp()),
            until_ms: ms(validity.not_after.timestamp()),
        })
    }

    /// Is it valid at this moment?
    pub fn is_valid(&self, now_ms: u64) -> bool {
        (self.from_ms..self.until_ms).contains(&now_ms)
    }

    /// How long until two thirds of its life have passed, and up to a twentieth more: `jitter` in thousandths of that, so
    /// that machines which were set up together don't renew together.
    pub fn due_in(&self, jitter: u64, now_ms: u64) -> Duration {
        let life = self.until_ms.saturating_sub(self.from_ms);
        let due = self.from_ms + life / 3 * 2 + life / 20_000 * jitter;
        Duration::from_millis(due.saturating_sub(now_ms))
    }

    /// How long its whole life is.
    pub fn life(&self) -> Duration {
        Duration::from_millis(self.until_ms.saturating_sub(self.from_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_after_two_thirds_of_life_and_up_to_a_twentieth_more() {
        let leaf = Leaf { from_ms: 1_000_000, until_ms: 91_000_000, ..Leaf::default() };
        assert_eq!(leaf.due_in(0, 1_000_000), Duration::from_secs(60_000));
        assert_eq!(leaf.due_in(1000, 1_000_000), Duration::from_secs(64_500));
        assert_eq!(leaf.due_in(0, 61_000_000), Duration::ZERO);
        assert_eq!(leaf.due_in(0, 70_000_000), Duration::ZERO);
        assert_eq!(leaf.due_in(1000, 99_000_000), Duration::ZERO);
        assert!(leaf.is_valid(1_000_000) && !leaf.is_valid(999_999) && !leaf.is_valid(91_000_000));
    }
}
