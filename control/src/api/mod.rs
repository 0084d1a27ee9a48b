//! What can be asked of the cluster, without transport words: authorise, read on one revision, propose.
//!
//! ```text
//! rest/<noun>, grpc/<service>  ->  from_wire  ->  Api  ->  propose(Entry)  ->  committed  ->  State::apply
//! ```
//! Any server has an `Api`; only the leader's accepts proposals. A follower's REST layer reads what is replicated once it
//! has caught up, and hands everything else to the leader as it came, credential included (`forward`): authorisation is
//! decided where the request is carried out, on a state that has all that was acknowledged.

pub mod actor;
mod api_tokens;
mod app_moves;
mod audit;
pub mod auth;
pub mod certificates;
pub mod door;
mod drains;
mod find;
pub mod forward;
pub mod grpc;
mod identity;
mod lifecycle;
pub mod limit;
mod lost;
mod moves;
mod placement;
mod points;
pub mod reach;
pub mod rest;
mod sealing;
mod secret;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use cara_core::model::Facts;
use cara_core::{Command, Entry, Event, Feature, Reply, State, codec};
use cara_env::Env;
use raft_store::{RaftStore, ReadError};
use tokio::sync::watch;

use self::actor::Who;
pub use self::api_tokens::token_ended;
use crate::config::Config;
use crate::error::ApiError;
use crate::identity::ServerIdentity;
use crate::keeper::Keeper;
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::relay::Relay;
use crate::sessions::Sessions;
use crate::token_uses::TokenUses;
use crate::transfers::Transfers;

/// Everything that a request may need. One per server, shared.
pub struct Api {
    /// The seams.
    pub env: Env,
    /// Settings.
    pub config: Config,
    /// Who this server is, as it was at its start; certificates and whom to trust are the keeper's.
    pub identity: ServerIdentity,
    /// The identity as it is now.
    pub keeper: Arc<Keeper>,
    /// Replication, with the state behind it.
    pub raft: RaftStore<Machine>,
    /// Agent sessions; filled on the leader only.
    pub sessions: Sessions,
    /// How far the moves' copying is; filled on the leader only.
    pub transfers: Transfers,
    /// Where both ends of a move meet when they can't reach each other.
    pub relay: Relay,
    /// The term in which this server has proven its leadership and applied all before it; 0 = it leads nothing.
    pub leading: watch::Receiver<u64>,
    /// Revision of the last event, for watchers.
    pub changed: watch::Receiver<u64>,
    /// Revision of the last change of the cluster, a server or an API token, for whoever looks only at these.
    pub administration: watch::Receiver<u64>,
    /// Turns true when the server stops.
    pub shutdown: watch::Receiver<bool>,
    /// What is counted.
    pub metrics: Metrics,
    /// How often each caller may ask.
    pub limiter: limit::Limiter,
    /// When this server let which API token in.
    pub token_uses: TokenUses,
    /// Connections to other servers, for forwarding.
    pub forwarder: forward::Forwarder,
}

impl Api {
    /// Replicates a command and returns its answer once it is applied here.
    ///
    /// # Errors
    /// [`ApiError::OutOfScope`] when it is beyond the reach of whoever asks; [`ApiError::Rejected`] when the state machine
    /// refused; [`ApiError::Unconfirmed`] when the outcome is unknown.
    pub async fn propose<'a>(
        &self,
        who: impl Into<Who<'a>>,
        request_id: &str,
        command: Command,
    ) -> Result<Reply, ApiError> {
        let who = who.into();
        let (incarnation, says_more) = self.read_local(|state| {
            let is_within_reach = who.reach.is_none_or(|reach| reach.allows_command(state, &command));
            let is_within_reach = is_within_reach.then(|| (state.incarnation(), state.supports(Feature::Lifecycle)));
            is_within_reach.ok_or(ApiError::OutOfScope)
        })?;
        let frees = frees_room(&command);
        let entry = Entry {
            incarnation,
            at_ms: self.env.clock.wall_ms(),
            request_id: request_id.to_owned(),
            actor: who.name.to_owned(),
            command,
            // An older server would not see it, and write another record.
            caller: if says_more { who.caller.to_owned() } else { String::new() },
        };
        let bytes = codec::encode_entry(&entry).map_err(|error| ApiError::Bad {
            status: http::StatusCode::PAYLOAD_TOO_LARGE,
            code: "entry-too-large",
            detail: error.to_string(),
            hint: "make it smaller, or split it",
        })?;
        let started = self.env.clock.monotonic();
        let limit = self.config.request_deadline;
        let proposing =
            async { if frees { self.raft.propose_freeing(bytes).await } else { self.raft.propose(bytes).await } };
        let proposed = cara_env::timeout(&*self.env.clock, limit, proposing).await;
        let proposed = match proposed.map_err(|_| ApiError::Unconfirmed).and_then(|done| Ok(done?)) {
            Err(ApiError::Unconfirmed) if cara_env::planted("timeout-taken-for-success") => return Ok(Reply::default()),
            proposed => proposed?,
        };
        self.metrics.proposed(self.env.clock.monotonic() - started);
        let reply = codec::decode_outcome(&proposed.reply).map_err(|error| ApiError::Internal(error.to_string()))??;
        points::committed(self, &entry.command, &reply).await;
        Ok(reply)
    }

    /// Confirms with a majority that this server leads, and waits until it has applied all that was acknowledged
    /// before: what is read afterwards is linearizable.
    pub async fn barrier(&self) -> Result<u64, ApiError> {
        self.in_time("no majority answered", self.raft.read_barrier()).await
    }

    /// As [`Api::barrier`], on a server that follows: the leader says how far the log was acknowledged.
    pub async fn follower_barrier(&self) -> Result<u64, ApiError> {
        self.in_time("the leader did not answer", self.raft.follower_barrier()).await
    }

    async fn in_time(
        &self,
        silent: &str,
        index: impl Future<Output = Result<u64, ReadError>>,
    ) -> Result<u64, ApiError> {
        let limit = self.config.request_deadline;
        match cara_env::timeout(&*self.env.clock, limit, index).await {
            Ok(index) => Ok(index?),
            Err(_) => Err(ApiError::NoQuorum(format!("{silent} within {limit:?}"))),
        }
    }

    /// Looks at this server's state as it is, which on a follower may be behind.
    pub fn read_local<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.raft.with_state(|machine| look(machine.state()))
    }

    /// What an agent says of its machine, as far as all servers can keep it.
    pub fn known_facts(&self, given: Option<&cara_proto::node::Facts>) -> Facts {
        let is_new = self.read_local(|state| state.supports(Feature::Lifecycle));
        given.map(|given| crate::wire::facts(given, is_new)).unwrap_or_default()
    }

    /// What happened in one entry; empty once that is too long ago.
    pub fn events_of(&self, revision: u64) -> Vec<Event> {
        self.raft.with_state(|machine| {
            let events = machine.events_after(revision.saturating_sub(1), 1).unwrap_or_default();
            events.iter().filter(|logged| logged.revision == revision).map(|logged| logged.event.clone()).collect()
        })
    }

    /// Is this request the retry of one that was carried out as this command? Then what it names may be gone, by its own doing.
    pub fn was_done(&self, asker: &rest::Asker, command: &str) -> bool {
        let id = &asker.request_id;
        !id.is_empty() && self.read_local(|state| state.has_reply(id, &asker.actor.name, command))
    }

    /// The leader's address, when there is one and it isn't this server.
    pub fn leader_elsewhere(&self) -> Option<String> {
        self.raft.leader().filter(|(id, _)| *id != self.identity.server_id).map(|(_, address)| address)
    }

    /// Is this the leader, ready to answer?
    pub fn leads(&self) -> bool {
        *self.leading.borrow() > 0
    }

    /// Waits until this server leads or knows who does, at most `limit`.
    ///
    /// # Errors
    /// [`ApiError::NoQuorum`] when there is no leader by then.
    pub async fn find_leader(&self, limit: Duration) -> Result<Leader, ApiError> {
        let mut leading = self.leading.clone();
        let mut status = self.raft.changed();
        let search = async {
            loop {
                if *leading.borrow_and_update() > 0 {
                    return Leader::Here;
                }
                status.borrow_and_update();
                if let Some(address) = self.leader_elsewhere() {
                    return Leader::At(address);
                }
                let more = tokio::select! {
                    biased;
                    more = leading.changed() => more.is_ok(),
                    more = status.changed() => more.is_ok(),
                };
                if !more {
                    return Leader::None;
                }
            }
        };
        match cara_env::timeout(&*self.env.clock, limit, search).await {
            Ok(Leader::None) => Err(ApiError::NoQuorum("this server is stopping".into())),
            Ok(found) => Ok(found),
            Err(_) => Err(ApiError::NoQuorum(format!("no leader was elected within {limit:?}"))),
        }
    }

    /// Addresses of all servers, this one first.
    pub fn server_addresses(&self) -> Vec<String> {
        let own = self.identity.advertise.clone();
        let mut all = vec![own.clone()];
        self.read_local(|state| all.extend(state.servers().map(|s| s.address.clone()).filter(|a| *a != own)));
        all
    }
}

/// What still works while the leader's disk is nearly full.
fn frees_room(command: &Command) -> bool {
    matches!(
        command,
        Command::DeleteWorkload(_)
            | Command::DeleteNode(_)
            | Command::RemoveServer(_)
            | Command::RevokeJoinToken(_)
            | Command::RevokeApiToken(_)
    )
}

/// Where the leader is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leader {
    /// This server.
    Here,
    /// Another one, at this address.
    At(String),
    /// Nowhere, and there won't be one.
    None,
}

/// The handle that handlers get.
pub type SharedApi = Arc<Api>;
