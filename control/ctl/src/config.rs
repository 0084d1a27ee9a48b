//! The contexts file, `~/.config/caravanserai/config.toml`: named clusters and which one is meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cara_env::Files;
use serde::{Deserialize, Serialize};

use crate::client::Access;
use crate::failure::{Failure, Outcome, exit};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the context that commands use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub current: String,
    /// By name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// One cluster.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// All servers.
    #[serde(default)]
    pub servers: Vec<String>,
    /// Bearer token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// SHA-256 of the cluster's CA certificate, hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ca_fingerprint: String,
}

/// Never prints the token.
impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl From<Context> for Access {
    fn from(context: Context) -> Self {
        Self { servers: context.servers, token: context.token, ca_fingerprint: context.ca_fingerprint }
    }
}

/// Where the file is: `CARA_CONFIG`, or below `XDG_CONFIG_HOME`, or below `HOME`.
pub fn path(var: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(path) = var("CARA_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let base = var("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(Path::new(&var("HOME")?).join(".config")))?;
    Some(base.join("caravanserai").join("config.toml"))
}

/// Reads the file; a missing one is empty.
///
/// # Errors
/// When it can't be read or is not what this version writes.
pub fn load(files: &dyn Files, path: &Path) -> Outcome<Config> {
    let bytes = match files.read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(error) => return Err(broken(path, &error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|e| broken(path, &e.to_string()))?;
    toml::from_str(&text).map_err(|e| broken(path, e.to_string().trim_end()))
}

/// Writes the file with mode 0600: it holds tokens.
///
/// # Errors
/// When the folder or the file can't be written.
pub fn save(files: &dyn Files, path: &Path, config: &Config) -> Outcome {
    let text = toml::to_string_pretty(config).map_err(|e| broken(path, &e.to_string()))?;
    files.write(path, text.as_bytes(), 0o600).map_err(|e| {
        Failure::new(exit::OTHER, "config", format!("can't write {}", path.display()))
            .why(e.to_string())
            .next("make the folder writable, or choose another file with CARA_CONFIG")
    })
}

fn broken(path: &Path, why: &str) -> Failure {
    Failure::new(exit::USAGE, "config", format!("can't read the contexts in {}", path.display()))
        .why(why)
        .next("correct the file, or move it away and use `caractrl ctx set`")
}
