//! Figures: a name, a value, and which way is better. The names are an interface: `--require` takes them.

use serde::Serialize;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// As much as possible.
    More,
    /// As little as possible.
    Less,
}

/// What a figure is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub better: Better,
    /// Empty for ratios and counts.
    pub unit: &'static str,
    pub what: &'static str,
}

/// A measured figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    /// None: the run was to measure it and could not.
    pub value: Option<f64>,
    pub unit: &'static str,
    pub better: Better,
    pub what: &'static str,
}

use Better::{Less, More};

/// Names without a number of clients in them.
const KINDS: &[(&str, Better, &str, &str)] = &[
    ("enrol_per_s", More, "1/s", "enrolments a second, from the first to the last"),
    ("online_s", Less, "s", "from the first agent's start until all have a session"),
    ("beat_p50_ms", Less, "ms", "heartbeat until acknowledged, half of them"),
    ("beat_p99_ms", Less, "ms", "heartbeat until acknowledged, 99 of 100"),
    ("beat_p999_ms", Less, "ms", "heartbeat until acknowledged, 999 of 1,000"),
    ("missed_beats", Less, "", "heartbeats that were never acknowledged, while nothing was broken on purpose"),
    ("late_beats", Less, "", "heartbeats that were acknowledged after more than a second, likewise"),
    ("false_offline", Less, "", "times that a node was called offline whose agent ran"),
    (
        "cpu_ms_per_1000_beats",
        Less,
        "ms",
        "CPU of all servers for a thousand heartbeats, what they do besides included",
    ),
    ("server_cores", Less, "", "CPU of all servers together, in cores, with all agents online and nothing else to do"),
    ("rss_kib_per_agent", Less, "KiB", "memory that the leader has more than before the agents came, for each"),
    ("open_files", Less, "", "open files of the leader"),
    ("new_leader_s", Less, "s", "SIGKILL of the leader until another one is known"),
    ("first_write_s", Less, "s", "SIGKILL of the leader until a write is acknowledged"),
    ("all_back_s", Less, "s", "SIGKILL of the leader until every agent has a session with an acknowledged heartbeat"),
    ("api_p99_ms", Less, "ms", "API calls begun between the kill and the last agent's return, their retries included"),
    ("elections", Less, "", "terms that a failover took; 1 is the least"),
    ("read_linearizable", More, "x", "linearizable reads a second, ours to the peer's"),
    ("read_per_s", More, "1/s", "linearizable reads a second, ours"),
    ("read_latency", Less, "x", "half of the linearizable reads, ours to the peer's"),
    (
        "paced_per_s",
        More,
        "1/s",
        "durable writes a second when they came at 70 % (or --paced) of the peer's best rate, ours",
    ),
    ("paced_p50", Less, "x", "half of those writes, waiting for a free client included, ours to the peer's"),
    ("paced_p99", Less, "x", "99 of 100 of those writes, ours to the peer's"),
    ("recovery", Less, "x", "leader's SIGKILL to the first acknowledged write, median, ours to the peer's"),
    ("recovery_s", Less, "s", "leader's SIGKILL to the first acknowledged write, median, ours"),
    ("rss", Less, "x", "memory of all servers after the writes, ours to the peer's"),
    ("spurious_elections", Less, "", "terms that began during the load although no server was killed, ours"),
    ("restart", Less, "x", "a killed server's start until a linearizable read through it, median, ours to the peer's"),
    ("restart_s", Less, "s", "a killed server's start until a linearizable read through it, median, ours"),
    ("reconcile_10000_ms", Less, "ms", "a reconcile pass over 10,000 nodes when nothing changed, median"),
    ("churn_back_p99_ms", Less, "ms", "an agent's restart until its session, 99 of 100"),
    ("apply_per_s", More, "1/s", "manifests applied a second"),
    ("apply_p99_ms", Less, "ms", "applying a manifest, 99 of 100"),
    ("watch_last_p50_ms", Less, "ms", "a change until the last watcher has it, half of the changes"),
    ("watch_last_ms", Less, "ms", "a change until the last watcher has it, the longest"),
    ("placements_per_s", More, "1/s", "workloads created and placed durably a second"),
    ("moves_per_s", More, "1/s", "moves finished a second"),
    ("move_p50_s", Less, "s", "a move from its start to its end, half of them"),
];

/// Names of the form `write_CLIENTS` and what may follow.
const WRITES: &[(&str, Better, &str, &str)] = &[
    ("", More, "x", "durable writes a second with so many clients, ours to the peer's"),
    ("_per_s", More, "1/s", "durable writes a second with so many clients, ours"),
    ("_latency", Less, "x", "half of those writes, ours to the peer's"),
    ("_p99", Less, "x", "99 of 100 of those writes, ours to the peer's"),
    ("_cpu", Less, "x", "CPU of all servers for a write, ours to the peer's"),
];

/// What a name means; none when it means nothing.
pub fn kind(name: &str) -> Option<Kind> {
    let of =
        |(_, better, unit, what): &(&str, Better, &'static str, &'static str)| Kind { better: *better, unit, what };
    if let Some(rest) = name.strip_prefix("write_") {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (clients, after) = rest.split_at(digits);
        return (!clients.is_empty()).then(|| WRITES.iter().find(|row| row.0 == after)).flatten().map(of);
    }
    KINDS.iter().find(|row| row.0 == name).map(of)
}

/// Every name, for an answer to a wrong one.
pub fn names() -> String {
    let writes = WRITES.iter().map(|row| format!("write_CLIENTS{}", row.0));
    KINDS.iter().map(|row| row.0.to_owned()).chain(writes).collect::<Vec<_>>().join(", ")
}

/// All figures of a run, in the order in which they were measured.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a figure.
    ///
    /// # Panics
    /// When the name is not in the table above: then nobody could require it.
    pub fn put(&mut self, name: impl Into<String>, value: Option<f64>) {
        let name = name.into();
        let Kind { better, unit, what } = kind(&name).expect("each figure has its line in the table of names");
        let value = value.filter(|value| value.is_finite());
        self.0.push(Figure { name, value, unit, better, what });
    }

    /// The last one of this name.
    pub fn get(&self, name: &str) -> Option<&Figure> {
        self.0.iter().rev().find(|figure| figure.name == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_meaning_or_none() {
        assert_eq!(kind("write_1000").map(|kind| kind.better), Some(More));
        assert_eq!(kind("write_1_latency").map(|kind| kind.better), Some(Less));
        assert_eq!(kind("false_offline").map(|kind| kind.better), Some(Less));
        for unknown in ["write_", "write_x", "write_1_speed", "speed", ""] {
            assert_eq!(kind(unknown), None, "{unknown}");
        }
        for (name, ..) in KINDS {
            assert!(kind(name).is_some(), "{name} is taken for another form of name");
        }
    }

    #[test]
    fn what_is_no_number_counts_as_not_measured() {
        let mut figures = Figures::default();
        figures.put("recovery", Some(f64::NAN));
        figures.put("write_64", Some(f64::INFINITY));
        assert!(figures.iter().all(|figure| figure.value.is_none()));
    }
}
