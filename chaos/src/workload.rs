//! What clients do: they write and read registers (an annotation of an app), and create and delete apps.
//!
//! A write is sent again under the same Idempotency-Key until somebody answers; its interval in the history reaches
//! from the first attempt to the answer. What was never answered may have happened at any time since, or never.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use cara_netsim::{Boot, trace};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rest::{Ask, Rest};
use crate::world::Shared;

/// One attempt; a little longer than a server's own deadline.
const ATTEMPT: Duration = Duration::from_secs(11);
/// All attempts of one operation. Long enough to outlast any fault, so that few outcomes stay unknown.
const OPERATION: Duration = Duration::from_secs(45);
/// Registers that all clients use at the same time.
const REGISTERS: u64 = 3;
/// Then clients go on to a new register: the checker's work grows fast with the length of a history.
const CALLS_PER_REGISTER: usize = 40;

/// More strange answers of one run than these teach nothing.
const STRANGE_MAX: usize = 5;

/// What clients shall do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing yet: the cluster is being set up.
    #[default]
    Setup,
    /// Write and read.
    Work,
    /// End what has begun, begin nothing.
    Rest,
    /// Read everything once more.
    Final,
}

/// What a call on a register did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Wrote this value; no two writes have the same.
    Write(u64),
    /// Saw this value, or no register at all.
    Read(Option<u64>),
}

/// One call on a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Who.
    pub client: String,
    /// On which register.
    pub register: String,
    /// What.
    pub act: Act,
    /// When it was sent first.
    pub start: Duration,
    /// When the answer came; none when none came.
    pub end: Option<Duration>,
    /// Whose state was read.
    pub answered_by: String,
}

/// What is known of a change that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Known {
    /// Not asked for.
    #[default]
    No,
    /// Acknowledged.
    Yes,
    /// Asked for, never answered.
    Maybe,
}

/// The life of an app that one client alone creates and deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// Its creation.
    pub created: Known,
    /// Its deletion.
    pub deleted: Known,
}

/// What clients did and were told.
#[derive(Debug, Default, Clone)]
pub struct History {
    /// Calls on registers, in the order in which they ended.
    pub calls: Vec<Call>,
    /// Apps by name.
    pub apps: BTreeMap<String, Life>,
    /// Operations that have begun and not ended.
    pub pending: u64,
    /// Writes and deletes that were acknowledged.
    pub acknowledged: u64,
    /// Answers that a correct cluster never gives.
    pub strange: Vec<String>,
    /// The list of apps as read at the very end: name and annotations' value.
    pub final_apps: Option<BTreeMap<String, Option<u64>>>,
    /// Next value to write.
    next_value: u64,
    /// Calls begun per register slot, to know when to go on.
    begun: BTreeMap<u64, usize>,
}

/// How an operation ended.
enum Settled {
    Done(crate::rest::Told),
    Refused(crate::rest::Told),
    Unknown,
}

struct Client {
    name: String,
    env: Env,
    rest: Rest,
    shared: Arc<Shared>,
    servers: Vec<String>,
    apps: u64,
    mine: Vec<String>,
}

/// A client's process.
pub async fn client(boot: Boot, shared: Arc<Shared>, servers: Vec<String>) -> Result<(), String> {
    let env = boot.env;
    while shared.phase() == Phase::Setup {
        env.clock.sleep(Duration::from_millis(50)).await;
    }
    let founded = shared.founded().ok_or("no cluster was founded")?;
    let rest = Rest::new(&env, &founded.ca_fingerprint, &founded.token);
    let mut client = Client { name: boot.name, env, rest, shared, servers, apps: 0, mine: Vec::new() };
    loop {
        let pause = match client.shared.phase() {
            Phase::Setup | Phase::Rest => 50,
            Phase::Work => {
                client.operation().await;
                client.env.rng.below(300)
            }
            Phase::Final => {
                client.read_all().await;
                100
            }
        };
        client.env.clock.sleep(Duration::from_millis(pause)).await;
    }
}

impl Client {
    async fn operation(&mut self) {
        self.shared.history().pending += 1;
        match self.env.rng.below(10) {
            0..3 => self.write().await,
            3..7 => self.read().await,
            7..9 => self.create().await,
            _ => self.delete().await,
        }
        self.shared.history().pending -= 1;
    }

    /// The register to use now.
    fn register(&self) -> String {
        let slot = self.env.rng.below(REGISTERS);
        let mut history = self.shared.history();
        let begun = history.begun.entry(slot).or_default();
        *begun += 1;
        format!("reg-{slot}-{}", *begun / CALLS_PER_REGISTER)
    }

    fn server(&self) -> String {
        let index = usize::try_from(self.env.rng.below(self.servers.len() as u64)).unwrap_or(0);
        self.servers[index].clone()
    }

    /// Asks one server after the other until there is an answer that settles it.
    async fn settle(&self, mut ask: Ask) -> Settled {
        ask.key = Some(cara_env::hex(&*self.env.rng, 8));
        let until = self.env.clock.monotonic() + OPERATION;
        while self.env.clock.monotonic() < until {
            if let Ok(told) = self.rest.ask(&self.server(), &ask, ATTEMPT).await {
                if told.status.is_success() {
                    self.shared.history().acknowledged += 1;
                    return Settled::Done(told);
                }
                if told.status.is_client_error() {
                    return Settled::Refused(told);
                }
                // No leader at the moment, or one without room; nothing was done, or it is safe to do it again.
                let later = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::INSUFFICIENT_STORAGE];
                if !later.contains(&told.status) {
                    self.strange(&format!("{} {}", ask.method, ask.path), &told);
                }
            }
            self.env.clock.sleep(Duration::from_millis(50 + self.env.rng.below(300))).await;
        }
        Settled::Unknown
    }

    fn strange(&self, what: &str, told: &crate::rest::Told) {
        let text = format!("{} {what}: {} {}", self.name, told.status, String::from_utf8_lossy(&told.body));
        let mut history = self.shared.history();
        if history.strange.len() < STRANGE_MAX {
            history.strange.push(text);
        }
    }

    fn record(&self, register: &str, act: Act, start: Duration, end: Option<Duration>, answered_by: String) {
        let (kind, value) = match act {
            Act::Write(value) => ("write", value),
            Act::Read(value) => ("read", value.unwrap_or(0)),
        };
        let text = format!("{register} {kind} {value} since {start:?} done {} by {answered_by}", end.is_some());
        trace::note(&self.name, "client", &text);
        let (client, register) = (self.name.clone(), register.to_owned());
        self.shared.history().calls.push(Call { client, register, act, start, end, answered_by });
    }

    async fn write(&self) {
        let register = self.register();
        let value = {
            let mut history = self.shared.history();
            history.next_value += 1;
            history.next_value
        };
        let start = self.env.clock.monotonic();
        let ask = |method, path| Ask { method, path, key: None, body: Some(app(&register, Some(value))) };
        let put = ask(Method::PUT, format!("/api/v1/apps/{register}"));
        let settled = match self.settle(put).await {
            // Nobody has made it yet. If another client is faster, this write did not happen.
            Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => {
                self.settle(ask(Method::POST, "/api/v1/apps".to_owned())).await
            }
            settled => settled,
        };
        let now = self.env.clock.monotonic();
        match settled {
            Settled::Done(told) => self.record(&register, Act::Write(value), start, Some(now), told.answered_by),
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {}
            Settled::Refused(told) => self.strange(&format!("write {register}"), &told),
            Settled::Unknown => self.record(&register, Act::Write(value), start, None, String::new()),
        }
    }

    async fn read(&self) {
        let register = self.register();
        let start = self.env.clock.monotonic();
        let query = if self.shared.stale_reads() { "?consistency=stale" } else { "" };
        let ask = Ask::get(format!("/api/v1/apps/{register}{query}"));
        let Ok(told) = self.rest.ask(&self.server(), &ask, ATTEMPT).await else { return };
        let end = Some(self.env.clock.monotonic());
        match told.status {
            StatusCode::OK => {
                let value = value_of(&told.json());
                self.record(&register, Act::Read(value), start, end, told.answered_by);
            }
            StatusCode::NOT_FOUND => self.record(&register, Act::Read(None), start, end, told.answered_by),
            StatusCode::SERVICE_UNAVAILABLE => {}
            _ => self.strange(&format!("read {register}"), &told),
        }
    }

    async fn create(&mut self) {
        self.apps += 1;
        let name = format!("app-{}-{}", self.name, self.apps);
        self.shared.history().apps.entry(name.clone()).or_default().created = Known::Maybe;
        let ask = Ask { method: Method::POST, path: "/api/v1/apps".into(), key: None, body: Some(app(&name, None)) };
        match self.settle(ask).await {
            Settled::Done(_) => {
                trace::note(&self.name, "client", &format!("created {name}"));
                self.shared.history().apps.entry(name.clone()).or_default().created = Known::Yes;
                self.mine.push(name);
            }
            Settled::Refused(told) => self.strange(&format!("create {name}"), &told),
            Settled::Unknown => {}
        }
    }

    async fn delete(&mut self) {
        if self.mine.is_empty() {
            return;
        }
        let index = usize::try_from(self.env.rng.below(self.mine.len() as u64)).unwrap_or(0);
        let name = self.mine.remove(index);
        self.shared.history().apps.entry(name.clone()).or_default().deleted = Known::Maybe;
        let ask = Ask { method: Method::DELETE, path: format!("/api/v1/apps/{name}"), key: None, body: None };
        let gone = match self.settle(ask).await {
            Settled::Done(_) => true,
            // An earlier attempt was carried out and its answer was lost.
            Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => true,
            Settled::Refused(told) => {
                self.strange(&format!("delete {name}"), &told);
                false
            }
            Settled::Unknown => false,
        };
        if gone {
            trace::note(&self.name, "client", &format!("deleted {name}"));
            self.shared.history().apps.entry(name).or_default().deleted = Known::Yes;
        }
    }

    /// The first client that gets the whole list keeps it for the checkers.
    async fn read_all(&self) {
        if self.shared.history().final_apps.is_some() {
            return;
        }
        let Ok(told) = self.rest.ask(&self.server(), &Ask::get("/api/v1/apps"), ATTEMPT).await else { return };
        if told.status != StatusCode::OK {
            return;
        }
        let list = told.json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let apps = items.iter().filter(|item| item["status"]["phase"] != "Terminating");
        let apps = apps.filter_map(|item| Some((item["metadata"]["name"].as_str()?.to_owned(), value_of(item))));
        self.shared.history().final_apps = Some(apps.collect());
    }
}

fn app(name: &str, value: Option<u64>) -> Value {
    let mut metadata = json!({ "name": name });
    if let Some(value) = value {
        metadata["annotations"] = json!({ "value": value.to_string() });
    }
    json!({
        "apiVersion": "caravanserai/v1",
        "kind": "App",
        "metadata": metadata,
        "spec": { "image": "busybox:1" },
    })
}

fn value_of(app: &Value) -> Option<u64> {
    app["metadata"]["annotations"]["value"].as_str()?.parse().ok()
}
