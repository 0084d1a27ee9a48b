//! What a look at a drain has to say: its moves, one after the other, each with its steps; what is blocked and why; and
//! how it ended. Pure.

use std::time::Duration;

use cara_proto::rest::{BlockedItem, DrainView, MoveView, Rejection};

use super::Heard;
use super::move_story::{self, MoveStory, is_over, title};
use crate::failure::{Failure, Outcome, exit};
use crate::out::{between, clean, span};

/// What was told of one drain.
#[derive(Debug, Default)]
pub(crate) struct DrainStory {
    /// Moves that are over and told, from the first on.
    told: usize,
    /// The move that is being told.
    current: Option<MoveStory>,
    /// Blocked workloads that were told.
    blocked: usize,
    /// Measured downtime of all moves that were told.
    downtime_ms: u64,
}

impl DrainStory {
    /// The moves that must be read for the next look, in order.
    pub(crate) fn wanted<'a>(&self, drain: &'a DrainView) -> &'a [String] {
        drain.moves.get(self.told..).unwrap_or_default()
    }

    /// Takes one look. `moves` are the wanted ones as they were read, possibly fewer: the drain is over only when all
    /// of them were told.
    pub(crate) fn hear(&mut self, drain: &DrainView, moves: &[MoveView], now: Duration) -> Heard {
        let mut lines = Vec::new();
        let mut going_on = None;
        for mv in moves {
            let place = format!("{}/{}", self.told + 1, drain.plan.len().max(drain.moves.len()));
            if self.current.is_none() {
                lines.push(format!("{place}  {}  {} -> {}", title(mv), clean(&mv.from_node), clean(&mv.to_node)));
            }
            let heard = self.current.get_or_insert_default().hear(mv, now);
            lines.extend(heard.lines.iter().map(|line| format!("     {line}")));
            if !heard.over {
                going_on = Some((format!("{place}  {}  ", title(mv)), heard));
                break;
            }
            lines.push(match move_story::verdict(mv) {
                Ok(said) => format!("     {said}"),
                Err(failure) if failure.why.is_empty() => format!("     {}", failure.what),
                Err(failure) => format!("     {}: {}", failure.what, clean(&failure.why)),
            });
            self.downtime_ms = self.downtime_ms.saturating_add(mv.downtime_ms.unwrap_or(0));
            self.told += 1;
            self.current = None;
        }
        lines.extend(drain.blocked.iter().skip(self.blocked).map(|b| format!("blocked  {}", blocked(b))));
        self.blocked = self.blocked.max(drain.blocked.len());
        let (live, calm) = match going_on {
            Some((head, heard)) => (format!("{head}{}", heard.live), format!("{head}{}", heard.calm)),
            None => {
                let text = format!("{} of {} moved", drain.done, drain.total);
                (text.clone(), text)
            }
        };
        Heard { lines, live, calm, over: is_over(&drain.status) && self.told >= drain.moves.len() }
    }

    /// The last line of a drain that is over, or why the node is not empty.
    ///
    /// # Errors
    /// 1 when something stays on the node, with the cause and the next step.
    pub(crate) fn verdict(&self, drain: &DrainView) -> Outcome<String> {
        let node = clean(&drain.node_name);
        let finished = drain.finished_at.as_deref().unwrap_or_default();
        let took = between(&drain.started_at, finished).map(|ms| format!(" in {}", span(ms))).unwrap_or_default();
        let count = format!("{} of {} moved", drain.done, drain.total);
        if drain.status == "succeeded" {
            let downtime = match self.downtime_ms {
                0 => "no downtime".to_owned(),
                ms => format!("measured downtime {} in all", span(ms)),
            };
            return Ok(format!("{node} is empty: {count}{took}; {downtime}; it stays cordoned"));
        }
        let again =
            format!("`caractrl nodes drain {node}` goes on, `caractrl nodes uncordon {node}` takes workloads again");
        let failure = match drain.status.as_str() {
            "cancelled" => {
                Failure::new(exit::FAILED, "drain-cancelled", format!("the drain of {node} was cancelled: {count}"))
                    .next(again)
            }
            _ => Failure::new(exit::FAILED, "drain-failed", format!("{node} is not empty: {count}; it stays cordoned"))
                .next(format!("remove the cause, then {again}")),
        };
        let error = drain.error.clone().filter(|error| !error.is_empty());
        let why: Vec<String> = error.into_iter().chain(drain.blocked.iter().map(blocked)).collect();
        Err(failure.why(why.join("\n")))
    }
}

/// `app/cache: w1 cordoned, w2 offline`.
pub(crate) fn blocked(item: &BlockedItem) -> String {
    let reasons: Vec<String> = item.reasons.iter().map(reason).collect();
    let why = if reasons.is_empty() { item.reason.clone() } else { reasons.join(", ") };
    clean(&format!("{}/{}: {why}", item.kind, item.name))
}

/// `w1 cordoned`.
pub(crate) fn reason(rejection: &Rejection) -> String {
    format!("{} {}", rejection.node, rejection.reason).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::DrainItem;

    use super::super::move_story::tests::{sample, step};
    use super::*;

    fn drain(status: &str, moves: &[&str]) -> DrainView {
        DrainView {
            id: "d1".into(),
            node_name: "w1".into(),
            status: status.into(),
            moves: moves.iter().map(|id| (*id).to_owned()).collect(),
            plan: vec![DrainItem::default(); 2],
            total: 2,
            started_at: "2023-11-14T22:13:00Z".into(),
            ..DrainView::default()
        }
    }

    fn over(id: &str, status: &str) -> MoveView {
        MoveView { id: id.into(), downtime_ms: Some(1_600), ..sample("done", status) }
    }

    #[test]
    fn moves_are_told_one_after_the_other_and_once() {
        let mut story = DrainStory::default();
        let now = Duration::ZERO;
        assert_eq!(story.hear(&drain("running", &[]), &[], now).live, "0 of 2 moved");
        let first = drain("running", &["m1"]);
        assert_eq!(story.wanted(&first), ["m1"]);
        let mut mv = sample("preflight", "running");
        mv.waiting_for = Some("the image".into());
        let heard = story.hear(&first, std::slice::from_ref(&mv), now);
        assert_eq!(heard.lines, ["1/2  database/ledger  w1 -> w2"]);
        assert_eq!((heard.live.as_str(), heard.over), ("1/2  database/ledger  preflight  the image", false));
        mv.steps = vec![step("preflight", "ok", "target is ready", 4)];
        let heard = story.hear(&first, std::slice::from_ref(&mv), now);
        assert_eq!(heard.lines, ["     preflight     ok      +4.0 s    target is ready"]);

        let second = DrainView { done: 1, ..drain("running", &["m1", "m2"]) };
        assert_eq!(story.wanted(&second), ["m1", "m2"]);
        let done = MoveView { steps: mv.steps.clone(), ..over("m1", "succeeded") };
        let next = MoveView { kind: "app".into(), name: "web".into(), ..sample("preflight", "running") };
        let heard = story.hear(&second, &[done, next], now);
        assert_eq!(
            heard.lines,
            ["     database/ledger moved from w1 to w2; measured downtime 1.6 s", "2/2  app/web  w1 -> w2"]
        );
        assert_eq!(story.wanted(&second), ["m2"]);
    }

    #[test]
    fn it_is_over_only_when_every_move_was_told() {
        let mut story = DrainStory::default();
        let ended = DrainView { done: 2, ..drain("succeeded", &["m1", "m2"]) };
        assert!(!story.hear(&ended, &[over("m1", "succeeded")], Duration::ZERO).over);
        assert!(story.hear(&ended, &[over("m2", "succeeded")], Duration::ZERO).over);
        let ended = DrainView { finished_at: Some("2023-11-14T22:15:00Z".into()), ..ended };
        let said = "w1 is empty: 2 of 2 moved in 2m 0s; measured downtime 3.2 s in all; it stays cordoned";
        assert_eq!(story.verdict(&ended), Ok(said.to_owned()));
    }

    #[test]
    fn what_stays_is_told_with_the_reason_of_each_node() {
        let mut story = DrainStory::default();
        let reason = |node: &str, reason: &str| Rejection { node: node.into(), reason: reason.into() };
        let item = BlockedItem {
            kind: "app".into(),
            name: "cache".into(),
            reason: "no node can take it".into(),
            reasons: vec![reason("w2", "offline"), reason("w3", "label disk=ssd missing")],
        };
        let unknown = BlockedItem { reasons: Vec::new(), ..item.clone() };
        assert_eq!(blocked(&unknown), "app/cache: no node can take it");
        let failed =
            DrainView { done: 1, error: Some("1 stays".into()), blocked: vec![item], ..drain("failed", &["m1"]) };
        let heard = story.hear(&failed, &[over("m1", "rolled_back")], Duration::ZERO);
        assert_eq!(heard.lines[1], "     database/ledger was not moved; w1 has it, as before");
        assert_eq!(heard.lines[2], "blocked  app/cache: w2 offline, w3 label disk=ssd missing");
        assert!(heard.over && story.hear(&failed, &[], Duration::ZERO).lines.is_empty());
        let failure = story.verdict(&failed).expect_err("not empty");
        assert_eq!((failure.exit, failure.code.as_str()), (7, "drain-failed"));
        assert_eq!(failure.what, "w1 is not empty: 1 of 2 moved; it stays cordoned");
        assert_eq!(failure.why, "1 stays\napp/cache: w2 offline, w3 label disk=ssd missing");
        let failure = story.verdict(&drain("cancelled", &[])).expect_err("cancelled");
        assert_eq!((failure.exit, failure.code.as_str()), (7, "drain-cancelled"));
    }
}
