//! Why a command was refused: one table, a line for each refusal.
//!
//! Numbers and codes are append-only: clients match on the code, stored bytes carry the number.

/// A field that breaks a rule, by its path as the user wrote it (`spec.services[1].image`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Problem {
    /// Path of the field.
    pub field: String,
    /// What is wrong, and the rule.
    pub problem: String,
}

impl Problem {
    /// Names the field and what is wrong with it.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Problem {
        Problem { field: field.into(), problem: problem.into() }
    }
}

impl From<Problem> for Rejected {
    fn from(p: Problem) -> Rejected {
        Rejected::InvalidField { field: p.field, problem: p.problem }
    }
}

/// What sort of refusal it is; the API's status code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectKind {
    /// The subject does not exist.
    NotFound,
    /// The state does not allow it now; another time, or after another step, it may.
    Conflict,
    /// The request itself is wrong and stays so.
    Invalid,
    /// Who asks may not.
    Denied,
    /// A bound is reached.
    Exhausted,
}

macro_rules! rejections {
    ($($(#[$meta:meta])* $number:literal $variant:ident { $($field:ident),* } $kind:ident $code:literal
        $message:literal, $hint:literal;)+) => {
        /// A typed refusal. The command that got it has touched nothing.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum Rejected {
            $(
                $(#[$meta])*
                #[error($message)]
                $variant {
                    $(#[doc = concat!("The ", stringify!($field), ", as text.")] $field: String,)*
                },
            )+
        }

        impl Rejected {
            /// Every code with what sort of refusal it is, in the order of the numbers.
            pub const KINDS: &'static [(&'static str, RejectKind)] = &[$(($code, RejectKind::$kind),)+];

            /// A stable word for programs.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Rejected::$variant { .. } => $code,)+
                }
            }

            /// What sort of refusal it is.
            pub fn kind(&self) -> RejectKind {
                match self {
                    $(Rejected::$variant { .. } => RejectKind::$kind,)+
                }
            }

            /// What to do next, for people.
            pub fn hint(&self) -> &'static str {
                match self {
                    $(Rejected::$variant { .. } => $hint,)+
                }
            }

            pub(crate) fn to_parts(&self) -> (u32, Vec<String>) {
                match self {
                    $(Rejected::$variant { $($field,)* } => ($number, vec![$($field.clone(),)*]),)+
                }
            }

            pub(crate) fn from_parts(number: u32, parts: Vec<String>) -> Option<Rejected> {
                let mut parts = parts.into_iter();
                // A part that an older version did not write is empty.
                let mut _next = move || parts.next().unwrap_or_default();
                match number {
                    $($number => Some(Rejected::$variant { $($field: _next(),)* }),)+
                    _ => None,
                }
            }
        }
    };
}

rejections! {
    /// No `InitCluster` yet.
    1 NotInitialised {} Conflict "not-initialised"
        "the cluster is not initialised", "run cara-server init on the first server";
    /// A second `InitCluster`.
    2 AlreadyInitialised { cluster } Conflict "already-initialised"
        "the cluster is initialised already as {cluster}", "join this server to it, or start from an empty data folder";
    /// The entry was made before a restore.
    3 WrongIncarnation { given, current } Conflict "wrong-incarnation"
        "the request belongs to incarnation {given}, the cluster is at {current}", "read again and repeat the request";
    /// The command needs a level that the cluster has not reached.
    4 FeatureLevel { wanted, current } Conflict "feature-level"
        "feature level {wanted} can't follow {current}", "upgrade all servers first; the level only rises";
    /// A field breaks a rule.
    5 InvalidField { field, problem } Invalid "invalid-field"
        "{field}: {problem}", "correct the field and send it again";
    /// The request id was used for something else.
    6 RequestIdReused { request } Conflict "request-id-reused"
        "the request id {request} was used for another request", "use a new Idempotency-Key for each request";
    /// A bound is reached.
    7 TooMany { what, limit } Exhausted "too-many"
        "there are {limit} {what} already, the most there may be", "delete what is not needed any more";
    /// The object changed since it was read.
    8 RevisionMismatch { object, expected, current } Conflict "revision-mismatch"
        "{object} is at revision {current}, not {expected}", "read it again, and repeat the change on the new version";

    /// No such server.
    20 UnknownServer { server } NotFound "unknown-server"
        "there is no server {server}", "caractrl servers lists them";
    /// Another server has the name or the address.
    21 ServerTaken { what, value } Conflict "server-taken"
        "another server has the {what} {value}", "choose another, or remove the old server first";
    /// The last server can't go.
    22 LastServer { server } Conflict "last-server"
        "{server} is the last server", "add another server first";

    /// No such node.
    30 UnknownNode { node } NotFound "unknown-node"
        "there is no node {node}", "caractrl nodes list shows them";
    /// Another node has the name.
    31 NodeNameTaken { name } Conflict "node-name-taken"
        "a node named {name} exists already",
        "choose another name; if it is this very machine that was known by it, caractrl nodes reenroll NAME brings it back with all that it had";
    /// The id of a new node exists.
    32 NodeIdTaken { node } Conflict "node-id-taken"
        "the node id {node} exists already", "repeat the request";
    /// Something is placed there.
    33 NodeNotEmpty { node, workloads, first } Conflict "node-not-empty"
        "node {node} still has {workloads} workloads, {first} among them",
        "drain the node, or delete its workloads first";
    /// The node can't take the workload.
    34 NodeNotEligible { node, reason } Conflict "node-not-eligible"
        "node {node} can't take it: {reason}", "choose another node, or leave the node out to have one chosen";
    /// An edge that does not exist.
    35 BadTransition { node, from, to } Conflict "bad-transition"
        "node {node} can't go from {from} to {to}", "read the node again";
    /// The epoch has passed.
    36 StaleSession { node, given, current } Conflict "stale-session"
        "session {given} of node {node} is over, the current one is {current}", "open a new session";
    /// No certificate yet.
    37 NodeNotEnrolled { node } Conflict "node-not-enrolled"
        "node {node} is declared but has not joined yet", "mint a join token and enrol its machine";
    /// Nothing in the node's quarantine has this name.
    38 UnknownVolume { node, volume } NotFound "unknown-volume"
        "node {node} keeps no volume {volume} in quarantine", "caractrl nodes volumes lists what it keeps";
    /// Somebody's data.
    39 VolumeNeeded { volume, node, reason } Conflict "volume-needed"
        "volume {volume} of node {node} can't be removed: {reason}",
        "wait until the move is over, or move or delete the workload first";

    /// No token has this hash. Says no more on purpose.
    40 TokenUnknown {} Denied "join-token-unknown"
        "the join token is not known", "check that it was copied whole, or mint a new one";
    /// Spent by another key.
    41 TokenSpent { token } Denied "join-token-spent"
        "the join token {token} is spent", "mint a new one; each lets in one machine";
    /// Its time has passed.
    42 TokenExpired { token } Denied "join-token-expired"
        "the join token {token} has expired", "mint a new one";
    /// For another purpose.
    43 TokenPurpose { token, purpose } Denied "join-token-purpose"
        "the join token {token} is for a {purpose}", "mint one for this purpose";
    /// Bound to another name.
    44 TokenName { token, bound, given } Denied "join-token-name"
        "the join token {token} is for {bound}, not for {given}", "use that name, or mint a token for this one";
    /// The id or the hash exists.
    45 TokenExists { token } Conflict "token-exists"
        "the token {token} exists already", "repeat the request";
    /// No token has this id.
    46 UnknownToken { token } NotFound "unknown-token"
        "there is no token {token}", "list the tokens to see their ids";
    /// Somebody must be able to administer the cluster.
    47 LastRootToken { token } Conflict "last-root-token"
        "{token} is the last root token that does not expire", "create another root token first";

    /// It let a machine in: the record stays, so that it never lets in another.
    48 TokenUsed { token, who } Conflict "join-token-used"
        "the join token {token} has let in {who} already", "revoke that machine's certificate, or delete it";

    /// The certificate is revoked.
    50 CertificateRevoked { node } Denied "certificate-revoked"
        "the certificate of node {node} is revoked", "caractrl nodes reenroll NODE prints the command that brings it back";
    /// The certificate is not the node's.
    51 CertificateUnknown { node } Denied "certificate-unknown"
        "the certificate presented is not one of node {node}",
        "caractrl nodes reenroll NODE prints the command that brings it back";
    /// Another renewal was first.
    52 RenewalLost { node } Conflict "renewal-lost"
        "another renewal of node {node} was first", "repeat the renewal";
    /// The fingerprint exists.
    53 FingerprintTaken { fingerprint } Conflict "fingerprint-taken"
        "a certificate with fingerprint {fingerprint} is recorded already", "repeat with a new certificate";

    /// Two processes of one node opened sessions at the same moment.
    54 InstanceChanged { node } Conflict "instance-changed"
        "another process of node {node} was faster", "try again";
    /// The token brings back another node.
    55 TokenNode { token, bound, given } Denied "join-token-node"
        "the token {token} brings back node {bound}, not {given}", "mint one for this node: caractrl nodes reenroll NODE";
    /// Another machine is that node.
    56 IdentityCloned { node } Denied "identity-cloned"
        "another machine is node {node} and has its session: this one has a copy of its identity",
        "enrol this machine as a node of its own, with an empty data folder and a token of caractrl nodes join-token; if the first machine is gone, caractrl nodes reenroll NODE gives its place to this one";

    /// No such workload.
    60 UnknownWorkload { workload } NotFound "unknown-workload"
        "there is no workload {workload}", "caractrl get lists them";
    /// The uid of a new workload exists.
    61 WorkloadUidTaken { uid } Conflict "workload-uid-taken"
        "the workload uid {uid} exists already", "repeat the request";
    /// It is on its way out.
    62 WorkloadDeleting { name } Conflict "workload-deleting"
        "workload {name} is being deleted", "wait until it is gone, then create it again";
    /// The grant that the command assumed has passed.
    63 StaleGeneration { workload, given, current } Conflict "stale-generation"
        "workload {workload} is at generation {current}, not {given}", "read it again";
    /// Placed workloads are moved, not re-placed.
    64 PlacementFixed { name, node } Conflict "placement-fixed"
        "workload {name} is placed on {node} already", "move it, or leave the node out of the manifest";
    /// Not placed.
    65 NotPlaced { workload } Conflict "not-placed"
        "workload {workload} is not placed", "nothing to do";
    /// Never two running copies of what has state.
    66 StatefulClaim { workload, node } Conflict "stateful-claim"
        "workload {workload} has state and keeps its claim on node {node} until that node proves the stop",
        "bring the node back, or declare it lost";
    /// The update would take a host port of a neighbour.
    67 HostPortTaken { port, by } Conflict "host-port-taken"
        "host port {port} on this node is taken by workload {by}", "choose another host port";

    /// The command, or a field of it, needs a newer level.
    70 FeatureNeeded { what, needed, current } Conflict "feature-needed"
        "{what} need feature level {needed}, the cluster is at {current}",
        "upgrade every server; the leader then raises the level by itself";
    /// A server would misread what the level lets in.
    71 FeatureHeldBack { wanted, server, supports } Conflict "feature-held-back"
        "feature level {wanted} can't be reached: server {server} supports no more than {supports}",
        "upgrade that server, or remove it; the leader then raises the level by itself";
    /// The server would misread the log.
    72 ServerOutdated { server, supports, level } Conflict "server-outdated"
        "server {server} supports feature level {supports}, the cluster is at {level}",
        "install the release there that the other servers run";
    /// The node's agent does not know what is asked of it.
    73 AgentOutdated { node, supports, needed } Conflict "agent-outdated"
        "the agent of node {node} supports feature level {supports}, this needs {needed}",
        "upgrade cara-agent on that node";

    /// No such move.
    80 UnknownMove { id } NotFound "unknown-move"
        "there is no move {id}", "list the moves to see their ids";
    /// The id of a new move exists.
    81 MoveExists { id } Conflict "move-exists"
        "the move id {id} exists already", "repeat the request";
    /// A move holds the workload.
    82 MoveRunning { workload, id } Conflict "move-running"
        "workload {workload} is being moved by {id}", "wait until the move is over, or cancel it";
    /// Source and target are one.
    83 MoveSameNode { workload, node } Conflict "move-same-node"
        "workload {workload} is on node {node} already", "name another node, or none to have one chosen";
    /// No node can take it.
    84 NoEligibleNode { workload, reasons } Conflict "no-eligible-node"
        "no node can take workload {workload}: {reasons}", "make room on a node, or add one";
    /// Data are on a machine that is not heard.
    85 SourceOffline { workload, node } Conflict "source-offline"
        "workload {workload} has state on node {node}, which is offline and can't prove that it stopped",
        "bring the node back, or declare it lost";
    /// The step that the command assumed has passed.
    86 StaleMove { id, given, current } Conflict "stale-move"
        "move {id} is at {current}, not {given}", "read it again";
    /// The state does not show what the step needs.
    87 MoveNotReady { id, phase, reason } Conflict "move-not-ready"
        "move {id} can't leave {phase} this way: {reason}", "read it again";
    /// The target has the workload already.
    88 MoveCommitted { id, phase } Conflict "move-committed"
        "move {id} is at {phase}: the target has the workload already", "wait until it is over, then move it back";
    /// Nothing to do any more.
    89 MoveOver { id, status } Conflict "move-over"
        "move {id} is over: {status}", "start another move";
    /// An end of a running move.
    90 NodeInMove { node, id, workload } Conflict "node-in-move"
        "node {node} is an end of the running move {id} of {workload}", "wait until the move is over, or cancel it";

    /// No such drain.
    91 UnknownDrain { id } NotFound "unknown-drain"
        "there is no drain {id}", "list the drains to see their ids";
    /// The id of a new drain exists.
    92 DrainExists { id } Conflict "drain-exists"
        "the drain id {id} exists already", "repeat the request";
    /// One at a time.
    93 DrainRunning { node, id } Conflict "drain-running"
        "node {node} is being drained by {id}", "wait until the drain is over, or cancel it";
    /// The step that the command assumed has passed.
    94 StaleDrain { id, given, current } Conflict "stale-drain"
        "drain {id} is at step {current}, not {given}", "read it again";
    /// Nothing to do any more.
    95 DrainOver { id, status } Conflict "drain-over"
        "drain {id} is over: {status}", "start another drain";
    /// Something must end first.
    96 DrainWaits { id, reason } Conflict "drain-waits"
        "drain {id} waits: {reason}", "read it again later";

    /// It is heard: what runs there runs.
    97 NodeOnline { node } Conflict "node-online"
        "node {node} is online, so nothing on it is lost", "drain it, or stop its agent first";
    /// Nothing of it runs that could be restarted.
    98 WorkloadSuspended { name } Conflict "workload-suspended"
        "workload {name} is suspended", "resume it";

    /// More than the maker has.
    130 TokenExceeds { token, creator, what } Denied "token-exceeds-creator"
        "{creator} can't give token {token} {what}, which it does not have itself",
        "ask for less, or use a token that has it";
    /// The maker was revoked, or has expired, before the entry was applied.
    131 CreatorEnded { token } Denied "token-ended"
        "the token {token} that asked for it is revoked or has expired", "use a token that is valid";
    /// One at a time.
    140 CaRotationRunning { phase } Conflict "ca-rotation-running"
        "the CA is being replaced already ({phase})", "see how far it is: caractrl cluster rotate-ca --status";
    /// Nothing to go on with.
    141 NoCaRotation {} Conflict "no-ca-rotation"
        "the CA is not being replaced", "begin with caractrl cluster rotate-ca";
    /// Another CA signs by now.
    142 StaleCa { given, current } Conflict "stale-ca"
        "the certificate is of CA {given}, and CA {current} signs now", "repeat the request";
    /// Somebody would be shut out.
    143 CaHeldBack { phase, who } Conflict "ca-held-back"
        "the replacement of the CA waits ({phase}) for {who}",
        "start what is down; caractrl cluster rotate-ca --force goes on without nodes, and a server that is gone is removed first";
    /// It would get a certificate that it could not use.
    144 CaNotTrusted { member, ca } Conflict "ca-not-trusted"
        "{member} has not said that it trusts CA {ca}", "repeat the request once its agent is connected";
    /// The step that the command assumed has passed.
    145 StaleRotation { given, current } Conflict "stale-ca-rotation"
        "the trust of the cluster is at step {current}, not {given}", "read it again";
    /// Another renewal was first.
    146 ServerRenewalLost { server } Conflict "server-renewal-lost"
        "another renewal of server {server} was first", "repeat the renewal";

    /// One at a time.
    160 SealingRotationRunning {} Conflict "sealing-rotation-running"
        "the sealing key is being replaced already",
        "see who holds it back: caractrl cluster rotate-sealing-key --status; --anew begins again with another key";
    /// Nothing to go on with.
    161 NoSealingRotation {} Conflict "no-sealing-rotation"
        "the sealing key is not being replaced", "begin with caractrl cluster rotate-sealing-key";
    /// It has passed.
    162 StaleSealingKey { given, current } Conflict "stale-sealing-key"
        "it is about sealing key {given}, and the key is {current} now", "repeat the request";
    /// They could open nothing afterwards.
    163 SealingHeldBack { who } Conflict "sealing-held-back"
        "the sealing key can't be replaced before these servers have the next one: {who}",
        "start what is down, and remove servers that are gone";
}
