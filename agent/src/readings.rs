//! What changes all the time on a machine: memory and disk that are left. Read beside the heartbeats, which carry the last
//! reading and never wait for one: a network disk that hangs must not make a node silent.

use std::path::Path;
use std::sync::Arc;

use cara_env::{Env, Files};
use cara_proto::node::Readings;
use tokio::sync::watch;

use crate::config::Config;

/// Tells how much room a device has; none when it can't be said now. It may block.
pub type DiskProbe = Arc<dyn Fn() -> Option<DiskSpace> + Send + Sync>;

/// Room on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// All of it, in bytes.
    pub total: u64,
    /// What is left for us.
    pub free: u64,
}

/// Reads for ever. What can't be read stays zero, and nothing is told when there is nothing at all.
pub(crate) async fn run(env: Env, config: Config, tell: watch::Sender<Option<Readings>>) {
    loop {
        let readings = read(&env, &config).await;
        tell.send_replace((readings != Readings::default()).then_some(readings));
        env.clock.sleep(config.readings_interval).await;
    }
}

async fn read(env: &Env, config: &Config) -> Readings {
    let (memory_total_bytes, memory_available_bytes) = memory(&*env.files);
    let disk = disk(config).await;
    Readings {
        memory_total_bytes,
        memory_available_bytes,
        disk_total_bytes: disk.map_or(0, |disk| disk.total),
        disk_free_bytes: disk.map_or(0, |disk| disk.free),
    }
}

/// Room on the device of the data folder.
pub(crate) async fn disk(config: &Config) -> Option<DiskSpace> {
    let probe = config.disk.clone()?;
    cara_env::blocking(move || probe()).await
}

/// Total and available bytes; zeroes when the kernel doesn't say.
fn memory(files: &dyn Files) -> (u64, u64) {
    let text = files.read(Path::new("/proc/meminfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    match (of("MemTotal:"), of("MemAvailable:")) {
        (Some(total), Some(available)) => (total, available),
        (None, _) | (_, None) => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kernel(&'static str);

    impl Files for Kernel {
        fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
            Ok(self.0.as_bytes().to_vec())
        }
        fn write(&self, _: &Path, _: &[u8], _: u32) -> std::io::Result<()> {
            unreachable!("it only reads")
        }
        fn remove(&self, _: &Path) -> std::io::Result<()> {
            unreachable!("it only reads")
        }
        fn list(&self, _: &Path) -> std::io::Result<Vec<String>> {
            unreachable!("it only reads")
        }
    }

    #[test]
    fn memory_is_what_the_kernel_says_or_nothing() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    250 kB\n";
        assert_eq!(memory(&Kernel(text)), (1_024_000, 256_000));
        assert_eq!(memory(&Kernel("MemTotal: 1000 kB\n")), (0, 0), "a total alone tells no pressure");
        assert_eq!(memory(&Kernel("")), (0, 0));
    }
}
