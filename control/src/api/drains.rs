//! Drains: begin one, say what one would do, show, list, end.

use cara_core::command::{CancelDrain, StartDrain, plan_drain};
use cara_core::model::Drain;
use cara_core::{Command, DrainId, Rejected, State};
use cara_proto::rest::{DrainPlan, DrainView};

use super::rest::Asker;
use super::{Api, find, moves};
use crate::error::ApiError;
use crate::wire::{drain_plan, drain_view};

/// Drains of one node that a list shows.
const LISTED_MAX: usize = 20;

impl Api {
    /// Cordons a node and begins to empty it. An empty target = each workload to the node that suits it.
    ///
    /// # Errors
    /// 404 when a node isn't there, 409 when a drain of it runs.
    pub async fn start_drain(&self, asker: &Asker, node: &str, target: &str) -> Result<DrainView, ApiError> {
        let id = DrainId::new(find::new_id("dr", asker, &*self.env.rng));
        if self.was_done(asker, "StartDrain")
            && let Ok(view) = self.show_drain(id.as_str())
        {
            return Ok(view); // The answer to the first attempt was lost.
        }
        let mut command = self.read_local(|state| start(state, id.clone(), node, target))?;
        command.reason = format!("drained by {}", asker.actor);
        self.propose(&asker.actor, &asker.request_id, Command::StartDrain(command)).await?;
        self.show_drain(id.as_str())
    }

    /// What a drain would move and what it couldn't, on the state as it is now. Changes nothing.
    ///
    /// # Errors
    /// As [`Api::start_drain`].
    pub fn plan_drain(&self, node: &str, target: &str) -> Result<DrainPlan, ApiError> {
        self.read_local(|state| {
            let command = start(state, DrainId::from("plan"), node, target)?;
            Ok(drain_plan(state, &plan_drain(state, &command)?))
        })
    }

    /// One drain.
    ///
    /// # Errors
    /// 404 when it isn't kept.
    pub fn show_drain(&self, id: &str) -> Result<DrainView, ApiError> {
        let id = DrainId::from(id);
        self.read_local(|state| {
            let drain = state.drain(&id).ok_or_else(|| Rejected::UnknownDrain { id: id.to_string() })?;
            Ok(drain_view(state, drain))
        })
    }

    /// A node's drains, newest first.
    ///
    /// # Errors
    /// 404 when the node isn't there.
    pub fn list_drains(&self, node: &str) -> Result<Vec<DrainView>, ApiError> {
        self.read_local(|state| {
            let node = &find::node(state, node)?.id;
            let mut found: Vec<&Drain> = state.drains().filter(|drain| drain.node == *node).collect();
            found.sort_by(|a, b| (b.started_at_ms, &b.id).cmp(&(a.started_at_ms, &a.id)));
            Ok(found.into_iter().take(LISTED_MAX).map(|drain| drain_view(state, drain)).collect())
        })
    }

    /// Ends a drain. The node stays cordoned, and the move that runs ends by itself.
    ///
    /// # Errors
    /// 404 when it isn't kept, 409 when it is over.
    pub async fn cancel_drain(&self, asker: &Asker, id: &str) -> Result<DrainView, ApiError> {
        let command = CancelDrain { id: DrainId::from(id), reason: format!("cancelled by {}", asker.actor) };
        self.propose(&asker.actor, &asker.request_id, Command::CancelDrain(command)).await?;
        self.show_drain(id)
    }
}

fn start(state: &State, id: DrainId, node: &str, target: &str) -> Result<StartDrain, ApiError> {
    let node = find::node(state, node)?.id.clone();
    let target = find::chosen_node(state, target)?;
    Ok(StartDrain { id, node, target, settings: moves::usual_settings(), reason: String::new() })
}
