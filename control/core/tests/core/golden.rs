//! Bytes of old logs and old stores must stay readable: files under `tests/golden`, written once by `UPDATE_GOLDEN=1`
//! and then only added to. A change of meaning of a tag makes these fail.

use crate::rotation::{advance, confirm, node_trusts, renew_node, renew_server, rotate, server_trusts};
use crate::sealing::{begin, hold, reseal};
use crate::world::*;
use cara_core::codec::{decode_entry, encode_entry};
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;
use std::path::PathBuf;

/// A history with every command of feature level 1 in it.
fn history() -> World {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    world.ok(mint(90, TokenPurpose::Server));
    world.ok(PutServer { server: server(2), token_hash: Some(hash(90)) });
    world.ok(RemoveServer { server: ServerId(2) });
    world.ok(MintJoinToken { bound_name: Some("c".into()), ..mint(91, TokenPurpose::Node) });
    world.ok(RevokeJoinToken { id: "jt91".into() });
    let old = world.open_command(&a);
    world.ok(RenewCertificate {
        node: a.clone(),
        presented: old.fingerprint.clone(),
        expect_fingerprint: old.fingerprint,
        certificate: certificate(92),
    });
    world.ok(RevokeCertificate { node: b.clone() });
    let epoch = world.epoch(&a);
    let to = |to| TransitionNode { node: a.clone(), epoch, to, reason: "test".into() };
    world.ok(to(Connection::Offline));
    world.ok(to(Connection::Online));
    world.ok(CheckpointSeen { seen: vec![Seen { node: a.clone(), epoch, last_seen_ms: 2_000_000 }] });
    world.ok(Cordon { node: a.clone(), reason: "disk".into() });
    world.ok(Uncordon { node: a.clone(), reason: String::new() });
    world.ok(SetLabels { node: a.clone(), labels: labels(&[("site", "x")]), expect_revision: None });
    world.ok(SetAccepts { node: a.clone(), app: true, database: false, build: true });
    world.ok(ApplyNode { node: "nd_d".into(), name: "d".into(), unschedulable: Some(true), ..Default::default() });
    world.ok(DeleteNode { node: "nd_d".into() });
    let mut create = world.app_command("web", "nginx");
    create.spec.volumes = vec![VolumeSpec { name: "cache".into(), kind: VolumeKind::Ephemeral }];
    create.spec.services[0].volume_mounts = vec![VolumeMount { name: "cache".into(), mount_path: "/c".into() }];
    create.spec.services[0].health_check = Some(HealthCheck { probe: Probe::Tcp, port: 80, ..Default::default() });
    create.spec.services[0].ports = vec![Port { container_port: 80, host_port: Some(80), ..Default::default() }];
    let web = world.workload_answer(create).uid;
    world.ok(RevokePlacement { uid: web.clone(), expect_generation: Generation(1), reason: "test".into() });
    world.ok(PlaceWorkload { uid: web, expect_generation: Generation(1) });
    let report = world.report(&a, "web", Phase::Running);
    world.ok(report);
    let gone = world.app("gone", "nginx").uid;
    world.ok(DeleteWorkload { uid: gone, force: true, expect_revision: None });
    world.ok(PutApiToken { token: api_token("ci", Ability::Write) });
    world.ok(RevokeApiToken { id: "ci".into(), forget: false });
    world.ok(SetFeatureLevel { level: 2 });
    let kept = Entry { request_id: "r1".into(), ..world.entry(Cordon { node: a.clone(), reason: String::new() }) };
    world.apply(kept).reply.unwrap();
    world.ok(CloseSession { node: a, epoch, reason: "end".into() });
    world.ok(Incarnate { incarnation: 2 });
    world
}

/// A history with every command that feature level 2 brought, and with every field of a move and a drain filled.
fn history_of_moves() -> World {
    let mut world = World::moving();
    let (a, b) = (world.node("a"), world.node("b"));
    let mut store = world.app_command("store", "postgres:16");
    store.kind = WorkloadKind::Database;
    store.spec.database = Some(DatabaseSpec { engine: Engine::Postgres, version: "16".into() });
    store.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    store.spec.services[0].resources = Some(Resources { cpu_millis: 250, memory_bytes: 1 << 20, disk_bytes: 1 << 30 });
    let uid = world.workload_answer(ApplyWorkload { node: Some(a.clone()), ..store }).uid;
    let mut web = world.app_command("web", "nginx");
    web.spec.dependencies = vec!["store".into()];
    let web = world.workload_answer(ApplyWorkload { node: Some(a.clone()), ..web }).uid;
    world.ok(RestartWorkload { uid: web.clone(), expect_revision: None });
    world.ok(SuspendWorkload { uid: web.clone(), expect_revision: None });
    world.ok(ResumeWorkload { uid: web, expect_revision: None });
    let start = StartMove { id: "mv1".into(), uid: uid.clone(), target: None, settings: MoveSettings::usual() };
    world.ok(start.clone());
    world.ok(CancelMove { id: "mv1".into(), reason: "test".into() });
    let gone = RemovedGrant { uid: uid.clone(), generation: Generation(2) };
    let quarantined = QuarantinedVolume { workload: uid.clone(), volume: "pg".into(), ..Default::default() };
    world.ok(ReportStatus {
        node: b.clone(),
        epoch: world.epoch(&b),
        removed_grants: vec![gone],
        quarantine: Some(Quarantine { volumes: vec![quarantined] }),
        ..Default::default()
    });
    world.advance("mv1", StepOutcome::Ok);
    world.ok(StartMove { id: "mv2".into(), ..start });
    let mut ready = world.status_of_target("mv2", Phase::Pending);
    ready.statuses[0].status.ready = true;
    ready.statuses[0].status.transfers = vec![VolumeTransfer { volume: "pg".into(), ..Default::default() }];
    world.ok(ready);
    world.advance("mv2", StepOutcome::Waiting);
    world.ok(CancelMove { id: "mv2".into(), reason: String::new() });
    world.ok(CloseSession { node: b.clone(), epoch: world.epoch(&b), reason: String::new() });
    world.ok(LoseNode { node: b.clone(), reason: "fire".into() });
    world.open(&b);
    let drain = |id: &str| StartDrain { id: id.into(), node: a.clone(), target: Some(b.clone()), ..Default::default() };
    world.ok(drain("dr1"));
    world.ok(CancelDrain { id: "dr1".into(), reason: "test".into() });
    world.ok(drain("dr2"));
    world.ok(AdvanceDrain { id: "dr2".into(), expect_step: 0 });
    world
}

/// A history with the commands that came after the files of feature level 2 were written, and with all that a volume in
/// quarantine says.
fn history_of_volumes() -> World {
    let mut world = World::moving();
    let a = world.node("a");
    let kept = QuarantinedVolume {
        workload: "gone".into(),
        volume: "pg".into(),
        data_generation: Generation(3),
        bytes: 1 << 30,
        since_ms: 2_000_000,
        engine_name: "cara-gone-pg-g3".into(),
        workload_name: "gone".into(),
        removal_asked_at_ms: None,
    };
    let quarantine = Some(Quarantine { volumes: vec![kept] });
    world.ok(ReportStatus { node: a.clone(), epoch: world.epoch(&a), quarantine, ..Default::default() });
    world.ok(RemoveVolume { node: a, engine_name: "cara-gone-pg-g3".into() });
    world
}

/// A history with what feature level 3 brought about access: scopes, last uses, and records that say more.
fn history_of_access() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.node("a");
    let scopes = vec![format!("node:{a}"), "workload:shop-".to_owned()];
    let made = ApiToken { scopes, created_by: "token:root".into(), ..api_token("ci", Ability::Write) };
    world.ok(PutApiToken { token: ApiToken { expires_at_ms: Some(9_000_000), ..made } });
    world.ok(CheckpointTokenUse { used: vec![ApiTokenUse { token: "ci".into(), at_ms: 2_000_000 }] });
    let cordon = Entry { actor: "token:ci".into(), ..world.entry(Cordon { node: a, reason: "disk".into() }) };
    world.apply(cordon).reply.unwrap();
    world.ok(RevokeApiToken { id: "ci".into(), forget: false });
    world
}

/// A history with what nodes said and were given with feature level 3.
fn history_of_health() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.enrolled("a");
    let open = world.open_command(&a);
    let facts = Facts {
        agent_version: "0.3.0".into(),
        agent_commit: "0123456789ab".into(),
        os_image: "Debian GNU/Linux 12 (bookworm)".into(),
        hostname: "rack7-n2".into(),
        ..Default::default()
    };
    world.ok(OpenSession { facts, ..open });
    world.ok(SetRegion { node: a.clone(), region: "eu-west".into() });
    world.ok(CloseSession { node: a.clone(), epoch: world.epoch(&a), reason: "end".into() });
    world
}

/// A history with a renewed server and a replaced CA, and with the next replacement begun.
fn history_of_rotation() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.node("a");
    let begin = rotate(&world);
    world.ok(begin);
    let (server, node) = (server_trusts(&world, 1), node_trusts(&world, &a));
    world.ok(server);
    world.ok(node);
    let step = advance(&world, false);
    world.ok(step);
    let (server, node) = (renew_server(&world, 1, 71), renew_node(&world, &a, 72));
    world.ok(server);
    world.ok(node);
    let used = confirm(&world, 1);
    world.ok(used);
    world.open(&a);
    let step = advance(&world, false);
    world.ok(step);
    let begin = rotate(&world);
    world.ok(begin);
    let server = server_trusts(&world, 1);
    world.ok(server);
    let forced = advance(&world, true);
    world.ok(forced);
    let server = renew_server(&world, 1, 73);
    world.ok(server);
    world
}

/// A history with a replaced sealing key, before and after which the CA was replaced, and with one that was begun anew.
fn history_of_sealing() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    world.ok(mint(2, TokenPurpose::Server));
    world.ok(PutServer { server: server(2), token_hash: Some(hash(2)) });
    let first = begin(&world, 50);
    world.ok(first);
    let next_ca = rotate(&world);
    world.ok(next_ca);
    let second = hold(&world, 2);
    world.ok(second);
    let all = reseal(&world, 7);
    world.ok(all);
    let next = begin(&world, 51);
    world.ok(next);
    let another = RotateSealingKey { anew: true, ..begin(&world, 52) };
    world.ok(another);
    world
}

/// A history with the commands about nodes that come back and about clones.
fn history_of_returns() -> World {
    let mut world = World::that_knows(Feature::Lifecycle);
    let a = world.node("a");
    let open = world.open_command(&a);
    world.ok(OpenSession { instance: "i1".into(), ..open });
    world.ok(NoteClone {
        node: a.clone(),
        instance: "i2".into(),
        expect_instance: "i1".into(),
        hostname: "copy.lan".into(),
    });
    world.ok(MintReenrollToken { id: "jt95".into(), hash: hash(95), node: a.clone(), expires_at_ms: 10_000_000 });
    let address = "10.0.0.9".into();
    let facts = Facts { os: "linux".into(), ..Default::default() };
    world.ok(ReenrollNode { token_hash: hash(95), node: a, address, certificate: certificate(96), facts });
    world
}

/// Length and bytes, one after the other.
fn pack(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.iter().flat_map(|part| (part.len() as u32).to_le_bytes().into_iter().chain(part.iter().copied())).collect()
}

fn unpack(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (part, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        parts.push(part.to_vec());
        bytes = rest;
    }
    parts
}

#[expect(clippy::disallowed_methods, reason = "the test reads its own golden files; the crate reads none")]
fn golden(name: &str, fresh: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var("UPDATE_GOLDEN").is_ok() {
        std::fs::write(&path, pack(fresh)).unwrap();
    }
    unpack(&std::fs::read(&path).expect("no golden file; write it once with UPDATE_GOLDEN=1"))
}

#[test]
fn the_history_has_every_command() {
    let mut worlds = vec![history(), history_of_moves(), history_of_volumes()];
    worlds.extend([history_of_access(), history_of_health(), history_of_rotation(), history_of_returns()]);
    worlds.push(history_of_sealing());
    let mut names: Vec<_> = worlds.iter().flat_map(|world| &world.log).map(|(_, entry)| entry.command.name()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), Command::NAMES.len() - 1, "all but Unknown: {names:?}");
}

#[test]
fn an_old_log_gives_the_same_state() {
    same_state(&history(), "log-v1.bin", "state-v1.bin");
    same_state(&history_of_moves(), "log-v2.bin", "state-v2.bin");
    same_state(&history_of_volumes(), "log-v2-volumes.bin", "state-v2-volumes.bin");
    same_state(&history_of_access(), "log-v3-access.bin", "state-v3-access.bin");
    same_state(&history_of_health(), "log-v3-health.bin", "state-v3-health.bin");
    same_state(&history_of_rotation(), "log-v3-ca.bin", "state-v3-ca.bin");
    same_state(&history_of_sealing(), "log-v3-sealing.bin", "state-v3-sealing.bin");
    same_state(&history_of_returns(), "log-v3-returns.bin", "state-v3-returns.bin");
}

fn same_state(world: &World, log: &str, stored: &str) {
    let fresh: Vec<Vec<u8>> = world.log.iter().map(|(_, entry)| encode_entry(entry).unwrap()).collect();
    let mut state = State::default();
    for (at, bytes) in golden(log, &fresh).iter().enumerate() {
        let entry = decode_entry(bytes).unwrap();
        let name = entry.command.name();
        let applied = state.apply_entry(at as u64 + 1, entry);
        assert!(applied.reply.is_ok(), "entry {at} ({name}) of the old log is refused now: {:?}", applied.reply);
    }
    let old = State::load(pairs(golden(stored, &flat(&world.state)))).unwrap();
    assert_eq!(old, state, "the old log and the old store disagree");
    assert!(invariant::check(&old).is_empty());
}

fn flat(state: &State) -> Vec<Vec<u8>> {
    state.dump().into_iter().flat_map(|(key, value)| [key, value]).collect()
}

fn pairs(parts: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    parts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}
