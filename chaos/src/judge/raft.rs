//! Follows what servers write about replication, write by write, for the judge of raft's promises.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cara_checker::Finding;
use cara_checker::raft::{Entry, Raft, View, Vote};
use cara_env::Cf;
use cara_netsim::{Change, Reached};
use raft_store::Position;
use raft_store::inspect::{self, Change as Written};

use super::pairs::Pairs;
use super::replay::Replay;
use crate::world::Cluster;

/// Follows the logs of all servers.
#[derive(Default)]
pub struct RaftLogs {
    raft: Raft,
    servers: BTreeMap<String, Server>,
    /// The term that a server says it leads, by server.
    leads: BTreeMap<String, u64>,
}

/// What a server's disk says, brought up to date with each write.
#[derive(Debug, Default)]
struct Server {
    vote: Option<Vote>,
    /// The furthest that it ever had purged: a loss of power may undo a purge, which changes nothing that matters.
    purged: Option<u64>,
    /// Term of each entry of the log.
    log: BTreeMap<u64, u64>,
    committed: Option<Position>,
    applied: Option<Position>,
    /// The sets of voters in the applied state.
    voters: Vec<BTreeSet<u64>>,
    /// The domain's own pairs.
    pairs: Pairs,
}

/// What became of a log in one look.
#[derive(Debug, Default)]
struct News {
    gone: Vec<u64>,
    added: BTreeMap<u64, Entry>,
    /// The first index that was taken away from the log's end.
    truncated_from: Option<u64>,
}

impl RaftLogs {
    /// A chaos point was reached.
    pub fn reached(&mut self, reached: &Reached) {
        match reached.point {
            "raft.elected" => {
                let term = reached.word("term").and_then(|term| term.parse().ok()).unwrap_or_default();
                self.leads.insert(reached.host.clone(), term);
            }
            "raft.deposed" => {
                self.leads.remove(&reached.host);
            }
            _ => {}
        }
    }

    /// Looks at what each server has written since the last look, and replays what was applied.
    pub fn look(&mut self, cluster: &Cluster, at: Duration, replay: &mut Replay) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut changed = Vec::new();
        for name in cluster.server_machines() {
            if !cluster.world.is_running(&name) {
                self.leads.remove(&name);
            }
            let changes = cluster.world.disk(&name).drain();
            if changes.is_empty() {
                continue;
            }
            let server = self.servers.entry(name.clone()).or_default();
            match server.take(cluster, &name, changes, replay) {
                Ok(news) => {
                    let leads = self.leads.get(&name).copied();
                    let view = server.view(news, leads);
                    findings.extend(self.raft.observe(at, &name, cluster.life(&name), &view));
                    changed.push(name);
                }
                Err(error) => tracing::debug!(%error, server = name, "a write can't be read"),
            }
        }
        findings.extend(self.compare(cluster, at, &changed, replay));
        findings.extend(self.quorum(at, replay.server_names()));
        findings
    }

    /// Replays what the furthest server has applied, and holds the state of each that has changed against it.
    fn compare(&mut self, cluster: &Cluster, at: Duration, changed: &[String], replay: &mut Replay) -> Vec<Finding> {
        let index = |server: &Server| server.applied.map(|at| at.index);
        let furthest = self.servers.iter().filter_map(|(name, server)| Some((index(server)?, name))).max();
        let Some((upto, furthest)) = furthest else { return Vec::new() };
        let servers = &self.servers;
        let term_of = |wanted: u64| {
            let applied = servers.values().filter(|server| index(server) >= Some(wanted));
            applied.filter_map(|server| server.log.get(&wanted).copied()).next()
        };
        let mut findings = replay.advance(cluster, at, (furthest, upto), term_of, &mut self.raft);
        for name in changed {
            let Some((applied, sum)) = self.state_of(name) else { continue };
            findings.extend(self.raft.applied(at, name, cluster.life(name), applied, sum));
        }
        findings
    }

    /// The last index that a server has applied, and the sum of the state that it has then; none before it has one.
    pub fn state_of(&self, server: &str) -> Option<(u64, u64)> {
        let server = self.servers.get(server)?;
        Some((server.applied?.index, server.pairs.sum()?))
    }

    /// What is committed must be in the logs of most voters.
    fn quorum(&mut self, at: Duration, names: &BTreeMap<u64, String>) -> Option<Finding> {
        let newest = self.servers.values().max_by_key(|server| server.applied)?;
        // During a change of members each of two sets needs a majority; soon there is one again.
        let [voters]: [BTreeSet<u64>; 1] = newest.voters.clone().try_into().ok()?;
        let voters: Option<Vec<&str>> = voters.iter().map(|id| names.get(id).map(String::as_str)).collect();
        self.raft.quorum(at, &voters?)
    }

    /// The server's data were wiped or replaced.
    pub fn forget(&mut self, server: &str) {
        self.raft.forget(server);
        self.servers.remove(server);
    }
}

impl Server {
    fn take(
        &mut self,
        cluster: &Cluster,
        name: &str,
        changes: Vec<Change>,
        replay: &mut Replay,
    ) -> std::io::Result<News> {
        let mut news = News::default();
        for change in changes {
            match change {
                Change::Put(cf, key, value) => match self.pair(cf, &key, Some(&value)) {
                    Ok(written) => self.written(written, &mut news, replay),
                    // Torn or rotted on purpose: no entry is left there. The server itself must notice, and is judged by
                    // that. What else was written since the last look counts all the same.
                    Err(_) if cf == Cf::Log => self.written(inspect::read_pair(cf, &key, None)?, &mut news, replay),
                    Err(error) => tracing::debug!(%error, server = name, "a write can't be read"),
                },
                Change::Delete(cf, key) => {
                    let written = self.pair(cf, &key, None)?;
                    self.written(written, &mut news, replay);
                }
                Change::Reset => {
                    *self = Self::default();
                    news = News::default();
                    for cf in [Cf::Meta, Cf::Log, Cf::State] {
                        for (key, value) in cluster.world.disk(name).dump(cf) {
                            let written = self.pair(cf, &key, Some(&value))?;
                            self.written(written, &mut news, replay);
                        }
                    }
                }
            }
        }
        Ok(news)
    }

    /// What a pair that is there now, or is gone, says about replication. The domain's own are only summed up.
    fn pair(&mut self, cf: Cf, key: &[u8], value: Option<&[u8]>) -> std::io::Result<Option<Written>> {
        if let Some(key) = inspect::machine_key(key).filter(|_| cf == Cf::State) {
            self.pairs.set(key, value);
            return Ok(None);
        }
        inspect::read_pair(cf, key, value)
    }

    fn written(&mut self, written: Option<Written>, news: &mut News, replay: &mut Replay) {
        match written {
            Some(Written::Vote(vote)) => {
                self.vote =
                    vote.map(|vote| Vote { term: vote.term, server: Some(vote.voted_for), committed: vote.committed });
            }
            Some(Written::Entry(entry)) => {
                replay.written(entry.at, entry.command);
                let entry = Entry { index: entry.at.index, term: entry.at.term, fingerprint: entry.fingerprint };
                news.settle(self.purged);
                news.added.insert(entry.index, entry);
                self.log.insert(entry.index, entry.term);
            }
            Some(Written::EntriesGone { from, to }) => {
                news.gone.extend(from..to);
                self.log.retain(|index, _| !(from..to).contains(index));
            }
            Some(Written::Purged(at)) => self.purged = self.purged.max(at.map(|at| at.index)),
            Some(Written::Committed(at)) => self.committed = at,
            Some(Written::Applied { at, members, .. }) => {
                self.applied = at;
                self.voters = members.voters;
            }
            None => {}
        }
    }

    fn view(&mut self, mut news: News, leads: Option<u64>) -> View {
        // A snapshot that has just been installed stands for entries that the log has not, or still has of another
        // leader until it is purged.
        let by_snapshot = self.applied.filter(|at| !self.has(*at)).map(|at| at.index);
        self.purged = self.purged.max(by_snapshot);
        let purged = self.purged;
        news.settle(purged);
        news.added.retain(|index, _| purged.is_none_or(|upto| *index > upto));
        let term = self.vote.map_or(0, |vote| vote.term);
        // The note may be older than what is applied (it isn't synced), or ahead of the log that it speaks of.
        let noted = self.committed.filter(|at| self.has(*at)).map(|at| at.index);
        let applied = self.applied.map(|at| at.index);
        View {
            term,
            vote: self.vote,
            leads: leads == Some(term),
            truncated_from: news.truncated_from,
            appended: news.added.into_values().collect(),
            purged_to: purged,
            committed: noted.max(applied),
            applied,
        }
    }

    fn has(&self, at: Position) -> bool {
        self.log.get(&at.index) == Some(&at.term)
    }
}

impl News {
    /// Entries that are gone and not in a snapshot were taken away from the end.
    fn settle(&mut self, purged: Option<u64>) {
        for index in std::mem::take(&mut self.gone) {
            if purged.is_some_and(|purged| index <= purged) {
                self.added.remove(&index);
                continue;
            }
            self.added.split_off(&index);
            self.truncated_from = Some(self.truncated_from.map_or(index, |from| from.min(index)));
        }
    }
}
