//! A state with any number of nodes, all online and each with a workload, made as a snapshot makes one: more nodes than a cluster lets in can be looked
//! at that way. Shared with the benches of `benches/`.

use std::collections::BTreeMap;

use cara_core::command::{
    ApplyWorkload, EnrollNode, InitCluster, MintJoinToken, OpenSession, SetFeatureLevel, SetLabels,
};
use cara_core::model::{Ability, ApiToken, Certificate, Server, ServiceSpec, TokenPurpose, WorkloadKind, WorkloadSpec};
use cara_core::reconcile::{Heard, Heartbeat};
use cara_core::{Command, Entry, FEATURE_LEVEL, Key, NodeId, ServerId, State, TokenId, WorkloadUid, codec};
use prost::Message as _;

/// The time of all entries.
const AT_MS: u64 = 1_000_000;
/// When certificates and tokens end.
const LATER_MS: u64 = 100_000_000_000;

/// How many nodes have a workload: half of what a cluster lets in, so that there is room for those that are timed.
const OCCUPIED_MAX: usize = 50_000;

/// A fleet, and the next revision.
pub struct Made {
    pub state: State,
    pub revision: u64,
}

impl Made {
    /// One server, so many nodes, and a workload on each of them: where nodes are empty, the first one is taken at once.
    /// Those beyond [`OCCUPIED_MAX`] are empty and cordoned.
    pub fn with_nodes(nodes: usize) -> Self {
        let mut made = Self { state: State::default(), revision: 0 };
        made.apply(&init());
        made.apply(&SetFeatureLevel { level: FEATURE_LEVEL }.into());
        let first = id_of(0);
        made.apply(&mint().into());
        made.apply(&enrol(&first).into());
        made.apply(&open(&first).into());
        made.apply(&app(u64::MAX));
        let template = made.state.node(&first).cloned().expect("it has just enrolled");
        let placed = made.state.placed_on(&first).next().cloned().expect("it has just been placed");
        let mut pairs = made.state.dump();
        for index in 1..nodes {
            let mut node = template.clone();
            node.id = id_of(index);
            node.name = name_of(index);
            if let Some(certificate) = &mut node.certificate {
                certificate.fingerprint = hash(index as u64);
                certificate.key_hash = hash(index as u64);
            }
            if index >= OCCUPIED_MAX {
                node.schedulable = false;
                pairs.push((Key::Node(node.id.clone()).to_bytes(), node.encode_to_vec()));
                continue;
            }
            let mut workload = placed.clone();
            workload.uid = WorkloadUid::new(format!("on-{index:08}"));
            workload.name = format!("on-{index}");
            if let Some(placement) = &mut workload.placement {
                placement.node = node.id.clone();
            }
            pairs.push((Key::Node(node.id.clone()).to_bytes(), node.encode_to_vec()));
            pairs.push((Key::Workload(workload.uid.clone()).to_bytes(), workload.encode_to_vec()));
        }
        made.state = State::load(pairs).expect("what was written can be read");
        made
    }

    /// Applies a command that must be accepted.
    pub fn apply(&mut self, command: &Command) {
        let bytes = self.entry(command);
        self.apply_bytes(&bytes);
    }

    /// An entry as it is in the log.
    pub fn entry(&self, command: &Command) -> Vec<u8> {
        let entry = Entry {
            incarnation: self.state.incarnation(),
            at_ms: AT_MS,
            request_id: String::new(),
            actor: "token:bench".into(),
            command: command.clone(),
            caller: String::new(),
        };
        codec::encode_entry(&entry).expect("a small entry")
    }

    /// What a server does with a committed entry, but for the disk.
    pub fn apply_bytes(&mut self, bytes: &[u8]) {
        self.revision += 1;
        let entry = codec::decode_entry(bytes).expect("what was written can be read");
        let applied = self.state.apply_entry(self.revision, entry);
        applied.reply.unwrap_or_else(|rejected| panic!("refused: {rejected}"));
    }

    /// A leader that has just heard everybody.
    pub fn heard(&self) -> Heard {
        let beat = |node: &cara_core::model::Node| {
            let epoch = node.session.as_ref().map(|session| session.epoch)?;
            Some((node.id.clone(), Heartbeat { epoch, at_ms: AT_MS }))
        };
        Heard { nodes: self.state.nodes().filter_map(beat).collect(), ..Heard::default() }
    }
}

/// The id of a node.
pub fn id_of(index: usize) -> NodeId {
    NodeId::new(format!("nd_{index:08}"))
}

fn name_of(index: usize) -> String {
    format!("node-{index}")
}

/// Something that looks like a SHA-256.
fn hash(number: u64) -> String {
    format!("{number:064x}")
}

fn certificate(number: u64) -> Certificate {
    Certificate {
        fingerprint: hash(number),
        serial: format!("{number:x}"),
        not_after_ms: LATER_MS,
        key_hash: hash(number),
        pem: "-".repeat(700),
        ..Certificate::default()
    }
}

fn init() -> Command {
    let server = Server {
        id: ServerId(1),
        name: "s1".into(),
        address: "127.0.0.1:7443".into(),
        certificate: certificate(u64::MAX),
        ..Server::default()
    };
    let root = ApiToken {
        id: "root".into(),
        hash: hash(u64::MAX - 1),
        name: "root".into(),
        ability: Ability::Root,
        ..ApiToken::default()
    };
    InitCluster {
        cluster_id: "c1".into(),
        incarnation: 1,
        feature_level: 1,
        ca_cert_pem: "ca".into(),
        ca_key_sealed: vec![1, 2, 3],
        server,
        root_token: root,
    }
    .into()
}

fn mint() -> MintJoinToken {
    MintJoinToken {
        id: TokenId::new("jt0"),
        hash: hash(u64::MAX - 2),
        purpose: TokenPurpose::Node,
        expires_at_ms: LATER_MS,
        bound_name: None,
    }
}

fn enrol(node: &NodeId) -> EnrollNode {
    EnrollNode {
        token_hash: hash(u64::MAX - 2),
        node: node.clone(),
        name: name_of(0),
        certificate: certificate(0),
        ..EnrollNode::default()
    }
}

fn open(node: &NodeId) -> OpenSession {
    OpenSession { node: node.clone(), fingerprint: hash(0), server: ServerId(1), ..OpenSession::default() }
}

/// Labels of 256 bytes that differ with each number.
pub fn labels(node: usize, number: u64) -> Command {
    let value = |key: &str| (key.to_owned(), format!("{number:0>63}"));
    let labels: BTreeMap<String, String> = ["a", "b", "c", "d"].map(value).into();
    SetLabels { node: id_of(node), labels, expect_revision: None }.into()
}

/// An app of one service, for any node.
pub fn app(number: u64) -> Command {
    let service = ServiceSpec { name: "web".into(), image: "cara-bench:1".into(), ..ServiceSpec::default() };
    ApplyWorkload {
        uid: WorkloadUid::new(format!("w{number:08}")),
        kind: WorkloadKind::App,
        name: format!("app-{number}"),
        spec: WorkloadSpec { services: vec![service], ..WorkloadSpec::default() },
        ..ApplyWorkload::default()
    }
    .into()
}
