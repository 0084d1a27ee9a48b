//! What there is once: the cluster's identity, its CA and its settings.

use super::{CaRotation, FormerCa, NextSealingKey};
use crate::id::ServerId;

/// The cluster. Made by `InitCluster`, the first entry of a log.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Cluster {
    /// Random, made at init; agents and servers of another cluster are refused by it.
    #[prost(string, tag = "1")]
    pub cluster_id: String,
    /// Rises when a backup is restored; entries and agents of an older one are refused.
    #[prost(uint64, tag = "2")]
    pub incarnation: u64,
    /// Commands that need a newer level are refused until all servers support it.
    #[prost(uint32, tag = "3")]
    pub feature_level: u32,
    /// The CA's certificate, PEM.
    #[prost(string, tag = "4")]
    pub ca_cert_pem: String,
    /// The CA's private key, sealed under the key file that each server holds. Opaque here.
    #[prost(bytes = "vec", tag = "5")]
    pub ca_key_sealed: Vec<u8>,
    /// When it was made, in ms since 1970.
    #[prost(uint64, tag = "6")]
    pub created_at_ms: u64,
    /// The highest id ever given to a server. Set by apply.
    #[prost(message, required, tag = "7")]
    pub last_server_id: ServerId,
    /// The number of the CA above; rises each time it is replaced. 0 = the first.
    #[prost(uint64, tag = "8")]
    pub ca: u64,
    /// The replacement of the CA, while it goes on.
    #[prost(message, optional, tag = "9")]
    pub rotation: Option<CaRotation>,
    /// Rises with each change of whom to trust: an older answer about that is never taken for a newer one.
    #[prost(uint64, tag = "10")]
    pub trust_epoch: u64,
    /// The CAs before that clients may still pin, the newest first.
    #[prost(message, repeated, tag = "11")]
    pub former_cas: Vec<FormerCa>,
    /// Id of the key under which the secrets are sealed; empty = the one that was made with the cluster.
    #[prost(string, tag = "12")]
    pub sealing_key: String,
    /// The key that is to follow, while the servers get it.
    #[prost(message, optional, tag = "13")]
    pub next_sealing_key: Option<NextSealingKey>,
    /// Ids of keys that are not needed any more, the newest first.
    #[prost(string, repeated, tag = "14")]
    pub former_sealing_keys: Vec<String>,
}
