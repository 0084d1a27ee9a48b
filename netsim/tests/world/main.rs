//! The simulated world itself: does it repeat, does a freeze freeze, does a power loss lose the right things?

#![allow(clippy::unwrap_used, missing_docs)] // Helpers of tests live outside of test functions here.

mod clock;
mod determinism;
mod disk;
mod freeze;
mod kernel;
mod links;
mod network;
mod ping;
mod process;
mod rot;

cara_netsim::override_libc!();
