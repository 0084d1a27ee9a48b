//! What a request can end with besides success, and its two faces: an HTTP problem and a gRPC status.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use cara_core::{RejectKind, Rejected};
use cara_proto::rest::{PROBLEM_TYPE, Problem};
use http::{HeaderValue, StatusCode, header};
use raft_store::{ProposeError, ReadError};

/// Why a request got no.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The state machine refused; nothing changed.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Another server is the leader.
    #[error("this server is not the leader")]
    NotLeader {
        /// Its `host:port`, when known.
        leader: Option<String>,
    },
    /// There is no leader, or it can't reach a majority.
    #[error("the cluster has no quorum: {0}")]
    NoQuorum(String),
    /// The deadline passed after the change was handed over: it may or may not take effect.
    #[error("the change was not confirmed in time; it may still take effect")]
    Unconfirmed,
    /// The leader's device is nearly full; what frees room still works.
    #[error("the leader's disk is nearly full")]
    StorageFull,
    /// No or a wrong token.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The token may not do this.
    #[error("this needs the ability {needed:?}, the token has {has:?}")]
    Forbidden {
        /// What the route needs.
        needed: &'static str,
        /// What the token has.
        has: &'static str,
    },
    /// None of the token's scopes covers it. Says no more on purpose: whether it exists is not theirs to know.
    #[error("the token's scopes don't cover this")]
    OutOfScope,
    /// The request itself is wrong.
    #[error("{detail}")]
    Bad {
        /// HTTP status, 4xx.
        status: StatusCode,
        /// Stable.
        code: &'static str,
        /// What is wrong and where.
        detail: String,
        /// The next step.
        hint: &'static str,
    },
    /// The object, or the history that was asked for, isn't there.
    #[error("{detail}")]
    Missing {
        /// Stable.
        code: &'static str,
        /// What was looked for.
        detail: String,
        /// The next step.
        hint: &'static str,
    },
    /// Another process has the node's session.
    #[error("{0}")]
    Held(&'static str),
    /// A limit of this server is reached.
    #[error("{0}")]
    Busy(String),
    /// Too many requests from one caller.
    #[error("too many requests from this {who}")]
    RateLimited {
        /// `token` or `address`.
        who: &'static str,
        /// When it is worth trying again.
        wait: Duration,
    },
    /// Our own fault.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// A 400 with code `invalid-request`.
    pub fn invalid(detail: impl Into<String>) -> Self {
        let (status, code) = (StatusCode::BAD_REQUEST, "invalid-request");
        Self::Bad { status, code, detail: detail.into(), hint: "correct the request and send it again" }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rejected(rejected) => rejected.code(),
            Self::NotLeader { .. } => "not-leader",
            Self::NoQuorum(_) => "no-quorum",
            Self::Unconfirmed => "unconfirmed",
            Self::StorageFull => "storage-full",
            Self::Unauthenticated(_) => "unauthenticated",
            Self::Forbidden { .. } => "forbidden",
            Self::OutOfScope => "out-of-scope",
            Self::Bad { code, .. } | Self::Missing { code, .. } => code,
            Self::Held(_) => "session-held",
            Self::Busy(_) => "busy",
            Self::RateLimited { .. } => "rate-limited",
            Self::Internal(_) => "internal",
        }
    }

    /// The next step for a person.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Rejected(rejected) => rejected.hint(),
            Self::NotLeader { .. } => "try again, or ask the leader",
            Self::NoQuorum(_) => "start the servers that are down; reads with ?consistency=stale go on meanwhile",
            Self::Unconfirmed => "repeat it with the same Idempotency-Key: it will not be done twice",
            Self::StorageFull => "make room on the leader's disk, or delete something; then try again",
            Self::Unauthenticated(_) => "pass a token: Authorization: Bearer cara_...",
            Self::Forbidden { .. } => "use a token with that ability",
            Self::OutOfScope => "use a token whose scopes cover it, or one without scopes",
            Self::Bad { hint, .. } | Self::Missing { hint, .. } => hint,
            Self::RateLimited { .. } => "wait as long as Retry-After says, and ask less often",
            Self::Held(_) | Self::Busy(_) => "try again in a moment",
            Self::Internal(_) => "look for the request id in the servers' logs and report it",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Rejected(rejected) => status_of_kind(rejected.kind()),
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotLeader { .. } | Self::NoQuorum(_) | Self::Unconfirmed | Self::Held(_) | Self::Busy(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } | Self::OutOfScope => StatusCode::FORBIDDEN,
            Self::Bad { status, .. } => *status,
            Self::Missing { code: "compacted", .. } => StatusCode::GONE,
            Self::Missing { .. } => StatusCode::NOT_FOUND,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The body for HTTP.
    pub fn problem(&self) -> Problem {
        let status = self.status();
        Problem {
            r#type: format!("urn:caravanserai:problem:{}", self.code()),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code: self.code().to_owned(),
            detail: self.to_string(),
            hint: self.hint().to_owned(),
            retryable: status == StatusCode::SERVICE_UNAVAILABLE || matches!(self, Self::RateLimited { .. }),
            request_id: String::new(),
        }
    }

    /// The status for gRPC, with code, hint and leader as metadata.
    pub fn to_status(&self) -> tonic::Status {
        use tonic::Code;
        let code = match self.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => Code::NotFound,
            StatusCode::CONFLICT => Code::FailedPrecondition,
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
            StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
            StatusCode::INTERNAL_SERVER_ERROR => Code::Internal,
            _ => Code::InvalidArgument,
        };
        let mut status = tonic::Status::new(code, self.to_string());
        let mut add = |key: &'static str, value: &str| {
            if let Ok(value) = value.parse() {
                status.metadata_mut().insert(key, value);
            }
        };
        add(cara_proto::CODE_KEY, self.code());
        add(cara_proto::HINT_KEY, self.hint());
        if let Self::NotLeader { leader: Some(leader) } = self {
            add(cara_proto::LEADER_KEY, leader);
        }
        status
    }
}

impl From<ProposeError> for ApiError {
    fn from(error: ProposeError) -> Self {
        match error {
            ProposeError::NotLeader { leader } => Self::NotLeader { leader: leader.map(|(_, address)| address) },
            ProposeError::Unknown { .. } => Self::Unconfirmed,
            ProposeError::StorageFull => Self::StorageFull,
            ProposeError::TooLarge { bytes, limit } => Self::Bad {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                code: "entry-too-large",
                detail: format!("the change needs {bytes} bytes in the log, at most {limit} are allowed"),
                hint: "make it smaller, or split it",
            },
            other => Self::NoQuorum(chain(&other)),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotLeader { leader } => Self::NotLeader { leader: leader.map(|(_, address)| address) },
            other => Self::NoQuorum(chain(&other)),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(detail) = &self {
            tracing::error!(%detail, "request failed");
        }
        let problem = self.problem();
        let status = self.status();
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        if let Self::RateLimited { wait, .. } = self {
            // Whole seconds, and never "at once".
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        }
        response
    }
}

/// The problems of the shell, with their status; those of the domain are in [`Rejected`].
const PROBLEMS: &[(&str, StatusCode)] = &[
    ("already-exists", StatusCode::CONFLICT),
    ("body-too-deep", StatusCode::BAD_REQUEST),
    ("body-too-large", StatusCode::PAYLOAD_TOO_LARGE),
    ("body-too-slow", StatusCode::REQUEST_TIMEOUT),
    ("busy", StatusCode::SERVICE_UNAVAILABLE),
    ("compacted", StatusCode::GONE),
    ("confirmation-needed", StatusCode::CONFLICT),
    ("entry-too-large", StatusCode::PAYLOAD_TOO_LARGE),
    ("forbidden", StatusCode::FORBIDDEN),
    ("has-volumes", StatusCode::BAD_REQUEST),
    ("internal", StatusCode::INTERNAL_SERVER_ERROR),
    ("invalid-body", StatusCode::BAD_REQUEST),
    ("invalid-request", StatusCode::BAD_REQUEST),
    ("logs-unavailable", StatusCode::CONFLICT),
    ("out-of-scope", StatusCode::FORBIDDEN),
    ("no-address", StatusCode::CONFLICT),
    ("no-quorum", StatusCode::SERVICE_UNAVAILABLE),
    ("not-leader", StatusCode::SERVICE_UNAVAILABLE),
    ("quorum-at-risk", StatusCode::CONFLICT),
    ("rate-limited", StatusCode::TOO_MANY_REQUESTS),
    ("storage-full", StatusCode::INSUFFICIENT_STORAGE),
    ("token-shown-before", StatusCode::CONFLICT),
    ("unauthenticated", StatusCode::UNAUTHORIZED),
    ("unconfirmed", StatusCode::SERVICE_UNAVAILABLE),
    ("unknown-database", StatusCode::BAD_REQUEST),
    ("unknown-service", StatusCode::NOT_FOUND),
];

/// The status that comes with a code.
pub fn status_of(code: &str) -> Option<StatusCode> {
    let domain = Rejected::KINDS.iter().find(|(known, _)| *known == code).map(|(_, kind)| status_of_kind(*kind));
    domain.or_else(|| PROBLEMS.iter().find(|(known, _)| *known == code).map(|(_, status)| *status))
}

fn status_of_kind(kind: RejectKind) -> StatusCode {
    match kind {
        RejectKind::NotFound => StatusCode::NOT_FOUND,
        RejectKind::Conflict => StatusCode::CONFLICT,
        RejectKind::Invalid => StatusCode::BAD_REQUEST,
        RejectKind::Denied => StatusCode::FORBIDDEN,
        RejectKind::Exhausted => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// An error and its causes in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.ends_with(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    text
}
