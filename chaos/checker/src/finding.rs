//! What a checker says when something is wrong.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something that a correct cluster never does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// When it was noticed, simulated time since the world began.
    pub at: Duration,
    /// The rule that was broken, a stable name: `raft.election-safety`, `linearizable`, `watch.order`.
    pub rule: String,
    /// On which machine; empty when on none or several.
    pub host: String,
    /// What was seen, in words that name the objects.
    pub text: String,
}

impl Finding {
    /// A finding of `rule`, one of [`crate::rules`]; `host` is empty when it belongs to none or several.
    pub fn new(at: Duration, rule: &str, host: &str, text: impl Into<String>) -> Self {
        Self { at, rule: rule.to_owned(), host: host.to_owned(), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:.3}] {}: ", self.at.as_secs_f64(), self.rule)?;
        if !self.host.is_empty() {
            write!(f, "{}: ", self.host)?;
        }
        f.write_str(&self.text)
    }
}
