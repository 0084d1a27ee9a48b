//! A whole agent that drives a real Docker engine: the container outlives the agent, and goes when it has no grant.

mod server;

use std::sync::Arc;
use std::time::Duration;

use cara_agent::labels::{Labels, UID};
use cara_agent::runtime::docker::{DockerRuntime, HOST_DEFAULT};
use cara_agent::{Config, ContainerRuntime, RunError};
use cara_env::{Env, Task, hex};
use cara_proto::agent::{Desired, Fence};
use cara_proto::workload::{Assignment, Service, Spec};
use server::Cluster;
use tokio::sync::watch;

/// Ends a broken test.
const PATIENCE: Duration = Duration::from_secs(60);
/// Made by `deploy/setup/busybox-image.sh`.
const IMAGE: &str = "caravanserai/busybox:local";

fn start(config: Config, runtime: Arc<DockerRuntime>) -> (watch::Sender<bool>, Task<Result<(), RunError>>) {
    let (stop, stopped) = watch::channel(false);
    (stop, cara_env::spawn(cara_agent::run(config, Env::real(), runtime, stopped)))
}

fn desired(revision: u64, uids: &[&str]) -> Desired {
    let script = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
    let service = Service {
        name: "web".into(),
        image: IMAGE.into(),
        command: vec!["busybox".into(), "sh".into(), "-c".into(), script.into()],
        ..Service::default()
    };
    let assignment = |uid: &&str| Assignment {
        uid: (*uid).into(),
        name: "agent-test".into(),
        generation: 1,
        spec: Some(Spec { services: vec![service.clone()], volumes: Vec::new() }),
        ..Assignment::default()
    };
    Desired {
        fence: Some(Fence { incarnation: 1, term: 1, revision }),
        assignments: uids.iter().map(assignment).collect(),
        ..Desired::default()
    }
}

#[tokio::test]
async fn a_docker_container_outlives_the_agent_and_goes_without_a_grant() {
    let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| HOST_DEFAULT.to_owned());
    let env = Env::real();
    let runtime = Arc::new(DockerRuntime::new(env.clock.clone(), &host));
    let ready = match runtime.info().await {
        Ok(_) => runtime.ensure_image(IMAGE).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ready {
        eprintln!(
            "a_docker_container_outlives_the_agent_and_goes_without_a_grant: skipped: no docker engine ({error})"
        );
        return;
    }
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = Config::new(folder.path(), "n1", "127.0.0.1");
    config.token = Some(cluster.token());
    let uid = hex(&*env.rng, 8);
    let ours = Labels::from([(UID.to_owned(), uid.clone())]);

    let (stop, task) = start(config.clone(), runtime.clone());
    cluster.send(desired(1, &[&uid])).await;
    let running =
        |seen: &server::Seen| seen.reports.last().is_some_and(|r| r.statuses.iter().any(|s| s.phase == "Running"));
    cluster.until("a running container", running).await;
    stop.send_replace(true);
    task.await.expect("not aborted").expect("a clean end");
    let before = runtime.list(&ours).await.expect("a listing").containers;
    assert_eq!(before.len(), 1);

    let (stop, task) = start(config, runtime.clone());
    cluster.until("another session", |seen| seen.hellos.len() == 2).await;
    let reports = cluster.seen().reports.len();
    cluster.until("another report", |seen| seen.reports.len() > reports || running(seen)).await;
    assert_eq!(runtime.list(&ours).await.expect("a listing").containers, before, "never stopped, never made anew");
    cluster.send(desired(2, &[])).await;
    let gone = |seen: &server::Seen| seen.reports.last().is_some_and(|r| r.statuses.is_empty());
    cluster.until("an empty report", gone).await;
    let left = runtime.list(&ours).await.expect("a listing");
    assert_eq!((left.containers.len(), left.networks.len()), (0, 0));
    stop.send_replace(true);
    task.await.expect("not aborted").expect("a clean end");
}
