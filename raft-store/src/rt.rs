//! openraft's runtime over the seams: its tasks through [`cara_env::spawn`], so that a frozen host polls none of them,
//! and its randomness (election timeouts) from the host's stream. All its selects are biased already.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cara_env::{Rng as _, Task};
use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use openraft_rt::{AsyncRuntime, OptionalSend};
use openraft_rt_tokio::{TokioInstant, TokioMpsc, TokioMutex, TokioOneshot, TokioRuntime, TokioWatch};

/// See the module.
pub struct Runtime(TokioRuntime);

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtime")
    }
}

/// A task of openraft ended without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskError {
    /// It panicked.
    Panicked,
    /// It was aborted.
    Aborted,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panicked => "the task panicked",
            Self::Aborted => "the task was aborted",
        })
    }
}

/// A running task of openraft. Dropping it detaches the task.
pub struct Joined<T>(Task<Option<T>>);

impl<T> Future for Joined<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|done| match done {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(TaskError::Panicked),
            None => Err(TaskError::Aborted),
        })
    }
}

/// Turns a panic into a value: openraft looks at how its tasks end.
struct Quiet<F>(CatchUnwind<AssertUnwindSafe<F>>);

impl<F: Future> Quiet<F> {
    async fn run(self) -> Option<F::Output> {
        self.0.await.ok()
    }
}

/// The host's random stream in simulation, the kernel's in production.
pub struct HostRng;

impl HostRng {
    fn fill(into: &mut [u8]) {
        match cara_env::current_host() {
            Some(host) => host.rng().fill(into),
            None => cara_env::RealRng.fill(into),
        }
    }
}

impl rand_core::TryRng for HostRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        Self::fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        Self::fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        Self::fill(into);
        Ok(())
    }
}

impl AsyncRuntime for Runtime {
    type JoinError = TaskError;
    type JoinHandle<T: OptionalSend + 'static> = Joined<T>;
    type Sleep = tokio::time::Sleep;
    type Instant = TokioInstant;
    type TimeoutError = tokio::time::error::Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = HostRng;

    fn spawn<T>(future: T) -> Joined<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        Joined(cara_env::spawn(Quiet(AssertUnwindSafe(future).catch_unwind()).run()))
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn sleep_until(deadline: TokioInstant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        tokio::time::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: TokioInstant, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(error: &TaskError) -> bool {
        *error == TaskError::Panicked
    }

    fn thread_rng() -> HostRng {
        HostRng
    }

    type Mpsc = TokioMpsc;
    type Watch = TokioWatch;
    type Oneshot = TokioOneshot;
    type Mutex<T: OptionalSend + 'static> = TokioMutex<T>;

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }
}
