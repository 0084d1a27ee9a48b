//! Counts how often the cluster calls a node offline whose agent runs. There must be none.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::{Env, Task};
use caractrl::client::Client;

/// Before a stream that broke is opened again.
const PAUSE: Duration = Duration::from_millis(200);
/// What an orderly end says: then the node is offline in truth.
const ORDERLY: &str = "the agent closed it";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    revision: Option<u64>,
    /// Revision, node and what was said. A stream that broke within a revision begins with it again.
    falsely: BTreeSet<(u64, String)>,
    /// Changes were missed: what was counted is not all.
    gap: bool,
}

/// Watches from its making on, also over failovers. Dropping it ends the watching.
pub struct OfflineWatch {
    seen: Arc<Mutex<Seen>>,
    task: Task<()>,
}

impl OfflineWatch {
    /// Begins to watch after this revision.
    pub fn begin(env: &Env, client: Client, revision: u64) -> Self {
        let seen = Arc::new(Mutex::new(Seen { revision: Some(revision), ..Seen::default() }));
        let task = cara_env::spawn(watch(env.clone(), client, seen.clone()));
        Self { seen, task }
    }

    /// How many; none when changes were missed.
    pub fn count(&self) -> Option<usize> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        (!seen.gap).then_some(seen.falsely.len())
    }

    /// The first few, for people.
    pub fn examples(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.falsely.iter().take(3).map(|(_, what)| what.clone()).collect()
    }
}

impl Drop for OfflineWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(env: Env, client: Client, seen: Arc<Mutex<Seen>>) {
    loop {
        let after = seen.lock().unwrap_or_else(PoisonError::into_inner).revision;
        match client.watch("kind=Node", after).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    if is_false(&event.event, &event.message) {
                        seen.falsely.insert((event.revision, format!("{}: {}", event.name, event.message)));
                    }
                    seen.revision = seen.revision.max(Some(event.revision.saturating_sub(1)));
                }
            }
            Err(error) if error.to_string().contains("compacted") => {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.gap = true;
                return;
            }
            Err(_) => {}
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// Does this call a node offline that has not said goodbye?
fn is_false(event: &str, message: &str) -> bool {
    event == "NodeConnectionChanged" && message.to_lowercase().contains("to offline") && !message.contains(ORDERLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_silence_is_called_false() {
        assert!(is_false("NodeConnectionChanged", "online to offline: no heartbeat for 45 s"));
        assert!(!is_false("NodeConnectionChanged", "online to offline: the agent closed it"));
        assert!(!is_false("NodeConnectionChanged", "offline to online: session 3"));
        assert!(!is_false("NodeUpdated", ""));
    }
}
