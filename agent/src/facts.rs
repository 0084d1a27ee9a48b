//! What the agent tells about its machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cara_env::{Env, Files};
use cara_proto::node::Facts;

use crate::runtime::ContainerRuntime;

/// The engine may take this long to introduce itself; facts without it are better than a session that waits.
const INFO_DEADLINE: Duration = Duration::from_secs(2);

/// Asks the engine and the kernel. What can't be found out stays empty.
pub(crate) async fn gather(env: &Env, runtime: &dyn ContainerRuntime) -> Facts {
    let mut facts = Facts {
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        kernel: line(&*env.files, "/proc/sys/kernel/osrelease"),
        hostname: line(&*env.files, "/proc/sys/kernel/hostname"),
        ..Facts::default()
    };
    match cara_env::timeout(&*env.clock, INFO_DEADLINE, runtime.info()).await {
        Ok(Ok(info)) => {
            let capacity = BTreeMap::from([
                ("cpu".to_owned(), info.cpus.to_string()),
                ("memory".to_owned(), format!("{}Ki", info.memory_bytes / 1024)),
            ]);
            facts.runtime = info.engine;
            facts.allocatable = capacity.clone().into_iter().collect();
            facts.capacity = capacity.into_iter().collect();
        }
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(_) => tracing::warn!("the container engine did not answer within {} s", INFO_DEADLINE.as_secs()),
    }
    facts
}

fn line(files: &dyn Files, path: &str) -> String {
    let bytes = files.read(Path::new(path)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
