//! Durations: `500ms`, `10s`, `2m`, `1h`.

/// Milliseconds. None when it isn't a duration, or doesn't fit.
pub fn parse(text: &str) -> Option<u32> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit: u32 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u32>().ok()?.checked_mul(unit)
}

/// The inverse of [`parse`], in the largest unit that is exact; empty for 0, which means the default.
pub fn format(ms: u32) -> String {
    if ms == 0 {
        return String::new();
    }
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let (size, unit) = units.into_iter().find(|(size, _)| ms.is_multiple_of(*size)).unwrap_or((1, "ms"));
    format!("{}{unit}", ms / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (text, ms) in [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1h", 3_600_000), ("1500ms", 1_500)] {
            assert_eq!((parse(text), format(ms).as_str()), (Some(ms), text));
        }
        for wrong in ["", "10", "s", "-1s", "1.5s", "2 m", "9999999h"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
