//! Which messages and marks a page holds when not all of them fit. No chance is involved.

use serde::Serialize;

use crate::recording::{Mark, Message, Recording};

/// A page larger than this is slow to open and too large to attach to a mail.
pub(crate) const BYTES_MAX: usize = 2 * 1024 * 1024;
/// Marks may take so much of the page that messages still have a place.
const MARKS_SHARE: usize = 2;
/// Messages so near to the first finding are the last ones that go.
const NEAR_FINDING_MS: u64 = 3_000;
/// Kinds of marks of which there are many and one more or less tells little.
const PLENTIFUL_KINDS: [&str; 2] = ["commit", "log"];

/// What the page says about what it doesn't hold.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) what: &'static str,
    pub(crate) kept: usize,
    pub(crate) total: usize,
}

impl LeftOut {
    fn new(what: &'static str, kept: usize, total: usize) -> Option<Self> {
        (kept < total).then_some(Self { what, kept, total })
    }
}

/// The messages that fit into so many bytes, in their old order. Kept first: those near the first finding, then lost ones,
/// then the others; a group that fits only in part is thinned out evenly.
pub(crate) fn thin_messages(
    messages: &[Message],
    first_finding_ms: Option<u64>,
    bytes: usize,
    size: impl Fn(&Message) -> usize,
) -> (Vec<&Message>, Option<LeftOut>) {
    let group = |message: &Message| {
        let is_near = first_finding_ms.is_some_and(|at| message.sent_ms.abs_diff(at) <= NEAR_FINDING_MS);
        if is_near {
            0
        } else if message.received_ms.is_none() {
            1
        } else {
            2
        }
    };
    let mut groups: [Vec<usize>; 3] = Default::default();
    for (place, message) in messages.iter().enumerate() {
        groups[group(message)].push(place);
    }
    let mut room = bytes;
    let mut kept: Vec<usize> = Vec::new();
    for places in &groups {
        let sizes: Vec<usize> = places.iter().map(|place| size(&messages[*place])).collect();
        for chosen in evenly(&sizes, room) {
            room = room.saturating_sub(sizes[chosen]);
            kept.push(places[chosen]);
        }
    }
    kept.sort_unstable();
    let fewer = LeftOut::new("messages", kept.len(), messages.len());
    (kept.into_iter().map(|place| &messages[place]).collect(), fewer)
}

/// Takes away plentiful marks until all marks fit into their share of so many bytes.
pub(crate) fn thin_marks(recording: &mut Recording, bytes: usize) -> Option<LeftOut> {
    let size = |mark: &Mark| serde_json::to_string(mark).map_or(0, |json| json.len() + 1);
    let is_plentiful = |mark: &Mark| PLENTIFUL_KINDS.contains(&mark.kind.as_str());
    let total = recording.marks.len();
    let fixed: usize = recording.marks.iter().filter(|mark| !is_plentiful(mark)).map(size).sum();
    let places: Vec<usize> = (0..total).filter(|place| is_plentiful(&recording.marks[*place])).collect();
    let sizes: Vec<usize> = places.iter().map(|place| size(&recording.marks[*place])).collect();
    let chosen = evenly(&sizes, (bytes / MARKS_SHARE).saturating_sub(fixed));

    let mut keep = vec![true; total];
    places.iter().for_each(|place| keep[*place] = false);
    chosen.into_iter().for_each(|place| keep[places[place]] = true);
    let mut keep = keep.into_iter();
    recording.marks.retain(|_| keep.next().unwrap_or(true));
    LeftOut::new("marks", recording.marks.len(), total)
}

/// Places, evenly spread, whose sizes together fit into the room: all when all fit.
fn evenly(sizes: &[usize], room: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    if total <= room {
        return (0..sizes.len()).collect();
    }
    let largest = sizes.iter().copied().max().unwrap_or(1).max(1);
    let count = (room / largest).min(sizes.len());
    (0..count).map(|step| step * sizes.len() / count).collect()
}

#[cfg(test)]
mod tests;
