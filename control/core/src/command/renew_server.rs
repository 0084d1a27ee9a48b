//! Gives a server its next certificate. The one that it uses stays recorded until it says that it uses the new one.
//!
//! Between servers a certificate is good because the CA signed it, not because it is recorded: a server that is behind in
//! the log must be able to talk to the one that it learns the log from. What is recorded says whose CA is still needed.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::ServerId;
use crate::model::{Certificate, Previous};
use crate::rejected::{Problem, Rejected};
use crate::state::State;

/// Gives a server its next certificate, if nothing changed since the leader looked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RenewServer {
    /// The server.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
    /// The fingerprint of the certificate that it uses.
    #[prost(string, tag = "2")]
    pub presented: String,
    /// The number of the CA that signed that one.
    #[prost(uint64, tag = "3")]
    pub presented_ca: u64,
    /// The current fingerprint when the leader signed: compare and swap.
    #[prost(string, tag = "4")]
    pub expect_fingerprint: String,
    /// The new one; generation and previous are set by apply.
    #[prost(message, required, tag = "5")]
    pub certificate: Certificate,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: RenewServer) -> Result<Vec<Event>, Rejected> {
    state.check_supports(Feature::Lifecycle)?;
    let server = state.server(cmd.server).cloned();
    let mut server = server.ok_or_else(|| Rejected::UnknownServer { server: cmd.server.to_string() })?;
    let current = &server.certificate;
    if current.fingerprint != cmd.expect_fingerprint {
        return Err(Rejected::ServerRenewalLost { server: server.name });
    }
    super::check_certificate("certificate", &cmd.certificate)?;
    super::check_hash("presented", &cmd.presented)?;
    super::check_issuer(state, &cmd.certificate, current.newest_trusted(), || format!("server {}", server.name))?;
    super::check_fingerprint_free(state, &cmd.certificate.fingerprint, None, None)?;
    let (oldest, signing) = state.cluster().map_or((1, 1), |cluster| (cluster.ca_number(), cluster.signing_ca()));
    if cmd.presented_ca > signing {
        return Err(Problem::new("presented_ca", format!("must be at most {signing}")).into());
    }
    // What it presents is what it has on disk; the current one, if another, was lost on its way and is used by nobody.
    let valid_until_ms = current.not_after_ms;
    let presented = Previous { fingerprint: cmd.presented, valid_until_ms, ca: cmd.presented_ca };
    // What a CA has signed that is trusted no more is accepted by nobody.
    let previous = Some(presented).filter(|presented| presented.ca_number() >= oldest);
    let (generation, trusts) = (current.generation.next(), current.trusts);
    server.certificate = Certificate { generation, previous, trusts, revoked_at_ms: None, ..cmd.certificate };
    let event = Event::ServerUpdated { server: server.id, name: server.name.clone() };
    state.put_server(cx, server);
    Ok(vec![event])
}
