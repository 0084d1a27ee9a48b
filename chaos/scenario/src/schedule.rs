//! When which fault hits whom: the nemesis' brain, a state machine without a clock and without a world.
//!
//! ```text
//!   waiting ──its time, or its event──► due ──target means somebody, budget allows──► on ──time is over──► ended
//!                                        └────────────── skipped, with the reason
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use crate::kind::Kind;
use crate::plan::{Plan, PlannedFault, What, When};
use crate::rng::Stream;
use crate::scenario::Budget;
use crate::target::{View, resolve};

/// What the driver shall do to the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// The fault's id.
    pub id: String,
    /// It begins, or it ends.
    pub begins: bool,
    /// What.
    pub what: What,
    /// On which machines.
    pub hosts: Vec<String>,
    /// The other ends of links.
    pub to: Vec<String>,
}

/// What came of a fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Installed {
    /// The fault's id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The event that it hung on.
    pub event: Option<String>,
    /// When its moment came.
    pub from: Duration,
    /// When it was lifted; none while it is on.
    pub to: Option<Duration>,
    /// On which machines.
    pub hosts: Vec<String>,
    /// Why it was not installed.
    pub skipped: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Waiting,
    /// Its moment has come, or comes at this time; the machine at which the event happened.
    Due(Duration, Option<String>),
    On(usize),
    Over,
}

#[derive(Debug, Clone)]
struct Active {
    fault: usize,
    until: Duration,
    action: Action,
}

/// All faults of a run.
#[derive(Debug, Clone)]
pub struct Schedule {
    faults: Vec<PlannedFault>,
    states: Vec<State>,
    active: Vec<Active>,
    active_max: usize,
    seed: u64,
    began: Option<Duration>,
    bound: BTreeMap<String, Vec<String>>,
    /// Times that each `on` has matched so far.
    matched: Vec<u64>,
    /// Servers whose data a fault has destroyed.
    destroyed: BTreeSet<String>,
    ledger: Vec<Installed>,
    /// Ids of the file that must begin.
    required: BTreeSet<String>,
}

impl Schedule {
    /// Nothing has begun yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            faults: plan.faults.clone(),
            states: vec![State::Waiting; plan.faults.len()],
            active: Vec::new(),
            active_max: plan.active_max.unwrap_or(usize::MAX),
            seed: plan.seed,
            began: None,
            bound: BTreeMap::new(),
            matched: vec![0; plan.faults.len()],
            destroyed: BTreeSet::new(),
            ledger: Vec::new(),
            required: plan.required_faults(),
        }
    }

    /// The work begins now: times count from here.
    pub fn begin(&mut self, now: Duration) {
        self.began = Some(now);
        for (state, fault) in self.states.iter_mut().zip(&self.faults) {
            if let When::At(at) = fault.when {
                *state = State::Due(now + at, None);
            }
        }
    }

    /// The chaos points that faults hang on.
    pub fn events(&self) -> BTreeSet<String> {
        let on = self.faults.iter().filter_map(|fault| match &fault.when {
            When::On(on, _) => Some(on.point().to_owned()),
            _ => None,
        });
        on.collect()
    }

    /// A chaos point was reached.
    pub fn reached(&mut self, now: Duration, host: &str, event: &str, detail: &str) {
        let Some(began) = self.began else { return };
        for i in 0..self.faults.len() {
            let When::On(on, delay) = &self.faults[i].when else { continue };
            let is_meant = self.states[i] == State::Waiting
                && on.is(event, detail)
                && on.from.is_none_or(|from| now >= began + from.0)
                && on.within.as_ref().is_none_or(|id| self.active.iter().any(|active| is_of(&active.action.id, id)));
            if is_meant {
                self.matched[i] += 1;
                if self.matched[i] == on.nth {
                    self.states[i] = State::Due(now + *delay, Some(host.to_owned()));
                }
            }
        }
    }

    /// What shall be done now: what is over ends, what is due begins.
    pub fn due(&mut self, now: Duration, view: &dyn View) -> Vec<Action> {
        let mut actions = self.end(now, |active| active.until <= now);
        if self.began.is_none() {
            return actions;
        }
        for i in 0..self.faults.len() {
            if let State::Due(at, event) = self.states[i].clone()
                && at <= now
            {
                actions.extend(self.start(i, now, event.as_deref(), view));
            }
        }
        actions
    }

    /// Ends everything, and lets nothing begin any more.
    pub fn heal(&mut self, now: Duration) -> Vec<Action> {
        self.began = None;
        self.end(now, |_| true)
    }

    fn end(&mut self, now: Duration, is_over: impl Fn(&Active) -> bool) -> Vec<Action> {
        let (over, going): (Vec<Active>, Vec<Active>) = self.active.drain(..).partition(|active| is_over(active));
        self.active = going;
        let ended = over.into_iter().map(|active| {
            if let State::On(entry) = self.states[active.fault] {
                self.ledger[entry].to = Some(now);
            }
            self.states[active.fault] = State::Over;
            Action { begins: false, ..active.action }
        });
        ended.collect()
    }

    fn start(&mut self, i: usize, now: Duration, event: Option<&str>, view: &dyn View) -> Option<Action> {
        let fault = self.faults[i].clone();
        let resolved = self.whom(&fault, event, view);
        let mut entry = Installed {
            id: fault.id.clone(),
            kind: fault.what.kind,
            event: match &fault.when {
                When::On(on, _) => Some(on.step()),
                _ => None,
            },
            from: now,
            to: None,
            hosts: Vec::new(),
            skipped: None,
        };
        let (hosts, to) = match resolved {
            Ok(whom) => whom,
            Err(reason) => {
                entry.skipped = Some(reason);
                self.ledger.push(entry);
                self.states[i] = State::Over;
                return None;
            }
        };
        entry.hosts.clone_from(&hosts);
        if let Some(name) = &fault.bind {
            self.bound.insert(name.clone(), hosts.clone());
        }
        if fault.what.kind.destroys() {
            self.destroyed.extend(hosts.iter().cloned());
        }
        self.states[i] = State::On(self.ledger.len());
        self.ledger.push(entry);
        for (state, other) in self.states.iter_mut().zip(&self.faults) {
            if let When::After(id, delay) = &other.when
                && is_of(&fault.id, id)
                && *state == State::Waiting
            {
                *state = State::Due(now + *delay, event.map(str::to_owned));
            }
        }
        let action = Action { id: fault.id, begins: true, what: fault.what, hosts, to };
        self.active.push(Active { fault: i, until: now + fault.lasts, action: action.clone() });
        Some(action)
    }

    /// Targets and other ends, or the reason why the fault is left out.
    fn whom(
        &self,
        fault: &PlannedFault,
        event: Option<&str>,
        view: &dyn View,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        if self.active.len() >= self.active_max {
            return Err(format!("{} faults are on already", self.active.len()));
        }
        let mut rng = Stream::new(self.seed, &format!("target/{}", fault.id));
        let mut hosts = resolve(&fault.target, view, &self.bound, event, &mut rng)?;
        let needs_process = !matches!(fault.what.kind, Kind::AddServer);
        // A machine that another fault has switched off can't be hit a second time.
        hosts.retain(|host| !needs_process || view.is_running(host));
        let is_taken = |host: &String| {
            self.active.iter().any(|active| {
                active.action.what.kind == fault.what.kind
                    && active.action.hosts.contains(host)
                    && !fault.what.kind.needs_to()
            })
        };
        hosts.retain(|host| !is_taken(host));
        if hosts.is_empty() {
            return Err(format!("{} is down, or has the same fault already", fault.target));
        }
        self.within_budget(fault, &hosts, view)?;
        let to = match &fault.what.to {
            Some(to) => resolve(to, view, &self.bound, event, &mut rng)?,
            None => Vec::new(),
        };
        Ok((hosts, to))
    }

    /// What the design promises to survive stays survivable: a minority of the servers may lose what they promised to
    /// keep, in the whole run, and membership changes one server at a time.
    fn within_budget(&self, fault: &PlannedFault, hosts: &[String], view: &dyn View) -> Result<(), String> {
        if fault.budget == Budget::None {
            return Ok(());
        }
        let servers = view.servers();
        let minority = servers.len().saturating_sub(1) / 2;
        if fault.what.kind.destroys() {
            let hit = hosts.iter().filter(|host| servers.contains(*host));
            let all: BTreeSet<&String> = hit.chain(&self.destroyed).collect();
            if all.len() > minority {
                return Err(format!("more than {minority} servers would lose data"));
            }
        }
        if fault.what.kind == Kind::RemoveServer && servers.len() <= 3 {
            return Err(format!("only {} servers are left", servers.len()));
        }
        Ok(())
    }

    /// Everything that was tried so far.
    pub fn ledger(&self) -> &[Installed] {
        &self.ledger
    }

    /// Is there a fault of this kind, whenever?
    pub fn has(&self, kind: Kind) -> bool {
        self.faults.iter().any(|fault| fault.what.kind == kind)
    }

    /// Is no fault on?
    pub fn is_quiet(&self) -> bool {
        self.active.is_empty()
    }

    /// Faults that a scenario asks for and that never began, with the reason: a run without them proves less than it
    /// says. An `every` needs one of its times only.
    pub fn missed(&self) -> Vec<String> {
        let began = |id: &str| self.ledger.iter().any(|entry| entry.skipped.is_none() && of_file(&entry.id) == id);
        let why = |id: &str| {
            let entry = self.ledger.iter().find(|entry| of_file(&entry.id) == id);
            entry.and_then(|entry| entry.skipped.clone()).unwrap_or_else(|| "its moment never came".to_owned())
        };
        let missed = self.required.iter().filter(|id| !began(id));
        missed.map(|id| format!("fault {id} never began: {}", why(id))).collect()
    }

    /// The ledger for people, one line each.
    pub fn decisions(&self) -> String {
        let mut text = String::new();
        for entry in &self.ledger {
            let to = entry.to.map_or("the end".to_owned(), |to| format!("{:.3}", to.as_secs_f64()));
            let what = match &entry.skipped {
                Some(reason) => format!("skipped: {reason}"),
                None => format!("on {} until {to}", entry.hosts.join(", ")),
            };
            let event = entry.event.as_ref().map_or_else(String::new, |event| format!(" at {event}"));
            let _ =
                writeln!(text, "{:>9.3}  {:<20} {:<16}{event} {what}", entry.from.as_secs_f64(), entry.id, entry.kind);
        }
        text
    }
}

/// The id that the file gives: the times of an `every` are numbered.
fn of_file(id: &str) -> &str {
    id.split('#').next().unwrap_or(id)
}

/// Is this the fault, or one of the times of an `every` with this id?
fn is_of(id: &str, of: &str) -> bool {
    id == of || id.strip_prefix(of).is_some_and(|rest| rest.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::target::tests::Five;
    use crate::{Plan, plan};

    fn planned(faults: &str) -> Plan {
        let text = format!("format = 1\nname = \"x\"\n[cluster]\nservers = 5\n{faults}");
        plan(&Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")), 1)
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn names(actions: &[Action]) -> Vec<(String, bool)> {
        actions.iter().map(|action| (action.id.clone(), action.begins)).collect()
    }

    #[test]
    fn times_count_from_the_begin_of_the_work_and_faults_end_by_themselves() {
        let faults = "[[fault]]\nid = \"a\"\nat = \"2s\"\nfor = \"3s\"\nwhat = \"freeze\"\ntarget = \"leader\"";
        let mut schedule = Schedule::new(&planned(faults));
        assert!(schedule.due(at(9_000), &Five).is_empty(), "the work has not begun");
        schedule.begin(at(10_000));
        assert!(schedule.due(at(11_999), &Five).is_empty());
        let begun = schedule.due(at(12_000), &Five);
        assert_eq!((names(&begun), begun[0].hosts.clone()), (vec![("a".into(), true)], vec!["s2".to_owned()]));
        assert_eq!(names(&schedule.due(at(15_000), &Five)), [("a".to_owned(), false)]);
        assert_eq!(schedule.ledger()[0].to, Some(at(15_000)));
    }

    #[test]
    fn an_event_hits_the_nth_time_exactly_there_and_its_machine_can_be_meant() {
        let faults = "[[fault]]\nid = \"a\"\non = { event = \"enrol.saved\", nth = 2, detail = \"node=n2\" }\n\
                      what = \"crash\"\ntarget = \"$event\"\nbind = \"X\"\n\
                      [[fault]]\nid = \"b\"\nafter = \"a+1s\"\nwhat = \"isolate\"\ntarget = \"$X\"";
        let mut schedule = Schedule::new(&planned(faults));
        assert_eq!(schedule.events(), BTreeSet::from(["enrol.saved".to_owned()]));
        schedule.begin(at(0));
        for detail in ["node=n1", "node=n2"] {
            schedule.reached(at(5), "n1", "enrol.saved", detail);
        }
        assert!(schedule.due(at(6), &Five).is_empty());
        schedule.reached(at(7), "n2", "enrol.saved", "node=n2");
        assert_eq!(schedule.due(at(7), &Five)[0].hosts, ["n2"]);
        assert!(schedule.due(at(1_006), &Five).is_empty());
        assert_eq!(schedule.due(at(1_007), &Five)[0].hosts, ["n2"]);
    }

    #[test]
    fn a_minority_may_lose_data_and_no_more() {
        let faults: String = (1..=3)
            .map(|i| {
                format!("[[fault]]\nid = \"f{i}\"\nat = \"{i}s\"\nwhat = \"bit_flip\"\ntarget = \"server:s{i}\"\n")
            })
            .collect();
        let mut schedule = Schedule::new(&planned(&faults));
        schedule.begin(at(0));
        schedule.due(at(60_000), &Five);
        let skipped: Vec<bool> = schedule.ledger().iter().map(|entry| entry.skipped.is_some()).collect();
        assert_eq!(skipped, [false, false, true]);
        assert!(schedule.decisions().contains("more than 2 servers would lose data"));
        assert_eq!(schedule.missed(), ["fault f3 never began: more than 2 servers would lose data"]);
    }

    #[test]
    fn healing_ends_everything_and_nothing_begins_after_it() {
        let faults = "[[fault]]\nid = \"a\"\nevery = { mean = \"1s\" }\nfor = \"20s\"\nwhat = \"slow_cpu\"\n\
                      target = \"agent:any\"";
        let mut schedule = Schedule::new(&planned(faults));
        schedule.begin(at(0));
        let begun = schedule.due(at(4_000), &Five).len();
        assert!(begun > 0 && !schedule.is_quiet());
        assert_eq!(schedule.heal(at(5_000)).len(), begun);
        assert!(schedule.is_quiet() && schedule.due(at(30_000), &Five).is_empty());
    }
}
