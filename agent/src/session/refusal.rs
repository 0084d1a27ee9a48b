//! What an error status of a server means.

use cara_proto::{CODE_KEY, HINT_KEY, LEADER_KEY};
use tonic::{Code, Status};

/// A status, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `host:port` of the leader, when the server isn't it and knows.
    pub(crate) leader: Option<String>,
    /// Asking again would change nothing.
    pub(crate) is_final: bool,
    /// Stable code: the server's, else gRPC's.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The next step for a person; may be empty.
    pub(crate) hint: String,
    /// It is the certificate that isn't accepted.
    pub(crate) rejects_identity: bool,
}

/// The refusal of a machine with a copy of another one's identity. Its certificate is as good as the other's.
pub(crate) const CLONED: &str = "identity-cloned";
/// Another process has the session, and it is not known yet whether it lives.
pub(crate) const HELD: &str = "session-held";

/// Reads a status and its metadata.
pub(crate) fn refusal(status: &Status) -> Refusal {
    let text = |key: &str| status.metadata().get(key).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_final = matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::OutOfRange
    );
    let own_code = text(CODE_KEY);
    let code = match (own_code, is_final) {
        (Some(code), _) => code,
        (None, true) => format!("{:?}", status.code()),
        (None, false) => String::new(),
    };
    let message = if status.message().is_empty() { status.code().to_string() } else { status.message().to_owned() };
    let denied = matches!(status.code(), Code::PermissionDenied | Code::Unauthenticated);
    let rejects_identity = denied && code != CLONED;
    let hint = text(HINT_KEY).unwrap_or_default();
    Refusal { leader: text(LEADER_KEY), is_final, code, message, hint, rejects_identity }
}

#[cfg(test)]
mod tests {
    use tonic::metadata::MetadataMap;

    use super::*;

    #[test]
    fn codes_and_hints_come_from_the_metadata() {
        let mut metadata = MetadataMap::new();
        metadata.insert(CODE_KEY, "token_spent".parse().expect("ascii"));
        metadata.insert(HINT_KEY, "make another".parse().expect("ascii"));
        let read = refusal(&Status::with_metadata(Code::Unauthenticated, "spent", metadata));
        assert_eq!((read.is_final, read.code.as_str(), read.hint.as_str()), (true, "token_spent", "make another"));
    }

    #[test]
    fn an_unreachable_server_is_no_refusal() {
        for code in [Code::Unavailable, Code::DeadlineExceeded, Code::Internal, Code::ResourceExhausted] {
            let read = refusal(&Status::new(code, "later"));
            assert!(!read.is_final && read.code.is_empty(), "{code:?}");
        }
    }

    #[test]
    fn a_follower_names_the_leader() {
        let mut metadata = MetadataMap::new();
        metadata.insert(LEADER_KEY, "10.0.0.2:7443".parse().expect("ascii"));
        let read = refusal(&Status::with_metadata(Code::Unavailable, "not the leader", metadata));
        assert_eq!(read.leader.as_deref(), Some("10.0.0.2:7443"));
    }
}
