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

#[test]
fn the_name_of_a_new_node_begins_with_a_letter() {
    for good in ["a", "rack7-n2", &"x".repeat(63)] {
        assert!(check_new_node("name", good).is_ok(), "{good}");
    }
    for bad in ["", "-a", "a-", "A", "a.b", "7rack", "0", &"x".repeat(64)] {
        assert!(check_new_node("name", bad).is_err(), "{bad}");
    }
    let problem = check_new_node("name", "Rack7_N2").unwrap_err().to_string();
    assert!(problem.ends_with("; rack7-n2 would do"), "{problem}");
}

#[test]
fn a_host_name_that_is_no_nodes_name_suggests_one() {
    let cases = [
        ("Rack7_N2", "rack7-n2"),
        ("web.example.com", "web"),
        ("7rack", "n7rack"),
        ("--a--b--", "a-b"),
        ("Größe 1", "gr-e-1"),
        (".lan", "lan"),
    ];
    for (text, name) in cases {
        assert_eq!(suggest_node(text).as_deref(), Some(name), "{text}");
    }
    assert_eq!(suggest_node(""), None);
    assert_eq!(suggest_node("日本"), None);
    for text in ["x".repeat(200), format!("{}-y", "x".repeat(62)), format!("9{}", "x".repeat(80))] {
        let name = suggest_node(&text).unwrap();
        assert!(check_new_node("name", &name).is_ok(), "{name}");
    }
}
