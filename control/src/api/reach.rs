//! How far a token reaches: what its scopes cover, of routes, of commands, of lists and of the watch.
//!
//! ```text
//! request -> Target of its path ----> may it be asked at all?        (before the handler)
//!         -> Command ---------------> may that be done?              (before it is proposed: what the body says counts too)
//!         -> list, watch -----------> of these, which are shown?     (what is outside isn't there)
//! ```
//! A token without scopes reaches everything. With scopes it reaches its nodes with all their routes, the workloads whose
//! names begin so with all theirs, the moves of these workloads and the drains of these nodes. Everything else is refused,
//! whether it exists or not, and so is every command that isn't named here: a new one is outside until somebody says
//! otherwise.

use cara_core::model::{ApiToken, Scope};
use cara_core::{Command, DrainId, Event, MoveId, NodeId, ObjectKind, State, WorkloadUid};

use crate::wire::kind_of;

/// What a token reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// All there is.
    #[default]
    Everything,
    /// These parts.
    Only(Vec<Scope>),
}

/// What a path is about, as far as scopes care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A list or a stream that shows what is within reach, or a body that says what it is about.
    Filtered,
    /// One node, by name or id.
    Node(&'a str),
    /// One workload, by name.
    Workload(&'a str),
    /// One move.
    Move(&'a str),
    /// One drain.
    Drain(&'a str),
    /// The cluster itself: servers, tokens, the audit, metrics.
    Cluster,
}

impl<'a> Target<'a> {
    /// What `path` is about. A name is compared as it stands in the path: one that needs quoting is no name that exists.
    pub fn of(path: &'a str) -> Self {
        let rest = path.strip_prefix("/api/v1/").unwrap_or_default();
        let parts: Vec<&str> = rest.split('/').collect();
        match parts.as_slice() {
            ["nodes" | "workloads" | "node-moves" | "watch"] => Self::Filtered,
            ["nodes", "join-tokens", ..] => Self::Cluster,
            ["nodes", node, ..] => Self::Node(node),
            ["node-moves", id, ..] => Self::Move(id),
            ["node-drains", id, ..] => Self::Drain(id),
            [kind] if kind_of(kind).is_some() => Self::Filtered,
            [kind, name, ..] if kind_of(kind).is_some() => Self::Workload(name),
            _ => Self::Cluster,
        }
    }
}

impl Reach {
    /// What this token reaches.
    pub fn of(token: &ApiToken) -> Self {
        if token.is_scoped() { Self::Only(token.scopes()) } else { Self::Everything }
    }

    fn covers(&self, wanted: impl Fn(&Scope) -> bool) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(scopes) => scopes.iter().any(wanted),
        }
    }

    /// Is this node within reach?
    pub fn node(&self, id: &NodeId) -> bool {
        self.covers(|scope| matches!(scope, Scope::Node(own) if own == id))
    }

    /// Is a workload of this name, of any kind, within reach?
    pub fn workload(&self, name: &str) -> bool {
        self.covers(|scope| matches!(scope, Scope::Workload(prefix) if name.starts_with(prefix.as_str())))
    }

    /// Is this drain within reach?
    fn drain(&self, state: &State, id: &DrainId) -> bool {
        state.drain(id).is_some_and(|drain| self.node(&drain.node))
    }

    fn of_move(&self, state: &State, id: &MoveId) -> bool {
        state.get_move(id).is_some_and(|mv| self.workload(&mv.name))
    }

    fn by_uid(&self, state: &State, uid: &WorkloadUid) -> bool {
        state.workload(uid).is_some_and(|workload| self.workload(&workload.name))
    }

    fn by_node_name(&self, state: &State, name: &str) -> bool {
        let node = state.node_by_name(name).or_else(|| state.node(&NodeId::from(name)));
        node.is_some_and(|node| self.node(&node.id))
    }

    /// May a route that is about this be asked?
    pub fn allows(&self, state: &State, target: Target<'_>) -> bool {
        match (self, target) {
            (Self::Everything, _) | (Self::Only(_), Target::Filtered) => true,
            (Self::Only(_), Target::Node(name)) => self.by_node_name(state, name),
            (Self::Only(_), Target::Workload(name)) => self.workload(name),
            (Self::Only(_), Target::Move(id)) => self.of_move(state, &MoveId::from(id)),
            (Self::Only(_), Target::Drain(id)) => self.drain(state, &DrainId::from(id)),
            (Self::Only(_), Target::Cluster) => false,
        }
    }

    /// May this be done? An app within reach may use only databases within reach: it is given their passwords.
    pub fn allows_command(&self, state: &State, command: &Command) -> bool {
        if *self == Self::Everything {
            return true;
        }
        match command {
            Command::Cordon(c) => self.node(&c.node),
            Command::Uncordon(c) => self.node(&c.node),
            Command::SetLabels(c) => self.node(&c.node),
            Command::SetAccepts(c) => self.node(&c.node),
            Command::DeleteNode(c) => self.node(&c.node),
            Command::LoseNode(c) => self.node(&c.node),
            Command::RemoveVolume(c) => self.node(&c.node),
            Command::RevokeCertificate(c) => self.node(&c.node),
            Command::StartDrain(c) => self.node(&c.node),
            Command::CancelDrain(c) => self.drain(state, &c.id),
            Command::ApplyNode(c) => self.by_node_name(state, &c.name),
            Command::MintReenrollToken(c) => self.node(&c.node),
            Command::SetRegion(c) => self.node(&c.node),
            Command::ApplyWorkload(c) => {
                self.workload(&c.name) && c.spec.dependencies.iter().all(|name| self.workload(name))
            }
            Command::DeleteWorkload(c) => self.by_uid(state, &c.uid),
            Command::RestartWorkload(c) => self.by_uid(state, &c.uid),
            Command::SuspendWorkload(c) => self.by_uid(state, &c.uid),
            Command::ResumeWorkload(c) => self.by_uid(state, &c.uid),
            Command::StartMove(c) => self.by_uid(state, &c.uid),
            Command::CancelMove(c) => self.of_move(state, &c.id),
            // Refused until somebody says otherwise, so that a new command opens no way around a scope.
            _ => false,
        }
    }

    /// Is this shown on a watch?
    pub fn shows(&self, event: &Event) -> bool {
        if *self == Self::Everything {
            return true;
        }
        let object = event.object();
        match object.kind {
            ObjectKind::Node => self.node(&NodeId::from(object.id.as_str())),
            ObjectKind::Workload | ObjectKind::Move => self.workload(&object.name),
            ObjectKind::Drain => match event {
                Event::DrainStarted { node, .. }
                | Event::DrainAdvanced { node, .. }
                | Event::DrainFinished { node, .. } => self.node(node),
                _ => false,
            },
            ObjectKind::Cluster | ObjectKind::Server | ObjectKind::JoinToken | ObjectKind::ApiToken => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cara_core::model::WorkloadKind;

    fn reach(scopes: &[&str]) -> Reach {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        Reach::of(&ApiToken { scopes, ..ApiToken::default() })
    }

    #[test]
    fn a_path_is_about_one_thing() {
        for (path, target) in [
            ("/api/v1/nodes", Target::Filtered),
            ("/api/v1/apps", Target::Filtered),
            ("/api/v1/watch", Target::Filtered),
            ("/api/v1/nodes/n1", Target::Node("n1")),
            ("/api/v1/nodes/n1/volumes/v", Target::Node("n1")),
            ("/api/v1/databases/shop/connection", Target::Workload("shop")),
            ("/api/v1/node-moves/m1/cancel", Target::Move("m1")),
            ("/api/v1/node-drains/d1", Target::Drain("d1")),
            ("/api/v1/nodes/join-tokens", Target::Cluster),
            ("/api/v1/nodes/join-tokens/jt", Target::Cluster),
            ("/api/v1/servers", Target::Cluster),
            ("/api/v1/tokens", Target::Cluster),
            ("/api/v1/audit-log", Target::Cluster),
            ("/api/v1/pods/x", Target::Cluster),
            ("/metrics", Target::Cluster),
            ("/nodes", Target::Cluster),
        ] {
            assert_eq!(Target::of(path), target, "{path}");
        }
    }

    #[test]
    fn what_no_scope_covers_is_out_of_reach() {
        let state = State::default();
        let shop = reach(&["workload:shop-", "node:nd_1"]);
        assert!(shop.workload("shop-web") && !shop.workload("shop") && !shop.workload("other"));
        assert!(shop.node(&"nd_1".into()) && !shop.node(&"nd_2".into()));
        assert!(shop.allows(&state, Target::Filtered) && shop.allows(&state, Target::Workload("shop-%41")));
        for target in [Target::Cluster, Target::Node("nd_1"), Target::Move("m"), Target::Workload("sho%70-web")] {
            assert!(!shop.allows(&state, target), "{target:?}");
        }
        assert!(reach(&[]).allows(&state, Target::Cluster), "without a scope everything");
        assert!(!reach(&["of a newer release"]).workload("a"), "a scope that can't be read covers nothing");
    }

    #[test]
    fn an_app_uses_only_databases_within_reach() {
        let state = State::default();
        let shop = reach(&["workload:shop-"]);
        let apply = |name: &str, uses: &[&str]| {
            let mut command = cara_core::command::ApplyWorkload { name: name.into(), ..Default::default() };
            command.kind = WorkloadKind::App;
            command.spec.dependencies = uses.iter().map(ToString::to_string).collect();
            shop.allows_command(&state, &command.into())
        };
        assert!(apply("shop-web", &["shop-db"]) && apply("shop-web", &[]));
        assert!(!apply("shop-web", &["shop-db", "wages"]) && !apply("web", &[]));
        assert!(!shop.allows_command(&state, &cara_core::command::PutApiToken::default().into()));
    }
}
