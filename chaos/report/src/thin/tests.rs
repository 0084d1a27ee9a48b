//! What goes first, and that it goes the same way each time.

use super::*;

fn message(sent_ms: u64, received_ms: Option<u64>) -> Message {
    Message { from: "a".to_owned(), to: "b".to_owned(), sent_ms, received_ms, bytes: 1 }
}

fn mark(at_ms: u64, kind: &str) -> Mark {
    Mark { at_ms, host: "a".to_owned(), kind: kind.to_owned(), text: "words".to_owned() }
}

#[test]
fn nothing_goes_when_all_fits() {
    let messages: Vec<Message> = (0..100).map(|at| message(at, Some(at + 1))).collect();
    let (kept, left_out) = thin_messages(&messages, None, 1_000, |_| 10);
    assert_eq!(kept.len(), 100);
    assert_eq!(left_out, None);
}

#[test]
fn messages_go_evenly_but_not_the_lost_ones_nor_those_near_the_finding() {
    let messages: Vec<Message> =
        (0..1_000).map(|step| message(step * 100, (step % 10 != 0).then_some(step * 100 + 5))).collect();
    let (kept, left_out) = thin_messages(&messages, Some(50_000), 3_000, |_| 10);

    assert_eq!(left_out, Some(LeftOut { what: "messages", kept: 300, total: 1_000 }));
    assert!(kept.is_sorted_by_key(|message| message.sent_ms));
    assert_eq!(kept.iter().filter(|message| message.received_ms.is_none()).count(), 100, "a lost message is missing");
    let near = |message: &&&Message| message.sent_ms.abs_diff(50_000) <= NEAR_FINDING_MS;
    assert_eq!(kept.iter().filter(near).count(), 61);
    let late = kept.iter().filter(|message| message.received_ms.is_some() && message.sent_ms > 75_000).count();
    assert!((20..60).contains(&late), "the rest is not spread evenly: {late} in the last quarter");
    assert_eq!(kept, thin_messages(&messages, Some(50_000), 3_000, |_| 10).0);
}

#[test]
fn no_room_means_no_messages() {
    let messages = [message(1, None), message(2, Some(3))];
    let (kept, left_out) = thin_messages(&messages, Some(1), 0, |_| 10);
    assert!(kept.is_empty());
    assert_eq!(left_out, Some(LeftOut { what: "messages", kept: 0, total: 2 }));
}

#[test]
fn of_the_marks_only_commits_and_logs_go() {
    let marks = (0..500).map(|at| mark(at, if at % 50 == 0 { "election" } else { "commit" })).collect();
    let mut recording = Recording { marks, ..Recording::default() };
    let left_out = thin_marks(&mut recording, 8_000).expect("500 marks don't fit into 4000 bytes");
    assert_eq!(recording.marks.iter().filter(|mark| mark.kind == "election").count(), 10);
    assert!(recording.marks.len() > 20, "more could have stayed: {}", recording.marks.len());
    assert!(serde_json::to_string(&recording.marks).expect("plain data").len() <= 4_002);
    assert_eq!((left_out.kept, left_out.total), (recording.marks.len(), 500));
}
