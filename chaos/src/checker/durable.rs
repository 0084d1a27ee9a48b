//! Is everything that was acknowledged still there at the end, and nothing that was deleted?

use std::collections::BTreeMap;

use crate::workload::{History, Known, Life};

/// What the final list contradicts.
pub fn check(history: &History) -> Vec<String> {
    let Some(found) = &history.final_apps else {
        return vec!["the final list of apps could not be read".into()];
    };
    lives(&history.apps, found)
}

fn lives(apps: &BTreeMap<String, Life>, found: &BTreeMap<String, Option<u64>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, life) in apps {
        let is_there = found.contains_key(name);
        match (life.created, life.deleted) {
            (Known::Yes, Known::No) if !is_there => wrong.push(format!("{name} was acknowledged and is lost")),
            (_, Known::Yes) if is_there => wrong.push(format!("{name} was deleted, acknowledged, and is there")),
            (Known::No, _) if is_there => wrong.push(format!("{name} was never asked for and is there")),
            _ => {}
        }
    }
    for name in found.keys().filter(|name| name.starts_with("app-") && !apps.contains_key(*name)) {
        wrong.push(format!("{name} was never asked for and is there"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_lose_or_invent_an_app_is_found() {
        let life = |created, deleted| Life { created, deleted };
        let apps = BTreeMap::from([
            ("app-kept".to_owned(), life(Known::Yes, Known::No)),
            ("app-lost".to_owned(), life(Known::Yes, Known::No)),
            ("app-maybe".to_owned(), life(Known::Maybe, Known::No)),
            ("app-gone".to_owned(), life(Known::Yes, Known::Yes)),
            ("app-back".to_owned(), life(Known::Yes, Known::Yes)),
            ("app-maybe-gone".to_owned(), life(Known::Yes, Known::Maybe)),
        ]);
        let found = ["app-kept", "app-back", "app-invented"].map(|name| (name.to_owned(), None)).into();
        let wrong = lives(&apps, &found);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        for name in ["app-lost", "app-back", "app-invented"] {
            assert!(wrong.iter().any(|text| text.starts_with(name)), "{name} not in {wrong:?}");
        }
    }
}
