//! The search for an order: a depth-first walk in which each step puts one more call at the end of the order. What has
//! been reached (which calls are placed, and the value then) is remembered and not walked from twice.
//!
//! Four observations keep it small. Each follows from moving a call within an order that explains everything:
//! - A call that only looks, may come next and fits the value now can come at once.
//! - A written value that nobody ever needs can come right before the next one that is set regardless, all such at once.
//! - A call without an answer whose value nobody needs can be left out.
//! - A value that somebody still needs and nobody else makes can't be replaced yet.

use std::collections::BTreeSet;
use std::time::Duration;

use super::need::{ABSENT, Kind, Needs, Op, prepare};
use super::{Call, Judged, zones};

/// States that may be visited to find a longer start of an order for the report, once it is known that there is no
/// whole one.
const BUDGET_TO_TELL: u64 = 4_000;

/// Judges the calls on one key, which come by start.
pub(super) fn judge(calls: &[Call], of_key: &[usize], budget: u64) -> Judged {
    let (ops, needs) = prepare(calls, of_key);
    if let Some(op) = ops.iter().find(|op| needs.is_impossible(op)) {
        let may_precede = |i: &usize| *i != op.call && op.end.is_none_or(|end| calls[*i].start <= end);
        let before: Vec<usize> = of_key.iter().copied().filter(may_precede).collect();
        let (ops, needs) = prepare(calls, &before);
        let mut search = Search::new(&ops, needs, true);
        search.walk(BUDGET_TO_TELL.min(budget));
        return Judged::Broken { longest: search.calls_of(&search.longest), stuck: op.call };
    }
    match zones::order(&ops) {
        Some(Some(order)) => return Judged::Linearizable { order: order.iter().map(|i| ops[*i].call).collect() },
        Some(None) => return broken(&ops, needs, Vec::new()),
        None => {}
    }
    let mut search = Search::new(&ops, needs.clone(), true);
    match search.walk(budget) {
        Walk::Found => Judged::Linearizable { order: search.calls_of(&search.order) },
        Walk::Spent => Judged::TooHard { states: budget },
        Walk::None => broken(&ops, needs, search.longest),
    }
}

/// There is no order. A start of one that ignores what is needed later is longer, and shows where it clashes.
fn broken(ops: &[Op], needs: Needs, longest: Vec<usize>) -> Judged {
    let mut teller = Search::new(ops, needs, false);
    teller.walk(BUDGET_TO_TELL);
    if teller.longest.len() < longest.len() {
        teller.longest = longest;
    }
    let stuck = teller.first_left().expect("an order of all answered calls would have been found");
    Judged::Broken { longest: teller.calls_of(&teller.longest), stuck }
}

/// How a walk ended.
enum Walk {
    Found,
    None,
    Spent,
}

/// What comes after a step.
enum Next {
    Found,
    Dead,
    Spent,
    Try(Vec<usize>),
}

/// A place in the order at which several calls can follow.
struct Fork {
    depth: usize,
    value: usize,
    /// Calls still to be tried, the last one first.
    left: Vec<usize>,
}

struct Search<'a> {
    ops: &'a [Op],
    needs: Needs,
    /// Never replace what is still needed.
    is_careful: bool,
    placed: Vec<u64>,
    order: Vec<usize>,
    value: usize,
    /// Answered calls that are not placed.
    open: usize,
    longest: Vec<usize>,
    visited: BTreeSet<(Box<[u64]>, usize)>,
}

impl<'a> Search<'a> {
    fn new(ops: &'a [Op], needs: Needs, is_careful: bool) -> Self {
        Self {
            ops,
            needs,
            is_careful,
            placed: vec![0; ops.len().div_ceil(64)],
            order: Vec::new(),
            value: ABSENT,
            open: ops.iter().filter(|op| op.end.is_some()).count(),
            longest: Vec::new(),
            visited: BTreeSet::new(),
        }
    }

    fn walk(&mut self, budget: u64) -> Walk {
        let mut forks: Vec<Fork> = Vec::new();
        loop {
            match self.arrive(budget) {
                Next::Found => return Walk::Found,
                Next::Spent => return Walk::Spent,
                Next::Dead => {}
                Next::Try(left) => forks.push(Fork { depth: self.order.len(), value: self.value, left }),
            }
            let next = loop {
                let Some(fork) = forks.last_mut() else { return Walk::None };
                let (depth, value) = (fork.depth, fork.value);
                if let Some(next) = fork.left.pop() {
                    self.back_to(depth, value);
                    break next;
                }
                forks.pop();
            };
            self.step(next);
        }
    }

    /// Places all that can come at once, and says what can follow.
    fn arrive(&mut self, budget: u64) -> Next {
        while let Some(observer) = self.next_observer() {
            self.place(observer);
        }
        if self.order.len() > self.longest.len() {
            self.longest.clone_from(&self.order);
        }
        if self.open == 0 {
            return Next::Found;
        }
        if self.visited.len() as u64 >= budget {
            return Next::Spent;
        }
        if !self.visited.insert((self.placed.clone().into_boxed_slice(), self.value)) {
            return Next::Dead;
        }
        let mut options = Vec::new();
        let mut has_unread = false;
        for i in self.candidates() {
            let is_unread = self.is_unread(i);
            if self.can_follow(i) && !(is_unread && has_unread) {
                has_unread |= is_unread;
                options.push(i);
            }
        }
        // What has to end first is tried first.
        options.sort_by_key(|i| std::cmp::Reverse(self.ops[*i].end.unwrap_or(Duration::MAX)));
        if options.is_empty() { Next::Dead } else { Next::Try(options) }
    }

    fn next_observer(&self) -> Option<usize> {
        self.candidates().find(|i| {
            let kind = self.ops[*i].kind;
            kind.is_observer() && kind.apply(self.value).is_some()
        })
    }

    fn next_unread(&self, but: usize) -> Option<usize> {
        self.candidates().find(|i| *i != but && self.is_unread(*i))
    }

    fn can_follow(&self, i: usize) -> bool {
        let op = &self.ops[i];
        let Some(after) = op.kind.apply(self.value) else { return false };
        let is_useless = op.end.is_none() && (after == self.value || self.needs.is_unread(after));
        let is_needed = self.is_careful && after != self.value && !self.needs.may_replace(self.value, op);
        !op.kind.is_observer() && !is_useless && !is_needed
    }

    /// An answered write of a value that nobody needs.
    fn is_unread(&self, i: usize) -> bool {
        let op = &self.ops[i];
        op.end.is_some() && matches!(op.kind, Kind::Set(value) if self.needs.is_unread(value))
    }

    fn step(&mut self, i: usize) {
        if matches!(self.ops[i].kind, Kind::Set(_)) {
            while let Some(unread) = self.next_unread(i) {
                self.place(unread);
            }
        }
        self.place(i);
    }

    /// Calls that may come next: those that began before any other that is left has ended.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        let full = self.placed.iter().take_while(|word| **word == u64::MAX).count() * 64;
        let mut first_end = Duration::MAX;
        let open = (full..self.ops.len()).filter(|i| !self.is_placed(*i));
        open.take_while(move |i| {
            let op = &self.ops[*i];
            let is_early = op.start <= first_end;
            first_end = first_end.min(op.end.unwrap_or(Duration::MAX));
            is_early
        })
    }

    fn is_placed(&self, i: usize) -> bool {
        self.placed[i / 64] & (1 << (i % 64)) != 0
    }

    fn place(&mut self, i: usize) {
        let op = &self.ops[i];
        self.placed[i / 64] |= 1 << (i % 64);
        self.order.push(i);
        self.needs.remove(op);
        self.open -= usize::from(op.end.is_some());
        self.value = op.kind.apply(self.value).expect("only calls that fit are placed");
    }

    fn back_to(&mut self, depth: usize, value: usize) {
        for i in self.order.drain(depth..) {
            self.placed[i / 64] &= !(1 << (i % 64));
            self.needs.add(&self.ops[i]);
            self.open += usize::from(self.ops[i].end.is_some());
        }
        self.value = value;
    }

    fn calls_of(&self, order: &[usize]) -> Vec<usize> {
        order.iter().map(|i| self.ops[*i].call).collect()
    }

    /// Of the calls that aren't in the longest start of an order, the one that ends first.
    fn first_left(&self) -> Option<usize> {
        let placed: BTreeSet<usize> = self.longest.iter().copied().collect();
        let left = (0..self.ops.len()).filter(|i| self.ops[*i].end.is_some() && !placed.contains(i));
        left.min_by_key(|i| self.ops[*i].end).map(|i| self.ops[i].call)
    }
}
