//! A rich made-up run: a frozen leader, a lost agent, a copied volume, a stale read. Everything that a page can show is in it.

use cara_report::{Call, Found, Host, Mark, Message, Recording, Span};

/// What the first finding says.
pub const VIOLATION: &str = "read of key-3 gave 41 at 21.310 s, after write 42 was acknowledged at 20.870 s";
/// Would run as script if a text were ever read as HTML.
pub const ATTACK: &str = "</script><img src=x onerror=\"document.title='taken over'\">";

const DURATION_MS: u64 = 60_000;
const SERVERS: [&str; 3] = ["server-1", "server-2", "server-3"];
const AGENTS: [&str; 4] = ["agent-1", "agent-2", "agent-3", "agent-4"];
const CLIENTS: [&str; 3] = ["client-1", "client-2", "client-3"];
/// The leader is frozen in here.
const FREEZE: (u64, u64) = (18_400, 22_600);
/// The target of the move has no power in here.
const POWER_LOSS: (u64, u64) = (33_200, 36_900);
/// One agent hears nothing in here.
const CUT: (u64, u64) = (19_000, 25_000);
const HEARTBEAT_MS: u64 = 250;
const FLIGHT_MS: u64 = 14;

/// The run.
pub fn sample() -> Recording {
    Recording {
        scenario: "leader frozen while a move copies volumes, target loses power".to_owned(),
        seed: 9_007_199_254_740_993,
        revision: "c04dd7b1e2".to_owned(),
        verdict: "fail".to_owned(),
        duration_ms: DURATION_MS,
        hosts: hosts(),
        spans: [server_spans(), agent_spans(), client_spans(), fault_spans()].concat(),
        marks: marks(),
        messages: messages(),
        calls: calls(),
        findings: findings(),
        choices: vec![
            "fault freeze fires 0.4 s after phase copy-volumes begins, for 4.2 s".to_owned(),
            "fault cut takes agent-2, for 6 s".to_owned(),
            format!("fault pull-plug takes agent-3 {ATTACK}"),
        ],
        again: "cara-chaos replay chaos/scenarios/frozen-leader.toml --seed 9007199254740993".to_owned(),
    }
}

/// A run in which nothing is wrong.
pub fn passing() -> Recording {
    let mut run = sample();
    run.verdict = "pass".to_owned();
    run.findings.clear();
    run.calls.retain(|call| !call.is_wrong);
    run
}

fn hosts() -> Vec<Host> {
    let kinds = [("server", &SERVERS[..]), ("agent", &AGENTS[..]), ("client", &CLIENTS[..])];
    let host = |kind: &str, name: &str| Host { name: name.to_owned(), kind: kind.to_owned() };
    kinds.iter().flat_map(|(kind, names)| names.iter().map(|name| host(kind, name))).collect()
}

fn span(host: &str, lane: &str, label: &str, from_ms: u64, to_ms: u64) -> Span {
    Span { host: host.to_owned(), lane: lane.to_owned(), label: label.to_owned(), from_ms, to_ms }
}

fn server_spans() -> Vec<Span> {
    vec![
        span("server-1", "process", "running", 0, FREEZE.0),
        span("server-1", "process", "frozen", FREEZE.0, FREEZE.1),
        span("server-1", "process", "running", FREEZE.1, DURATION_MS),
        span("server-1", "role", "follower, term 1", 200, 1_900),
        span("server-1", "role", "leader, term 2", 1_900, 23_050),
        span("server-1", "role", "follower, term 3", 23_050, DURATION_MS),
        span("server-2", "process", "running", 0, DURATION_MS),
        span("server-2", "role", "follower, term 2", 300, 20_100),
        span("server-2", "role", "candidate, term 3", 20_100, 20_420),
        span("server-2", "role", "leader, term 3", 20_420, DURATION_MS),
        span("server-3", "process", "running", 0, 41_000),
        span("server-3", "process", "down", 41_000, 43_500),
        span("server-3", "process", "running", 43_500, DURATION_MS),
        span("server-3", "role", "learner, term 2", 400, 5_000),
        span("server-3", "role", "follower, term 2", 5_000, 20_420),
        span("server-3", "role", "follower, term 3", 20_420, 41_000),
        span("server-3", "role", "follower, term 3", 43_900, DURATION_MS),
    ]
}

fn agent_spans() -> Vec<Span> {
    let mut spans = vec![
        span("agent-3", "process", "running", 0, POWER_LOSS.0),
        span("agent-3", "process", "down", POWER_LOSS.0, POWER_LOSS.1),
        span("agent-3", "process", "running", POWER_LOSS.1, DURATION_MS),
        span("agent-3", "session", "session 3 open", 1_300, POWER_LOSS.0),
        span("agent-3", "session", "session 9 open", 37_400, DURATION_MS),
        span("agent-2", "session", "session 2 open", 1_200, 22_000),
        span("agent-2", "session", "session 2 expired", 22_000, 25_600),
        span("agent-2", "session", "session 8 open", 25_600, DURATION_MS),
        span("agent-1", "container", "app-1 generation 1", 4_000, 29_000),
        span("agent-1", "container", "app-2 generation 1", 4_600, DURATION_MS),
        span("agent-2", "container", "app-3 generation 1", 4_800, 24_400),
        span("agent-3", "container", "app-1 generation 2", 28_700, POWER_LOSS.0),
        span("agent-3", "container", "app-1 generation 2", 37_900, DURATION_MS),
        span("agent-4", "container", "app-3 generation 2", 23_600, DURATION_MS),
        span("agent-4", "container", ATTACK, 30_000, 52_000),
        span("agent-1", "phase", "reserve", 15_000, 16_200),
        span("agent-1", "phase", "freeze source", 16_200, 17_900),
        span("agent-1", "phase", "copy volumes", 17_900, 27_600),
        span("agent-1", "phase", "switch", 27_600, 28_900),
    ];
    for agent in ["agent-1", "agent-2", "agent-4"] {
        spans.push(span(agent, "process", "running", 0, DURATION_MS));
    }
    for (agent, session) in [("agent-1", 1), ("agent-4", 4)] {
        spans.push(span(agent, "session", &format!("session {session} open"), 1_100, DURATION_MS));
    }
    spans
}

fn client_spans() -> Vec<Span> {
    CLIENTS.iter().map(|client| span(client, "process", "running", 0, DURATION_MS)).collect()
}

fn fault_spans() -> Vec<Span> {
    vec![
        span("server-1", "fault", "freeze (leader)", FREEZE.0, FREEZE.1),
        span("agent-2", "fault", "partition, one way from server-1", CUT.0, CUT.1),
        span("agent-3", "fault", "power loss (move target)", POWER_LOSS.0, POWER_LOSS.1),
        span("server-3", "fault", "slow disk, fsync +300 ms", 38_000, 42_000),
        span("server-3", "fault", "crash", 41_000, 43_500),
        span("client-2", "fault", "latency 80 ms", 19_800, 24_000),
        span("", "fault", "every message may come twice", 45_000, 49_000),
    ]
}

fn mark(at_ms: u64, host: &str, kind: &str, text: &str) -> Mark {
    Mark { at_ms, host: host.to_owned(), kind: kind.to_owned(), text: text.to_owned() }
}

fn marks() -> Vec<Mark> {
    let mut marks = vec![
        mark(1_900, "server-1", "election", "elected in term 2"),
        mark(17_900, "agent-1", "point", "move.phase:copy_volumes"),
        mark(FREEZE.0, "server-1", "fault", "freeze begins"),
        mark(20_420, "server-2", "election", "elected in term 3"),
        mark(FREEZE.1, "server-1", "heal", "thawed"),
        mark(23_050, "server-1", "log", "a higher term: steps down"),
        mark(24_100, "server-2", "snapshot", "snapshot at index 410"),
        mark(30_500, "agent-2", "exit", "app-3 exited with code 137"),
        mark(POWER_LOSS.1, "agent-3", "heal", "power is back"),
        mark(44_200, "server-3", "snapshot", "installed snapshot, index 410"),
        mark(25_000, "", "heal", "all links whole again"),
        mark(50_000, "", "point", "quiet from here on"),
        mark(50_200, "", "verdict", "raft.*: pass"),
    ];
    for step in 0..300 {
        let at = 2_000 + step * 190;
        let leader = if at < FREEZE.0 { Some("server-1") } else { (at > 20_420).then_some("server-2") };
        marks.extend(leader.map(|leader| mark(at, leader, "commit", &format!("index {}", step + 1))));
    }
    marks.sort_by_key(|mark| mark.at_ms);
    marks
}

/// Does this message get through?
fn is_lost(from: &str, to: &str, at: u64) -> bool {
    let within = |(begin, end): (u64, u64)| (begin..end).contains(&at);
    (within(CUT) && from == "server-1" && to == "agent-2")
        || (within(POWER_LOSS) && to == "agent-3")
        || (within(FREEZE) && to == "server-1" && at.is_multiple_of(3))
}

fn is_silent(host: &str, at: u64) -> bool {
    let within = |(begin, end): (u64, u64)| (begin..end).contains(&at);
    (host == "server-1" && within(FREEZE)) || (host == "agent-3" && within(POWER_LOSS))
}

fn messages() -> Vec<Message> {
    let mut messages = Vec::new();
    let mut send = |from: &str, to: &str, at: u64, bytes: u64| {
        if is_silent(from, at) {
            return;
        }
        let received_ms = (!is_lost(from, to, at)).then_some(at + FLIGHT_MS + (at % 7) * 3);
        messages.push(Message { from: from.to_owned(), to: to.to_owned(), sent_ms: at, received_ms, bytes });
    };
    for beat in (1..).map(|step| step * HEARTBEAT_MS).take_while(|at| *at < DURATION_MS) {
        let leader = if beat < 23_050 { "server-1" } else { "server-2" };
        let sender = if beat > 20_420 { "server-2" } else { leader };
        for peer in SERVERS.iter().filter(|peer| **peer != sender) {
            send(sender, peer, beat, 180);
            send(peer, sender, beat + 40, 60);
        }
        for (place, agent) in AGENTS.iter().enumerate().filter(|_| beat % 1_000 == 0) {
            send(agent, sender, beat + 11 * place as u64, 320);
            send(leader, agent, beat + 60 + 9 * place as u64, 90);
        }
    }
    messages
}

fn call(client: &str, key: &str, what: &str, start_ms: u64, end_ms: Option<u64>, place: Option<u64>) -> Call {
    Call {
        client: client.to_owned(),
        key: key.to_owned(),
        what: what.to_owned(),
        start_ms,
        end_ms,
        place,
        is_wrong: false,
    }
}

fn wrong(call: Call) -> Call {
    Call { is_wrong: true, place: None, ..call }
}

fn calls() -> Vec<Call> {
    let mut calls = vec![
        call("client-1", "key-3", "write 40", 17_800, Some(18_050), Some(1)),
        call("client-2", "key-3", "read 40", 18_000, Some(18_260), Some(2)),
        call("client-3", "key-3", "write 41", 18_150, Some(20_560), Some(3)),
        wrong(call("client-1", "key-3", "write 42", 20_480, Some(20_870), None)),
        call("client-2", "key-3", "read 42", 20_600, Some(21_080), Some(5)),
        wrong(call("client-3", "key-3", "read 41", 20_960, Some(21_310), None)),
        call("client-1", "key-3", "write 43", 21_600, None, None),
        call("client-2", "key-3", "read 42", 22_100, Some(22_480), Some(6)),
    ];
    for step in 0_u64..90 {
        let client = CLIENTS[step as usize % CLIENTS.len()];
        let key = format!("key-{}", 1 + step % 2);
        let (value, is_write) = (1 + step / 6, step % 6 < 2);
        let what = format!("{} {value}", if is_write { "write" } else { "read" });
        let start = 2_500 + step * 620;
        calls.push(call(client, &key, &what, start, Some(start + 240 + (step % 5) * 110), Some(1 + step / 2)));
    }
    calls
}

fn findings() -> Vec<Found> {
    let found = |at_ms: u64, checker: &str, host: &str, text: &str| Found {
        at_ms,
        checker: checker.to_owned(),
        host: host.to_owned(),
        text: text.to_owned(),
    };
    vec![
        found(21_310, "linearizable", "client-3", VIOLATION),
        found(24_050, "single_instance", "agent-4", "app-3 runs on agent-2 (generation 1) and agent-4 (generation 2)"),
        found(52_000, "no_orphans", "agent-4", &format!("a container that nobody asked for: {ATTACK}")),
    ]
}
