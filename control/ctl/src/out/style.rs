//! Colour for status words. The word always stands there as well.

/// What a word means for the one who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// On its way, or by somebody's will.
    Busy,
    /// Needs attention.
    Bad,
    /// No opinion.
    Plain,
}

/// The tone of a status word.
pub fn tone_of(word: &str) -> Tone {
    match word {
        "Ready" | "Running" | "online" | "leader" | "ok" | "running" | "True" | "succeeded" => Tone::Good,
        "Pending" | "Scheduled" | "Terminating" | "Draining" | "pending" | "joining" | "learner" | "expiring"
        | "retry" | "waiting" | "cancelled" | "Stopped" | "quarantined" | "removing" => Tone::Busy,
        "NotReady" | "Failed" | "offline" | "unreachable" | "critical" | "expired" | "revoked" | "exited"
        | "failed" | "rolled_back" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// `text` in the colour of its tone, if colour is allowed.
pub fn paint(allowed: bool, tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Busy => "33",
        Tone::Bad => "31",
        Tone::Plain => return text.to_owned(),
    };
    if allowed { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
