//! From the leader's SIGKILL to the next acknowledged write, in turns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;

use super::peer::{Client, Peer, first_write};

/// After a restart, before the next kill: the servers shall be done with what a restart makes them do.
const CALM: Duration = Duration::from_secs(1);

/// Kills the leader once and starts it again; the time, in seconds.
pub async fn once(env: &Env, peer: &mut dyn Peer) -> anyhow::Result<f64> {
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
    peer.restart(leader).await?;
    env.clock.sleep(CALM).await;
    Ok(written.saturating_sub(killed).as_secs_f64())
}
