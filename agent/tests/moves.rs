//! A workload moves from one node to another, as the two agents see it: two whole agents on memory engines, real TLS over
//! loopback, and a server that says what a leader would.

mod server;

use std::sync::Arc;
use std::time::Duration;

use cara_agent::labels::Owner;
use cara_agent::runtime::memory::{MemoryHandle, MemoryRuntime};
use cara_agent::{Config, RunError};
use cara_env::{Env, Task};
use cara_proto::agent::{Desired, Fence, Report, VolumeRemoval};
use cara_proto::workload::{Assignment, HealthCheck, Mount, Service, Spec, Status, Transfer, TransferStatus, Volume};
use server::{Behaviour, Cluster};
use tokio::sync::watch;

/// Ends a broken test; nothing here takes more than a few seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// One node with the server that it talks to.
struct Node {
    cluster: Cluster,
    owner: Owner,
    engine: MemoryHandle,
    runtime: MemoryRuntime,
    folder: tempfile::TempDir,
    stop: watch::Sender<bool>,
    task: Task<Result<(), RunError>>,
    revision: u64,
}

impl Node {
    async fn start(cluster: Cluster, node_id: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = MemoryRuntime::new(Env::real().clock);
        let (stop, task) = run(config(&folder, &cluster), runtime.clone());
        let owner = Owner { cluster_id: "cl_1".into(), node_id: node_id.into() };
        Self { cluster, owner, engine: runtime.handle(), runtime, folder, stop, task, revision: 0 }
    }

    /// Ends the agent and starts another one on the same folder and engine.
    async fn restart(&mut self) {
        self.stop.send_replace(true);
        let ended = tokio::time::timeout(PATIENCE, &mut self.task).await.expect("it ends");
        ended.expect("not aborted").expect("a clean end");
        let config = Config { token: None, ..config(&self.folder, &self.cluster) };
        (self.stop, self.task) = run(config, self.runtime.clone());
    }

    async fn send(&mut self, assignments: &[Assignment]) {
        self.send_with(assignments, Vec::new()).await;
    }

    async fn send_with(&mut self, assignments: &[Assignment], removals: Vec<VolumeRemoval>) {
        self.revision += 1;
        let fence = Some(Fence { incarnation: 1, term: 1, revision: self.revision });
        self.cluster.send(Desired { fence, assignments: assignments.to_vec(), removals }).await;
    }

    async fn address(&self) -> String {
        self.cluster.until("a session", |seen| !seen.hellos.is_empty()).await;
        self.cluster.seen().hellos.last().expect("there is one").volume_address.clone()
    }

    async fn until(&self, what: &str, condition: impl Fn(&Report) -> bool) {
        self.cluster.until(what, |seen| seen.reports.last().is_some_and(&condition)).await;
    }

    async fn until_status(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        let of = |report: &Report| report.statuses.iter().find(|s| s.uid == "db" && condition(s)).cloned();
        self.until(what, |report| of(report).is_some()).await;
        // The report may have changed since; any that fitted will do.
        self.cluster.seen().reports.iter().rev().find_map(of).expect("it was seen")
    }

    async fn until_transfer(&self, what: &str, condition: impl Fn(&TransferStatus) -> bool) -> TransferStatus {
        let fits = |status: &Status| status.transfer.as_ref().is_some_and(&condition);
        self.until_status(what, fits).await.transfer.expect("it was seen")
    }

    fn volume(&self, data_generation: u64) -> String {
        self.owner.volume_name(&assignment("run", 1, data_generation, None), "data")
    }
}

fn config(folder: &tempfile::TempDir, cluster: &Cluster) -> Config {
    let mut config = Config::new(folder.path(), "n", "127.0.0.1");
    config.token = Some(cluster.token());
    config.volume_listen = "127.0.0.1:0".into();
    config.backoff_min = Duration::from_millis(20);
    config.backoff_max = Duration::from_millis(100);
    config.connect_deadline = Duration::from_secs(5);
    config.resync = Duration::from_millis(100);
    config
}

fn run(config: Config, runtime: MemoryRuntime) -> (watch::Sender<bool>, Task<Result<(), RunError>>) {
    let (stop, stopped) = watch::channel(false);
    let task = cara_env::spawn(cara_agent::run(config, Env::real(), Arc::new(runtime), stopped));
    (stop, task)
}

fn assignment(mode: &str, generation: u64, data_generation: u64, transfer: Option<Transfer>) -> Assignment {
    let mounts = vec![Mount { volume: "data".into(), path: "/data".into() }];
    let service = Service { name: "db".into(), image: "postgres".into(), mounts, ..Service::default() };
    let volumes = vec![Volume { name: "data".into(), ephemeral: false }];
    Assignment {
        uid: "db".into(),
        name: "db".into(),
        kind: "Database".into(),
        generation,
        spec_revision: 1,
        spec: Some(Spec { services: vec![service], volumes }),
        mode: mode.into(),
        data_generation,
        transfer,
        ..Assignment::default()
    }
}

/// The move of all these tests: generation 1 at the source, 2 at the target.
fn transfer(address: &str, round: u32, is_final: bool) -> Transfer {
    Transfer {
        move_id: "mv_1".into(),
        source_node: "nd_1".into(),
        source_address: address.into(),
        target_node: "nd_2".into(),
        from_data_generation: 1,
        to_data_generation: 2,
        round,
        r#final: is_final,
        relay: false,
    }
}

fn is_round(round: u32) -> impl Fn(&TransferStatus) -> bool {
    move |transfer| transfer.round == round
}

/// Two nodes; the workload runs on the first one.
async fn two_nodes() -> (Node, Node) {
    let first = Cluster::start().await;
    let second = first.for_node("nd_2").await;
    let mut source = Node::start(first, "nd_1").await;
    let target = Node::start(second, "nd_2").await;
    source.send(&[assignment("run", 1, 1, None)]).await;
    source.until_status("the workload runs", |status| status.phase == "Running").await;
    (source, target)
}

async fn send_both(source: &mut Node, source_mode: &str, target: &mut Node, transfer: &Transfer) {
    source.send(&[assignment(source_mode, 1, 1, Some(transfer.clone()))]).await;
    target.send(&[assignment("receive", 2, 2, Some(transfer.clone()))]).await;
}

#[tokio::test]
async fn a_volume_moves_in_rounds_and_runs_on_the_target_with_all_that_was_written() {
    let (mut source, mut target) = two_nodes().await;
    let address = source.address().await;
    target.send(&[assignment("receive", 2, 2, None)]).await;
    target.until_status("ready", |status| status.ready && status.transfer.is_none()).await;
    for round in [1, 2] {
        send_both(&mut source, "run", &mut target, &transfer(&address, round, false)).await;
        let told = target.until_transfer("the round", is_round(round)).await;
        assert!(!told.r#final && told.bytes_total > 0 && told.bytes_done == told.bytes_total, "{told:?}");
    }
    source.send(&[assignment("stop", 1, 1, None)]).await;
    source.until_status("a confirmed stop", |status| status.phase == "Stopped").await;
    assert!(source.engine.running().is_empty());
    send_both(&mut source, "stop", &mut target, &transfer(&address, 3, true)).await;
    let told = target.until_transfer("the final round", |told| told.round == 3 && told.r#final).await;
    let original = source.engine.volume_digest(&source.volume(1)).expect("it is there");
    assert_eq!((told.digest.as_str(), told.error_code.as_str()), (original.as_str(), ""));
    assert!(target.engine.starts().is_empty(), "nothing has run there so far");

    target.send(&[assignment("run", 2, 2, None)]).await;
    target.until_status("it runs at the target", |status| status.phase == "Running" && status.generation == 2).await;
    let starts = target.engine.starts();
    assert_eq!(starts[0].volumes[&target.volume(2)], original, "it began with what the source had");
    let (before, after) =
        (source.engine.volume_lines(&source.volume(1)), target.engine.volume_lines(&target.volume(2)));
    assert_eq!(after[..before.len()], before);
    assert_eq!(before.last().map(|line| line.ends_with("stopped")), Some(true));
    assert!(after[before.len()].starts_with("2 1 started"), "{after:?}");

    source.send(&[assignment("retire", 1, 1, None)]).await;
    source.until("the old copy is gone", |report| report.removed == ["db"]).await;
    let report = source.cluster.seen().reports.pop().expect("there is one");
    assert_eq!(report.held.len(), 1, "its volume waits for an operator");
    assert_eq!((report.held[0].data_generation, &report.held[0].engine_name), (1, &source.volume(1)));
}

#[tokio::test]
async fn the_final_round_waits_until_the_source_was_told_as_well() {
    let (mut source, mut target) = two_nodes().await;
    let last = transfer(&source.address().await, 1, true);
    target.send(&[assignment("receive", 2, 2, Some(last.clone()))]).await;
    let told = target.until_transfer("a refusal", |told| told.error_code == "refused").await;
    assert!(!told.unreachable && told.error.contains("not told (yet)"), "{told:?}");
    // Told to send, and not to stop: a copy of what runs is no final one.
    source.send(&[assignment("run", 1, 1, Some(last.clone()))]).await;
    target.until_transfer("another refusal", |told| told.error.contains("stopped workload")).await;
    source.send(&[assignment("stop", 1, 1, Some(last))]).await;
    let told = target.until_transfer("the round", is_round(1)).await;
    assert_eq!(Some(told.digest), source.engine.volume_digest(&source.volume(1)));
}

#[tokio::test]
async fn a_source_that_can_t_be_dialled_is_reached_through_the_relay() {
    let (mut source, mut target) = two_nodes().await;
    let nowhere = transfer("127.0.0.1:1", 1, false);
    send_both(&mut source, "run", &mut target, &nowhere).await;
    let told = target.until_transfer("it is unreachable", |told| told.unreachable).await;
    assert_eq!(told.error_code, "unreachable");
    send_both(&mut source, "run", &mut target, &Transfer { relay: true, ..nowhere.clone() }).await;
    target.until_transfer("the round", is_round(1)).await;
    source.send(&[assignment("stop", 1, 1, None)]).await;
    source.until_status("a confirmed stop", |status| status.phase == "Stopped").await;
    send_both(&mut source, "stop", &mut target, &Transfer { relay: true, round: 2, r#final: true, ..nowhere }).await;
    let told = target.until_transfer("the final round", is_round(2)).await;
    assert_eq!(Some(told.digest), source.engine.volume_digest(&source.volume(1)));
}

#[tokio::test]
async fn another_node_at_the_source_s_address_is_not_believed() {
    let (mut source, mut target) = two_nodes().await;
    let wrong = Transfer { source_node: "nd_9".into(), ..transfer(&source.address().await, 1, false) };
    send_both(&mut source, "run", &mut target, &wrong).await;
    let told = target.until_transfer("it is not believed", |told| !told.error.is_empty()).await;
    assert!(told.unreachable && told.error.contains("did not prove"), "{told:?}");
}

#[tokio::test]
async fn a_target_that_restarts_does_the_round_again_and_fetches_nothing_twice() {
    let (mut source, mut target) = two_nodes().await;
    source.send(&[assignment("stop", 1, 1, None)]).await;
    source.until_status("a confirmed stop", |status| status.phase == "Stopped").await;
    let last = transfer(&source.address().await, 1, true);
    send_both(&mut source, "stop", &mut target, &last).await;
    let first = target.until_transfer("the round", is_round(1)).await;
    assert!(first.bytes_sent > 0);
    let reports = target.cluster.seen().reports.len();
    target.restart().await;
    let again = |seen: &server::Seen| {
        let transfers = seen.reports[reports..].iter().flat_map(|r| &r.statuses).filter_map(|s| s.transfer.as_ref());
        transfers.into_iter().any(|told| told.round == 1 && told.bytes_sent == 0 && told.digest == first.digest)
    };
    target.cluster.until("the round again", again).await;
}

#[tokio::test]
async fn a_copy_that_the_engine_loses_is_made_again() {
    let (mut source, mut target) = two_nodes().await;
    source.send(&[assignment("stop", 1, 1, None)]).await;
    source.until_status("a confirmed stop", |status| status.phase == "Stopped").await;
    let address = source.address().await;
    send_both(&mut source, "stop", &mut target, &transfer(&address, 1, true)).await;
    let first = target.until_transfer("the round", is_round(1)).await;
    let copy = target.volume(2);
    use cara_agent::ContainerRuntime;
    let reports = target.cluster.seen().reports.len();
    target.runtime.remove_volume(&copy).await.expect("removed");
    let rounds = |seen: &server::Seen| -> Vec<u32> {
        let statuses = seen.reports[reports..].iter().flat_map(|report| &report.statuses);
        statuses.map(|status| status.transfer.as_ref().map_or(0, |transfer| transfer.round)).collect()
    };
    let taken_back_and_made_again = |seen: &server::Seen| {
        let rounds = rounds(seen);
        rounds.iter().position(|round| *round == 0).is_some_and(|at| rounds[at..].contains(&1))
    };
    target.cluster.until("the round again", taken_back_and_made_again).await;
    assert_eq!(target.engine.volume_digest(&copy), Some(first.digest));
}

#[tokio::test]
async fn a_move_that_is_called_off_leaves_nothing_at_the_target() {
    let (mut source, mut target) = two_nodes().await;
    let first = transfer(&source.address().await, 1, false);
    send_both(&mut source, "run", &mut target, &first).await;
    target.until_transfer("the round", is_round(1)).await;
    target.send(&[assignment("discard", 2, 2, None)]).await;
    target.until("it is gone", |report| report.removed == ["db"] && report.held.is_empty()).await;
    let left = target.engine.listing();
    assert_eq!((left.containers.len(), left.networks.len(), left.volumes.len()), (0, 0, 0));
}

#[tokio::test]
async fn a_volume_in_quarantine_is_measured_and_removed_on_an_operator_s_word() {
    let mut node = Node::start(Cluster::start().await, "nd_1").await;
    node.send(&[assignment("run", 1, 1, None)]).await;
    node.until_status("it runs", |status| status.phase == "Running").await;
    node.send(&[]).await;
    node.until("it is measured", |report| report.held.iter().any(|held| held.bytes > 0)).await;
    let held = node.cluster.seen().reports.pop().expect("there is one").held.remove(0);
    assert_eq!(held.engine_name, node.volume(1));
    let written: usize = node.engine.volume_lines(&held.engine_name).iter().map(|line| line.len() + 1).sum();
    assert_eq!(held.bytes, written as u64);
    let removal = VolumeRemoval {
        uid: held.uid,
        volume: held.volume,
        data_generation: held.data_generation,
        engine_name: held.engine_name,
    };
    node.send_with(&[assignment("run", 2, 1, None)], vec![removal.clone()]).await;
    node.until_status("it runs again", |status| status.phase == "Running" && status.generation == 2).await;
    assert_eq!(node.engine.listing().volumes.len(), 1, "nobody takes its data away");
    node.send_with(&[], vec![removal]).await;
    node.until("it is gone", |report| report.held.is_empty() && report.statuses.is_empty()).await;
    let gone = async {
        while !node.engine.listing().volumes.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("in the engine too");
}

#[tokio::test]
async fn without_a_server_a_restarted_node_starts_nothing_that_was_to_be_stopped() {
    let mut node = Node::start(Cluster::start().await, "nd_1").await;
    let other = Assignment { uid: "other".into(), name: "other".into(), ..assignment("run", 1, 1, None) };
    node.send(&[assignment("run", 1, 1, None), other.clone()]).await;
    node.until("both run", |report| report.statuses.iter().filter(|s| s.phase == "Running").count() == 2).await;
    node.send(&[assignment("stop", 1, 1, None), other]).await;
    node.until_status("a confirmed stop", |status| status.phase == "Stopped").await;
    node.cluster.set(Behaviour::Away);
    node.engine.exit_all(); // The machine loses power.
    node.restart().await;
    // Both are planned in one pass, so once the other one runs, it was decided that this one doesn't.
    let back = async {
        while node.engine.running().iter().all(|running| running.uid != "other") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, back).await.expect("the other one runs again");
    assert_eq!(node.engine.starts().iter().filter(|start| start.uid == "db").count(), 1);
}

#[tokio::test]
async fn a_service_counts_as_running_only_while_it_answers_its_check() {
    let mut node = Node::start(Cluster::start().await, "nd_1").await;
    node.engine.fault(|faults| faults.unwell = ["db".to_owned()].into());
    let mut probed = assignment("run", 1, 1, None);
    let check = HealthCheck { probe: "tcp".into(), port: 5432, interval_ms: 50, failures_max: 2, ..Default::default() };
    probed.spec.as_mut().expect("set").services[0].health_check = Some(check);
    node.send(&[probed]).await;
    let status = node.until_status("it is unwell", |status| status.reason == "Unhealthy").await;
    assert_eq!((status.phase.as_str(), status.containers[0].state.as_str()), ("Failed", "unhealthy"));
    assert!(node.cluster.seen().reports.iter().flat_map(|r| &r.statuses).all(|s| s.phase != "Running"));
    node.engine.fault(|faults| faults.unwell.clear());
    let status = node.until_status("it is well", |status| status.phase == "Running").await;
    assert_eq!(status.containers[0].state, "healthy");
    assert_eq!(node.engine.starts().len(), 1, "a check never restarts anything");
}
