//! Durable writes and linearizable reads, ours beside etcd's: as many processes each, the same disk, the same shape of client,
//! in turns.

mod etcd;
mod etcd_tls;
mod level;
pub mod ours;
pub mod peer;
mod recovery;
mod rounds;
mod run;
mod show;

pub use etcd::Wire;
pub use rounds::Pace;
pub use run::{Options, run};
