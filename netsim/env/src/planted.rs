//! Bugs that were planted on purpose, to prove that the simulator's checkers find them.
//!
//! `if cara_env::planted("vote-not-synced") { ... }` is the wrong behaviour, compiled in only with the feature `museum`
//! and switched on by name through the environment variable `CARA_PLANTED`. Without the feature the answer is the
//! constant `false` and the branch is gone.

/// Is the bug of this name switched on?
#[cfg(feature = "museum")]
pub fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("CARA_PLANTED").unwrap_or_default()) == name
}

/// Is the bug of this name switched on?
#[cfg(not(feature = "museum"))]
#[inline(always)]
pub const fn planted(_name: &str) -> bool {
    false
}
