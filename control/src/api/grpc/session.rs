//! One agent's session on the leader, from hello to goodbye.
//!
//! ```text
//! hello -> OpenSession in the log (epoch) -> welcome -> loop { heartbeat -> ack | report -> log | desired -> agent }
//!       -> CloseSession in the log, if the agent said goodbye
//! ```
//! Heartbeats never wait for the log: reports are proposed by a task of their own (`report`), which holds only the newest
//! one.
//!
//! Invariant: a desired set is sent only while this server leads; its fence carries the term, so an agent that has
//! heard a newer leader refuses it.

use std::sync::Arc;
use std::time::Duration;

use cara_core::command::{CloseSession, OpenSession};
use cara_core::reconcile::Cut;
use cara_core::{Answer, Command, Epoch, FEATURE_LEVEL_MIN, MoveId, NodeId, Rejected, ServerId, desired_set, removals};
use cara_proto::agent::agent_frame::Frame as From;
use cara_proto::agent::server_frame::Frame as To;
use cara_proto::agent::{
    AgentFrame, Challenge, Desired, Fence, Goodbye, Heartbeat, HeartbeatAck, Present, Report, ServerFrame, Welcome,
};
use cara_proto::workload::TransferStatus;
use cara_transport::Unanswered;
use futures_util::stream::BoxStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::trust::{Outlived, renewed};
use super::{instance, report};
use crate::api::{Api, SharedApi};
use crate::error::ApiError;
use crate::sessions::{Opened, Order, Rate};
use crate::wire::{self, millis};

/// Frames that wait for a slow agent; desired sets are whole, so the newest would do.
const FRAMES: usize = 16;
/// Orders that wait for a session.
const ORDERS: usize = 16;
/// Sessions that come back within a second when this server is gone, about: the TLS handshake of each takes a good part of a
/// millisecond on either side, and another server must stay able to win an election meanwhile.
const RECONNECTS_PER_S: u64 = 700;
/// A peer that has opened a stream says hello at once.
const HELLO: Duration = Duration::from_secs(10);

/// Opens the session; the returned stream is what the agent hears.
pub async fn open(
    api: &SharedApi,
    node: NodeId,
    fingerprint: String,
    unanswered: Unanswered,
    mut frames: Streaming<AgentFrame>,
) -> Result<BoxStream<'static, Result<ServerFrame, Status>>, ApiError> {
    let first = cara_env::timeout(&*api.env.clock, HELLO, frames.message()).await;
    let Ok(Ok(Some(AgentFrame { frame: Some(From::Hello(hello)) }))) = first else {
        return Err(ApiError::invalid("a session begins with hello"));
    };
    if hello.node_id != node.as_str() {
        return Err(ApiError::invalid(format!("hello names node {}, the certificate is of {node}", hello.node_id)));
    }
    let expect_instance = instance::admit(api, &node, &fingerprint, &hello).await?;
    let command = OpenSession {
        node: node.clone(),
        fingerprint,
        server: ServerId(api.identity.server_id),
        facts: api.known_facts(hello.facts.as_ref()),
        address: String::new(),
        feature_level: hello.feature_level.max(FEATURE_LEVEL_MIN),
        instance: hello.instance.map(|instance| instance.id).unwrap_or_default(),
        expect_instance,
    };
    let presented = command.fingerprint.clone();
    api.sessions.greet(&node, api.mono_ms());
    cara_env::mark("session.asked", || format!("node={}", api.node_name(&node)));
    let reply = match api.propose(&format!("node:{node}"), "", Command::OpenSession(command)).await {
        Err(ApiError::Rejected(Rejected::InstanceChanged { .. })) => {
            return Err(ApiError::Held("another process of this node has just got the session"));
        }
        reply => reply?,
    };
    let Answer::SessionOpened(opened) = reply.answer else {
        return Err(ApiError::Internal("the answer to OpenSession has no epoch".into()));
    };
    let epoch = opened.epoch.0;
    let (to_agent, answer) = mpsc::channel(FRAMES);
    let (orders_in, orders) = mpsc::channel(ORDERS);
    let desired = Arc::new(Notify::new());
    let opened = Opened { epoch, orders: orders_in, desired: desired.clone(), volume_address: hello.volume_address };
    api.sessions.open(&node, opened, api.mono_ms());
    if !api.leads() {
        // Leadership went between the entry and here, and `end_all` may have missed us.
        api.sessions.close(&node, epoch, api.mono_ms());
        return Err(ApiError::NotLeader { leader: api.leader_elsewhere() });
    }
    let (reports_in, reports) = watch::channel(None);
    let session = Session { api: api.clone(), node, epoch, to_agent, reports: reports_in, unanswered, presented };
    session.note_trust(&hello.trusted_cas);
    // Whoever copies from this node learns here where it answers.
    api.read_local(|state| state.moves_on(&session.node).map(|mv| mv.target.clone()).collect::<Vec<_>>())
        .iter()
        .for_each(|target| api.sessions.wake(target));
    drop(cara_env::spawn(report::record(api.clone(), session.node.clone(), epoch, reports)));
    drop(cara_env::spawn(session.run(frames, orders, desired)));
    Ok(Box::pin(ReceiverStream::new(answer)))
}

/// The agent ended the session in order: it is going down.
const AGENT_CLOSED: &str = "the agent closed it";
/// The connection ended by itself: the agent's process died, or its machine, or something between.
const BROKE: &str = "the connection broke";
/// The connection was given up: the agent's machine stands still, or the network swallows what is sent.
const UNANSWERED: &str = "the agent answered no more";

pub(super) struct Session {
    pub(super) api: SharedApi,
    pub(super) node: NodeId,
    epoch: u64,
    to_agent: mpsc::Sender<Result<ServerFrame, Status>>,
    reports: watch::Sender<Option<Report>>,
    /// How the connection below came to its end.
    unanswered: Unanswered,
    /// The certificate with which it was opened.
    pub(super) presented: String,
}

impl Session {
    async fn run(self, frames: Streaming<AgentFrame>, orders: mpsc::Receiver<Order>, desired: Arc<Notify>) {
        let reason = self.talk(frames, orders, desired).await;
        let Self { api, node, epoch, .. } = self;
        api.sessions.close(&node, epoch, api.mono_ms());
        cara_env::point("session.closed", || {
            format!("node={} epoch={epoch} reason={}", api.node_name(&node), reason.replace(' ', "_"))
        })
        .await;
        tracing::info!(%node, epoch, reason, "agent session ended");
        if [BROKE, UNANSWERED].contains(&reason) {
            let cut = Cut { epoch: Epoch(epoch), at_ms: api.mono_ms(), unanswered: reason == UNANSWERED };
            api.sessions.cut(&node, cut);
        }
        // A connection that merely broke says nothing about the node: it comes back, or its silence is judged, with the
        // brake that a mass of broken connections needs.
        if reason == AGENT_CLOSED && api.leads() {
            let command = CloseSession { node: node.clone(), epoch: Epoch(epoch), reason: reason.into() };
            // If this doesn't get into the log, the node's silence will.
            drop(api.propose("leader", "", Command::CloseSession(command)).await);
        }
    }

    /// Over how long this server's agents shall spread when they lose it. Far below the silence after which they are offline.
    fn reconnect_spread_ms(&self) -> u64 {
        let crowd_ms = self.api.sessions.count() as u64 * 1_000 / RECONNECTS_PER_S;
        crowd_ms.min(millis(self.api.config.agent_timeout()) / 2)
    }

    /// Returns why the session ended.
    async fn talk(
        &self,
        mut frames: Streaming<AgentFrame>,
        mut orders: mpsc::Receiver<Order>,
        desired: Arc<Notify>,
    ) -> &'static str {
        tracing::info!(node = %self.node, epoch = self.epoch, "agent session opened");
        let mut servers = self.api.server_addresses();
        let welcome = Welcome {
            epoch: self.epoch,
            heartbeat_interval_ms: millis(self.api.config.agent_heartbeat),
            servers: servers.clone(),
        };
        let mut trust_told = None;
        if !self.send(To::Welcome(welcome)).await
            || !self.tell_trust(&mut trust_told).await
            || !self.send_desired().await
        {
            return "the agent went away";
        }
        let mut shutdown = self.api.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                frame = frames.message() => match frame {
                    Ok(Some(AgentFrame { frame })) => {
                        let is_heartbeat = matches!(frame, Some(From::Heartbeat(_)));
                        if !self.take(frame, &mut servers).await { return "the agent went away" }
                        if is_heartbeat {
                            match self.outlived(&mut trust_told) {
                                Outlived::No => {}
                                Outlived::Renewed => return self.end(renewed()).await,
                                Outlived::NotRenewed if self.tell_trust(&mut trust_told).await => {}
                                Outlived::NotRenewed => return "the agent went away",
                            }
                        }
                    }
                    Ok(None) => return AGENT_CLOSED,
                    Err(_) => return if self.unanswered.is_so() { UNANSWERED } else { BROKE },
                },
                order = orders.recv() => match order {
                    Some(Order::Logs(request)) => drop(self.send(To::Logs(request)).await),
                    Some(Order::Challenge(number)) => drop(self.send(To::Challenge(Challenge { number })).await),
                    Some(Order::End(goodbye)) => return self.end(goodbye).await,
                    None => return "the server gave it up",
                },
                _ = async { shutdown.wait_for(|stop| *stop).await.map(drop) } => {
                    let code = "shutdown".to_owned();
                    self.end(Goodbye { code, message: "the server is stopping".into(), leader: String::new() }).await;
                    return "the server is stopping";
                }
                () = desired.notified() => {
                    if !self.tell_trust(&mut trust_told).await || !self.send_desired().await { return "the agent went away" }
                }
            }
        }
    }

    async fn take(&self, frame: Option<From>, told: &mut Vec<String>) -> bool {
        match frame {
            Some(From::Heartbeat(Heartbeat { sequence, readings })) => {
                self.api.sessions.heard(&self.node, self.epoch, self.api.mono_ms());
                let read_at = self.api.env.clock.wall_ms();
                self.api.sessions.learn(&self.node, |link| link.readings = readings.map(|now| (now, read_at)));
                cara_env::mark("heartbeat.received", || {
                    format!("node={} epoch={}", self.api.node_name(&self.node), self.epoch)
                });
                self.api.metrics.heard();
                let now = self.api.server_addresses();
                let servers = if now == *told { Vec::new() } else { now.clone() };
                *told = now;
                let interval_ms = millis(self.api.config.agent_heartbeat);
                let reconnect_spread_ms = self.reconnect_spread_ms();
                self.send(To::Ack(HeartbeatAck { sequence, interval_ms, servers, reconnect_spread_ms })).await
            }
            Some(From::Report(report)) => {
                self.note(&report);
                self.note_trust(&report.trusted_cas);
                self.reports.send_replace(Some(report));
                true
            }
            Some(From::Present(Present { number })) => {
                self.api.sessions.present(&self.node, self.epoch, number);
                true
            }
            Some(From::Hello(_)) | None => true, // Of a newer version; what we don't know we pass over.
        }
    }

    /// Keeps what is not for the log.
    fn note(&self, report: &Report) {
        for said in report.statuses.iter().filter_map(|status| status.transfer.clone()) {
            let id = MoveId::new(said.move_id.as_str());
            let of_here = |mv: &&cara_core::model::Move| mv.is_running() && mv.target == self.node;
            let source = self.api.read_local(|state| state.get_move(&id).filter(of_here).map(|mv| mv.source.clone()));
            let Some(source) = source else { continue };
            self.measure(&source, &said);
            if self.api.transfers.note(&id, said) {
                tracing::info!(%id, "the target can't dial the source: the bytes go through this server");
                [&source, &self.node].into_iter().for_each(|end| self.api.sessions.wake(end));
            }
        }
    }

    /// Keeps what a transfer to this node tells about the way between the two.
    fn measure(&self, source: &NodeId, said: &TransferStatus) {
        let at_ms = self.api.env.clock.wall_ms();
        let rate =
            (said.rate_bytes_per_second > 0).then_some(Rate { bytes_per_second: said.rate_bytes_per_second, at_ms });
        let relayed = said.unreachable;
        self.api.sessions.learn(source, |link| {
            link.upload = rate.or(link.upload);
            // That the relay works is no sign that it isn't needed: only the node's next session is.
            link.relayed |= relayed;
        });
        self.api.sessions.learn(&self.node, |link| link.download = rate.or(link.download));
    }

    pub(super) async fn send(&self, frame: To) -> bool {
        // An agent that reads nothing for a heartbeat timeout is gone, whatever TCP says.
        let limit = self.api.config.agent_timeout();
        let sending = self.to_agent.send(Ok(ServerFrame { frame: Some(frame) }));
        matches!(cara_env::timeout(&*self.api.env.clock, limit, sending).await, Ok(Ok(())))
    }

    async fn send_desired(&self) -> bool {
        let term = *self.api.leading.borrow();
        if term == 0 {
            return true; // `end_all` is on its way.
        }
        let mut desired = self.api.raft.with_state(|machine| Desired {
            fence: Some(Fence { incarnation: machine.state().incarnation(), term, revision: machine.applied() }),
            assignments: desired_set(machine.state(), &self.node)
                .iter()
                .map(|assignment| wire::assignment(machine.state(), assignment))
                .collect(),
            removals: removals(machine.state(), &self.node).map(wire::removal).collect(),
        });
        for transfer in desired.assignments.iter_mut().filter_map(|assignment| assignment.transfer.as_mut()) {
            transfer.source_address = self.api.sessions.volume_address(&NodeId::new(transfer.source_node.as_str()));
            transfer.relay = self.api.transfers.needs_relay(&MoveId::new(transfer.move_id.as_str()));
        }
        if cara_env::planted("fence-not-checked-on-agent") {
            return self.send_later(desired);
        }
        self.send(To::Desired(desired)).await
    }

    /// The race that the agent's fence is for: sets that overtake each other.
    fn send_later(&self, desired: Desired) -> bool {
        let (clock, to_agent) = (self.api.env.clock.clone(), self.to_agent.clone());
        let jitter = Duration::from_millis(self.api.env.rng.below(500));
        drop(cara_env::spawn(async move {
            clock.sleep(jitter).await;
            drop(to_agent.send(Ok(ServerFrame { frame: Some(To::Desired(desired)) })).await);
        }));
        true
    }

    async fn end(&self, goodbye: Goodbye) -> &'static str {
        let reason = match goodbye.code.as_str() {
            "replaced" => "a newer session replaced it",
            "not_leader" => "this server leads no more",
            "deleted" => "the node was deleted",
            "revoked" => "the node's certificate was revoked",
            "renewed" => "the agent is to use its renewed certificate",
            _ => "the server ended it",
        };
        self.send(To::Goodbye(goodbye)).await;
        reason
    }
}

impl Api {
    /// This server's monotonic clock in ms.
    pub fn mono_ms(&self) -> u64 {
        millis(self.env.clock.monotonic())
    }
}
