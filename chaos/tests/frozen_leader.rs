//! A leader that is frozen for longer than an election is replaced; after the thaw it does no harm: no stale read from
//! it, and no agent takes its commands. And while it was frozen, not one of its tasks was polled.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_chaos::run::Run;
use cara_chaos::workload::Phase;
use cara_chaos::workload::rest::{Ask, Rest};
use cara_chaos::world::{EngineKind, Shared, address};
use cara_checker::Finding;
use cara_netsim::Boot;
use cara_scenario::{Scenario, plan};
use http::StatusCode;

cara_netsim::override_libc!();

/// Longer than an election, shorter than clients' patience: requests wait in the frozen server's sockets.
const FROZEN: Duration = Duration::from_secs(6);

/// A quiet world: clients work, and nothing breaks but what the test breaks.
fn quiet(seed: u64, clients: usize) -> Run {
    let text = format!(
        "format = 1\nname = \"quiet\"\n[cluster]\nclients = {clients}\n[workload]\nwatchers = 0\n\
         mix = {{ write = 30, read = 50, create = 10, delete = 10 }}\n"
    );
    Run::new(&plan(&Scenario::parse(&text).expect("a scenario"), seed), EngineKind::Sim)
}

fn findings(run: &Run) -> Vec<Finding> {
    run.judge.judgement.findings.clone()
}

fn leader(run: &Run) -> (String, u64) {
    run.leader().cloned().expect("a leader is known")
}

fn freeze_and_thaw(seed: u64) {
    let mut run = quiet(seed, 5);
    assert!(run.set_up().expect("the world runs"), "{:?}", findings(&run));
    run.cluster.shared.set_phase(Phase::Work);
    run.until(Duration::from_secs(5), |_| false).expect("the world runs");
    let (old, old_term) = leader(&run);

    run.cluster.world.freeze(&old);
    let runtime = run.cluster.shared.runtime(&old).expect("the server runs");
    let before = run.cluster.world.gate(&old).counters();
    let polled_before = runtime.metrics().worker_poll_count(0);
    assert_eq!(runtime.metrics().num_alive_tasks() as i64, before.tasks - 1, "a task lives outside of the gates");
    let replaced = run.until(FROZEN, |run| leader(run).1 > old_term).expect("the world runs");
    assert!(replaced, "seed {seed}: nobody replaced the frozen leader");
    run.until(FROZEN, |_| false).expect("the world runs");
    let after = run.cluster.world.gate(&old).counters();
    let polled = runtime.metrics().worker_poll_count(0) - polled_before;
    assert_eq!(after.polls, before.polls, "seed {seed}: a task of the frozen leader was polled");
    // The root is counted by its gate and not by the runtime; everything else that tokio polled was refused.
    assert!(polled <= after.refused - before.refused, "seed {seed}: {polled} polls, {after:?} after {before:?}");
    assert_eq!(runtime.metrics().num_alive_tasks() as i64, after.tasks - 1, "a task lives outside of the gates");

    let (_, new_term) = leader(&run);
    run.cluster.world.thaw(&old);
    run.until(Duration::from_secs(5), |_| false).expect("the world runs");
    assert!(run.settle().expect("the world runs"), "seed {seed}: {:?}", findings(&run));
    run.judge.whole_history(&run.cluster);
    assert_eq!(findings(&run), [], "seed {seed}");
    let history = run.cluster.shared.history().clone();
    assert!(history.calls.len() > 20, "seed {seed}: the clients did too little: {}", history.calls.len());
    // `Run` follows the fences at every look; here: all agents ended up under the new leader.
    for agent in run.cluster.agents.clone() {
        let term = run.judge.fence_of(&agent).term;
        assert!(term == 0 || term >= new_term, "seed {seed}: {agent} obeys term {term}, leader of {new_term}");
    }
}

#[test]
fn a_frozen_leader_is_replaced_and_harmless_after_the_thaw() {
    for seed in [1, 2, 3] {
        freeze_and_thaw(seed);
    }
}

/// What the probe shall ask which server next, and what came of it.
#[derive(Default)]
struct Probe {
    next: Mutex<Option<(String, Ask)>>,
    told: Mutex<Option<Result<StatusCode, String>>>,
}

async fn probe(boot: Boot, shared: Arc<Shared>, probe: Arc<Probe>) -> Result<(), String> {
    loop {
        boot.env.clock.sleep(Duration::from_millis(5)).await;
        let Some((server, ask)) = probe.next.lock().expect("no panic").take() else { continue };
        let founded = shared.founded().ok_or("no cluster")?;
        let rest = Rest::new(&boot.env, &founded.ca_fingerprint, &founded.token);
        let told = rest.ask(&address(&server), &ask, Duration::from_secs(20)).await;
        *probe.told.lock().expect("no panic") = Some(told.map(|told| told.status).map_err(|no| no.0));
    }
}

fn ask(run: &mut Run, probe: &Probe, server: &str, ask: Ask) -> Result<StatusCode, String> {
    *probe.next.lock().expect("no panic") = Some((server.to_owned(), ask));
    let answered = |_: &mut Run| probe.told.lock().expect("no panic").is_some();
    assert!(run.until(Duration::from_secs(30), answered).expect("the world runs"), "the probe did not come back");
    probe.told.lock().expect("no panic").take().expect("just seen")
}

#[test]
fn a_replaced_leader_that_does_not_know_it_refuses_no_change_on_its_old_state() {
    let mut run = quiet(4, 3);
    let shared_probe = Arc::new(Probe::default());
    let (shared, inside) = (run.cluster.shared.clone(), shared_probe.clone());
    run.cluster.world.client("probe", move |boot| probe(boot, shared.clone(), inside.clone()));
    assert!(run.set_up().expect("the world runs"), "{:?}", findings(&run));
    let (old, old_term) = leader(&run);
    run.cluster.world.freeze(&old);
    for other in run.cluster.servers.clone().iter().filter(|other| **other != old) {
        run.cluster.world.partition(&old, other);
    }
    assert!(run.until(Duration::from_secs(10), |run| leader(run).1 > old_term).expect("the world runs"));
    let (new, _) = leader(&run);
    let body = serde_json::json!({
        "apiVersion": "caravanserai/v1", "kind": "App",
        "metadata": { "name": "reg-late" }, "spec": { "image": "busybox:1" },
    });
    let create = Ask::post("/api/v1/apps", body);
    assert_eq!(ask(&mut run, &shared_probe, &new, create), Ok(StatusCode::CREATED));

    // The old leader wakes up alone: nobody tells it that it was replaced, and it has never heard of the app.
    run.cluster.world.thaw(&old);
    let delete = Ask::delete("/api/v1/apps/reg-late");
    let told = ask(&mut run, &shared_probe, &old, delete);
    assert!(told.is_err() || told == Ok(StatusCode::SERVICE_UNAVAILABLE), "{old} answered {told:?}");
    run.cluster.world.heal_network();
    assert!(run.settle().expect("the world runs"), "{:?}", findings(&run));
    run.judge.whole_history(&run.cluster);
    assert_eq!(findings(&run), []);
}
