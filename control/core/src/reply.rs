//! The answer to a command that was accepted. Kept under the request id, so that a retry gets the same one.

use crate::id::{DrainId, Epoch, MoveId, NodeId, Revision, ServerId, TokenId, WorkloadUid};
use crate::model::{Certificate, DrainStatus, MovePhase, MoveStatus, Placement, Rejection};
use crate::wire::wire_oneof;

/// The answer to an accepted command.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Reply {
    /// The entry that answered; a watch that starts behind it sees nothing of this command.
    #[prost(message, required, tag = "1")]
    pub revision: Revision,
    /// False when nothing happened: the command found everything as it wanted it.
    #[prost(bool, tag = "2")]
    pub changed: bool,
    /// What the caller needs to know.
    #[prost(message, required, tag = "3")]
    pub answer: Answer,
}

wire_oneof! {
    /// What the caller of a command needs to know.
    Answer,
    /// Nothing beyond that it was done.
    none Done
    {
        /// To `EnrollNode` and `RenewCertificate`.
        1 => Certified(Certified),
        /// To `OpenSession`.
        2 => SessionOpened(SessionOpened),
        /// To `ApplyWorkload`, `PlaceWorkload` and `DeleteWorkload`.
        3 => Workload(WorkloadAnswer),
        /// To `ApplyNode` and the other commands about one node.
        4 => Node(NodeAnswer),
        /// To the commands about tokens.
        5 => Token(TokenAnswer),
        /// To `PutServer`.
        6 => Server(ServerAnswer),
        /// To the commands about one move.
        7 => Move(MoveAnswer),
        /// To the commands about one drain.
        8 => Drain(DrainAnswer),
    }
}

/// A node and the certificate that it has now.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Certified {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Its certificate, PEM included.
    #[prost(message, required, tag = "3")]
    pub certificate: Certificate,
}

/// The session that was opened.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SessionOpened {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Its epoch: every later word of this session carries it.
    #[prost(message, required, tag = "2")]
    pub epoch: Epoch,
}

/// Where a workload is now.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct WorkloadAnswer {
    /// The workload.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// True when this command created it.
    #[prost(bool, tag = "3")]
    pub created: bool,
    /// None = not placed, or gone.
    #[prost(message, optional, tag = "4")]
    pub placement: Option<Placement>,
    /// Why no node was taken; empty when placed.
    #[prost(message, repeated, tag = "5")]
    pub rejections: Vec<Rejection>,
    /// True when it exists no more.
    #[prost(bool, tag = "6")]
    pub gone: bool,
}

/// The node that a command was about.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeAnswer {
    /// The node.
    #[prost(message, required, tag = "1")]
    pub node: NodeId,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// True when this command created it.
    #[prost(bool, tag = "3")]
    pub created: bool,
}

/// The token that a command was about.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TokenAnswer {
    /// The token.
    #[prost(message, required, tag = "1")]
    pub token: TokenId,
}

/// The server that a command was about, and its certificate.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ServerAnswer {
    /// The server.
    #[prost(message, required, tag = "1")]
    pub server: ServerId,
    /// Its certificate, PEM included.
    #[prost(message, required, tag = "2")]
    pub certificate: Certificate,
}

/// The move that a command was about.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MoveAnswer {
    /// The move.
    #[prost(message, required, tag = "1")]
    pub id: MoveId,
    /// What moves.
    #[prost(message, required, tag = "2")]
    pub workload: WorkloadUid,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// From where.
    #[prost(message, required, tag = "4")]
    pub source: NodeId,
    /// To where.
    #[prost(message, required, tag = "5")]
    pub target: NodeId,
    /// True when the scheduler chose the target.
    #[prost(bool, tag = "6")]
    pub auto_target: bool,
    /// Where it stands.
    #[prost(message, required, tag = "7")]
    pub phase: MovePhase,
    /// Whether it is over.
    #[prost(message, required, tag = "8")]
    pub status: MoveStatus,
}

/// The drain that a command was about.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DrainAnswer {
    /// The drain.
    #[prost(message, required, tag = "1")]
    pub id: DrainId,
    /// The node.
    #[prost(message, required, tag = "2")]
    pub node: NodeId,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Whether it is over.
    #[prost(message, required, tag = "4")]
    pub status: DrainStatus,
    /// How many workloads it will move.
    #[prost(uint32, tag = "5")]
    pub planned: u32,
    /// How many it can't.
    #[prost(uint32, tag = "6")]
    pub blocked: u32,
}
