//! Bugs that were planted on purpose, to prove that the simulator's checkers find them.
//!
//! The same switch as in the other crates, once more here because this crate depends on nothing of ours. Without the
//! feature `museum` the answer is the constant `false` and the wrong branch is gone.

/// Is the bug of this name switched on?
#[cfg(feature = "museum")]
#[allow(
    clippy::disallowed_methods,
    reason = "the bugs are chosen once per process, by the program that runs all servers"
)]
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("CARA_PLANTED").unwrap_or_default()) == name
}

/// Is the bug of this name switched on?
#[cfg(not(feature = "museum"))]
#[inline(always)]
pub(crate) const fn planted(_name: &str) -> bool {
    false
}
