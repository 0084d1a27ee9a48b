//! The target's side: one round of one workload, tried until it is done or something else is wanted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_proto::volume as pb;
use cara_proto::volume::volumes_client::VolumesClient;
use cara_proto::workload::Transfer;
use cara_volume::wire::unpack;
use cara_volume::{Hash, Manifest, Need, RoundReport, TargetSession, Tree, VolumeError};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::progress::{Bytes, Teller};
use super::{Ground, STEPS_AT_A_TIME, trust, tunnel};
use crate::backoff::Backoff;
use crate::enrol::with_causes;

/// A source that says nothing for this long is gone; while it scans it speaks every two seconds.
const SILENCE: Duration = Duration::from_secs(20);
/// The longest wait between two attempts: a move has people waiting for it.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// What is kept of a workload's transfer from round to round, so that only what has changed is read again.
#[derive(Default)]
pub(super) struct Memory {
    /// What each volume held at the end of the last round.
    manifests: Mutex<BTreeMap<String, Arc<Manifest>>>,
    /// Held while a volume is written. A round that was given up may have its last piece of work still running.
    turn: Arc<Mutex<()>>,
}

/// One round.
pub(super) struct Pull {
    pub(super) ground: Ground,
    pub(super) uid: String,
    pub(super) transfer: Transfer,
    /// Name in the spec and name in the engine.
    pub(super) volumes: Vec<(String, String)>,
    pub(super) memory: Arc<Memory>,
    pub(super) teller: Teller,
    /// Set when something else is wanted: nothing is written from then on.
    pub(super) given_up: Arc<AtomicBool>,
    pub(super) finished: BTreeMap<String, RoundReport>,
    /// Of attempts that have failed.
    pub(super) sent_before: u64,
}

/// Why an attempt has failed.
struct Trouble {
    code: &'static str,
    message: String,
    unreachable: bool,
}

/// What a piece of work hands back.
type Piece = (TargetSession, Box<dyn Tree + Send>, Result<Need, VolumeError>);

impl Pull {
    /// Returns once the round is finished.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(self.ground.backoff_min.min(BACKOFF_MAX), BACKOFF_MAX);
        cara_env::point("transfer.begun", || self.detail()).await;
        loop {
            let sent = self.sent_before;
            match self.attempt().await {
                Ok(()) => break,
                Err(trouble) => {
                    tracing::warn!(uid = %self.uid, round = self.transfer.round, "transfer: {}", trouble.message);
                    if trouble.code == "differs" {
                        cara_env::point("transfer.differs", || self.detail()).await;
                    }
                    let bytes = self.bytes(None);
                    self.teller.failed(bytes, trouble.code, &trouble.message, trouble.unreachable);
                }
            }
            if self.sent_before > sent {
                backoff.reset(); // It has got further.
            }
            let wait = backoff.next(&*self.ground.env.rng);
            self.ground.env.clock.sleep(wait).await;
        }
        // Told only after a crash here would have been seen: the round is on disk, and nobody knows it.
        cara_env::point("transfer.round", || self.detail()).await;
        let (bytes, digest) = (self.bytes(None), digest(&self.finished));
        tracing::info!(uid = %self.uid, round = self.transfer.round, sent = bytes.sent, "round of a transfer finished");
        self.teller.finished(&self.transfer, bytes, digest);
    }

    fn detail(&self) -> String {
        let Transfer { move_id, round, r#final, .. } = &self.transfer;
        format!("workload={} move={move_id} round={round} final={}", self.uid, r#final)
    }

    async fn attempt(&mut self) -> Result<(), Trouble> {
        let mut client = VolumesClient::new(self.connect().await?);
        for (volume, name) in self.volumes.clone() {
            if !self.finished.contains_key(&volume) {
                let mut sent = 0;
                let outcome = self.volume(&mut client, &volume, &name, &mut sent).await;
                self.sent_before += sent;
                self.finished.insert(volume, outcome?);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Channel, Trouble> {
        let Transfer { source_node, source_address, relay, move_id, .. } = &self.transfer;
        let unreachable = |message: String| Trouble { code: "unreachable", message, unreachable: !relay };
        if source_address.is_empty() && !relay {
            return Err(unreachable(format!("node {source_node} has told no address for its volumes")));
        }
        let tls = trust::client(&self.ground.keeper, source_node).map_err(|message| Trouble {
            code: "target_failed",
            message,
            unreachable: false,
        })?;
        let env = if *relay { tunnel::env(&self.ground, move_id) } else { self.ground.env.clone() };
        let address = if *relay { "the leader's relay" } else { source_address.as_str() };
        let connecting = cara_transport::connect(&env, address, tls, self.ground.connect_deadline);
        connecting.await.map_err(|error| unreachable(format!("node {source_node}: {}", with_causes(&error))))
    }

    /// One volume. `sent` is counted also when it fails.
    async fn volume(
        &mut self,
        client: &mut VolumesClient<Channel>,
        volume: &str,
        name: &str,
        sent: &mut u64,
    ) -> Result<RoundReport, Trouble> {
        let tree = self.ground.runtime.volume_tree(name).await;
        let mut tree = tree.map_err(|error| target_failed(error.to_string()))?;
        let previous = self.manifests(|manifests| manifests.get(volume).cloned());
        let round = self.round(volume);
        // In the final round both ends stand still, and both scan at the same time; the source's pages wait. Before that, the
        // source would have gone on by the time this end's scan is done, and is asked then.
        let mut early = None;
        if round.r#final {
            early = Some(self.open(client.manifest(pb::ManifestRequest { round: Some(round.clone()) })).await?);
        }
        let mut session = TargetSession::new(round, previous, self.ground.now_ns());
        loop {
            let need;
            (session, tree, need) = self.step(session, tree).await;
            *sent = session.progress().bytes_sent;
            let need = need.map_err(|error| self.judge(volume, &error))?;
            match need {
                Need::Step => {}
                Need::Manifest(request) => {
                    let pages = match early.take() {
                        Some(pages) => pages,
                        None => self.open(client.manifest(request)).await?,
                    };
                    self.take_manifest(pages, &mut session).await?;
                }
                Need::Chunks(request) => self.fetch_chunks(client, &mut session, request).await?,
                Need::Done => break,
            }
            *sent = session.progress().bytes_sent;
            let (bytes, now) = (self.bytes(Some(&session)), self.ground.env.clock.monotonic());
            self.teller.moved(bytes, now);
        }
        let (report, manifest) = session.finish().map_err(|error| target_failed(error.to_string()))?;
        let stored = self.ground.runtime.store_volume(name, tree).await;
        stored.map_err(|error| target_failed(error.to_string()))?;
        self.manifests(|manifests| manifests.insert(volume.to_owned(), manifest));
        Ok(report)
    }

    /// A piece of work on the volume, until something is needed or the round is given up.
    async fn step(&self, mut session: TargetSession, mut tree: Box<dyn Tree + Send>) -> Piece {
        let (turn, given_up, now_ns) = (self.memory.turn.clone(), self.given_up.clone(), self.ground.now_ns());
        let working = cara_env::blocking(move || {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut need = Ok(Need::Step);
            for _ in 0..STEPS_AT_A_TIME {
                need = if given_up.load(Ordering::Acquire) {
                    Err(VolumeError::Peer("something else is wanted now".to_owned()))
                } else {
                    session.step(&mut *tree, now_ns)
                };
                if !matches!(need, Ok(Need::Step)) {
                    break;
                }
            }
            (session, tree, need)
        });
        let piece = working.await;
        // In simulation nothing blocks; other tasks get their turn all the same.
        tokio::task::yield_now().await;
        piece
    }

    async fn take_manifest(
        &self,
        mut pages: Streaming<pb::ManifestPage>,
        session: &mut TargetSession,
    ) -> Result<(), Trouble> {
        loop {
            let page = self.message(&mut pages).await?;
            let page = page.ok_or_else(|| source_failed("the source sent half a manifest"))?;
            let is_last = page.last;
            session.take_page(page).map_err(|error| source_failed(&error.to_string()))?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn fetch_chunks(
        &mut self,
        client: &mut VolumesClient<Channel>,
        session: &mut TargetSession,
        request: pb::ChunksRequest,
    ) -> Result<(), Trouble> {
        let mut chunks = self.open(client.chunks(request)).await?;
        let mut count = 0;
        while let Some(message) = self.message(&mut chunks).await? {
            if message.hash.is_empty() {
                continue; // The source is at work.
            }
            for chunk in unpack(message) {
                session.take_chunk(chunk).map_err(|error| source_failed(&error.to_string()))?;
                count += 1;
                cara_env::point("transfer.chunk", || self.detail()).await;
            }
        }
        // What is missing is asked for again, but not for ever.
        if count == 0 { Err(source_failed("the source sent nothing of what was asked for")) } else { Ok(()) }
    }

    async fn open<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<Streaming<T>>, Status>>,
    ) -> Result<Streaming<T>, Trouble> {
        let opened = cara_env::timeout(&*self.ground.env.clock, self.ground.call_deadline, call).await;
        let opened = opened.unwrap_or_else(|_| Err(Status::deadline_exceeded("the source did not answer")));
        Ok(opened.map_err(|status| refused(&status))?.into_inner())
    }

    async fn message<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, Trouble> {
        let message = cara_env::timeout(&*self.ground.env.clock, SILENCE, stream.message()).await;
        let message = message.unwrap_or_else(|_| Err(Status::deadline_exceeded("the source has fallen silent")));
        message.map_err(|status| refused(&status))
    }

    fn round(&self, volume: &str) -> pb::Round {
        pb::Round {
            move_id: self.transfer.move_id.clone(),
            workload_uid: self.uid.clone(),
            volume: volume.to_owned(),
            data_generation: self.transfer.from_data_generation,
            number: self.transfer.round,
            r#final: self.transfer.r#final,
        }
    }

    fn judge(&self, volume: &str, error: &VolumeError) -> Trouble {
        let code = match error {
            VolumeError::Differs { .. } => {
                // The next attempt takes nothing for granted.
                self.manifests(|manifests| manifests.remove(volume));
                "differs"
            }
            VolumeError::Changed { .. } | VolumeError::Manifest(_) | VolumeError::Peer(_) => "source_failed",
            VolumeError::Tree(_)
            | VolumeError::Path(_)
            | VolumeError::TooLarge { .. }
            | VolumeError::Corrupt { .. }
            | VolumeError::Unasked { .. }
            | VolumeError::OutOfTurn(_)
            | VolumeError::Archive { .. } => "target_failed",
        };
        Trouble { code, message: format!("volume {volume}: {error}"), unreachable: false }
    }

    fn manifests<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Arc<Manifest>>) -> T) -> T {
        work(&mut self.memory.manifests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn bytes(&self, current: Option<&TargetSession>) -> Bytes {
        let mut bytes = Bytes { sent: self.sent_before, ..Bytes::default() };
        for report in self.finished.values() {
            bytes.total += report.bytes_total;
            bytes.done += report.bytes_total;
        }
        if let Some(progress) = current.map(TargetSession::progress) {
            bytes.total += progress.bytes_total;
            bytes.done += progress.bytes_done;
            bytes.sent += progress.bytes_sent;
        }
        bytes
    }
}

/// What this node holds at the end of a round: of one volume its digest, of several one over their names and digests.
fn digest(reports: &BTreeMap<String, RoundReport>) -> String {
    if reports.len() == 1 {
        return reports.values().map(|report| report.target_digest.to_string()).collect();
    }
    let lines = reports.iter().map(|(volume, report)| format!("{volume}\n{}\n", report.target_digest));
    Hash::of(lines.collect::<String>().as_bytes()).to_string()
}

fn target_failed(message: String) -> Trouble {
    Trouble { code: "target_failed", message, unreachable: false }
}

fn source_failed(message: &str) -> Trouble {
    Trouble { code: "source_failed", message: message.to_owned(), unreachable: false }
}

fn refused(status: &Status) -> Trouble {
    let code = match status.code() {
        Code::FailedPrecondition | Code::PermissionDenied | Code::InvalidArgument | Code::Unauthenticated => "refused",
        _ => "source_failed",
    };
    Trouble { code, message: format!("the source says: {}", status.message()), unreachable: false }
}
