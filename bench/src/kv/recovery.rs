//! From the leader's SIGKILL to the next acknowledged write, in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;

use super::peer::{Client, Peer, first_write};

/// After a restart, before the next kill: the servers shall be done with what a restart makes them do.
const CALM: Duration = Duration::from_secs(1);

/// Between two attempts to read through a server that starts.
const READ_EVERY: Duration = Duration::from_millis(20);
/// A server through which nobody can read by then has not come back.
const READ_MAX: Duration = Duration::from_secs(120);

/// In seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// From the leader's death to the next acknowledged write.
    pub written: f64,
    /// From its start to a linearizable read through it.
    pub restarted: f64,
}

/// Kills the leader once and starts it again.
pub async fn once(env: &Env, peer: &mut dyn Peer) -> anyhow::Result<Recovery> {
    let (leader, _) = peer.leader().await?;
    let mut clients: Vec<Arc<dyn Client>> = Vec::new();
    for server in (0..peer.servers()).filter(|server| *server != leader) {
        clients.push(peer.connect(server).await?);
    }
    for client in &clients {
        client.write(0, 0).await.context("no write before the kill")?;
    }
    peer.kill(leader).await?;
    let killed = env.clock.monotonic();
    let written = first_write(env, &clients).await?;
    let started = env.clock.monotonic();
    peer.start(leader)?;
    let read = first_read(env, peer, leader).await?;
    peer.until_caught_up(leader).await?;
    env.clock.sleep(CALM).await;
    let between = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64();
    Ok(Recovery { written: between(killed, written), restarted: between(started, read) })
}

/// The moment of the first read through this server, over connections that are opened for it.
async fn first_read(env: &Env, peer: &dyn Peer, server: usize) -> anyhow::Result<Duration> {
    let began = env.clock.monotonic();
    loop {
        if let Ok(client) = peer.connect(server).await
            && client.read(0).await.is_ok()
        {
            return Ok(env.clock.monotonic());
        }
        if env.clock.monotonic().saturating_sub(began) > READ_MAX {
            anyhow::bail!("no read through the started server within {READ_MAX:?}");
        }
        env.clock.sleep(READ_EVERY).await;
    }
}
