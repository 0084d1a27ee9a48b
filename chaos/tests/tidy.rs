//! House rules that a compiler doesn't know: headers, arrows between crates, sizes, and that nothing is left half done.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file above this is split.
const FILE_LINES_MAX: usize = 500;
/// A function above this is looked at again; reported, not refused.
const FUNCTION_LINES_LOOK: usize = 70;

/// Which of our crates a crate may use. `chaos` and `bench` may use all and are not listed.
const ARROWS: &[(&str, &[&str])] = &[
    ("cara-proto", &[]),
    ("cara-env", &[]),
    ("cara-core", &[]),
    ("cara-transport", &["cara-env"]),
    ("cara-netsim", &["cara-env"]),
    ("cara-scenario", &[]),
    ("cara-checker", &[]),
    ("cara-report", &[]),
    ("raft-store", &["cara-env", "cara-proto", "cara-transport"]),
    ("cara-volume", &["cara-proto"]),
    ("cara-agent", &["cara-env", "cara-proto", "cara-transport", "cara-volume"]),
    ("caractrl", &["cara-env", "cara-proto", "cara-transport"]),
    ("cara-control", &["cara-core", "cara-env", "cara-proto", "cara-transport", "raft-store"]),
];
/// May use everything.
const FREE: &[&str] = &["cara-chaos", "cara-fuzz", "cara-bench"];
/// No other crate may ship these, not even for its tests: they know everybody.
const NEVER: &[&str] = &["cara-chaos", "cara-fuzz", "cara-bench"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All files below the root whose name ends so, sorted, without what is generated.
fn files(ending: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let skipped = name.starts_with('.') || ["target", "node_modules", "generated"].contains(&name.as_str());
            if skipped {
                continue;
            }
            if path.is_dir() {
                walk(&path, ending, into);
            } else if name.ends_with(ending) {
                into.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), ending, &mut found);
    found.sort();
    assert!(!found.is_empty(), "no *{ending} below {}", root().display());
    found
}

fn sources() -> Vec<(String, String)> {
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    files(".rs").iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn fail_if_any(problems: &[String], rule: &str) {
    assert!(problems.is_empty(), "{rule}:\n  {}", problems.join("\n  "));
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.trim_start().starts_with("//!")).map(|(name, _)| name).collect();
    fail_if_any(&silent, "files without a //! header");
}

#[test]
fn no_file_is_too_long_and_long_functions_are_reported() {
    let mut too_long = Vec::new();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            too_long.push(format!("{name}: {lines} lines"));
        }
        for (function, length) in long_functions(&text) {
            println!("look again: {name}: {function} has {length} lines");
        }
    }
    fail_if_any(&too_long, &format!("files with more than {FILE_LINES_MAX} lines; split them by noun"));
}

/// Functions in formatted code: from the line with `fn` to the closing brace with the same indent.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some((before, rest)) = line.split_once("fn ") else { continue };
        let is_item = before.split_whitespace().all(|word| {
            word.starts_with("pub")
                || ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
                || word.ends_with(')')
        });
        if !is_item || line.trim_end().ends_with(';') || line.trim_end().ends_with('}') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent(line)));
        let Some(length) = lines[i..].iter().position(|line| line.trim_end() == closing) else { continue };
        if length + 1 > FUNCTION_LINES_LOOK {
            let name = rest.split(['(', '<']).next().unwrap_or(rest);
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

#[test]
fn nothing_is_left_half_done() {
    let marks: Vec<String> = ["todo", "dbg", "unimplemented"]
        .iter()
        .map(|name| format!("{name}!("))
        .chain(["ignore]", "ignore ="].iter().map(|rest| format!("#[{rest}")))
        .chain(["TO", "FIX", "XX"].iter().zip(["DO", "ME", "X"]).map(|(a, b)| format!("{a}{b}")))
        .collect();
    let mut left = Vec::new();
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            for mark in marks.iter().filter(|mark| line.contains(mark.as_str())) {
                left.push(format!("{name}:{}: {mark}", number + 1));
            }
        }
    }
    fail_if_any(&left, "left half done");
}

struct Manifest {
    name: String,
    /// Used by what ships.
    uses: BTreeSet<String>,
    /// Used by its tests.
    tests_use: BTreeSet<String>,
}

fn manifests() -> Vec<Manifest> {
    let mut found = Vec::new();
    for path in files("Cargo.toml") {
        let parsed: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let Some(name) = parsed.get("package").and_then(|package| package.get("name")) else { continue };
        let keys = |section: &str| -> BTreeSet<String> {
            let table = parsed.get(section).and_then(toml::Value::as_table);
            table.into_iter().flat_map(|table| table.keys().cloned()).collect()
        };
        let mut uses = keys("dependencies");
        uses.append(&mut keys("build-dependencies"));
        let name = name.as_str().unwrap().to_owned();
        found.push(Manifest { name, uses, tests_use: keys("dev-dependencies") });
    }
    found
}

#[test]
fn crates_use_only_what_the_arrows_allow() {
    let manifests = manifests();
    let ours: BTreeSet<&str> = manifests.iter().map(|manifest| manifest.name.as_str()).collect();
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut wrong = Vec::new();
    for manifest in &manifests {
        if FREE.contains(&manifest.name.as_str()) {
            continue;
        }
        let Some(allowed) = arrows.get(manifest.name.as_str()) else {
            wrong.push(format!("{} has no line in ARROWS: decide what it may use", manifest.name));
            continue;
        };
        for used in manifest.uses.iter().filter(|used| ours.contains(used.as_str())) {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("{} must not use {used}", manifest.name));
            }
        }
        for used in manifest.tests_use.iter().filter(|used| NEVER.contains(&used.as_str())) {
            wrong.push(format!("the tests of {} must not use {used}", manifest.name));
        }
    }
    fail_if_any(&wrong, "arrows against the design");
}

#[test]
fn the_pure_crate_stays_pure() {
    let core = manifests().into_iter().find(|manifest| manifest.name == "cara-core").unwrap();
    let impure = ["tokio", "rand", "openraft", "rocksdb", "tonic", "hyper", "axum", "bollard", "turmoil", "tempfile"];
    let used: Vec<String> = core.uses.into_iter().filter(|used| impure.contains(&used.as_str())).collect();
    fail_if_any(&used, "cara-core decides; it must not reach the world through");
}

/// All test code: files of tests, and what follows the first `#[cfg(test)]` of a file.
fn test_code() -> String {
    let mut all = String::new();
    for (name, text) in sources() {
        let is_test_file = name.contains("/tests/") || name.ends_with("tests.rs");
        if is_test_file {
            all.push_str(&text);
        } else if let Some(at) = text.find("#[cfg(test)]") {
            all.push_str(&text[at..]);
        }
    }
    all
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

#[test]
fn every_invariant_is_named_in_a_test() {
    let tests = test_code();
    let words = words(&tests);
    let missing: Vec<String> = cara_core::invariant::InvariantId::ALL
        .iter()
        .map(|id| format!("{id:?}"))
        .filter(|name| !words.contains(name.as_str()))
        .collect();
    fail_if_any(&missing, "invariants that no test names");
}

#[test]
fn every_command_is_named_in_a_test() {
    let tests = test_code();
    let words = words(&tests);
    let folder = root().join("control/core/src/command");
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_command = path.extension().is_some_and(|e| e == "rs") && !["mod", "checks"].contains(&stem.as_str());
        let type_name: String = stem.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect();
        if is_command && !words.contains(type_name.as_str()) && !words.contains(stem.as_str()) {
            missing.push(type_name);
        }
    }
    missing.sort();
    fail_if_any(&missing, "commands that no test names");
}
