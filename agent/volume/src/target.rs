//! The target's side of a round: what is here, what shall be, fetch, write, and look at the result.
//!
//! ```text
//! Scan ─► Manifest (pages) ─► Receive (chunks) ─► Check ─► Done
//! ```
//!
//! The digest that a round reports is computed from the target's own tree: what was written is read again, what wasn't is
//! taken from this round's scan of it.

use std::sync::Arc;

use cara_proto::volume as pb;

use crate::receive::{ChangedFiles, Next, Receive, ReceiveProgress, Stage};
use crate::scan::Scanner;
use crate::tree::Tree;
use crate::wire::{Assembler, hashes_from_wire, hashes_to_wire};
use crate::{Hash, Manifest, VolumeError};

/// What the round is doing, for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Finds out what is here already.
    Scanning,
    /// Waits for the source's manifest.
    Comparing,
    /// Writes and fetches.
    Copying,
    /// Sets owners, modes and times, and brings everything to disk.
    Finishing,
    /// Reads what was written.
    Checking,
    /// Over.
    Done,
}

/// How far a round is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Bytes of the source's files; 0 until its manifest is here.
    pub bytes_total: u64,
    /// Of these, bytes that are in place.
    pub bytes_done: u64,
    /// Bytes of content that came from the source.
    pub bytes_sent: u64,
    /// Files written.
    pub files: u64,
}

/// How a round ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoundReport {
    /// Which round.
    pub round: u32,
    /// Bytes of the source's files.
    pub bytes_total: u64,
    /// Bytes of content that came from the source.
    pub bytes_sent: u64,
    /// Files written.
    pub files: u64,
    /// Files that changed at the source under its own scan, so that even its manifest mixes old and new.
    pub changed_in_scan: u64,
    /// Files of which chunks changed between the source's scan and the copy; the next round gets these.
    pub changed: ChangedFiles,
    /// Of the source, as it was scanned.
    pub source_digest: Hash,
    /// Of the target, as it is.
    pub target_digest: Hash,
}

impl RoundReport {
    /// Is the target what the source was?
    pub fn is_equal(&self) -> bool {
        self.source_digest == self.target_digest
    }
}

/// What a round needs in order to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing: call [`TargetSession::step`] again.
    Step,
    /// The pages of the source's manifest, by [`TargetSession::take_page`], until the last one.
    Manifest(pb::ManifestRequest),
    /// These chunks, by [`TargetSession::take_chunk`], one by one. What is still missing is asked for again.
    Chunks(pb::ChunksRequest),
    /// Nothing: it is over.
    Done,
}

/// A round at the target.
pub struct TargetSession {
    round: pb::Round,
    stage: Inner,
    /// What was sent and written so far; stands still once everything is in place.
    received: ReceiveProgress,
    bytes_total: u64,
}

#[allow(clippy::large_enum_variant)] // There is one of it.
enum Inner {
    Scan(Scanner),
    Manifest {
        have: Arc<Manifest>,
        pages: Assembler,
    },
    Receive {
        have: Arc<Manifest>,
        want: Arc<Manifest>,
        receive: Receive,
    },
    Check {
        want: Arc<Manifest>,
        changed: ChangedFiles,
        scanner: Scanner,
    },
    Done {
        report: RoundReport,
        manifest: Arc<Manifest>,
    },
    /// Only within a step, and after one that failed.
    Failed,
}

impl TargetSession {
    /// Begins a round at `now_ns` (nanoseconds since 1970). `previous` is what the round before has returned; without it, as
    /// after a restart, everything that is here is read.
    pub fn new(round: pb::Round, previous: Option<Arc<Manifest>>, now_ns: i64) -> Self {
        let scanner = Scanner::new(previous, Default::default(), now_ns);
        Self { round, stage: Inner::Scan(scanner), received: ReceiveProgress::default(), bytes_total: 0 }
    }

    /// A bounded piece of work. `now_ns` is asked for where the time matters and may be read from the clock each time.
    ///
    /// # Errors
    /// When the round can't go on; it has to be begun again, and finds what it has got so far. In the final round also when
    /// the target isn't what the source is.
    pub fn step(&mut self, tree: &mut dyn Tree, now_ns: i64) -> Result<Need, VolumeError> {
        match std::mem::replace(&mut self.stage, Inner::Failed) {
            Inner::Scan(mut scanner) => {
                self.stage = if scanner.step(tree)? {
                    Inner::Manifest { have: Arc::new(scanner.finish()?), pages: Assembler::new() }
                } else {
                    Inner::Scan(scanner)
                };
            }
            waiting @ Inner::Manifest { .. } => {
                self.stage = waiting;
                return Ok(Need::Manifest(pb::ManifestRequest { round: Some(self.round.clone()) }));
            }
            Inner::Receive { have, want, mut receive } => {
                let next = receive.step(tree)?;
                self.received = receive.progress();
                if next == Next::Done {
                    let (dirty, changed) = receive.into_outcome();
                    self.stage = Inner::Check { want, changed, scanner: Scanner::new(Some(have), dirty, now_ns) };
                    return Ok(Need::Step);
                }
                self.stage = Inner::Receive { have, want, receive };
                if let Next::Fetch(hashes) = next {
                    let (round, hashes) = (Some(self.round.clone()), hashes_to_wire(&hashes));
                    return Ok(Need::Chunks(pb::ChunksRequest { round, hashes, takes_more: true }));
                }
            }
            Inner::Check { want, changed, mut scanner } => {
                self.stage = if scanner.step(tree)? {
                    self.judge(&want, changed, scanner.finish()?)?
                } else {
                    Inner::Check { want, changed, scanner }
                };
            }
            done @ Inner::Done { .. } => {
                self.stage = done;
                return Ok(Need::Done);
            }
            Inner::Failed => return Err(VolumeError::OutOfTurn("a step was made after one that failed")),
        }
        Ok(Need::Step)
    }

    /// Takes the next page of the source's manifest.
    ///
    /// # Errors
    /// When it is refused, when the source was not at rest in the final round, or when no page is awaited.
    pub fn take_page(&mut self, page: pb::ManifestPage) -> Result<(), VolumeError> {
        let Inner::Manifest { have, pages } = &mut self.stage else {
            return Err(VolumeError::OutOfTurn("a page of a manifest came"));
        };
        let Some(want) = pages.take(page)? else { return Ok(()) };
        if self.round.r#final && want.changed() > 0 {
            return Err(VolumeError::Changed { what: format!("{} files", want.changed()) });
        }
        self.bytes_total = want.bytes();
        let (have, want) = (Arc::clone(have), Arc::new(want));
        let receive = Receive::new(Arc::clone(&have), Arc::clone(&want), self.round.r#final)?;
        self.stage = Inner::Receive { have, want, receive };
        Ok(())
    }

    /// Takes a chunk that was asked for.
    ///
    /// # Errors
    /// Damaged content, or what wasn't asked for; it is not written, and the round can go on.
    pub fn take_chunk(&mut self, chunk: pb::Chunk) -> Result<(), VolumeError> {
        let Inner::Receive { receive, .. } = &mut self.stage else {
            return Err(VolumeError::OutOfTurn("a chunk came"));
        };
        let hash = <[u8; 32]>::try_from(chunk.hash.as_ref())
            .map_err(|_| VolumeError::Manifest("a chunk has no proper hash".to_owned()))?;
        receive.take(Hash(hash), (!chunk.gone).then_some(chunk.data))
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let phase = match &self.stage {
            Inner::Scan(_) => Phase::Scanning,
            Inner::Manifest { .. } => Phase::Comparing,
            Inner::Receive { receive, .. } if receive.stage() < Stage::Metadata(0) => Phase::Copying,
            Inner::Receive { .. } => Phase::Finishing,
            Inner::Check { .. } | Inner::Failed => Phase::Checking,
            Inner::Done { .. } => Phase::Done,
        };
        let ReceiveProgress { bytes_done, bytes_sent, files } = self.received;
        Progress { phase, bytes_total: self.bytes_total, bytes_done, bytes_sent, files }
    }

    /// Once [`Need::Done`] was said: how it ended, and the manifest from which the next round can begin.
    ///
    /// # Errors
    /// When it isn't over.
    pub fn finish(self) -> Result<(RoundReport, Arc<Manifest>), VolumeError> {
        match self.stage {
            Inner::Done { report, manifest } => Ok((report, manifest)),
            Inner::Scan(_) | Inner::Manifest { .. } | Inner::Receive { .. } | Inner::Check { .. } | Inner::Failed => {
                Err(VolumeError::OutOfTurn("the outcome was asked for before the end"))
            }
        }
    }

    fn judge(&self, want: &Manifest, changed: ChangedFiles, is: Manifest) -> Result<Inner, VolumeError> {
        if self.round.r#final
            && let Some(path) = want.first_difference(&is)
        {
            return Err(VolumeError::Differs { path });
        }
        let report = RoundReport {
            round: self.round.number,
            bytes_total: self.bytes_total,
            bytes_sent: self.received.bytes_sent,
            files: self.received.files,
            changed_in_scan: want.changed(),
            changed,
            source_digest: want.digest(),
            target_digest: is.digest(),
        };
        Ok(Inner::Done { report, manifest: Arc::new(is) })
    }
}

/// A source that can be asked and waited for. Who drives a round from asynchronous code uses [`TargetSession`] itself.
pub trait Peer {
    /// Gives all pages of the round's manifest to `take`, which may end it.
    ///
    /// # Errors
    /// When the source can't be asked, and what `take` says.
    fn fetch_manifest(
        &mut self,
        request: &pb::ManifestRequest,
        take: &mut dyn FnMut(pb::ManifestPage) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError>;

    /// Gives the chunks to `take`. It may leave some out; they are asked for again.
    ///
    /// # Errors
    /// When the source can't be asked, and what `take` says.
    fn fetch_chunks(
        &mut self,
        hashes: &[Hash],
        request: &pb::ChunksRequest,
        take: &mut dyn FnMut(pb::Chunk) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError>;
}

/// A whole round at once.
///
/// # Errors
/// As [`TargetSession::step`], and what the peer says.
pub fn run_round(
    tree: &mut dyn Tree,
    peer: &mut dyn Peer,
    round: pb::Round,
    previous: Option<Arc<Manifest>>,
    now_ns: &mut dyn FnMut() -> i64,
) -> Result<(RoundReport, Arc<Manifest>), VolumeError> {
    let mut session = TargetSession::new(round, previous, now_ns());
    loop {
        match session.step(tree, now_ns())? {
            Need::Step => {}
            Need::Manifest(request) => peer.fetch_manifest(&request, &mut |page| session.take_page(page))?,
            Need::Chunks(request) => {
                let hashes = hashes_from_wire(&request.hashes)?;
                peer.fetch_chunks(&hashes, &request, &mut |chunk| session.take_chunk(chunk))?;
            }
            Need::Done => return session.finish(),
        }
    }
}
