//! How a cost grows: the exponent of N that fits best through the measured points.

/// The slope of a line through the points' logarithms: 0 = N doesn't matter, 1 = in proportion. None with fewer than two
/// points, or when something costs nothing.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 || points.iter().any(|(n, cost)| *n <= 0.0 || *cost <= 0.0) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(n, cost)| (n.ln(), cost.ln())).collect();
    #[expect(clippy::cast_precision_loss, reason = "a handful of points")]
    let count = logs.len() as f64;
    let (mean_x, mean_y) =
        (logs.iter().map(|log| log.0).sum::<f64>() / count, logs.iter().map(|log| log.1).sum::<f64>() / count);
    let over: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let under: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    Some(over / under).filter(|slope| slope.is_finite())
}

/// In words.
pub fn in_words(exponent: f64) -> &'static str {
    match exponent {
        e if e < 0.2 => "does not grow",
        e if e < 0.8 => "grows slower than the fleet",
        e if e < 1.25 => "grows with the fleet",
        e if e < 1.75 => "grows faster than the fleet",
        _ => "grows with the fleet's square",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost: impl Fn(f64) -> f64) -> f64 {
        let points: Vec<(f64, f64)> = [100.0, 1_000.0, 10_000.0, 100_000.0].map(|n| (n, cost(n))).into();
        exponent(&points).expect("four points")
    }

    #[test]
    fn the_exponent_is_found() {
        assert!((of(|n| 3.0 * n) - 1.0).abs() < 1e-9);
        assert!((of(|n| n * n) - 2.0).abs() < 1e-9);
        assert!(of(|_| 7.0).abs() < 1e-9);
        assert_eq!(in_words(of(f64::sqrt)), "grows slower than the fleet");
        assert_eq!(in_words(of(|n| n * n.ln())), "grows with the fleet");
    }

    #[test]
    fn of_too_little_nothing_is_said() {
        assert_eq!(exponent(&[(1.0, 1.0)]), None);
        assert_eq!(exponent(&[(1.0, 1.0), (2.0, 0.0)]), None);
        assert_eq!(exponent(&[(2.0, 1.0), (2.0, 3.0)]), None);
    }
}
