//! Log lines of the code under test go into the trace's record, at the place where they happened.
//!
//! The smallest subscriber that does it: no hash map, no thread, no clock, so that a run with a record is the same run
//! as one without.

use std::fmt::{self, Write};

use cara_netsim::trace;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// From now on log lines of this process go into the trace of the thread that logs.
pub fn into_the_trace() {
    // A second call keeps the first subscriber, which does the same.
    let _set = tracing::subscriber::set_global_default(Lines);
}

struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let ours = ["cara", "raft_store"].iter().any(|name| metadata.target().starts_with(name));
        metadata.is_event() && *metadata.level() <= if ours { Level::DEBUG } else { Level::WARN }
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        trace::comment("", &line.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a string can't fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
