//! What a figure needs beside it to be worth anything later: the machine, its load, and what was measured on it.

use serde::Serialize;

/// The machine and the moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub memory_gib: f64,
    pub kernel: String,
    /// Load of the last minute before the run began. Above 0 something else was at work.
    pub load_before: f64,
    pub load_after: f64,
    pub bench_version: &'static str,
    /// Development builds check all invariants after each entry: their figures mean nothing.
    pub is_release: bool,
}

impl Machine {
    /// As it is now.
    pub fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let load = load(&read("/proc/loadavg"));
        Self {
            cpu: after(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: memory_gib(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: load,
            load_after: load,
            bench_version: env!("CARGO_PKG_VERSION"),
            is_release: !cfg!(debug_assertions),
        }
    }

    /// The run is over.
    pub fn look_again(&mut self) {
        self.load_after = load(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default());
    }

    /// In one line.
    pub fn line(&self) -> String {
        let Self { cpu, cores, memory_gib, kernel, load_before, load_after, bench_version, is_release } = self;
        let build = if *is_release { "release build" } else { "DEVELOPMENT BUILD: these figures mean nothing" };
        format!(
            "{cores} cores ({cpu}), {memory_gib:.0} GiB, Linux {kernel}, load {load_before:.2} before and {load_after:.2} after, \
             cara-bench {bench_version}, {build}"
        )
    }
}

fn after(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn load(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn memory_gib(text: &str) -> f64 {
    let kib = after(text, "MemTotal").and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        assert_eq!(load("0.52 0.58 0.59 1/467 12345\n"), 0.52);
        assert_eq!(memory_gib("MemTotal:       25165824 kB\nMemFree: 1 kB\n"), 24.0);
        assert_eq!(after("model name\t: A CPU\n", "model name").as_deref(), Some("A CPU"));
        assert_eq!(load(""), 0.0);
    }
}
