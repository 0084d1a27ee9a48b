//! Bugs that are planted on purpose, and how many seeds it takes to find each.
//!
//! A bug that can't be found is a hole in a checker.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::outcome::Outcome;

/// One planted bug.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Its name, as the code asks for it.
    pub name: String,
    /// What is wrong, in one sentence.
    pub what: String,
    /// Where such a bug was seen, or the rule that it breaks.
    pub source: String,
    /// Rules, one of which must be found broken.
    pub rules: Vec<String>,
    /// The scenario to run it under; the seeds' own when none is given.
    #[serde(default)]
    pub scenario: Option<String>,
    /// It must be found within so many seeds.
    #[serde(default = "default_budget")]
    pub budget_seeds: u64,
}

fn default_budget() -> u64 {
    40
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bugs {
    bug: Vec<Bug>,
}

impl Bug {
    /// Did the run find it? A run that found something else is no proof that the right checker sees.
    pub fn is_found_by(&self, outcome: &Outcome) -> bool {
        outcome.findings.iter().any(|finding| self.rules.contains(&finding.rule))
    }
}

/// All planted bugs.
///
/// # Errors
/// When the list can't be read: that is a mistake of whoever changed it.
pub fn bugs() -> anyhow::Result<Vec<Bug>> {
    let bugs: Bugs = toml::from_str(include_str!("../museum/bugs.toml")).context("chaos/museum/bugs.toml")?;
    Ok(bugs.bug)
}

/// Builds the binary that has the bugs in it, in the checkout around this folder, and says where it is.
pub fn build() -> anyhow::Result<PathBuf> {
    let root = checkout()?;
    let cargo = root.join("deploy/setup/cargo.sh");
    let args = ["build", "-q", "-p", "cara-chaos", "--bin", "cara-museum", "--features", "cara-chaos/museum"];
    let built = Command::new(&cargo).args(args).current_dir(&root).status();
    let built = built.with_context(|| format!("can't run {}", cargo.display()))?;
    if !built.success() {
        bail!("the binary with the planted bugs can't be built; the compiler's words are above");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("debug/cara-museum"))
}

/// The checkout that this is run in.
fn checkout() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("can't tell the working folder")?;
    let is_root = |folder: &&Path| folder.join("chaos/museum/bugs.toml").exists();
    let root = here.ancestors().find(is_root).map(Path::to_owned);
    root.context("the museum is rebuilt from the sources: run this inside a checkout of Caravanserai")
}
