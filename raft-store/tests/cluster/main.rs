//! Members over real sockets on loopback: replication, restarts, snapshots, membership, crashes.

mod crash;
mod harness;
mod members;
mod refusals;
mod replicate;
