//! Releases side by side: what the one before this can't know must wait until the last server is upgraded.

use std::time::Duration;

use cara_checker::{Finding, rules};
use cara_core::{Command, FEATURE_LEVEL};

/// The feature level of the release before this one.
pub const OLD_LEVEL: u32 = FEATURE_LEVEL - 1;
/// The last command that it knows, by its number on the wire: numbers are only ever appended.
const OLD_COMMAND_LAST: u32 = 38;

/// Judges an entry that was accepted while these servers ran the release before: they would pass over it, and end up with
/// another state than their peers.
pub fn check(at: Duration, index: u64, command: &Command, old_servers: &[String]) -> Option<Finding> {
    if old_servers.is_empty() || command.tag() <= OLD_COMMAND_LAST {
        return None;
    }
    let text = format!("entry {index}, {}, while {} can't know what that is", command.name(), old_servers.join(", "));
    Some(Finding::new(at, rules::VERSIONS_MIXED, "", text))
}
