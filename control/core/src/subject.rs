//! From a command that was accepted to its answer: what it was about, looked up in the state after it.
//!
//! The answer is read from the state and not from the events, so that a retry which changes nothing gets it too.

use crate::audit::object;
use crate::command::Command;
use crate::event::{Event, ObjectKind, ObjectRef};
use crate::id::{DrainId, MoveId, NodeId, ServerId, TokenId, WorkloadUid};
use crate::model::WorkloadKind;
use crate::reply::{
    Answer, Certified, DrainAnswer, MoveAnswer, NodeAnswer, ServerAnswer, SessionOpened, TokenAnswer, WorkloadAnswer,
};
use crate::state::State;

pub(crate) enum Subject {
    None,
    Enrolled {
        name: String,
    },
    Certificate(NodeId),
    Session(NodeId),
    Node(NodeId),
    NodeName(String),
    Token(TokenId),
    /// By key: a retried join is answered with the server that came in first.
    Server {
        id: ServerId,
        key_hash: String,
    },
    WorkloadName(WorkloadKind, String),
    Workload {
        uid: WorkloadUid,
        name: String,
    },
    Move(MoveId),
    Drain(DrainId),
}

impl Subject {
    /// What the command is about; called before it is applied, while what it removes is still there.
    pub fn of(command: &Command, state: &State) -> Subject {
        let workload = |uid: &WorkloadUid| Subject::Workload {
            uid: uid.clone(),
            name: state.workload(uid).map(|w| w.name.clone()).unwrap_or_default(),
        };
        match command {
            Command::Unknown
            | Command::InitCluster(_)
            | Command::RemoveServer(_)
            | Command::CheckpointSeen(_)
            | Command::CheckpointTokenUse(_)
            | Command::ReportStatus(_)
            | Command::SetFeatureLevel(_)
            | Command::Incarnate(_)
            | Command::TrustCa(_)
            | Command::ConfirmServer(_)
            | Command::RotateCa(_)
            | Command::AdvanceCa(_)
            | Command::RotateSealingKey(_)
            | Command::HoldSealingKey(_)
            | Command::Reseal(_) => Subject::None,
            Command::RenewServer(c) => Subject::Server { id: c.server, key_hash: c.certificate.key_hash.clone() },
            Command::PutServer(c) => {
                Subject::Server { id: c.server.id, key_hash: c.server.certificate.key_hash.clone() }
            }
            Command::MintJoinToken(c) => Subject::Token(c.id.clone()),
            Command::RevokeJoinToken(c) => Subject::Token(c.id.clone()),
            Command::PutApiToken(c) => Subject::Token(c.token.id.clone()),
            Command::RevokeApiToken(c) => Subject::Token(c.id.clone()),
            Command::EnrollNode(c) => Subject::Enrolled { name: c.name.clone() },
            Command::RenewCertificate(c) => Subject::Certificate(c.node.clone()),
            Command::OpenSession(c) => Subject::Session(c.node.clone()),
            Command::RevokeCertificate(c) => Subject::Node(c.node.clone()),
            Command::CloseSession(c) => Subject::Node(c.node.clone()),
            Command::TransitionNode(c) => Subject::Node(c.node.clone()),
            Command::Cordon(c) => Subject::Node(c.node.clone()),
            Command::Uncordon(c) => Subject::Node(c.node.clone()),
            Command::SetLabels(c) => Subject::Node(c.node.clone()),
            Command::SetAccepts(c) => Subject::Node(c.node.clone()),
            Command::SetRegion(c) => Subject::Node(c.node.clone()),
            Command::DeleteNode(c) => Subject::Node(c.node.clone()),
            Command::ApplyNode(c) => Subject::NodeName(c.name.clone()),
            Command::ApplyWorkload(c) => Subject::WorkloadName(c.kind, c.name.clone()),
            Command::DeleteWorkload(c) => workload(&c.uid),
            Command::PlaceWorkload(c) => workload(&c.uid),
            Command::RevokePlacement(c) => workload(&c.uid),
            Command::RestartWorkload(c) => workload(&c.uid),
            Command::SuspendWorkload(c) => workload(&c.uid),
            Command::ResumeWorkload(c) => workload(&c.uid),
            Command::StartMove(c) => Subject::Move(c.id.clone()),
            Command::AdvanceMove(c) => Subject::Move(c.id.clone()),
            Command::CancelMove(c) => Subject::Move(c.id.clone()),
            Command::StartDrain(c) => Subject::Drain(c.id.clone()),
            Command::AdvanceDrain(c) => Subject::Drain(c.id.clone()),
            Command::CancelDrain(c) => Subject::Drain(c.id.clone()),
            Command::LoseNode(c) => Subject::Node(c.node.clone()),
            Command::RemoveVolume(c) => Subject::Node(c.node.clone()),
            Command::MintReenrollToken(c) => Subject::Token(c.id.clone()),
            Command::ReenrollNode(c) => Subject::Certificate(c.node.clone()),
            Command::NoteClone(c) => Subject::Node(c.node.clone()),
        }
    }

    /// The objects that may be meant, as they are now; more than one where an id alone does not tell.
    pub fn objects(&self, state: &State) -> Vec<ObjectRef> {
        let node = |id: Option<&NodeId>| id.map(|id| object(ObjectKind::Node, id.as_str())).into_iter().collect();
        let by_name = |name: &str| node(state.node_by_name(name).map(|node| &node.id));
        match self {
            Subject::None => Vec::new(),
            Subject::Enrolled { name } | Subject::NodeName(name) => by_name(name),
            Subject::Certificate(id) | Subject::Session(id) | Subject::Node(id) => node(Some(id)),
            Subject::Token(id) => {
                vec![object(ObjectKind::JoinToken, id.as_str()), object(ObjectKind::ApiToken, id.as_str())]
            }
            Subject::Server { id, .. } => vec![object(ObjectKind::Server, id.to_string())],
            Subject::WorkloadName(kind, name) => {
                let known = state.workload_by_name(*kind, name);
                known.map(|workload| object(ObjectKind::Workload, workload.uid.as_str())).into_iter().collect()
            }
            Subject::Workload { uid, .. } => vec![object(ObjectKind::Workload, uid.as_str())],
            Subject::Move(id) => vec![object(ObjectKind::Move, id.as_str())],
            Subject::Drain(id) => vec![object(ObjectKind::Drain, id.as_str())],
        }
    }

    /// The answer, after the command was applied.
    pub fn answer(self, state: &State, events: &[Event]) -> Answer {
        match self {
            Subject::None => Answer::Done,
            Subject::Enrolled { name } => {
                state.node_by_name(&name).map_or(Answer::Done, |node| certified(state, &node.id))
            }
            Subject::Certificate(node) => certified(state, &node),
            Subject::Session(node) => {
                SessionOpened { epoch: state.node(&node).map(|n| n.last_epoch).unwrap_or_default(), node }.into()
            }
            Subject::Node(node) => {
                let name = state.node(&node).map(|n| n.name.clone()).unwrap_or_default();
                NodeAnswer { node, name, created: false }.into()
            }
            Subject::NodeName(name) => {
                let node = state.node_by_name(&name).map(|n| n.id.clone()).unwrap_or_default();
                let created = events.iter().any(|event| matches!(event, Event::NodeDeclared { .. }));
                NodeAnswer { node, name, created }.into()
            }
            Subject::Token(token) => TokenAnswer { token }.into(),
            Subject::Server { id, key_hash } => {
                let by_key = state.servers().find(|s| s.certificate.key_hash == key_hash);
                let server = by_key.or_else(|| state.server(id));
                server.map_or(Answer::Done, |server| {
                    ServerAnswer { server: server.id, certificate: server.certificate.clone() }.into()
                })
            }
            Subject::WorkloadName(kind, name) => {
                let uid = state.workload_by_name(kind, &name).map(|w| w.uid.clone()).unwrap_or_default();
                workload_answer(state, uid, name, events)
            }
            Subject::Workload { uid, name } => workload_answer(state, uid, name, events),
            Subject::Move(id) => state.get_move(&id).map_or(Answer::Done, |mv| {
                MoveAnswer {
                    id,
                    workload: mv.workload.clone(),
                    name: mv.name.clone(),
                    source: mv.source.clone(),
                    target: mv.target.clone(),
                    auto_target: mv.auto_target,
                    phase: mv.phase,
                    status: mv.status,
                }
                .into()
            }),
            Subject::Drain(id) => state.drain(&id).map_or(Answer::Done, |drain| {
                DrainAnswer {
                    id,
                    node: drain.node.clone(),
                    name: drain.node_name.clone(),
                    status: drain.status,
                    planned: u32::try_from(drain.plan.len()).unwrap_or(u32::MAX),
                    blocked: u32::try_from(drain.blocked.len()).unwrap_or(u32::MAX),
                }
                .into()
            }),
        }
    }
}

fn certified(state: &State, id: &NodeId) -> Answer {
    let Some(node) = state.node(id) else { return Answer::Done };
    let certificate = node.certificate.clone().unwrap_or_default();
    Certified { node: node.id.clone(), name: node.name.clone(), certificate }.into()
}

fn workload_answer(state: &State, uid: WorkloadUid, name: String, events: &[Event]) -> Answer {
    let created = events.iter().any(|event| matches!(event, Event::WorkloadCreated { .. }));
    let workload = state.workload(&uid);
    WorkloadAnswer {
        created,
        placement: workload.and_then(|w| w.placement.clone()),
        rejections: workload.map(|w| w.rejections.clone()).unwrap_or_default(),
        gone: workload.is_none(),
        uid,
        name,
    }
    .into()
}
