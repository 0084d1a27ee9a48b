//! A whole cluster on this machine, of the real binaries.

pub mod cluster;
mod process;

pub use process::Binaries;
