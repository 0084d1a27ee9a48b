//! Amounts as people read them: bytes, how long something took, how far it is.

/// `0 B`, `340 KiB`, `1.3 GiB`: powers of 1024, one digit after the point below ten.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut tenths = u128::from(count) * 10;
    let mut unit = 0;
    // From 999.5 on the next unit is shorter: `1.0 MiB`, not `1023 KiB`.
    while tenths >= 9_995 && unit + 1 < UNITS.len() {
        tenths = (tenths + 512) / 1_024;
        unit += 1;
    }
    match tenths {
        _ if unit == 0 => format!("{count} B"),
        0..100 => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        _ => format!("{} {}", (tenths + 5) / 10, UNITS[unit]),
    }
}

/// `0 s`, `40 ms`, `1.7 s`, `12 s`, `3m 20s`, `2h 5m`.
pub fn span(ms: u64) -> String {
    match ms {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{}h {}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Whole percents of `total`, rounded down; 100 of nothing.
pub fn percent(done: u64, total: u64) -> u64 {
    let part = u128::from(done.min(total)) * 100;
    part.checked_div(u128::from(total)).and_then(|p| u64::try_from(p).ok()).unwrap_or(100)
}

/// `[#######-------------]`, twenty cells.
pub fn gauge(done: u64, total: u64) -> String {
    const CELLS: usize = 20;
    let full = usize::try_from(percent(done, total)).unwrap_or(100) * CELLS / 100;
    format!("[{}{}]", "#".repeat(full), "-".repeat(CELLS - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_two_or_three_digits() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_023, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (348_160, "340 KiB"),
            (1_395_864_371, "1.3 GiB"),
            (10_737_418_240, "10 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(count), text, "{count}");
        }
    }

    #[test]
    fn spans_have_the_two_largest_units() {
        for (ms, text) in
            [(0, "0 s"), (40, "40 ms"), (1_749, "1.7 s"), (12_900, "12 s"), (200_000, "3m 20s"), (7_500_000, "2h 5m")]
        {
            assert_eq!(span(ms), text, "{ms}");
        }
    }

    #[test]
    fn a_gauge_is_full_only_at_the_end() {
        assert_eq!(gauge(0, 10), "[--------------------]");
        assert_eq!(gauge(999, 1_000), "[###################-]");
        assert_eq!(gauge(10, 10), "[####################]");
        assert_eq!((percent(0, 0), percent(u64::MAX, 1), percent(1, 3)), (100, 100, 33));
    }
}
