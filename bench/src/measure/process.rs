//! What the kernel says of processes: CPU, memory, open files.

use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Of one process, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_ms: u64,
    pub rss_kib: u64,
    pub open_files: u64,
}

impl Usage {
    /// Of one process; zero when it is gone.
    pub fn of(pid: u32) -> Self {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
        let open_files = std::fs::read_dir(folder.join("fd")).map_or(0, Iterator::count);
        Self { cpu_ms: cpu_ms(&stat), rss_kib: rss_kib(&status), open_files: open_files as u64 }
    }

    /// Of several together.
    pub fn of_all(pids: &[u32]) -> Self {
        pids.iter().map(|pid| Self::of(*pid)).fold(Self::default(), |sum, one| Self {
            cpu_ms: sum.cpu_ms + one.cpu_ms,
            rss_kib: sum.rss_kib + one.rss_kib,
            open_files: sum.open_files + one.open_files,
        })
    }
}

/// User and system time out of `/proc/PID/stat`. A tick has been ten milliseconds on Linux for ever.
fn cpu_ms(stat: &str) -> u64 {
    // The program's name may hold spaces and brackets; the last bracket ends it.
    let Some((_, rest)) = stat.rsplit_once(')') else { return 0 };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) * 10
}

fn rss_kib(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Lets this process, and those that it starts, open as many files as the system allows. Says it when that is fewer than
/// `needed`.
pub fn raise_open_files(needed: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let reached = if raised.is_ok() { most } else { limit.current.unwrap_or(u64::MAX) };
    if reached >= needed {
        return Ok(());
    }
    Err(format!(
        "a process may open {reached} files and about {needed} are needed; run `ulimit -Hn {needed}` as root before, or use fewer agents"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read_whatever_a_program_calls_itself() {
        let stat = "7 (a ) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 8 0 100 1000 20 18446744073709551615";
        assert_eq!(cpu_ms(stat), 3_000);
        assert_eq!(cpu_ms(""), 0);
        assert_eq!(rss_kib("Name:\tx\nVmRSS:\t   5120 kB\nThreads:\t3\n"), 5_120);
        assert_eq!(rss_kib("Name:\tx\n"), 0);
    }

    #[test]
    fn this_process_uses_something_and_one_that_is_gone_nothing() {
        let own = Usage::of(std::process::id());
        assert!(own.rss_kib > 0 && own.open_files > 0, "{own:?}");
        assert_eq!(Usage::of(u32::MAX), Usage::default());
    }

    #[test]
    fn more_files_than_the_system_allows_are_told() {
        let refused = raise_open_files(u64::MAX - 1).expect_err("nobody may open so many");
        assert!(refused.contains("ulimit"), "{refused}");
        assert_eq!(raise_open_files(8), Ok(()));
    }
}
