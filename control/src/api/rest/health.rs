//! Probes and metrics.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use crate::api::SharedApi;

/// Prometheus' text format.
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4";

/// The process answers. Never fails: a server that waits for a quorum must not be restarted for it.
pub async fn livez() -> &'static str {
    "ok\n"
}

/// The same in the words of older clients.
pub async fn healthz() -> &'static str {
    "OK"
}

/// This server can answer requests: it leads, or knows who does.
pub async fn readyz(State(api): State<SharedApi>) -> Response {
    let status = api.raft.status();
    let leader = match (api.leads(), api.leader_elsewhere()) {
        (true, _) => "this server".to_owned(),
        (false, Some(address)) => address,
        (false, None) => {
            let text = format!("not ready: no leader in term {}; are enough servers running?\n", status.term);
            return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
        }
    };
    format!("ready: leader {leader}, term {}, applied {}\n", status.term, applied(&api)).into_response()
}

/// Prometheus text format.
pub async fn metrics(State(api): State<SharedApi>) -> Response {
    let status = api.raft.status();
    api.metrics.sessions(api.sessions.count());
    let text = api.metrics.render(status.term, applied(&api), api.leads());
    ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
}

fn applied(api: &SharedApi) -> u64 {
    api.raft.with_state(|machine| machine.applied())
}
