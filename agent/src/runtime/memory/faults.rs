//! What is wrong with a memory engine right now. Plain data: the world writes it, the engine obeys.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::runtime::RuntimeError;

/// Where an engine that is away should have been, in its errors.
const ENDPOINT: &str = "memory";

/// The faults of one engine. They compose; the default is a healthy engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Every call waits while set, as with an engine that accepts and never answers. What waited is done afterwards,
    /// unless the caller has given up by then.
    pub hang: bool,
    /// Every call fails while set, as with an engine that is not running.
    pub away: bool,
    /// Starts wait while set. Who gives up has started nothing.
    pub hang_starts: bool,
    /// Starts that fail. Starting what runs already is no start.
    pub fail_starts: Failing,
    /// Containers that can't be made. Making what exists already is none.
    pub fail_creates: Failing,
    /// Listings fail while set.
    pub fail_lists: bool,
    /// Every listing takes this much longer.
    pub slow_lists: Duration,
    /// Making, removing and opening volumes fails with an input/output error while set.
    pub fail_volumes: bool,
    /// Making, removing and opening a volume takes this much longer.
    pub slow_volumes: Duration,
    /// Reading what is in volumes fails with an input/output error while set. Containers write on.
    pub fail_reads: bool,
    /// No image can be found while set, not even one that was there before.
    pub no_images: bool,
    /// These images can't be found.
    pub missing_images: BTreeSet<String>,
    /// Services of the workloads with these uids fail their health checks while set.
    pub unwell: BTreeSet<String>,
}

/// How many of the next calls fail, and with which words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    /// Counts down; [`Failing::ALWAYS`] doesn't.
    pub left: u64,
    /// The engine's reason.
    pub cause: String,
}

impl Failing {
    /// As long as it is set.
    pub const ALWAYS: u64 = u64::MAX;

    /// The next `times` calls fail.
    pub fn next(times: u64, cause: &str) -> Self {
        Self { left: times, cause: cause.to_owned() }
    }

    /// All calls fail as long as this is set.
    pub fn always(cause: &str) -> Self {
        Self::next(Self::ALWAYS, cause)
    }

    /// The reason if this call fails; counts it.
    fn take(&mut self) -> Option<String> {
        let failed = self.left > 0;
        if failed && self.left != Self::ALWAYS {
            self.left -= 1;
        }
        failed.then(|| self.cause.clone())
    }
}

/// What is asked of the engine, as far as faults tell calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call<'a> {
    List,
    Start,
    Image(&'a str),
    /// `create`, `remove`, `open` or `store`, and the volume's name.
    Volume(&'static str, &'a str),
    Other,
}

impl Faults {
    /// Does this call wait?
    pub(super) fn holds(&self, call: Call<'_>) -> bool {
        self.hang || (self.hang_starts && call == Call::Start)
    }

    /// How much longer this call takes.
    pub(super) fn delay(&self, call: Call<'_>) -> Duration {
        match call {
            Call::List => self.slow_lists,
            Call::Volume(..) => self.slow_volumes,
            Call::Start | Call::Image(_) | Call::Other => Duration::ZERO,
        }
    }

    /// Why this call fails, if it does.
    pub(super) fn error(&self, call: Call<'_>) -> Option<RuntimeError> {
        let failed = |operation, subject: &str, cause: &str| {
            let (subject, cause) = (subject.to_owned(), cause.to_owned());
            Some(RuntimeError::Failed { operation, subject, cause })
        };
        if self.away {
            let cause = "the engine is not running".to_owned();
            return Some(RuntimeError::Away { endpoint: ENDPOINT.to_owned(), cause });
        }
        match call {
            Call::List if self.fail_lists => failed("list", "what exists", "the engine can't read its own records"),
            Call::Volume(operation, name) if self.fail_volumes => failed(operation, name, "input/output error"),
            Call::Image(image) if self.no_images || self.missing_images.contains(image) => {
                let cause = "the registry does not answer".to_owned();
                Some(RuntimeError::ImageMissing { image: image.to_owned(), cause })
            }
            _ => None,
        }
    }

    /// Why a container can't be made, if it can't; counts it.
    pub(super) fn take_create(&mut self, name: &str) -> Option<RuntimeError> {
        let (operation, subject) = ("create", name.to_owned());
        self.fail_creates.take().map(|cause| RuntimeError::Failed { operation, subject, cause })
    }

    /// Why a container can't start, if it can't; counts it.
    pub(super) fn take_start(&mut self, name: &str) -> Option<RuntimeError> {
        let (operation, subject) = ("start", name.to_owned());
        self.fail_starts.take().map(|cause| RuntimeError::Failed { operation, subject, cause })
    }
}
