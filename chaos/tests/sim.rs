//! The simulator as people use it: the binary, one process a seed.

use std::process::{Command, Output};

fn chaos(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cara-chaos")).args(args).output().expect("the binary was built with this test")
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
    for part in ["nemesis", "disk.sync", "net.connect", "client", "log "] {
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
    assert!(text.contains("again: cara-chaos sim --seed"), "{text}");
}

#[test]
fn disks_that_lie_about_syncs_are_noticed() {
    is_caught("lying-disks", &["lost", "differ", "linearizable", "panic", "went back", "not converged", "damaged"]);
}

#[test]
fn stale_reads_are_noticed() {
    is_caught("stale-reads", &["is not linearizable"]);
}
