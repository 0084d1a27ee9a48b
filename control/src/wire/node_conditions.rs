//! What is so about a node, as typed statements: whether it is heard, whether it is ready, whether its machine has room.
//!
//! `Heartbeat` and `Ready` follow from the log, so every server says the same and a change of leader moves no time. The
//! pressures follow from what the agent read last, which only the leader knows: they carry the time of that reading, and
//! none of when they began, because nobody writes that down.

use cara_core::State;
use cara_core::model::{Connection, Node, NodeEvent};
use cara_proto::rest::Condition;

use super::certificate::identity_condition;
use super::node::Around;
use super::rfc3339;

/// Less than this percentage of the disk free: images and volumes soon find no room.
const DISK_FREE_PERCENT_MIN: u64 = 15;
/// Less than this percentage of the memory available: the kernel soon ends something.
const MEMORY_AVAILABLE_PERCENT_MIN: u64 = 10;

/// At most one per type.
pub(super) fn conditions(state: &State, node: &Node, around: &Around<'_>) -> Vec<Condition> {
    let edge = last_edge(state, node);
    let since_ms = match (node.connection, node.connection_since_ms, edge) {
        (Connection::Pending, _, _) => node.waits_since_ms().unwrap_or(0),
        (Connection::Online | Connection::Offline, 0, Some(edge)) => edge.at_ms,
        (Connection::Online | Connection::Offline, since_ms, _) => since_ms,
    };
    let seen_ms = around.last_heard_ms.unwrap_or(0).max(node.last_seen_ms);
    let times = |condition: Condition| Condition {
        last_heartbeat_time: rfc3339(seen_ms),
        last_transition_time: rfc3339(since_ms),
        ..condition
    };
    let why = edge.map(|edge| edge.reason.as_str()).unwrap_or_default();
    let mut all = vec![times(heartbeat(node, around, seen_ms, why)), times(ready(node, why))];
    if let Some((readings, at_ms)) = around.link.as_ref().and_then(|link| link.readings.as_ref()) {
        let disk = (readings.disk_free_bytes, readings.disk_total_bytes, DISK_FREE_PERCENT_MIN);
        all.extend(pressure("DiskPressure", "disk", disk, *at_ms));
        let memory = (readings.memory_available_bytes, readings.memory_total_bytes, MEMORY_AVAILABLE_PERCENT_MIN);
        all.extend(pressure("MemoryPressure", "memory", memory, *at_ms));
    }
    all.extend(identity_condition(node, around.now_ms));
    all
}

/// The last change of the connection; cordons are in the same list.
fn last_edge<'a>(state: &'a State, node: &Node) -> Option<&'a NodeEvent> {
    state.node_events(&node.id).iter().rev().find(|event| event.to == node.connection.as_str())
}

fn heartbeat(node: &Node, around: &Around<'_>, seen_ms: u64, why: &str) -> Condition {
    let (status, reason, message) = match node.connection {
        Connection::Pending => ("Unknown", "NeverConnected", never_connected(node, around)),
        Connection::Online => ("True", "HeartbeatRecent", String::new()),
        Connection::Offline => ("False", "HeartbeatStale", stale(around, seen_ms, why)),
    };
    typed("Heartbeat", status, reason, message)
}

fn never_connected(node: &Node, around: &Around<'_>) -> String {
    let name = &node.name;
    match (&node.certificate, around.never_connected(node)) {
        (None, _) => {
            format!("declared, and no machine has joined under its name; next: caractrl nodes add --name {name}")
        }
        (Some(_), false) => "its machine was let in and has not opened its first session yet".to_owned(),
        (Some(_), true) => {
            "its machine was let in and has never opened a session; next: look at the log of cara-agent \
            there: does it run, and does it reach every server's address?"
                .to_owned()
        }
    }
}

fn stale(around: &Around<'_>, seen_ms: u64, why: &str) -> String {
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    if seen_ms == 0 {
        return format!("none ever{why}");
    }
    let silent_s = around.now_ms.saturating_sub(seen_ms) / 1_000;
    match around.timeout_ms / 1_000 {
        timeout_s if silent_s >= timeout_s => format!("none for {silent_s} s, over {timeout_s} s{why}"),
        _ => format!("none for {silent_s} s{why}"),
    }
}

fn ready(node: &Node, why: &str) -> Condition {
    let (status, reason) = match (node.connection, &node.session) {
        (Connection::Pending, _) => ("Unknown", "NeverConnected"),
        (Connection::Online, _) => ("True", "AgentReady"),
        (Connection::Offline, Some(_)) => ("False", "HeartbeatTimeout"),
        // It said goodbye, or it was shut out: no timeout had to pass.
        (Connection::Offline, None) => ("False", "SessionEnded"),
    };
    typed("Ready", status, reason, why.to_owned())
}

/// None when the total is not known.
fn pressure(of: &str, what: &str, (left, total, percent_min): (u64, u64, u64), at_ms: u64) -> Option<Condition> {
    let percent = left.saturating_mul(100).checked_div(total)?;
    let (status, reason) = if percent < percent_min { ("True", "LittleLeft") } else { ("False", "Enough") };
    let message = format!("{percent} % of the {what} is left; pressure begins below {percent_min} %");
    Some(Condition { last_heartbeat_time: rfc3339(at_ms), ..typed(of, status, reason, message) })
}

fn typed(of: &str, status: &str, reason: &str, message: String) -> Condition {
    Condition { r#type: of.into(), status: status.into(), reason: reason.into(), message, ..Condition::default() }
}

#[cfg(test)]
mod tests {
    use cara_core::model::{Certificate, Session};
    use cara_proto::node::Readings;

    use super::*;
    use crate::sessions::Link;

    const NOW_MS: u64 = 1_700_000_100_000;

    fn node(connection: Connection) -> Node {
        Node { name: "n1".into(), connection, created_at_ms: NOW_MS - 100_000, ..Node::default() }
    }

    fn around() -> Around<'static> {
        Around { now_ms: NOW_MS, timeout_ms: 45_000, pending_stale_ms: 300_000, ..Around::default() }
    }

    /// `type status/reason message` of each.
    fn told(node: &Node, around: &Around<'_>) -> Vec<String> {
        let all = conditions(&State::default(), node, around);
        all.iter().map(|c| format!("{} {}/{} {}", c.r#type, c.status, c.reason, c.message)).collect()
    }

    #[test]
    fn a_node_that_waits_says_what_to_do_next() {
        let declared = told(&node(Connection::Pending), &around());
        assert!(declared[0].starts_with("Heartbeat Unknown/NeverConnected declared"), "{declared:?}");
        assert!(declared[0].ends_with("caractrl nodes add --name n1"), "{declared:?}");
        let joined = Node { certificate: Some(Certificate::default()), ..node(Connection::Pending) };
        assert!(told(&joined, &around())[0].ends_with("has not opened its first session yet"));
        let late = Around { pending_stale_ms: 100_000, ..around() };
        assert!(told(&joined, &late)[0].contains("look at the log of cara-agent"));
        assert_eq!(told(&joined, &late)[1], "Ready Unknown/NeverConnected ");
    }

    #[test]
    fn silence_and_a_goodbye_are_two_reasons() {
        let seen = Node { last_seen_ms: NOW_MS - 60_000, ..node(Connection::Offline) };
        let silent = Node { session: Some(Session::default()), ..seen.clone() };
        assert_eq!(
            told(&silent, &around()),
            ["Heartbeat False/HeartbeatStale none for 60 s, over 45 s", "Ready False/HeartbeatTimeout "]
        );
        assert_eq!(told(&seen, &around())[1], "Ready False/SessionEnded ");
        assert_eq!(told(&node(Connection::Offline), &around())[0], "Heartbeat False/HeartbeatStale none ever");
        assert_eq!(
            told(&node(Connection::Online), &around()),
            ["Heartbeat True/HeartbeatRecent ", "Ready True/AgentReady "]
        );
    }

    #[test]
    fn times_are_those_of_the_log() {
        let online = Node { connection_since_ms: NOW_MS - 5_000, ..node(Connection::Online) };
        let heard = Around { last_heard_ms: Some(NOW_MS - 1_000), ..around() };
        for condition in conditions(&State::default(), &online, &heard) {
            assert_eq!(condition.last_transition_time, rfc3339(NOW_MS - 5_000));
            assert_eq!(condition.last_heartbeat_time, rfc3339(NOW_MS - 1_000));
        }
    }

    #[test]
    fn pressure_is_told_only_of_what_was_read() {
        let of = |readings| {
            let link = Some(Link { readings: Some((readings, NOW_MS)), ..Link::default() });
            told(&node(Connection::Online), &Around { link, ..around() }).split_off(2)
        };
        assert_eq!(of(Readings::default()), [""; 0]);
        let readings = Readings { disk_total_bytes: 100, disk_free_bytes: 14, ..Readings::default() };
        assert_eq!(of(readings), ["DiskPressure True/LittleLeft 14 % of the disk is left; pressure begins below 15 %"]);
        let readings = Readings { memory_total_bytes: 100, memory_available_bytes: 10, ..Readings::default() };
        assert!(of(readings)[0].starts_with("MemoryPressure False/Enough"));
    }
}
