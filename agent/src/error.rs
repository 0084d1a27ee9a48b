//! Why an agent could not start or could not enrol.

use std::path::PathBuf;

use crate::identity::IdentityError;
use crate::ledger::LedgerError;

/// Why [`crate::run`] ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The data folder has no identity and no token was given.
    #[error(
        "{} holds no identity, and no join token was given; make one with `caractrl nodes join-token` and start \
         the agent with --token TOKEN",
        .folder.display()
    )]
    NoToken {
        /// The data folder.
        folder: PathBuf,
    },
    /// The identity file can't be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The ledger can't be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The node could not enrol, and trying again would not help.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
}

/// Why enrolment ended. Servers that don't answer are no reason: they are tried again.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The data folder can't be written; found out before the token was sent.
    #[error(
        "can't write to the data folder {}: {source}; the join token is unspent: fix the folder's owner, mode or space \
         and start the agent again with the same token",
        .folder.display()
    )]
    Folder {
        /// The data folder.
        folder: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The key could not be made or read back.
    #[error(
        "can't make the node's key: {0}; remove the file enrol-key.pem or reenrol-key.pem in the data folder and start again"
    )]
    Key(String),
    /// A server said no.
    #[error("{server} refused to enrol this node ({code}): {message}{}", hint_text(.hint))]
    Refused {
        /// `host:port` of the server.
        server: String,
        /// The stable code.
        code: String,
        /// What it said.
        message: String,
        /// The next step, when the server named one.
        hint: String,
    },
    /// Something is wrong that would have spent the token for nothing.
    #[error("this machine can't join yet: {what}; the join token is unspent: {next}, then start the agent again")]
    NotReady {
        /// What is wrong.
        what: String,
        /// What to do about it.
        next: String,
    },
    /// The answer doesn't fit the request or the token.
    #[error(
        "the answer of {server} to the enrolment can't be trusted: {problem}; nothing was saved, start again with the \
         same token, and if it happens again compare the token's CA fingerprint with `caractrl servers`"
    )]
    Answer {
        /// `host:port` of the server.
        server: String,
        /// What doesn't fit.
        problem: String,
    },
    /// The shutdown was asked for first.
    #[error("stopped before the node was enrolled; start the agent again with the same token")]
    Stopped,
}

fn hint_text(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}
