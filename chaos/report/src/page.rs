//! Puts the template, the style, the scripts and the facts together.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::recording::{Message, Recording};
use crate::thin::{BYTES_MAX, LeftOut, thin_marks, thin_messages};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// In the order in which they need each other.
const SCRIPTS: &[&str] = &[
    include_str!("page/model.js"),
    include_str!("page/pen.js"),
    include_str!("page/paint.js"),
    include_str!("page/history.js"),
    include_str!("page/write.js"),
    include_str!("page/pointer.js"),
    include_str!("page/page.js"),
];

/// What the scripts read. Messages are by far the most, so they are arrays, with hosts by number.
#[derive(Serialize)]
struct Page<'a> {
    /// As text: JavaScript's numbers can't hold every seed.
    seed: String,
    /// All but the messages.
    recording: &'a Recording,
    /// Names of the ends of messages.
    names: &'a [&'a str],
    /// From and to as places in `names`, sent, received, bytes.
    messages: Vec<(usize, usize, u64, Option<u64>, u64)>,
    left_out: Vec<LeftOut>,
}

/// The page about one run: a whole HTML document in one string.
///
/// It stays below about two megabytes: if need be messages, then marks of kind `commit` and `log`, are thinned out, evenly and
/// always in the same way; the page says how many are left. Spans, calls, findings and all other marks are never left out,
/// so a run with very many of those gives a larger page.
pub fn html(recording: &Recording) -> String {
    let title = format!("{}: {} (seed {})", recording.verdict, recording.scenario, recording.seed);
    let scripts = SCRIPTS.join("\n");
    fill(&[
        ("{{TITLE}}", &escape_text(&title)),
        ("{{STYLE}}", STYLE),
        ("{{DATA}}", &data(recording)),
        ("{{SCRIPT}}", &scripts),
    ])
}

/// Fills the holes of the template from its begin to its end: what was filled in is not looked at again.
fn fill(holes: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(BYTES_MAX);
    let mut rest = TEMPLATE;
    for (hole, content) in holes {
        let (before, after) = rest.split_once(hole).expect("the template has every hole once, in this order");
        page.push_str(before);
        page.push_str(content);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The facts as JSON that can stand in a script element.
fn data(recording: &Recording) -> String {
    let names = names(&recording.messages);
    let places: BTreeMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let row = |message: &Message| {
        let place = |name: &str| places.get(name).copied().expect("names come from the messages");
        (place(&message.from), place(&message.to), message.sent_ms, message.received_ms, message.bytes)
    };
    let mut facts = Recording { messages: Vec::new(), ..recording.clone() };
    let mut left_out = Vec::new();
    let frame = TEMPLATE.len() + STYLE.len() + SCRIPTS.iter().map(|script| script.len()).sum::<usize>();
    let mut room = BYTES_MAX.saturating_sub(frame);

    left_out.extend(thin_marks(&mut facts, room));
    room = room.saturating_sub(to_json(&facts).len());
    let first_finding = recording.findings.iter().map(|finding| finding.at_ms).min();
    let (messages, fewer) =
        thin_messages(&recording.messages, first_finding, room, |message| to_json(&row(message)).len() + 1);
    left_out.extend(fewer);

    let messages = messages.into_iter().map(row).collect();
    to_json(&Page { seed: recording.seed.to_string(), recording: &facts, names: &names, messages, left_out })
}

/// Every end of a message once, in order.
fn names(messages: &[Message]) -> Vec<&str> {
    let ends: BTreeSet<&str> =
        messages.iter().flat_map(|message| [message.from.as_str(), message.to.as_str()]).collect();
    ends.into_iter().collect()
}

/// `<` only ever occurs within strings of JSON, where this escape means the same: no text can end the script element.
fn to_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("a recording has only texts, numbers and lists");
    json.replace('<', "\\u003c")
}

/// Text that stands between tags.
fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
