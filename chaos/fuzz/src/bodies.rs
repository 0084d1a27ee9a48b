//! JSON bodies of the API: read or refused, and what the cluster took is shown so that it can be sent again.

use cara_control::wire;
use cara_core::model::WorkloadKind;
use cara_core::{Command, NodeId, WorkloadUid};
use cara_env::Env;
use cara_proto::rest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::log::{ask, some_state};

/// A body is read or refused; what is read is written as a body that reads as the same.
fn body<B: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) -> Option<B> {
    let body: B = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&body).expect("bodies are JSON");
    let again: B = serde_json::from_slice(&written).expect("written by us");
    assert!(again == body, "written and read again, it is another body");
    Some(body)
}

/// A node's manifest, as far as the state.
pub fn node(bytes: &[u8]) {
    let Some(manifest) = body::<rest::NodeManifest>(bytes) else { return };
    if let Ok(command) = wire::node_manifest(manifest, NodeId::new("nd_fuzz")) {
        ask(some_state(), command.into());
    }
}

/// A workload's manifest as each kind, as far as the state.
pub fn workload(bytes: &[u8]) {
    let Some(manifest) = body::<rest::WorkloadManifest>(bytes) else { return };
    let env = Env::real();
    for kind in [WorkloadKind::App, WorkloadKind::Project, WorkloadKind::Database] {
        let manifest = rest::WorkloadManifest { kind: kind.as_str().to_owned(), ..manifest.clone() };
        let made = wire::apply_workload(some_state(), kind, manifest, WorkloadUid::new("w-fuzz"), &*env.rng);
        if let Ok(command) = made {
            ask(some_state(), Command::from(command));
        }
    }
}

/// The smaller requests.
pub fn requests(bytes: &[u8]) {
    body::<rest::MoveRequest>(bytes);
    body::<rest::PlacementRequest>(bytes);
    body::<rest::LostRequest>(bytes);
    body::<rest::JoinTokenRequest>(bytes);
    body::<rest::Accepts>(bytes);
    body::<rest::Problem>(bytes);
}

/// Times that people type.
pub fn words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(ms) = wire::parse_time(text).filter(|ms| *ms >= 1000) {
        assert_eq!(wire::parse_time(&wire::rfc3339(ms)), Some(ms / 1000 * 1000), "whole seconds are shown");
    }
}
