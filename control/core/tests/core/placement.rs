//! Placement: who gets what, and why not.

use crate::world::*;
use cara_core::command::*;
use cara_core::model::*;
use cara_core::*;

#[test]
fn a_hundred_creates_spread_within_one() {
    let mut world = World::new();
    let nodes: Vec<NodeId> = (0..7).map(|n| world.node(&format!("n{n}"))).collect();
    for n in 0..100 {
        world.app(&format!("app-{n}"), "nginx");
    }
    let counts: Vec<usize> = nodes.iter().map(|node| world.state.placed_count(node)).collect();
    assert_eq!(counts.iter().sum::<usize>(), 100);
    assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
}

#[test]
fn ties_go_to_the_lowest_id() {
    let mut world = World::new();
    let first = world.node("z");
    world.node("a");
    assert_eq!(world.app("web", "nginx").placement.unwrap().node, first);
}

/// The rule as it is written down, without any shortcut.
fn fewest(state: &State, workload: &Workload) -> Option<NodeId> {
    let fit = state.nodes().filter(|node| unfit(state, node, workload, Purpose::Place).is_none());
    let has = |id: &NodeId| state.placed_count(id) + state.incoming(id).count();
    fit.map(|node| (has(&node.id), node.id.clone())).min().map(|(_, id)| id)
}

#[test]
fn the_choice_is_the_fewest_of_all_that_fit_whoever_comes_first() {
    let mut world = World::moving();
    let nodes: Vec<NodeId> = (0..6).map(|n| world.node(&format!("n{n}"))).collect();
    let mut chosen = 0;
    for n in 0..60_usize {
        let node = nodes[n * 7 % 6].clone();
        let named = node.clone();
        match n % 7 {
            0 => drop(world.ok(Cordon { node, reason: String::new() })),
            1 | 6 => drop(world.ok(Uncordon { node, reason: String::new() })),
            2 => drop(world.ok(SetLabels { node, labels: labels(&[("site", "a")]), expect_revision: None })),
            3 => drop(world.ok(SetAccepts { node, app: n % 2 == 0, database: true, build: false })),
            4 if world.state.node(&node).is_some_and(|node| node.session.is_some()) => {
                let epoch = world.epoch(&node);
                drop(world.ok(CloseSession { node, epoch, reason: String::new() }));
            }
            5 => drop(world.open(&node)),
            _ => {}
        }
        let mut create = world.app_command(&format!("app-{n}"), "nginx");
        if n % 3 == 0 {
            create.spec.selector = labels(&[("site", "a")]);
        }
        let asked = Workload { kind: create.kind, spec: create.spec.clone(), ..Workload::default() };
        let expected = fewest(&world.state, &asked);
        assert_eq!(choose(&world.state, &asked, Purpose::Place).ok(), expected, "step {n}");
        let asked = Workload { explicit_node: Some(named), ..asked };
        assert_eq!(choose(&world.state, &asked, Purpose::Place).ok(), fewest(&world.state, &asked), "step {n}");
        assert_eq!(world.workload_answer(create).placement.map(|placement| placement.node), expected, "step {n}");
        chosen += usize::from(expected.is_some());
    }
    assert!((20..60).contains(&chosen), "{chosen} of 60 have a node: both ways are to be seen");
}

#[test]
fn each_rejected_node_says_why() {
    let mut world = World::new();
    world.enrolled("never");
    let offline = world.node("offline");
    world.ok(CloseSession { node: offline.clone(), epoch: world.epoch(&offline), reason: String::new() });
    let cordoned = world.node("cordoned");
    world.ok(Cordon { node: cordoned, reason: String::new() });
    let picky = world.node("picky");
    world.ok(SetAccepts { node: picky, app: false, database: true, build: false });
    world.node("bare");
    let mut create = world.app_command("web", "nginx");
    create.spec.selector = labels(&[("site", "hall-b")]);
    let answer = world.workload_answer(create);
    assert_eq!(answer.placement, None);
    let reasons: Vec<&str> = answer.rejections.iter().map(|r| r.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["has not connected yet", "offline", "cordoned", "does not accept kind App", "lacks label site=hall-b"]
    );
}

#[test]
fn a_host_port_is_given_once_a_node() {
    let mut world = World::new();
    let published = |world: &mut World, name: &str, port: u32| {
        let mut create = world.app_command(name, "nginx");
        create.spec.services[0].ports = vec![Port { container_port: 80, host_port: Some(port), ..Default::default() }];
        create
    };
    let (a, b) = (world.node("a"), world.node("b"));
    let one = published(&mut world, "one", 8080);
    let two = published(&mut world, "two", 8080);
    let three = published(&mut world, "three", 8080);
    assert_eq!(world.workload_answer(one).placement.unwrap().node, a);
    assert_eq!(world.workload_answer(two).placement.unwrap().node, b);
    let answer = world.workload_answer(three);
    assert_eq!(answer.rejections[0].reason, "host port 8080 is taken by one");
    let other = published(&mut world, "four", 9090);
    assert_eq!(world.workload_answer(other).placement.unwrap().node, a);
    let clash = published(&mut world, "four", 8080);
    assert_eq!(world.refused(clash), "host-port-taken");
}

#[test]
fn an_explicit_node_is_checked_and_kept() {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    let on = |world: &mut World, name: &str, node: &str| ApplyWorkload {
        node: Some(node.into()),
        ..world.app_command(name, "nginx")
    };
    let unknown = on(&mut world, "web", "nd_z");
    assert_eq!(world.refused(unknown), "unknown-node");
    let create = on(&mut world, "web", b.as_str());
    let placement = world.workload_answer(create).placement.unwrap();
    assert_eq!((placement.node, placement.auto_placed), (b.clone(), false));
    let elsewhere = on(&mut world, "web", a.as_str());
    assert_eq!(world.refused(elsewhere), "placement-fixed");
    world.ok(Cordon { node: a.clone(), reason: String::new() });
    let cordoned = on(&mut world, "other", a.as_str());
    assert_eq!(world.refused(cordoned), "node-not-eligible");
}

#[test]
fn a_placement_command_assumes_a_generation() {
    let mut world = World::new();
    let uid = world.app("web", "nginx").uid;
    world.node("a");
    let place = PlaceWorkload { uid: uid.clone(), expect_generation: Generation(0) };
    assert_eq!(world.events(place.clone()), ["WorkloadPlaced"]);
    assert_eq!(world.refused(place), "stale-generation");
    let again = PlaceWorkload { uid, expect_generation: Generation(1) };
    assert_eq!(world.refused(again), "placement-fixed");
    let nobody = PlaceWorkload { uid: "w_z".into(), expect_generation: Generation(0) };
    assert_eq!(world.refused(nobody), "unknown-workload");
}

#[test]
fn a_stateless_placement_can_be_revoked_and_a_stateful_claim_cannot() {
    let mut world = World::new();
    let (a, b) = (world.node("a"), world.node("b"));
    let uid = world.app("web", "nginx").uid;
    world.ok(Cordon { node: a.clone(), reason: String::new() });
    let revoke = |uid: &WorkloadUid, generation| RevokePlacement {
        uid: uid.clone(),
        expect_generation: Generation(generation),
        reason: "node lost".into(),
    };
    assert_eq!(world.refused(revoke(&uid, 9)), "stale-generation");
    assert_eq!(world.events(revoke(&uid, 1)), ["WorkloadUnplaced"]);
    assert_eq!(world.refused(revoke(&uid, 1)), "not-placed");
    let placed = world.workload_answer(PlaceWorkload { uid, expect_generation: Generation(1) }).placement.unwrap();
    assert_eq!((placed.node, placed.generation), (b, Generation(2)));
    let mut stateful = world.app_command("store", "postgres");
    stateful.spec.volumes = vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Managed }];
    let uid = world.workload_answer(stateful).uid;
    assert_eq!(world.refused(revoke(&uid, 1)), "stateful-claim");
}

#[test]
fn cordon_moves_nothing_and_takes_nothing_new() {
    let mut world = World::new();
    let a = world.node("a");
    world.app("web", "nginx");
    world.ok(Cordon { node: a.clone(), reason: String::new() });
    assert_eq!(world.state.placed_count(&a), 1);
    assert_eq!(world.app("late", "nginx").placement, None);
    let update = world.app("web", "nginx:2").placement.unwrap();
    assert_eq!((update.node, update.generation), (a, Generation(2)), "an update goes to where it runs");
}
