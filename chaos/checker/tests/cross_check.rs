//! Our linearizability checker against two others: one of another author for complete histories, and the plainest
//! possible search for small ones with unknown outcomes. Histories come from a register that really ran with random
//! delays, and from changing one answer in such a history.

use std::time::{Duration, Instant};

use cara_checker::linear::{Act, BUDGET, Call, Judged, check};
use todc_utils::{Action, History, Specification, WGLChecker};

const DELETE: Act = Act::Delete { found: None };

/// The numbers of a seed: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// What a history is made of.
#[derive(Clone, Copy)]
struct Shape {
    calls: usize,
    clients: usize,
    /// Few values clash often; 0: each write has a value of its own.
    values: usize,
    /// One in so many calls is never answered; 0: none.
    lost: usize,
    /// With swaps and deletes that tell what they found.
    is_rich: bool,
    has_deletes: bool,
}

enum Client {
    Idle,
    /// It was sent and may take effect; then the answer may come.
    Sent {
        call: usize,
        took_effect: bool,
    },
}

/// A history of a register that really ran.
fn run(dice: &mut Dice, shape: Shape) -> Vec<Call> {
    let mut register = None;
    let mut calls: Vec<Call> = Vec::new();
    let mut clients: Vec<Client> = (0..shape.clients).map(|_| Client::Idle).collect();
    for tick in 0.. {
        let now = Duration::from_millis(tick);
        let who = dice.below(shape.clients);
        clients[who] = match clients[who] {
            Client::Idle if calls.len() == shape.calls => {
                if clients.iter().all(|client| matches!(client, Client::Idle)) {
                    return calls;
                }
                continue;
            }
            Client::Idle => {
                let act = ask(dice, shape, calls.len() as u64, register);
                let (client, key, answered_by) = (format!("c{who}"), "k".to_owned(), String::new());
                calls.push(Call { client, key, act, start: now, end: None, answered_by });
                Client::Sent { call: calls.len() - 1, took_effect: false }
            }
            Client::Sent { call, .. } if shape.lost > 0 && dice.one_in(shape.lost) => {
                let _ = call;
                Client::Idle
            }
            Client::Sent { call, took_effect: false } => {
                calls[call].act = act_on(&mut register, calls[call].act);
                Client::Sent { call, took_effect: true }
            }
            Client::Sent { call, took_effect: true } => {
                calls[call].end = Some(now);
                Client::Idle
            }
        };
    }
    unreachable!("ticks never end")
}

fn ask(dice: &mut Dice, shape: Shape, next: u64, now: Option<u64>) -> Act {
    let value = match shape.values {
        0 => 100 + next,
        values => dice.below(values) as u64,
    };
    match dice.below(if shape.is_rich { 8 } else { 5 }) {
        0 | 1 => Act::Write(value),
        2 | 3 => Act::Read(None),
        4 => {
            if shape.has_deletes && dice.one_in(2) {
                DELETE
            } else {
                Act::Write(value)
            }
        }
        5 => Act::Delete { found: Some(false) },
        _ => Act::CompareAndSet { expected: if dice.one_in(3) { Some(value) } else { now }, new: value, done: false },
    }
}

/// Lets it happen, with the true answer.
fn act_on(register: &mut Option<u64>, act: Act) -> Act {
    let before = *register;
    match act {
        Act::Read(_) => return Act::Read(before),
        Act::Write(value) => *register = Some(value),
        Act::Delete { found } => {
            *register = None;
            return Act::Delete { found: found.map(|_| before.is_some()) };
        }
        Act::CompareAndSet { expected, new, .. } => {
            let done = expected == before;
            if done {
                *register = Some(new);
            }
            return Act::CompareAndSet { expected, new, done };
        }
    }
    act
}

/// Changes one answer, which makes most histories wrong.
fn spoil(dice: &mut Dice, calls: &mut [Call]) {
    let values: Vec<Option<u64>> = calls
        .iter()
        .filter_map(|call| if let Act::Write(value) = call.act { Some(Some(value)) } else { None })
        .chain([None])
        .collect();
    for _ in 0..100 {
        let i = dice.below(calls.len());
        let act = &mut calls[i].act;
        match act {
            Act::Read(value) => *value = values[dice.below(values.len())],
            Act::CompareAndSet { done, .. } => *done = !*done,
            Act::Delete { found: Some(found) } => *found = !*found,
            Act::Delete { found: None } | Act::Write(_) => continue,
        }
        return;
    }
}

/// What the act makes of a value; none if its answer doesn't fit.
fn fits(act: Act, is_answered: bool, value: Option<u64>) -> Option<Option<u64>> {
    let mut after = value;
    let truth = act_on(&mut after, act);
    (!is_answered || truth == act).then_some(after)
}

struct Register;

impl Specification for Register {
    type State = Option<u64>;
    type Operation = Act;

    fn init() -> Option<u64> {
        None
    }

    fn apply(act: &Act, state: &Option<u64>) -> (bool, Option<u64>) {
        fits(*act, true, *state).map_or((false, *state), |after| (true, after))
    }
}

fn theirs(calls: &[Call]) -> bool {
    let mut events = Vec::new();
    for call in calls {
        let client: usize = call.client[1..].parse().expect("clients are c0, c1, ...");
        events.push((call.start, client, Action::Call(call.act)));
        events.push((call.end.expect("only complete histories are compared"), client, Action::Response(call.act)));
    }
    events.sort_by_key(|(at, ..)| *at);
    let actions = events.into_iter().map(|(_, client, action)| (client, action)).collect();
    WGLChecker::<Register>::is_linearizable(History::from_actions(actions))
}

/// Tries every order.
fn plainest(calls: &[Call], left: u32, value: Option<u64>) -> bool {
    let open = || (0..calls.len()).filter(move |i| left & (1 << i) != 0);
    if open().all(|i| calls[i].end.is_none()) {
        return true;
    }
    let first_end = open().filter_map(|i| calls[i].end).min().expect("an answered call is left");
    open().filter(|i| calls[*i].start <= first_end).any(|i| {
        let after = fits(calls[i].act, calls[i].end.is_some(), value);
        after.is_some_and(|after| plainest(calls, left & !(1 << i), after))
    })
}

fn ours(calls: &[Call]) -> bool {
    match check(calls, BUDGET).remove(0).judged {
        Judged::Linearizable { order } => {
            let answered = calls.iter().filter(|call| call.end.is_some()).count();
            let placed = order.iter().filter(|i| calls[**i].end.is_some()).count();
            assert_eq!(placed, answered, "every answered call has a place");
            explains(calls, &order);
            true
        }
        Judged::Broken { longest, stuck } => {
            assert!(!longest.contains(&stuck) && calls[stuck].end.is_some());
            explains(calls, &longest);
            false
        }
        Judged::TooHard { states } => panic!("not judged within {states} states: {calls:?}"),
    }
}

/// The order explains the answers of the calls in it and respects real time.
fn explains(calls: &[Call], order: &[usize]) {
    let mut value = None;
    let mut latest_start = Duration::ZERO;
    for i in order {
        let call = &calls[*i];
        assert!(call.end.is_none_or(|end| end >= latest_start), "{i} is placed after one that began when it had ended");
        latest_start = latest_start.max(call.start);
        value = fits(call.act, call.end.is_some(), value).expect("each answer fits");
    }
}

#[test]
fn complete_histories_are_judged_as_another_checker_does() {
    let mut invalid = 0;
    for seed in 0..6_000 {
        let mut dice = Dice(seed);
        let values = [0, 2, 3, 5][dice.below(4)];
        let shape = Shape {
            calls: 4 + dice.below(22),
            clients: 2 + dice.below(4),
            values,
            lost: 0,
            is_rich: dice.one_in(2),
            has_deletes: dice.one_in(2),
        };
        let mut calls = run(&mut dice, shape);
        assert!(ours(&calls) && theirs(&calls), "seed {seed}: {calls:?}");
        spoil(&mut dice, &mut calls);
        let verdict = theirs(&calls);
        assert_eq!(ours(&calls), verdict, "seed {seed}: {calls:?}");
        invalid += u32::from(!verdict);
    }
    assert!(invalid > 2_000, "only {invalid} histories were wrong");
}

#[test]
fn histories_with_unknown_outcomes_are_judged_as_the_plainest_search_does() {
    let mut invalid = 0;
    for seed in 0..6_000 {
        let mut dice = Dice(seed ^ 0xABCD_0000);
        let values = [0, 2, 3][dice.below(3)];
        let shape = Shape {
            calls: 3 + dice.below(5),
            clients: 3,
            values,
            lost: 4,
            is_rich: dice.one_in(2),
            has_deletes: dice.one_in(2),
        };
        let mut calls = run(&mut dice, shape);
        // Its answer was never heard.
        calls.retain(|call| call.end.is_some() || !matches!(call.act, Act::Read(_)));
        if calls.is_empty() {
            continue;
        }
        let all = (1 << calls.len()) - 1;
        assert!(ours(&calls) && plainest(&calls, all, None), "seed {seed}: {calls:?}");
        spoil(&mut dice, &mut calls);
        let verdict = plainest(&calls, all, None);
        assert_eq!(ours(&calls), verdict, "seed {seed}: {calls:?}");
        invalid += u32::from(!verdict);
    }
    assert!(invalid > 1_000, "only {invalid} histories were wrong");
}

/// As scenarios make them: many clients on one key, some calls without an answer. No bound in seconds, which a busy
/// machine would miss; `ours` fails when a search leaves its budget.
#[test]
fn long_histories_are_judged_within_the_budget() {
    #[expect(clippy::disallowed_methods, reason = "the time is only printed")]
    let begin = Instant::now();
    let mut invalid = 0;
    for seed in 0..120 {
        let mut dice = Dice(seed ^ 0x1234_0000);
        let is_rich = seed % 4 == 0;
        let clients = if is_rich { 8 } else { 12 + dice.below(189) };
        let shape = Shape { calls: 200, clients, values: 0, lost: 25, is_rich, has_deletes: is_rich };
        let mut calls = run(&mut dice, shape);
        assert!(ours(&calls), "seed {seed}");
        spoil(&mut dice, &mut calls);
        invalid += u32::from(!ours(&calls));
    }
    println!("240 histories of 200 calls took {:?}; {invalid} were wrong", begin.elapsed());
    assert!(invalid > 40, "only {invalid} histories were wrong");
}
