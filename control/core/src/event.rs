//! What happened: past-tense facts that apply reports. Each names its object, so that a watch can filter.

use crate::id::{DrainId, Epoch, Generation, MoveId, NodeId, ServerId, TokenId, WorkloadUid};
use crate::model::{Connection, DrainStatus, MovePhase, MoveStatus, WorkloadKind};

/// A fact. The revision that it belongs to is the entry's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the object's own id and name, and what changed; the variants say it")]
pub enum Event {
    /// The first entry was applied.
    ClusterInitialised { cluster_id: String },
    /// Newer commands are allowed from here on.
    FeatureLevelRaised { level: u32 },
    /// A backup was restored; everything older is fenced.
    Incarnated { incarnation: u64 },
    /// The CA is being replaced: everybody is told of the next one.
    CaRotationStarted { ca: u64 },
    /// The next CA signs from here on.
    CaTakenOver { ca: u64 },
    /// Only the next CA is trusted from here on.
    CaRotated { ca: u64 },
    /// The sealing key is being replaced: every server gets the next one.
    SealingRotationStarted { key: String },
    /// A server has the next sealing key.
    SealingKeyHeld { server: ServerId, name: String },
    /// All secrets are sealed under the next key.
    SealingKeyRotated { key: String },
    /// A server was admitted.
    ServerAdded { server: ServerId, name: String },
    /// A server's name, address or certificate changed.
    ServerUpdated { server: ServerId, name: String },
    /// A server is not a member any more.
    ServerRemoved { server: ServerId, name: String },
    /// A join token was made.
    JoinTokenMinted { token: TokenId },
    /// A join token let a machine in.
    JoinTokenSpent { token: TokenId },
    /// A join token was taken back.
    JoinTokenRevoked { token: TokenId },
    /// An API token was made.
    ApiTokenCreated { token: TokenId, name: String },
    /// An API token was taken back.
    ApiTokenRevoked { token: TokenId, name: String },
    /// A token that had ended was forgotten.
    ApiTokenForgotten { token: TokenId, name: String },
    /// A manifest described a node that has no machine yet.
    NodeDeclared { node: NodeId, name: String },
    /// A machine brought a node that was not known before; `NodeEnrolled` follows.
    NodeAdded { node: NodeId, name: String },
    /// A machine joined as this node, which is new, was declared, or was enrolled before.
    NodeEnrolled { node: NodeId, name: String },
    /// Labels, annotations, address or what it accepts changed.
    NodeUpdated { node: NodeId, name: String },
    /// It takes no new placements.
    NodeCordoned { node: NodeId, name: String },
    /// It takes placements again.
    NodeUncordoned { node: NodeId, name: String },
    /// Its connection changed.
    NodeConnectionChanged { node: NodeId, name: String, from: Connection, to: Connection, reason: String },
    /// A session was opened; an older one is over.
    NodeSessionOpened { node: NodeId, name: String, epoch: Epoch, server: ServerId },
    /// The session is over.
    NodeSessionClosed { node: NodeId, name: String, epoch: Epoch },
    /// It has a new certificate.
    NodeCertificateRenewed { node: NodeId, name: String },
    /// Its certificate is not accepted any more.
    NodeCertificateRevoked { node: NodeId, name: String },
    /// A second machine with a copy of its identity was refused.
    NodeCloneRefused { node: NodeId, name: String, hostname: String },
    /// It is gone.
    NodeDeleted { node: NodeId, name: String },
    /// A workload was created.
    WorkloadCreated { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// Its spec, labels or annotations changed.
    WorkloadUpdated { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// A node has it now, or has it under a new generation.
    WorkloadPlaced { uid: WorkloadUid, kind: WorkloadKind, name: String, node: NodeId, generation: Generation },
    /// No node can take it.
    WorkloadUnplaceable { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// Its placement was taken back.
    WorkloadUnplaced { uid: WorkloadUid, kind: WorkloadKind, name: String, node: NodeId, reason: String },
    /// Its agent reported a change.
    WorkloadStatusChanged { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// It will be removed from its node.
    WorkloadDeletionStarted { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// It is gone.
    WorkloadDeleted { uid: WorkloadUid, kind: WorkloadKind, name: String },
    /// An operator gave up a volume that the node keeps in quarantine; its agent has something new to do.
    VolumeRemovalAsked { node: NodeId, name: String, volume: String },
    /// An operator gave a node up, with all that it had.
    NodeLost { node: NodeId, name: String },
    /// A move began; both its ends have something new to do.
    MoveStarted { id: MoveId, uid: WorkloadUid, name: String },
    /// A move has another phase, round or attempt; both its ends may have something new to do.
    MoveAdvanced { id: MoveId, uid: WorkloadUid, name: String, phase: MovePhase },
    /// A move waits, or its target reported something.
    MoveUpdated { id: MoveId, uid: WorkloadUid, name: String },
    /// A move is over; its ends are named because they may have something new to do.
    MoveFinished { id: MoveId, uid: WorkloadUid, name: String, status: MoveStatus, source: NodeId, target: NodeId },
    /// A drain began.
    DrainStarted { id: DrainId, node: NodeId, name: String },
    /// A drain went on: a move began, or something turned out to be blocked.
    DrainAdvanced { id: DrainId, node: NodeId, name: String },
    /// A drain is over.
    DrainFinished { id: DrainId, node: NodeId, name: String, status: DrainStatus },
}

/// What kind of object an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// The cluster itself.
    Cluster,
    /// A server.
    Server,
    /// A node.
    Node,
    /// A join token.
    JoinToken,
    /// An API token.
    ApiToken,
    /// A workload of any kind.
    Workload,
    /// A move.
    Move,
    /// A drain.
    Drain,
}

impl ObjectKind {
    /// The word for it, as in `node/rack7-n2`.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Cluster => "cluster",
            ObjectKind::Server => "server",
            ObjectKind::Node => "node",
            ObjectKind::JoinToken => "join-token",
            ObjectKind::ApiToken => "api-token",
            ObjectKind::Workload => "workload",
            ObjectKind::Move => "move",
            ObjectKind::Drain => "drain",
        }
    }
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its id or uid.
    pub id: String,
    /// Its name; the id where it has none.
    pub name: String,
}

/// What a watch shows for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// The object is new.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone.
    Deleted,
}

impl Event {
    /// The object that it is about.
    pub fn object(&self) -> ObjectRef {
        let (kind, id, name) = match self {
            Event::ClusterInitialised { .. }
            | Event::FeatureLevelRaised { .. }
            | Event::Incarnated { .. }
            | Event::CaRotationStarted { .. }
            | Event::CaTakenOver { .. }
            | Event::CaRotated { .. }
            | Event::SealingRotationStarted { .. }
            | Event::SealingKeyHeld { .. }
            | Event::SealingKeyRotated { .. } => (ObjectKind::Cluster, "cluster".to_owned(), "cluster".to_owned()),
            Event::ServerAdded { server, name }
            | Event::ServerUpdated { server, name }
            | Event::ServerRemoved { server, name } => (ObjectKind::Server, server.to_string(), name.clone()),
            Event::JoinTokenMinted { token } | Event::JoinTokenSpent { token } | Event::JoinTokenRevoked { token } => {
                (ObjectKind::JoinToken, token.to_string(), token.to_string())
            }
            Event::ApiTokenCreated { token, name }
            | Event::ApiTokenForgotten { token, name }
            | Event::ApiTokenRevoked { token, name } => (ObjectKind::ApiToken, token.to_string(), name.clone()),
            Event::NodeDeclared { node, name }
            | Event::NodeAdded { node, name }
            | Event::NodeEnrolled { node, name }
            | Event::NodeUpdated { node, name }
            | Event::NodeCordoned { node, name }
            | Event::NodeUncordoned { node, name }
            | Event::NodeConnectionChanged { node, name, .. }
            | Event::NodeSessionOpened { node, name, .. }
            | Event::NodeSessionClosed { node, name, .. }
            | Event::NodeCertificateRenewed { node, name }
            | Event::NodeCertificateRevoked { node, name }
            | Event::NodeCloneRefused { node, name, .. }
            | Event::VolumeRemovalAsked { node, name, .. }
            | Event::NodeLost { node, name }
            | Event::NodeDeleted { node, name } => (ObjectKind::Node, node.to_string(), name.clone()),
            Event::WorkloadCreated { uid, name, .. }
            | Event::WorkloadUpdated { uid, name, .. }
            | Event::WorkloadPlaced { uid, name, .. }
            | Event::WorkloadUnplaceable { uid, name, .. }
            | Event::WorkloadUnplaced { uid, name, .. }
            | Event::WorkloadStatusChanged { uid, name, .. }
            | Event::WorkloadDeletionStarted { uid, name, .. }
            | Event::WorkloadDeleted { uid, name, .. } => (ObjectKind::Workload, uid.to_string(), name.clone()),
            Event::MoveStarted { id, name, .. }
            | Event::MoveAdvanced { id, name, .. }
            | Event::MoveUpdated { id, name, .. }
            | Event::MoveFinished { id, name, .. } => (ObjectKind::Move, id.to_string(), name.clone()),
            Event::DrainStarted { id, name, .. }
            | Event::DrainAdvanced { id, name, .. }
            | Event::DrainFinished { id, name, .. } => (ObjectKind::Drain, id.to_string(), name.clone()),
        };
        ObjectRef { kind, id, name }
    }

    /// The name of the fact, for logs, metrics and the watch.
    pub fn name(&self) -> &'static str {
        match self {
            Event::ClusterInitialised { .. } => "ClusterInitialised",
            Event::FeatureLevelRaised { .. } => "FeatureLevelRaised",
            Event::Incarnated { .. } => "Incarnated",
            Event::CaRotationStarted { .. } => "CaRotationStarted",
            Event::CaTakenOver { .. } => "CaTakenOver",
            Event::CaRotated { .. } => "CaRotated",
            Event::SealingRotationStarted { .. } => "SealingRotationStarted",
            Event::SealingKeyHeld { .. } => "SealingKeyHeld",
            Event::SealingKeyRotated { .. } => "SealingKeyRotated",
            Event::ServerAdded { .. } => "ServerAdded",
            Event::ServerUpdated { .. } => "ServerUpdated",
            Event::ServerRemoved { .. } => "ServerRemoved",
            Event::JoinTokenMinted { .. } => "JoinTokenMinted",
            Event::JoinTokenSpent { .. } => "JoinTokenSpent",
            Event::JoinTokenRevoked { .. } => "JoinTokenRevoked",
            Event::ApiTokenCreated { .. } => "ApiTokenCreated",
            Event::ApiTokenRevoked { .. } => "ApiTokenRevoked",
            Event::ApiTokenForgotten { .. } => "ApiTokenForgotten",
            Event::NodeDeclared { .. } => "NodeDeclared",
            Event::NodeAdded { .. } => "NodeAdded",
            Event::NodeEnrolled { .. } => "NodeEnrolled",
            Event::NodeUpdated { .. } => "NodeUpdated",
            Event::NodeCordoned { .. } => "NodeCordoned",
            Event::NodeUncordoned { .. } => "NodeUncordoned",
            Event::NodeConnectionChanged { .. } => "NodeConnectionChanged",
            Event::NodeSessionOpened { .. } => "NodeSessionOpened",
            Event::NodeSessionClosed { .. } => "NodeSessionClosed",
            Event::NodeCertificateRenewed { .. } => "NodeCertificateRenewed",
            Event::NodeCertificateRevoked { .. } => "NodeCertificateRevoked",
            Event::NodeCloneRefused { .. } => "NodeCloneRefused",
            Event::NodeDeleted { .. } => "NodeDeleted",
            Event::WorkloadCreated { .. } => "WorkloadCreated",
            Event::WorkloadUpdated { .. } => "WorkloadUpdated",
            Event::WorkloadPlaced { .. } => "WorkloadPlaced",
            Event::WorkloadUnplaceable { .. } => "WorkloadUnplaceable",
            Event::WorkloadUnplaced { .. } => "WorkloadUnplaced",
            Event::WorkloadStatusChanged { .. } => "WorkloadStatusChanged",
            Event::WorkloadDeletionStarted { .. } => "WorkloadDeletionStarted",
            Event::WorkloadDeleted { .. } => "WorkloadDeleted",
            Event::VolumeRemovalAsked { .. } => "VolumeRemovalAsked",
            Event::NodeLost { .. } => "NodeLost",
            Event::MoveStarted { .. } => "MoveStarted",
            Event::MoveAdvanced { .. } => "MoveAdvanced",
            Event::MoveUpdated { .. } => "MoveUpdated",
            Event::MoveFinished { .. } => "MoveFinished",
            Event::DrainStarted { .. } => "DrainStarted",
            Event::DrainAdvanced { .. } => "DrainAdvanced",
            Event::DrainFinished { .. } => "DrainFinished",
        }
    }

    /// What a watch shows: the object is new, changed or gone.
    pub fn verb(&self) -> Verb {
        match self {
            Event::ClusterInitialised { .. }
            | Event::ServerAdded { .. }
            | Event::JoinTokenMinted { .. }
            | Event::ApiTokenCreated { .. }
            | Event::NodeDeclared { .. }
            | Event::NodeAdded { .. }
            | Event::WorkloadCreated { .. }
            | Event::MoveStarted { .. }
            | Event::DrainStarted { .. } => Verb::Added,
            Event::ServerRemoved { .. }
            | Event::JoinTokenRevoked { .. }
            | Event::ApiTokenForgotten { .. }
            | Event::NodeDeleted { .. }
            | Event::WorkloadDeleted { .. } => Verb::Deleted,
            Event::FeatureLevelRaised { .. }
            | Event::Incarnated { .. }
            | Event::CaRotationStarted { .. }
            | Event::CaTakenOver { .. }
            | Event::CaRotated { .. }
            | Event::SealingRotationStarted { .. }
            | Event::SealingKeyHeld { .. }
            | Event::SealingKeyRotated { .. }
            | Event::ServerUpdated { .. }
            | Event::JoinTokenSpent { .. }
            | Event::ApiTokenRevoked { .. }
            | Event::NodeEnrolled { .. }
            | Event::NodeUpdated { .. }
            | Event::NodeCordoned { .. }
            | Event::NodeUncordoned { .. }
            | Event::NodeConnectionChanged { .. }
            | Event::NodeSessionOpened { .. }
            | Event::NodeSessionClosed { .. }
            | Event::NodeCertificateRenewed { .. }
            | Event::NodeCertificateRevoked { .. }
            | Event::NodeCloneRefused { .. }
            | Event::WorkloadUpdated { .. }
            | Event::WorkloadPlaced { .. }
            | Event::WorkloadUnplaceable { .. }
            | Event::WorkloadUnplaced { .. }
            | Event::WorkloadStatusChanged { .. }
            | Event::WorkloadDeletionStarted { .. }
            | Event::VolumeRemovalAsked { .. }
            | Event::NodeLost { .. }
            | Event::MoveAdvanced { .. }
            | Event::MoveUpdated { .. }
            | Event::MoveFinished { .. }
            | Event::DrainAdvanced { .. }
            | Event::DrainFinished { .. } => Verb::Modified,
        }
    }
}
