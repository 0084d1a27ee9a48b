//! When a comparison counts. A machine is noisy: where the peer itself, which does the same each time, varied by more than a
//! fifth, the machine was measured and not the two of them.

/// How much the peer may vary: its fastest run less its slowest, by their median.
pub const VARIATION_MAX: f64 = 0.20;

/// How much these vary: the largest less the smallest, by their median. None without any.
pub fn variation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    Some((largest - smallest) / middle).filter(|share| share.is_finite())
}

/// The middle value, of two middle ones their mean.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Do the last `rounds` runs of the peer lie close enough together? Where they begin, if so.
pub fn settled(peer: &[f64], rounds: usize) -> Option<usize> {
    let from = peer.len().checked_sub(rounds).filter(|_| rounds > 0)?;
    (variation(&peer[from..])? <= VARIATION_MAX).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_peer_that_varies_is_run_again_until_it_does_not() {
        let mut peer = vec![100.0, 150.0, 100.0];
        assert_eq!(settled(&peer, 3), None);
        peer.push(105.0);
        assert_eq!(settled(&peer, 3), None, "the run that was off is still among the last three");
        peer.push(98.0);
        assert_eq!(settled(&peer, 3), Some(2));
    }

    #[test]
    fn a_fifth_is_allowed_and_more_is_not() {
        assert_eq!(settled(&[90.0, 100.0, 110.0], 3), Some(0));
        assert_eq!(settled(&[90.0, 100.0, 110.1], 3), None);
        assert_eq!(settled(&[100.0], 3), None, "too few");
        assert_eq!(settled(&[0.0, 0.0, 0.0], 3), None, "a peer that did nothing is no peer");
        assert_eq!(settled(&[1.0], 0), None);
    }
}
