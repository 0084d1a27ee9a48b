//! Each invariant is broken once, and must be found: a check that can't fail would prove nothing.

use crate::world::*;
use cara_core::command::*;
use cara_core::invariant::{InvariantId, check, check_step};
use cara_core::model::*;
use cara_core::*;
use prost::Message;

/// A good state: two nodes, two workloads, a token that is used.
fn good() -> World {
    let mut world = World::new();
    let a = world.node("a");
    world.node("b");
    for (name, port) in [("one", 8_001), ("two", 8_002), ("three", 8_003)] {
        let mut create = world.app_command(name, "nginx");
        create.spec.services[0].ports = vec![Port { container_port: 80, host_port: Some(port), ..Default::default() }];
        world.ok(create);
    }
    world.ok(Cordon { node: a, reason: String::new() });
    world
}

/// The state with the object under the key changed behind its back.
fn broken<T: Message + Default>(state: &State, key: &str, change: impl FnOnce(&mut T)) -> State {
    let mut change = Some(change);
    let pairs = state.dump().into_iter().map(|(at, value)| {
        if at != key.as_bytes() {
            return (at, value);
        }
        let mut object = T::decode(value.as_slice()).unwrap();
        change.take().unwrap()(&mut object);
        (at, object.encode_to_vec())
    });
    let state = State::load(pairs).unwrap();
    assert!(change.is_none(), "there is no {key}");
    state
}

fn found(state: &State, id: InvariantId) {
    let violations = check(state);
    assert!(violations.iter().any(|violation| violation.id == id), "{id} was not found: {violations:?}");
}

fn node(state: &State, id: InvariantId, change: impl FnOnce(&mut Node)) {
    let key = format!("node/{}", state.node_by_name("a").unwrap().id);
    found(&broken(state, &key, change), id);
}

fn workload(state: &State, id: InvariantId, change: impl FnOnce(&mut Workload)) {
    let key = format!("workload/{}", state.workload_by_name(WorkloadKind::App, "one").unwrap().uid);
    found(&broken(state, &key, change), id);
}

#[test]
fn what_is_wrong_with_a_node_is_found() {
    let state = good().state;
    let taken = state.node_by_name("b").unwrap().clone();
    node(&state, InvariantId::NamesUnique, |n| n.name = "b".into());
    node(&state, InvariantId::FingerprintsUnique, |n| n.certificate = taken.certificate.clone());
    node(&state, InvariantId::EpochBounded, |n| n.session.as_mut().unwrap().epoch = Epoch(9));
    node(&state, InvariantId::OnlineHasSession, |n| n.session = None);
    node(&state, InvariantId::PendingNeverConnected, |n| n.connection = Connection::Pending);
    node(&state, InvariantId::SessionHasCertificate, |n| n.certificate.as_mut().unwrap().revoked_at_ms = Some(1));
    node(&state, InvariantId::TokenSpentOnce, |n| n.enrolled_with = taken.enrolled_with.clone());
    let token = format!("join-token/{}", state.node_by_name("a").unwrap().enrolled_with.clone().unwrap());
    let of_another = |t: &mut JoinToken| t.bound_node = Some(taken.id.clone());
    found(&broken(&state, &token, of_another), InvariantId::TokenBound);
    node(&state, InvariantId::RevisionBounded, |n| n.revision = Revision(9_999));
    node(&state, InvariantId::Bounded, |n| n.labels = (0..33).map(|k| (format!("k{k}"), "v".into())).collect());
    let events = format!("node-events/{}", state.node_by_name("a").unwrap().id);
    found(&broken(&state, &events, |e: &mut NodeEvents| e.events[0].at_ms = u64::MAX), InvariantId::OrderedInTime);
    let many = |e: &mut NodeEvents| e.events = vec![NodeEvent::default(); limits::NODE_EVENTS_MAX + 1];
    found(&broken(&state, &events, many), InvariantId::Bounded);
}

#[test]
fn what_is_wrong_with_a_workload_is_found() {
    let state = good().state;
    workload(&state, InvariantId::NamesUnique, |w| w.name = "two".into());
    workload(&state, InvariantId::PlacedNodeExists, |w| w.placement.as_mut().unwrap().node = "nd_z".into());
    workload(&state, InvariantId::GenerationBounded, |w| w.last_generation = Generation(0));
    workload(&state, InvariantId::DeletingIsPlaced, |w| {
        w.deleting = true;
        w.placement = None;
    });
    let third = state.workload_by_name(WorkloadKind::App, "three").unwrap();
    let first = state.workload_by_name(WorkloadKind::App, "one").unwrap();
    assert_eq!(third.placement.as_ref().unwrap().node, first.placement.as_ref().unwrap().node);
    workload(&state, InvariantId::HostPortsUnique, |w| w.spec.services[0].ports[0].host_port = Some(8_003));
}

#[test]
fn what_is_wrong_with_the_cluster_is_found() {
    let state = good().state;
    let first = format!("server/{:020}", 1);
    let root = |token: &mut ApiToken| token.revoked_at_ms = Some(1);
    found(&broken(&state, "api-token/root", root), InvariantId::RootTokenLeft);
    let ids = |cluster: &mut Cluster| cluster.last_server_id = ServerId(0);
    found(&broken(&state, "cluster", ids), InvariantId::ServerLeft);
    let twice = |cluster: &mut Cluster| cluster.former_sealing_keys = vec![hash(1), hash(1)];
    found(&broken(&state, "cluster", twice), InvariantId::SealingKeysDiffer);
    let dropped = |cluster: &mut Cluster| cluster.ca = 2;
    found(&broken(&state, "cluster", dropped), InvariantId::TrustShared);
    let unknown = |server: &mut Server| server.certificate.ca = 2;
    found(&broken(&state, &first, unknown), InvariantId::TrustShared);
    let before = |server: &mut Server| {
        server.certificate.previous = Some(Previous { ca: 2, ..Previous::default() });
    };
    found(&broken(&state, &first, before), InvariantId::TrustShared);
}

#[test]
fn what_went_back_is_found() {
    let world = good();
    let after = &world.state;
    let first = format!("server/{:020}", 1);
    let node = format!("node/{}", after.node_by_name("a").unwrap().id);
    let workload = format!("workload/{}", after.workload_by_name(WorkloadKind::App, "one").unwrap().uid);
    let token = format!("join-token/{}", after.node_by_name("a").unwrap().enrolled_with.clone().unwrap());
    let before = broken(after, &node, |n: &mut Node| n.last_epoch = Epoch(9));
    step(&before, after, InvariantId::EpochRises);
    let before = broken(after, &node, |n: &mut Node| {
        let certificate = n.certificate.as_mut().unwrap();
        certificate.fingerprint = hash(12_345);
    });
    step(&before, after, InvariantId::CertificateRises);
    let before = broken(after, &node, |n: &mut Node| {
        let certificate = n.certificate.as_mut().unwrap();
        certificate.revoked_at_ms = Some(1);
    });
    step(&before, after, InvariantId::RevokedStands);
    let before = broken(after, &workload, |w: &mut Workload| w.last_generation = Generation(9));
    step(&before, after, InvariantId::GenerationRises);
    let before = broken(after, &workload, |w: &mut Workload| w.placement = None);
    step(&before, after, InvariantId::GenerationRises);
    let on_a = after.placed_on(&after.node_by_name("a").unwrap().id).next().unwrap();
    let placed = format!("workload/{}", on_a.uid);
    let before = broken(after, &placed, |w: &mut Workload| w.placement = None);
    step(&before, after, InvariantId::CordonHolds);
    let before = broken(after, &workload, |w: &mut Workload| w.deleting = true);
    step(&before, after, InvariantId::DeletionStands);
    let before = broken(after, &token, |t: &mut JoinToken| t.used.as_mut().unwrap().key_hash = hash(9));
    step(&before, after, InvariantId::TokenUseStands);
    let before = broken(after, "cluster", |cluster: &mut Cluster| cluster.trust_epoch = 9);
    step(&before, after, InvariantId::TrustRises);
    let before = broken(after, &first, |server: &mut Server| server.certificate.generation = Generation(9));
    step(&before, after, InvariantId::CertificateRises);
    step(after, &World::new().state, InvariantId::LogTimeRises);
}

#[test]
fn what_is_sealed_too_early_or_not_at_all_is_found() {
    let after = good().state;
    let after = broken(&after, "cluster", |cluster: &mut Cluster| cluster.sealing_key = hash(2));
    let before = |holders: Vec<ServerId>, ca_key_sealed: Vec<u8>| {
        broken(&after, "cluster", |cluster: &mut Cluster| {
            cluster.sealing_key = hash(1);
            cluster.next_sealing_key = Some(NextSealingKey { key_id: hash(2), holders, started_at_ms: 1 });
            cluster.ca_key_sealed = ca_key_sealed;
        })
    };
    step(&before(vec![], vec![9]), &after, InvariantId::SealedByAll);
    let same = after.cluster().unwrap().ca_key_sealed.clone();
    step(&before(vec![ServerId(1)], same), &after, InvariantId::SealedByAll);
    assert!(check_step(&before(vec![ServerId(1)], vec![9]), &after).is_empty());
}

fn step(before: &State, after: &State, id: InvariantId) {
    let violations = check_step(before, after);
    assert!(violations.iter().any(|violation| violation.id == id), "{id} was not found: {violations:?}");
}

/// Two nodes, a stateful workload on the first and a move of it that has just begun; a drain of another node.
fn good_move() -> World {
    let mut world = World::moving();
    let a = world.node("a");
    let mut create = world.app_command("one", "postgres");
    create.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    create.spec.services[0].resources = Some(Resources { cpu_millis: 500, ..Default::default() });
    let uid = world.workload_answer(ApplyWorkload { node: Some(a), ..create }).uid;
    world.node("b");
    let c = world.node("c");
    world.ok(StartMove {
        id: "m1".into(),
        uid,
        target: world.state.node_by_name("b").map(|node| node.id.clone()),
        settings: MoveSettings::default(),
    });
    world.ok(StartDrain { id: "d1".into(), node: c, ..Default::default() });
    world
}

#[test]
fn what_is_wrong_with_a_move_is_found() {
    let state = good_move().state;
    let mv = |id, change: fn(&mut Move)| found(&broken(&state, "move/m1", change), id);
    mv(InvariantId::MoveEndsExist, |m| m.target = "nd_z".into());
    mv(InvariantId::MoveEndsExist, |m| m.target = m.source.clone());
    mv(InvariantId::MoveHoldsWorkload, |m| m.phase = MovePhase::StopOld);
    mv(InvariantId::MoveOver, |m| m.finished_at_ms = Some(1));
    mv(InvariantId::MoveOver, |m| m.phase = MovePhase::Done);
    mv(InvariantId::Bounded, |m| m.steps = vec![MoveStep::default(); limits::MOVE_STEPS_MAX + 1]);
    mv(InvariantId::RevisionBounded, |m| m.revision = Revision(9_999));
    let drain = |id, change: fn(&mut Drain)| found(&broken(&state, "drain/d1", change), id);
    drain(InvariantId::MoveOver, |d| d.finished_at_ms = Some(1));
    drain(InvariantId::RevisionBounded, |d| d.revision = Revision(9_999));
    let failed = broken(&state, "move/m1", |m: &mut Move| (m.status, m.finished_at_ms) = (MoveStatus::Failed, Some(1)));
    found(&broken(&failed, "drain/d1", |d: &mut Drain| d.moves = vec!["m1".into()]), InvariantId::DrainStops);
    node(&state, InvariantId::LostIsSilent, |n| n.lost = true);
    // A stateless move that was taken for a stateful one: both ends are told to run.
    let both = broken(&state, "move/m1", |m: &mut Move| {
        m.stateful = false;
        m.phase = MovePhase::Place;
    });
    found(&both, InvariantId::OneRunner);
    // Data that were given up although they are in use, and a volume of them that is to go.
    let one = state.workload_by_name(WorkloadKind::App, "one").unwrap();
    let key = format!("workload/{}", one.uid);
    let (uid, data_generation) = (one.uid.clone(), one.data_generation);
    let given_up = broken(&failed, &key, |w: &mut Workload| w.fresh_data = true);
    node(&given_up, InvariantId::RemovedUnneeded, |n| {
        let asked = Some(1);
        let volume =
            QuarantinedVolume { workload: uid, data_generation, removal_asked_at_ms: asked, ..Default::default() };
        n.quarantine = vec![volume];
    });
    // The node that should go on serving it has it no more.
    let elsewhere = state.node_by_name("c").unwrap().id.clone();
    let unserved = broken(&state, "move/m1", |m: &mut Move| (m.stateful, m.source) = (false, elsewhere));
    found(&unserved, InvariantId::ServedThroughout);
    for (from, to, id) in
        [("move/m1", "move/m2", InvariantId::RunningMoveOnce), ("drain/d1", "drain/d2", InvariantId::RunningDrainOnce)]
    {
        let copy = state.dump().into_iter().find(|(key, _)| key == from.as_bytes()).map(|(_, value)| value);
        let twice = state.dump().into_iter().chain([(to.as_bytes().to_vec(), copy.unwrap())]);
        found(&State::load(twice).unwrap(), id);
    }
}

#[test]
fn a_move_that_went_wrong_is_found() {
    let world = good_move();
    let after = &world.state;
    let uid = after.workload_by_name(WorkloadKind::App, "one").unwrap().uid.clone();
    let (workload, a) = (format!("workload/{uid}"), format!("node/{}", after.node_by_name("a").unwrap().id));
    let was = |change: fn(&mut Move), id| step(&broken(after, "move/m1", change), after, id);
    was(|m| m.target_generation = Generation(9), InvariantId::MoveStands);
    was(|m| (m.status, m.finished_at_ms) = (MoveStatus::Failed, Some(1)), InvariantId::MoveStands);
    was(|m| m.phase = MovePhase::Finalize, InvariantId::CommitStands);
    let before = broken(after, "drain/d1", |d: &mut Drain| d.node = "nd_z".into());
    step(&before, after, InvariantId::MoveStands);
    let now = |change: fn(&mut Move), id| step(after, &broken(after, "move/m1", change), id);
    now(|m| m.phase = MovePhase::CopyVolumes, InvariantId::StopBeforeStart);
    now(|m| m.ordered_to_run = true, InvariantId::StopBeforeStart);
    let ordered = broken(after, "move/m1", |m: &mut Move| m.ordered_to_run = true);
    step(&ordered, &ordered, InvariantId::GoneBeforeReturn);
    let later = broken(after, &workload, |w: &mut Workload| w.placement = None);
    step(after, &later, InvariantId::StopBeforeGrant);
    let later = broken(after, &workload, |w: &mut Workload| w.data_generation = Generation(7));
    step(after, &later, InvariantId::DataGenerationStands);
    let small = |n: &mut Node| n.facts.allocatable = [("cpu".to_string(), 400)].into();
    let free = broken(after, &workload, |w: &mut Workload| w.spec.services[0].resources = None);
    step(&free, &broken(after, &a, small), InvariantId::BookedFits);
}

#[test]
fn each_invariant_says_what_must_hold() {
    for id in InvariantId::ALL {
        assert!(id.sentence().ends_with('.') && id.sentence().len() > 20, "{id}");
    }
}
