//! This process, and which process had the last session of this data folder: how the leader tells a machine that comes back
//! from a second one with a copy of its folder. The rule is the leader's; here is only what it is told.
//!
//! Invariant: the epoch of a session is on disk before the session's first heartbeat, so whoever has heard that session knows
//! that this folder knows of it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cara_env::Env;
use cara_proto::agent::Instance;
use serde::{Deserialize, Serialize};

/// The file's content: who had the last session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Last {
    id: String,
    epoch: u64,
}

/// This process.
pub(crate) struct Life {
    env: Env,
    file: PathBuf,
    id: String,
    last: Mutex<Last>,
}

impl Life {
    /// A new process in this folder. A file that can't be read is as none: then this machine has to wait until the process
    /// before it is known to be gone.
    pub(crate) fn begin(env: Env, file: PathBuf) -> Self {
        let last = match env.files.read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!("{} can't be read: {error}", file.display());
                Last::default()
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Last::default(),
            Err(error) => {
                tracing::warn!("{} can't be read: {error}", file.display());
                Last::default()
            }
        };
        let id = cara_env::hex(&*env.rng, 16);
        Self { env, file, id, last: Mutex::new(last) }
    }

    /// What to say in a hello.
    pub(crate) fn said(&self) -> Instance {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Instance { id: self.id.clone(), last_id: last.id.clone(), last_epoch: last.epoch }
    }

    /// This process has a session of this epoch.
    pub(crate) fn has_session(&self, epoch: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Last { id: self.id.clone(), epoch };
        let bytes = serde_json::to_vec(&*last).expect("a text and a number are JSON");
        if let Err(error) = self.env.files.write(&self.file, &bytes, 0o600) {
            tracing::warn!(
                "can't write {}: {error}; after a restart this node waits before it is let in",
                self.file.display()
            );
        }
    }
}
