//! The simulator as people use it: the binary, one process a seed.

use std::process::{Command, Output};

fn chaos(args: &[&str]) -> Output {
    let mut chaos = Command::new(env!("CARGO_BIN_EXE_cara-chaos"));
    // Bundles of failures go where they are not in the way.
    let out = std::env::temp_dir().join("cara-chaos-tests");
    if ["sim", "run"].contains(&args[0]) {
        chaos.args(args).arg("--out").arg(out);
    } else {
        chaos.args(args);
    }
    chaos.output().expect("the binary was built with this test")
}

fn passes(args: &[&str]) -> String {
    let output = chaos(args);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cara-chaos {}:\n{text}", args.join(" "));
    text
}

#[test]
fn one_seed_in_two_processes_is_the_same_history() {
    let text = passes(&["sim", "--seed", "7", "--twice", "--duration", "15"]);
    assert!(text.contains("seed 7") && text.contains("ok"), "{text}");
}

#[test]
fn a_run_with_its_trace_written_is_the_same_run() {
    let hash = |text: String| text.split("hash ").nth(1).expect("an outcome").split(' ').next().map(str::to_owned);
    let folder = tempfile::tempdir().expect("a folder for the trace");
    let file = folder.path().join("seed.trace");
    let args = ["sim", "--seed", "5", "--duration", "8", "--tick-ms", "5"];
    let plain = hash(passes(&args));
    let traced = hash(passes(&[&args[..], &["--trace", &file.to_string_lossy()]].concat()));
    assert_eq!(plain, traced);
    let text = std::fs::read_to_string(file).expect("the trace was written");
    for part in ["raft.elected", "disk.sync", "net.connect", "client", "log "] {
        assert!(text.contains(part), "no {part} in the trace");
    }
}

#[test]
fn twenty_different_seeds_pass() {
    let text = passes(&["sim", "--seeds", "1..=20", "--duration", "15", "--tick-ms", "5"]);
    assert!(text.contains("20 seeds passed, 0 failed"), "{text}");
    let hashes: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split("hash ").nth(1)?.split(' ').next()).collect();
    assert_eq!(hashes.len(), 20, "twenty seeds are twenty histories:\n{text}");
}

#[test]
fn seeds_that_once_failed_pass() {
    let seeds = include_str!("../regressions/seeds.txt");
    let lines = seeds.lines().filter_map(|line| line.split('#').next()).map(str::trim).filter(|line| !line.is_empty());
    let mut ran = 0;
    for line in lines {
        let args: Vec<_> = std::iter::once("sim").chain(line.split_whitespace()).collect();
        passes(&args);
        ran += 1;
    }
    assert!(ran > 0, "the file has seeds");
}

#[test]
fn a_wrong_range_of_seeds_is_refused_with_an_example() {
    let output = chaos(&["sim", "--seeds", "9..=1"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("1..=20"));
}

/// Of a few seeds with something planted, at least one must fail, and say what it saw.
fn is_caught(canary: &str, words: &[&str]) {
    let output = chaos(&["sim", "--seeds", "1..=4", "--duration", "20", "--tick-ms", "5", "--canary", canary]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{canary} was not noticed:\n{text}");
    assert!(words.iter().any(|word| text.contains(word)), "{canary}:\n{text}");
    assert!(text.contains("again: cara-chaos replay"), "{text}");
}

#[test]
fn disks_that_lie_about_syncs_are_noticed() {
    is_caught("lying-disks", &["raft.", "writes.durable", "linearizable", "panic", "fence", "converged", "core."]);
}

/// Followers that are cut off answer stale reads with what they knew before.
fn followers_cut_off(folder: &std::path::Path) -> String {
    let file = folder.join("followers-cut-off.toml");
    let text = "format = 1\nname = \"followers-cut-off\"\n[cluster]\nagents = 2\n[run]\nduration = \"14s\"\n\
                grain = \"5ms\"\n[[fault]]\nid = \"cut\"\nevery = { mean = \"3s\" }\nwhat = \"partition\"\n\
                target = \"follower:any\"\nto = \"server:*\"\nfor = \"2s\"\n";
    std::fs::write(&file, text).expect("written");
    file.to_string_lossy().into_owned()
}

#[test]
fn stale_reads_are_noticed_and_no_others_are_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = followers_cut_off(folder.path());
    let honest = chaos(&["run", &file, "--seeds", "1..=2"]);
    assert!(honest.status.success(), "{}", String::from_utf8_lossy(&honest.stdout));
    let stale = chaos(&["run", &file, "--seeds", "1..=2", "--canary", "stale-reads"]);
    assert_eq!(stale.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&stale.stdout).contains("linearizable"));
}

#[test]
fn a_failure_is_replayed_shrunk_shown_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_string_lossy().into_owned();
    let file = followers_cut_off(folder.path());
    let args = ["run", &file, "--seeds", "1..=2", "--canary", "stale-reads", "--out", &out];
    let mut chaos = Command::new(env!("CARGO_BIN_EXE_cara-chaos"));
    let failed = chaos.args(args).output().expect("it runs");
    assert_eq!(failed.status.code(), Some(1), "{}", String::from_utf8_lossy(&failed.stdout));
    let files = std::fs::read_dir(folder.path()).expect("bundles").map(|entry| entry.expect("an entry").path());
    let bundle = files.filter(|path| path.is_dir()).min().expect("a bundle");
    let bundle = bundle.to_string_lossy();

    let text = |args: &[&str], code| {
        let output = self::chaos(args);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "cara-chaos {}:\n{text}", args.join(" "));
        text
    };
    assert!(text(&["replay", &bundle], 1).contains("the same history as in the bundle"));
    assert!(text(&["diff", &bundle, &bundle], 0).contains("the same"));
    text(&["report", &bundle], 0);
    let page = std::fs::read_to_string(format!("{bundle}/report.html")).expect("the page");
    assert!(page.contains("linearizable"));
    let small = format!("{out}/small");
    let told = text(&["shrink", &bundle, "--runs", "60", "--out", &small], 0);
    assert!(told.contains("operations are needed"), "{told}");
    assert!(text(&["replay", &small], 1).contains("linearizable"));
}

#[test]
fn a_scenario_is_explained_listed_and_described() {
    let list = String::from_utf8_lossy(&chaos(&["list", "--names"]).stdout).into_owned();
    assert!(list.lines().count() >= 25, "{list}");
    let first = list.lines().next().expect("a scenario");
    let told = chaos(&["explain", first]);
    assert!(told.status.success() && String::from_utf8_lossy(&told.stdout).contains(first));
    let schema = chaos(&["schema"]).stdout;
    assert!(String::from_utf8_lossy(&schema).contains("eventually_always"));
}

#[test]
fn exit_codes_tell_pass_unknown_and_a_harness_that_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("never.toml");
    let text = "format = 1\nname = \"never\"\n[cluster]\nagents = 2\n[run]\nduration = \"3s\"\ngrain = \"5ms\"\n\
                seeds = \"1\"\n[[expect]]\nsometimes = [\"node.offline\"]\n";
    std::fs::write(&file, text).expect("written");
    let unknown = chaos(&["run", &file.to_string_lossy()]);
    assert_eq!(unknown.status.code(), Some(2), "{}", String::from_utf8_lossy(&unknown.stdout));
    assert!(String::from_utf8_lossy(&unknown.stdout).contains("node.offline never happened"));
    assert_eq!(chaos(&["run", "no-such-scenario"]).status.code(), Some(3));
    std::fs::write(&file, text.replace("agents", "agentz")).expect("written");
    let wrong = chaos(&["run", &file.to_string_lossy()]);
    assert_eq!(wrong.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("agentz"), "the key and its line are named");
}

#[test]
fn totals_come_last_and_add_up() {
    let output = chaos(&["sim", "--seeds", "1..=2", "--duration", "4", "--tick-ms", "5", "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let totals: serde_json::Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(totals["seeds"], 2);
    assert_eq!(totals["passed"], 2, "{text}");
    for key in ["failed", "unknown", "diverged", "sim_seconds", "cpu_seconds", "wall_seconds"] {
        assert!(totals[key].is_number(), "{key} in {totals}");
    }
}
