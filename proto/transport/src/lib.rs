//! One way to dial and one way to serve, for everything that crosses a machine: raft, agents, the operator's API.
//!
//! ```text
//!   gRPC (tonic)   REST (axum)
//!        \           /
//!       HTTP/2 and HTTP/1.1 (hyper)        tasks through cara_env::spawn
//!              TLS 1.3 (rustls, ring)      time through env.clock
//!          bytes (cara_env::Net)           TCP, or the simulator's links
//! ```
//!
//! TLS sits below tonic on both sides, so production and simulation run the same handshakes.
//!
//! Every server certificate carries the DNS name [`SERVER_NAME`] besides its own addresses, and our clients ask for that
//! name: a server is proven by the cluster's CA, not by the address under which it happened to be reached. Who a peer is
//! stands in a URI name of its certificate, `cara://<cluster>/<server|node>/<id>` ([`Peer`]).
//!
//! Invariant: nothing here knows a route, a message or a rule of the domain.

mod dial;
mod leaf;
mod peer;
mod pin;
mod serve;
mod strangers;
mod tls;
mod token;
mod turnstile;

pub use dial::{ConnectError, connect, connect_stream};
pub use leaf::Leaf;
pub use peer::{Caller, Peer, Role, Unanswered, fingerprint};
pub use serve::{Limits, Refusal, serve};
pub use tls::{Identity, Tls, TlsError, pinned};
pub use token::{JoinToken, TokenError};

/// The DNS name in every server certificate of every cluster.
pub const SERVER_NAME: &str = "server.cara.internal";

/// The protocol that a client offers beside `h2` when it wants the leader only. Nobody ever chooses it: servers that don't
/// know it, and the leader, choose `h2`.
const LEADER_ONLY: &[u8] = b"cara-leader";
