//! That the facts arrive whole, that no text becomes markup, and that the page stays small.

use super::*;
use crate::recording::{Found, Host, Mark, Span};

const ATTACK: &str = "</script><img src=x onerror=alert(1)>{{SCRIPT}}<!--";

fn hostile() -> Recording {
    let text = || ATTACK.to_owned();
    Recording {
        scenario: text(),
        seed: u64::MAX,
        revision: text(),
        verdict: "fail".to_owned(),
        duration_ms: 1_000,
        hosts: vec![Host { name: text(), kind: text() }],
        spans: vec![Span { host: text(), lane: text(), label: text(), from_ms: 1, to_ms: 2 }],
        marks: vec![Mark { at_ms: 1, host: text(), kind: text(), text: text() }],
        findings: vec![Found { at_ms: 1, checker: text(), host: text(), text: text() }],
        messages: vec![Message { from: text(), to: text(), sent_ms: 1, received_ms: None, bytes: 9 }],
        choices: vec![text()],
        again: text(),
        ..Recording::default()
    }
}

/// The embedded data, as a browser would read it.
fn embedded(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once(r#"id="data">"#).expect("the page has data");
    let (json, _) = rest.split_once("</script>").expect("the data ends");
    serde_json::from_str(json).expect("the data is JSON")
}

#[test]
fn no_text_of_a_recording_becomes_markup() {
    let page = html(&hostile());
    assert!(!page.contains("<img"), "a planted element is in the page");
    assert!(!page.contains("<!--"));
    assert_eq!(page.matches("</script>").count(), TEMPLATE.matches("</script>").count());
    assert!(page.contains("<title>fail: &lt;/script&gt;&lt;img src=x"));
    assert_eq!(embedded(&page)["recording"]["spans"][0]["label"], ATTACK);
}

#[test]
fn facts_arrive_whole() {
    let page = embedded(&html(&hostile()));
    assert_eq!(page["seed"], u64::MAX.to_string());
    assert_eq!(page["names"], serde_json::json!([ATTACK]));
    assert_eq!(page["messages"], serde_json::json!([[0, 0, 1, null, 9]]));
    assert_eq!(page["left_out"], serde_json::json!([]));
    assert_eq!(page["recording"]["findings"][0]["text"], ATTACK);
}

#[test]
fn a_page_needs_no_network() {
    for part in [TEMPLATE, STYLE].iter().chain(SCRIPTS) {
        for word in ["http://", "https://", "@import", "url(", "fetch(", "XMLHttpRequest", "src=", "innerHTML", "eval("]
        {
            assert!(!part.contains(word), "the page mentions {word}");
        }
    }
    assert!(TEMPLATE.contains("default-src 'none'"));
}

#[test]
fn a_long_run_gives_a_page_of_bounded_size_that_says_so() {
    let mut recording = hostile();
    let name = |step: u64| format!("host-{}", step % 10);
    recording.messages = (0..200_000)
        .map(|step| Message {
            from: name(step),
            to: name(step + 1),
            sent_ms: step,
            received_ms: Some(step + 3),
            bytes: 900,
        })
        .collect();
    let page = html(&recording);
    assert!(page.len() <= BYTES_MAX + 10_000, "the page has {} bytes", page.len());
    assert!(page.len() > BYTES_MAX / 2, "more messages would have had room: {} bytes", page.len());
    let left_out = &embedded(&page)["left_out"][0];
    assert_eq!((&left_out["what"], &left_out["total"]), (&"messages".into(), &200_000.into()));
    assert_eq!(page, html(&recording), "the same recording gives another page");
}

#[test]
fn an_empty_recording_gives_a_page() {
    assert!(html(&Recording::default()).ends_with("</html>\n"));
}
