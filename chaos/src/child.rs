//! One run in a process of its own: libraries keep global state that a second run in the same process would inherit.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::outcome::Outcome;

/// More of a dead process's last words than these lines help nobody.
const WORDS_MAX: usize = 30;

/// What one process shall run.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// The seed.
    pub seed: u64,
    /// The scenario's file or name; without one the seed makes its own.
    pub scenario: Option<String>,
    /// Further arguments of `cara-chaos one`.
    pub args: Vec<String>,
    /// The planted bug to switch on; needs a binary that has them.
    pub planted: Option<String>,
    /// The binary; this one when none is given.
    pub binary: Option<PathBuf>,
}

impl Job {
    /// Runs to the end. A process that died without an outcome is an outcome as well; what could not be run at all, for
    /// example for a scenario that can't be read, is an error.
    pub fn run(&self) -> anyhow::Result<Outcome> {
        let output = self.command()?.output().context("can't start a process for a seed")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if let Some(outcome) = stdout.lines().find_map(|line| serde_json::from_str(line).ok()) {
            return Ok(outcome);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let words: Vec<&str> = words.lines().take(WORDS_MAX).collect();
        if output.status.code() == Some(3) {
            bail!("{}", words.join("\n"));
        }
        Ok(Outcome::died(self.seed, self.scenario.as_deref().unwrap_or("swarm"), &words.join("\n    ")))
    }

    fn command(&self) -> anyhow::Result<Command> {
        let own = || std::env::current_exe().context("can't find this binary to run it again");
        let binary = self.binary.clone().map_or_else(own, Ok)?;
        let mut command = Command::new(binary);
        command.args(["one", "--seed", &self.seed.to_string()]);
        if let Some(file) = &self.scenario {
            command.arg("--scenario").arg(file);
        }
        if let Some(bug) = &self.planted {
            command.env("CARA_PLANTED", bug);
        }
        command.args(&self.args).stdin(Stdio::null());
        Ok(command)
    }
}
