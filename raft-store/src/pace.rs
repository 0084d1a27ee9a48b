//! Keeps answers on an append stream from being credited to requests that were sent later.
//!
//! openraft notes the sending time of each request and, when an answer says "I have everything up to X", credits the
//! answer to every noted request that ends at or before X. After a pause of the process that is wrong: a request that
//! carries no entries may be noted at thaw, before an answer from before the pause is read; the old answer then proves
//! the leader's authority for the time after the pause, and a read would be served by a leader that has been replaced.
//!
//! Two rules close that, at no cost for streams that carry entries:
//! * while openraft handles an answer, no new request is taken from it ([`Paced`]);
//! * an answer is kept back while a later request is on its way that it would also cover ([`Pace::answered`]); that
//!   request's own answer says at least as much.
//!
//! A stream also ends here in two cases:
//! * the entries that it was to send were purged while it was under way: openraft would go on with requests that carry
//!   nothing, and never look at the follower again. After an error it does, and sends a snapshot;
//! * openraft lets go of the answers ([`Answering`]): it is about to open the next stream, and HTTP would go on to take
//!   requests for this one. All streams to a peer draw from one place, so each would get a part of the log.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};

use crate::types::{LogId, TypeConfig};

/// What openraft wants to send.
type Requests = Pin<Box<dyn Stream<Item = AppendEntriesRequest<TypeConfig>> + Send>>;

struct State {
    /// Gone once nobody takes the answers any more, and at once: the request that openraft was about to make holds a lock
    /// that its next stream needs, and HTTP may not ask again before the peer reads.
    requests: Option<Requests>,
    /// The last position that each unanswered request covers, oldest first.
    sent: VecDeque<Option<LogId>>,
    /// An answer is in openraft's hands.
    handling: bool,
    /// Who asked for a request and got none.
    waiting: Option<Waker>,
    /// What was to be sent is purged.
    has_gap: bool,
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

/// Shared by the two directions of one stream.
pub(crate) struct Pace(Mutex<State>);

impl Pace {
    pub(crate) fn new(requests: impl Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + 'static) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            requests: Some(Box::pin(requests)),
            sent: VecDeque::new(),
            handling: false,
            waiting: None,
            has_gap: false,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Did the stream end because what it was to send is purged?
    pub(crate) fn has_gap(&self) -> bool {
        self.lock().has_gap
    }

    /// Requests without an answer.
    pub(crate) fn outstanding(&self) -> usize {
        self.lock().sent.len()
    }

    /// openraft comes for the next answer, so it is done with the last one.
    pub(crate) fn handled(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.handling) {
            state.wake();
        }
    }

    /// Takes note of the answer to the oldest request. May it be handed on?
    pub(crate) fn answered(&self, result: &StreamAppendResult<TypeConfig>) -> bool {
        let mut state = self.lock();
        state.sent.pop_front();
        if let Ok(matching) = result
            && state.sent.front().is_some_and(|last| last <= matching)
        {
            return false;
        }
        state.handling = true;
        true
    }
}

/// The end of a stream that openraft takes answers from. When it is dropped the requests end too.
pub(crate) struct Answering(pub(crate) Arc<Pace>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let requests = state.requests.take();
        state.wake();
        drop(state);
        drop(requests);
    }
}

/// The requests of one stream, taken from openraft only while it handles no answer.
pub(crate) struct Paced {
    pace: Arc<Pace>,
    /// Counts reads of the log whose beginning was purged, of all streams; and how many there were so far.
    gaps: Arc<AtomicU64>,
    seen: u64,
}

impl Paced {
    pub(crate) fn new(pace: Arc<Pace>, gaps: Arc<AtomicU64>) -> Self {
        let seen = gaps.load(Ordering::Relaxed);
        Self { pace, gaps, seen }
    }
}

impl Stream for Paced {
    type Item = AppendEntriesRequest<TypeConfig>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        // Held while openraft notes the request: an answer is judged before that or after it, never in between.
        let mut state = this.pace.lock();
        let handling = state.handling;
        let Some(requests) = &mut state.requests else { return Poll::Ready(None) };
        let next = if handling { Poll::Pending } else { requests.as_mut().poll_next(cx) };
        if next.is_pending() {
            state.waiting = Some(cx.waker().clone());
        }
        if let Poll::Ready(Some(request)) = &next {
            let gaps = this.gaps.load(Ordering::Relaxed);
            // The gap may be another stream's: then this one begins anew for nothing, which is harmless.
            if std::mem::replace(&mut this.seen, gaps) != gaps && request.entries.is_empty() {
                state.has_gap = true;
                return Poll::Ready(None);
            }
            let last = request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id);
            state.sent.push_back(last);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    use futures_util::{FutureExt, StreamExt, stream};
    use openraft::testing::log_id;

    use super::*;
    use crate::types::{Entry, Vote};

    fn at(index: u64) -> Option<LogId> {
        Some(log_id::<TypeConfig>(1, 1, index))
    }

    /// A request that carries the entries behind `prev` up to `last`; none when they are equal.
    fn request(prev: u64, last: u64) -> AppendEntriesRequest<TypeConfig> {
        let entry = |index| Entry { log_id: log_id::<TypeConfig>(1, 1, index), payload: openraft::EntryPayload::Blank };
        AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: at(prev),
            entries: (prev + 1..=last).map(entry).collect(),
            leader_commit: None,
        }
    }

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_answer_is_not_credited_to_a_later_request_without_entries() {
        let pace = Pace::new(stream::iter([request(1, 5), request(5, 5)]));
        let mut requests = Paced::new(pace.clone(), Arc::default());
        requests.next().now_or_never().flatten().expect("the first request");
        requests.next().now_or_never().flatten().expect("the second, before the first one's answer is read");
        assert!(!pace.answered(&Ok(at(5))), "the first answer would also cover the second request");
        assert!(pace.answered(&Ok(at(5))), "the second request's own answer is handed on");
        assert_eq!(pace.outstanding(), 0);
    }

    #[test]
    fn answers_in_a_pipeline_of_entries_pass_at_once() {
        let pace = Pace::new(stream::iter([request(1, 5), request(5, 9)]));
        let mut requests = Paced::new(pace.clone(), Arc::default());
        requests.next().now_or_never().flatten().expect("a request");
        requests.next().now_or_never().flatten().expect("a request");
        assert!(pace.answered(&Ok(at(5))));
        pace.handled();
        assert!(pace.answered(&Ok(at(9))));
    }

    #[test]
    fn nothing_is_sent_while_an_answer_is_handled() {
        let pace = Pace::new(stream::iter([request(1, 5), request(5, 5)]));
        let mut requests = Paced::new(pace.clone(), Arc::default());
        requests.next().now_or_never().flatten().expect("a request");
        assert!(pace.answered(&Ok(at(5))));
        assert!(requests.next().now_or_never().is_none(), "kept back");
        pace.handled();
        requests.next().now_or_never().flatten().expect("goes on");
    }

    #[test]
    fn requests_end_when_openraft_drops_the_answers_with_one_in_its_hands() {
        let pace = Pace::new(stream::iter([request(1, 5), request(5, 5)]));
        let answering = Answering(pace.clone());
        let mut requests = Paced::new(pace.clone(), Arc::default());
        requests.next().now_or_never().flatten().expect("a request");
        let conflict = openraft::raft::StreamAppendError::Conflict(at(5).expect("a position"));
        assert!(pace.answered(&Err(conflict)));
        assert!(requests.next().now_or_never().is_none(), "kept back");
        drop(answering);
        assert!(requests.next().now_or_never().expect("at once").is_none(), "the next stream has this request");
    }

    #[test]
    fn who_waits_for_a_request_is_woken_at_the_end_and_what_openraft_holds_is_let_go_at_once() {
        let held = Arc::new(());
        let holds = held.clone();
        let never = stream::poll_fn(move |_| {
            let _holds = &holds;
            Poll::Pending
        });
        let pace = Pace::new(never);
        let answering = Answering(pace.clone());
        let mut requests = Paced::new(pace, Arc::default());
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        assert!(Pin::new(&mut requests).poll_next(&mut Context::from_waker(&waker)).is_pending());
        drop(answering);
        assert_eq!(Arc::strong_count(&held), 1, "dropped, before HTTP asks again");
        assert!(woken.0.load(Ordering::Relaxed), "HTTP asks again");
        assert!(requests.next().now_or_never().expect("at once").is_none());
    }

    #[test]
    fn a_stream_whose_entries_were_purged_ends_and_says_so() {
        let gaps = Arc::new(AtomicU64::new(7));
        let pace = Pace::new(stream::iter([request(1, 5), request(5, 5), request(5, 9)]));
        let mut requests = Paced::new(pace.clone(), gaps.clone());
        requests.next().now_or_never().flatten().expect("a request with entries");
        gaps.fetch_add(1, Ordering::Relaxed);
        assert!(requests.next().now_or_never().expect("at once").is_none(), "the empty request is not sent");
        assert!(pace.has_gap());
    }
}
