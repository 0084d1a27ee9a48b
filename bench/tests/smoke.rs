//! A small run from end to end, of the real programs: it can fail, and says by its exit code that it did.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cara-bench"));
    command.args(words.split_whitespace()).output().expect("cara-bench starts")
}

fn figure(report: &Value, name: &str) -> f64 {
    let figures = report["figures"].as_array().expect("figures");
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.and_then(|figure| figure["value"].as_f64()).unwrap_or_else(|| panic!("{name} was not measured: {report}"))
}

#[test]
fn twenty_agents_live_on_one_server_and_what_was_required_decides() {
    let words = "agents --agents 20 --servers 1 --heartbeat 1 --seconds 3 --placements 5 --watchers 5 --json \
                 --require false_offline=0 --require beat_p50_ms=0";
    let output = bench(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "half a heartbeat takes more than nothing: {said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON on stdout");
    assert!(figure(&report, "beat_p50_ms") > 0.0);
    assert_eq!(figure(&report, "false_offline"), 0.0);
    assert_eq!(figure(&report, "missed_beats"), 0.0);
    assert!(figure(&report, "rss_kib_per_agent") > 0.0 && figure(&report, "cpu_ms_per_1000_beats") > 0.0);
    assert!(figure(&report, "placements_per_s") > 0.0 && figure(&report, "watch_last_ms") > 0.0);
    let met: Vec<_> = report["verdicts"].as_array().expect("verdicts").iter().map(|v| v["met"].as_bool()).collect();
    assert_eq!(met, [Some(true), Some(false)]);
}

#[test]
fn what_cannot_be_measured_is_another_failure_than_a_miss() {
    let output = bench("agents --agents 1 --server 127.0.0.1:1 --token t --ca-fingerprint 00 --json");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    let output = bench("kv --require speed=1");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no figure"), "{output:?}");
}
