//! What can go wrong, told apart by what the caller can do about it.

use std::io;

/// Why a store did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the database open.
    #[error("the data folder {folder} is in use by another process; stop that one first")]
    Busy {
        /// The folder.
        folder: String,
    },
    /// The database belongs to something else.
    #[error("this is not {wanted}: {found}; check the data folder in the configuration")]
    Foreign {
        /// What was to be opened.
        wanted: String,
        /// What was found in its place.
        found: String,
    },
    /// A used database where a new one was expected.
    #[error("the database already holds data of server {id}; run it instead of creating it, or choose an empty folder")]
    NotEmpty {
        /// Whose data it is.
        id: u64,
    },
    /// An empty database where a used one was expected.
    #[error(
        "the database is empty, but server {id} has run before: its vote is lost, and voting again could elect two \
         leaders; remove the server from the cluster and join it again under a new id"
    )]
    Empty {
        /// The server that was to be opened.
        id: u64,
    },
    /// Data that was once written can't be read back.
    #[error(
        "the database is damaged ({what}); this server must not vote or serve with it: remove the server from the \
         cluster, empty its data folder and join it again, its peers hold the data"
    )]
    Damaged {
        /// What was found.
        what: String,
    },
    /// Written by a newer version.
    #[error("the database has format {found}, this version reads up to {known}; start the newer version again")]
    TooNew {
        /// The format in the database.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Settings that contradict each other.
    #[error("the replication settings don't work: {0}")]
    Config(String),
    /// The device has no room.
    #[error("the device of the data folder is full; free some space and start again")]
    StorageFull,
    /// The device or the file system refused.
    #[error("can't open the database")]
    Io(#[from] io::Error),
}

/// A server's id and its address, `host:port`.
pub type Leader = (u64, String);

/// Why a command was not applied, or why nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Another server has to be asked. Nothing was done here.
    #[error("this server is not the leader{}", hint(leader))]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<Leader>,
    },
    /// This server leads, or did until a moment ago, and no majority answers it. Nothing was done.
    #[error("no majority of the servers answers this leader; retry once they are reachable")]
    NoQuorum,
    /// The entry may or may not be committed, now or later. Ask again with the same request id.
    #[error("the outcome is unknown ({reason}): the command may still take effect; retry it with the same request id")]
    Unknown {
        /// Why.
        reason: String,
    },
    /// Over [`crate::COMMAND_MAX`]. Nothing was done.
    #[error("the command has {bytes} bytes, over the limit of {limit}; split it")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No room on this server's device. Nothing was done; deleting still works.
    #[error("this server's device is nearly full; delete something or make room, then retry")]
    StorageFull,
    /// Replication on this server has ended. Nothing was done.
    #[error("replication on this server has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
}

/// Why a linearizable read can't be served here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Another server has to be asked.
    #[error("this server is not the leader{}", hint(leader))]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<Leader>,
    },
    /// No majority confirmed in time that this server still leads.
    #[error("no majority of the servers confirmed the read in time; retry, or ask for a stale read")]
    NoQuorum,
    /// Replication on this server has ended.
    #[error("replication on this server has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
}

/// Why the members did not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Another server has to be asked.
    #[error("this server is not the leader{}", hint(leader))]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<Leader>,
    },
    /// The change makes no sense now.
    #[error("the members can't be changed this way: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The change may or may not happen. Look at the members and ask again.
    #[error("the outcome is unknown ({reason}): look at the list of servers before retrying")]
    Unknown {
        /// Why.
        reason: String,
    },
    /// Replication on this server has ended.
    #[error("replication on this server has stopped: {reason}")]
    Stopped {
        /// Why.
        reason: String,
    },
}

fn hint(leader: &Option<Leader>) -> String {
    match leader {
        Some((id, address)) => format!("; ask server {id} at {address}"),
        None => "; none is known at the moment, retry shortly".into(),
    }
}
