//! Random commands over a few names. `World` checks every invariant, refusals and writes after each; here: replay,
//! load, reconcilers as fixed points, bytes that are no message.

use crate::rotation::{advance, confirm, node_trusts, renew_server, rotate, server_trusts, signed};
use crate::sealing::{begin, hold, reseal};
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
    (0..52u8, 0..4u8, 0..4u8, 0..4u8, 0..4u8)
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
    let instance = world.state.node(&node).map(|n| n.instance.clone()).unwrap_or_default();
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
            let certificate = Certificate { key_hash: hash(key), ..signed(world, number) };
            EnrollNode { certificate, ..enroll(token, &node, &format!("n{a}")) }.into()
        }
        5 => {
            let expect_fingerprint = fingerprint(1);
            let previous = world.state.node(&node).and_then(|n| n.certificate.clone()).and_then(|c| c.previous);
            let presented = previous.filter(|_| c == 1).map_or(fingerprint(1), |p| p.fingerprint);
            RenewCertificate { node, presented, expect_fingerprint, certificate: signed(world, number) }.into()
        }
        6 if c == 0 => RevokeCertificate { node }.into(),
        6..=8 => OpenSession {
            fingerprint: fingerprint(1),
            server: ServerId(if d == 3 { 2 } else { 1 }),
            node,
            facts: Facts { allocatable: [("cpu".to_string(), 1_000)].into(), ..Default::default() },
            address: String::new(),
            feature_level: u32::from(d),
            instance: if b == 0 { String::new() } else { format!("i{c}") },
            expect_instance: if d == 0 { "i0".into() } else { instance },
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
        15 if d == 3 => SetRegion { node, region: if b == 0 { String::new() } else { format!("r{b}") } }.into(),
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
        24 if c == 2 && d == 3 => {
            CheckpointTokenUse { used: vec![ApiTokenUse { token: TokenId::new(format!("t{a}")), at_ms: number }] }
                .into()
        }
        24 if c == 3 && d > 1 => {
            let scope = if d == 2 { format!("node:{node}") } else { format!("workload:w{b}") };
            let creator = if b == 0 { "token:root".to_owned() } else { format!("token:t{b}") };
            let token = api_token(&format!("t{a}"), Ability::ALL[usize::from(b) % 3]);
            PutApiToken { token: ApiToken { scopes: vec![scope], created_by: creator, ..token } }.into()
        }
        24 => PutApiToken { token: api_token(&format!("t{a}"), Ability::ALL[usize::from(b) % 3]) }.into(),
        44..=47 => trust_command(world, which, node, (a, b, c, d), number),
        48 => {
            let id = TokenId::new(format!("jt{token}"));
            MintReenrollToken { id, hash: hash(token), node, expires_at_ms: 10_000_000 }.into()
        }
        49 => {
            let key = if c == 0 { 7 } else { number };
            let certificate = Certificate { key_hash: hash(key), ..certificate(number) };
            ReenrollNode { token_hash: hash(token), node, certificate, ..Default::default() }.into()
        }
        50 => NoteClone { node, instance: format!("i{c}"), expect_instance: instance, ..Default::default() }.into(),
        51 => sealing_command(world, (a, b, c, d), number),
        26..=43 => move_command(world, which, (node, uid), (a, b, c, d), number),
        _ if c == 0 && d == 0 => Incarnate { incarnation: world.state.incarnation() + u64::from(a) }.into(),
        _ if c == 1 => {
            RemoveServer { server: world.state.servers().last().map_or(ServerId(1), |server| server.id) }.into()
        }
        _ if c == 2 && d < 2 => SetFeatureLevel { level: u32::from(a) }.into(),
        _ => {
            let id = if b == 0 { ServerId(2) } else { world.state.next_server_id() };
            let certificate = signed(world, 1_000_000 + number);
            PutServer { server: Server { id, certificate, ..server(number) }, token_hash: Some(hash(token)) }.into()
        }
    }
}

/// A command about certificates of servers and about the CA; most assume what is so.
fn trust_command(world: &World, which: u8, node: NodeId, (a, b, c, d): (u8, u8, u8, u8), number: u64) -> Command {
    let servers: Vec<_> = world.state.servers().map(|server| server.id.0).collect();
    let server = servers[usize::from(a) % servers.len()];
    match which {
        44 if a == 0 && b == 0 => rotate(world).into(),
        44 => AdvanceCa { force: c < 2 && d < 2, ..advance(world, false) }.into(),
        45 if b == 0 => node_trusts(world, &node).into(),
        45 => server_trusts(world, server).into(),
        46 if b == 0 => {
            RenewServer { presented: hash(1), presented_ca: 0, ..renew_server(world, server, number) }.into()
        }
        46 => renew_server(world, server, number).into(),
        _ if b == 0 => node_trusts(world, &node).into(),
        _ => confirm(world, server).into(),
    }
}

/// A command about the sealing key; most assume what is so.
fn sealing_command(world: &World, (a, b, c, d): (u8, u8, u8, u8), number: u64) -> Command {
    let servers: Vec<_> = world.state.servers().map(|server| server.id.0).collect();
    let server = servers[usize::from(a) % servers.len()];
    match b {
        0 => RotateSealingKey { anew: d == 0, server: ServerId(server), ..begin(world, 500_000 + number) }.into(),
        1 | 2 => hold(world, server).into(),
        _ if c == 0 => Reseal { key_id: hash(1), ..reseal(world, d) }.into(),
        _ => {
            let sealed = number.to_le_bytes().to_vec();
            Reseal { ca_key_sealed: [&[c], &sealed[..]].concat(), ..reseal(world, number.to_le_bytes()[0]) }.into()
        }
    }
}

/// A command about moves and drains; most assume what is so.
fn move_command(
    world: &World,
    which: u8,
    (node, uid): (NodeId, WorkloadUid),
    (a, b, c, d): (u8, u8, u8, u8),
    number: u64,
) -> Command {
    let running = world.state.running_moves().nth(usize::from(a) % 2).or(world.state.moves().last());
    let id = running.map_or(MoveId::new(format!("m{a}")), |mv| mv.id.clone());
    let drain = world.state.running_drains().next().or(world.state.drains().last());
    let drain_id = drain.map_or(DrainId::new("none"), |drain| drain.id.clone());
    match which {
        26 | 27 => {
            let settings = MoveSettings { attempts_max: u32::from(d), ..Default::default() };
            StartMove { id: MoveId::new(format!("m{number}")), uid, target: (b == 0).then_some(node), settings }.into()
        }
        28 | 34..=37 => AdvanceMove {
            id,
            expect_phase: running.map(|mv| mv.phase).unwrap_or_default(),
            expect_attempt: running.map_or(0, |mv| mv.attempt),
            expect_step: running.map_or(0, |mv| mv.step_count + u32::from(d == 0)),
            outcome: StepOutcome::ALL[usize::from(if c < 2 { 0 } else { b })],
            detail: "test".into(),
        }
        .into(),
        29 if d == 0 => CancelMove { id, reason: String::new() }.into(),
        29 if d == 1 => LoseNode { node, reason: String::new() }.into(),
        29 => {
            running.map_or(CancelMove { id, reason: String::new() }.into(), |mv| obedient_report(world, mv, c).into())
        }
        30 => StartDrain {
            id: DrainId::new(format!("d{number}")),
            target: (b == 0).then(|| world.state.nodes().last().map(|n| n.id.clone()).unwrap_or_default()),
            node,
            ..Default::default()
        }
        .into(),
        31 if c == 0 => CancelDrain { id: drain_id, reason: String::new() }.into(),
        31 => AdvanceDrain { id: drain_id, expect_step: drain.map_or(0, |drain| drain.step_count) }.into(),
        32 if b == 0 => RestartWorkload { uid, expect_revision: None }.into(),
        32 if b == 1 => SuspendWorkload { uid, expect_revision: None }.into(),
        32 => ResumeWorkload { uid, expect_revision: None }.into(),
        42 => obedient_quarantine(world, node, (b, c, d)).into(),
        43 => {
            let kept = world.state.nodes().flat_map(|node| node.quarantine.iter().map(move |kept| (&node.id, kept)));
            let kept: Vec<_> = kept.collect();
            let chosen = kept.get((usize::from(b) * 4 + usize::from(c)) % kept.len().max(1));
            chosen
                .map_or(RemoveVolume::default(), |(node, kept)| RemoveVolume {
                    node: (*node).clone(),
                    engine_name: kept.engine_name.clone(),
                })
                .into()
        }
        _ => running
            .map_or(RestartWorkload { uid, expect_revision: None }.into(), |mv| obedient_report(world, mv, c).into()),
    }
}

/// What an end of a move says when all goes well: the target with a low number, the source with a high one.
fn obedient_report(world: &World, mv: &Move, end: u8) -> ReportStatus {
    let placed = world.state.workload(&mv.workload).and_then(|workload| workload.placement.as_ref());
    let (node, generation) = if end < 2 {
        (mv.target.clone(), mv.target_generation)
    } else {
        (mv.source.clone(), placed.map(|placement| placement.generation).unwrap_or_default())
    };
    let phase = match (end < 2, mv.phase) {
        (false, _) => Phase::Stopped,
        (true, MovePhase::Place | MovePhase::Verify) => Phase::Running,
        (true, _) => Phase::Pending,
    };
    let transfer = VolumeTransfer {
        volume: "data".into(),
        round_done: mv.round,
        source_digest: "x".into(),
        target_digest: "x".into(),
        ..Default::default()
    };
    let status = WorkloadStatus {
        observed_generation: generation,
        phase,
        ready: true,
        transfers: vec![transfer],
        containers: if phase == Phase::Running { vec![ContainerStatus::default()] } else { vec![] },
        ..Default::default()
    };
    let gone = |generation| RemovedGrant { uid: mv.workload.clone(), generation };
    ReportStatus {
        epoch: world.epoch(&node),
        node,
        statuses: vec![StatusReport { uid: mv.workload.clone(), status }],
        removed_grants: vec![gone(mv.target_generation), gone(mv.source_generation)],
        ..Default::default()
    }
}

/// What a node that has had every workload says of the volumes that it keeps. Some are in use, so that what protects them is
/// what the commands themselves check.
fn obedient_quarantine(world: &World, node: NodeId, (b, c, d): (u8, u8, u8)) -> ReportStatus {
    let generations = 0..=u64::from(b) * 2;
    let workloads = world.state.workloads().flat_map(|workload| generations.clone().map(move |data| (workload, data)));
    let volumes = workloads.filter(|(_, data)| *data != u64::from(c)).map(|(workload, data)| QuarantinedVolume {
        workload: workload.uid.clone(),
        volume: "data".into(),
        data_generation: Generation(data),
        engine_name: format!("{}-g{data}", workload.uid),
        removal_asked_at_ms: (d == 0).then_some(1),
        ..Default::default()
    });
    let quarantine = Some(Quarantine { volumes: volumes.collect() });
    ReportStatus { epoch: world.epoch(&node), node, quarantine, ..Default::default() }
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
    if world.state.supports(Feature::Moves) && b == 2 {
        let resources = Resources { cpu_millis: 500 * u64::from(c), memory_bytes: 1 << 20, disk_bytes: 0 };
        spec.services[0].resources = Some(resources);
        spec.suspended = d == 2;
    }
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
    // A third of the histories begins before moves were known, a third before the lives of nodes were.
    let mut world = match steps.len() % 3 {
        0 => World::that_knows(Feature::Lifecycle),
        1 => World::moving(),
        _ => World::new(),
    };
    for name in ["n0", "n1", "n2"] {
        let node = world.node(name);
        let mut open = world.open_command(&node);
        open.facts.allocatable.insert("cpu".into(), 1_000);
        world.ok(open);
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
    for _ in 0..300 {
        let steps = vec(dice(), 120).new_tree(&mut runner).unwrap().current();
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
            let steps = matches!(command, Command::AdvanceMove(_) | Command::AdvanceDrain(_));
            let entry = world.entry(command);
            let refused = world.apply(entry).reply.err();
            prop_assert!(steps || refused.is_none(), "{:?}", refused);
        }
        // What was freed or lost by the first pass may change why others wait: that is settled by the second. A move or a
        // drain takes one step a pass, and has no more phases than this.
        for _ in 0..64 {
            let again = reconcile(&world.state, &heard, &Settings::default(), now_ms);
            for command in again.commands {
                let steps = matches!(command, Command::AdvanceMove(_) | Command::AdvanceDrain(_));
                prop_assert!(steps || matches!(command, Command::PlaceWorkload(_)), "asked again: {:?}", command);
                // A step that was right when the pass began may be wrong after the commands before it.
                let entry = world.entry(command);
                let refused = world.apply(entry).reply.err();
                prop_assert!(steps || refused.is_none(), "{:?}", refused);
            }
        }
        let last = reconcile(&world.state, &heard, &Settings::default(), now_ms);
        prop_assert_eq!(last.commands, vec![]);
    }

    #[test]
    fn bytes_that_are_no_message_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode_entry(&bytes);
        let _ = decode_outcome(&bytes);
        let keys = ["meta", "cluster", "server/1", "node/a", "node-events/a", "join-token/a", "api-token/a"];
        for kind in keys.into_iter().chain(["workload/a", "audit/1", "reply/a", "move/a", "drain/a"]) {
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
