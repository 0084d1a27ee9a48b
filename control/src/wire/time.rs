//! Times: milliseconds inside, RFC 3339 UTC outside.

use std::time::Duration;

use jiff::Timestamp;

/// Whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339 in UTC with seconds; empty for 0, which means "never".
pub fn rfc3339(ms: u64) -> String {
    if ms == 0 {
        return String::new();
    }
    let seconds = i64::try_from(ms / 1000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

/// The milliseconds of an RFC 3339 time; none when it isn't one, or is before 1970.
pub fn parse_time(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        assert_eq!(rfc3339(1_700_000_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(parse_time("2023-11-14T22:13:20Z"), Some(1_700_000_000_000));
        assert_eq!(parse_time("2023-11-14T23:13:20+01:00"), Some(1_700_000_000_000));
        assert_eq!(parse_time("soon"), None);
        assert_eq!(rfc3339(0), "");
    }
}
