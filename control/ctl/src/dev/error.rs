//! Why a cluster on this machine can't be started, or a step of it did not happen.

use std::time::Duration;

use crate::client::ClientError;

/// Why a cluster can't be started, or a step did not happen.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The folder, a port or a program can't be used.
    #[error("{0}")]
    Setup(String),
    /// A command that should have ended well failed.
    #[error("{what} failed")]
    Step {
        /// What was being done.
        what: String,
        /// What the program said last.
        said: String,
    },
    /// A process ended although nobody killed it.
    #[error("{name} died ({status})")]
    Died {
        /// Which one.
        name: String,
        /// How.
        status: String,
        /// The end of its log.
        said: String,
    },
    /// Something that should have happened did not.
    #[error("{what} did not happen within {} s", limit.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// What was heard last.
        said: String,
    },
    /// The API refused.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl DevError {
    /// What was heard last of the one that failed; may be empty.
    pub fn said(&self) -> &str {
        match self {
            Self::Step { said, .. } | Self::Died { said, .. } | Self::Timeout { said, .. } => said,
            Self::Setup(_) | Self::Client(_) => "",
        }
    }
}
