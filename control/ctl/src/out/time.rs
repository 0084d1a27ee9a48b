//! Points in time as ages and as what is left.

/// How long ago an RFC 3339 time was, in one unit, truncated: `45s`, `3m`, `7h`, `12d`. Empty for what is no time.
pub fn age(at: &str, now_ms: u64) -> String {
    seconds(at, now_ms).map(|s| units((-s).max(0))).unwrap_or_default()
}

/// How far in the future an RFC 3339 time is, or `passed`. Empty for what is no time.
pub fn until(at: &str, now_ms: u64) -> String {
    match seconds(at, now_ms) {
        Some(s) if s > 0 => units(s),
        Some(_) => "passed".to_owned(),
        None => String::new(),
    }
}

/// Milliseconds from one RFC 3339 time to a later one; none when one is no time, or the order is another.
pub fn between(from: &str, to: &str) -> Option<u64> {
    let (from, to): (jiff::Timestamp, jiff::Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
}

fn seconds(at: &str, now_ms: u64) -> Option<i64> {
    let at: jiff::Timestamp = at.parse().ok()?;
    Some(at.as_second() - i64::try_from(now_ms / 1_000).ok()?)
}

fn units(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_times_are_milliseconds() {
        assert_eq!(between("2023-11-14T22:13:20Z", "2023-11-14T22:13:21.25Z"), Some(1_250));
        assert_eq!(between("2023-11-14T22:13:20Z", "2023-11-14T22:13:19Z"), None);
        assert_eq!(between("2023-11-14T22:13:20Z", ""), None);
    }

    #[test]
    fn one_unit_is_enough() {
        let now_ms = 1_700_000_000_000; // 2023-11-14T22:13:20Z
        for (at, expect) in [
            ("2023-11-14T22:13:20Z", "0s"),
            ("2023-11-14T22:12:21Z", "59s"),
            ("2023-11-14T22:11:21.5Z", "1m"),
            ("2023-11-14T20:13:20Z", "2h"),
            ("2023-11-01T00:00:00Z", "13d"),
            ("2023-11-14T22:14:00Z", "0s"),
            ("", ""),
            ("yesterday", ""),
        ] {
            assert_eq!(age(at, now_ms), expect, "{at}");
        }
        assert_eq!(until("2023-11-14T22:28:20Z", now_ms), "15m");
        assert_eq!(until("2023-11-14T22:13:19Z", now_ms), "passed");
    }
}
