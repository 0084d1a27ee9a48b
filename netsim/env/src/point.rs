//! Named chaos points: places in the code that the simulator wants to hear of, and at which it may stop the host.
//!
//! A point has a name of the field's words (`raft.elected`, `enrol.spent`, `session.opened`) and a detail (a term, a
//! node's name). Fault schedules are written against these names, so they are an interface: a renamed point is a changed
//! scenario file. Without the feature `chaos` both functions are empty and their arguments are never computed; no
//! production build has that feature, because only the simulator asks for it.

/// Tells the simulator that this place was reached. For code that can't wait.
#[cfg(feature = "chaos")]
pub fn mark(name: &'static str, detail: impl FnOnce() -> String) {
    if let Some(host) = crate::current_host() {
        host.reached(name, &detail());
    }
}

/// Tells the simulator that this place was reached. For code that can't wait.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub fn mark(_name: &'static str, _detail: impl FnOnce() -> String) {}

/// As [`mark`], and nothing after this place happens before the simulator has had its turn: a crash, a freeze or a cut
/// that hangs on this point hits exactly here.
#[cfg(feature = "chaos")]
pub async fn point(name: &'static str, detail: impl FnOnce() -> String) {
    let Some(host) = crate::current_host() else { return };
    if !host.reached(name, &detail()) {
        return;
    }
    // The gate is shut from now on. Give way once; the gate keeps the waker until it opens.
    let mut gave_way = false;
    std::future::poll_fn(move |cx| {
        if gave_way {
            return std::task::Poll::Ready(());
        }
        gave_way = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// As [`mark`], and nothing after this place happens before the simulator has had its turn: a crash, a freeze or a cut
/// that hangs on this point hits exactly here.
#[cfg(not(feature = "chaos"))]
#[inline(always)]
pub async fn point(_name: &'static str, _detail: impl FnOnce() -> String) {}
