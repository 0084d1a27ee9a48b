//! A cluster for tests: applies commands and, after each, checks every invariant, that a refusal touched nothing, and
//! that what is to be stored adds up to the dump.

use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;
use std::collections::BTreeMap;

pub struct World {
    pub state: State,
    pub revision: u64,
    pub at_ms: u64,
    pub stored: BTreeMap<Vec<u8>, Vec<u8>>,
    pub log: Vec<(u64, Entry)>,
    made: u64,
}

impl World {
    /// A state without a cluster.
    pub fn empty() -> World {
        World {
            state: State::default(),
            revision: 0,
            at_ms: 1_000_000,
            stored: BTreeMap::new(),
            log: Vec::new(),
            made: 0,
        }
    }

    /// A cluster of one server, without nodes.
    pub fn new() -> World {
        let mut world = World::empty();
        world.ok(init());
        world
    }

    /// A cluster whose servers all know moves.
    pub fn moving() -> World {
        World::that_knows(Feature::Moves)
    }

    /// A cluster whose servers all know this and what came before it.
    pub fn that_knows(feature: Feature) -> World {
        let mut world = World::new();
        world.ok(SetFeatureLevel { level: feature.level() });
        world
    }

    /// The step of a move that the leader would ask for.
    pub fn step_of(&self, id: &str, outcome: StepOutcome) -> AdvanceMove {
        let mv = self.mv(id);
        AdvanceMove {
            id: id.into(),
            expect_phase: mv.phase,
            expect_attempt: mv.attempt,
            expect_step: mv.step_count,
            outcome,
            detail: "test".into(),
        }
    }

    /// Takes that step; it must be accepted.
    pub fn advance(&mut self, id: &str, outcome: StepOutcome) -> MovePhase {
        let step = self.step_of(id, outcome);
        self.ok(step);
        self.mv(id).phase
    }

    pub fn mv(&self, id: &str) -> &Move {
        self.state.get_move(&id.into()).unwrap()
    }

    /// The target of a move reports the phase under its grant.
    pub fn status_of_target(&self, id: &str, phase: Phase) -> ReportStatus {
        let mv = self.mv(id);
        let status = WorkloadStatus { observed_generation: mv.target_generation, phase, ..Default::default() };
        ReportStatus {
            node: mv.target.clone(),
            epoch: self.epoch(&mv.target),
            statuses: vec![StatusReport { uid: mv.workload.clone(), status }],
            ..Default::default()
        }
    }

    /// An agent's word about one grant of a workload.
    pub fn report_grant(&self, node: &NodeId, uid: &WorkloadUid, grant: Generation, phase: Phase) -> ReportStatus {
        let status = WorkloadStatus { observed_generation: grant, phase, ..Default::default() };
        ReportStatus {
            node: node.clone(),
            epoch: self.epoch(node),
            statuses: vec![StatusReport { uid: uid.clone(), status }],
            ..Default::default()
        }
    }

    /// A number never given before, for names and ids.
    pub fn fresh(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub fn entry(&self, command: impl Into<Command>) -> Entry {
        Entry {
            incarnation: self.state.incarnation(),
            at_ms: self.at_ms,
            request_id: String::new(),
            actor: "token:test".into(),
            command: command.into(),
            caller: "10.0.0.9:4711".into(),
        }
    }

    pub fn apply(&mut self, entry: Entry) -> Applied {
        let before = self.state.clone();
        let hash = self.state.state_hash();
        self.revision += 1;
        self.log.push((self.revision, entry.clone()));
        let applied = self.state.apply_entry(self.revision, entry.clone());
        for (key, value) in &applied.writes {
            match value {
                Some(value) => self.stored.insert(key.clone(), value.clone()),
                None => self.stored.remove(key),
            };
        }
        let name = entry.command.name();
        if applied.reply.is_err() {
            assert!(applied.writes.is_empty() && applied.events.is_empty(), "{name} was refused and writes");
            assert_eq!(hash, self.state.state_hash(), "{name} was refused and changed something");
            assert_eq!(before, self.state, "{name} was refused and changed something derived");
        }
        self.check_audit(&before, &applied);
        let mut violations = invariant::check(&self.state);
        violations.extend(invariant::check_step(&before, &self.state));
        assert!(violations.is_empty(), "after {name}: {violations:#?}");
        let dump: BTreeMap<_, _> = self.state.dump().into_iter().collect();
        assert_eq!(self.stored, dump, "what {name} stored is not what the state has");
        applied
    }

    /// A record of this entry says what the two states say.
    fn check_audit(&self, before: &State, applied: &Applied) {
        let Some(record) = self.state.audit().next_back().filter(|r| r.revision.0 == self.revision) else { return };
        if !before.supports(Feature::Lifecycle) {
            let told = (&record.caller, &record.actor_name, &record.subject_id, record.before, record.after);
            assert_eq!(told, (&String::new(), &String::new(), &String::new(), None, None));
            return;
        }
        let object = applied.events.first().expect("what is recorded has happened").object();
        let told = (&record.subject_id, record.before, record.after);
        let so = (&object.id, before.revision_of(&object), self.state.revision_of(&object));
        assert_eq!(told, so, "the record of {} about {}", record.command, record.subject);
    }

    /// The command must be accepted.
    pub fn ok(&mut self, command: impl Into<Command>) -> Reply {
        let entry = self.entry(command);
        self.apply(entry).reply.unwrap_or_else(|rejected| panic!("refused: {rejected} ({})", rejected.code()))
    }

    /// The command must be accepted; the names of what happened.
    pub fn events(&mut self, command: impl Into<Command>) -> Vec<&'static str> {
        let entry = self.entry(command);
        let applied = self.apply(entry);
        applied.reply.expect("refused");
        applied.events.iter().map(Event::name).collect()
    }

    /// The command must be refused; its code.
    pub fn refused(&mut self, command: impl Into<Command>) -> &'static str {
        let entry = self.entry(command);
        self.apply(entry).reply.expect_err("accepted, but must be refused").code()
    }

    /// A node that has joined and is online.
    pub fn node(&mut self, name: &str) -> NodeId {
        let id = self.enrolled(name);
        self.open(&id);
        id
    }

    /// A node that has joined and has not connected.
    pub fn enrolled(&mut self, name: &str) -> NodeId {
        let number = self.fresh();
        self.ok(mint(number, TokenPurpose::Node));
        let id = NodeId::new(format!("nd_{number:04}"));
        match self.ok(enroll(number, &id, name)).answer {
            Answer::Certified(certified) => certified.node,
            other => panic!("{other:?}"),
        }
    }

    /// Opens a session; its epoch.
    pub fn open(&mut self, node: &NodeId) -> Epoch {
        let open = self.open_command(node);
        match self.ok(open).answer {
            Answer::SessionOpened(opened) => opened.epoch,
            other => panic!("{other:?}"),
        }
    }

    pub fn open_command(&self, node: &NodeId) -> OpenSession {
        let certificate = self.state.node(node).unwrap().certificate.as_ref().unwrap();
        OpenSession {
            node: node.clone(),
            fingerprint: certificate.fingerprint.clone(),
            server: ServerId(1),
            facts: Facts::default(),
            address: String::new(),
            feature_level: 0,
            instance: String::new(),
            expect_instance: self.state.node(node).unwrap().instance.clone(),
        }
    }

    /// The epoch of the node's session; 0 when it has none.
    pub fn epoch(&self, node: &NodeId) -> Epoch {
        self.state.node(node).and_then(|n| n.session.as_ref()).map_or(Epoch(0), |session| session.epoch)
    }

    /// Creates or updates an app of one service; its answer.
    pub fn app(&mut self, name: &str, image: &str) -> reply::WorkloadAnswer {
        let command = self.app_command(name, image);
        self.workload_answer(command)
    }

    pub fn app_command(&mut self, name: &str, image: &str) -> ApplyWorkload {
        let uid = WorkloadUid::new(format!("w{:04}", self.fresh()));
        ApplyWorkload {
            uid,
            kind: WorkloadKind::App,
            name: name.into(),
            spec: WorkloadSpec { services: vec![service("web", image)], ..Default::default() },
            ..Default::default()
        }
    }

    /// A Redis with one managed volume.
    pub fn database(&mut self, name: &str) -> WorkloadUid {
        let mut command = self.app_command(name, "redis:7");
        command.kind = WorkloadKind::Database;
        command.spec.database = Some(DatabaseSpec { engine: Engine::Redis, version: "7".into() });
        command.spec.volumes = vec![VolumeSpec { name: "data".into(), kind: VolumeKind::Managed }];
        self.workload_answer(command).uid
    }

    pub fn workload_answer(&mut self, command: impl Into<Command>) -> reply::WorkloadAnswer {
        match self.ok(command).answer {
            Answer::Workload(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn workload(&self, name: &str) -> &Workload {
        self.state.workload_by_name(WorkloadKind::App, name).unwrap()
    }

    /// The agent of the node reports the phase of a workload under the generation that is granted.
    pub fn report(&mut self, node: &NodeId, name: &str, phase: Phase) -> ReportStatus {
        let workload = self.workload(name);
        let observed_generation = workload.last_generation;
        let status = WorkloadStatus { observed_generation, phase, ..Default::default() };
        ReportStatus {
            node: node.clone(),
            epoch: self.epoch(node),
            statuses: vec![StatusReport { uid: workload.uid.clone(), status }],
            ..Default::default()
        }
    }
}

pub fn init() -> InitCluster {
    InitCluster {
        cluster_id: "c1".into(),
        incarnation: 1,
        feature_level: 1,
        ca_cert_pem: "ca".into(),
        ca_key_sealed: vec![1, 2, 3],
        server: server(1),
        root_token: api_token("root", Ability::Root),
    }
}

pub fn server(number: u64) -> Server {
    Server {
        id: ServerId(number),
        name: format!("s{number}"),
        address: format!("127.0.0.1:{}", 7_000 + number),
        certificate: certificate(1_000_000 + number),
        ..Default::default()
    }
}

pub fn api_token(id: &str, ability: Ability) -> ApiToken {
    let number = id.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
    ApiToken { id: id.into(), hash: hash(number), name: id.into(), ability, ..Default::default() }
}

/// Something that looks like a SHA-256.
pub fn hash(number: u64) -> String {
    format!("{number:064x}")
}

pub fn certificate(number: u64) -> Certificate {
    Certificate {
        fingerprint: hash(number),
        serial: format!("{number:x}"),
        not_after_ms: 100_000_000,
        key_hash: hash(number),
        pem: "pem".into(),
        ..Default::default()
    }
}

pub fn mint(number: u64, purpose: TokenPurpose) -> MintJoinToken {
    MintJoinToken {
        id: TokenId::new(format!("jt{number}")),
        hash: hash(number),
        purpose,
        expires_at_ms: 10_000_000,
        bound_name: None,
    }
}

/// Enrols with the token, the key and the certificate of this number.
pub fn enroll(number: u64, node: &NodeId, name: &str) -> EnrollNode {
    EnrollNode {
        token_hash: hash(number),
        node: node.clone(),
        name: name.into(),
        certificate: certificate(number),
        ..Default::default()
    }
}

pub fn service(name: &str, image: &str) -> ServiceSpec {
    ServiceSpec { name: name.into(), image: image.into(), ..Default::default() }
}

pub fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}
