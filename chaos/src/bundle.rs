//! What a failure leaves behind: a folder from which it can be run again, shrunk, compared and looked at.
//!
//! ```text
//!   seed-151.bundle/
//!     bundle.json      seed, commit, arguments, how the run ended
//!     scenario.toml    every fault and operation that the seed chose, written out: runnable, and open to change
//!     decisions.log    when which fault hit whom, and what came of it
//!     trace.log        everything that happened, log lines included
//!     recording.json   what the report draws
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cara_report::Recording;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// The facts of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The seed.
    pub seed: u64,
    /// The commit of the code that ran; a bundle replays exactly only there.
    pub revision: String,
    /// Fingerprint of the locked versions of all dependencies.
    pub lock: String,
    /// Further arguments of the run.
    pub args: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A bundle's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle(PathBuf);

impl Bundle {
    /// The bundle in this folder, which may not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The runnable scenario.
    pub fn scenario_file(&self) -> PathBuf {
        self.0.join("scenario.toml")
    }

    /// Everything that happened.
    pub fn trace_file(&self) -> PathBuf {
        self.0.join("trace.log")
    }

    /// Makes the folder, empty of an older bundle's files.
    pub fn create(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.0).with_context(|| format!("can't make the bundle's folder {}", self.0.display()))
    }

    /// Writes all but the trace, which the run writes as it goes.
    pub fn write(&self, scenario: &str, facts: &Facts, decisions: &str, recording: &Recording) -> anyhow::Result<()> {
        let put = |name: &str, text: String| {
            let path = self.0.join(name);
            fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))
        };
        put("scenario.toml", scenario.to_owned())?;
        put("bundle.json", serde_json::to_string_pretty(facts)?)?;
        put("decisions.log", decisions.to_owned())?;
        put("recording.json", serde_json::to_string(recording)?)
    }

    /// The facts of an existing bundle.
    pub fn facts(&self) -> anyhow::Result<Facts> {
        let facts = serde_json::from_str(&self.read("bundle.json")?);
        facts.with_context(|| format!("{} is not a bundle of this version; run its seed again", self.0.display()))
    }

    /// What the report draws.
    pub fn recording(&self) -> anyhow::Result<Recording> {
        let recording = serde_json::from_str(&self.read("recording.json")?);
        recording.with_context(|| format!("the recording in {} can't be read; run its seed again", self.0.display()))
    }

    fn read(&self, name: &str) -> anyhow::Result<String> {
        let path = self.0.join(name);
        fs::read_to_string(&path).with_context(|| {
            format!("can't read {}; a bundle is a folder that `cara-chaos sim` or `run` wrote", path.display())
        })
    }
}

/// The commit of the checkout that this is run in, with a mark when files were changed; `unknown` elsewhere.
pub fn revision() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    if changed { format!("{commit}+changes") } else { commit }
}

/// Fingerprint of Cargo.lock in this folder; `unknown` elsewhere.
pub fn lock() -> String {
    fs::read("Cargo.lock").map_or("unknown".into(), |bytes| format!("{:016x}", cara_netsim::trace::fingerprint(&bytes)))
}
