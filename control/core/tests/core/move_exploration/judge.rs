//! What must hold in every state of the search, and at every rest.

use super::agent::Agent;
use super::world::{Excuse, Model};

impl Model {
    /// What is wrong in this state, wherever the search is.
    pub fn broken(&self) -> Option<String> {
        let counts = |node: usize| self.agents[node].is_running() && self.excuse[node] == Excuse::None;
        if self.stateful && counts(0) && counts(1) {
            return Some("two live copies".into());
        }
        if !self.stateful || self.data_lost {
            return None;
        }
        for node in (0..2).filter(|node| counts(*node)) {
            let container = self.agents[node].container.as_ref()?;
            let content = self.agents[node].volumes.get(&container.data_generation).map(|(content, _)| *content);
            let content = content.unwrap_or_default();
            let foreign = node == 0 && content.by_target > 0;
            if content.by_source != self.written || content.damaged || foreign {
                return Some(format!("node {node} runs on {content:?}, but {} writes were acknowledged", self.written));
            }
        }
        None
    }

    /// What is wrong when nothing can happen any more but faults.
    pub fn broken_at_rest(&self) -> Option<String> {
        let mv = self.mv();
        if mv.is_running() {
            return Some(format!("the move rests at {}", mv.phase));
        }
        let Some(placement) = &self.workload().placement else { return Some("it has no node".into()) };
        for node in 0..2 {
            let granted = placement.node == self.node(node).id;
            let container = self.agents[node].container.as_ref();
            if self.agents[node].is_running() != granted {
                return Some(format!("node {node} {} it", if granted { "does not run" } else { "still runs" }));
            }
            if container.is_some_and(|container| !granted || container.generation != placement.generation) {
                return Some(format!("node {node} has a container without a grant"));
            }
            if granted && self.workload().phase() != "Running" {
                return Some(format!("it shows as {}", self.workload().phase()));
            }
            let at_target = granted && node == 1 && self.stateful && !self.data_lost;
            let content = self.agents[1].volumes.get(&self.workload().data_generation);
            if at_target && content.is_none_or(|(content, _)| content.by_target != self.written_after) {
                return Some(format!("writes to the target are lost: {content:?}"));
            }
        }
        None
    }

    /// For people: where a state stands.
    pub fn describe(&self) -> String {
        let mv = self.mv();
        let agent = |agent: &Agent| format!("{:?} {:?} {:?}", agent.ledger, agent.container, agent.volumes);
        format!(
            "{} {} | {:?} | a: {} | b: {}",
            mv.phase,
            mv.status,
            self.workload().placement.as_ref().map(|p| (p.node.as_str().to_owned(), p.generation.0)),
            agent(&self.agents[0]),
            agent(&self.agents[1])
        )
    }
}
