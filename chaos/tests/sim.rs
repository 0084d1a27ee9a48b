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
fn twenty_different_seeds_pass() {
    let text = passes(&["sim", "--seeds", "1..=20", "--duration", "15", "--tick-ms", "5"]);
    assert!(text.contains("20 seeds passed, 0 failed"), "{text}");
    let hashes: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.split("hash ").nth(1)?.split(' ').next()).collect();
    assert_eq!(hashes.len(), 20, "twenty seeds are twenty histories:\n{text}");
}

#[test]
fn a_wrong_range_of_seeds_is_refused_with_an_example() {
    let output = chaos(&["sim", "--seeds", "9..=1"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("1..=20"));
}
