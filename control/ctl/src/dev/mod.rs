//! A whole cluster on this machine, of the real binaries.

pub mod cluster;
mod error;
mod process;
mod until;

pub use error::DevError;
pub use process::Binaries;
