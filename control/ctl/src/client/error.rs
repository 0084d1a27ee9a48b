//! Why a call failed: one server's trouble, and the final error after all were asked.

use std::time::Duration;

use cara_proto::rest::Problem;

/// What went wrong with one server; the next one may do better.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// No connection; the request can't have arrived.
    Unreachable(String),
    /// It is not a server of the cluster that the fingerprint names.
    Untrusted(String),
    /// The connection broke after the request was sent; it may have been carried out.
    Broken(String),
    /// Nothing came back in time; it may have been carried out.
    Silent(Duration),
    /// The server refused for now, for example while there is no leader, and says so itself.
    Busy(Box<Problem>),
}

impl Trouble {
    /// May the cluster have carried out the request?
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Untrusted(_) => false,
            Self::Busy(problem) => problem.code == "unconfirmed",
            Self::Broken(_) | Self::Silent(_) => true,
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Untrusted(why) => f.write_str(why),
            Self::Broken(why) => write!(f, "the connection broke ({why})"),
            Self::Silent(limit) => write!(f, "no answer within {:.1} s", limit.as_secs_f64()),
            Self::Busy(problem) => f.write_str(&problem.detail),
        }
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The call could not be made at all.
    #[error("{0}")]
    Setup(String),
    /// The cluster refused, with a reason.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    /// No server answered.
    #[error("no server of the cluster answered within {:.0} s", waited.as_secs_f64())]
    Unreachable {
        /// Each server and its trouble.
        tried: Vec<String>,
        /// How long all were tried.
        waited: Duration,
    },
    /// Servers answered, and none belongs to the cluster that the fingerprint names.
    #[error("no server proved to belong to the cluster with this CA fingerprint")]
    Untrusted {
        /// Each server and its trouble.
        tried: Vec<String>,
    },
    /// A mutation was sent and its answer was lost: it may have been carried out.
    #[error("no answer within {:.0} s; the request may have been carried out", waited.as_secs_f64())]
    Unknown {
        /// Each server and its trouble.
        tried: Vec<String>,
        /// How long all were tried.
        waited: Duration,
    },
    /// The answer is not what the API promises.
    #[error("the server's answer can't be understood: {0}")]
    Malformed(String),
    /// A stream brought nothing for this long; its server may be frozen, or there was nothing to say.
    #[error("the stream was silent for {} s", .0.as_secs())]
    Quiet(Duration),
    /// A stream ended in the middle.
    #[error("the stream broke off: {0}")]
    Interrupted(String),
}

impl ClientError {
    /// HTTP status of the refusal, when the cluster refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Problem(problem) => Some(problem.status),
            _ => None,
        }
    }
}
