//! Durations as people write them: `3s`, `400ms`, `1m30s`, and ranges of them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Units and their milliseconds, longest name first so that `ms` is not taken for `m`.
const UNITS: &[(&str, f64)] = &[("ms", 1.0), ("d", 86_400_000.0), ("h", 3_600_000.0), ("m", 60_000.0), ("s", 1_000.0)];

/// A duration as text, for example `3s`, `400ms`, `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Span(pub Duration);

/// One duration, or two between which the seed chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SpanRange {
    /// Always this.
    Fixed(Span),
    /// From the first to the second.
    Between([Span; 2]),
}

impl SpanRange {
    /// The least and the greatest.
    pub fn bounds(self) -> (Duration, Duration) {
        match self {
            Self::Fixed(span) => (span.0, span.0),
            Self::Between([from, to]) => (from.0, to.0.max(from.0)),
        }
    }
}

/// A step of a clock in milliseconds, as text with a sign: `-30s`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Step(pub i64);

/// Reads a duration.
///
/// # Errors
/// Says what it should look like.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write for example 400ms, 3s or 1m30s");
    let mut rest = text.trim();
    let mut ms = 0.0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit)).ok_or_else(wrong)?;
        ms += number * factor;
        rest = &rest[digits + unit.len()..];
    }
    Ok(Duration::from_secs_f64(ms / 1_000.0))
}

/// Writes a duration so that [`parse_duration`] reads it again, exact to the millisecond.
pub fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    if ms.is_multiple_of(1_000) { format!("{}s", ms / 1_000) } else { format!("{ms}ms") }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        duration_text(span.0)
    }
}

impl TryFrom<String> for Step {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text.as_str()), |rest| (-1, rest));
        let ms = i64::try_from(parse_duration(rest)?.as_millis()).map_err(|error| error.to_string())?;
        Ok(Self(sign * ms))
    }
}

impl From<Step> for String {
    fn from(step: Step) -> Self {
        let text = duration_text(Duration::from_millis(step.0.unsigned_abs()));
        if step.0 < 0 { format!("-{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (text, ms) in [("400ms", 400), ("3s", 3_000), ("1m30s", 90_000), ("1.5s", 1_500), ("2h", 7_200_000)] {
            let read = parse_duration(text).expect("a duration");
            assert_eq!(read, Duration::from_millis(ms), "{text}");
            assert_eq!(parse_duration(&duration_text(read)), Ok(read));
        }
        assert_eq!(Step::try_from("-30s".to_owned()), Ok(Step(-30_000)));
        assert_eq!(String::from(Step(-1_500)), "-1500ms");
        for wrong in ["", "3", "s", "3 parsecs", "-3s"] {
            assert!(parse_duration(wrong).expect_err("refused").contains("1m30s"), "{wrong}");
        }
    }
}
