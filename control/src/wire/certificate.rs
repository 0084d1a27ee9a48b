//! A node's certificate as the API shows it, and whether somebody else has a copy of it.

use std::time::Duration;

use cara_core::model::{Certificate, Node};
use cara_proto::rest::{CertificateView, Condition};

use super::rfc3339;
use crate::config::Config;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// A clone that has not been seen for so long is gone: one that runs asks every minute, and is noted every ten.
const CLONE_SHOWN_MS: u64 = 60 * 60 * 1000;

/// From when on the end of a certificate is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Warnings {
    /// With less left it is `expiring`.
    pub expiring: Duration,
    /// With less left it is `critical`.
    pub critical: Duration,
}

impl Warnings {
    /// As the server is set.
    pub fn of(config: &Config) -> Self {
        Self { expiring: config.certificate_warning, critical: config.certificate_critical }
    }
}

/// State, days left, and what tells it from others.
pub fn certificate_view(certificate: &Certificate, warnings: Warnings, now_ms: u64) -> CertificateView {
    let left_ms = i64::try_from(certificate.not_after_ms).unwrap_or(i64::MAX) - i64::try_from(now_ms).unwrap_or(0);
    CertificateView {
        state: state_of(certificate, warnings, left_ms).into(),
        days_remaining: left_ms.div_euclid(DAY_MS),
        not_after: rfc3339(certificate.not_after_ms),
        generation: certificate.generation.0,
        fingerprint: certificate.fingerprint.clone(),
    }
}

fn state_of(certificate: &Certificate, warnings: Warnings, left_ms: i64) -> &'static str {
    let within = |limit: Duration| left_ms <= i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    match certificate.revoked_at_ms {
        Some(_) => "revoked",
        None if certificate.not_after_ms == 0 => "unknown",
        None if left_ms <= 0 => "expired",
        None if within(warnings.critical) => "critical",
        None if within(warnings.expiring) => "expiring",
        None => "ok",
    }
}

/// A condition while a second machine with a copy of the node's identity is about.
pub fn identity_condition(node: &Node, now_ms: u64) -> Option<Condition> {
    let seen = node.clone_seen.as_ref().filter(|seen| now_ms.saturating_sub(seen.seen_at_ms) < CLONE_SHOWN_MS)?;
    let message = format!(
        "a second machine ({}) with a copy of this node's identity is refused; enrol it as a node of its own, or, if the \
         first machine is gone, caractrl nodes reenroll {}",
        seen.hostname, node.name
    );
    Some(Condition {
        r#type: "Identity".into(),
        status: "False".into(),
        reason: "Cloned".into(),
        message,
        last_transition_time: rfc3339(seen.seen_at_ms),
        ..Condition::default()
    })
}

#[cfg(test)]
mod tests {
    use cara_core::model::CloneSeen;

    use super::*;

    const WARNINGS: Warnings =
        Warnings { expiring: Duration::from_secs(21 * 86_400), critical: Duration::from_secs(7 * 86_400) };
    const DAY: u64 = 86_400_000;

    fn view(not_after_ms: u64, now_ms: u64) -> (String, i64) {
        let view = certificate_view(&Certificate { not_after_ms, ..Certificate::default() }, WARNINGS, now_ms);
        (view.state, view.days_remaining)
    }

    #[test]
    fn the_state_follows_from_what_is_left() {
        let end = 100 * DAY;
        for (now, state, days) in [
            (0, "ok", 100),
            (79 * DAY - 1, "ok", 21),
            (79 * DAY, "expiring", 21),
            (93 * DAY - 1, "expiring", 7),
            (93 * DAY, "critical", 7),
            (end - 1, "critical", 0),
            (end, "expired", 0),
            (end + 1, "expired", -1),
        ] {
            assert_eq!(view(end, now), (state.to_owned(), days), "{now}");
        }
        assert_eq!(view(0, 5).0, "unknown");
        let revoked = Certificate { not_after_ms: end, revoked_at_ms: Some(3), ..Certificate::default() };
        assert_eq!(certificate_view(&revoked, WARNINGS, end + 1).state, "revoked");
    }

    #[test]
    fn a_clone_is_shown_while_it_is_about() {
        let seen = CloneSeen { instance: "i2".into(), seen_at_ms: 1_000, hostname: "copy".into() };
        let node = Node { name: "n1".into(), clone_seen: Some(seen), ..Node::default() };
        let shown = identity_condition(&node, 2_000).expect("seen a second ago");
        assert_eq!((shown.reason.as_str(), shown.status.as_str()), ("Cloned", "False"));
        assert!(shown.message.contains("(copy)") && shown.message.ends_with("caractrl nodes reenroll n1"));
        assert_eq!(identity_condition(&node, 1_000 + CLONE_SHOWN_MS), None);
        assert_eq!(identity_condition(&Node::default(), 0), None);
    }
}
