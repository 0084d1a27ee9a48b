//! A volume's content on its way from one machine to another: incremental, resumable, verified.
//!
//! ```text
//!   source node                                              target node
//!   Tree ─► Scanner ─► Manifest ── pages ──► Assembler ─► Delta(what is here, what shall be) ─► Receive ─► Tree
//!                 SourceSession ◄── hashes ── ask ── TargetSession                        (re-scan) ─► its own digest
//!                               ─── chunks ─►
//! ```
//!
//! A round makes the target's tree what the source's was when it was scanned. Only content that the target has nowhere is
//! sent. A round that was cut off at any point is simply begun again: the target finds by scanning what it has already.
//! While the source still runs, chunks that change under the copy are left to the next round; in the final round, when the
//! source is stopped, a change is an error and both digests must be equal.
//!
//! Reading order: [`tree`] (what a volume is to us), [`manifest`], [`scan`], [`delta`], [`receive`], then [`source`] and
//! [`target`], which tie a round together. [`wire`] and [`archive`] are the forms in which content travels.
//!
//! Invariants. No path leaves the tree and no symbolic link is followed. Every chunk is hashed before it is written. Both
//! sides' memory is bounded by the number of entries and chunks, never by bytes. Nothing here knows a clock (times are
//! arguments), randomness, a network or a runtime: the caller drives every step, also in the simulator.
//!
//! Left out: who may ask for what, retries and deadlines; sockets, which mean nothing without the process behind them.

pub mod archive;
mod chunk;
pub mod delta;
mod error;
pub mod manifest;
mod path;
pub mod receive;
pub mod scan;
pub mod size;
pub mod source;
pub mod target;
pub mod tree;
pub mod wire;

pub use chunk::{CHUNK_BYTES_MAX, Chunk, Hash};
pub use error::{TreeError, VolumeError};
pub use manifest::Manifest;
pub use path::{UnsafePath, VolumePath};
pub use source::SourceSession;
pub use target::{Need, Peer, Phase, Progress, RoundReport, TargetSession, run_round};
#[cfg(target_os = "linux")]
pub use tree::FolderTree;
pub use tree::{MemoryTree, Tree};
