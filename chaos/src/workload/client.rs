//! One client: carries out its part of the plan, one operation after the other.
//!
//! A change is sent again under the same Idempotency-Key until somebody answers; its interval in the history reaches
//! from the first attempt to the answer. What was never answered may have happened at any time since, or never.

mod settle;
mod tokens;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cara_checker::durable::{Known, Life};
use cara_checker::linear::{Act, Call};
use cara_env::Env;
use cara_netsim::{Boot, trace};
use cara_scenario::{OpKind, PlannedOp};
use http::StatusCode;
use serde_json::{Value, json};

use self::settle::Settled;
use super::bodies::{app, declared_labels, move_body, project, value_of};
use super::history::Race;
use super::rest::{Ask, Rest, Told};
use super::{Phase, pick};
use crate::order::Order;
use crate::world::{Newcomer, Shared, address};

/// Reading everything at the end: a little longer than a server's own deadline.
const LAST_READ: Duration = Duration::from_secs(11);
/// Registers that all clients use at the same time.
const REGISTERS: u64 = 3;
/// Then clients go on to a new register: the checker's work grows fast with the length of a history.
const CALLS_PER_REGISTER: usize = 40;

struct Client {
    name: String,
    env: Env,
    rest: Rest,
    shared: Arc<Shared>,
    servers: Vec<String>,
    patience: (Duration, Duration),
    racers: usize,
    made: u64,
    mine: Vec<(&'static str, String)>,
}

/// What one client shall do, and how.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its operations, in the order of time.
    pub ops: Vec<PlannedOp>,
    /// How long it waits for one answer, at least and at most.
    pub patience: (Duration, Duration),
    /// Machines that race for one token.
    pub racers: usize,
}

/// A client's process.
pub async fn client(boot: Boot, shared: Arc<Shared>, servers: Vec<String>, part: Part) -> Result<(), String> {
    let Part { ops, patience, racers } = part;
    let env = boot.env;
    while shared.phase() == Phase::Setup {
        env.clock.sleep(Duration::from_millis(50)).await;
    }
    let founded = shared.founded().ok_or("no cluster was founded")?;
    let rest = Rest::new(&env, &founded.ca_fingerprint, &founded.token);
    let mut client =
        Client { name: boot.name, env, rest, shared, servers, patience, racers, made: 0, mine: Vec::new() };
    let mut plan = VecDeque::from(ops);
    let mut began = None;
    loop {
        if let Some(order) = client.shared.take_order() {
            client.obey(order).await;
        }
        match client.shared.phase() {
            Phase::Work => match plan.pop_front() {
                Some(op) => {
                    let due = *began.get_or_insert_with(|| client.now()) + op.at.0;
                    client.env.clock.sleep(due.saturating_sub(client.now())).await;
                    client.carry_out(&op).await;
                }
                None => client.env.clock.sleep(Duration::from_millis(200)).await,
            },
            Phase::Setup | Phase::Rest => client.env.clock.sleep(Duration::from_millis(100)).await,
            Phase::Final => {
                client.read_all().await;
                client.env.clock.sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

impl Client {
    async fn carry_out(&mut self, op: &PlannedOp) {
        if self.shared.phase() != Phase::Work {
            return;
        }
        let what = format!("{} {}", op.kind, op.nth);
        self.shared.history().pending.insert(self.name.clone(), what);
        match op.kind {
            OpKind::Write => self.write(op.subject).await,
            OpKind::Read => self.read(op.subject).await,
            OpKind::Create => self.create("apps", app).await,
            OpKind::Project => self.create("projects", project).await,
            OpKind::Spec => self.change_spec().await,
            OpKind::Delete => self.delete().await,
            OpKind::Cordon => self.of_node(op.subject, "cordon").await,
            OpKind::Uncordon => self.of_node(op.subject, "uncordon").await,
            OpKind::Label => self.label(op).await,
            OpKind::Enrol => self.enrol(1).await,
            OpKind::ApiToken => self.api_token().await,
            OpKind::Declare => self.declare().await,
            OpKind::TokenRace => self.enrol(self.racers).await,
            OpKind::Move => self.move_one(op.subject).await,
            OpKind::Drain => self.drain(op.subject).await,
            OpKind::RotateCa => self.rotate_ca().await,
            OpKind::RotateSealingKey => {
                self.may_be_refused(Ask::post("/api/v1/cluster/sealing-key/rotate", json!({})), "replace the key")
                    .await;
            }
            OpKind::Renew => self.shared.ask_for_renewal(op.subject),
        }
        self.shared.history().pending.remove(&self.name);
    }

    /// Does an operator's work, and does not give up.
    async fn obey(&self, order: Order) {
        let asks = match &order {
            Order::Reenrol(node) => return self.reenrol(node.clone()).await,
            Order::DeleteNode(node) => {
                // Moved away one after the other; what is not gone yet refuses the deletion.
                let drain = Ask::post(format!("/api/v1/nodes/{node}/drain"), move_body());
                if let Settled::Refused(told) = self.settle(drain).await
                    && told.status == StatusCode::NOT_FOUND
                {
                    return self.shared.carried_out(order); // An answer was lost.
                }
                self.env.clock.sleep(Duration::from_secs(1)).await;
                vec![Ask::delete(format!("/api/v1/nodes/{node}"))]
            }
            Order::Revoke(node) => vec![Ask::post(format!("/api/v1/nodes/{node}/revoke-cert"), json!({}))],
            Order::RemoveServer(server) => vec![Ask::delete(format!("/api/v1/servers/{server}"))],
            Order::UncordonAll => {
                let nodes = self.shared.nodes().into_iter();
                nodes.map(|node| Ask::post(format!("/api/v1/nodes/{node}/uncordon"), json!({}))).collect()
            }
        };
        for ask in asks {
            match self.settle(ask.clone()).await {
                Settled::Done(_) => {}
                Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => {}
                // Too few of the others are alive at the moment.
                Settled::Refused(told) if told.status == StatusCode::CONFLICT => return self.shared.order_again(order),
                Settled::Refused(told) => self.strange(&format!("{} {}", ask.method, ask.path), &told),
                Settled::Unknown => return self.shared.order_again(order),
            }
        }
        self.shared.carried_out(order);
    }

    /// Gets a token for a node's machine, where somebody runs the command then.
    async fn reenrol(&self, node: String) {
        let ask = Ask::post(format!("/api/v1/nodes/{node}/reenroll-token"), json!({}));
        match self.settle(ask).await {
            Settled::Done(told) => {
                if let Some(token) = told.json()["token"].as_str().and_then(|token| token.parse().ok()) {
                    self.shared.give_return(&node, token);
                }
            }
            Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => {}
            // It has not joined yet, or not all servers know how.
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {
                return self.shared.order_again(Order::Reenrol(node));
            }
            Settled::Refused(told) => self.strange(&format!("reenrol {node}"), &told),
            Settled::Unknown => return self.shared.order_again(Order::Reenrol(node)),
        }
        self.shared.carried_out(Order::Reenrol(node));
    }

    fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// How long it waits this time.
    fn patience(&self) -> Duration {
        let (from, to) = self.patience;
        let more = u64::try_from(to.saturating_sub(from).as_millis()).unwrap_or(u64::MAX);
        if more == 0 { from } else { from + Duration::from_millis(self.env.rng.below(more + 1)) }
    }

    fn server(&self) -> String {
        address(&pick(&*self.env.rng, &self.servers))
    }

    fn strange(&self, what: &str, told: &Told) {
        self.shared.history().strange(self.now(), &self.name, what, told.status, &told.body);
    }

    /// The register behind a number of the plan.
    fn register(&self, subject: u64) -> String {
        let slot = subject % REGISTERS;
        let mut history = self.shared.history();
        let begun = history.begun.entry(slot).or_default();
        *begun += 1;
        format!("reg-{slot}-{}", *begun / CALLS_PER_REGISTER)
    }

    fn record(&self, register: &str, act: Act, start: Duration, end: Option<Duration>, answered_by: String) {
        let text = format!("{register} {act:?} since {start:?} done {} by {answered_by}", end.is_some());
        trace::note(&self.name, "client", &text);
        let (client, key) = (self.name.clone(), register.to_owned());
        self.shared.history().calls.push(Call { client, key, act, start, end, answered_by });
    }

    async fn write(&self, subject: u64) {
        let register = self.register(subject);
        let value = {
            let mut history = self.shared.history();
            history.next_value += 1;
            history.next_value
        };
        let start = self.now();
        let body = app(&register, Some(value));
        let settled = self.settle(Ask::put(format!("/api/v1/apps/{register}"), body.clone())).await;
        if let Settled::Refused(told) = &settled
            && told.is_late
        {
            // What hangs somewhere may still write the value, and a second time.
            self.record(&register, Act::Write(value), start, None, String::new());
        }
        let settled = match settled {
            // Nobody has made it yet. If another client is faster, this write did not happen.
            Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => {
                self.settle(Ask::post("/api/v1/apps", body)).await
            }
            settled => settled,
        };
        match settled {
            Settled::Done(told) => {
                self.record(&register, Act::Write(value), start, Some(self.now()), told.answered_by);
                // Whoever has written looks, and asks another server: that is where a stale read would show.
                self.read_register(&register).await;
            }
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {}
            Settled::Refused(told) => self.strange(&format!("write {register}"), &told),
            Settled::Unknown => self.record(&register, Act::Write(value), start, None, String::new()),
        }
    }

    async fn read(&self, subject: u64) {
        self.read_register(&self.register(subject)).await;
    }

    async fn read_register(&self, register: &str) {
        let start = self.now();
        let query = if self.shared.stale_reads() { "?consistency=stale" } else { "" };
        let ask = Ask::get(format!("/api/v1/apps/{register}{query}"));
        let Ok(told) = self.rest.ask(&self.server(), &ask, self.patience()).await else { return };
        let end = Some(self.now());
        match told.status {
            StatusCode::OK => {
                let value = value_of(&told.json());
                self.record(register, Act::Read(value), start, end, told.answered_by);
            }
            StatusCode::NOT_FOUND => self.record(register, Act::Read(None), start, end, told.answered_by),
            StatusCode::SERVICE_UNAVAILABLE => {}
            _ => self.strange(&format!("read {register}"), &told),
        }
    }

    async fn create(&mut self, kind: &'static str, manifest: fn(&str, Option<u64>) -> Value) {
        self.made += 1;
        let name = format!("{kind}-{}-{}", self.name, self.made);
        self.life(&name, |life| life.created = Known::Maybe);
        match self.settle(Ask::post(format!("/api/v1/{kind}"), manifest(&name, None))).await {
            Settled::Done(_) => {
                trace::note(&self.name, "client", &format!("created {name}"));
                self.life(&name, |life| life.created = Known::Yes);
                self.mine.push((kind, name));
            }
            Settled::Refused(told) => self.strange(&format!("create {name}"), &told),
            Settled::Unknown => {}
        }
    }

    fn life(&self, name: &str, change: impl FnOnce(&mut Life)) {
        change(self.shared.history().lives.entry(name.to_owned()).or_default());
    }

    /// Gives one of its apps another environment: a new generation, on the same node.
    async fn change_spec(&self) {
        let apps: Vec<&String> = self.mine.iter().filter(|(kind, _)| *kind == "apps").map(|(_, name)| name).collect();
        let Some(name) = apps.last() else { return };
        let mut body = app(name, None);
        body["spec"]["env"] = json!([{ "name": "TICK", "value": self.env.rng.below(1000).to_string() }]);
        match self.settle(Ask::put(format!("/api/v1/apps/{name}"), body)).await {
            Settled::Done(_) | Settled::Unknown => {}
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {} // It is moving.
            Settled::Refused(told) => self.strange(&format!("change {name}"), &told),
        }
    }

    async fn delete(&mut self) {
        if self.mine.is_empty() {
            return;
        }
        let index = usize::try_from(self.env.rng.below(self.mine.len() as u64)).unwrap_or(0);
        let (kind, name) = self.mine.remove(index);
        self.life(&name, |life| life.deleted = Known::Maybe);
        let gone = match self.settle(Ask::delete(format!("/api/v1/{kind}/{name}"))).await {
            Settled::Done(_) => true,
            // An earlier attempt was carried out and its answer was lost.
            Settled::Refused(told) if told.status == StatusCode::NOT_FOUND => true,
            // It is moving: it stays, and may be deleted later.
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {
                self.life(&name, |life| life.deleted = Known::No);
                self.mine.push((kind, name));
                return;
            }
            Settled::Refused(told) => {
                self.strange(&format!("delete {name}"), &told);
                false
            }
            Settled::Unknown => false,
        };
        if gone {
            trace::note(&self.name, "client", &format!("deleted {name}"));
            self.life(&name, |life| life.deleted = Known::Yes);
        }
    }

    /// Moves one of its workloads to a node that the cluster chooses. With a volume rather than without one.
    async fn move_one(&self, subject: u64) {
        let projects: Vec<_> = self.mine.iter().filter(|(kind, _)| *kind == "projects").collect();
        let all: Vec<_> =
            if projects.is_empty() || subject.is_multiple_of(3) { self.mine.iter().collect() } else { projects };
        let index = usize::try_from(subject).unwrap_or(0) % all.len().max(1);
        let Some((kind, name)) = all.get(index) else { return };
        let ask = Ask::post(format!("/api/v1/{kind}/{name}/move"), move_body());
        self.may_be_refused(ask, &format!("move {name}")).await;
    }

    /// Replaces the CA. Another client may be at it already.
    async fn rotate_ca(&self) {
        if !self.shared.may_rotate() {
            return;
        }
        match self.settle(Ask::post("/api/v1/cluster/ca/rotate", json!({}))).await {
            Settled::Done(_) | Settled::Unknown => self.shared.note_rotation(),
            Settled::Refused(told) if told.status == StatusCode::CONFLICT => {}
            Settled::Refused(told) => self.strange("replace the CA", &told),
        }
    }

    /// Empties a node.
    async fn drain(&self, subject: u64) {
        let node = self.node(subject);
        self.may_be_refused(Ask::post(format!("/api/v1/nodes/{node}/drain"), move_body()), &format!("drain {node}"))
            .await;
    }

    /// No node may be free for it, or it moves already: that is for the cluster to say.
    async fn may_be_refused(&self, ask: Ask, what: &str) {
        let expected = [StatusCode::CONFLICT, StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
        match self.settle(ask).await {
            Settled::Refused(told) if !expected.contains(&told.status) => self.strange(what, &told),
            Settled::Done(_) | Settled::Refused(_) | Settled::Unknown => {}
        }
    }

    fn node(&self, subject: u64) -> String {
        let nodes = self.shared.nodes();
        let index = usize::try_from(subject).unwrap_or(0) % nodes.len().max(1);
        nodes.get(index).cloned().unwrap_or_default()
    }

    async fn of_node(&self, subject: u64, verb: &str) {
        let node = self.node(subject);
        if let Settled::Refused(told) = self.settle(Ask::post(format!("/api/v1/nodes/{node}/{verb}"), json!({}))).await
        {
            self.strange(&format!("{verb} {node}"), &told);
        }
    }

    async fn label(&self, op: &PlannedOp) {
        let node = self.node(op.subject);
        let body = json!({ "tick": op.nth.to_string() });
        if let Settled::Refused(told) = self.settle(Ask::put(format!("/api/v1/nodes/{node}/labels"), body)).await {
            self.strange(&format!("label {node}"), &told);
        }
    }

    /// Describes a machine before it comes; what was said of it must hold when it is there.
    async fn declare(&self) {
        let Some(names) = self.shared.reserve_newcomers(1) else { return };
        for name in &names {
            let manifest = json!({
                "apiVersion": "caravanserai/v1",
                "kind": "Node",
                "metadata": { "name": name, "labels": declared_labels() },
                "spec": { "unschedulable": true },
            });
            match self.settle(Ask::post("/api/v1/nodes", manifest)).await {
                Settled::Done(_) => self.shared.history().declared.push(name.clone()),
                Settled::Refused(told) => return self.strange(&format!("declare {name}"), &told),
                Settled::Unknown => return,
            }
        }
        self.let_in(names).await;
    }

    /// Mints a token for one node and gives it to one machine, or to several that race for it.
    async fn enrol(&self, machines: usize) {
        let Some(names) = self.shared.reserve_newcomers(machines) else { return };
        self.let_in(names).await;
    }

    async fn let_in(&self, names: Vec<String>) {
        let told = match self.settle(Ask::post("/api/v1/nodes/join-tokens", json!({}))).await {
            Settled::Done(told) => told.json(),
            Settled::Refused(told) => return self.strange("mint a join token", &told),
            Settled::Unknown => return,
        };
        let Some(token) = told["token"].as_str().and_then(|token| token.parse().ok()) else { return };
        let id = told["id"].as_str().unwrap_or_default().to_owned();
        if names.len() > 1 {
            self.shared.history().races.push(Race { token: id, nodes: names.clone() });
        }
        self.shared.add_newcomers(names.into_iter().map(|name| Newcomer { name, token: Clone::clone(&token) }));
    }

    /// The first client that gets the whole list keeps it for the checkers.
    async fn read_all(&self) {
        if self.shared.history().at_the_end.is_some() {
            return;
        }
        let Ok(told) = self.rest.ask(&self.server(), &Ask::get("/api/v1/workloads"), LAST_READ).await else { return };
        if told.status != StatusCode::OK {
            return;
        }
        let list = told.json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let alive = items.iter().filter(|item| item["status"]["phase"] != "Terminating");
        let alive = alive.filter_map(|item| Some((item["metadata"]["name"].as_str()?.to_owned(), value_of(item))));
        self.shared.history().at_the_end = Some(alive.collect());
    }
}
