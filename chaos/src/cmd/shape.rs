//! What all commands that run worlds can be told about them.

use crate::run::Canary;
use crate::world::EngineKind;
use clap::ValueEnum;

/// Changes to the world that the scenario or the seed asks for.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Shape {
    /// Simulated seconds under faults.
    #[arg(long)]
    pub duration: Option<u64>,
    /// Nodes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=20))]
    pub agents: Option<u64>,
    /// Step of time in ms: 1 is exact, 5 is nearly twice as fast.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=20))]
    pub tick_ms: Option<u64>,
    /// The servers' storage: the model of a disk, or RocksDB in temporary folders (slower, and not repeatable).
    #[arg(long, value_enum, default_value_t = EngineKind::Sim)]
    pub engine: EngineKind,
    /// Plant a fault that must make the run fail: proves that the checkers see.
    #[arg(long, value_enum)]
    pub canary: Option<Canary>,
}

impl Shape {
    /// The same as arguments of a command line.
    pub fn to_args(&self) -> Vec<String> {
        let number = |flag: &str, value: Option<u64>| value.map(|value| [flag.to_owned(), value.to_string()]);
        let word = |flag: &str, value: Option<clap::builder::PossibleValue>| {
            value.map(|value| [flag.to_owned(), value.get_name().to_owned()])
        };
        let engine = (self.engine != EngineKind::Sim).then_some(self.engine);
        [
            number("--duration", self.duration),
            number("--agents", self.agents),
            number("--tick-ms", self.tick_ms),
            word("--engine", engine.and_then(|engine| engine.to_possible_value())),
            word("--canary", self.canary.and_then(|canary| canary.to_possible_value())),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .collect()
    }
}
