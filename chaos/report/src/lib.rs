//! One offline HTML page about one simulated run: swim lanes, faults, messages, verdicts.

mod recording;

pub use recording::{Call, Found, Host, Mark, Message, Recording, Span};
