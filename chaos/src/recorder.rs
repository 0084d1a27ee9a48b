//! Turns what happens in a run into what the report draws.

use std::collections::BTreeMap;
use std::time::Duration;

use cara_agent::runtime::memory::Start;
use cara_checker::Finding;
use cara_checker::linear::{Call, Key};
use cara_netsim::Reached;
use cara_report::{Found, Host, Mark, Recording, Span};

/// More marks than these hide each other.
const MARKS_MAX: usize = 20_000;
/// Points that are too frequent to be drawn.
const TOO_MANY: &[&str] = &["heartbeat.received", "heartbeat.sent", "disk.sync", "disk.write"];

/// Follows a run.
#[derive(Debug, Default)]
pub struct Recorder {
    recording: Recording,
    /// What goes on, by machine and lane: what, since when.
    open: BTreeMap<(String, &'static str), (String, u64)>,
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Recorder {
    /// Nothing happened yet.
    pub fn new(scenario: &str, seed: u64) -> Self {
        let recording = Recording { scenario: scenario.to_owned(), seed, ..Recording::default() };
        Self { recording, open: BTreeMap::new() }
    }

    /// A machine that is to be shown; `kind` is `server`, `agent` or `client`.
    pub fn host(&mut self, name: &str, kind: &str) {
        if self.recording.hosts.iter().all(|host| host.name != name) {
            self.recording.hosts.push(Host { name: name.to_owned(), kind: kind.to_owned() });
        }
    }

    /// From now on this goes on in a lane of a machine; `None` ends what went on.
    pub fn now(&mut self, at: Duration, host: &str, lane: &'static str, what: Option<&str>) {
        let key = (host.to_owned(), lane);
        if self.open.get(&key).map(|(what, _)| what.as_str()) == what {
            return;
        }
        if let Some((label, from_ms)) = self.open.remove(&key) {
            self.span(host, lane, label, from_ms, ms(at));
        }
        if let Some(what) = what {
            self.open.insert(key, (what.to_owned(), ms(at)));
        }
    }

    fn span(&mut self, host: &str, lane: &str, label: String, from_ms: u64, to_ms: u64) {
        self.recording.spans.push(Span { host: host.to_owned(), lane: lane.to_owned(), label, from_ms, to_ms });
    }

    /// A fault had these machines in hand.
    pub fn fault(&mut self, host: &str, label: &str, from: Duration, to: Duration) {
        self.span(host, "fault", label.to_owned(), ms(from), ms(to));
    }

    /// Something happened at this moment.
    pub fn mark(&mut self, at: Duration, host: &str, kind: &str, text: &str) {
        if self.recording.marks.len() < MARKS_MAX {
            let (host, kind, text) = (host.to_owned(), kind.to_owned(), text.to_owned());
            self.recording.marks.push(Mark { at_ms: ms(at), host, kind, text });
        }
    }

    /// A chaos point was reached.
    pub fn reached(&mut self, at: Duration, reached: &Reached) {
        let Reached { host, point, detail } = reached;
        let of = |key: &str| reached.word(key).unwrap_or("?");
        match *point {
            "raft.elected" => self.now(at, host, "role", Some(&format!("leader, term {}", of("term")))),
            "raft.deposed" => self.now(at, host, "role", Some("follower")),
            "session.opened" => self.now(at, of("node"), "session", Some(&format!("with {host}"))),
            "session.closed" | "node.offline" | "node.left" => self.now(at, of("node"), "session", None),
            _ => {}
        }
        if TOO_MANY.contains(point) {
            return;
        }
        let kind = match *point {
            "raft.elected" => "election",
            point if point.starts_with("raft.snapshot") => "snapshot",
            "workload.applied" | "workload.deleted" | "workload.placed" | "workload.revoked" => "commit",
            _ => "point",
        };
        self.mark(at, host, kind, &format!("{point} {detail}"));
    }

    /// What ran on a node.
    pub fn containers(&mut self, node: &str, starts: &[Start], end: Duration) {
        for start in starts {
            let label = format!("{} {} generation {}", start.uid, start.service, start.generation);
            let to = start.ended_at.unwrap_or(end);
            self.span(node, "container", label, ms(start.started_at), ms(to));
        }
    }

    /// What clients did, with its place in the order that explains it.
    pub fn calls(&mut self, calls: &[Call], keys: &[Key]) {
        let mut key_of: BTreeMap<usize, &Key> = BTreeMap::new();
        for key in keys {
            key_of.extend(key.calls.iter().map(|call| (*call, key)));
        }
        for (number, call) in calls.iter().enumerate() {
            let key = key_of.get(&number);
            let place = key.and_then(|key| key.place(number)).and_then(|place| u64::try_from(place + 1).ok());
            self.recording.calls.push(cara_report::Call {
                client: call.client.clone(),
                key: call.key.clone(),
                what: call.act.to_string(),
                start_ms: ms(call.start),
                end_ms: call.end.map(ms),
                place,
                is_wrong: key.is_some_and(|key| key.finding(calls).is_some()),
            });
        }
    }

    /// The run is over.
    pub fn finish(mut self, end: Duration, verdict: &str, findings: &[Finding], choices: &[String]) -> Recording {
        for ((host, lane), (label, from_ms)) in std::mem::take(&mut self.open) {
            self.span(&host, lane, label, from_ms, ms(end));
        }
        let found = |finding: &Finding| Found {
            at_ms: ms(finding.at),
            checker: finding.rule.clone(),
            host: finding.host.clone(),
            text: finding.text.clone(),
        };
        self.recording.findings = findings.iter().map(found).collect();
        self.recording.verdict = verdict.to_owned();
        self.recording.duration_ms = ms(end);
        self.recording.choices = choices.to_vec();
        self.recording.messages = cara_netsim::trace::take_messages().list.into_iter().map(message).collect();
        self.recording
    }
}

fn message(message: cara_netsim::trace::Message) -> cara_report::Message {
    cara_report::Message {
        from: message.from,
        to: message.to,
        sent_ms: ms(message.sent),
        received_ms: message.received.map(ms),
        bytes: message.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_drawn_until_it_is_deposed() {
        let mut recorder = Recorder::new("x", 1);
        let reached = |point, detail: &str| Reached { host: "s1".into(), point, detail: detail.into() };
        recorder.reached(Duration::from_secs(1), &reached("raft.elected", "term=7"));
        recorder.reached(Duration::from_secs(3), &reached("raft.deposed", "term=7"));
        let recording = recorder.finish(Duration::from_secs(9), "pass", &[], &[]);
        let spans: Vec<_> =
            recording.spans.iter().map(|span| (span.label.as_str(), span.from_ms, span.to_ms)).collect();
        assert_eq!(spans, [("leader, term 7", 1_000, 3_000), ("follower", 3_000, 9_000)]);
        assert_eq!(recording.marks[0].kind, "election");
    }
}
