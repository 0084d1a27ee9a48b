//! A leader that is frozen for longer than an election is replaced; after the thaw it does no harm: no stale read from
//! it, and no agent takes its commands. And while it was frozen, not one of its tasks was polled.

use std::time::Duration;

use cara_chaos::checker::linear;
use cara_chaos::run::Run;
use cara_chaos::workload::Phase;
use cara_chaos::world::Size;

cara_netsim::override_libc!();

/// Longer than an election, shorter than clients' patience: requests wait in the frozen server's sockets.
const FROZEN: Duration = Duration::from_secs(6);

fn leader(run: &Run) -> (String, u64) {
    run.cluster.shared.observed().leader.clone().expect("a leader is known")
}

fn freeze_and_thaw(seed: u64) {
    let mut run = Run::new(seed, &Size { clients: 5, ..Size::default() });
    assert!(run.set_up().expect("the world runs"), "{:?}", run.violations);
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
    assert!(run.settle().expect("the world runs"), "seed {seed}: {:?}", run.violations);
    run.judge();
    assert_eq!(run.violations, Vec::<String>::new(), "seed {seed}");
    let history = run.cluster.shared.history().clone();
    assert_eq!(linear::check(&history.calls), Vec::<String>::new());
    assert!(history.calls.len() > 20, "seed {seed}: the clients did too little: {}", history.calls.len());
    // `Run` follows the fences at every look; here: all agents ended up under the new leader.
    for agent in run.cluster.agents.clone() {
        let (_, term, _) = run.fences.of(&agent);
        assert!(term == 0 || term >= new_term, "seed {seed}: {agent} obeys term {term}, leader of {new_term}");
    }
}

#[test]
fn a_frozen_leader_is_replaced_and_harmless_after_the_thaw() {
    for seed in [1, 2, 3] {
        freeze_and_thaw(seed);
    }
}
