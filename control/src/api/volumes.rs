//! What is kept on nodes for somebody to decide about, and the decision.

use cara_core::Command;
use cara_core::State;
use cara_core::command::RemoveVolume;
use cara_core::model::{Node, QuarantinedVolume};
use cara_proto::rest::NodeVolume;

use super::rest::Asker;
use super::{Api, find};
use crate::error::ApiError;

impl Api {
    /// Volumes that are kept on a node and belong to no running workload there.
    ///
    /// # Errors
    /// 404 when the node isn't there.
    pub fn node_volumes(&self, name: &str) -> Result<Vec<NodeVolume>, ApiError> {
        self.read_local(|state| {
            let node = find::node(state, name)?;
            Ok(node.quarantine.iter().map(|kept| view(state, kept)).collect())
        })
    }

    /// Has a volume removed for good, by its engine name. None when it is gone already.
    ///
    /// # Errors
    /// 404 when the node keeps no such volume, 409 while a workload or a move needs its data.
    pub async fn remove_volume(
        &self,
        asker: &Asker,
        name: &str,
        engine_name: &str,
    ) -> Result<Option<NodeVolume>, ApiError> {
        let node = self.read_local(|state| find::node(state, name).map(|node| node.id.clone()))?;
        let command = RemoveVolume { node: node.clone(), engine_name: engine_name.to_owned() };
        self.propose(&asker.actor, &asker.request_id, Command::RemoveVolume(command)).await?;
        Ok(self.read_local(|state| {
            let kept = state.node(&node).and_then(|node| kept(node, engine_name));
            kept.map(|kept| view(state, kept))
        }))
    }
}

fn kept<'a>(node: &'a Node, engine_name: &str) -> Option<&'a QuarantinedVolume> {
    node.quarantine.iter().find(|kept| kept.engine_name == engine_name)
}

fn view(state: &State, kept: &QuarantinedVolume) -> NodeVolume {
    let known = state.workload(&kept.workload).map(|workload| workload.name.clone());
    let named = Some(kept.workload_name.clone()).filter(|name| !name.is_empty());
    NodeVolume {
        workload: known.or(named).unwrap_or_else(|| kept.workload.to_string()),
        volume: kept.volume.clone(),
        data_generation: kept.data_generation.0,
        bytes: kept.bytes,
        state: if kept.removal_asked_at_ms.is_some() { "removing" } else { "quarantined" }.into(),
        engine_name: kept.engine_name.clone(),
    }
}
