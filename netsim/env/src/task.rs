//! Tasks, and the gate through which the simulator freezes a host.
//!
//! Every task of a host is spawned through [`spawn`]. In production that is a plain tokio task. In simulation the task
//! inherits the [`Host`] of the task that spawned it, and is polled only when that host's gate admits it: a frozen
//! host (SIGSTOP) polls nothing at all, its connections stay open and its clock goes on.
//!
//! The host is found through a thread-local that is set while one of its tasks is polled, because libraries spawn
//! through static functions (openraft's runtime trait, hyper's executor) that can't carry a handle.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::Rng;

/// The simulator's hold on one host. Production has none.
pub trait Host: Send + Sync + 'static {
    /// May a task of this host be polled now? If not, the gate keeps `waker` and wakes it once it may.
    fn admit(&self, waker: &Waker) -> bool;

    /// The host's random stream, for libraries that ask a static function.
    fn rng(&self) -> &dyn Rng;

    /// A task came to life under this host (`+1`) or ended (`-1`).
    fn count(&self, delta: i64);

    /// One poll of a task is about to happen.
    fn polled(&self);

    /// A task of this host has reached a named chaos point. `true` when the gate is shut because of it, so that the task
    /// shall give way.
    fn reached(&self, point: &'static str, detail: &str) -> bool;

    /// Returns once a piece of [`blocking`] work has had its time on this host; none when its kernel keeps nobody waiting.
    fn kernel(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Host>>> = const { RefCell::new(None) };
}

/// The host whose task is being polled on this thread; none in production.
pub fn current_host() -> Option<Arc<dyn Host>> {
    CURRENT.with(|c| c.borrow().clone())
}

/// Runs `future` as a task of `host`: the root of everything that the host spawns.
pub fn on_host<F: Future>(host: Arc<dyn Host>, future: F) -> impl Future<Output = F::Output> {
    host.count(1);
    Gated { host, future: Some(Box::pin(future)) }
}

/// Spawns a task that ends with its future, or when [`Task::abort`] is called. Dropping the handle detaches it.
pub fn spawn<F>(future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[allow(clippy::disallowed_methods)] // This is the seam.
    let handle = match current_host() {
        None => tokio::spawn(future),
        Some(host) => {
            host.count(1);
            tokio::spawn(Gated { host, future: Some(Box::pin(future)) })
        }
    };
    Task(handle)
}

/// Runs `work`, which may block on the kernel for long, without stalling the runtime: on a thread in production, inline
/// in simulation, where threads would break determinism. Where a simulated host's kernel is slow, the work goes on like
/// that of a thread: also when nobody waits for it any more.
///
/// # Panics
/// Panics when `work` panics.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if let Some(host) = current_host() {
        let Some(kernel) = host.kernel() else { return work() };
        let working = spawn(async move {
            kernel.await;
            work()
        });
        return working.await.expect("nobody holds the task to abort it");
    }
    #[allow(clippy::disallowed_methods)] // This is the seam.
    let handle = tokio::task::spawn_blocking(work);
    handle.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// A running task.
#[derive(Debug)]
pub struct Task<T>(tokio::task::JoinHandle<T>);

impl<T> Task<T> {
    /// Ends the task at its next await point. Awaiting it then gives `None`.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Has the task ended?
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    /// The task's value, or `None` if it was aborted. A panic of the task goes on in the one who waits.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(|done| match done {
            Ok(value) => Some(value),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_aborted) => None,
        })
    }
}

/// Hands hyper's and tonic's own tasks to [`spawn`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Executor;

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(spawn(future));
    }
}

/// A future that is polled only when its host admits it.
struct Gated<F> {
    host: Arc<dyn Host>,
    /// `None` once dropped. Boxed, so that the gate itself is `Unpin` and needs no unsafe projection.
    future: Option<Pin<Box<F>>>,
}

/// Sets the current host for a scope and restores the previous one, also on panic.
struct Scope(Option<Arc<dyn Host>>);

impl Scope {
    fn enter(host: &Arc<dyn Host>) -> Self {
        Self(CURRENT.with(|c| c.borrow_mut().replace(host.clone())))
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.with(|c| *c.borrow_mut() = self.0.take());
    }
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if !self.host.admit(cx.waker()) {
            return Poll::Pending;
        }
        let host = self.host.clone();
        host.polled();
        let _scope = Scope::enter(&host);
        match self.future.as_mut() {
            Some(future) => future.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Gated<F> {
    fn drop(&mut self) {
        // Destructors of the task may spawn; they belong to the host as well.
        let host = self.host.clone();
        let _scope = Scope::enter(&host);
        self.future = None;
        host.count(-1);
    }
}
