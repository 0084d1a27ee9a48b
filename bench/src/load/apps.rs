//! The apps of a load: one container without ports, which any node can take.

use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use cara_env::Env;
use cara_proto::rest::List;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::connection::Connection;

/// How all their names begin.
pub const PREFIX: &str = "bench-";
/// Between two looks whether they are gone.
const LOOK: Duration = Duration::from_millis(500);
/// Their nodes have removed them by then.
const GONE_MAX: Duration = Duration::from_secs(120);

/// A manifest. `note` makes it another one without touching what runs.
pub fn manifest(name: &str, note: u64) -> Bytes {
    let metadata = json!({"name": name, "annotations": {"bench": note.to_string()}});
    let spec = json!({"image": "cara-bench:1"});
    Bytes::from(json!({"apiVersion": "caravanserai/v1", "kind": "App", "metadata": metadata, "spec": spec}).to_string())
}

/// The node that an answer says the app is on.
pub fn node_of(answer: &[u8]) -> Option<String> {
    let app: Value = serde_json::from_slice(answer).ok()?;
    app.pointer("/status/placement/nodeName")?.as_str().filter(|node| !node.is_empty()).map(str::to_owned)
}

/// Deletes all of them, and returns once their nodes have removed them.
pub async fn delete_all(env: &Env, connection: &Connection) -> anyhow::Result<()> {
    let began = env.clock.monotonic();
    loop {
        let all: List<Value> = serde_json::from_slice(&connection.read("/apps").await?)?;
        let name = |app: &Value| app.pointer("/metadata/name")?.as_str().map(str::to_owned);
        let ours: Vec<String> = all.items.iter().filter_map(name).filter(|name| name.starts_with(PREFIX)).collect();
        if ours.is_empty() {
            return Ok(());
        }
        if env.clock.monotonic().saturating_sub(began) > GONE_MAX {
            bail!("{} apps of the bench are still there after {GONE_MAX:?}, {} among them", ours.len(), ours[0]);
        }
        for name in ours {
            let path = format!("/apps/{name}");
            connection.change(Method::DELETE, &path, Bytes::new(), Some(StatusCode::NOT_FOUND)).await?;
        }
        env.clock.sleep(LOOK).await;
    }
}
