//! The calls on one key, prepared for the search: values as small numbers, and which value is still needed by whom.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Act, Call};

/// The number of the value "absent".
pub(super) const ABSENT: usize = 0;

/// A call, prepared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// Its place in the list of calls.
    pub(super) call: usize,
    pub(super) start: Duration,
    /// None: it may happen at any time, or never.
    pub(super) end: Option<Duration>,
    pub(super) kind: Kind,
}

/// What an operation demands of the value, and what it makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Demands this value and leaves it.
    Is(usize),
    /// Demands any other value and leaves it.
    IsNot(usize),
    /// Sets a value whatever it was.
    Set(usize),
    /// Demands one value and sets another.
    Swap(usize, usize),
    /// Demands any value but absent, and makes it absent.
    Take,
}

impl Kind {
    /// The value afterwards; none if it can't happen at this value.
    pub(super) fn apply(self, value: usize) -> Option<usize> {
        match self {
            Self::Is(wanted) => (value == wanted).then_some(value),
            Self::IsNot(unwanted) => (value != unwanted).then_some(value),
            Self::Set(new) => Some(new),
            Self::Swap(wanted, new) => (value == wanted).then_some(new),
            Self::Take => (value != ABSENT).then_some(ABSENT),
        }
    }

    /// Leaves every value as it is.
    pub(super) fn is_observer(self) -> bool {
        matches!(self, Self::Is(_) | Self::IsNot(_))
    }

    fn wants(self) -> Option<usize> {
        match self {
            Self::Is(wanted) | Self::Swap(wanted, _) => Some(wanted),
            Self::IsNot(_) | Self::Set(_) | Self::Take => None,
        }
    }

    fn makes(self) -> Option<usize> {
        match self {
            Self::Set(new) | Self::Swap(_, new) => Some(new),
            Self::Take => Some(ABSENT),
            Self::Is(_) | Self::IsNot(_) => None,
        }
    }
}

/// Prepares calls, which come by start. Reads without an answer say nothing and are left out.
pub(super) fn prepare(calls: &[Call], of_key: &[usize]) -> (Vec<Op>, Needs) {
    let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut number = |value: u64| {
        let next = numbers.len() + 1;
        *numbers.entry(value).or_insert(next)
    };
    let mut ops = Vec::new();
    for i in of_key {
        let call = &calls[*i];
        let is_answered = call.end.is_some();
        let kind = match call.act {
            Act::Read(_) if !is_answered => continue,
            Act::Read(value) => Kind::Is(value.map_or(ABSENT, &mut number)),
            Act::Write(value) => Kind::Set(number(value)),
            Act::Delete { found: Some(true) } if is_answered => Kind::Take,
            Act::Delete { found: Some(false) } if is_answered => Kind::Is(ABSENT),
            Act::Delete { .. } => Kind::Set(ABSENT),
            Act::CompareAndSet { expected, done: false, .. } if is_answered => {
                Kind::IsNot(expected.map_or(ABSENT, &mut number))
            }
            Act::CompareAndSet { expected, new, .. } => Kind::Swap(expected.map_or(ABSENT, &mut number), number(new)),
        };
        ops.push(Op { call: *i, start: call.start, end: call.end.map(|end| end.max(call.start)), kind });
    }
    let mut needs = Needs { of: vec![Need::default(); numbers.len() + 1], others: 0 };
    ops.iter().for_each(|op| needs.add(op));
    (ops, needs)
}

/// Who still needs a value, and who can still make it.
#[derive(Debug, Clone, Copy, Default)]
struct Need {
    /// Answered calls that demand it.
    must: usize,
    /// Calls without an answer that demand it.
    may: usize,
    /// Calls that can make it.
    makers: usize,
}

/// What the calls that aren't placed yet need.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    of: Vec<Need>,
    /// Answered calls that demand that the value be another one than some.
    others: usize,
}

impl Needs {
    /// The call is not placed (any more).
    pub(super) fn add(&mut self, op: &Op) {
        self.change(op, |count| *count += 1);
    }

    /// The call is placed.
    pub(super) fn remove(&mut self, op: &Op) {
        self.change(op, |count| *count -= 1);
    }

    /// Does it matter to nobody whether the value is ever this one?
    pub(super) fn is_unread(&self, value: usize) -> bool {
        self.others == 0 && self.of[value].must == 0 && self.of[value].may == 0
    }

    /// May `op` replace this value, or does somebody still need it that nobody else can make?
    pub(super) fn may_replace(&self, value: usize, op: &Op) -> bool {
        let own = usize::from(op.end.is_some() && op.kind.wants() == Some(value));
        self.of[value].must == own || self.of[value].makers > 0
    }

    /// A value is demanded that nobody makes and that isn't there in the beginning.
    pub(super) fn is_impossible(&self, op: &Op) -> bool {
        let wants = op.kind.wants().filter(|wanted| op.end.is_some() && *wanted != ABSENT);
        wants.is_some_and(|wanted| self.of[wanted].makers == 0)
    }

    fn change(&mut self, op: &Op, by: impl Fn(&mut usize)) {
        if let Some(wanted) = op.kind.wants() {
            let need = &mut self.of[wanted];
            by(if op.end.is_some() { &mut need.must } else { &mut need.may });
        }
        if let Some(made) = op.kind.makes() {
            by(&mut self.of[made].makers);
        }
        if op.end.is_some() && matches!(op.kind, Kind::IsNot(_) | Kind::Take) {
            by(&mut self.others);
        }
    }
}
