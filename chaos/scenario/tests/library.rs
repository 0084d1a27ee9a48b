//! Every scenario of the library can be read, planned and written back, and is named by its file.

use std::path::Path;

use cara_scenario::{Scenario, plan};

/// The library has at least so many.
const FILES_MIN: usize = 25;

#[test]
fn every_scenario_of_the_library_is_read_planned_and_written_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the library is there") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            continue; // What can't pass yet is no part of the library.
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(scenario.name.as_str()));
        assert!(!scenario.about.is_empty() && !scenario.tags.is_empty(), "{}", scenario.name);
        assert!(!scenario.fault.is_empty() && !scenario.expect.is_empty(), "{}", scenario.name);
        for seed in scenario.seeds() {
            let first = plan(&scenario, seed);
            assert!(!first.ops.is_empty(), "{}: nobody does anything", scenario.name);
            let written = first.to_scenario().to_toml();
            let again = Scenario::parse(&written).unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            assert_eq!(plan(&again, seed).to_scenario().to_toml(), written, "{}", scenario.name);
        }
        count += 1;
    }
    assert!(count >= FILES_MIN, "{count} scenarios");
}

#[test]
fn names_that_nobody_knows_are_refused() {
    let with = |rest: &str| Scenario::parse(&format!("format = 1\nname = \"x\"\n{rest}")).expect_err(rest).to_string();
    assert!(with("[[expect]]\nalways = [\"magic\"]").contains("no rule \"magic\""));
    assert!(with("[[expect]]\nsometimes = [\"raft.electd\"]").contains("raft.elected"));
    assert!(with("[[fault]]\nid = \"a\"\nat = \"1s\"\nwhat = \"explode\"").contains("line"));
    assert!(with("[cluster]\nservrs = 3").contains("servrs"));
    assert_eq!(with("[cluster]\nagents = 3\nservers = 4"), "line 5: 4 servers: there are 3 or 5");
    assert!(with("[[expect]]\nalways = [\"fence\"]\nsometimes = [\"raft.electd\"]").starts_with("line 5: no event"));
    assert!(
        with("[[fault]]\nid = \"a\"\nat = \"1s\"\nwhat = \"crash\"\ntarget = \"boss\"").starts_with("line 7: fault")
    );
}
