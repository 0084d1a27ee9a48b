//! The domain of Caravanserai, pure: what there is, what can be asked, what follows.
//!
//! A request's road through here: an [`Entry`] carries a [`Command`](command::Command); [`State::apply_entry`] checks
//! it, changes the state and gives [`Event`]s, a [`Reply`](reply::Reply) or a [`Rejected`], and the pairs to store. On
//! the leader, [`reconcile`](reconcile::reconcile) compares the whole state with what it heard and asks for more
//! commands. [`desired_set`] is what a node's agent is sent.
//!
//! `Invariant:` no clock, no randomness, no file, no network, no task: facts in, values out, the same on every server.

mod planted;
mod wire;

pub mod id;
pub mod limits;
pub mod model;
pub mod name;
pub mod rejected;

mod audit;
pub mod command;
mod drains;
pub mod enrolment;
mod entry;
mod event;
mod feature;
pub mod instance;
mod moves;
pub mod quantity;
mod quarantine;
pub mod reply;
mod schedule;
pub mod spec_rules;
mod state;
mod subject;
mod trust;

pub mod codec;
mod desired;
pub mod invariant;
pub mod reconcile;

pub use command::Command;
pub use desired::{Assignment, Mode, Transfer, desired_set};
pub use entry::{Applied, Context, Entry};
pub use event::{Event, ObjectKind, ObjectRef, Verb};
pub use feature::{FEATURE_LEVEL_MIN, Feature};
pub use id::{DrainId, Epoch, Generation, MoveId, NodeId, Revision, ServerId, TokenId, WorkloadUid};
pub use moves::waits_for;
pub use quarantine::removals;
pub use rejected::{Problem, RejectKind, Rejected};
pub use reply::{Answer, Reply};
pub use schedule::{NoNode, Purpose, Unfit, choose, unfit};
pub use state::{Key, State};
pub use trust::{HeldBack, Lack};

/// The highest feature level that this version supports. Not asked by apply, which goes by the replicated level: each
/// server announces its own, and the leader raises that of the cluster once all servers support it.
pub const FEATURE_LEVEL: u32 = 3;
