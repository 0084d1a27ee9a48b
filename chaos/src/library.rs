//! The scenarios that come with the binary.

use std::path::Path;

use anyhow::{Context, bail};
use cara_scenario::Scenario;

include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Reads a scenario: a file, or one of the library by its name.
///
/// # Errors
/// When there is no such file and no such name, or when it can't be understood.
pub fn read(name_or_file: &str) -> anyhow::Result<Scenario> {
    if let Some((name, text)) = ALL.iter().find(|(name, _)| *name == name_or_file) {
        return Scenario::parse(text).with_context(|| format!("scenario {name}"));
    }
    let path = Path::new(name_or_file);
    if !path.exists() {
        bail!("no scenario {name_or_file:?}: neither a file nor one of the library; `cara-chaos list` shows those");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    Scenario::parse(&text).with_context(|| format!("scenario {}", path.display()))
}
