//! Random commands over a few names. `World` checks every invariant, refusals and writes after each; here: replay,
//! load, reconcilers as fixed points, bytes that are no message.

use crate::world::*;
use cara_core::codec::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::reconcile::*;
use cara_core::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// What a random command is made from: which one, and four small numbers to choose its fields by.
type Dice = (u8, u8, u8, u8, u8);

fn dice() -> impl Strategy<Value = Dice> {
    (0..26u8, 0..4u8, 0..4u8, 0..4u8, 0..4u8)
}

/// A command over four nodes, tokens, servers and workloads. Most assume what is so, some what was so or never was.
fn command(world: &World, (which, a, b, c, d): Dice) -> Command {
    let node = world.state.node_by_name(&format!("n{a}")).map_or(NodeId::new(format!("nd_{a}")), |n| n.id.clone());
    let last_epoch = world.state.node(&node).map_or(0, |n| n.last_epoch.0);
    let epoch = Epoch(if d == 0 { last_epoch.saturating_sub(1) } else { last_epoch });
    let fingerprint = |fallback: u64| {
        let certificate = world.state.node(&node).and_then(|n| n.certificate.as_ref());
        certificate.map_or(hash(fallback), |c| c.fingerprint.clone())
    };
    let kind = if d == 3 { WorkloadKind::Project } else { WorkloadKind::App };
    let workload = world.state.workload_by_name(kind, &format!("w{a}"));
    let uid = workload.map_or(WorkloadUid::new(format!("u{a}")), |w| w.uid.clone());
    let generation = Generation(workload.map_or(0, |w| w.last_generation.0) + u64::from(b == 0));
    let number = 10 + world.revision * 16 + u64::from(a);
    let token = 100 + u64::from(b);
    let purpose = *TokenPurpose::ALL.get(usize::from(c)).unwrap_or(&TokenPurpose::Node);
    match which {
        0 => {
            let bound_name = (purpose == TokenPurpose::Reenroll).then(|| format!("n{a}"));
            MintJoinToken { bound_name, ..mint(token, purpose) }.into()
        }
        1 if c > 0 => mint(token, TokenPurpose::Node).into(),
        1 => RevokeJoinToken { id: TokenId::new(format!("jt{token}")) }.into(),
        2..=4 => {
            let key = if c == 0 { 7 } else { number };
            let certificate = Certificate { key_hash: hash(key), ..certificate(number) };
            EnrollNode { certificate, ..enroll(token, &node, &format!("n{a}")) }.into()
        }
        5 => {
            let expect_fingerprint = fingerprint(1);
            let previous = world.state.node(&node).and_then(|n| n.certificate.clone()).and_then(|c| c.previous);
            let presented = previous.filter(|_| c == 1).map_or(fingerprint(1), |p| p.fingerprint);
            RenewCertificate { node, presented, expect_fingerprint, certificate: certificate(number) }.into()
        }
        6 if c == 0 => RevokeCertificate { node }.into(),
        6..=8 => OpenSession {
            fingerprint: fingerprint(1),
            server: ServerId(if d == 3 { 2 } else { 1 }),
            node,
            ..Default::default()
        }
        .into(),
        9 if b > 1 => CheckpointSeen { seen: vec![Seen { node, epoch, last_seen_ms: number * 100_000 }] }.into(),
        9 => CloseSession { node, epoch, reason: "test".into() }.into(),
        10 => TransitionNode { node, epoch, to: Connection::ALL[usize::from(b) % 3], reason: "test".into() }.into(),
        11 => CheckpointSeen { seen: vec![Seen { node, epoch, last_seen_ms: number * 100_000 }] }.into(),
        12 => Cordon { node, reason: "test".into() }.into(),
        13 => Uncordon { node, reason: "test".into() }.into(),
        14 => {
            let labels = labels(&[("site", &format!("s{b}"))]);
            SetLabels { node, labels, expect_revision: (c == 0).then_some(Revision(u64::from(d))) }.into()
        }
        15 => SetAccepts { node, app: b != 0, database: true, build: c == 0 }.into(),
        16 => ApplyNode {
            node: NodeId::new(format!("nd_m{number}")),
            name: format!("n{a}"),
            unschedulable: (b > 1).then_some(c == 0),
            ..Default::default()
        }
        .into(),
        17 if b == 0 => DeleteNode { node }.into(),
        17 => PlaceWorkload { uid, expect_generation: generation }.into(),
        18..=20 => apply_workload(world, kind, (a, b, c, d), number).into(),
        21 => DeleteWorkload { uid, force: b == 0, expect_revision: None }.into(),
        22 if c > 1 => RevokePlacement { uid, expect_generation: generation, reason: "test".into() }.into(),
        22 => PlaceWorkload { uid, expect_generation: generation }.into(),
        23 => {
            let status = WorkloadStatus {
                observed_generation: generation,
                phase: Phase::ALL[usize::from(b)],
                ..Default::default()
            };
            let placed = workload.and_then(|w| w.placement.as_ref()).filter(|_| c != 1);
            let node = placed.map_or(node, |placement| placement.node.clone());
            let epoch = if d == 0 { epoch } else { world.epoch(&node) };
            let statuses = vec![StatusReport { uid: uid.clone(), status }];
            ReportStatus {
                node,
                epoch,
                statuses,
                removed: if c < 2 { vec![uid] } else { vec![] },
                ..Default::default()
            }
            .into()
        }
        24 if c == 0 => RevokeApiToken { id: TokenId::new(format!("t{a}")), forget: b == 0 }.into(),
        24 if c == 1 => RevokeApiToken { id: "root".into(), forget: b == 0 }.into(),
        24 => PutApiToken { token: api_token(&format!("t{a}"), Ability::ALL[usize::from(b) % 3]) }.into(),
        _ if c == 0 && d == 0 => Incarnate { incarnation: world.state.incarnation() + u64::from(a) }.into(),
        _ if c == 1 => {
            RemoveServer { server: world.state.servers().last().map_or(ServerId(1), |server| server.id) }.into()
        }
        _ if c == 2 && d < 2 => SetFeatureLevel { level: u32::from(a) }.into(),
        _ => {
            let id = if b == 0 { ServerId(2) } else { world.state.next_server_id() };
            PutServer { server: Server { id, ..server(number) }, token_hash: Some(hash(token)) }.into()
        }
    }
}

fn apply_workload(world: &World, kind: WorkloadKind, (a, b, c, d): (u8, u8, u8, u8), number: u64) -> ApplyWorkload {
    let mut spec = WorkloadSpec { services: vec![service("web", &format!("image:{b}"))], ..Default::default() };
    if b == 3 {
        spec.services[0].ports = vec![Port { container_port: 80, host_port: Some(8_080), ..Default::default() }];
    }
    if c == 3 {
        spec.selector = labels(&[("site", "s1")]);
    }
    if c == 2 {
        spec.volumes = vec![VolumeSpec { name: "data".into(), kind: VolumeKind::Managed }];
    }
    let node = (d == 1).then(|| world.state.nodes().next().map_or("nd_0".into(), |node| node.id.clone()));
    ApplyWorkload {
        uid: WorkloadUid::new(format!("w{number}")),
        kind,
        name: format!("w{a}"),
        spec,
        node,
        ..Default::default()
    }
}

fn run(steps: &[Dice]) -> World {
    let mut world = World::new();
    for name in ["n0", "n1", "n2"] {
        world.node(name);
    }
    for step in steps {
        let command = command(&world, *step);
        let mut entry = world.entry(command);
        // Time goes on, and back; some requests carry an id, from a small set so that some repeat.
        world.at_ms += u64::from(step.1) * 30_000;
        entry.at_ms = world.at_ms - u64::from(step.2) * 20_000;
        if step.4 == 2 {
            entry.request_id = format!("r{}", step.0);
        }
        world.apply(entry);
    }
    world
}

/// Otherwise the properties below would say little.
#[test]
fn random_histories_reach_every_command_both_ways() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut accepted, mut refused) = (std::collections::BTreeMap::new(), std::collections::BTreeSet::new());
    for _ in 0..200 {
        let steps = vec(dice(), 80).new_tree(&mut runner).unwrap().current();
        let world = run(&steps);
        let mut state = State::default();
        for (revision, entry) in world.log {
            let name = entry.command.name();
            let applied = state.apply_entry(revision, entry);
            match applied.reply {
                Ok(_) if !applied.writes.is_empty() => *accepted.entry(name).or_insert(0) += 1,
                Ok(_) => {}
                Err(_) => {
                    refused.insert(name);
                }
            }
        }
    }
    let never: Vec<_> = Command::NAMES[1..].iter().filter(|name| !accepted.contains_key(*name)).collect();
    assert!(never.is_empty(), "never accepted: {never:?} of {accepted:?}");
    assert!(refused.len() > 20, "{refused:?}");
    println!("{accepted:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_keeps_the_invariants_and_replays_and_loads(steps in vec(dice(), 1..80)) {
        let world = run(&steps);
        let mut again = State::default();
        let mut stored = std::collections::BTreeMap::new();
        for (revision, entry) in &world.log {
            let entry = decode_entry(&encode_entry(entry).unwrap()).unwrap();
            for (key, value) in again.apply_entry(*revision, entry).writes {
                match value {
                    Some(value) => stored.insert(key, value),
                    None => stored.remove(&key),
                };
            }
        }
        prop_assert_eq!(&again, &world.state);
        prop_assert_eq!(again.state_hash(), world.state.state_hash());
        prop_assert_eq!(&stored, &world.stored);
        prop_assert_eq!(&State::load(stored).unwrap(), &world.state);
    }

    #[test]
    fn reconcile_is_a_fixed_point(
        steps in vec(dice(), 1..60),
        ears in vec((0..4u8, 0..100_000u64), 4),
        now_ms in 0..800_000u64,
    ) {
        let mut world = run(&steps);
        let mut heard = Heard { wall_ms: 1, leader_since_ms: now_ms / 2, ..Heard::default() };
        for (node, (kind, at_ms)) in world.state.nodes().zip(ears) {
            let epoch = Epoch(node.last_epoch.0.saturating_sub(u64::from(kind == 0)));
            heard.nodes.insert(node.id.clone(), Heartbeat { epoch, at_ms: at_ms.min(now_ms) });
        }
        heard.observe(&world.state, now_ms.saturating_sub(200_000));
        let first = reconcile(&world.state, &heard, &Settings::default(), now_ms);
        if first.suspects_itself {
            heard.last_braked_ms = Some(now_ms);
        }
        for command in first.commands {
            world.ok(command);
        }
        // What was freed or lost by the first pass may change why others wait: that is settled by the second.
        let second = reconcile(&world.state, &heard, &Settings::default(), now_ms);
        for command in second.commands {
            prop_assert!(matches!(command, Command::PlaceWorkload(_)), "asked again: {:?}", command);
            world.ok(command);
        }
        let third = reconcile(&world.state, &heard, &Settings::default(), now_ms);
        prop_assert_eq!(third.commands, vec![]);
    }

    #[test]
    fn bytes_that_are_no_message_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode_entry(&bytes);
        let _ = decode_outcome(&bytes);
        let keys = ["meta", "cluster", "server/1", "node/a", "node-events/a", "join-token/a", "api-token/a"];
        for kind in keys.into_iter().chain(["workload/a", "audit/1", "reply/a"]) {
            let _ = State::load([(kind.as_bytes(), bytes.as_slice())]);
        }
        let _ = State::load([(bytes.as_slice(), b"".as_slice())]);
    }

    #[test]
    fn a_damaged_entry_never_panics(step in dice(), at in 0..1_000usize, byte in any::<u8>()) {
        let world = World::new();
        let mut bytes = encode_entry(&world.entry(command(&world, step))).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(entry) = decode_entry(&bytes) {
            let mut state = world.state.clone();
            state.apply_entry(99, entry);
            prop_assert_eq!(invariant::check(&state), vec![]);
        }
    }
}
