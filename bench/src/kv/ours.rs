//! Our side: the labels of a node, which are the smallest thing that a user can change durably. A key is a node of its own; a
//! value is 256 bytes in five labels. REST over HTTP/2 and TLS, with a token and an idempotency key, as programs use it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cara_env::Env;
use futures_util::{StreamExt, TryStreamExt, stream};
use hyper::{Method, StatusCode};
use serde_json::json;

use super::peer::{Client, Peer};
use crate::connection::Connection;
use crate::target::Target;

/// A write that is not acknowledged by then has failed.
const DEADLINE: Duration = Duration::from_secs(10);
/// Nodes that are made at a time.
const AT_ONCE: usize = 32;

/// The name of the node that is a key.
pub fn node(key: usize) -> String {
    format!("bench-key-{key}")
}

/// 256 bytes: five labels with keys of one letter, four values of 63 bytes and one of four, which no two writes have in common.
pub fn labels(value: u64) -> Bytes {
    let long = format!("{value:0>63}");
    let short = format!("{:04}", value % 10_000);
    Bytes::from(json!({"a": long, "b": long, "c": long, "d": long, "e": short}).to_string())
}

/// A connection to one of our servers.
pub struct Ours {
    env: Env,
    connection: Connection,
}

impl Ours {
    pub fn new(env: &Env, connection: Connection) -> Self {
        Self { env: env.clone(), connection }
    }
}

#[async_trait::async_trait]
impl Client for Ours {
    async fn write(&self, key: usize, value: u64) -> anyhow::Result<()> {
        let path = format!("/nodes/{}/labels", node(key));
        let id = cara_env::hex(&*self.env.rng, 16);
        let (status, answer) = self.connection.once(Method::PUT, &path, Some(&id), labels(value), DEADLINE).await?;
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(())
    }

    async fn read(&self, key: usize) -> anyhow::Result<()> {
        self.connection.read(&format!("/nodes/{}/labels", node(key))).await.map(drop)
    }
}

/// Our servers.
pub struct OurServers {
    env: Env,
    target: Target,
    names: Vec<String>,
    addresses: Vec<String>,
    folder: PathBuf,
}

impl OurServers {
    pub async fn new(env: &Env, target: Target) -> anyhow::Result<Self> {
        let servers = target.view().await?.servers;
        let names = servers.iter().map(|server| server.name.clone()).collect();
        let addresses = servers.into_iter().map(|server| server.address).collect();
        let folder = target.folder();
        Ok(Self { env: env.clone(), target, names, addresses, folder })
    }

    pub async fn stop(self) {
        self.target.stop().await;
    }
}

#[async_trait::async_trait(?Send)]
impl Peer for OurServers {
    fn name(&self) -> &'static str {
        "caravanserai"
    }

    fn servers(&self) -> usize {
        self.names.len()
    }

    async fn connect(&self, server: usize) -> anyhow::Result<Arc<dyn Client>> {
        let connection = Connection::open(&self.env, self.target.access(), &self.addresses[server]).await?;
        Ok(Arc::new(Ours::new(&self.env, connection)))
    }

    async fn prepare(&mut self, keys: usize) -> anyhow::Result<()> {
        let connection = Connection::open(&self.env, self.target.access(), &self.addresses[0]).await?;
        make_nodes(&connection, keys).await
    }

    fn processes(&self) -> Vec<u32> {
        self.target.processes().into_iter().map(|(_, pid)| pid).collect()
    }

    async fn leader(&self) -> anyhow::Result<(usize, u64)> {
        let view = self.target.view().await?;
        let leader = self.names.iter().position(|name| *name == view.leader);
        Ok((leader.context("no server of ours leads")?, view.term))
    }

    async fn kill(&mut self, server: usize) -> anyhow::Result<()> {
        let name = self.names[server].clone();
        self.target.kill(&name).await
    }

    fn start(&mut self, server: usize) -> anyhow::Result<()> {
        self.target.start_again(&self.names[server])
    }

    async fn until_caught_up(&mut self, server: usize) -> anyhow::Result<()> {
        self.target.until_caught_up(&self.names[server]).await
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Makes the nodes whose labels are written; those of an earlier run are used again.
pub async fn make_nodes(connection: &Connection, keys: usize) -> anyhow::Result<()> {
    let make = |key: usize| async move {
        let manifest = json!({"apiVersion": "caravanserai/v1", "kind": "Node", "metadata": {"name": node(key)}});
        let body = Bytes::from(manifest.to_string());
        let made = connection.change(Method::POST, "/nodes", body, Some(StatusCode::CONFLICT)).await;
        made.map(drop).with_context(|| format!("node {} could not be made", node(key)))
    };
    stream::iter(0..keys).map(make).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_256_bytes_and_differs_from_the_next() {
        let values: std::collections::BTreeMap<String, String> =
            serde_json::from_slice(&labels(7)).expect("labels are JSON");
        assert_eq!(values.values().map(String::len).sum::<usize>(), 256);
        assert!(values.values().all(|value| value.len() <= 63));
        assert_ne!(labels(7), labels(8));
    }
}
