//! Failures as people see them, and the exit codes that scripts see.

use cara_proto::rest::Problem;

use crate::client::ClientError;

/// Exit codes. Scripts depend on them: never renumber.
pub mod exit {
    /// Done.
    pub const OK: u8 = 0;
    /// Anything that fits nowhere else.
    pub const OTHER: u8 = 1;
    /// Wrong usage or bad input.
    pub const USAGE: u8 = 2;
    /// No such object.
    pub const NOT_FOUND: u8 = 3;
    /// A conflict or a precondition that doesn't hold.
    pub const CONFLICT: u8 = 4;
    /// No token, a wrong one, or one that may not do this.
    pub const AUTH: u8 = 5;
    /// No server can be reached, or there is no quorum.
    pub const UNREACHABLE: u8 = 6;
    /// The operation was carried out and failed: a move was rolled back, a drain left something behind.
    pub const FAILED: u8 = 7;
    /// The time is over; the operation goes on.
    pub const TIMEOUT: u8 = 8;
    /// Detached by Ctrl-C; the operation goes on.
    pub const DETACHED: u8 = 130;
}

/// What a command gives back.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command failed, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable, kebab-case.
    pub code: String,
    /// What could not be done.
    pub what: String,
    /// The cause; may have several lines, may be empty.
    pub why: String,
    /// The next step; may be empty.
    pub next: String,
    /// One of [`exit`].
    pub exit: u8,
}

impl Failure {
    /// A failure without cause and next step.
    pub fn new(exit: u8, code: &str, what: impl Into<String>) -> Self {
        Self { code: code.to_owned(), what: what.into(), why: String::new(), next: String::new(), exit }
    }

    /// Wrong usage or bad input.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "usage", what)
    }

    /// Adds the cause.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// Says what was being done when it happened.
    #[must_use]
    pub fn during(mut self, operation: &str) -> Self {
        self.what = format!("{operation}: {}", self.what);
        self
    }
}

/// Three lines at most: `error[code]: what`, `  why:`, `  next:`.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.what)?;
        for (label, text) in [("why", &self.why), ("next", &self.next)] {
            if !text.is_empty() {
                write!(f, "\n  {label}: {}", text.replace('\n', "\n       "))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let what = error.to_string();
        match error {
            ClientError::Setup(_) => Self::new(exit::USAGE, "access", what).next(
                "name the cluster with --server, --token and --ca-fingerprint, their CARA_ variables, or `caractrl ctx \
                 set`",
            ),
            ClientError::Problem(problem) => Self::from(*problem),
            ClientError::Unreachable { tried, .. } => {
                Self::new(exit::UNREACHABLE, "unreachable", what).why(tried.join("\n")).next(
                    "check that cara-server runs on these machines and that --server names them (`caractrl ctx list`)",
                )
            }
            ClientError::Untrusted { tried } => Self::new(exit::AUTH, "untrusted", what).why(tried.join("\n")).next(
                "compare --ca-fingerprint with what `cara-server init` printed; another cluster may own the address",
            ),
            ClientError::Unknown { tried, .. } => Self::new(exit::TIMEOUT, "outcome-unknown", what)
                .why(tried.join("\n"))
                .next("look with `caractrl get` whether it happened, then repeat it if needed"),
            ClientError::Malformed(_) => Self::new(exit::OTHER, "malformed-answer", what)
                .next("compare `caractrl version` with the servers' version; is the address a cara-server?"),
            ClientError::Interrupted(_) | ClientError::Quiet(_) => {
                Self::new(exit::UNREACHABLE, "interrupted", what).next("run the command again")
            }
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let exit = match problem.status {
            400 | 405 | 413 | 415 | 422 => exit::USAGE,
            401 | 403 => exit::AUTH,
            404 => exit::NOT_FOUND,
            409 | 412 | 428 | 429 | 507 => exit::CONFLICT,
            502..=504 => exit::UNREACHABLE,
            _ => exit::OTHER,
        };
        let what = if problem.detail.is_empty() { problem.title.clone() } else { problem.detail };
        let why = match exit {
            exit::OTHER if !problem.request_id.is_empty() => {
                format!("request {} in the servers' logs", problem.request_id)
            }
            _ => String::new(),
        };
        let next = match (exit, problem.hint.is_empty()) {
            (_, false) => problem.hint,
            (exit::AUTH, true) => "give a valid token with --token, CARA_TOKEN or CARA_TOKEN_FILE".to_owned(),
            (exit::UNREACHABLE, true) => "look at `caractrl servers`; reads go on with --stale".to_owned(),
            _ => String::new(),
        };
        Self { code: problem.code, what, why, next, exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_exit_code() {
        for (status, code) in [
            (400, 2),
            (413, 2),
            (422, 2),
            (401, 5),
            (403, 5),
            (404, 3),
            (409, 4),
            (412, 4),
            (428, 4),
            (429, 4),
            (500, 1),
            (502, 6),
            (503, 6),
            (504, 6),
        ] {
            assert_eq!(Failure::from(Problem { status, ..Problem::default() }).exit, code, "HTTP {status}");
        }
    }

    #[test]
    fn client_errors_have_their_exit_codes() {
        let waited = std::time::Duration::from_secs(1);
        let tried = Vec::new;
        assert_eq!(Failure::from(ClientError::Setup(String::new())).exit, 2);
        assert_eq!(Failure::from(ClientError::Unreachable { tried: tried(), waited }).exit, 6);
        assert_eq!(Failure::from(ClientError::Untrusted { tried: tried() }).exit, 5);
        assert_eq!(Failure::from(ClientError::Unknown { tried: tried(), waited }).exit, 8);
        assert_eq!(Failure::from(ClientError::Malformed(String::new())).exit, 1);
    }

    #[test]
    fn it_reads_as_what_why_next() {
        let failure = Failure::usage("bad").why("one\ntwo").next("do");
        assert_eq!(failure.to_string(), "error[usage]: bad\n  why: one\n       two\n  next: do");
    }
}
