//! Kubernetes-style quantities: `500m`, `4`, `16Gi`.

/// The number behind a quantity: thousandths for `cpu`, whole units for everything else. None when it isn't one.
pub fn parse(resource: &str, text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, suffix) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let factor = match suffix {
        "" => 1.0,
        "m" => 0.001,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let unit = if resource == "cpu" { 1000.0 } else { 1.0 };
    let value = number * factor * unit;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked on the line itself.
    (0.0..9e18).contains(&value).then_some(value.round() as u64)
}

/// The quantity for a number; the inverse of [`parse`], in the largest binary unit that is exact.
pub fn format(resource: &str, value: u64) -> String {
    if resource == "cpu" {
        return if value.is_multiple_of(1000) { (value / 1000).to_string() } else { format!("{value}m") };
    }
    let units = [(1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")];
    match units.into_iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", value / size),
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_writes() {
        assert_eq!(parse("cpu", "500m"), Some(500));
        assert_eq!(parse("cpu", "4"), Some(4000));
        assert_eq!(parse("memory", "16Gi"), Some(16 << 30));
        assert_eq!(parse("memory", "1.5Gi"), Some(3 << 29));
        assert_eq!(parse("memory", "many"), None);
        assert_eq!(parse("memory", "-1"), None);
        assert_eq!(format("cpu", 500), "500m");
        assert_eq!(format("memory", 16 << 30), "16Gi");
        assert_eq!(format("memory", 1000), "1000");
    }
}
