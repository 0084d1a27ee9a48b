//! The disk's own speed: appends of 4 KiB, each with fdatasync, by one writer. No durable write of one client can be faster.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;
use serde::Serialize;

use super::latency::Latency;

/// What is appended each time: a page, as logs write.
const BLOCK: [u8; 4096] = [0x5a; 4096];

/// How fast the disk syncs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sync {
    pub per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Appends and syncs for `length` in a file of its own in `folder`, which is removed again.
///
/// # Errors
/// When the folder can't be written.
pub async fn probe(env: &Env, folder: &Path, length: Duration) -> anyhow::Result<Sync> {
    let path = folder.join(format!("sync-{}", cara_env::hex(&*env.rng, 4)));
    let clock = env.clock.clone();
    cara_env::blocking(move || {
        let work = || -> std::io::Result<Latency> {
            let mut file = File::options().create_new(true).write(true).open(&path)?;
            let (began, mut all) = (clock.monotonic(), Latency::default());
            while clock.monotonic().saturating_sub(began) < length {
                let from = clock.monotonic();
                file.write_all(&BLOCK)?;
                file.sync_data()?;
                all.record(clock.monotonic().saturating_sub(from));
            }
            Ok(all)
        };
        let done = work();
        drop(std::fs::remove_file(&path)); // Where it could not be made there is nothing to remove.
        let all = done.with_context(|| format!("can't write and sync {}", path.display()))?;
        let (Some(p50_ms), Some(p99_ms)) = (all.ms(50.0), all.ms(99.0)) else {
            anyhow::bail!("the disk of {} synced nothing within {length:?}", path.display());
        };
        #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
        Ok(Sync { per_s: all.count() as f64 / length.as_secs_f64(), p50_ms, p99_ms })
    })
    .await
}
