//! Open connections: both ends share one [`Conn`], which knows when the bytes of each direction may be read, whether the
//! connection was reset, and whom to wake.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use crate::pipe::{Pipe, Pipes};
use crate::trace;

/// Bytes under way in one direction before a writer has to wait: the kernel's send and receive buffers.
const IN_FLIGHT_MAX: usize = 4 << 20;

/// One write on its way.
#[derive(Debug)]
struct Piece {
    bytes: usize,
    /// Not yet read.
    left: usize,
    sent: Duration,
    deliver_at: Duration,
}

/// May the reader go on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// What comes next has nothing to wait for but turmoil.
    Now,
    /// At this time of the world.
    At(Duration),
    /// Not before somebody wakes it.
    Clogged,
}

#[derive(Debug, Default)]
struct LaneState {
    pieces: VecDeque<Piece>,
    in_flight: usize,
    last: Duration,
    reader: Option<Waker>,
    writer: Option<Waker>,
    reader_gone: bool,
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Lane {
    from: String,
    to: String,
    pipe: Arc<Pipe>,
    state: Mutex<LaneState>,
}

impl Lane {
    /// So many bytes leave now; none stands for the end of the stream.
    pub(crate) fn sent(&self, now: Duration, bytes: usize) {
        let mut state = self.lock();
        let deliver_at = self.pipe.deliver_at(now, bytes).max(state.last);
        state.last = deliver_at;
        state.in_flight += bytes;
        state.pieces.push_back(Piece { bytes, left: bytes, sent: now, deliver_at });
    }

    /// May the reader read what comes next?
    pub(crate) fn ready(&self, now: Duration) -> Ready {
        if self.pipe.is_clogged() {
            return Ready::Clogged;
        }
        match self.lock().pieces.front() {
            Some(next) if next.deliver_at > now => Ready::At(next.deliver_at),
            _ => Ready::Now,
        }
    }

    /// The reader has got so many bytes; none stands for the end of the stream.
    pub(crate) fn received(&self, now: Duration, bytes: usize) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(bytes);
        let mut left = bytes;
        while let Some(piece) = state.pieces.front_mut() {
            let taken = left.min(piece.left);
            piece.left -= taken;
            left -= taken;
            if piece.left > 0 || (piece.bytes == 0 && bytes > 0) {
                break;
            }
            self.message(piece, Some(now));
            state.pieces.pop_front();
            if left == 0 {
                break;
            }
        }
        let writer = if state.in_flight < IN_FLIGHT_MAX { state.writer.take() } else { None };
        drop(state);
        wake(writer);
    }

    /// Must a writer wait?
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.in_flight >= IN_FLIGHT_MAX && !state.reader_gone
    }

    /// Wakes this reader when something changes for it.
    pub(crate) fn keep_reader(&self, waker: &Waker) {
        keep(&mut self.lock().reader, waker);
    }

    /// Wakes this writer when something changes for it.
    pub(crate) fn keep_writer(&self, waker: &Waker) {
        keep(&mut self.lock().writer, waker);
    }

    /// The reading end is gone; a writer that waits for it shall see that.
    pub(crate) fn reader_gone(&self) {
        let mut state = self.lock();
        state.reader_gone = true;
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        drop(reader); // Outside the lock: the last waker of a task drops the task.
        wake(writer);
    }

    /// The writing end is gone and will not wait any more.
    pub(crate) fn writer_gone(&self) {
        let writer = self.lock().writer.take();
        drop(writer);
    }

    /// Everything under way may be read now.
    fn hurry(&self, now: Duration) {
        let mut state = self.lock();
        state.last = state.last.min(now);
        for piece in &mut state.pieces {
            piece.deliver_at = piece.deliver_at.min(now);
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
    }

    fn wake_both(&self) {
        let mut state = self.lock();
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        wake(reader);
        wake(writer);
    }

    fn message(&self, piece: &Piece, received: Option<Duration>) {
        if piece.bytes > 0 {
            trace::message(&self.from, &self.to, piece.sent, received, piece.bytes as u64);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(place: &mut Option<Waker>, waker: &Waker) {
    if !place.as_ref().is_some_and(|known| known.will_wake(waker)) {
        *place = Some(waker.clone());
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Both addresses, the lesser first.
type Key = (SocketAddr, SocketAddr);

/// One connection, shared by its ends.
#[derive(Debug)]
pub(crate) struct Conn {
    key: Key,
    /// From the lesser address to the greater, and back.
    lanes: [Lane; 2],
    reset: AtomicBool,
    all: Weak<Conns>,
}

impl Conn {
    /// What the end with this address sends into.
    pub(crate) fn outgoing(&self, local: SocketAddr) -> &Lane {
        &self.lanes[usize::from(local != self.key.0)]
    }

    /// What the end with this address reads from.
    pub(crate) fn incoming(&self, local: SocketAddr) -> &Lane {
        &self.lanes[usize::from(local == self.key.0)]
    }

    /// Was the connection reset?
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        for lane in &self.lanes {
            for piece in &lane.lock().pieces {
                lane.message(piece, None);
            }
        }
        if let Some(all) = self.all.upgrade() {
            all.lock().remove(&self.key);
        }
    }
}

/// All open connections of a world.
#[derive(Debug, Default)]
pub(crate) struct Conns(Mutex<BTreeMap<Key, Weak<Conn>>>);

impl Conns {
    /// The connection of the end `local` on `host` with the end `remote` on `peer`: the end that comes first makes it.
    pub(crate) fn join(
        self: &Arc<Self>,
        pipes: &Pipes,
        (host, local): (&str, SocketAddr),
        (peer, remote): (&str, SocketAddr),
    ) -> Arc<Conn> {
        let key = if local <= remote { (local, remote) } else { (remote, local) };
        if let Some(open) = self.lock().get(&key).and_then(Weak::upgrade) {
            return open;
        }
        let (a, b) = if local <= remote { (host, peer) } else { (peer, host) };
        let lane = |from: &str, to: &str| Lane {
            from: from.to_owned(),
            to: to.to_owned(),
            pipe: pipes.between(from, to),
            state: Mutex::default(),
        };
        let lanes = [lane(a, b), lane(b, a)];
        let conn = Arc::new(Conn { key, lanes, reset: AtomicBool::new(false), all: Arc::downgrade(self) });
        self.lock().insert(key, Arc::downgrade(&conn));
        conn
    }

    /// Resets every open connection between two hosts, and says how many.
    pub(crate) fn reset(&self, a: &str, b: &str) -> usize {
        let mut count = 0;
        for conn in self.open() {
            let lane = &conn.lanes[0];
            let between = (lane.from == a && lane.to == b) || (lane.from == b && lane.to == a);
            if between && !conn.reset.swap(true, Ordering::Relaxed) {
                count += 1;
                conn.lanes.iter().for_each(Lane::wake_both);
            }
        }
        count
    }

    /// A clog from one host to another was lifted: readers look again.
    pub(crate) fn wake(&self, from: &str, to: &str) {
        for conn in self.open() {
            conn.lanes.iter().filter(|lane| lane.from == from && lane.to == to).for_each(Lane::wake_both);
        }
    }

    /// A way is as fast as ever: what is under way arrives now.
    pub(crate) fn hurry(&self, now: Duration, from: &str, to: &str) {
        for conn in self.open() {
            conn.lanes.iter().filter(|lane| lane.from == from && lane.to == to).for_each(|lane| lane.hurry(now));
        }
    }

    /// Everything was lifted everywhere.
    pub(crate) fn hurry_all(&self, now: Duration) {
        self.open().iter().flat_map(|conn| &conn.lanes).for_each(|lane| lane.hurry(now));
    }

    fn open(&self) -> Vec<Arc<Conn>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<Conn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
