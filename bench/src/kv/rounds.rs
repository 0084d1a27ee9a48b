//! Both sides in turns, until the peer has been steady for as many rounds as a comparison takes.

use std::time::Duration;

use cara_env::Env;

use super::level::{Level, Load, run};
use super::peer::Peer;
use crate::measure::disk::{self, Sync};
use crate::measure::latency::Latency;
use crate::measure::steady::{median, settled, variation};
use crate::progress::Bar;

/// How long the disk is measured before each turn.
const DISK: Duration = Duration::from_millis(300);
/// Rounds at most, for each round that counts.
const PATIENCE: usize = 3;

/// How long, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub length: Duration,
    pub rounds: usize,
}

impl Pace {
    /// Rounds until it is given up.
    pub fn rounds_max(self) -> usize {
        self.rounds * PATIENCE
    }
}

/// One turn of each, and the disk just before.
pub struct Round {
    pub ours: Level,
    pub peer: Option<Level>,
    pub disk: Sync,
}

/// All rounds of one load.
pub struct Rounds {
    pub load: Load,
    pub all: Vec<Round>,
    /// Where the rounds that count begin; none when the peer was never steady.
    pub from: Option<usize>,
}

/// What one side came to, over the rounds that count.
#[derive(Clone, Default)]
pub struct Side {
    pub per_s: Option<f64>,
    pub latency: Latency,
    pub cpu_ms: Option<f64>,
    pub failed: u64,
    /// Why the last of them did.
    pub failure: String,
}

impl Side {
    fn of<'a>(levels: impl DoubleEndedIterator<Item = &'a Level> + Clone) -> Self {
        let middle = |value: fn(&Level) -> f64| median(&levels.clone().map(value).collect::<Vec<_>>());
        let mut latency = Latency::default();
        levels.clone().for_each(|level| latency.merge(&level.latency));
        let failed = levels.clone().map(|level| level.failed).sum();
        let failure = levels.clone().map(|level| &level.failure).rfind(|failure| !failure.is_empty());
        let failure = failure.cloned().unwrap_or_default();
        Self { per_s: middle(|level| level.per_s), latency, cpu_ms: middle(|level| level.cpu_ms), failed, failure }
    }
}

impl Rounds {
    /// Takes turns. Without a peer every round counts.
    pub async fn run(
        env: &Env,
        (ours, peer): (&dyn Peer, Option<&dyn Peer>),
        load: Load,
        pace: Pace,
        bar: &Bar,
    ) -> anyhow::Result<Self> {
        let mut rounds = Self { load, all: Vec::new(), from: None };
        while rounds.from.is_none() && rounds.all.len() < pace.rounds_max() {
            let disk = disk::probe(env, ours.folder(), DISK).await?;
            // Whoever goes second finds another machine than the first; so they take turns in that as well.
            let peer_first = rounds.all.len().is_multiple_of(2);
            let mut theirs = None;
            if let (true, Some(peer)) = (peer_first, peer) {
                theirs = Some(run(env, peer, load, pace.length).await?);
            }
            let own = run(env, ours, load, pace.length).await?;
            if let (false, Some(peer)) = (peer_first, peer) {
                theirs = Some(run(env, peer, load, pace.length).await?);
            }
            rounds.all.push(Round { ours: own, peer: theirs, disk });
            bar.at(rounds.all.len() as u64);
            rounds.from = match peer {
                Some(_) => settled(&rounds.peer_rates(), pace.rounds),
                None => rounds.all.len().checked_sub(pace.rounds),
            };
        }
        Ok(rounds)
    }

    fn peer_rates(&self) -> Vec<f64> {
        self.all.iter().filter_map(|round| Some(round.peer.as_ref()?.per_s)).collect()
    }

    /// The rounds that count; all of them when none do, for people to look at.
    fn counted(&self) -> &[Round] {
        &self.all[self.from.unwrap_or_default()..]
    }

    pub fn ours(&self) -> Side {
        Side::of(self.counted().iter().map(|round| &round.ours))
    }

    pub fn peer(&self) -> Option<Side> {
        let levels = self.counted().iter().filter_map(|round| round.peer.as_ref());
        levels.clone().next()?;
        Some(Side::of(levels))
    }

    /// The disk's rate in the rounds that count.
    pub fn disk_per_s(&self) -> Option<f64> {
        median(&self.counted().iter().map(|round| round.disk.per_s).collect::<Vec<_>>())
    }

    /// In a sentence: how steady the peer was.
    pub fn steadiness(&self) -> Option<String> {
        let rates = self.peer_rates();
        let percent = |rates: &[f64]| variation(rates).unwrap_or(f64::INFINITY) * 100.0;
        let name = self.load.name();
        match (rates.len(), self.from) {
            (0, _) | (_, Some(0)) => None,
            (all, Some(from)) => Some(format!(
                "{name}: the peer varied by {:.0} % over {all} rounds; the last {} count, in which it varied by {:.0} %",
                percent(&rates),
                all - from,
                percent(&rates[from..])
            )),
            (all, None) => Some(format!(
                "{name}: thrown out, the peer varied by {:.0} % over {all} rounds and was never steady; the table shows all of them",
                percent(&rates)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::level::Call;

    fn rounds(peer: &[f64], from: Option<usize>) -> Rounds {
        let level = |per_s: f64| Level { per_s, ..Level::default() };
        let disk = Sync { per_s: 1.0, p50_ms: 1.0, p99_ms: 1.0 };
        let all = peer.iter().map(|rate| Round { ours: level(rate * 2.0), peer: Some(level(*rate)), disk });
        let load = Load { call: Call::Write, clients: 64, per_s: None };
        Rounds { load, all: all.collect(), from }
    }

    #[test]
    fn what_was_thrown_out_says_so() {
        let said = rounds(&[100.0, 200.0, 100.0], None).steadiness().expect("something to say");
        assert!(said.contains("thrown out") && said.contains("varied by 100 %"), "{said}");
        let said = rounds(&[100.0, 200.0, 200.0, 210.0], Some(1)).steadiness().expect("something to say");
        assert!(said.contains("the last 3 count") && said.contains("varied by 5 %"), "{said}");
        assert_eq!(rounds(&[100.0, 101.0], Some(0)).steadiness(), None);
    }

    #[test]
    fn only_rounds_that_count_are_in_the_median() {
        let rounds = rounds(&[1_000.0, 200.0, 200.0, 210.0], Some(1));
        assert_eq!(rounds.peer().and_then(|side| side.per_s), Some(200.0));
        assert_eq!(rounds.ours().per_s, Some(400.0));
    }
}
