//! Is everything that was acknowledged still there at the end, and nothing that was deleted?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::{Finding, rules};

/// Did something happen?
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known {
    /// It was never asked for, or refused.
    #[default]
    No,
    /// It was acknowledged.
    Yes,
    /// It was asked for and never answered.
    Maybe,
}

/// What clients know of an object. Its name is never used again once it was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    /// Its creation.
    pub created: Known,
    /// Its deletion.
    pub deleted: Known,
    /// Values that it may hold: of the last acknowledged write, and of those that may have come after it. Empty if
    /// values don't matter.
    pub may_hold: BTreeSet<u64>,
}

/// What the final list contradicts: `found` has the names of all objects of the workload and the values that they hold.
pub fn check(at: Duration, lives: &BTreeMap<String, Life>, found: &BTreeMap<String, Option<u64>>) -> Vec<Finding> {
    let mut wrong: Vec<String> = lives.iter().filter_map(|(name, life)| life.wrong(name, found.get(name))).collect();
    let invented = found.keys().filter(|name| !lives.contains_key(*name));
    wrong.extend(invented.map(|name| format!("{name} was never asked for and is there")));
    wrong.into_iter().map(|text| Finding::new(at, rules::WRITES_DURABLE, "", text)).collect()
}

impl Life {
    fn wrong(&self, name: &str, found: Option<&Option<u64>>) -> Option<String> {
        match (self.created, self.deleted, found) {
            (Known::Yes, Known::No, None) => Some(format!("{name} was acknowledged and is lost")),
            (_, Known::Yes, Some(_)) => Some(format!("{name} was deleted, acknowledged, and is there")),
            (Known::No, Known::No | Known::Maybe, Some(_)) => Some(format!("{name} was never created and is there")),
            (Known::Yes | Known::Maybe, Known::No | Known::Maybe, Some(value)) => {
                let is_held = self.may_hold.is_empty() || value.is_some_and(|value| self.may_hold.contains(&value));
                let held = value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
                let text = || format!("{name} holds {held}, but the last writes were of {:?}", self.may_hold);
                (!is_held).then(text)
            }
            (Known::Yes | Known::Maybe | Known::No, _, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(created: Known, deleted: Known, may_hold: &[u64]) -> Life {
        Life { created, deleted, may_hold: may_hold.iter().copied().collect() }
    }

    fn wrong(lives: &[(&str, Life)], found: &[(&str, Option<u64>)]) -> Vec<String> {
        let lives = lives.iter().map(|(name, life)| ((*name).to_owned(), life.clone())).collect();
        let found = found.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        check(Duration::ZERO, &lives, &found).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn unknown_outcomes_may_go_either_way() {
        for is_there in [true, false] {
            let lives = [("a", life(Known::Maybe, Known::No, &[])), ("b", life(Known::Yes, Known::Maybe, &[]))];
            let found: &[_] = if is_there { &[("a", None), ("b", None)] } else { &[] };
            assert_eq!(wrong(&lives, found), Vec::<String>::new());
        }
    }

    #[test]
    fn each_way_to_lose_or_invent_an_object_is_found() {
        let lives = [
            ("kept", life(Known::Yes, Known::No, &[])),
            ("lost", life(Known::Yes, Known::No, &[])),
            ("gone", life(Known::Yes, Known::Yes, &[])),
            ("back", life(Known::Yes, Known::Yes, &[])),
            ("refused", life(Known::No, Known::No, &[])),
        ];
        let wrong = wrong(&lives, &[("kept", None), ("back", None), ("refused", None), ("invented", None)]);
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        for name in ["lost", "back", "refused", "invented"] {
            assert!(wrong.iter().any(|text| text.starts_with(name)), "{name} not in {wrong:?}");
        }
    }

    #[test]
    fn a_lost_write_is_found_by_the_value_that_is_left() {
        let lives = [("a", life(Known::Yes, Known::No, &[3, 4]))];
        for value in [3, 4] {
            assert_eq!(wrong(&lives, &[("a", Some(value))]), Vec::<String>::new());
        }
        assert_eq!(wrong(&lives, &[("a", Some(2))]), ["a holds 2, but the last writes were of {3, 4}"]);
        assert_eq!(wrong(&lives, &[("a", None)]).len(), 1);
    }
}
