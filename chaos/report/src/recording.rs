//! What a run leaves behind for people to look at. Times are simulated milliseconds since the world began.

use serde::{Deserialize, Serialize};

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The commit of the code that ran.
    pub revision: String,
    /// `pass`, `fail` or `unknown`.
    pub verdict: String,
    /// How long the run was.
    pub duration_ms: u64,
    /// Machines, in the order in which they are shown: servers, agents, clients.
    pub hosts: Vec<Host>,
    /// Things with a begin and an end.
    pub spans: Vec<Span>,
    /// Things at one moment.
    pub marks: Vec<Mark>,
    /// Bytes between machines; may be thinned out.
    pub messages: Vec<Message>,
    /// What clients did.
    pub calls: Vec<Call>,
    /// What is wrong, in the order of time.
    pub findings: Vec<Found>,
    /// What the seed chose, one line each.
    pub choices: Vec<String>,
    /// The command that repeats the run.
    pub again: String,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// `server`, `agent` or `client`.
    pub kind: String,
}

/// Something with a begin and an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// On which machine.
    pub host: String,
    /// Which lane of it: `process` (running, frozen, down), `role` (leader, follower, learner), `session`, `container`,
    /// `phase` (of a move), `fault`.
    pub lane: String,
    /// What it is, in words: `leader, term 7`, `app-1 generation 3`, `freeze`.
    pub label: String,
    /// Begin.
    pub from_ms: u64,
    /// End.
    pub to_ms: u64,
}

/// Something at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When.
    pub at_ms: u64,
    /// On which machine; empty for the world.
    pub host: String,
    /// `election`, `commit`, `heal`, `snapshot`, `point`, `fault`, `exit`, `verdict` (of a checker), `log`; others are shown too.
    pub kind: String,
    /// In words.
    pub text: String,
}

/// Bytes from one machine to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// From.
    pub from: String,
    /// To.
    pub to: String,
    /// Sent.
    pub sent_ms: u64,
    /// Received; none when it never was.
    pub received_ms: Option<u64>,
    /// How many bytes.
    pub bytes: u64,
}

/// One operation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who.
    pub client: String,
    /// On which key.
    pub key: String,
    /// In words: `write 7`, `read 7`, `read nothing`.
    pub what: String,
    /// Sent.
    pub start_ms: u64,
    /// Answered; none when it never was.
    pub end_ms: Option<u64>,
    /// Its place in the order that explains the history (1 = first); none if it has none.
    pub place: Option<u64>,
    /// Belongs to a history that no order explains.
    pub is_wrong: bool,
}

/// One finding of a checker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// When it was noticed.
    pub at_ms: u64,
    /// Which checker.
    pub checker: String,
    /// On which machine; empty when on none or several.
    pub host: String,
    /// In words.
    pub text: String,
}
