//! Keeps answers on an append stream from being credited to requests that were sent later.
//!
//! openraft notes the sending time of each request and, when an answer says "I have everything up to X", credits the
//! answer to every noted request that ends at or before X. After a pause of the process that is wrong: a request that
//! carries no entries may be noted at thaw, before an answer from before the pause is read; the old answer then proves
//! the leader's authority for the time after the pause, and a read would be served by a leader that has been replaced.
//!
//! Two rules close this, at no cost for streams that carry entries:
//! * while openraft handles an answer, no new request is taken from it ([`Paced`]);
//! * an answer is kept back while a later request is on its way that it would also cover ([`Pace::answered`]); that
//!   request's own answer says at least as much.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};

use crate::types::{LogId, TypeConfig};

#[derive(Default)]
struct State {
    /// The last position that each unanswered request covers, oldest first.
    sent: VecDeque<Option<LogId>>,
    /// An answer is in openraft's hands.
    handling: bool,
    waiting: Option<Waker>,
}

/// Shared by the two directions of one stream.
#[derive(Default)]
pub(crate) struct Pace(Mutex<State>);

impl Pace {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests without an answer.
    pub(crate) fn outstanding(&self) -> usize {
        self.lock().sent.len()
    }

    /// openraft comes for the next answer, so it is done with the last one.
    pub(crate) fn handled(&self) {
        let mut state = self.lock();
        state.handling = false;
        if let Some(waker) = state.waiting.take() {
            waker.wake();
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

/// The requests of one stream, taken from openraft only while it handles no answer.
pub(crate) struct Paced<S> {
    input: S,
    pace: std::sync::Arc<Pace>,
}

impl<S> Paced<S> {
    pub(crate) fn new(input: S, pace: std::sync::Arc<Pace>) -> Self {
        Self { input, pace }
    }
}

impl<S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin> Stream for Paced<S> {
    type Item = AppendEntriesRequest<TypeConfig>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        // Held while openraft notes the request: an answer is judged before that or after it, never in between.
        let mut state = this.pace.lock();
        if state.handling {
            state.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let next = Pin::new(&mut this.input).poll_next(cx);
        if let Poll::Ready(Some(request)) = &next {
            let last = request.entries.last().map(|entry| entry.log_id).or(request.prev_log_id);
            state.sent.push_back(last);
        }
        next
    }
}
