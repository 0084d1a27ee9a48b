//! Every bound of the domain, with the reason for its number. Beyond a bound a command is rejected; only
//! what machines say about themselves is cut, so that a long line never shuts a node out.

/// Bytes of an id. Ours have 27; room for others' uuids.
pub const ID_BYTES_MAX: usize = 64;
/// Bytes of one entry in the log. Raft replicates an entry whole; larger ones would delay the heartbeats behind them.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Bytes of a request id: a uuid or a ulid with a prefix fits.
pub const REQUEST_ID_BYTES_MAX: usize = 128;
/// Labels or annotations of one object. Nobody reads more; each is compared in every placement.
pub const LABELS_MAX: usize = 32;
/// Bytes of an annotation's value; it is prose or a link, not a document.
pub const ANNOTATION_BYTES_MAX: usize = 1_024;
/// Services of a project. They share a machine and a network; more than this is several projects.
pub const SERVICES_MAX: usize = 32;
/// Volumes of a workload, and mounts of a service.
pub const VOLUMES_MAX: usize = 32;
/// Environment variables of a service.
pub const ENV_MAX: usize = 256;
/// Bytes of an environment value: a certificate chain fits.
pub const ENV_VALUE_BYTES_MAX: usize = 32 * 1_024;
/// Words of a command line together with its arguments.
pub const COMMAND_WORDS_MAX: usize = 128;
/// Bytes of a word of a command line.
pub const WORD_BYTES_MAX: usize = 8 * 1_024;
/// Published ports of a service.
pub const PORTS_MAX: usize = 64;
/// Ingress rules of a workload.
pub const INGRESS_MAX: usize = 64;
/// Bytes of an image reference, a path, a host name or an address.
pub const TEXT_BYTES_MAX: usize = 512;
/// Bytes of a reason or a message that an agent reports; a container's last error line fits.
pub const MESSAGE_BYTES_MAX: usize = 1_024;
/// Events kept of a node: some weeks of a calm node, an evening of a flapping one.
pub const NODE_EVENTS_MAX: usize = 200;
/// Audit records kept: about a day of one change every ten seconds. Export them for longer.
pub const AUDIT_RECORDS_MAX: usize = 10_000;
/// Replies kept: 24 hours of one write a second. The oldest goes first.
pub const REPLIES_MAX: usize = 100_000;
/// How long a reply is kept, in the log's time. Clients give up retrying long before.
pub const REPLY_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Old replies dropped by one entry, so that no entry pays for a whole day.
pub const REPLIES_DROPPED_PER_ENTRY: usize = 8;
/// Join tokens at a time: a fleet enrolled in one go.
pub const JOIN_TOKENS_MAX: usize = 10_000;
/// How long a join token is kept after it expired, so that a late retry of its agent still gets its answer.
pub const JOIN_TOKEN_KEPT_MS: u64 = 24 * 60 * 60 * 1_000;
/// Outdated join tokens dropped by one entry, so that no entry pays for a whole fleet.
pub const JOIN_TOKENS_DROPPED_PER_ENTRY: usize = 8;
/// A second machine with a copied identity asks every minute; it is noted again this rarely, so that it can't fill the log.
pub const CLONE_NOTED_EVERY_MS: u64 = 10 * 60 * 1_000;
/// API tokens at a time, revoked ones included.
pub const API_TOKENS_MAX: usize = 1_000;
/// Places among them that only recovery fills, so that a cluster full of tokens doesn't lock its operator out.
pub const API_TOKENS_RESERVED: usize = 8;
/// Scopes of one API token: a person's own handful of nodes and prefixes; whoever needs more needs none.
pub const SCOPES_MAX: usize = 32;
/// Bytes of a scope's name prefix: as long as a workload's name.
pub const SCOPE_PREFIX_BYTES_MAX: usize = 253;
/// Nodes: ten times the largest fleet measured.
pub const NODES_MAX: usize = 10_000;
/// Workloads: a hundred on each of a thousand nodes.
pub const WORKLOADS_MAX: usize = 100_000;
/// Servers, learners included: five voters and their replacements.
pub const SERVERS_MAX: usize = 16;
/// Statuses in one report of an agent: more than a machine runs containers, and they fit into an entry.
pub const STATUSES_PER_REPORT_MAX: usize = 2_048;
/// Containers in one status: one a service and a few that are on their way out.
pub const CONTAINERS_PER_STATUS_MAX: usize = 64;
/// Nodes in one checkpoint of last-seen times, so that the entry stays small.
pub const CHECKPOINT_NODES_MAX: usize = 1_000;
/// Rejected nodes kept on an unplaced workload: enough to see the pattern; the count tells the rest.
pub const REJECTIONS_KEPT: usize = 16;
/// Databases that one workload may use.
pub const DEPENDENCIES_MAX: usize = 32;
/// Thousandths of a core that one container may ask for: a thousand cores, more than machines have.
pub const CPU_MILLIS_MAX: u64 = 1_000_000;
/// Bytes of memory or disk that one container may ask for: a pebibyte, more than machines have.
pub const RESOURCE_BYTES_MAX: u64 = 1 << 50;
/// Moves that run at a time: each copies data, and more of them only slow each other down.
pub const MOVES_RUNNING_MAX: usize = 256;
/// Moves kept, running ones included: a fleet's drain can still be read back.
pub const MOVES_KEPT: usize = 2_000;
/// Steps kept of a move: a move without trouble has ten.
pub const MOVE_STEPS_MAX: usize = 64;
/// Rounds of copying while the source runs: what five did not bring near will not be brought near by a sixth.
pub const ROUNDS_MAX: u32 = 5;
/// A round that had to send less than this is the last before the stop: it is copied in a moment.
pub const LAST_ROUND_BYTES: u64 = 8 << 20;
/// Attempts at a phase that a caller may ask for: an hour of failing at the usual interval is enough.
pub const MOVE_ATTEMPTS_MAX: u32 = 1_000;
/// Timeouts and intervals of a move: a day. Who waits longer has forgotten it.
pub const MOVE_PATIENCE_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Drains kept, running ones included.
pub const DRAINS_KEPT: usize = 500;
/// Moves of one drain: ten times what a machine runs.
pub const DRAIN_MOVES_MAX: usize = 10_000;
/// Bytes of a drain's id: its moves' ids are made from it and must still be ids.
pub const DRAIN_ID_BYTES_MAX: usize = 48;
/// Blocked workloads of a drain that are explained node by node: beyond, the reasons repeat.
pub const BLOCKED_EXPLAINED_MAX: usize = 256;
/// Volumes in quarantine that a node reports; the rest shows once some are removed.
pub const QUARANTINE_MAX: usize = 256;
/// Bytes of a CA's certificate, PEM; ours have 700.
pub const CA_PEM_BYTES_MAX: usize = 8 * 1_024;
/// Bytes of a sealed key; ours have 300.
pub const SEALED_KEY_BYTES_MAX: usize = 4 * 1_024;
/// CAs before the current one that clients may still pin. Each costs a kilobyte in every handshake.
pub const FORMER_CAS_MAX: usize = 3;
/// Sealing keys that are not needed any more and still named, so that servers forget them: no server misses more than one
/// replacement, and the rest are keys that were given up on the way.
pub const FORMER_SEALING_KEYS_MAX: usize = 8;
/// Quantities of a node's capacity (cpu, memory, disk, and some more).
pub const QUANTITIES_MAX: usize = 32;
