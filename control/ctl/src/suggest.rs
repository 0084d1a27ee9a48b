//! "Did you mean": the closest of some words.

/// The candidate that is at most a third of its letters away from `word`, the closest first, ties by order.
pub(crate) fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(far, candidate)| *far <= allowed && *candidate != word)
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between two words, and exchanges of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { best.min(rows[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_suggested_and_far_ones_are_not() {
        let kinds = ["nodes", "apps", "projects"];
        assert_eq!(closest("ndoes", kinds), Some("nodes"));
        assert_eq!(closest("project", kinds), Some("projects"));
        assert_eq!(closest("volumes", kinds), None);
    }
}
