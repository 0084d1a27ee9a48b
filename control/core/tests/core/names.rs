//! Names and labels: what is taken and what is not.

use crate::world::labels;
use cara_core::name::*;

#[test]
fn node_names_are_dns_labels() {
    for good in ["a", "rack7-n2", "0", &"x".repeat(63)] {
        assert!(check_node("name", good).is_ok(), "{good}");
    }
    for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", "a/../b", &"x".repeat(64)] {
        assert!(check_node("name", bad).is_err(), "{bad}");
    }
}

#[test]
fn workload_names_may_have_dots() {
    for good in ["a", "ledger.demo", "a-b.c-d", &"x".repeat(253)] {
        assert!(check_workload("name", good).is_ok(), "{good}");
    }
    for bad in ["", ".a", "a.", "A", "a/b", &"x".repeat(254)] {
        assert!(check_workload("name", bad).is_err(), "{bad}");
    }
}

#[test]
fn labels_have_rules_and_a_bound() {
    let good = labels(&[("site", "hall-b"), ("cara.io/tier", "Primary_1")]);
    assert!(check_labels("labels", &good).is_ok());
    for (key, value) in [("Site", "x"), ("", "x"), ("site", ""), ("site", "a b"), ("s", &*"x".repeat(64))] {
        let problem = check_labels("labels", &labels(&[(key, value)])).unwrap_err();
        assert!(problem.field.starts_with("labels"), "{problem}");
    }
    let many = (0..33).map(|n| (format!("k{n}"), "v".to_owned())).collect();
    assert_eq!(check_labels("labels", &many).unwrap_err().to_string(), "labels: has 33 entries, at most 32");
}
