//! What a seed makes of a scenario: every fault and operation with its time, nothing left to chance but whom a target
//! means when its moment comes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::check;
use crate::kind::{Kind, OpKind};
use crate::rng::Stream;
use crate::scenario::{Budget, Cluster, Dir, Expect, Fault, On, PlannedOp, Scenario, Workload};
use crate::time::{Span, SpanRange, Step};

/// More times of one `every` than these are a mistake.
const TIMES_MAX: usize = 500;
/// More operations of one client than these are a mistake.
const OPS_MAX: usize = 20_000;
/// A cluster without faults comes to rest within this, unless the scenario says otherwise.
const CONVERGE: Duration = Duration::from_secs(120);

/// One run, ready to go.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario's name.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// How long clients work and faults go on.
    pub duration: Duration,
    /// The step of time.
    pub grain: Duration,
    /// After the heal everything is as it shall be within this.
    pub converge_within: Duration,
    /// The machines.
    pub cluster: Cluster,
    /// How long a client waits for one answer, at least and at most.
    pub patience: (Duration, Duration),
    /// Clients that follow all changes.
    pub watchers: usize,
    /// What clients do, in the order of time.
    pub ops: Vec<PlannedOp>,
    /// What breaks, in the order of the file.
    pub faults: Vec<PlannedFault>,
    /// Faults that are on at the same time, at most.
    pub active_max: Option<usize>,
    /// Machines that race for one token.
    pub racers: usize,
    /// What must happen at least once.
    pub sometimes: Vec<Sometimes>,
    /// What may happen so often and no more.
    pub at_most: Vec<(String, u64)>,
    /// What the seed chose, one line each.
    pub choices: Vec<String>,
    /// What it was made of.
    scenario: Scenario,
}

/// An event that must happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sometimes {
    /// Its name.
    pub event: String,
    /// During this fault.
    pub during: Option<String>,
    /// How often at least.
    pub at_least: u64,
}

/// A fault with its parameters drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFault {
    /// Its id; those of an `every` have a number behind it: `stall#3`.
    pub id: String,
    /// When.
    pub when: When,
    /// What.
    pub what: What,
    /// Whom.
    pub target: String,
    /// The name under which later faults find the same machines.
    pub bind: Option<String>,
    /// For how long.
    pub lasts: Duration,
    /// May it take more than the design promises to survive?
    pub budget: Budget,
}

/// When a fault begins.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// At this time after the begin of the work.
    At(Duration),
    /// So long after another fault began.
    After(String, Duration),
    /// When a chaos point is reached.
    On(On, Duration),
}

/// What happens, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct What {
    /// The kind.
    pub kind: Kind,
    /// The other end of a link.
    pub to: Option<String>,
    /// Only from the targets to the other end.
    pub is_oneway: bool,
    /// How much longer something takes, least and greatest.
    pub add: (Duration, Duration),
    /// How many bytes a second pass.
    pub bytes_per_second: u64,
    /// How far a clock jumps, in ms.
    pub step_ms: i64,
    /// How wrong clocks run.
    pub ppm: i64,
}

/// What a seed makes of a scenario.
pub fn plan(scenario: &Scenario, seed: u64) -> Plan {
    let mut choices = Vec::new();
    let workload = swarm_mix(scenario, seed, &mut choices);
    let kept = scenario.fault.iter().filter(|fault| keep(scenario, fault, seed, &mut choices));
    let faults = kept.flat_map(|fault| planned(fault, seed, scenario.run.duration.0)).collect();
    let wants = scenario.expect.iter().flat_map(|expect| &expect.sometimes);
    let at_most = scenario.expect.iter().flat_map(|expect| &expect.at_most);
    let at_most = at_most.map(|(event, count)| (event.clone(), *count)).collect();
    Plan {
        name: scenario.name.clone(),
        seed,
        duration: scenario.run.duration.0,
        grain: scenario.run.grain.0,
        converge_within: converge_within(&scenario.expect),
        cluster: scenario.cluster.clone(),
        patience: workload.patience.bounds(),
        watchers: workload.watchers,
        ops: ops(scenario, &workload, seed),
        faults,
        active_max: scenario.run.active_max,
        racers: workload.racers,
        sometimes: wants.map(|want| wish(want)).collect(),
        at_most,
        choices,
        scenario: scenario.clone(),
    }
}

/// `event`, `event*20`, `event@fault` or both.
fn wish(want: &str) -> Sometimes {
    let (event, during) = want.split_once('@').map_or((want, None), |(event, fault)| (event, Some(fault.to_owned())));
    let (event, count) = event.split_once('*').unwrap_or((event, "1"));
    Sometimes { event: event.to_owned(), during, at_least: count.parse().unwrap_or(1) }
}

fn converge_within(expect: &[Expect]) -> Duration {
    let bounds = expect.iter().filter(|expect| !expect.eventually_always.is_empty());
    bounds.filter_map(|expect| expect.within).map(|span| span.0).min().unwrap_or(CONVERGE)
}

fn keep(scenario: &Scenario, fault: &Fault, seed: u64, choices: &mut Vec<String>) -> bool {
    let is_kept =
        !(scenario.run.swarm && fault.optional) || Stream::new(seed, &format!("keep/{}", fault.id)).chance(50);
    if !is_kept {
        choices.push(format!("without {}", fault.id));
    }
    is_kept
}

/// A swarm weighs operations anew, and leaves some kinds out.
fn swarm_mix(scenario: &Scenario, seed: u64, choices: &mut Vec<String>) -> Workload {
    let mut workload = scenario.workload.clone();
    if workload.mix.is_empty() {
        workload.mix = OpKind::USUAL.iter().copied().collect();
    }
    if scenario.run.swarm && workload.ops.is_none() {
        let mut rng = Stream::new(seed, "mix");
        for (kind, weight) in &mut workload.mix {
            // Reads and writes are what the rest is judged by.
            let is_kept = matches!(kind, OpKind::Read | OpKind::Write) || rng.chance(75);
            *weight = if is_kept { (*weight * rng.between(50, 200)).div_ceil(100) } else { 0 };
        }
        let mix: Vec<String> = workload.mix.iter().map(|(kind, weight)| format!("{kind} {weight}")).collect();
        choices.push(format!("mix: {}", mix.join(", ")));
    }
    workload
}

fn ops(scenario: &Scenario, workload: &Workload, seed: u64) -> Vec<PlannedOp> {
    if let Some(ops) = &workload.ops {
        return ops.clone();
    }
    let total: u64 = workload.mix.values().sum();
    let mut ops = Vec::new();
    for number in 1..=scenario.cluster.clients {
        let client = format!("client{number}");
        let mut rng = Stream::new(seed, &format!("ops/{client}"));
        let mut at = Duration::ZERO;
        for nth in 1..=OPS_MAX as u64 {
            at += rng.duration(workload.pause.bounds()).max(Duration::from_millis(1));
            if at >= scenario.run.duration.0 || total == 0 {
                break;
            }
            let kind = weighted(&workload.mix, rng.below(total));
            ops.push(PlannedOp { client: client.clone(), nth, at: Span(at), kind, subject: rng.below(1 << 16) });
        }
    }
    ops.sort_by_key(|op| (op.at.0, op.client.clone()));
    ops
}

fn weighted(mix: &std::collections::BTreeMap<OpKind, u64>, mut at: u64) -> OpKind {
    for (kind, weight) in mix {
        if at < *weight {
            return *kind;
        }
        at -= weight;
    }
    OpKind::Read
}

/// The fault with everything drawn; an `every` gives one for each of its times.
fn planned(fault: &Fault, seed: u64, duration: Duration) -> Vec<PlannedFault> {
    let mut rng = Stream::new(seed, &format!("fault/{}", fault.id));
    let whens: Vec<When> = match (&fault.at, &fault.every, &fault.after, &fault.on) {
        (Some(at), ..) => vec![When::At(rng.duration(at.bounds()))],
        (_, Some(every), ..) => {
            let mut times = Vec::new();
            let mut at = Duration::ZERO;
            while times.len() < TIMES_MAX {
                at += rng.duration((every.mean.0 / 4, every.mean.0 * 7 / 4));
                if at >= duration {
                    break;
                }
                times.push(When::At(at));
            }
            times
        }
        (_, _, Some(after), _) => {
            let (id, delay) = check::after(after).unwrap_or_default();
            vec![When::After(id, delay)]
        }
        (_, _, _, Some(on)) => {
            let delay = on.delay.map_or(Duration::ZERO, |delay| rng.duration(delay.bounds()));
            vec![When::On(on.clone(), delay)]
        }
        _ => Vec::new(),
    };
    let is_one = fault.every.is_none();
    whens
        .into_iter()
        .enumerate()
        .map(|(i, when)| PlannedFault {
            id: if is_one { fault.id.clone() } else { format!("{}#{}", fault.id, i + 1) },
            when,
            what: what(fault, &mut rng),
            target: fault.target.clone(),
            bind: fault.bind.clone(),
            lasts: rng.duration(fault.lasts.bounds()),
            budget: fault.budget.unwrap_or(Budget::Survivable),
        })
        .collect()
}

fn drawn(rng: &mut Stream, below: u64) -> i64 {
    i64::try_from(rng.below(below)).unwrap_or_default()
}

fn what(fault: &Fault, rng: &mut Stream) -> What {
    /// A clock that jumps further than a certificate is old makes every peer refuse it: not by default.
    const STEP_MS: (i64, i64) = (-30_000, 30_000);
    const ADD: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(400));
    /// From a bad mobile link to one over which a cluster's own traffic hardly fits.
    const RATE: (u64, u64) = (4_000, 200_000);
    let steps = fault.by.as_deref().map(|by| (by[0].0, by[by.len() - 1].0)).unwrap_or(STEP_MS);
    let (from, to) = (steps.0.min(steps.1), steps.0.max(steps.1));
    What {
        kind: fault.what,
        to: fault.to.clone(),
        is_oneway: fault.dir == Some(Dir::Oneway),
        add: fault.add.map_or(ADD, SpanRange::bounds),
        bytes_per_second: match (fault.bytes_per_second, fault.what.takes_rate()) {
            (Some(rate), _) => rate,
            (None, true) => rng.between(RATE.0, RATE.1),
            (None, false) => 0,
        },
        step_ms: if fault.what.takes_by() { from + drawn(rng, to.abs_diff(from) + 1) } else { 0 },
        ppm: fault.ppm.unwrap_or_else(|| if fault.what.takes_ppm() { drawn(rng, 801) - 400 } else { 0 }),
    }
}

impl Plan {
    /// Ids of faults that must begin, or the run proves less than it says. A swarm may leave out what it likes.
    pub fn required_faults(&self) -> BTreeSet<String> {
        let faults = self.scenario.fault.iter().filter(|fault| !fault.optional && !self.scenario.run.swarm);
        faults.map(|fault| fault.id.clone()).collect()
    }

    /// What happens and what is right, for people.
    pub fn about(&self) -> &str {
        &self.scenario.about
    }

    /// Everything written out again: a scenario without chance, of which parts can be taken away.
    pub fn to_scenario(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.cluster.clone_from(&self.cluster);
        scenario.workload =
            Workload { ops: Some(self.ops.clone()), watchers: self.watchers, ..scenario.workload.clone() };
        scenario.run.swarm = false;
        scenario.run.seeds = self.seed.to_string();
        scenario.run.active_max = self.active_max;
        scenario.fault = self.faults.iter().map(explicit).collect();
        // A wish for something during a fault of an `every` is kept as a wish for the event.
        let ids: Vec<&String> = scenario.fault.iter().map(|fault| &fault.id).collect();
        for expect in &mut scenario.expect {
            for want in &mut expect.sometimes {
                let known = want.split_once('@').is_none_or(|(_, fault)| ids.iter().any(|id| **id == fault));
                if !known {
                    *want = want.split('@').next().unwrap_or_default().to_owned();
                }
            }
        }
        scenario
    }
}

fn explicit(fault: &PlannedFault) -> Fault {
    let fixed = |duration| SpanRange::Fixed(Span(duration));
    let kind = fault.what.kind;
    let (mut at, mut after, mut on) = (None, None, None);
    match &fault.when {
        When::At(time) => at = Some(fixed(*time)),
        When::After(id, delay) => after = Some(format!("{id}+{}", crate::time::duration_text(*delay))),
        When::On(event, delay) => on = Some(On { delay: Some(fixed(*delay)), ..event.clone() }),
    }
    Fault {
        id: fault.id.clone(),
        at,
        every: None,
        after,
        on,
        what: fault.what.kind,
        target: fault.target.clone(),
        to: fault.what.to.clone(),
        dir: fault.what.is_oneway.then_some(Dir::Oneway),
        bind: fault.bind.clone(),
        lasts: fixed(fault.lasts),
        add: kind.takes_add().then_some(SpanRange::Between([Span(fault.what.add.0), Span(fault.what.add.1)])),
        bytes_per_second: kind.takes_rate().then_some(fault.what.bytes_per_second),
        by: kind.takes_by().then(|| vec![Step(fault.what.step_ms)]),
        ppm: kind.takes_ppm().then_some(fault.what.ppm),
        optional: false,
        budget: Some(fault.budget),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        format = 1
        name = "x"
        [run]
        duration = "40s"
        swarm = true
        [[fault]]
        id = "stall"
        every = { mean = "5s" }
        what = "stall_disk"
        target = "follower:any"
        for = ["1s", "4s"]
        [[fault]]
        id = "maybe"
        at = "3s"
        what = "crash"
        target = "leader"
        optional = true
        [[expect]]
        sometimes = ["raft.elected@stall"]
    "#;

    #[test]
    fn what_a_plan_writes_out_is_planned_as_the_same_run() {
        for seed in 1..=20 {
            let first = plan(&Scenario::parse(TEXT).expect("a scenario"), seed);
            let text = first.to_scenario().to_toml();
            let again = plan(&Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), seed);
            assert_eq!(first.faults, again.faults);
            assert_eq!(first.ops, again.ops);
            assert_eq!(again.to_scenario().to_toml(), text, "seed {seed}");
        }
    }

    #[test]
    fn taking_a_fault_away_moves_no_other() {
        let whole = Scenario::parse(TEXT).expect("a scenario");
        let mut less = whole.clone();
        less.fault.remove(1);
        let stalls = |scenario: &Scenario| {
            plan(scenario, 5).faults.into_iter().filter(|fault| fault.id.starts_with("stall")).collect::<Vec<_>>()
        };
        assert_eq!(stalls(&whole), stalls(&less));
        assert!(stalls(&whole).len() > 3);
    }

    #[test]
    fn a_swarm_leaves_optional_faults_out_for_some_seeds_and_says_so() {
        let scenario = Scenario::parse(TEXT).expect("a scenario");
        let plans: Vec<Plan> = (1..=20).map(|seed| plan(&scenario, seed)).collect();
        let has = |plan: &Plan| plan.faults.iter().any(|fault| fault.id == "maybe");
        assert!(plans.iter().any(has) && !plans.iter().all(has));
        for plan in plans.iter().filter(|plan| !has(plan)) {
            assert!(plan.choices.contains(&"without maybe".to_owned()), "{:?}", plan.choices);
        }
    }
}
