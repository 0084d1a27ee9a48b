//! Remembers what the real state answered: the search comes to the same state with other agents again and again, and to
//! apply and to reconcile is by far the dearest of what it does.

use cara_core::{Applied, Command, Entry, State, invariant};
use prost::Message;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// A state that the search has come to, shared by all that come to it.
#[derive(Clone)]
pub struct Known {
    pub state: Rc<State>,
    /// Tells it from every other: all of it but times, revisions and texts.
    pub id: u64,
    /// The same without what only rises: what tells one state of the search from another.
    pub key: u64,
}

/// A question to a state that was asked before: its id and the question's bytes.
type Asked = (u64, Vec<u8>);

/// What a leader asked for in a state, with its timers new or run out.
type Decisions = BTreeMap<(u64, bool), Rc<Vec<Command>>>;

#[derive(Default)]
pub struct Memo {
    after: RefCell<BTreeMap<Asked, (Known, bool)>>,
    decisions: RefCell<Decisions>,
}

impl Memo {
    /// The state after a command, and whether anything happened.
    pub fn apply(&self, from: &Known, entry: Entry, keys: impl Fn(&State) -> (u64, u64)) -> (Known, bool) {
        let asked = (from.id, entry.command.encode_to_vec());
        if let Some(answer) = self.after.borrow().get(&asked) {
            return answer.clone();
        }
        let mut state = (*from.state).clone();
        let revision = state.revision().0 + 1;
        let Applied { events, .. } = state.apply_entry(revision, entry);
        let mut violations = invariant::check(&state);
        violations.extend(invariant::check_step(&from.state, &state));
        assert!(violations.is_empty(), "{violations:#?}");
        let (id, key) = keys(&state);
        let answer = (Known { state: Rc::new(state), id, key }, !events.is_empty());
        self.after.borrow_mut().insert(asked, answer.clone());
        answer
    }

    /// What a leader asks for in this state.
    pub fn decide(&self, at: &Known, late: bool, decide: impl Fn(&State) -> Vec<Command>) -> Rc<Vec<Command>> {
        let known = self.decisions.borrow().get(&(at.id, late)).cloned();
        known.unwrap_or_else(|| {
            let decision = Rc::new(decide(&at.state));
            self.decisions.borrow_mut().insert((at.id, late), decision.clone());
            decision
        })
    }
}

/// The hash of anything, the same in every run.
pub fn hash_of(parts: &impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    parts.hash(&mut hash);
    hash.finish()
}
