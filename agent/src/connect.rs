//! Finds the leader and holds a session with it, for as long as the agent lives.
//!
//! Servers are tried one after the other, the leader first when somebody has named it. Between rounds the agent waits
//! with a jittered, doubling backoff, which starts over after a session in which a heartbeat was acknowledged. After such a one
//! it comes back at a random moment of the time that the server had named, so that a large fleet doesn't come at once.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use cara_proto::node::Facts;
use cara_transport::ConnectError;

use crate::backoff::{Backoff, jittered, part_of};
use crate::enrol::with_causes;
use crate::facts;
use crate::keeper::Dialled;
use crate::session::{CLONED, Denial, End, Ground, Line, Why, hold};

/// Hints followed in one round; servers that point at each other would otherwise keep us for ever.
const HOPS_MAX: usize = 3;

/// The connecting side of an agent.
pub(crate) struct Connector {
    ground: Ground,
    backoff: Backoff,
    /// Where the last healthy session was, or where the leader is said to be.
    favourite: Option<String>,
    /// How long the agents of the last healthy session's server shall take to come back.
    spread: Duration,
    facts: Facts,
    /// With which identity the last connection was made.
    dialled: Dialled,
    /// The last complaint, so that the same one is not logged in every round.
    complaint: String,
}

/// Whom an attempt is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Leader,
    /// Whoever answers: it says who leads.
    Anybody,
}

/// What a round came to.
enum Round {
    /// A session was healthy and has ended; the leader's new address, if it said so.
    Served(Option<String>),
    /// Servers answer, but none of them leads.
    NoLeader,
    /// The leader does not know yet whether another process is this node.
    Held,
    /// No server could be reached: why not.
    Unreachable(String),
    /// The certificate was refused, and there is another one.
    TryOther,
    /// The cluster refuses this node.
    Refused(Denial),
}

impl Connector {
    pub(crate) fn new(ground: Ground) -> Self {
        let backoff = Backoff::new(ground.config.backoff_min, ground.config.backoff_max);
        let dialled = ground.keeper.dialled();
        let (facts, complaint) = (Facts::default(), String::new());
        Self { ground, backoff, favourite: None, spread: Duration::ZERO, facts, dialled, complaint }
    }

    /// Never returns.
    pub(crate) async fn run(&mut self) {
        loop {
            if self.ground.keeper.adopt(&self.ground.config) {
                self.backoff.reset();
            }
            let round = self.round().await;
            self.permit(&round);
            let wait = self.after(round);
            if !wait.is_zero() {
                self.ground.env.clock.sleep(wait).await;
            }
        }
    }

    /// What a round says about whether containers may be started.
    fn permit(&self, round: &Round) {
        let Ground { permits, env, .. } = &self.ground;
        match round {
            Round::Served(_) | Round::TryOther => {}
            Round::NoLeader => permits.nobody_leads(env.clock.monotonic()),
            Round::Held => permits.held(),
            Round::Refused(refused) if refused.code == CLONED => permits.is_clone(),
            // A node that is shut out runs what it has, unmanaged.
            Round::Unreachable(_) | Round::Refused(_) => permits.nobody_there(),
        }
    }

    /// How long to wait after a round; says what happened.
    fn after(&mut self, round: Round) -> Duration {
        let config = &self.ground.config;
        let rng = &*self.ground.env.rng;
        match round {
            Round::TryOther => Duration::ZERO,
            // Not at once: all agents of that leader are here at this moment.
            Round::Served(Some(_)) => part_of(rng, self.spread),
            Round::Served(None) => jittered(rng, config.backoff_min) + part_of(rng, self.spread),
            Round::NoLeader => {
                let wait = self.backoff.next(rng).min(jittered(rng, config.election_retry));
                self.complain("servers answer, but none of them leads; containers keep running".into());
                wait
            }
            Round::Held => {
                let wait = self.backoff.next(rng).min(jittered(rng, config.election_retry));
                self.complain(
                    "the leader waits for the process that was this node before; what runs here runs on".into(),
                );
                wait
            }
            Round::Unreachable(problems) => {
                self.ground.keeper.unreachable();
                let expired = self.expired();
                let wait = if expired.is_some() { jittered(rng, config.expired_retry) } else { self.backoff.next(rng) };
                let problems = expired.unwrap_or(problems);
                self.complain(format!("no server can be reached; containers keep running; trying on ({problems})"));
                wait
            }
            Round::Refused(refused) => {
                // What `cara-agent reenroll` gets is found soon; what takes longer is not asked about all the time.
                let wait =
                    if refused.rejects_identity { self.backoff.next(rng) } else { jittered(rng, config.refused_retry) };
                let text = self.refused(&refused);
                if self.complaint != text {
                    tracing::error!("{text}");
                    self.complaint = text;
                }
                wait
            }
        }
    }

    fn complain(&mut self, text: String) {
        if self.complaint == text {
            tracing::debug!("{text}");
        } else {
            tracing::warn!("{text}");
            self.complaint = text;
        }
    }

    /// Tries every server once, hints first. A server that isn't the leader ends the handshake at its first word; only when
    /// none of those that are known leads, one of them is asked who does.
    async fn round(&mut self) -> Round {
        let mut queue: VecDeque<_> = self.candidates().map(|address| (address, Wanted::Leader)).collect();
        let mut tried = BTreeSet::new();
        let mut asked = false;
        let mut problems = Vec::new();
        let mut hops = 0;
        let mut answered = false;
        while let Some((address, wanted)) = queue.pop_front() {
            if !tried.insert((address.clone(), wanted)) {
                continue;
            }
            let End { healthy, spread, why } = self.attempt(&address, wanted).await;
            if healthy {
                self.spread = spread;
                self.backoff.reset();
                self.complaint.clear();
                self.favourite = Some(address.clone());
            }
            match why {
                Why::NotLeader(Some(leader)) => {
                    answered = true;
                    tracing::debug!(server = %address, %leader, "not the leader");
                    self.favourite = Some(leader.clone());
                    if healthy {
                        return Round::Served(Some(leader));
                    }
                    if hops < HOPS_MAX {
                        hops += 1;
                        queue.push_front((leader, Wanted::Leader));
                    }
                }
                Why::NotLeader(None) => answered = true,
                // Said in the clear, so it counts for nothing until a server has proven who it is.
                Why::NotLeading if !std::mem::replace(&mut asked, true) => {
                    queue.push_back((address.clone(), Wanted::Anybody));
                }
                Why::NotLeading => {}
                Why::Held => return Round::Held,
                Why::Refused(refused) if refused.rejects_identity && self.ground.keeper.rejected(&self.dialled) => {
                    return Round::TryOther;
                }
                Why::Refused(refused) => return Round::Refused(refused),
                Why::Lost(problem) if healthy => tracing::warn!(server = %address, "session lost: {problem}"),
                Why::Lost(problem) => problems.push(problem),
            }
            if healthy {
                return Round::Served(None);
            }
        }
        if answered { Round::NoLeader } else { Round::Unreachable(problems.join("; ")) }
    }

    /// The favourite, then all others, from any one of them on: a fleet that has lost its leader must not come to the same
    /// server as one.
    fn candidates(&self) -> impl Iterator<Item = String> {
        let mut servers = self.ground.keeper.identity().servers;
        let first = self.ground.env.rng.below(servers.len() as u64);
        servers.rotate_left(usize::try_from(first).unwrap_or_default());
        self.favourite.clone().into_iter().chain(servers)
    }

    async fn attempt(&mut self, address: &str, wanted: Wanted) -> End {
        let Ground { env, config, keeper, runtime, .. } = &self.ground;
        let dialled = keeper.dialled();
        self.dialled.clone_from(&dialled);
        let tls = match wanted {
            Wanted::Leader => keeper.tls().to_leader(),
            Wanted::Anybody => keeper.tls().client(),
        };
        let channel = match cara_transport::connect(env, address, tls, config.connect_deadline).await {
            Ok(channel) => channel,
            Err(error) => {
                let why = match error {
                    ConnectError::NotLeading { .. } => Why::NotLeading,
                    error => Why::Lost(with_causes(&error)),
                };
                return End { healthy: false, spread: Duration::ZERO, why };
            }
        };
        let facts = facts::gather(env, config, &**runtime).await;
        if facts.runtime.is_empty() {
            // The engine doesn't answer now: what it said last is still the best that we know.
            let Facts { runtime, capacity, allocatable, .. } = std::mem::take(&mut self.facts);
            self.facts = Facts { runtime, capacity, allocatable, ..facts };
        } else {
            self.facts = facts;
        }
        let line = Line { address: address.to_owned(), channel, dialled };
        hold(&self.ground, line, self.facts.clone()).await
    }

    /// What to do when the certificate has run out while the node was away.
    fn expired(&self) -> Option<String> {
        let leaf = self.ground.keeper.identity().leaf().ok()?;
        let now_ms = self.ground.env.clock.wall_ms();
        (leaf.until_ms / 1000 < now_ms / 1000)
            .then(|| format!("this node's certificate has expired: {}", self.come_back()))
    }

    fn refused(&self, refused: &Denial) -> String {
        let Denial { code, message, hint, .. } = refused;
        let next = if refused.rejects_identity || hint.is_empty() { self.come_back() } else { hint.clone() };
        format!("the cluster refuses this node ({code}): {message}; its containers keep running; {next}")
    }

    /// The one thing to do about an identity that is not accepted any more.
    fn come_back(&self) -> String {
        format!(
            "to bring it back, run `caractrl nodes reenroll {}`, and here the command that it prints: `cara-agent reenroll \
             --data-dir {} --token TOKEN`; this agent takes it up by itself",
            self.ground.keeper.identity().node_id,
            self.ground.config.data_dir.display()
        )
    }
}
