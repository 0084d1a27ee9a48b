//! What the agent tells about its machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cara_env::{Env, Files};
use cara_proto::node::Facts;

use crate::config::Config;
use crate::readings;
use crate::runtime::ContainerRuntime;

/// The engine may take this long to introduce itself; facts without it are better than a session that waits.
const INFO_DEADLINE: Duration = Duration::from_secs(2);

/// Asks the engine and the kernel. What can't be found out stays empty.
pub(crate) async fn gather(env: &Env, config: &Config, runtime: &dyn ContainerRuntime) -> Facts {
    let mut facts = Facts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel: line(&*env.files, "/proc/sys/kernel/osrelease"),
        hostname: line(&*env.files, "/proc/sys/kernel/hostname"),
        // Set where releases are built; a developer's build has none.
        agent_commit: option_env!("CARA_COMMIT").unwrap_or_default().to_owned(),
        os_image: os_image(&*env.files),
        ..Facts::default()
    };
    match cara_env::timeout(&*env.clock, INFO_DEADLINE, runtime.info()).await {
        Ok(Ok(info)) => {
            let mut capacity = BTreeMap::from([
                ("cpu".to_owned(), info.cpus.to_string()),
                ("memory".to_owned(), format!("{}Ki", info.memory_bytes / 1024)),
            ]);
            if let Some(disk) = readings::disk(config).await {
                capacity.insert("disk".to_owned(), format!("{}Ki", disk.total / 1024));
            }
            facts.runtime = info.engine;
            facts.allocatable = capacity.clone().into_iter().collect();
            facts.capacity = capacity.into_iter().collect();
        }
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(_) => tracing::warn!("the container engine did not answer within {} s", INFO_DEADLINE.as_secs()),
    }
    facts
}

/// The system's name for itself, from the file that every distribution has.
fn os_image(files: &dyn Files) -> String {
    let bytes = ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| files.read(Path::new(path)).ok());
    let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
    let pretty = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    pretty.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
}

fn line(files: &dyn Files, path: &str) -> String {
    let bytes = files.read(Path::new(path)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
