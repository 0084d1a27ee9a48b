//! A whole agent against a small server of its own: real TLS, gRPC and time over loopback, the memory engine below.

mod server;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cara_agent::runtime::memory::{MemoryHandle, MemoryRuntime};
use cara_agent::{Config, EnrolError, RunError};
use cara_env::{Env, Task};
use cara_proto::agent::{Desired, Fence, Goodbye};
use cara_proto::workload::{Assignment, Service, Spec};
use server::{Behaviour, Cluster};
use tokio::sync::watch;

/// Ends a broken test; nothing here takes a second.
const PATIENCE: Duration = Duration::from_secs(20);

struct Agent {
    engine: MemoryHandle,
    runtime: MemoryRuntime,
    stop: watch::Sender<bool>,
    task: Task<Result<(), RunError>>,
}

fn config(folder: &Path, cluster: &Cluster) -> Config {
    let mut config = Config::new(folder, "n1", "127.0.0.1");
    config.volume_listen = "127.0.0.1:0".into();
    config.token = Some(cluster.token());
    config.backoff_min = Duration::from_millis(10);
    config.backoff_max = Duration::from_millis(100);
    config.election_retry = Duration::from_millis(50);
    config.connect_deadline = Duration::from_secs(2);
    config.resync = Duration::from_millis(500);
    config
}

fn start(config: Config) -> Agent {
    let env = Env::real();
    start_on(config, MemoryRuntime::new(env.clock.clone()), env)
}

fn start_on(config: Config, runtime: MemoryRuntime, env: Env) -> Agent {
    let (stop, stopped) = watch::channel(false);
    let task = cara_env::spawn(cara_agent::run(config, env, Arc::new(runtime.clone()), stopped));
    Agent { engine: runtime.handle(), runtime, stop, task }
}

impl Agent {
    async fn end(self) -> (MemoryRuntime, Result<(), RunError>) {
        self.stop.send_replace(true);
        let result = tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").expect("not aborted");
        (self.runtime, result)
    }

    /// Waits until exactly these workloads run.
    async fn runs(&self, uids: &[&str]) {
        let running = || self.engine.running().into_iter().map(|r| r.uid).collect::<Vec<_>>();
        let waiting = async {
            while running() != uids {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let done = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(done.is_ok(), "running: {:?}, expected: {uids:?}", running());
    }
}

fn desired(fence: (u64, u64, u64), uids: &[&str]) -> Desired {
    let (incarnation, term, revision) = fence;
    let assignment = |uid: &&str| Assignment {
        uid: (*uid).into(),
        name: (*uid).into(),
        kind: "App".into(),
        generation: 1,
        spec_revision: 1,
        spec: Some(Spec {
            services: vec![Service { name: "web".into(), image: "nginx".into(), ..Service::default() }],
            volumes: Vec::new(),
        }),
        ..Assignment::default()
    };
    Desired {
        fence: Some(Fence { incarnation, term, revision }),
        assignments: uids.iter().map(assignment).collect(),
        ..Desired::default()
    }
}

#[tokio::test]
async fn it_enrols_heartbeats_runs_what_is_wanted_and_reports_it() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.until("a heartbeat", |seen| seen.heartbeats >= 3).await;
    cluster.send(desired((1, 1, 10), &["a"])).await;
    agent.runs(&["a"]).await;
    let running = |seen: &server::Seen| {
        let report = seen.reports.last();
        report.is_some_and(|r| r.statuses.iter().any(|s| s.uid == "a" && s.phase == "Running" && s.spec_revision == 1))
    };
    cluster.until("a report", running).await;
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |name: &str| std::fs::metadata(folder.path().join(name)).expect("it exists").permissions().mode() & 0o777;
    assert_eq!((mode("identity.json"), mode("ledger")), (0o600, 0o600));
    assert!(!folder.path().join("enrol-key.pem").exists());
    let hello = cluster.seen().hellos.remove(0);
    assert_eq!(hello.facts.expect("facts").capacity["cpu"], "8");
    let (_, result) = agent.end().await;
    result.expect("a clean end");
}

#[tokio::test]
async fn a_desired_set_of_a_replaced_leader_is_refused() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.send(desired((1, 2, 10), &["a"])).await;
    agent.runs(&["a"]).await;
    cluster.send(desired((1, 1, 99), &[])).await;
    cluster.send(desired((1, 2, 11), &["a", "b"])).await;
    agent.runs(&["a", "b"]).await;
    assert_eq!(agent.engine.starts().iter().filter(|s| s.uid == "a").count(), 1, "a was never stopped");
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn it_works_without_any_server_and_keeps_the_fence_over_a_restart() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.send(desired((1, 5, 10), &["a"])).await;
    agent.runs(&["a"]).await;
    let config = config(folder.path(), &cluster);
    let (engine, result) = agent.end().await;
    result.expect("a clean end");
    assert_eq!(engine.handle().running().len(), 1, "containers outlive the agent");
    cluster.set(Behaviour::Away);
    // An empty engine: the machine was restarted, and no server is there.
    let agent = start(Config { token: None, ..config });
    agent.runs(&["a"]).await;
    // Now a server of an old term returns: refused. Then a current one.
    cluster.set(Behaviour::Healthy);
    cluster.until("another session", |seen| seen.hellos.len() >= 2).await;
    assert_eq!(cluster.seen().hellos[1].fence, Some(Fence { incarnation: 1, term: 5, revision: 10 }));
    cluster.send(desired((1, 4, 99), &[])).await;
    cluster.send(desired((1, 6, 11), &["a", "b"])).await;
    agent.runs(&["a", "b"]).await;
    assert_eq!(agent.engine.starts().len(), 2, "a was started once, b once");
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_follower_s_hint_leads_to_the_leader() {
    let leader = Cluster::start().await;
    let follower = leader.another().await;
    follower.set(Behaviour::PointsTo(leader.address()));
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), &leader);
    config.token.as_mut().expect("set").servers = vec![follower.address()];
    let agent = start(config);
    leader.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    // The leader steps down with a word: the agent goes where it says.
    follower.set(Behaviour::Healthy);
    leader.set(Behaviour::PointsTo(follower.address()));
    leader.say(Goodbye { code: "not_leader".into(), message: String::new(), leader: follower.address() }).await;
    follower.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_server_that_acknowledges_nothing_is_left() {
    let cluster = Cluster::start().await;
    cluster.set(Behaviour::Mute);
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.until("a second session", |seen| seen.hellos.len() >= 2).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_hanging_engine_delays_no_heartbeat() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.send(desired((1, 1, 1), &["a"])).await;
    agent.runs(&["a"]).await;
    agent.engine.hang(true);
    let before = cluster.seen().heartbeats;
    cluster.send(desired((1, 1, 2), &["a", "b"])).await;
    cluster.until("more heartbeats", |seen| seen.heartbeats >= before + 20).await;
    assert_eq!(cluster.seen().hellos.len(), 1, "in the same session");
    agent.engine.hang(false);
    agent.runs(&["a", "b"]).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_refused_node_keeps_its_containers() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), &cluster);
    config.refused_retry = Duration::from_millis(20);
    let agent = start(config);
    cluster.send(desired((1, 1, 1), &["a"])).await;
    agent.runs(&["a"]).await;
    cluster.set(Behaviour::Refuses);
    cluster.say(Goodbye { code: "revoked".into(), message: "by an operator".into(), leader: String::new() }).await;
    cluster.until("more attempts", |seen| seen.refused >= 2).await;
    agent.runs(&["a"]).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_refused_token_ends_the_agent_with_the_next_step() {
    let cluster = Cluster::start().await;
    cluster.set(Behaviour::Refuses);
    let folder = tempfile::tempdir().expect("a folder");
    let result = start(config(folder.path(), &cluster)).task.await.expect("not aborted");
    let error = result.expect_err("refused");
    assert!(
        matches!(&error, RunError::Enrol(EnrolError::Refused { code, .. }) if code == "join-token-spent"),
        "{error:?}"
    );
    assert!(error.to_string().contains("caractrl nodes join-token"), "{error}");
    assert!(!folder.path().join("identity.json").exists());
}

#[tokio::test]
async fn an_unwritable_folder_is_noticed_before_the_token_is_sent() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").expect("written");
    let result = start(config(&file.join("data"), &cluster)).task.await.expect("not aborted");
    let error = result.expect_err("no folder").to_string();
    assert!(error.contains("token is unspent") && error.contains("a-file/data"), "{error}");
    assert!(cluster.seen().keys.is_empty(), "nothing was sent");
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_key() {
    let cluster = Cluster::start().await;
    cluster.set(Behaviour::LosesAnswers(2));
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    let keys = cluster.seen().keys;
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "one key for all attempts");
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_server_of_another_cluster_gets_no_token() {
    let (cluster, other) = (Cluster::start().await, Cluster::start().await);
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), &cluster);
    config.token.as_mut().expect("set").servers = vec![other.address(), cluster.address()];
    let agent = start(config);
    cluster.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    assert!(other.seen().keys.is_empty());
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn output_is_sent_on_request() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.send(desired((1, 1, 1), &["a"])).await;
    agent.runs(&["a"]).await;
    cluster.ask_logs("r1", "a").await;
    cluster.ask_logs("r2", "nothing").await;
    cluster.until("both answers", |seen| seen.logs_done.len() >= 2).await;
    let seen = cluster.seen();
    let text = |id: &str| String::from_utf8(seen.logs[id].clone()).expect("text");
    assert!(text("r1").ends_with("started\n"), "{}", text("r1"));
    assert_eq!(seen.logs_done["r1"], "");
    assert!(seen.logs_done["r2"].contains("no container"), "{}", seen.logs_done["r2"]);
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn without_identity_and_token_it_says_how_to_get_one() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let result = start(Config { token: None, ..config(folder.path(), &cluster) }).task.await.expect("not aborted");
    let error = result.expect_err("no token").to_string();
    assert!(error.contains("caractrl nodes join-token") && error.contains("--token"), "{error}");
}

#[tokio::test]
async fn a_damaged_identity_is_not_taken_for_none() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("identity.json"), "{\"node_id\": \"nd_").expect("written");
    let result = start(config(folder.path(), &cluster)).task.await.expect("not aborted");
    let error = result.expect_err("damaged").to_string();
    assert!(error.contains("is damaged"), "{error}");
    assert!(cluster.seen().keys.is_empty(), "it did not enrol a second node");
}

#[tokio::test]
async fn it_answers_at_once_when_it_is_asked_whether_it_lives() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.challenge(7).await;
    cluster.until("an answer", |seen| seen.presents == [7]).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_restarted_agent_says_which_process_had_the_last_session() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let agent = start(config(folder.path(), &cluster));
    cluster.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    agent.end().await.1.expect("a clean end");
    let agent = start(Config { token: None, ..config(folder.path(), &cluster) });
    cluster.until("another session", |seen| seen.hellos.len() >= 2).await;
    let said: Vec<_> = cluster.seen().hellos.into_iter().map(|hello| hello.instance.expect("said")).collect();
    assert_eq!((said[0].last_id.as_str(), said[0].last_epoch), ("", 0));
    assert_eq!((said[1].last_id.as_str(), said[1].last_epoch), (said[0].id.as_str(), 1));
    assert_ne!(said[0].id, said[1].id);
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_machine_that_is_a_copy_of_another_starts_nothing() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), &cluster);
    config.refused_retry = Duration::from_millis(20);
    let agent = start(config.clone());
    cluster.send(desired((1, 1, 1), &["a"])).await;
    agent.runs(&["a"]).await;
    agent.end().await.1.expect("a clean end");
    cluster.set(Behaviour::KnowsAnother);
    // The copied folder says what to run, and the engine is empty.
    let agent = start(Config { token: None, ..config });
    cluster.until("some attempts", |seen| seen.refused >= 3).await;
    assert!(agent.engine.starts().is_empty(), "{:?}", agent.engine.starts());
    // The other one is gone, and an operator has given its place to this one.
    cluster.set(Behaviour::Healthy);
    agent.runs(&["a"]).await;
    agent.end().await.1.expect("a clean end");
}

#[tokio::test]
async fn a_new_identity_from_beside_is_taken_up_at_the_next_connection() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(folder.path(), &cluster);
    let agent = start(config.clone());
    cluster.until("a heartbeat", |seen| seen.heartbeats >= 1).await;
    let identity = || std::fs::read_to_string(folder.path().join("identity.json")).expect("there");
    let before = identity();
    let node = cara_agent::reenroll(&config, &Env::real(), &cluster.token()).await.expect("let in");
    assert_eq!((node.as_str(), identity() == before), ("nd_1", true), "a running agent's file is not touched");
    let keys = cluster.seen().keys;
    assert_ne!(keys[0], keys[1], "another key: the old one may be in wrong hands");
    cluster.say(Goodbye { code: "replaced".into(), message: "enrolled again".into(), leader: String::new() }).await;
    cluster.until("another session", |seen| seen.hellos.len() >= 2).await;
    assert_ne!(identity(), before);
    assert!(!folder.path().join("identity.json.reenrolled").exists());
    agent.end().await.1.expect("a clean end");
}
