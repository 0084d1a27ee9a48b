//! What really ran, by the engines' own records: one generation runs on one node, and a node never goes back to an
//! older generation.

use std::collections::BTreeMap;

use cara_agent::runtime::memory::Start;

/// What the starts of all nodes contradict. `starts` holds the node's name and its engine's record, oldest first.
pub fn check(starts: &[(String, Vec<Start>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut node_of: BTreeMap<(&str, &str, u64), &str> = BTreeMap::new();
    for (node, starts) in starts {
        let mut newest: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for start in starts.iter().filter(|start| !start.uid.is_empty()) {
            let what = || format!("{} {} generation {}", start.uid, start.service, start.generation);
            let first = *node_of.entry((&start.uid, &start.service, start.generation)).or_insert(node);
            if first != node {
                wrong.push(format!("{} ran on {first} and on {node}", what()));
            }
            let newest = newest.entry((&start.uid, &start.service)).or_default();
            if start.generation < *newest {
                wrong.push(format!("{node} started {} after generation {newest}", what()));
            }
            *newest = start.generation.max(*newest);
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn start(uid: &str, generation: u64) -> Start {
        Start {
            container: "c".into(),
            uid: uid.into(),
            service: "app".into(),
            generation,
            started_at: Duration::ZERO,
            ended_at: None,
        }
    }

    #[test]
    fn one_generation_on_two_nodes_is_found() {
        let starts = [("n1".to_owned(), vec![start("u", 1)]), ("n2".to_owned(), vec![start("u", 1)])];
        assert_eq!(check(&starts).len(), 1);
        let moved = [("n1".to_owned(), vec![start("u", 1)]), ("n2".to_owned(), vec![start("u", 2)])];
        assert_eq!(check(&moved), Vec::<String>::new());
    }

    #[test]
    fn a_node_that_goes_back_to_an_older_generation_is_found() {
        let back = [("n1".to_owned(), vec![start("u", 2), start("u", 1)])];
        assert_eq!(check(&back).len(), 1);
        let again = [("n1".to_owned(), vec![start("u", 1), start("u", 1), start("u", 3)])];
        assert_eq!(check(&again), Vec::<String>::new());
    }
}
