//! What the two sides of a comparison have in common, so that one loop measures both.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// Between two attempts at a write after a kill.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// A cluster that takes no write within this has not recovered.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// An open connection. Each call is made once; an error is a call that was not acknowledged.
#[async_trait::async_trait]
pub trait Client: Send + Sync {
    /// Writes 256 bytes under a key, durably.
    async fn write(&self, key: usize, value: u64) -> anyhow::Result<()>;
    /// Reads them, linearizably.
    async fn read(&self, key: usize) -> anyhow::Result<()>;
}

/// Servers of one kind.
#[async_trait::async_trait(?Send)]
pub trait Peer {
    fn name(&self) -> &'static str;
    fn servers(&self) -> usize;
    /// Opens a connection to a server, counted from 0.
    async fn connect(&self, server: usize) -> anyhow::Result<Arc<dyn Client>>;
    /// Makes the keys that can be written.
    async fn prepare(&mut self, keys: usize) -> anyhow::Result<()>;
    /// Process ids of the servers that run.
    fn processes(&self) -> Vec<u32>;
    /// Which server leads, and in which term.
    async fn leader(&self) -> anyhow::Result<(usize, u64)>;
    async fn kill(&mut self, server: usize) -> anyhow::Result<()>;
    /// Starts a killed server and waits for nothing.
    fn start(&mut self, server: usize) -> anyhow::Result<()>;
    /// Waits until a started server has what the others have.
    async fn until_caught_up(&mut self, server: usize) -> anyhow::Result<()>;
    fn folder(&self) -> &Path;
}

/// The moment of the first acknowledged write through any of these clients, tried every 20 ms through each of them.
///
/// # Errors
/// When there is none within a minute.
pub async fn first_write(env: &Env, clients: &[Arc<dyn Client>]) -> anyhow::Result<Duration> {
    let began = env.clock.monotonic();
    let mut open = FuturesUnordered::new();
    let mut value = 0;
    loop {
        for client in clients {
            value += 1;
            let client = client.clone();
            open.push(async move { client.write(0, value).await });
        }
        let pause = env.clock.sleep(PROBE_EVERY);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                biased;
                Some(outcome) = open.next() => if outcome.is_ok() { return Ok(env.clock.monotonic()) },
                () = &mut pause => break,
            }
        }
        if env.clock.monotonic().saturating_sub(began) > RECOVERY_MAX {
            anyhow::bail!("no write was acknowledged within {RECOVERY_MAX:?}");
        }
    }
}
