//! Every order in which a move can go: a breadth-first search over the real state and the real reconciler, with two model
//! agents and an adversary that may crash machines, cut them off, delay reports, replace the leader, break starts and
//! copies, cancel, and declare nodes lost.
//!
//! In every state: no two live copies of what has state, and whoever runs it runs on every write that was acknowledged.
//! Wherever nothing can happen any more: the move is over, exactly one node runs the workload, under its grant.

mod action;
mod agent;
mod judge;
mod look;
mod memo;
mod world;

use action::Action;
use agent::Mutant;
use std::collections::{BTreeSet, VecDeque};
use world::Model;

/// More than any of the searches needs; a search that grows beyond has lost its bounds.
const STATES_MAX: usize = 4_000_000;

struct Search {
    states: usize,
    rests: usize,
    /// What is wrong, and how it came about.
    broken: Option<String>,
}

fn search(start: Model) -> Search {
    let actions = Action::all();
    let mut seen = BTreeSet::from([start.key()]);
    // Where each state came from, to tell its story.
    let mut origins: Vec<(usize, Option<Action>)> = vec![(0, None)];
    // With as many faults left as can be, first: the key does not tell how many are.
    let (mut frontier, mut with_fewer_faults) = (VecDeque::from([(0usize, start)]), VecDeque::new());
    let mut rests = 0;
    loop {
        if frontier.is_empty() {
            std::mem::swap(&mut frontier, &mut with_fewer_faults);
        }
        let Some((at, model)) = frontier.pop_front() else { break };
        let mut moved = false;
        for action in &actions {
            let Some(next) = model.step(*action) else { continue };
            moved |= !action.is_fault();
            if !seen.insert(next.key()) {
                continue;
            }
            assert!(seen.len() <= STATES_MAX, "the search has no end");
            origins.push((at, Some(*action)));
            if let Some(broken) = next.broken() {
                let story = story(&origins, origins.len() - 1);
                let broken = format!("{broken}, after {story:?}: {}", next.describe());
                return Search { states: seen.len(), rests, broken: Some(broken) };
            }
            let queue = if action.is_fault() { &mut with_fewer_faults } else { &mut frontier };
            queue.push_back((origins.len() - 1, next));
        }
        if !moved {
            rests += 1;
            if let Some(broken) = model.broken_at_rest() {
                let broken = format!("{broken}, at rest after {:?}: {}", story(&origins, at), model.describe());
                return Search { states: seen.len(), rests, broken: Some(broken) };
            }
        }
    }
    Search { states: seen.len(), rests, broken: None }
}

fn story(origins: &[(usize, Option<Action>)], mut at: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    while let (from, Some(action)) = origins[at] {
        actions.push(action);
        at = from;
    }
    actions.reverse();
    actions
}

fn holds(stateful: bool, faults: u8) {
    let found = search(Model::new(stateful, faults, Mutant::None));
    let shape = if stateful { "stateful" } else { "stateless" };
    println!("{shape}, {faults} faults: {} states, {} of them at rest", found.states, found.rests);
    assert_eq!(found.broken, None);
    assert!(found.rests > 0, "nothing ever came to rest");
}

#[test]
fn a_calm_stateful_move_ends_well_in_every_order() {
    holds(true, 0);
}

#[test]
fn a_stateful_move_survives_three_faults_in_every_order() {
    holds(true, 3);
}

#[test]
fn a_stateless_move_survives_three_faults_in_every_order() {
    holds(false, 3);
}

#[test]
fn an_agent_that_breaks_a_rule_is_found() {
    for mutant in [
        Mutant::StartsInStop,
        Mutant::StopsInWordOnly,
        Mutant::DiscardsInWordOnly,
        Mutant::TrustsTheSourceDigest,
        Mutant::ForgetsFinishedRounds,
        Mutant::StopDeletes,
    ] {
        let found = search(Model::new(true, 2, mutant));
        println!("{mutant:?}: found after {} states: {:?}", found.states, found.broken);
        assert!(found.broken.is_some(), "{mutant:?} does no harm that the search sees");
    }
}
