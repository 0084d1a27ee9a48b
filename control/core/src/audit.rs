//! What the audit says of a change: who asked from where, and the subject's revisions before and after.

use crate::command::{Command, EnrollNode, ReenrollNode};
use crate::entry::Context;
use crate::event::{Event, ObjectKind, ObjectRef};
use crate::feature::Feature;
use crate::id::{DrainId, MoveId, NodeId, Revision, ServerId, TokenId, WorkloadUid};
use crate::model::AuditRecord;
use crate::state::State;
use crate::subject::Subject;

/// Who asks, taken from the entry.
pub(crate) struct Asked {
    pub actor: String,
    pub request_id: String,
    pub caller: String,
    pub command: &'static str,
}

/// Revisions of the objects that a command is about, from before it was applied. Nothing is kept below the feature level
/// from which on records have them.
pub(crate) struct Before {
    is_kept: bool,
    revisions: Vec<(ObjectRef, Revision)>,
}

impl Before {
    pub fn of(command: &Command, subject: &Subject, state: &State) -> Before {
        if !state.supports(Feature::Lifecycle) {
            return Before { is_kept: false, revisions: Vec::new() };
        }
        let mut objects = subject.objects(state);
        match command {
            // What changes first is the token.
            Command::EnrollNode(EnrollNode { token_hash, .. })
            | Command::ReenrollNode(ReenrollNode { token_hash, .. }) => {
                let token = state.join_token_by_hash(token_hash).map(|token| token.id.to_string());
                objects.extend(token.map(|id| object(ObjectKind::JoinToken, id)));
            }
            // Of a node that was lost before, what it still had changes first.
            Command::LoseNode(c) => {
                let moves = state.moves_on(&c.node).map(|mv| object(ObjectKind::Move, mv.id.as_str()));
                let claims = state.placed_on(&c.node).map(|of| object(ObjectKind::Workload, of.uid.as_str()));
                let drain = state.running_drain(&c.node).map(|drain| object(ObjectKind::Drain, drain.id.as_str()));
                objects.extend(moves.chain(claims).chain(drain));
            }
            Command::RemoveServer(c) => objects.push(object(ObjectKind::Server, c.server.to_string())),
            _ => {} // Its subject is what changes first.
        }
        let with_revision = |object: ObjectRef| state.revision_of(&object).map(|revision| (object, revision));
        Before { is_kept: true, revisions: objects.into_iter().filter_map(with_revision).collect() }
    }

    /// The record of a change that was made.
    pub fn record(self, state: &State, cx: &Context, asked: Asked, first: &Event) -> AuditRecord {
        let object = first.object();
        let record = AuditRecord {
            revision: cx.revision,
            at_ms: cx.at_ms,
            request_id: asked.request_id,
            command: asked.command.to_owned(),
            subject: format!("{}/{}", object.kind.as_str(), object.name),
            actor: asked.actor,
            ..AuditRecord::default()
        };
        if !self.is_kept {
            return record;
        }
        let is_it = |known: &&(ObjectRef, Revision)| known.0.kind == object.kind && known.0.id == object.id;
        AuditRecord {
            actor_name: state.actor_name(&record.actor),
            caller: asked.caller,
            before: self.revisions.iter().find(is_it).map(|(_, revision)| *revision),
            after: state.revision_of(&object),
            subject_id: object.id,
            ..record
        }
    }
}

/// An object whose name nobody needs.
pub(crate) fn object(kind: ObjectKind, id: impl Into<String>) -> ObjectRef {
    ObjectRef { kind, id: id.into(), name: String::new() }
}

impl State {
    /// The revision of an object, by kind and id; none when it does not exist, or for the cluster, which has none.
    pub fn revision_of(&self, object: &ObjectRef) -> Option<Revision> {
        let id = object.id.as_str();
        match object.kind {
            ObjectKind::Cluster => None,
            ObjectKind::Server => {
                id.parse().ok().and_then(|id| self.server(ServerId(id))).map(|server| server.revision)
            }
            ObjectKind::Node => self.node(&NodeId::from(id)).map(|node| node.revision),
            ObjectKind::JoinToken => self.join_token(&TokenId::from(id)).map(|token| token.revision),
            ObjectKind::ApiToken => self.api_token(&TokenId::from(id)).map(|token| token.revision),
            ObjectKind::Workload => self.workload(&WorkloadUid::from(id)).map(|workload| workload.revision),
            ObjectKind::Move => self.get_move(&MoveId::from(id)).map(|mv| mv.revision),
            ObjectKind::Drain => self.drain(&DrainId::from(id)).map(|drain| drain.revision),
        }
    }

    /// What people call an actor; empty for one without a name.
    fn actor_name(&self, actor: &str) -> String {
        let name = match actor.split_once(':') {
            Some(("token", id)) => self.api_token(&TokenId::from(id)).map(|token| &token.name),
            Some(("server", id)) => id.parse().ok().and_then(|id| self.server(ServerId(id))).map(|server| &server.name),
            Some(("node", id)) => self.node(&NodeId::from(id)).map(|node| &node.name),
            Some(_) | None => None,
        };
        name.cloned().unwrap_or_default()
    }
}
