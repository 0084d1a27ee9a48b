//! Admits a server with a join token, or changes the address or the certificate of one that is known.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::Generation;
use crate::limits;
use crate::model::{Cluster, Server, TokenPurpose, TokenUse};
use crate::name;
use crate::rejected::Rejected;
use crate::state::State;

/// Admits or changes a server. A new one needs `token_hash`; the token is spent by the same entry.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PutServer {
    /// The server; a new one has `State::next_server_id`. `joined_at_ms` and `revision` are set by apply.
    #[prost(message, required, tag = "1")]
    pub server: Server,
    /// SHA-256 of the join token, lowercase hex; none only for a server that is known.
    #[prost(string, optional, tag = "2")]
    pub token_hash: Option<String>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: PutServer) -> Result<Vec<Event>, Rejected> {
    let Some(hash) = cmd.token_hash else { return update(state, cx, cmd.server) };
    let key_hash = cmd.server.certificate.key_hash.clone();
    if let Some(used) = state.join_token_by_hash(&hash).and_then(|t| t.used.clone())
        && used.key_hash == key_hash
        && state.servers().any(|s| s.id.0 == used.server && s.certificate.key_hash == key_hash)
    {
        return Ok(Vec::new()); // The same key asks again: the answer is what was recorded.
    }
    let token = super::check_join_token(state, cx, &hash, TokenPurpose::Server, &cmd.server.name)?;
    check(state, &cmd.server)?;
    check_level(state, &cmd.server)?;
    let certificate = &cmd.server.certificate;
    super::check_issuer(state, certificate, certificate.newest_trusted(), || format!("server {}", cmd.server.name))?;
    if cmd.server.id < state.next_server_id() {
        return Err(Rejected::ServerTaken { what: "id".into(), value: cmd.server.id.to_string() });
    }
    if state.servers().count() >= limits::SERVERS_MAX {
        return Err(Rejected::TooMany { what: "servers".into(), limit: limits::SERVERS_MAX.to_string() });
    }
    let mut server = cmd.server;
    server.joined_at_ms = cx.at_ms;
    server.certificate.generation = Generation(1);
    let used = TokenUse { at_ms: cx.at_ms, node: Default::default(), key_hash, server: server.id.0 };
    state.edit_join_token(cx, &token, |t| t.used = Some(used));
    let added = Event::ServerAdded { server: server.id, name: server.name.clone() };
    if let Some(cluster) = state.cluster().cloned() {
        state.set_cluster(Cluster { last_server_id: server.id, ..cluster });
    }
    state.put_server(cx, server);
    Ok(vec![added, Event::JoinTokenSpent { token }])
}

/// Name, address and certificate are well formed and nobody else's.
pub(crate) fn check(state: &State, server: &Server) -> Result<(), Rejected> {
    name::check_node("server.name", &server.name)?;
    super::check_text("server.address", &server.address, 1)?;
    super::check_certificate("server.certificate", &server.certificate)?;
    for other in state.servers().filter(|other| other.id != server.id) {
        if other.name == server.name {
            return Err(Rejected::ServerTaken { what: "name".into(), value: server.name.clone() });
        }
        if other.address == server.address {
            return Err(Rejected::ServerTaken { what: "address".into(), value: server.address.clone() });
        }
    }
    super::check_fingerprint_free(state, &server.certificate.fingerprint, None, state.server(server.id))
}

/// A server below the cluster's level would misread the log. One that says nothing is not judged: it comes from a log of a
/// release that did not ask.
fn check_level(state: &State, server: &Server) -> Result<(), Rejected> {
    let level = state.cluster().map_or(0, |cluster| cluster.feature_level);
    if server.feature_level == 0 || server.feature_level >= level {
        return Ok(());
    }
    Err(Rejected::ServerOutdated {
        server: server.name.clone(),
        supports: server.feature_level.to_string(),
        level: level.to_string(),
    })
}

fn update(state: &mut State, cx: &Context, server: Server) -> Result<Vec<Event>, Rejected> {
    let Some(known) = state.server(server.id) else {
        return Err(Rejected::UnknownServer { server: server.id.to_string() });
    };
    let mut next = server;
    next.joined_at_ms = known.joined_at_ms;
    next.revision = known.revision;
    next.certificate.generation = known.certificate.generation;
    if state.supports(Feature::Lifecycle) {
        // It has commands of its own, and the proposer may have looked before one of them.
        next.certificate = known.certificate.clone();
    }
    if next == *known {
        return Ok(Vec::new());
    }
    if next.certificate.fingerprint != known.certificate.fingerprint {
        next.certificate.generation = known.certificate.generation.next();
    }
    check(state, &next)?;
    check_level(state, &next)?;
    let event = Event::ServerUpdated { server: next.id, name: next.name.clone() };
    state.put_server(cx, next);
    Ok(vec![event])
}
