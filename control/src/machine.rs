//! The domain behind the replication: adapts `cara_core::State` to `raft_store::StateMachine`, and keeps the recent
//! events for watchers.
//!
//! Invariant: nothing is decided here. Bytes in, `State::apply_entry`, bytes out; the same on every server.

use std::collections::VecDeque;
use std::sync::Arc;

use cara_core::{Event, State, codec};
use raft_store::{Applied, Damaged, Position, StateMachine};
use tokio::sync::watch;

/// Events kept for watchers that resume: minutes of a busy cluster, and a few MB at most.
const EVENTS_KEPT: usize = 16_384;

/// An event with its revision and the log's time.
#[derive(Debug, Clone)]
pub struct Logged {
    /// Log index of the entry.
    pub revision: u64,
    /// The entry's time in ms since 1970.
    pub at_ms: u64,
    /// What happened.
    pub event: Event,
}

/// The state of the cluster as this server has applied it.
pub struct Machine {
    state: State,
    events: VecDeque<Arc<Logged>>,
    /// Events up to this revision are gone.
    compacted: u64,
    applied: u64,
    changed: watch::Sender<u64>,
    administration: watch::Sender<u64>,
    /// Only the planted bug `apply-reads-a-clock` has one.
    #[cfg(feature = "museum")]
    pub(crate) clock: Option<Arc<dyn cara_env::Clock>>,
}

/// The watcher asked for events that are not kept any more: it has to list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// The oldest revision from which a watch can resume.
    pub oldest: u64,
}

/// Where one hears of changes. Each receiver sees the revision of the last one.
pub struct Changes {
    /// Of anything that has events.
    pub any: watch::Receiver<u64>,
    /// Of the cluster, a server or an API token: whoever looks only at these is left alone by the load.
    pub administration: watch::Receiver<u64>,
}

impl Machine {
    /// An empty one, and where one hears of its changes.
    pub fn new() -> (Self, Changes) {
        let (changed, any) = watch::channel(0);
        let (administration, administrative) = watch::channel(0);
        let machine = Self {
            state: State::default(),
            events: VecDeque::new(),
            compacted: 0,
            applied: 0,
            changed,
            administration,
            #[cfg(feature = "museum")]
            clock: None,
        };
        (machine, Changes { any, administration: administrative })
    }

    /// The domain's state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The last applied log index.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Up to `limit` events after `revision`, whole revisions only.
    ///
    /// # Errors
    /// When events after `revision` have been dropped already.
    pub fn events_after(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Logged>>, Compacted> {
        if revision < self.compacted && !cara_env::planted("watch-drops-on-compaction") {
            return Err(Compacted { oldest: self.compacted });
        }
        let start = self.events.partition_point(|e| e.revision <= revision);
        let mut found: Vec<_> = self.events.iter().skip(start).take(limit).cloned().collect();
        // The last revision may go on behind the limit; its events are taken whole.
        let last = found.last().map_or(revision, |e| e.revision);
        found.extend(self.events.iter().skip(start + found.len()).take_while(|e| e.revision == last).cloned());
        Ok(found)
    }

    #[cfg(feature = "museum")]
    fn planted_time(&self, mut entry: cara_core::Entry) -> cara_core::Entry {
        if cara_env::planted("apply-reads-a-clock")
            && let Some(clock) = &self.clock
        {
            entry.at_ms = clock.wall_ms();
        }
        entry
    }

    fn remember(&mut self, revision: u64, at_ms: u64, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        self.events.extend(events.into_iter().map(|event| Arc::new(Logged { revision, at_ms, event })));
        while self.events.len() > EVENTS_KEPT {
            if let Some(dropped) = self.events.pop_front() {
                self.compacted = dropped.revision;
            }
        }
        // Half a revision is of no use to anyone.
        while self.events.front().is_some_and(|e| e.revision == self.compacted) {
            self.events.pop_front();
        }
        self.changed.send_replace(revision);
    }
}

impl StateMachine for Machine {
    fn apply(&mut self, at: Position, command: &[u8]) -> Applied {
        self.applied = at.index;
        // To go on without this entry would make this server differ from the others for ever. The feature level keeps
        // newer commands out of the log until all servers know them, so this is an old binary over a new log.
        let entry = codec::decode_entry(command)
            .unwrap_or_else(|error| panic!("log index {}: {error}; start a newer cara-server here", at.index));
        #[cfg(feature = "museum")]
        let entry = self.planted_time(entry);
        let applied = self.state.apply_entry(at.index, entry);
        let at_ms = self.state.at_ms();
        self.remember(at.index, at_ms, applied.events);
        if applied.is_administrative {
            self.administration.send_replace(at.index);
        }
        Applied { reply: codec::encode_outcome(&applied.reply), writes: applied.writes }
    }

    fn load(&mut self, pairs: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<(), Damaged> {
        self.state = State::load(pairs).map_err(|error| Damaged(error.to_string()))?;
        // Whatever happened up to here was not seen as events: watchers must list again.
        let loaded = self.state.revision().0;
        if !cara_env::planted("watch-blind-after-snapshot") {
            self.events.clear();
            self.compacted = loaded;
        }
        self.applied = self.applied.max(loaded);
        self.changed.send_replace(loaded);
        self.administration.send_replace(loaded);
        Ok(())
    }
}
