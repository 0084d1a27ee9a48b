//! Who may read what, and when.

use cara_proto::workload::{Assignment, Service, Spec, Transfer, Volume};
use cara_transport::Peer;
use tonic::Code;

use super::*;
use crate::testing::ManualClock;

fn owner() -> Owner {
    Owner { cluster_id: "c".into(), node_id: "source".into() }
}

fn caller(cluster: &str, role: Role) -> Caller {
    let peer = Peer { cluster: cluster.into(), role, fingerprint: String::new() };
    Caller { peer: Some(peer), address: "10.0.0.9:1".into() }
}

fn target() -> Caller {
    caller("c", Role::Node("target".into()))
}

fn assignment() -> Assignment {
    let volume = |name: &str, ephemeral| Volume { name: name.into(), ephemeral };
    let volumes = vec![volume("data", false), volume("scratch", true)];
    Assignment {
        uid: "u".into(),
        name: "db".into(),
        generation: 3,
        data_generation: 2,
        spec: Some(Spec { services: vec![Service::default()], volumes }),
        transfer: Some(Transfer {
            move_id: "m".into(),
            source_node: "source".into(),
            target_node: "target".into(),
            from_data_generation: 2,
            to_data_generation: 4,
            round: 1,
            ..Transfer::default()
        }),
        ..Assignment::default()
    }
}

fn round() -> pb::Round {
    pb::Round {
        move_id: "m".into(),
        workload_uid: "u".into(),
        volume: "data".into(),
        data_generation: 2,
        number: 1,
        r#final: false,
    }
}

fn ask(assignment: &Assignment, caller: &Caller, round: &pb::Round) -> Result<String, Code> {
    let desired = Desired { assignments: vec![assignment.clone()], ..Desired::default() };
    permit(&owner(), Some(&desired), Some(caller), round).map_err(|status| status.code())
}

#[test]
fn the_target_of_the_move_reads_the_volume_of_the_round() {
    let name = ask(&assignment(), &target(), &round()).expect("permitted");
    assert_eq!(name, owner().volume_name(&assignment(), "data"));
}

#[test]
fn nobody_else_does() {
    for other in [
        caller("c", Role::Node("another".into())),
        caller("another", Role::Node("target".into())),
        caller("c", Role::Server(1)),
        Caller { peer: None, address: String::new() },
    ] {
        assert_eq!(ask(&assignment(), &other, &round()), Err(Code::PermissionDenied), "{other:?}");
    }
    let mut elsewhere = assignment();
    elsewhere.transfer.as_mut().expect("set").source_node = "another".into();
    assert_eq!(ask(&elsewhere, &target(), &round()), Err(Code::PermissionDenied));
}

#[test]
fn only_what_this_node_was_told_itself_is_sent() {
    let refused = [
        pb::Round { move_id: "another".into(), ..round() },
        pb::Round { workload_uid: "another".into(), ..round() },
        pb::Round { volume: "another".into(), ..round() },
        pb::Round { volume: "scratch".into(), ..round() },
        pb::Round { data_generation: 1, ..round() },
        pb::Round { number: 2, ..round() },
        pb::Round { r#final: true, ..round() },
    ];
    for round in refused {
        assert_eq!(ask(&assignment(), &target(), &round), Err(Code::FailedPrecondition), "{round:?}");
    }
    let without = Assignment { transfer: None, ..assignment() };
    assert_eq!(ask(&without, &target(), &round()), Err(Code::FailedPrecondition));
    assert_eq!(
        permit(&owner(), None, Some(&target()), &round()).map_err(|status| status.code()),
        Err(Code::FailedPrecondition)
    );
}

#[test]
fn the_final_round_needs_the_order_to_stop() {
    let mut running = assignment();
    running.transfer.as_mut().expect("set").r#final = true;
    let last = pb::Round { r#final: true, ..round() };
    assert_eq!(ask(&running, &target(), &last), Err(Code::FailedPrecondition));
    let stopped = Assignment { mode: "stop".into(), ..running };
    ask(&stopped, &target(), &last).expect("permitted");
}

async fn ask_when_told(
    clock: &dyn Clock,
    caller: &Caller,
    desired: &watch::Sender<Option<Arc<Desired>>>,
) -> Result<String, Code> {
    let of_now = desired.subscribe();
    let check = || permit(&owner(), of_now.borrow().as_deref(), Some(caller), &round());
    when_told(clock, desired.subscribe(), check).await.map_err(|status| status.code())
}

#[tokio::test]
async fn a_target_that_was_told_first_is_answered_once_this_node_is_told() {
    let (clock, desired) = (ManualClock::new(), watch::Sender::new(None));
    let tell = async {
        for assignments in [vec![], vec![assignment()]] {
            desired.send_replace(Some(Arc::new(Desired { assignments, ..Desired::default() })));
            tokio::task::yield_now().await;
        }
    };
    let target = target();
    let (answer, ()) = tokio::join!(ask_when_told(&*clock, &target, &desired), tell);
    assert_eq!(answer, Ok(owner().volume_name(&assignment(), "data")));
}

#[tokio::test]
async fn what_this_node_is_never_told_is_refused_after_a_while_and_a_stranger_at_once() {
    let desired = watch::Sender::new(None);
    let hurried = ManualClock::hurried();
    assert_eq!(ask_when_told(&*hurried, &target(), &desired).await, Err(Code::FailedPrecondition));
    let stranger = caller("another", Role::Node("target".into()));
    assert_eq!(ask_when_told(&*ManualClock::new(), &stranger, &desired).await, Err(Code::PermissionDenied));
}
