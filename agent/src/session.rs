//! One session with one server: hello, heartbeats, desired sets down, reports up.
//!
//! Heartbeats and reports have tasks of their own; the session itself only reads and waits for nothing but the server,
//! so neither a slow engine nor a slow disk makes a heartbeat late.

mod refusal;

use std::sync::Arc;
use std::time::Duration;

use cara_env::{Env, Task};
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::agent_frame::Frame as Up;
use cara_proto::agent::server_frame::Frame as Down;
use cara_proto::agent::{
    AgentFrame, Challenge, Desired, Goodbye, Heartbeat, Hello, Present, Report, ServerFrame, Trust,
};
use cara_proto::node::{Facts, Readings};
pub(crate) use refusal::{CLONED, HELD, Refusal, refusal};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::config::Config;
use crate::instance::Life;
use crate::keeper::{Dialled, Keeper};
use crate::ledger::Refused;
use crate::logs::LogsDesk;
use crate::permit::Permits;
use crate::renew::{Renewer, keep_renewed};
use crate::run::Shared;
use crate::runtime::ContainerRuntime;
use crate::witness::Witness;

/// Frames waiting to be sent: a heartbeat and a report at a time, with room for one round trip.
const OUTBOX: usize = 16;
/// A desired set or a report of thousands of workloads is below this.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Used until a server names an interval.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(15);
/// A session ends after this many intervals without an acknowledgement.
const MISSED_MAX: u32 = 3;
/// The longest time over which agents spread their return, whatever a server says.
const SPREAD_MAX: Duration = Duration::from_secs(60);
/// Requests for output answered at a time.
const LOGS_MAX: usize = 8;

/// How a session ended.
#[derive(Debug)]
pub(crate) struct End {
    /// At least one heartbeat was acknowledged.
    pub(crate) healthy: bool,
    /// The server's agents shall spread their return over so much time.
    pub(crate) spread: Duration,
    pub(crate) why: Why,
}

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Why {
    /// The connection or the server is gone.
    Lost(String),
    /// The server isn't the leader; who is, if it knows.
    NotLeader(Option<String>),
    /// It isn't either, and was not asked who is.
    NotLeading,
    /// Another process has the node's session, and the leader does not know yet whether it lives.
    Held,
    /// The cluster doesn't want this node.
    Refused(Denial),
}

/// Why the cluster doesn't want this node.
#[derive(Debug)]
pub(crate) struct Denial {
    /// Stable.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The next step; may be empty.
    pub(crate) hint: String,
    /// It is the certificate that isn't accepted.
    pub(crate) rejects_identity: bool,
}

/// What a session needs, for all sessions of this agent.
pub(crate) struct Ground {
    pub(crate) env: Env,
    pub(crate) config: Config,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) runtime: Arc<dyn ContainerRuntime>,
    pub(crate) shared: Shared,
    pub(crate) reports: watch::Receiver<Option<Report>>,
    /// What was last read of the machine.
    pub(crate) readings: watch::Receiver<Option<Readings>>,
    /// Where other agents reach this one for its volumes; empty when they can't.
    pub(crate) volume_address: String,
    /// The server with which there is a session, for whoever else has to reach the leader.
    pub(crate) leader: watch::Sender<Option<String>>,
    /// Who this process is to the leader.
    pub(crate) life: Life,
    /// Whether containers may be started.
    pub(crate) permits: Permits,
}

impl Ground {
    /// Tells whoever looks on.
    fn witness(&self, tell: impl Fn(&dyn Witness)) {
        self.config.witness.as_deref().into_iter().for_each(tell);
    }
}

/// A connection to a server.
pub(crate) struct Line {
    pub(crate) address: String,
    pub(crate) channel: Channel,
    /// With which identity it was made.
    pub(crate) dialled: Dialled,
}

/// Ends a task with the session that began it.
struct Helper(Task<()>);

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Holds a session over this connection until it ends.
pub(crate) async fn hold(ground: &Ground, line: Line, facts: Facts) -> End {
    let address = line.address.clone();
    let mut session = match Session::open(ground, line, facts).await {
        Ok(session) => session,
        Err(why) => return End { healthy: false, spread: Duration::ZERO, why },
    };
    ground.leader.send_replace(Some(address));
    let why = session.read().await;
    ground.witness(|witness| witness.ended());
    ground.leader.send_replace(None);
    End { healthy: session.healthy, spread: session.spread, why }
}

struct Session<'a> {
    ground: &'a Ground,
    inbound: Streaming<ServerFrame>,
    outbox: mpsc::Sender<AgentFrame>,
    interval: watch::Sender<Duration>,
    /// When the last heartbeat was acknowledged, or the session began.
    heard: Duration,
    healthy: bool,
    spread: Duration,
    /// A desired set that could not be saved yet.
    unsaved: Option<Desired>,
    logs: LogsDesk,
    _helpers: [Helper; 3],
}

impl<'a> Session<'a> {
    async fn open(ground: &'a Ground, line: Line, facts: Facts) -> Result<Self, Why> {
        let Line { address, channel, dialled } = line;
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let node_id = ground.keeper.identity().node_id;
        let volume_address = ground.volume_address.clone();
        let hello = Hello {
            node_id,
            facts: Some(facts),
            fence: Some(ground.shared.fence()),
            volume_address,
            feature_level: ground.config.feature_level,
            trusted_cas: ground.keeper.identity().trusted_cas(),
            instance: Some(ground.life.said()),
        };
        outbox.try_send(frame(Up::Hello(hello))).expect("the outbox is empty");
        let mut client = AgentClient::new(channel.clone())
            .max_decoding_message_size(FRAME_BYTES_MAX)
            .max_encoding_message_size(FRAME_BYTES_MAX);
        let limit = ground.config.call_deadline;
        let opening = async {
            let mut inbound = client.session(ReceiverStream::new(frames)).await.map_err(why)?.into_inner();
            let first = inbound.message().await.map_err(why)?;
            Ok((inbound, first))
        };
        let (inbound, first) = cara_env::timeout(&*ground.env.clock, limit, opening)
            .await
            .unwrap_or_else(|_| Err(Why::Lost(format!("{address} opened no session within {limit:?}"))))?;
        let welcome = match first.and_then(|f| f.frame) {
            Some(Down::Welcome(welcome)) => welcome,
            Some(Down::Goodbye(goodbye)) => return Err(parted(goodbye)),
            _ => return Err(Why::Lost(format!("{address} did not begin with a welcome"))),
        };
        tracing::info!(server = address, epoch = welcome.epoch, "session");
        // Before the first heartbeat: who is heard must know of its session also after a crash.
        ground.life.has_session(welcome.epoch);
        ground.keeper.accepted(&dialled);
        ground.keeper.remember_servers(&welcome.servers);
        ground.permits.let_in();
        ground.witness(|witness| witness.opened(&address));
        let (interval, intervals) = watch::channel(interval_of(welcome.heartbeat_interval_ms));
        let env = &ground.env;
        let renewer = Renewer {
            env: env.clone(),
            keeper: ground.keeper.clone(),
            address: address.clone(),
            channel: channel.clone(),
            connect_deadline: ground.config.connect_deadline,
            call_deadline: limit,
        };
        let (readings, witness) = (ground.readings.clone(), ground.config.witness.clone());
        let helpers = [
            Helper(cara_env::spawn(heartbeats(env.clone(), intervals, readings, outbox.clone(), witness))),
            Helper(cara_env::spawn(reports(ground.reports.clone(), ground.keeper.clone(), outbox.clone()))),
            Helper(cara_env::spawn(keep_renewed(renewer))),
        ];
        let logs = LogsDesk::new(ground, &address, channel, Arc::new(Semaphore::new(LOGS_MAX)));
        let heard = env.clock.monotonic();
        let (healthy, spread, unsaved) = (false, Duration::ZERO, None);
        Ok(Self { ground, inbound, outbox, interval, heard, healthy, spread, unsaved, logs, _helpers: helpers })
    }

    /// Reads until the session ends.
    async fn read(&mut self) -> Why {
        let clock = self.ground.env.clock.clone();
        loop {
            let interval = *self.interval.borrow();
            let patience = (self.heard + interval * MISSED_MAX).saturating_sub(clock.monotonic());
            let down = match cara_env::timeout(&*clock, patience, self.inbound.message()).await {
                Ok(Ok(Some(down))) => down.frame,
                Ok(Ok(None)) => return Why::Lost("the server closed the session".into()),
                Ok(Err(status)) => return why(status),
                Err(_) => {
                    let text =
                        format!("no heartbeat was acknowledged for {:.1} s", (interval * MISSED_MAX).as_secs_f64());
                    return Why::Lost(text);
                }
            };
            match down {
                Some(Down::Ack(ack)) => {
                    self.heard = clock.monotonic();
                    self.healthy = true;
                    self.spread = Duration::from_millis(ack.reconnect_spread_ms).min(SPREAD_MAX);
                    self.ground.witness(|witness| witness.acknowledged(ack.sequence));
                    self.ground.keeper.remember_servers(&ack.servers);
                    self.set_interval(ack.interval_ms);
                    if let Some(desired) = self.unsaved.take() {
                        self.desired(desired).await;
                    }
                }
                Some(Down::Desired(desired)) => self.desired(desired).await,
                Some(Down::Logs(request)) => self.logs.answer(request),
                Some(Down::Trust(trust)) => self.trust(trust).await,
                // A full outbox is a link that stands: the question comes again.
                Some(Down::Challenge(Challenge { number })) => {
                    drop(self.outbox.try_send(frame(Up::Present(Present { number }))));
                }
                Some(Down::Goodbye(goodbye)) => return parted(goodbye),
                // A frame of a newer server, or a second welcome: nothing that we'd need.
                Some(Down::Welcome(_)) | None => {}
            }
        }
    }

    fn set_interval(&self, interval_ms: u64) {
        if interval_ms > 0 {
            let interval = interval_of(interval_ms);
            self.interval.send_if_modified(|last| std::mem::replace(last, interval) != interval);
        }
    }

    /// Takes over whom to trust; the next report says so.
    async fn trust(&self, Trust { ca_pem, epoch, renew }: Trust) {
        let keeper = &self.ground.keeper;
        if let Err(problem) = keeper.trust(ca_pem, epoch) {
            tracing::error!("can't take over whom to trust: {problem}; it is tried again in the next session");
            return;
        }
        cara_env::point("bundle.saved", || format!("host={} epoch={epoch}", self.ground.config.node_name)).await;
        if renew {
            keeper.ask_for_renewal();
        }
    }

    async fn desired(&mut self, desired: Desired) {
        match self.ground.shared.offer(desired.clone()) {
            Ok(()) => {
                self.unsaved = None;
                cara_env::point("ledger.saved", || fence_text(&desired)).await;
            }
            Err(error @ Refused::Write { .. }) => {
                tracing::error!("{error}");
                self.unsaved = Some(desired);
            }
            Err(error) => {
                tracing::warn!("refused: {error}");
                cara_env::point("ledger.refused", || fence_text(&desired)).await;
            }
        }
    }
}

fn fence_text(desired: &Desired) -> String {
    let fence = desired.fence.unwrap_or_default();
    format!("incarnation={} term={} revision={}", fence.incarnation, fence.term, fence.revision)
}

async fn heartbeats(
    env: Env,
    mut interval: watch::Receiver<Duration>,
    readings: watch::Receiver<Option<Readings>>,
    outbox: mpsc::Sender<AgentFrame>,
    witness: Option<Arc<dyn Witness>>,
) {
    let mut sequence = 0;
    loop {
        sequence += 1;
        let readings = *readings.borrow();
        witness.iter().for_each(|witness| witness.sent(sequence));
        if outbox.send(frame(Up::Heartbeat(Heartbeat { sequence, readings }))).await.is_err() {
            return;
        }
        cara_env::mark("heartbeat.sent", || format!("sequence={sequence}"));
        // A little early rather than late, and never in step with other nodes.
        let full = u64::try_from(interval.borrow_and_update().as_millis()).unwrap_or(u64::MAX);
        let wait = Duration::from_millis(full / 5 * 4 + env.rng.below(full / 5 + 1));
        tokio::select! {
            biased;
            () = env.clock.sleep(wait) => {}
            changed = interval.changed() => if changed.is_err() { return },
        }
    }
}

/// Sends the whole report now and at each change, also of whom the agent trusts.
async fn reports(mut reports: watch::Receiver<Option<Report>>, keeper: Arc<Keeper>, outbox: mpsc::Sender<AgentFrame>) {
    let mut trusted = keeper.trusted();
    loop {
        trusted.borrow_and_update();
        let report = reports.borrow_and_update().clone();
        if let Some(report) = report {
            let report = Report { trusted_cas: keeper.identity().trusted_cas(), ..report };
            if outbox.send(frame(Up::Report(report))).await.is_err() {
                return;
            }
        }
        let changed = tokio::select! {
            biased;
            changed = reports.changed() => changed,
            changed = trusted.changed() => changed,
        };
        if changed.is_err() {
            // The agent is ending: stay, so that the session ends for its own reason.
            std::future::pending::<()>().await;
        }
    }
}

fn frame(frame: Up) -> AgentFrame {
    AgentFrame { frame: Some(frame) }
}

fn interval_of(ms: u64) -> Duration {
    if ms == 0 { INTERVAL_DEFAULT } else { Duration::from_millis(ms) }
}

fn why(status: Status) -> Why {
    let refusal = refusal(&status);
    if refusal.leader.is_some() || refusal.code == "not_leader" {
        Why::NotLeader(refusal.leader)
    } else if refusal.is_final {
        let Refusal { code, message, hint, rejects_identity, .. } = refusal;
        Why::Refused(Denial { code, message, hint, rejects_identity })
    } else if refusal.code == HELD {
        Why::Held
    } else if status.code() == tonic::Code::Unavailable && !refusal.code.is_empty() {
        Why::NotLeader(None) // It said so itself, so it lives: no leader is known at the moment.
    } else {
        Why::Lost(refusal.message)
    }
}

fn parted(goodbye: Goodbye) -> Why {
    let leader = Some(goodbye.leader).filter(|leader| !leader.is_empty());
    match goodbye.code.as_str() {
        "not_leader" => Why::NotLeader(leader),
        "revoked" | "deleted" => {
            let (code, message) = (goodbye.code, goodbye.message);
            Why::Refused(Denial { rejects_identity: code == "revoked", code, message, hint: String::new() })
        }
        code => Why::Lost(format!("the server said goodbye ({code}): {}", goodbye.message)),
    }
}
