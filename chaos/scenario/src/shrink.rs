//! The least that still fails: delta debugging over the faults and operations of a written-out scenario.

use std::time::Duration;

use crate::scenario::Scenario;
use crate::time::Span;

/// After the finding the run goes on for this long, in the shortened scenario.
const TAIL: Duration = Duration::from_secs(1);

/// A part that can be taken away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Fault(String),
    Op(String, u64),
}

/// How far a scenario was shrunk.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    /// The least that was found.
    pub scenario: Scenario,
    /// Faults before and after.
    pub faults: (usize, usize),
    /// Operations before and after.
    pub ops: (usize, usize),
    /// Runs that it took.
    pub runs: u64,
    /// No single part can be taken away any more. False when the runs were used up before.
    pub is_least: bool,
}

/// What a run of a candidate showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// The same rule is broken, at this time after the begin of the work.
    Same(Duration),
    /// Nothing, or something else.
    Else,
}

/// Shrinks. `test` runs a candidate; it is asked at most `runs_max` times.
///
/// # Errors
/// When the scenario as it is doesn't fail, or what `test` says.
pub fn shrink<E>(
    scenario: &Scenario,
    runs_max: u64,
    mut test: impl FnMut(&Scenario) -> Result<Shows, E>,
) -> Result<Option<Shrunk>, E> {
    let Shows::Same(mut at) = test(scenario)? else { return Ok(None) };
    let count = |scenario: &Scenario| (scenario.fault.len(), scenario.workload.ops.as_ref().map_or(0, Vec::len));
    let mut least = Least { scenario: scenario.clone(), runs: 1, runs_max };
    // The end of a run first: what comes after the finding is all waste.
    let mut shorter = least.scenario.clone();
    shorter.run.duration = Span(at.min(scenario.run.duration.0) + TAIL);
    if least.takes(shorter, &mut at, &mut test)? {
        let until = least.scenario.run.duration.0;
        if let Some(ops) = &mut least.scenario.workload.ops {
            ops.retain(|op| op.at.0 <= until);
        }
    }
    let faults = |scenario: &Scenario| scenario.fault.iter().map(|fault| Part::Fault(fault.id.clone())).collect();
    let ops = |scenario: &Scenario| {
        let ops = scenario.workload.ops.iter().flatten();
        ops.map(|op| Part::Op(op.client.clone(), op.nth)).collect()
    };
    let mut is_least = false;
    while !is_least && least.runs < least.runs_max {
        let before = count(&least.scenario);
        least.without(faults, &mut at, &mut test)?;
        least.without(ops, &mut at, &mut test)?;
        is_least = count(&least.scenario) == before && least.runs < least.runs_max;
    }
    let (before, after) = (count(scenario), count(&least.scenario));
    Ok(Some(Shrunk {
        scenario: least.scenario,
        faults: (before.0, after.0),
        ops: (before.1, after.1),
        runs: least.runs,
        is_least,
    }))
}

struct Least {
    scenario: Scenario,
    runs: u64,
    runs_max: u64,
}

impl Least {
    /// Keeps the candidate if it fails the same way.
    fn takes<E>(
        &mut self,
        candidate: Scenario,
        at: &mut Duration,
        test: &mut impl FnMut(&Scenario) -> Result<Shows, E>,
    ) -> Result<bool, E> {
        self.runs += 1;
        let Shows::Same(when) = test(&candidate)? else { return Ok(false) };
        *at = when;
        self.scenario = candidate;
        Ok(true)
    }

    /// Takes parts away: all of them, then halves, quarters, and so on down to single ones.
    fn without<E>(
        &mut self,
        parts: impl Fn(&Scenario) -> Vec<Part>,
        at: &mut Duration,
        test: &mut impl FnMut(&Scenario) -> Result<Shows, E>,
    ) -> Result<(), E> {
        let mut size = parts(&self.scenario).len();
        while size > 0 {
            let mut from = 0;
            loop {
                let all = parts(&self.scenario);
                if from >= all.len() || self.runs >= self.runs_max {
                    break;
                }
                let away = &all[from..(from + size).min(all.len())];
                let candidate = less(&self.scenario, away);
                if !self.takes(candidate, at, test)? {
                    from += size;
                }
            }
            if self.runs >= self.runs_max {
                return Ok(());
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(())
    }
}

/// The scenario without these parts, and without what hangs on a fault that is gone.
fn less(scenario: &Scenario, away: &[Part]) -> Scenario {
    let mut less = scenario.clone();
    less.fault.retain(|fault| !away.contains(&Part::Fault(fault.id.clone())));
    loop {
        let ids: Vec<String> = less.fault.iter().map(|fault| fault.id.clone()).collect();
        let bound: Vec<String> = less.fault.iter().filter_map(|fault| fault.bind.clone()).collect();
        let before = less.fault.len();
        less.fault.retain(|fault| {
            let after = fault.after.as_deref().and_then(crate::check::after).is_none_or(|(id, _)| ids.contains(&id));
            let within = fault
                .on
                .as_ref()
                .and_then(|on| on.within.as_ref())
                .is_none_or(|id| ids.iter().any(|known| known == id));
            let is_bound = |target: &str| {
                target.strip_prefix('$').is_none_or(|name| name == "event" || bound.iter().any(|known| known == name))
            };
            after && within && is_bound(&fault.target) && fault.to.as_deref().is_none_or(is_bound)
        });
        if less.fault.len() == before {
            break;
        }
    }
    let ids: Vec<String> = less.fault.iter().map(|fault| fault.id.clone()).collect();
    for expect in &mut less.expect {
        expect.sometimes.retain(|want| want.split_once('@').is_none_or(|(_, id)| ids.iter().any(|known| known == id)));
    }
    if let Some(ops) = &mut less.workload.ops {
        ops.retain(|op| !away.contains(&Part::Op(op.client.clone(), op.nth)));
    }
    less
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan, swarm};

    /// Fails when one fault and two operations are still there.
    fn fails(scenario: &Scenario, needed: (&str, [(&str, u64); 2])) -> Shows {
        let ops = scenario.workload.ops.as_ref().expect("written out");
        let has_ops = needed.1.iter().all(|(client, nth)| ops.iter().any(|op| op.client == *client && op.nth == *nth));
        let has_fault = scenario.fault.iter().any(|fault| fault.id == needed.0);
        if has_ops && has_fault { Shows::Same(Duration::from_secs(12)) } else { Shows::Else }
    }

    #[test]
    fn what_is_needed_is_found_among_many_faults_and_operations() {
        let whole = (1..100).map(|seed| plan(&swarm(seed), seed)).find(|plan| plan.faults.len() > 10).expect("one");
        let whole = whole.to_scenario();
        let fault = whole.fault[7].id.clone();
        let needed = (fault.as_str(), [("client1", 3), ("client2", 9)]);
        let mut asked = 0;
        let test = |scenario: &Scenario| {
            asked += 1;
            Ok::<_, ()>(fails(scenario, needed))
        };
        let shrunk = shrink(&whole, 400, test).expect("no error").expect("it fails");
        assert_eq!((shrunk.faults.1, shrunk.ops.1), (1, 2));
        assert!(shrunk.is_least);
        assert_eq!(shrunk.runs, asked);
        assert_eq!(shrunk.scenario.run.duration.0, Duration::from_secs(13));
        assert!(Scenario::parse(&shrunk.scenario.to_toml()).is_ok());
    }

    #[test]
    fn a_scenario_that_passes_is_not_shrunk_and_used_up_runs_are_told() {
        let whole = plan(&swarm(1), 1).to_scenario();
        assert_eq!(shrink(&whole, 10, |_| Ok::<_, ()>(Shows::Else)), Ok(None));
        let needed = (whole.fault[0].id.as_str(), [("client1", 1), ("client2", 1)]);
        let shrunk = shrink(&whole, 5, |s| Ok::<_, ()>(fails(s, needed))).expect("no error").expect("it fails");
        assert!(!shrunk.is_least && shrunk.runs <= 6);
    }
}
