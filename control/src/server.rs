//! A server, from its data folder to its last request. Start reading here.
//!
//! ```text
//!             run(config, env, engine, shutdown)
//!                |            |            |
//!   serve: one TLS port    leader::run   dispatch::run
//!   REST + gRPC            (while it     (events to
//!                           leads)        sessions)
//!                 \           |           /
//!                  Api -> raft-store -> Machine (cara_core::State)
//! ```
//! The same function runs in production, with RocksDB and TCP behind `engine` and `env`, and in the simulator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use cara_core::Feature;
use cara_env::{Cf, Engine, Env};
use cara_proto::agent::agent_server::AgentServer;
use cara_proto::cluster::cluster_server::ClusterServer;
use cara_proto::volume::relay_server::RelayServer;
use cara_transport::{Limits, Tls, TlsError};
use raft_store::{Dial, OpenError, RaftStore};
use tokio::sync::watch;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::api::forward::Forwarder;
use crate::api::grpc::{AgentService, ClusterService, FRAME_BYTES_MAX, RelayService, server_peer};
use crate::api::limit::Limiter;
use crate::api::{Api, SharedApi, door, rest};
use crate::config::Config;
use crate::error::ApiError;
use crate::identity::{IdentityError, ServerIdentity, from_hex};
use crate::keeper::{KeepError, Keeper};
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::pki::{Ca, SEALING_KEY_LEN};
use crate::relay::Relay;
use crate::sessions::Sessions;
use crate::token_uses::TokenUses;
use crate::transfers::Transfers;
use crate::{certificates, dispatch, leader, level, sealing, sealing_keys, token_uses};

/// One attempt of raft to reach a peer.
const PEER_CONNECT: Duration = Duration::from_secs(2);
/// Between two attempts to write the cluster's first entry.
const BOOTSTRAP_RETRY: Duration = Duration::from_millis(200);
/// Largest gRPC message: a log entry is at most 1 MiB, a desired set a few.
const MESSAGE_MAX: usize = 16 << 20;

/// Why a server can't run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its data folder.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A change of it.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// Its certificate.
    #[error("{path}: the server's certificate can't be used; join again with a new token")]
    Tls {
        /// The data folder.
        path: PathBuf,
        /// What is wrong.
        source: TlsError,
    },
    /// Its port.
    #[error("can't listen on {address}: {}", listen_hint(.source))]
    Listen {
        /// `host:port`.
        address: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Its database.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its release.
    #[error(
        "this server supports feature level {supports}, the cluster is at {level}; \
         install the release that the other servers run, the data folder stays as it is"
    )]
    Outdated {
        /// What the configuration allows.
        supports: u32,
        /// The cluster's level.
        level: u32,
    },
    /// Replication has ended, most often because the disk failed. A new process finds out whether it works again.
    #[error("replication has stopped: {reason}; the server ends, so that it is started again")]
    Replication {
        /// Why.
        reason: String,
    },
}

fn listen_hint(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another process has this port; stop it, or choose another with --listen".into()
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "this machine doesn't have that address; choose another with --listen".into()
        }
        _ => error.to_string(),
    }
}

/// Runs the server of `config.data_dir` until `shutdown` turns true.
///
/// # Errors
/// When it can't start (nothing was changed then), or when replication ends for good.
pub async fn run(
    config: Config,
    env: Env,
    engine: Arc<dyn Engine>,
    shutdown: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let mut identity = ServerIdentity::load(&env, &config.data_dir)?;
    let unusable = |source| RunError::Tls { path: config.data_dir.clone(), source };
    let keeper = Keeper::new(&env, config.data_dir.clone(), identity.clone()).map_err(unusable)?;
    let tls = keeper.tls().clone();
    let address = config.listen.clone().unwrap_or_else(|| identity.listen.clone());
    let listener =
        env.net.listen(&address).await.map_err(|source| RunError::Listen { address: address.clone(), source })?;
    #[cfg_attr(not(feature = "museum"), expect(unused_mut, reason = "only a planted bug changes it"))]
    let (mut machine, changes) = Machine::new();
    #[cfg(feature = "museum")]
    {
        machine.clock = Some(env.clock.clone());
    }
    let dial = Arc::new(PeerDial { env: env.clone(), tls: tls.clone() });
    // A crash between the two lines below leaves a database under a fresh identity; that one is its own.
    let used = identity.fresh && engine.last(Cf::Meta).map_err(OpenError::Io)?.is_some();
    let raft_config = raft_config(&config, &identity, identity.fresh && !used);
    let raft = RaftStore::open(raft_config, env.clone(), engine, dial, machine).await?;
    cara_env::point("server.opened", || format!("fresh={}", identity.fresh)).await;
    if identity.fresh {
        // From now on an empty database means a lost disk.
        identity.fresh = false;
        keeper.change(|identity| identity.fresh = false)?;
    }
    let (leading_in, leading) = watch::channel(0);
    let api = Arc::new(Api {
        forwarder: Forwarder::new(&env, &tls),
        sessions: Sessions::default(),
        transfers: Transfers::default(),
        relay: Relay::default(),
        metrics: Metrics::new(),
        limiter: Limiter::new(config.rate_per_token, config.rate_per_address),
        token_uses: TokenUses::default(),
        identity,
        keeper: Arc::new(keeper),
        raft,
        leading,
        changed: changes.any,
        administration: changes.administration,
        shutdown: shutdown.clone(),
        config,
        env: env.clone(),
    });
    tracing::info!(server = %api.identity.name, id = api.identity.server_id, %address, "server runs");
    let tasks = [
        cara_env::spawn(leader::run(api.clone(), leading_in)),
        cara_env::spawn(dispatch::run(api.clone())),
        cara_env::spawn(bootstrap(api.clone())),
        cara_env::spawn(level::announce(api.clone())),
        cara_env::spawn(token_uses::run(api.clone())),
        cara_env::spawn(certificates::run(api.clone())),
        cara_env::spawn(sealing::run(api.clone())),
        cara_env::spawn(release_followers(api.clone())),
    ];
    let ended = tokio::select! {
        biased;
        // First: nothing is served from a log that this server may misread.
        level = level::outgrown(&api) => Err(RunError::Outdated { supports: api.config.feature_level_max, level }),
        () = cara_transport::serve(&env, listener, tls, routes(&api), limits(&api), shutdown) => Ok(()),
        // A server that only looks alive helps nobody.
        reason = api.raft.ended() => Err(RunError::Replication { reason }),
    };
    api.raft.shutdown().await;
    tasks.iter().for_each(cara_env::Task::abort);
    tracing::info!("server stopped");
    ended
}

/// The followers of a leader that is told to stop look for another one while its open requests end.
async fn release_followers(api: SharedApi) {
    drop(api.shutdown.clone().wait_for(|stop| *stop).await);
    api.raft.announce_stop();
}

/// REST and gRPC on one port. Agents and servers prove themselves by certificate, people by token.
fn routes(api: &SharedApi) -> axum::Router {
    let rest = rest::router(api.clone());
    let for_servers = {
        let api = api.clone();
        move |request: tonic::Request<()>| server_peer(&api, &request).map(|_| request)
    };
    let agent = AgentServer::new(AgentService::new(api.clone())).max_decoding_message_size(MESSAGE_MAX);
    let cluster =
        ClusterServer::new(ClusterService::new(api.clone(), rest.clone())).max_decoding_message_size(MESSAGE_MAX);
    // A frame's head is a few bytes more.
    let relay = RelayServer::new(RelayService::new(api.clone())).max_decoding_message_size(FRAME_BYTES_MAX + 1024);
    tonic::service::Routes::from(rest)
        .add_service(agent)
        .add_service(cluster)
        .add_service(relay)
        .add_service(InterceptedService::new(api.raft.service(), for_servers))
        .into_axum_router()
        .layer(from_fn_with_state(api.clone(), door::enter))
}

fn limits(api: &SharedApi) -> Limits {
    let (metrics, asked) = (api.metrics.clone(), api.clone());
    Limits {
        another_leads: Arc::new(move || asked.leader_elsewhere().is_some()),
        connections_per_address_max: api.config.connections_per_address_max,
        refused: Arc::new(move |why| metrics.refused(why.as_str())),
        ..Limits::default()
    }
}

fn raft_config(config: &Config, identity: &ServerIdentity, expect_empty: bool) -> raft_store::Config {
    raft_store::Config {
        heartbeat: config.raft_heartbeat,
        election_min: config.election_timeout,
        election_max: config.election_timeout * 7 / 5,
        snapshot_after: config.snapshot_after,
        keep_logs: config.snapshot_after / 2,
        write_behind: config.write_behind,
        expect_empty,
        low_space: config.low_space.clone(),
        ..raft_store::Config::new(identity.server_id, identity.cluster_id.clone())
    }
}

struct PeerDial {
    env: Env,
    tls: Tls,
}

#[async_trait::async_trait]
impl Dial for PeerDial {
    async fn dial(&self, address: &str) -> std::io::Result<Channel> {
        cara_transport::connect(&self.env, address, self.tls.client(), PEER_CONNECT)
            .await
            .map_err(std::io::Error::other)
    }
}

/// The first server makes the cluster: itself as the only voter, then the first entry. Repeated until it is in the log;
/// both steps are harmless when they were done before.
async fn bootstrap(api: SharedApi) {
    let Some(entry) = api.identity.bootstrap.as_deref().and_then(from_hex) else { return };
    let members = BTreeMap::from([(api.identity.server_id, api.identity.advertise.clone())]);
    loop {
        if let Err(error) = api.raft.initialize(members.clone()).await {
            tracing::debug!(%error, "raft has members already");
        }
        if api.read_local(|state| state.cluster().is_some()) {
            break;
        }
        match api.raft.propose(entry.clone()).await {
            Ok(_) => tracing::info!(cluster = %api.identity.cluster_id, "cluster made"),
            Err(error) => tracing::debug!(%error, "the first entry is not in the log yet"),
        }
        api.env.clock.sleep(BOOTSTRAP_RETRY).await;
    }
    if let Err(error) = api.keeper.change(|identity| identity.bootstrap = None) {
        tracing::warn!(%error, "server.json still says that the cluster is to be made; harmless, tried again at start");
    }
}

/// The cluster's CA, opened for a signature.
///
/// # Errors
/// When this server's sealing key doesn't open it.
pub(crate) fn open_ca(api: &Api) -> Result<Ca, ApiError> {
    let signing = api.read_local(|state| {
        let cluster = state.cluster()?;
        let (certificate, key) = cluster.signing();
        let numbers = (cluster.signing_ca(), cluster.newest_ca());
        // A release that doesn't count CAs would pass over the numbers.
        let numbers = if state.supports(Feature::Lifecycle) { numbers } else { (0, 0) };
        Some((certificate.to_owned(), key.to_owned(), cluster.sealing_key.clone(), numbers))
    });
    let (certificate, key, sealed_under, (number, newest)) = signing.ok_or(cara_core::Rejected::NotInitialised {})?;
    let ca = Ca::open(&api.identity.cluster_id, &certificate, &key, &sealing_key(api, &sealed_under)?);
    let ca = ca.map_err(|error| ApiError::Internal(crate::error::chain(&error)))?;
    Ok(ca.numbered(number, newest).with_server_life(api.config.server_certificate_life))
}

/// The key of this id, which opens the replicated secrets.
///
/// # Errors
/// When this server doesn't have it, yet or any more.
pub(crate) fn sealing_key(api: &Api, id: &str) -> Result<[u8; SEALING_KEY_LEN], ApiError> {
    let key = api.keeper.look(|identity, _| identity.sealing_key_of(id).and_then(sealing_keys::bytes_of));
    key.ok_or_else(|| ApiError::Internal(format!("{} does not have the sealing key {id} now", api.identity.name)))
}
