//! The file format.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check;
use crate::kind::{Kind, OpKind};
use crate::time::{Span, SpanRange, Step};

/// The only format that there is.
pub const FORMAT: u32 = 1;

/// A scenario: a cluster, what clients do in it, what breaks, and what must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Always 1.
    pub format: u32,
    /// The symptom, in words with hyphens.
    pub name: String,
    /// What happens and what is right, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Where the fault was seen in the world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_at: Vec<String>,
    /// The machines.
    #[serde(default)]
    pub cluster: Cluster,
    /// What clients do.
    #[serde(default)]
    pub workload: Workload,
    /// How long, how exact, which seeds.
    #[serde(default)]
    pub run: RunSpec,
    /// What breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fault: Vec<Fault>,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expect>,
}

/// The machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// 3 or 5.
    pub servers: usize,
    /// Servers that may join while the world runs; at most 2.
    pub spares: usize,
    /// Nodes, 2 to 20.
    pub agents: usize,
    /// Servers, the first ones, that run the release before this one until an `upgrade`.
    #[serde(skip_serializing_if = "is_zero")]
    pub old_servers: usize,
    /// The same of nodes.
    #[serde(skip_serializing_if = "is_zero")]
    pub old_agents: usize,
    /// Clients, 1 to 8.
    pub clients: usize,
    /// How long a message takes.
    pub latency: Latency,
    /// How long a node's certificate lives.
    #[serde(skip_serializing_if = "is_usual_life")]
    pub node_certificate_life: Span,
    /// How wrong wall clocks are at birth, in ms: each machine draws one of -this to +this.
    pub clock_offset_ms: u64,
    /// How wrong all clocks run, in parts per million: each machine draws one of -this to +this; at most 500.
    pub clock_drift_ppm: u64,
    /// How long servers' certificates live instead of 90 days; at least 20s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_life: Option<Span>,
}

impl Default for Cluster {
    fn default() -> Self {
        let latency = Latency { min_ms: 1, mean_ms: Some(3), max_ms: 10 };
        Self {
            servers: 3,
            spares: 0,
            agents: 3,
            old_servers: 0,
            old_agents: 0,
            clients: 3,
            latency,
            node_certificate_life: CERTIFICATE_LIFE,
            clock_offset_ms: 0,
            clock_drift_ppm: 0,
            certificate_life: None,
        }
    }
}

/// As servers have it when nobody says otherwise.
const CERTIFICATE_LIFE: Span = Span(Duration::from_secs(90 * 24 * 3600));

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
fn is_usual_life(life: &Span) -> bool {
    *life == CERTIFICATE_LIFE
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How long a message takes: uniform from `min_ms` to `max_ms`, or exponential when there is a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// At least.
    pub min_ms: u64,
    /// The mean of an exponential distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<u64>,
    /// At most.
    pub max_ms: u64,
}

/// A little longer than a server's own deadline: a patient client hears what became of its request.
const PATIENCE_MS: u64 = 11_000;

/// Machines that race for one token, unless a scenario says otherwise.
const RACERS: usize = 3;

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
fn is_usual_race(racers: &usize) -> bool {
    *racers == RACERS
}

/// What clients do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// How often each kind of operation is drawn, relative to the others; the usual mix when empty.
    pub mix: BTreeMap<OpKind, u64>,
    /// From one operation of a client to the next.
    pub pause: SpanRange,
    /// How long a client waits for one answer before it asks another server. Who is patient hangs on a server that stands
    /// still until it goes on; who is not goes elsewhere meanwhile, and comes back to it too early.
    pub patience: SpanRange,
    /// Clients that follow all changes.
    pub watchers: usize,
    /// Machines that race for one token, 2 to 50.
    #[serde(skip_serializing_if = "is_usual_race")]
    pub racers: usize,
    /// Exactly these operations instead of drawn ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<Vec<PlannedOp>>,
}

impl Default for Workload {
    fn default() -> Self {
        let ms = |ms| Span(Duration::from_millis(ms));
        Self {
            mix: BTreeMap::new(),
            pause: SpanRange::Between([ms(50), ms(450)]),
            patience: SpanRange::Fixed(ms(PATIENCE_MS)),
            watchers: 1,
            racers: RACERS,
            ops: None,
        }
    }
}

/// One operation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedOp {
    /// Which client, for example `client1`.
    pub client: String,
    /// Its number; with the client's name its id.
    pub nth: u64,
    /// Not before this time after the begin of the work.
    pub at: Span,
    /// What.
    pub kind: OpKind,
    /// Chooses the register, node or workload.
    #[serde(default)]
    pub subject: u64,
}

/// How long, how exact, which seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSpec {
    /// How long clients work and faults go on.
    pub duration: Span,
    /// The step of time: `1ms` is exact, `5ms` is faster.
    pub grain: Span,
    /// The seeds that `run` uses: `1..=5`.
    pub seeds: String,
    /// May drop faults marked `optional` and redraw the mix; choices are printed.
    pub swarm: bool,
    /// Faults that are on at the same time, at most; those that come in between are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_max: Option<usize>,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            duration: Span(Duration::from_secs(30)),
            grain: Span(Duration::from_millis(1)),
            seeds: "1..=3".into(),
            swarm: false,
            active_max: None,
        }
    }
}

/// Something that breaks. Exactly one of `at`, `every`, `after`, `on` says when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its name in this file.
    pub id: String,
    /// At this time after the begin of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<SpanRange>,
    /// Again and again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// So long after another fault began: `freeze+2s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// When something happens in the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<On>,
    /// What.
    pub what: Kind,
    /// Whom.
    #[serde(default = "any")]
    pub target: String,
    /// The other end, for faults of links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// `oneway`: only from the targets to `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<Dir>,
    /// Later faults can hit the same machines as `$name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// For how long.
    #[serde(default = "three_seconds", rename = "for")]
    pub lasts: SpanRange,
    /// How much longer something takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<SpanRange>,
    /// How many bytes a second pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// How far a clock jumps: one step, or two between which the seed chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Vec<Step>>,
    /// How wrong clocks run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppm: Option<i64>,
    /// May be left out when the run is a swarm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// `none` lets it take more than the design promises to survive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

impl Fault {
    /// A fault of this kind that has no time yet.
    pub fn new(id: &str, what: Kind, target: &str, lasts: SpanRange) -> Self {
        Self {
            id: id.to_owned(),
            at: None,
            every: None,
            after: None,
            on: None,
            what,
            target: target.to_owned(),
            to: None,
            dir: None,
            bind: None,
            lasts,
            add: None,
            bytes_per_second: None,
            by: None,
            ppm: None,
            optional: false,
            budget: None,
        }
    }
}

fn any() -> String {
    "any".into()
}

fn three_seconds() -> SpanRange {
    SpanRange::Fixed(Span(Duration::from_secs(3)))
}

/// Again and again, at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Every {
    /// From one to the next, on average.
    pub mean: Span,
}

/// A place in the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// The chaos point's name, for example `raft.elected`.
    pub event: String,
    /// The how manieth time it is reached, counted from the begin of the work; 1 = the first.
    #[serde(default = "first")]
    pub nth: u64,
    /// Counted only from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Span>,
    /// Only when the point's detail contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Only while this fault is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// So much later; not at all later means exactly there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<SpanRange>,
}

impl On {
    /// The chaos point's own name: `move.phase:place` is the point `move.phase` with a detail.
    pub fn point(&self) -> &str {
        self.event.split(':').next().unwrap_or_default()
    }

    /// The event and what its detail must contain, as one word or two.
    pub fn step(&self) -> String {
        let detail = self.detail.as_ref().map_or_else(String::new, |detail| format!(" {detail}"));
        format!("{}{detail}", self.event)
    }

    /// Is it this point with this detail?
    pub fn is(&self, point: &str, detail: &str) -> bool {
        let phase = self.event.split_once(':').map(|(_, phase)| phase);
        let has_phase = |phase: &str| detail.split(' ').any(|word| word.strip_prefix("phase=") == Some(phase));
        point == self.point()
            && phase.is_none_or(has_phase)
            && self.detail.as_ref().is_none_or(|part| detail.contains(part))
    }
}

fn first() -> u64 {
    1
}

/// Which direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dir {
    /// Both.
    Both,
    /// From the targets to the other end.
    Oneway,
}

/// What a fault may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// What the design promises to survive.
    Survivable,
    /// Anything.
    None,
}

/// What must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// Rules that are never broken. All rules are always judged; this says which ones the scenario is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<String>,
    /// Counted from the moment when all faults are lifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// What must be true then, and stay so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub eventually_always: Vec<String>,
    /// Events that must happen at least once, `event` or `event@fault`; with a count, `event*20`, so often. Otherwise the
    /// verdict is *unknown*.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sometimes: Vec<String>,
    /// Events that happen no more often than this, in all of the run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub at_most: BTreeMap<String, u64>,
}

/// A scenario that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub Vec<String>);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Invalid {}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// With the line of what is no scenario or contradicts itself, and with all reasons.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let scenario: Self = toml::from_str(text).map_err(|error| Invalid(vec![error.to_string()]))?;
        let problems = check::problems(&scenario);
        if problems.is_empty() {
            return Ok(scenario);
        }
        Err(Invalid(problems.into_iter().map(|problem| problem.told(text)).collect()))
    }

    /// Writes a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every part of a scenario has a form in TOML")
    }

    /// The seeds that `run` uses.
    pub fn seeds(&self) -> RangeInclusive<u64> {
        check::seeds(&self.run.seeds).unwrap_or(1..=1)
    }

    /// Changes the size of the world.
    pub fn resize(&mut self, duration: Option<Duration>, agents: Option<usize>, grain: Option<Duration>) {
        self.run.duration = duration.map_or(self.run.duration, Span);
        self.run.grain = grain.map_or(self.run.grain, Span);
        self.cluster.agents = agents.unwrap_or(self.cluster.agents);
    }
}

/// The format as a JSON Schema.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Scenario)
}
