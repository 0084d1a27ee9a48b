//! Finds the leader and holds a session with it, for as long as the agent lives.
//!
//! Servers are tried in the remembered order, the leader first when somebody has named it. Between rounds the agent waits
//! with a jittered, doubling backoff, which starts over after a session in which a heartbeat was acknowledged.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use cara_proto::node::Facts;

use crate::backoff::{Backoff, jittered};
use crate::enrol::with_causes;
use crate::facts;
use crate::session::{End, Ground, Why, hold};

/// Hints followed in one round; servers that point at each other would otherwise keep us for ever.
const HOPS_MAX: usize = 3;

/// The connecting side of an agent.
pub(crate) struct Connector {
    ground: Ground,
    backoff: Backoff,
    /// Where the last healthy session was, or where the leader is said to be.
    favourite: Option<String>,
    facts: Facts,
    /// The last complaint, so that the same one is not logged in every round.
    complaint: String,
}

/// What a round came to.
enum Round {
    /// A session was healthy and has ended; the leader's new address, if it said so.
    Served(Option<String>),
    /// Servers answer, but none of them leads.
    NoLeader,
    /// No server could be reached: why not.
    Unreachable(String),
    /// The cluster refuses this node.
    Refused(String),
}

impl Connector {
    pub(crate) fn new(ground: Ground) -> Self {
        let backoff = Backoff::new(ground.config.backoff_min, ground.config.backoff_max);
        Self { ground, backoff, favourite: None, facts: Facts::default(), complaint: String::new() }
    }

    /// Never returns.
    pub(crate) async fn run(&mut self) {
        loop {
            let round = self.round().await;
            let wait = self.after(round);
            if !wait.is_zero() {
                self.ground.env.clock.sleep(wait).await;
            }
        }
    }

    /// How long to wait after a round; says what happened.
    fn after(&mut self, round: Round) -> Duration {
        let config = &self.ground.config;
        let rng = &*self.ground.env.rng;
        match round {
            Round::Served(Some(_)) => Duration::ZERO,
            // Not at once: when a leader dies, all its agents are here at this moment.
            Round::Served(None) => jittered(rng, config.backoff_min),
            Round::NoLeader => {
                let wait = self.backoff.next(rng).min(jittered(rng, config.election_retry));
                self.complain("servers answer, but none of them leads; containers keep running".into());
                wait
            }
            Round::Unreachable(problems) => {
                let wait = self.backoff.next(rng);
                self.complain(format!("no server can be reached; containers keep running; trying on ({problems})"));
                wait
            }
            Round::Refused(text) => {
                let wait = jittered(rng, config.refused_retry);
                tracing::error!("{text}; asking again in {} s", wait.as_secs());
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

    /// Tries every server once, hints first.
    async fn round(&mut self) -> Round {
        let mut queue = self.candidates();
        let mut tried = BTreeSet::new();
        let mut problems = Vec::new();
        let mut hops = 0;
        let mut answered = false;
        while let Some(address) = queue.pop_front() {
            if !tried.insert(address.clone()) {
                continue;
            }
            let End { healthy, why } = self.attempt(&address).await;
            if healthy {
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
                        queue.push_front(leader);
                    }
                }
                Why::NotLeader(None) => answered = true,
                Why::Refused { code, message, hint } => return Round::Refused(self.refused(&code, &message, &hint)),
                Why::Lost(problem) if healthy => tracing::warn!(server = %address, "session lost: {problem}"),
                Why::Lost(problem) => problems.push(problem),
            }
            if healthy {
                return Round::Served(None);
            }
        }
        if answered { Round::NoLeader } else { Round::Unreachable(problems.join("; ")) }
    }

    /// The favourite, then all others in the remembered order.
    fn candidates(&self) -> VecDeque<String> {
        let servers = self.ground.keeper.identity().servers;
        self.favourite.iter().cloned().chain(servers).collect()
    }

    async fn attempt(&mut self, address: &str) -> End {
        let Ground { env, config, keeper, runtime, .. } = &self.ground;
        let connecting = cara_transport::connect(env, address, keeper.tls().client(), config.connect_deadline);
        let channel = match connecting.await {
            Ok(channel) => channel,
            Err(error) => {
                let mut text = with_causes(&error);
                if let Some(expired) = self.expired() {
                    text = format!("{text}; {expired}");
                }
                return End { healthy: false, why: Why::Lost(text) };
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
        hold(&self.ground, address, channel, self.facts.clone()).await
    }

    /// What to do when the certificate has run out while the node was away.
    fn expired(&self) -> Option<String> {
        let identity = self.ground.keeper.identity();
        let (_, until_s) = identity.validity().ok()?;
        let now_s = i64::try_from(self.ground.env.clock.wall_ms() / 1000).ok()?;
        (until_s < now_s).then(|| format!("this node's certificate has expired: {}", self.enrol_again()))
    }

    fn refused(&self, code: &str, message: &str, hint: &str) -> String {
        let hint = if hint.is_empty() { self.enrol_again() } else { hint.to_owned() };
        format!("the cluster refuses this node ({code}): {message}; its containers keep running; {hint}")
    }

    fn enrol_again(&self) -> String {
        let file = self.ground.config.identity_file();
        format!(
            "to bring it back, stop the agent, make a token with `caractrl nodes join-token`, move {} away and start \
             `cara-agent --data-dir {} --token TOKEN`",
            file.display(),
            self.ground.config.data_dir.display()
        )
    }
}
