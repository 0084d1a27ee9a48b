//! Does the cluster keep raft's promises, in every state that any server is ever seen in?
//!
//! The driver calls [`Raft::observe`] when something about a server has changed, with the changes of its log since the
//! last call. The work is proportional to these changes, never to the log.
//!
//! A server is its data: after its folder is wiped or replaced by a copy, call [`Raft::forget`]. A cluster that is
//! founded anew from a backup is another cluster: begin with a new [`Raft`].

mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::{Finding, rules};
use log::{Committed, Entries, Mirror};

/// Hashes of the applied state that are remembered; servers further behind than that are not compared.
const HASHES_MAX: usize = 1 << 20;

/// A vote as raft keeps it on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// The term.
    pub term: u64,
    /// The id of the server that got the vote; none when nobody has it yet.
    pub server: Option<u64>,
    /// Is it known that this server was elected?
    pub committed: bool,
}

/// An entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the log.
    pub index: u64,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// A hash of what it says.
    pub fingerprint: u64,
}

/// A server as it is now, and what became of its log since the last observation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The newest term it knows.
    pub term: u64,
    /// Its vote; none before the first.
    pub vote: Option<Vote>,
    /// Does it believe to be the leader of its term?
    pub leads: bool,
    /// Entries from this index on were taken away, before `appended` was added; none if none were.
    pub truncated_from: Option<u64>,
    /// Entries that were added, ascending. A gap after the last one means that a snapshot took the place of what is
    /// missing. An entry that replaces another one without a truncation counts as a truncation.
    pub appended: Vec<Entry>,
    /// Entries up to this index are in a snapshot and no longer in the log; none if all are in the log.
    pub purged_to: Option<u64>,
    /// The last index that it knows to be committed; none if none. Never more than the leader of `term` may know.
    pub committed: Option<u64>,
    /// The last index that it has applied; none if none.
    pub applied: Option<u64>,
}

/// Follows all servers of a cluster.
#[derive(Debug, Default)]
pub struct Raft {
    servers: BTreeMap<String, Server>,
    entries: Entries,
    committed: Committed,
    /// Who led a term, and whoever else was already blamed for it.
    leaders: BTreeMap<u64, Vec<String>>,
    /// The committed index that was last found to be on too few servers.
    blamed: Option<u64>,
    /// State hash after an applied index, and who had it first.
    hashes: BTreeMap<u64, (u64, String)>,
}

/// What was last seen of a server.
#[derive(Debug, Default)]
struct Server {
    incarnation: u64,
    term: u64,
    vote: Option<Vote>,
    log: Mirror,
    committed: Option<u64>,
    /// Entries up to here were compared with what is committed.
    walked: Option<u64>,
    /// As leader of this term it was last asked for the committed entries up to this index.
    complete: Option<(u64, u64)>,
    applied: Option<u64>,
    hashed: Option<u64>,
    /// It was not observed since it last started.
    is_fresh: bool,
}

/// One observation and what it brings to light.
struct Seen<'a> {
    at: Duration,
    server: &'a str,
    findings: Vec<Finding>,
}

impl Raft {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at a server. `incarnation` rises with each start of its process: what was not on disk may be gone then.
    ///
    /// Term and vote must be those that the server has on disk or has told others, not ones that it is about to write.
    pub fn observe(&mut self, at: Duration, server: &str, incarnation: u64, view: &View) -> Vec<Finding> {
        let mut seen = Seen { at, server, findings: Vec::new() };
        let mut now = self.servers.remove(server).unwrap_or_default();
        now.restarted(incarnation);
        now.term_and_vote(view, &mut seen);
        self.take_log(&mut now, view, &mut seen);
        self.take_committed(&mut now, view, &mut seen);
        self.take_leader(&mut now, view, &mut seen);
        if view.applied < now.applied {
            let text = format!("it had applied {} and now only {}", told(now.applied), told(view.applied));
            seen.say(rules::APPLIED, text);
        }
        if view.applied > view.committed {
            let text =
                format!("it applied {} but knows only {} as committed", told(view.applied), told(view.committed));
            seen.say(rules::APPLIED, text);
        }
        now.applied = view.applied;
        now.is_fresh = false;
        self.servers.insert(server.to_owned(), now);
        seen.findings
    }

    /// A server's state after it applied the entry at `index` has this hash.
    pub fn applied(&mut self, at: Duration, server: &str, incarnation: u64, index: u64, hash: u64) -> Vec<Finding> {
        let mut seen = Seen { at, server, findings: Vec::new() };
        let now = self.servers.entry(server.to_owned()).or_default();
        now.restarted(incarnation);
        if let Some(before) = now.hashed.filter(|before| *before > index) {
            seen.say(rules::APPLIED, format!("it applied {index} after it had applied {before}"));
        }
        now.hashed = Some(index);
        let (known, first) = self.hashes.entry(index).or_insert_with(|| (hash, server.to_owned()));
        if *known != hash {
            let text = format!("after entry {index} its state has hash {hash:016x}, and {first} has {known:016x}");
            seen.say(rules::STATE_HASH, text);
        }
        while self.hashes.len() > HASHES_MAX {
            self.hashes.pop_first();
        }
        seen.findings
    }

    /// Is the newest committed entry in the logs of a majority of these voters? One finding an entry.
    ///
    /// Call it when all that has changed was observed, with the voters of the newest membership that is committed. A
    /// voter that was never seen or was forgotten has nothing: don't call it until a wiped voter has caught up.
    pub fn quorum(&mut self, at: Duration, voters: &[&str]) -> Option<Finding> {
        let (entry, knows) = self.committed.newest().filter(|(entry, _)| Some(entry.index) > self.blamed)?;
        let has = |voter: &&&str| {
            let log = self.servers.get(**voter).map(|server| &server.log);
            log.is_some_and(|log| log.has(entry) || log.is_purged(entry.index))
        };
        let holders: Vec<&str> = voters.iter().filter(has).copied().collect();
        if holders.len() * 2 > voters.len() {
            return None;
        }
        let Entry { index, term, .. } = entry;
        let text = format!(
            "{knows} knows entry {index} of term {term} as committed, but of {} voters only {holders:?} have it",
            voters.len()
        );
        self.blamed = Some(*index);
        Some(Finding::new(at, rules::QUORUM, "", text))
    }

    /// The server's data were wiped or replaced by other data: what it once knew no longer binds it. What it had
    /// committed and led still binds the others.
    pub fn forget(&mut self, server: &str) {
        self.servers.remove(server);
    }

    /// Who led each term, as far as it was seen.
    pub fn leaders(&self) -> impl Iterator<Item = (u64, &str)> {
        self.leaders.iter().filter_map(|(term, servers)| Some((*term, servers.first()?.as_str())))
    }

    /// The highest index that any server knew to be committed; none if none.
    pub fn committed(&self) -> Option<u64> {
        self.committed.highest()
    }

    fn take_log(&mut self, now: &mut Server, view: &View, seen: &mut Seen<'_>) {
        let mut cut = Vec::new();
        if let Some(from) = view.truncated_from {
            cut.extend(now.log.truncate(from));
        }
        for entry in &view.appended {
            cut.extend(now.log.push(*entry));
            if let Some(text) = self.entries.check(*entry, now.log.before(entry.index), seen.server) {
                seen.say(rules::LOG_MATCHING, text);
            }
        }
        // A restart may lose what was not on disk; that nobody loses it who must not is seen at the next leader.
        if !now.is_fresh {
            for entry in cut.iter().filter(|entry| !now.log.has(entry)) {
                if self.committed.is(entry) {
                    let text = format!("it cut off entry {} of term {}, which is committed", entry.index, entry.term);
                    seen.say(rules::COMMITTED_IMMUTABLE, text);
                }
            }
        }
        now.log.purge(view.purged_to);
    }

    fn take_committed(&mut self, now: &mut Server, view: &View, seen: &mut Seen<'_>) {
        if view.committed < now.committed {
            let text = format!("it knew {} as committed and now only {}", told(now.committed), told(view.committed));
            seen.say(rules::COMMITTED_IMMUTABLE, text);
        }
        now.committed = view.committed;
        now.walked = now.walked.min(now.log.last_kept());
        let Some(to) = view.committed else { return };
        let from = now.walked.map_or(0, |walked| walked + 1);
        for entry in now.log.range(from, to) {
            if let Some(text) = self.committed.add(entry, view.term, seen.server) {
                seen.say(rules::COMMITTED_IMMUTABLE, text);
            }
            now.walked = Some(entry.index);
        }
    }

    fn take_leader(&mut self, now: &mut Server, view: &View, seen: &mut Seen<'_>) {
        if !view.leads {
            return;
        }
        let leaders = self.leaders.entry(view.term).or_default();
        if !leaders.iter().any(|leader| leader == seen.server) {
            if let Some(first) = leaders.first() {
                seen.say(rules::ELECTION_SAFETY, format!("it leads term {}, and so does {first}", view.term));
            }
            leaders.push(seen.server.to_owned());
        }
        let Some(must_have) = self.committed.before_term(view.term) else { return };
        if now.complete.replace((view.term, must_have)) == Some((view.term, must_have)) {
            return;
        }
        if let Some(text) = self.committed.missing(must_have, &now.log) {
            seen.say(rules::LEADER_COMPLETENESS, format!("it leads term {} but {text}", view.term));
        }
    }
}

impl Server {
    fn restarted(&mut self, incarnation: u64) {
        if incarnation != self.incarnation {
            self.incarnation = incarnation;
            self.committed = None;
            self.applied = None;
            self.hashed = None;
            self.is_fresh = true;
        }
    }

    fn term_and_vote(&mut self, view: &View, seen: &mut Seen<'_>) {
        if view.term < self.term {
            seen.say(rules::TERM_REGRESSED, format!("its term was {} and is {}", self.term, view.term));
        }
        self.term = view.term;
        let (before, now) = (self.vote, view.vote);
        self.vote = now;
        let Some(before) = before else { return };
        let Some(now) = now else {
            return seen.say(rules::VOTE_REGRESSED, format!("its vote {before} is gone"));
        };
        // Whoever was elected in this term leads also those that had voted for another one.
        let is_elected = now.committed && !before.committed;
        let is_other = now.term == before.term && before.server.is_some() && now.server != before.server && !is_elected;
        let is_undone = now.term == before.term && before.committed && !now.committed;
        if now.term < before.term || is_other || is_undone {
            seen.say(rules::VOTE_REGRESSED, format!("its vote was {before} and is {now}"));
        }
    }
}

impl Seen<'_> {
    fn say(&mut self, rule: &str, text: String) {
        self.findings.push(Finding::new(self.at, rule, self.server, text));
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server {
            Some(server) => write!(f, "for {server} in term {}", self.term)?,
            None => write!(f, "for nobody in term {}", self.term)?,
        }
        f.write_str(if self.committed { " (elected)" } else { "" })
    }
}

fn told(index: Option<u64>) -> String {
    index.map_or_else(|| "nothing".to_owned(), |index| format!("entries up to {index}"))
}
