//! Is an agent that opens a session the one that had the last session, or a second machine with a copy of its identity?
//!
//! A certificate says which node calls, not which machine. So each process of an agent draws a random *instance* when it
//! starts, and keeps in its data folder which instance had its last session, under which epoch. With its first word it says
//! all three, and the log knows which instance had the node's last session: the holder.
//!
//! ```text
//! the holder itself, reconnecting ------------------------------------------> welcome, at once
//! its successor in the same folder (names the holder and its last epoch):
//!     the session ended in order -------------------------------------------> welcome, at once
//!     the holder's stream broke, and for a moment nobody came back ---------> welcome, the first that asked
//!     the holder's stream is open: the holder is asked; silent for a timeout -> welcome
//! anybody else (an older copy of the folder: a clone, a backup):
//!     the holder is silent for a whole timeout -----------------------------> welcome
//! as long as none of these is so -------------------------------------------> wait, and ask again
//! the holder answers a question that was put after this one's first word ---> a clone: two are alive
//! ```
//!
//! A machine that merely restarts, boots or is restored is never called a clone: for that, the holder has to answer a question
//! that is younger than the newcomer's first word, and its own old process is dead. What can't be told apart is a clone and a
//! successor while the holder is out of reach for longer than a timeout; then the newcomer has the node, and the other is
//! refused when it returns. A copy that includes the memory of the running agent (a snapshot of a virtual machine, resumed
//! twice) is the holder by every word that it says, until one of both gets a newer epoch; then the other is told from it.
//!
//! Heard times are the leader's own and monotonic: a new leader counts silence from when it began to lead.

use crate::id::Epoch;
use crate::planted::planted;

/// What a newcomer says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The process that calls; empty when its release did not know instances.
    pub instance: &'a str,
    /// The process that had the last session of its data folder; empty when there was none.
    pub last_instance: &'a str,
    /// That session.
    pub last_epoch: Epoch,
    /// No other newcomer asked before it and is still asking: of two that say the same, the one that was there first is
    /// more likely the machine itself, which was down for a moment.
    pub is_first: bool,
}

/// What the leader knows of the node's last session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder<'a> {
    /// The process that had it; empty when it did not say, or when the node was enrolled since.
    pub instance: &'a str,
    /// The state has a session of it: it did not say goodbye.
    pub in_session: bool,
    /// The newest epoch under which this leader has heard it speak; whoever has that epoch knows of it.
    pub spoke: Epoch,
    /// Its stream is open here.
    pub connected: bool,
    /// It has answered a question that was put after the newcomer's first word.
    pub answered: bool,
    /// When this leader heard it last, or began to lead.
    pub heard_ms: u64,
    /// When its stream ended here, or this leader began to lead.
    pub left_ms: u64,
    /// A process that was proven to be a clone lately.
    pub clone: &'a str,
}

/// How long the leader is patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A node that is silent for so long is offline.
    pub timeout_ms: u64,
    /// An agent that lives comes back within this after its stream broke.
    pub settle_ms: u64,
}

/// What becomes of a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may have the session.
    Welcome,
    /// It can't be told yet; it shall ask again.
    Wait,
    /// Another machine is this node.
    Clone,
}

/// Judges a newcomer.
pub fn judge(claim: Claim<'_>, holder: Holder<'_>, patience: Patience, now_ms: u64) -> Verdict {
    if claim.instance.is_empty() || holder.instance.is_empty() || planted("clone-steals-session") {
        return Verdict::Welcome;
    }
    let knows_the_last = claim.last_epoch >= holder.spoke;
    if claim.instance == holder.instance && knows_the_last {
        return Verdict::Welcome;
    }
    let since = |at: u64| now_ms.saturating_sub(at);
    let is_silent = since(holder.heard_ms) >= patience.timeout_ms;
    if !is_silent && (holder.answered || claim.instance == holder.clone) {
        return Verdict::Clone;
    }
    let is_successor = claim.last_instance == holder.instance && knows_the_last;
    let is_free = match (is_successor, holder.connected) {
        (true, false) => !holder.in_session || since(holder.left_ms) >= patience.settle_ms,
        (true, true) | (false, _) => is_silent,
    };
    if is_free && claim.is_first { Verdict::Welcome } else { Verdict::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { timeout_ms: 45_000, settle_ms: 5_000 };

    fn claim<'a>(instance: &'a str, last_instance: &'a str, last_epoch: u64) -> Claim<'a> {
        Claim { instance, last_instance, last_epoch: Epoch(last_epoch), is_first: true }
    }

    /// `a` has session 7, speaks, and was heard at 100 s.
    fn holder<'a>() -> Holder<'a> {
        Holder {
            instance: "a",
            in_session: true,
            spoke: Epoch(7),
            connected: true,
            heard_ms: 100_000,
            left_ms: 50_000,
            ..Holder::default()
        }
    }

    fn at(now_s: u64, claim: Claim<'_>, holder: Holder<'_>) -> Verdict {
        judge(claim, holder, PATIENCE, now_s * 1_000)
    }

    #[test]
    fn the_holder_reconnects_at_once_also_when_its_old_stream_is_not_known_to_be_dead() {
        assert_eq!(at(101, claim("a", "a", 7), holder()), Verdict::Welcome);
        // The answer that told it of its session was lost: nobody has spoken under that epoch.
        assert_eq!(at(101, claim("a", "a", 6), Holder { spoke: Epoch(6), ..holder() }), Verdict::Welcome);
    }

    #[test]
    fn a_restarted_agent_waits_a_moment_after_its_stream_broke_and_not_at_all_after_a_goodbye() {
        let broke = Holder { connected: false, left_ms: 100_000, ..holder() };
        assert_eq!(at(104, claim("b", "a", 7), broke), Verdict::Wait);
        assert_eq!(at(105, claim("b", "a", 7), broke), Verdict::Welcome);
        let left = Holder { in_session: false, ..broke };
        assert_eq!(at(100, claim("b", "a", 7), left), Verdict::Welcome);
    }

    #[test]
    fn a_machine_that_boots_while_its_old_stream_seems_open_waits_and_is_never_called_a_clone() {
        for now_s in 100..145 {
            assert_eq!(at(now_s, claim("b", "a", 7), holder()), Verdict::Wait, "{now_s}");
        }
        assert_eq!(at(145, claim("b", "a", 7), holder()), Verdict::Welcome);
    }

    #[test]
    fn a_clone_is_told_once_the_first_has_answered_and_stays_one_under_the_next_leader() {
        let answered = Holder { answered: true, ..holder() };
        for copied in [claim("b", "a", 7), claim("b", "a", 3), claim("b", "x", 1), claim("b", "", 0)] {
            assert_eq!(at(101, copied, holder()), Verdict::Wait, "{copied:?}");
            assert_eq!(at(101, copied, answered), Verdict::Clone, "{copied:?}");
        }
        let next = Holder { clone: "b", spoke: Epoch(0), connected: false, left_ms: 100_000, ..holder() };
        assert_eq!(at(110, claim("b", "a", 7), next), Verdict::Clone);
        assert_eq!(at(145, claim("b", "a", 7), next), Verdict::Welcome, "the first is gone");
    }

    #[test]
    fn an_older_copy_takes_over_only_from_one_that_is_silent() {
        let gone = Holder { connected: false, left_ms: 90_000, ..holder() };
        for old in [claim("b", "a", 6), claim("b", "z", 9), claim("b", "", 0)] {
            assert_eq!(at(144, old, gone), Verdict::Wait, "{old:?}");
            assert_eq!(at(145, old, gone), Verdict::Welcome, "{old:?}");
        }
    }

    #[test]
    fn of_two_that_say_the_same_the_first_to_ask_is_let_in() {
        let broke = Holder { connected: false, left_ms: 100_000, ..holder() };
        let second = Claim { is_first: false, ..claim("b", "a", 7) };
        assert_eq!(at(106, second, broke), Verdict::Wait);
        assert_eq!(at(106, claim("c", "a", 7), broke), Verdict::Welcome);
        let itself = Claim { is_first: false, ..claim("a", "a", 7) };
        assert_eq!(at(106, itself, broke), Verdict::Welcome, "the holder itself waits for nobody");
    }

    #[test]
    fn of_two_copies_of_one_memory_the_one_without_the_newest_epoch_is_told_from_the_other() {
        let twin = claim("a", "a", 6);
        assert_eq!(at(101, twin, holder()), Verdict::Wait);
        assert_eq!(at(101, twin, Holder { answered: true, ..holder() }), Verdict::Clone);
    }

    #[test]
    fn releases_that_do_not_know_instances_are_not_judged() {
        assert_eq!(at(101, claim("", "", 0), holder()), Verdict::Welcome);
        assert_eq!(at(101, claim("b", "", 0), Holder::default()), Verdict::Welcome);
    }
}
