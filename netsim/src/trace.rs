//! What happened, hashed as it happens.
//!
//! Two runs of one seed are the same run exactly if their hashes are equal. Formatting costs several times the
//! simulation itself, so lines are written only when somebody asks for them ([`record`]).
//!
//! The trace belongs to the thread that runs the world; there is one world per thread at a time.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// More messages than these no page can show.
const MESSAGES_MAX: usize = 200_000;

/// The state of the trace at the end of a run, or at any moment in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest {
    /// Hash over everything so far.
    pub hash: u64,
    /// Events so far, without single writes to connections.
    pub events: u64,
    /// Bytes written to connections so far.
    pub wire_bytes: u64,
    /// The hash at each full simulated second, to find where two runs part.
    pub seconds: Vec<u64>,
}

#[derive(Default)]
struct Trace {
    digest: Digest,
    now_ns: u64,
    out: Option<Box<dyn Write>>,
    line: String,
    messages: Option<Messages>,
}

/// Writes to connections between machines, for people to look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Messages {
    /// In the order in which they were received; those that never were come when their connection ends.
    pub list: Vec<Message>,
    /// How many more there were than are kept (200 000).
    pub left_out: u64,
}

/// One write to a connection. Times are the world's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The machine that wrote.
    pub from: String,
    /// The machine at the other end.
    pub to: String,
    /// When it was written.
    pub sent: Duration,
    /// When its last byte was read; none when the connection ended before.
    pub received: Option<Duration>,
    /// How many bytes.
    pub bytes: u64,
}

thread_local! {
    static TRACE: RefCell<Trace> = RefCell::new(Trace::default());
}

/// Starts over with an empty trace.
pub(crate) fn reset() {
    with(|trace| {
        trace.digest = Digest { hash: 0xcbf2_9ce4_8422_2325, ..Digest::default() };
        trace.now_ns = 0;
    });
}

/// From now on writes a line per event to `out` as well.
pub fn record(out: Box<dyn Write>) {
    with(|trace| trace.out = Some(out));
}

/// Writes what is buffered and closes the record. An error of the file is reported here.
pub fn finish() -> std::io::Result<()> {
    with(|trace| trace.out.take()).map_or(Ok(()), |mut out| out.flush())
}

/// Keeps a list of all messages from now on, or stops doing so and forgets them. It is not a part of the trace: the hash
/// is the same with it and without it.
pub fn record_messages(on: bool) {
    with(|trace| trace.messages = on.then(Messages::default));
}

/// The messages since the last call.
pub fn take_messages() -> Messages {
    with(|trace| trace.messages.as_mut().map(std::mem::take).unwrap_or_default())
}

/// A message that was received, or never will be.
pub(crate) fn message(from: &str, to: &str, sent: Duration, received: Option<Duration>, bytes: u64) {
    with(|trace| {
        let Some(messages) = &mut trace.messages else { return };
        if messages.list.len() >= MESSAGES_MAX {
            messages.left_out += 1;
            return;
        }
        messages.list.push(Message { from: from.to_owned(), to: to.to_owned(), sent, received, bytes });
    });
}

/// The trace so far.
pub fn digest() -> Digest {
    with(|trace| trace.digest.clone())
}

/// An event described by numbers.
pub fn event(host: &str, kind: &str, numbers: &[u64]) {
    with(|trace| {
        trace.begin(host, kind);
        for number in numbers {
            trace.word(*number);
        }
        if trace.out.is_some() {
            let mut line = trace.start_line(host, kind);
            for number in numbers {
                let _ = write!(line, " {number}");
            }
            trace.end_line(line);
        }
    });
}

/// An event described by text.
pub fn note(host: &str, kind: &str, text: &str) {
    with(|trace| {
        trace.begin(host, kind);
        trace.bytes(text.as_bytes());
        if trace.out.is_some() {
            let mut line = trace.start_line(host, kind);
            let _ = write!(line, " {text}");
            trace.end_line(line);
        }
    });
}

/// Only into the record, not into the hash: log lines of the code under test.
pub fn comment(host: &str, text: &str) {
    with(|trace| {
        if trace.out.is_some() {
            let mut line = trace.start_line(host, "log");
            let _ = write!(line, " {text}");
            trace.end_line(line);
        }
    });
}

/// Bytes that a host wrote to a connection.
pub(crate) fn wire(host: &str, connection: u64, bytes: &[u8]) {
    with(|trace| {
        trace.word(trace.now_ns);
        trace.word(connection);
        trace.bytes(bytes);
        trace.digest.wire_bytes += bytes.len() as u64;
        if trace.out.is_some() {
            let mut line = trace.start_line(host, "wire");
            let _ = write!(line, " c{connection} {} bytes {:016x}", bytes.len(), trace.digest.hash);
            trace.end_line(line);
        }
    });
}

/// The driver says what time it is.
pub(crate) fn set_now(ns: u64) {
    const SECOND: u64 = 1_000_000_000;
    with(|trace| {
        if ns / SECOND > trace.now_ns / SECOND {
            trace.digest.seconds.push(trace.digest.hash);
        }
        trace.now_ns = ns;
    });
}

/// A short hash of any bytes, to put into an event.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, part| mix(hash, word_of(part)))
}

fn with<R>(f: impl FnOnce(&mut Trace) -> R) -> R {
    TRACE.with(|trace| f(&mut trace.borrow_mut()))
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

fn word_of(part: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..part.len()].copy_from_slice(part);
    u64::from_le_bytes(word)
}

impl Trace {
    fn begin(&mut self, host: &str, kind: &str) {
        self.digest.events += 1;
        self.word(self.now_ns);
        self.bytes(host.as_bytes());
        self.bytes(kind.as_bytes());
    }

    fn word(&mut self, word: u64) {
        self.digest.hash = mix(self.digest.hash, word);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for part in bytes.chunks(8) {
            self.word(word_of(part));
        }
    }

    fn start_line(&mut self, host: &str, kind: &str) -> String {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let (seconds, nanos) = (self.now_ns / 1_000_000_000, self.now_ns % 1_000_000_000);
        let _ = write!(line, "{seconds:>5}.{:03} {host:<10} {kind}", nanos / 1_000_000);
        line
    }

    fn end_line(&mut self, mut line: String) {
        line.push('\n');
        let failed = self.out.as_mut().is_some_and(|out| out.write_all(line.as_bytes()).is_err());
        if failed {
            // The run goes on without its record; losing the run as well would help nobody.
            eprintln!("the trace file can't be written any more; the run goes on without it");
            self.out = None;
        }
        self.line = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_event_changes_the_hash() {
        let hash = |f: &dyn Fn()| {
            reset();
            f();
            digest().hash
        };
        let base = hash(&|| event("a", "x", &[1]));
        assert_eq!(base, hash(&|| event("a", "x", &[1])));
        assert_ne!(base, hash(&|| event("b", "x", &[1])));
        assert_ne!(base, hash(&|| event("a", "y", &[1])));
        assert_ne!(base, hash(&|| event("a", "x", &[2])));
        assert_ne!(
            base,
            hash(&|| {
                set_now(5);
                event("a", "x", &[1]);
            })
        );
    }

    #[test]
    fn a_log_line_never_changes_the_hash() {
        reset();
        event("a", "x", &[]);
        let before = digest();
        comment("a", "a line");
        assert_eq!(before, digest());
    }
}
