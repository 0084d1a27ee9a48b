//! What can happen next: what the leader and the agents do by themselves, and what the adversary does to them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The leader compares and acts; each time a leader that remembers nothing.
    Lead,
    /// The same after so long that every timer has run out.
    LeadLate,
    Take(usize),
    Act(usize),
    Copy(usize),
    Write(usize),
    Report(usize),
    Deliver(usize),
    /// Whatever is broken about the machine is mended, and it connects.
    Heal(usize),
    ApplyHeld,
    // Faults.
    HoldCommand,
    Delay(usize),
    Crash(usize),
    RestartProcess(usize),
    Offline(usize),
    BreakStart(usize),
    BreakCopy(usize),
    Cancel,
    Lose(usize),
}

impl Action {
    pub fn is_fault(self) -> bool {
        use Action::*;
        match self {
            HoldCommand | Delay(_) | Crash(_) | RestartProcess(_) | Offline(_) | BreakStart(_) | BreakCopy(_)
            | Cancel | Lose(_) => true,
            Lead | LeadLate | Take(_) | Act(_) | Copy(_) | Write(_) | Report(_) | Deliver(_) | Heal(_) | ApplyHeld => {
                false
            }
        }
    }

    pub fn all() -> Vec<Action> {
        use Action::*;
        let mut all = vec![Lead, LeadLate, ApplyHeld, HoldCommand, Cancel];
        for node in 0..2 {
            all.extend([Take(node), Act(node), Copy(node), Write(node), Report(node), Deliver(node), Heal(node)]);
            all.extend([Delay(node), Crash(node), RestartProcess(node), Offline(node), BreakStart(node)]);
            all.extend([BreakCopy(node), Lose(node)]);
        }
        all
    }
}
