//! The source's side: answers what this node's own desired set tells it to send, and nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cara_env::Clock;
use cara_proto::agent::Desired;
use cara_proto::volume as pb;
use cara_proto::volume::volumes_server::Volumes;
use cara_transport::{Caller, Role};
use cara_volume::wire::{hashes_from_wire, pack};
use cara_volume::{Hash, SourceSession, Tree, VolumeError};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

use super::{Ground, STEPS_AT_A_TIME};
use crate::labels::Owner;
use crate::mode::Mode;
use crate::observed::Observed;
use crate::plan::{managed_volumes, newest};

/// Messages on their way to the target: some MiB, enough for a fast link.
const MESSAGES_WAITING: usize = 8;
/// Bytes of chunks read at a time, before the first of them is sent.
const READ_BYTES: usize = 512 << 10;
/// As long as the source works on an answer it says so this often; the target gives up after a multiple of it.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
/// The target may be told of a round a moment before this node is. It waits this long for the order; refused at once, it would come
/// again after a longer pause, and in the final round the workload stands still meanwhile.
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// The engine must list its containers within this.
const LIST_DEADLINE: Duration = Duration::from_secs(10);

/// A volume of a move: workload, volume, move.
type Key = (String, String, String);
type Outbox<T> = mpsc::Sender<Result<T, Status>>;

/// The gRPC service.
#[derive(Clone)]
pub(super) struct VolumesService {
    ground: Ground,
    /// What is kept between the rounds of the moves that the desired set names.
    open: Arc<Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<Open>>>>>,
}

/// A volume that is being read.
#[derive(Default)]
struct Open {
    /// The round whose manifest was made last.
    round: Option<pb::Round>,
    session: SourceSession,
    tree: Option<Box<dyn Tree + Send>>,
}

/// Finds the engine name of the volume that a peer may read in this round.
fn permit(
    owner: &Owner,
    desired: Option<&Desired>,
    caller: Option<&Caller>,
    round: &pb::Round,
) -> Result<String, Status> {
    let refused = |why: &str| Status::failed_precondition(format!("round {} of the move: {why}", round.number));
    let peer = caller.and_then(|caller| caller.peer.as_ref());
    let node = match peer.map(|peer| (&peer.cluster, &peer.role)) {
        Some((cluster, Role::Node(node))) if *cluster == owner.cluster_id => node,
        Some(_) | None => return Err(Status::permission_denied("volumes are for nodes of this cluster only")),
    };
    let assignments = desired.map(|desired| newest(&desired.assignments)).unwrap_or_default();
    let assignment = assignments.get(round.workload_uid.as_str());
    let assignment = assignment.ok_or_else(|| refused("this node has no grant for the workload (yet)"))?;
    let transfer = assignment.transfer.as_ref().filter(|transfer| transfer.move_id == round.move_id);
    let transfer = transfer.ok_or_else(|| refused("this node was not told (yet) to send the workload's volumes"))?;
    if transfer.source_node != owner.node_id || transfer.target_node != *node {
        return Err(Status::permission_denied("the volumes go from another node, or to another one"));
    }
    if transfer.round != round.number || transfer.r#final != round.r#final {
        return Err(refused(&format!("this node was told of round {}", transfer.round)));
    }
    let wanted = (transfer.from_data_generation, assignment.data_generation);
    if wanted != (round.data_generation, round.data_generation) {
        return Err(refused("the data is of another generation"));
    }
    if round.r#final && Mode::of(assignment) != Mode::Stop {
        return Err(refused("the final copy is made of a stopped workload, and this one is not to be stopped"));
    }
    let managed = managed_volumes(owner, assignment).into_iter().find(|(volume, _)| *volume == round.volume);
    managed.map(|(_, name)| name).ok_or_else(|| refused("the workload has no such managed volume"))
}

/// Checks again each time when this node is told something, as long as that could still lead to a yes.
async fn when_told<T>(
    clock: &dyn Clock,
    mut desired: watch::Receiver<Option<Arc<Desired>>>,
    check: impl Fn() -> Result<T, Status>,
) -> Result<T, Status> {
    let told = async {
        loop {
            desired.borrow_and_update();
            let checked = check();
            let is_early = matches!(&checked, Err(status) if status.code() == Code::FailedPrecondition);
            if !is_early || desired.changed().await.is_err() {
                return checked;
            }
        }
    };
    let told = cara_env::timeout(clock, TOLD_WITHIN, told).await;
    told.unwrap_or_else(|_| check())
}

impl VolumesService {
    pub(super) fn new(ground: Ground) -> Self {
        Self { ground, open: Arc::default() }
    }

    /// Checks a request; gives the round and the volume's name in the engine.
    fn check<T>(&self, request: &Request<T>, round: Option<&pb::Round>) -> Result<(pb::Round, String), Status> {
        let round = round.ok_or_else(|| Status::invalid_argument("the request names no round"))?;
        let desired = self.ground.desired.borrow().clone();
        let name = permit(&self.ground.owner, desired.as_deref(), request.extensions().get::<Caller>(), round)?;
        Ok((round.clone(), name))
    }

    /// The state of a volume. States of moves that are not wanted any more are dropped on the way.
    fn open(&self, round: &pb::Round) -> Arc<tokio::sync::Mutex<Open>> {
        let desired = self.ground.desired.borrow().clone();
        let assignments = desired.iter().flat_map(|desired| &desired.assignments);
        let moves: Vec<&str> =
            assignments.filter_map(|a| a.transfer.as_ref()).map(|transfer| transfer.move_id.as_str()).collect();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, _, move_id), _| moves.contains(&move_id.as_str()));
        let key = (round.workload_uid.clone(), round.volume.clone(), round.move_id.clone());
        open.entry(key).or_default().clone()
    }

    /// The final copy is of something that stands still: asks the engine, not only the desired set.
    async fn confirm_stopped(&self, uid: &str) -> Result<(), Status> {
        let filter = self.ground.owner.labels();
        let listing = self.ground.runtime.list(&filter);
        let listing = cara_env::timeout(&*self.ground.env.clock, LIST_DEADLINE, listing).await;
        let listing = listing
            .map_err(|_| Status::unavailable("the container engine does not answer"))?
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let observed = Observed::of(&self.ground.owner, &listing);
        let containers = observed.workloads.get(uid).into_iter().flat_map(|footprint| &footprint.containers);
        if containers.into_iter().any(|held| held.info.state.is_alive()) {
            return Err(Status::failed_precondition("the workload still runs at the source; it is being stopped"));
        }
        Ok(())
    }

    /// Scans the volume and sends its manifest.
    async fn send_manifest(
        &self,
        round: pb::Round,
        name: &str,
        pages: &Outbox<pb::ManifestPage>,
    ) -> Result<(), Status> {
        let open = self.open(&round);
        let progress = Mutex::new(pb::ManifestPage::default());
        let scanning = async {
            let mut open = open.lock().await;
            self.scan(&mut open, &round, name, &progress).await?;
            Ok(open)
        };
        let word = || progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open = self.speak_while(scanning, pages, word).await?;
        for page in open.session.pages().map_err(|error| failed(&error))? {
            let page = page.map_err(|error| failed(&error))?;
            pages.send(Ok(page)).await.map_err(|_| gone())?;
        }
        Ok(())
    }

    /// Waits for work on a volume, and tells the target by a `word` now and then that it goes on, however long one piece of it
    /// takes: an engine that hands out a copy of the volume makes that copy first, and a disk may be slow. Nobody works for
    /// a target that has gone.
    async fn speak_while<T, M>(
        &self,
        work: impl Future<Output = Result<T, Status>>,
        outbox: &Outbox<M>,
        word: impl Fn() -> M,
    ) -> Result<T, Status> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = outbox.closed() => return Err(gone()),
                () = self.ground.env.clock.sleep(PROGRESS_EVERY) => {
                    // Full: there is enough for the target to hear.
                    let _ = outbox.try_send(Ok(word()));
                }
            }
        }
    }

    async fn scan(
        &self,
        open: &mut Open,
        round: &pb::Round,
        name: &str,
        progress: &Mutex<pb::ManifestPage>,
    ) -> Result<(), Status> {
        open.round = None;
        let tree = self.ground.runtime.volume_tree(name).await;
        let mut tree = tree.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut session = std::mem::take(&mut open.session);
        session.begin(round, self.ground.now_ns());
        loop {
            let stepping = cara_env::blocking(move || {
                let mut done = Ok(false);
                for _ in 0..STEPS_AT_A_TIME {
                    done = session.step(&*tree);
                    if !matches!(done, Ok(false)) {
                        break;
                    }
                }
                (session, tree, done)
            });
            let done;
            (session, tree, done) = stepping.await;
            match done {
                Ok(true) => break,
                Ok(false) => *progress.lock().unwrap_or_else(PoisonError::into_inner) = session.progress_page(),
                Err(error) => {
                    open.session = session; // What the last round knows is known to the next attempt.
                    return Err(failed(&error));
                }
            }
            tokio::task::yield_now().await;
        }
        *open = Open { round: Some(round.clone()), session, tree: Some(tree) };
        Ok(())
    }

    /// Sends chunks, in the order asked for; small ones together, when the target `takes_more` than one in a message. A chunk
    /// without a hash says only that this node is at work.
    async fn send_chunks(
        &self,
        round: &pb::Round,
        hashes: Vec<Hash>,
        takes_more: bool,
        chunks: &Outbox<pb::Chunk>,
    ) -> Result<(), Status> {
        let open = self.open(round);
        let waiting = async { Ok(open.lock().await) };
        let mut open = self.speak_while(waiting, chunks, pb::Chunk::default).await?;
        if open.round.as_ref() != Some(round) {
            return Err(Status::failed_precondition("chunks were asked for before the manifest of their round"));
        }
        let mut hashes = hashes.into_iter();
        while hashes.len() > 0 {
            let reading = read(&mut open, hashes);
            let read;
            (read, hashes) = self.speak_while(reading, chunks, pb::Chunk::default).await?;
            for chunk in if takes_more { pack(read) } else { read } {
                chunks.send(Ok(chunk)).await.map_err(|_| gone())?;
            }
        }
        Ok(())
    }
}

/// The hashes that are still to be answered.
type Hashes = std::vec::IntoIter<Hash>;

/// Reads the next chunks. Whoever gives up waiting for them has to begin with the manifest again.
async fn read(open: &mut Open, mut hashes: Hashes) -> Result<(Vec<pb::Chunk>, Hashes), Status> {
    let Some(tree) = open.tree.take() else {
        return Err(Status::failed_precondition("the manifest has to be asked for again"));
    };
    let session = std::mem::take(&mut open.session);
    let reading = cara_env::blocking(move || {
        let read = read_some(&session, &*tree, &mut hashes);
        (session, tree, hashes, read)
    });
    let (session, tree, hashes, read) = reading.await;
    (open.session, open.tree) = (session, Some(tree));
    Ok((read.map_err(|error| failed(&error))?, hashes))
}

/// Tiny ones many at a time: handing over to a thread takes longer than reading one.
fn read_some(session: &SourceSession, tree: &dyn Tree, hashes: &mut Hashes) -> Result<Vec<pb::Chunk>, VolumeError> {
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    while bytes < READ_BYTES && chunks.len() < STEPS_AT_A_TIME {
        let Some(hash) = hashes.next() else { break };
        let chunk = session.chunk(tree, hash)?;
        bytes += chunk.data.len();
        chunks.push(chunk);
    }
    Ok(chunks)
}

fn gone() -> Status {
    Status::cancelled("the target has gone")
}

fn failed(error: &VolumeError) -> Status {
    match error {
        VolumeError::Changed { .. } | VolumeError::TooLarge { .. } => Status::failed_precondition(error.to_string()),
        VolumeError::Tree(_)
        | VolumeError::Path(_)
        | VolumeError::Manifest(_)
        | VolumeError::Corrupt { .. }
        | VolumeError::Unasked { .. }
        | VolumeError::OutOfTurn(_)
        | VolumeError::Differs { .. }
        | VolumeError::Peer(_)
        | VolumeError::Archive { .. } => Status::unavailable(error.to_string()),
    }
}

#[tonic::async_trait]
impl Volumes for VolumesService {
    type ManifestStream = ReceiverStream<Result<pb::ManifestPage, Status>>;

    async fn manifest(&self, request: Request<pb::ManifestRequest>) -> Result<Response<Self::ManifestStream>, Status> {
        let check = || self.check(&request, request.get_ref().round.as_ref());
        let (round, name) = when_told(&*self.ground.env.clock, self.ground.desired.clone(), check).await?;
        // The source asks its engine once more: without that, a stop that is only believed would copy nothing for long.
        if round.r#final && !cara_env::planted("stop-believed") {
            self.confirm_stopped(&round.workload_uid).await?;
        }
        tracing::info!(uid = %round.workload_uid, volume = %round.volume, round = round.number, "sending a volume");
        let (pages, stream) = mpsc::channel(MESSAGES_WAITING);
        let service = self.clone();
        drop(cara_env::spawn(async move {
            if let Err(status) = service.send_manifest(round, &name, &pages).await {
                // Nobody to tell when the target has gone.
                let _ = pages.send(Err(status)).await;
            }
        }));
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    type ChunksStream = ReceiverStream<Result<pb::Chunk, Status>>;

    async fn chunks(&self, request: Request<pb::ChunksRequest>) -> Result<Response<Self::ChunksStream>, Status> {
        let (round, _) = self.check(&request, request.get_ref().round.as_ref())?;
        let pb::ChunksRequest { hashes, takes_more, .. } = request.into_inner();
        let hashes = hashes_from_wire(&hashes).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let (chunks, stream) = mpsc::channel(MESSAGES_WAITING);
        let service = self.clone();
        drop(cara_env::spawn(async move {
            if let Err(status) = service.send_chunks(&round, hashes, takes_more, &chunks).await {
                // As above.
                let _ = chunks.send(Err(status)).await;
            }
        }));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
