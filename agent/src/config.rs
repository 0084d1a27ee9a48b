//! What an agent is told at its start, with the defaults and the reasons for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cara_transport::JoinToken;

use crate::readings::DiskProbe;
use crate::witness::Witness;

/// Where an agent listens for other agents unless told otherwise: beside the servers' 7443.
pub const VOLUME_LISTEN_DEFAULT: &str = "0.0.0.0:7444";

/// The highest feature level that this version supports, as servers count them. From 2 on an agent knows the modes of an
/// assignment and volumes by data generation; from 3 on it can enrol again while it runs and follow a rotation of the CA.
pub const FEATURE_LEVEL: u32 = 3;

/// How one agent runs. [`Config::new`] gives production's defaults; tests and the simulator shorten the times.
#[derive(Clone)]
pub struct Config {
    /// Holds the identity, the key and the ledger; one agent per folder.
    pub data_dir: PathBuf,
    /// The node's name, as operators see it. Used when enrolling.
    pub node_name: String,
    /// Where other nodes reach this one (host or IP address). Used when enrolling.
    pub advertise: String,
    /// `host:port` on which other agents are answered when volumes move from this node. Port 0 = any; one that is taken is
    /// replaced by any. Default 0.0.0.0:7444.
    pub volume_listen: String,
    /// The join token; needed only as long as the data folder holds no identity.
    pub token: Option<JoinToken>,
    /// First wait after a failed connection; doubles up to [`Config::backoff_max`]. Default 1 s.
    pub backoff_min: Duration,
    /// The longest wait between two attempts. Default 30 s: a server that returns is found within that.
    pub backoff_max: Duration,
    /// The longest wait while servers answer but have no leader. Default 1 s, the length of an election.
    pub election_retry: Duration,
    /// The wait after a refusal that only an operator can end (deleted, a copy of another machine). Default 60 s.
    pub refused_retry: Duration,
    /// The wait while the certificate has expired: so long at most until the agent finds what `cara-agent reenroll` got.
    /// Default 30 s.
    pub expired_retry: Duration,
    /// Deadline of one connection, TCP and TLS together. Default 5 s.
    pub connect_deadline: Duration,
    /// Deadline of one call, and of a server's first word in a session. Default 10 s.
    pub call_deadline: Duration,
    /// The engine is listed at least this often, events or not. Default 10 s.
    pub resync: Duration,
    /// How long a container may take to stop before it is killed. Default 10 s, as Docker's own.
    pub stop_grace: Duration,
    /// The operator has said [`Config::advertise`], and it is not the machine's own guess: then a server must reach it there
    /// before the token is spent. Default false.
    pub must_answer: bool,
    /// Tells how much room the device of the data folder has; none where nobody can say.
    pub disk: Option<DiskProbe>,
    /// Between two readings of memory and disk. Default 30 s: pressure builds up over minutes.
    pub readings_interval: Duration,
    /// The feature level that it says to servers. Default [`FEATURE_LEVEL`]; lower, it is asked only for what that release
    /// knew.
    pub feature_level: u32,
    /// Looks on, to measure. Default none.
    pub witness: Option<Arc<dyn Witness>>,
}

impl Config {
    /// Production's defaults for this folder, name and address.
    pub fn new(data_dir: impl Into<PathBuf>, node_name: impl Into<String>, advertise: impl Into<String>) -> Self {
        Self {
            data_dir: data_dir.into(),
            node_name: node_name.into(),
            advertise: advertise.into(),
            volume_listen: VOLUME_LISTEN_DEFAULT.to_owned(),
            token: None,
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            election_retry: Duration::from_secs(1),
            refused_retry: Duration::from_secs(60),
            expired_retry: Duration::from_secs(30),
            connect_deadline: Duration::from_secs(5),
            call_deadline: Duration::from_secs(10),
            resync: Duration::from_secs(10),
            stop_grace: Duration::from_secs(10),
            must_answer: false,
            disk: None,
            readings_interval: Duration::from_secs(30),
            feature_level: FEATURE_LEVEL,
            witness: None,
        }
    }

    /// The identity file.
    pub(crate) fn identity_file(&self) -> PathBuf {
        self.data_dir.join("identity.json")
    }

    /// A machine with one of these needs no join token.
    pub fn identity_files(&self) -> [PathBuf; 2] {
        [self.identity_file(), self.reenrolled_file()]
    }

    /// The identity before the last renewal, until a server has accepted the new one.
    pub(crate) fn previous_file(&self) -> PathBuf {
        self.data_dir.join("identity.json.prev")
    }

    /// What `cara-agent reenroll` got, until the agent takes it over.
    pub(crate) fn reenrolled_file(&self) -> PathBuf {
        self.data_dir.join("identity.json.reenrolled")
    }

    /// The private key of a `cara-agent reenroll` that has not been answered yet.
    pub(crate) fn reenrol_key_file(&self) -> PathBuf {
        self.data_dir.join("reenrol-key.pem")
    }

    /// Which process had the last session.
    pub(crate) fn instance_file(&self) -> PathBuf {
        self.data_dir.join("instance")
    }

    /// The private key of an enrolment that has not been answered yet.
    pub(crate) fn pending_key_file(&self) -> PathBuf {
        self.data_dir.join("enrol-key.pem")
    }

    /// The book of volumes that were made to be filled.
    pub(crate) fn staged_file(&self) -> PathBuf {
        self.data_dir.join("staged")
    }

    /// The ledger.
    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.data_dir.join("ledger")
    }
}
