//! Checks that several commands share. Each answers with the refusal that the caller passes on.

use crate::entry::Context;
use crate::feature::Feature;
use crate::id::{Epoch, Generation, NodeId, Revision, TokenId, is_well_formed};
use crate::limits;
use crate::model::{Certificate, Cluster, Facts, MoveSettings, NextSealingKey, Node, Server, TokenPurpose, Workload};
use crate::name;
use crate::planted::planted;
use crate::rejected::{Problem, Rejected};
use crate::state::State;

pub(crate) fn check_id(field: &str, id: &str) -> Result<(), Problem> {
    if is_well_formed(id) {
        return Ok(());
    }
    Err(Problem::new(field, format!("{id:?} must be 1 to {} of letters, digits, '_' and '-'", limits::ID_BYTES_MAX)))
}

/// The name of a node: by the rule for new ones, unless there is a node of that name, or a server that would let it in.
pub(crate) fn check_node_name(state: &State, field: &str, name: &str) -> Result<(), Problem> {
    if state.supports(Feature::Lifecycle) && state.node_by_name(name).is_none() {
        return name::check_new_node(field, name);
    }
    name::check_node(field, name)
}

/// A SHA-256 in lowercase hex.
pub(crate) fn check_hash(field: &str, hash: &str) -> Result<(), Problem> {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if hash.len() == 64 && hash.bytes().all(hex) {
        return Ok(());
    }
    Err(Problem::new(field, "must be a SHA-256 in lowercase hex (64 digits)"))
}

/// Text of `bytes_min` to 512 bytes without control characters.
pub(crate) fn check_text(field: &str, text: &str, bytes_min: usize) -> Result<(), Problem> {
    if text.len() < bytes_min {
        return Err(Problem::new(field, "must not be empty"));
    }
    if text.len() > limits::TEXT_BYTES_MAX {
        return Err(Problem::new(field, format!("has {} bytes, at most {}", text.len(), limits::TEXT_BYTES_MAX)));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::new(field, "must not have control characters"));
    }
    Ok(())
}

/// A reason or message: at most 1024 bytes.
pub(crate) fn check_message(field: &str, text: &str) -> Result<(), Problem> {
    if text.len() > limits::MESSAGE_BYTES_MAX {
        return Err(Problem::new(field, format!("has {} bytes, at most {}", text.len(), limits::MESSAGE_BYTES_MAX)));
    }
    Ok(())
}

pub(crate) fn check_certificate(field: &str, certificate: &Certificate) -> Result<(), Problem> {
    check_hash(&format!("{field}.fingerprint"), &certificate.fingerprint)?;
    check_hash(&format!("{field}.key_hash"), &certificate.key_hash)?;
    check_text(&format!("{field}.serial"), &certificate.serial, 1)?;
    if certificate.pem.len() > 16 * 1_024 {
        return Err(Problem::new(format!("{field}.pem"), "has more than 16 KiB"));
    }
    Ok(())
}

/// Cuts what a machine says to its limit, at a character's edge: a long line must not shut its node out.
pub(crate) fn clip(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}

/// Cuts what an agent says about its machine to the limits.
pub(crate) fn clip_facts(facts: &mut Facts) {
    let texts = [&mut facts.agent_version, &mut facts.os, &mut facts.arch, &mut facts.kernel, &mut facts.runtime];
    for text in texts.into_iter().chain([&mut facts.agent_commit, &mut facts.os_image, &mut facts.hostname]) {
        clip(text, limits::TEXT_BYTES_MAX);
    }
    for quantities in [&mut facts.capacity, &mut facts.allocatable] {
        quantities.retain(|key, _| key.len() <= limits::TEXT_BYTES_MAX);
        while quantities.len() > limits::QUANTITIES_MAX {
            quantities.pop_last();
        }
    }
}

/// Refuses unless the object is at the revision that the caller read.
pub(crate) fn check_revision(
    object: impl FnOnce() -> String,
    expected: Option<Revision>,
    current: Revision,
) -> Result<(), Rejected> {
    match expected {
        Some(expected) if expected != current => Err(Rejected::RevisionMismatch {
            object: object(),
            expected: expected.to_string(),
            current: current.to_string(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Refuses unless this session is the node's current one.
pub(crate) fn check_session(node: &Node, epoch: Epoch) -> Result<(), Rejected> {
    match &node.session {
        Some(session) if session.epoch == epoch => Ok(()),
        Some(_) | None => Err(Rejected::StaleSession {
            node: node.name.clone(),
            given: epoch.to_string(),
            current: node.session.as_ref().map_or("none".into(), |s| s.epoch.to_string()),
        }),
    }
}

/// Refuses unless nothing was granted since the proposer looked.
pub(crate) fn check_generation(workload: &Workload, expected: Generation) -> Result<(), Rejected> {
    if workload.last_generation == expected {
        return Ok(());
    }
    Err(Rejected::StaleGeneration {
        workload: workload.name.clone(),
        given: expected.to_string(),
        current: workload.last_generation.to_string(),
    })
}

/// Refuses while a move holds the workload.
pub(crate) fn check_not_moving(state: &State, workload: &Workload) -> Result<(), Rejected> {
    match state.running_move(&workload.uid) {
        Some(_) if planted("two-moves-of-one") => Ok(()),
        Some(mv) => Err(Rejected::MoveRunning { workload: workload.name.clone(), id: mv.id.to_string() }),
        None => Ok(()),
    }
}

/// How patient a move is to be: what was left at 0 is as usual.
pub(crate) fn move_settings(asked: &MoveSettings) -> Result<MoveSettings, Problem> {
    let usual = MoveSettings::usual();
    let or = |asked: u64, usual: u64| if asked == 0 { usual } else { asked };
    let settings = MoveSettings {
        verify_timeout_ms: or(asked.verify_timeout_ms, usual.verify_timeout_ms),
        attempts_max: if asked.attempts_max == 0 { usual.attempts_max } else { asked.attempts_max },
        interval_ms: or(asked.interval_ms, usual.interval_ms),
        shutdown_delay_ms: asked.shutdown_delay_ms,
    };
    let times = [
        ("verify_timeout_ms", settings.verify_timeout_ms),
        ("interval_ms", settings.interval_ms),
        ("shutdown_delay_ms", settings.shutdown_delay_ms),
    ];
    for (field, ms) in times {
        if ms > limits::MOVE_PATIENCE_MS_MAX {
            let rule = format!("is {ms}, at most {}", limits::MOVE_PATIENCE_MS_MAX);
            return Err(Problem::new(format!("settings.{field}"), rule));
        }
    }
    if settings.attempts_max > limits::MOVE_ATTEMPTS_MAX {
        let rule = format!("is {}, at most {}", settings.attempts_max, limits::MOVE_ATTEMPTS_MAX);
        return Err(Problem::new("settings.attempts_max", rule));
    }
    Ok(settings)
}

/// The join token with this hash, if it may be spent now, for this, by a machine of this name.
pub(crate) fn check_join_token(
    state: &State,
    cx: &Context,
    hash: &str,
    purpose: TokenPurpose,
    name: &str,
) -> Result<TokenId, Rejected> {
    let token = state.join_token_by_hash(hash).ok_or(Rejected::TokenUnknown {})?;
    let id = token.id.to_string();
    if token.used.is_some() && !planted("token-spent-twice") {
        return Err(Rejected::TokenSpent { token: id });
    }
    if cx.at_ms >= token.expires_at_ms {
        return Err(Rejected::TokenExpired { token: id });
    }
    if token.purpose != purpose {
        return Err(Rejected::TokenPurpose { token: id, purpose: token.purpose.to_string() });
    }
    match &token.bound_name {
        Some(bound) if bound != name => {
            Err(Rejected::TokenName { token: id, bound: bound.clone(), given: name.to_owned() })
        }
        Some(_) | None => Ok(token.id.clone()),
    }
}

/// The node that spent this token with this very key, still has that key and is not shut out: it asks again, because its answer
/// was lost.
pub(crate) fn came_in<'a>(state: &'a State, token_hash: &str, key_hash: &str) -> Option<&'a Node> {
    let used = state.join_token_by_hash(token_hash)?.used.as_ref()?;
    let node = state.node(&used.node)?;
    let certificate = node.certificate.as_ref()?;
    let has_it = used.key_hash == key_hash && certificate.key_hash == key_hash && certificate.revoked_at_ms.is_none();
    has_it.then_some(node)
}

/// Refuses unless the token is for this node, or for none in particular.
pub(crate) fn check_token_node(state: &State, token: &TokenId, node: &NodeId) -> Result<(), Rejected> {
    match state.join_token(token).and_then(|token| token.bound_node.as_ref()) {
        Some(bound) if bound != node => {
            Err(Rejected::TokenNode { token: token.to_string(), bound: bound.to_string(), given: node.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}

/// No other node or server has a certificate with this fingerprint, as its current one or the one before.
pub(crate) fn check_fingerprint_free(
    state: &State,
    fingerprint: &str,
    node: Option<&NodeId>,
    server: Option<&Server>,
) -> Result<(), Rejected> {
    let of_node = state.node_by_fingerprint(fingerprint).is_some_and(|n| Some(&n.id) != node);
    let of_this_node = node.and_then(|id| state.node(id)).and_then(|n| n.certificate.as_ref()).is_some_and(|c| {
        c.fingerprint == fingerprint || c.previous.as_ref().is_some_and(|p| p.fingerprint == fingerprint)
    });
    let of_server =
        state.servers().any(|s| s.certificate.fingerprint == fingerprint && server.is_none_or(|own| own.id != s.id));
    if of_node || of_this_node || of_server {
        return Err(Rejected::FingerprintTaken { fingerprint: fingerprint.to_owned() });
    }
    Ok(())
}

/// The CA that signs now has signed it, and its holder trusts that CA: what any other CA signs may be trusted by nobody soon.
pub(crate) fn check_issuer(
    state: &State,
    certificate: &Certificate,
    trusts: u64,
    member: impl FnOnce() -> String,
) -> Result<(), Rejected> {
    let Some(cluster) = state.cluster() else { return Ok(()) };
    let (given, current) = (certificate.ca_number(), cluster.signing_ca());
    if given != current {
        return Err(Rejected::StaleCa { given: given.to_string(), current: current.to_string() });
    }
    if trusts < current {
        return Err(Rejected::CaNotTrusted { member: member(), ca: current.to_string() });
    }
    Ok(())
}

/// A CA's certificate, PEM.
pub(crate) fn check_ca_pem(field: &str, pem: &str) -> Result<(), Problem> {
    if pem.is_empty() || pem.len() > limits::CA_PEM_BYTES_MAX {
        let rule = format!("has {} bytes, 1 to {} are allowed", pem.len(), limits::CA_PEM_BYTES_MAX);
        return Err(Problem::new(field, rule));
    }
    Ok(())
}

/// What the proposer sealed is sealed under the key under which everything is. A cluster that never replaced its key does not
/// know its id.
pub(crate) fn check_sealed_under(current: &str, given: &str) -> Result<(), Rejected> {
    if current.is_empty() || current == given {
        return Ok(());
    }
    Err(Rejected::StaleSealingKey { given: key_name(given), current: key_name(current) })
}

/// The next sealing key, if it is this one.
pub(crate) fn check_next_key<'a>(cluster: &'a mut Cluster, key_id: &str) -> Result<&'a mut NextSealingKey, Rejected> {
    let Some(next) = &mut cluster.next_sealing_key else { return Err(Rejected::NoSealingRotation {}) };
    if next.key_id != key_id {
        return Err(Rejected::StaleSealingKey { given: key_name(key_id), current: key_name(&next.key_id) });
    }
    Ok(next)
}

/// As much of a key's id as people need to tell it from another.
fn key_name(id: &str) -> String {
    id.chars().take(12).collect()
}

/// A sealed key.
pub(crate) fn check_sealed(field: &str, sealed: &[u8]) -> Result<(), Problem> {
    if sealed.is_empty() || sealed.len() > limits::SEALED_KEY_BYTES_MAX {
        let rule = format!("has {} bytes, 1 to {} are allowed", sealed.len(), limits::SEALED_KEY_BYTES_MAX);
        return Err(Problem::new(field, rule));
    }
    Ok(())
}
