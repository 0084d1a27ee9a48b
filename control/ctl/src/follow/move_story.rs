//! What a look at a move has to say: the steps that are new, what goes on now, and how it ended. Pure, so that every
//! line is tested without a cluster.

use std::time::Duration;

use cara_proto::rest::{MoveStepView, MoveTransfer, MoveView};

use super::Heard;
use crate::failure::{Failure, Outcome, exit};
use crate::out::{between, bytes, clean, gauge, percent, span};

/// What was told of one move.
#[derive(Debug, Default)]
pub(crate) struct MoveStory {
    /// The newest step that was told; a move keeps only its newest steps, so their number says nothing.
    last: Option<MoveStepView>,
    /// When it was first seen stopped, on the clock of this program.
    stopped: Option<Duration>,
}

impl MoveStory {
    /// Takes one look; `now` is this program's monotonic clock.
    pub(crate) fn hear(&mut self, mv: &MoveView, now: Duration) -> Heard {
        let known = self.last.as_ref().and_then(|last| mv.steps.iter().rposition(|step| step == last));
        let fresh = &mv.steps[known.map_or(0, |at| at + 1)..];
        let lines = fresh.iter().filter(|step| step.outcome != "waiting").map(|step| line(mv, step)).collect();
        self.last = mv.steps.last().cloned();
        let down = mv.stopped_at.is_some() && mv.downtime_ms.is_none();
        self.stopped = down.then(|| self.stopped.unwrap_or(now));
        let (live, calm) = going_on(mv);
        let live = match self.stopped {
            Some(since) => format!("{live}  down for {}", span(millis(now.saturating_sub(since)))),
            None => live,
        };
        Heard { lines, live, calm, over: is_over(&mv.status) }
    }
}

/// Has a status ended? An unknown one of a newer server has.
pub(super) fn is_over(status: &str) -> bool {
    !matches!(status, "running" | "")
}

/// `database/ledger`.
pub(crate) fn title(mv: &MoveView) -> String {
    clean(&format!("{}/{}", mv.kind, mv.name))
}

/// The last line of a move that is over: what became of it, or why not.
///
/// # Errors
/// 7 when it was rolled back or failed, with the cause and the next step.
pub(crate) fn verdict(mv: &MoveView) -> Outcome<String> {
    let title = title(mv);
    let (from, to) = (&mv.from_node, &mv.to_node);
    let look = format!("`caractrl nodes moves {}` shows every step", mv.id);
    let failure = match mv.status.as_str() {
        "succeeded" => return Ok(clean(&format!("{title} moved from {from} to {to}{}; {}", took(mv), downtime(mv)))),
        "rolled_back" => {
            Failure::new(exit::FAILED, "move-rolled-back", format!("{title} was not moved; {from} has it, as before"))
                .next(format!("remove the cause, then move it again; {look}"))
        }
        "failed" => {
            Failure::new(exit::FAILED, "move-failed", format!("{title}: the move failed, and it may not run anywhere"))
                .next(format!("caractrl describe {} {}; {look}", mv.kind, mv.name))
        }
        other => Failure::new(exit::FAILED, "move-failed", format!("{title}: the move ended as {other:?}")).next(look),
    };
    Err(failure.why(cause(mv)))
}

fn cause(mv: &MoveView) -> String {
    let told = mv.error.clone().filter(|error| !error.is_empty());
    told.or_else(|| mv.steps.iter().rev().find(|s| s.outcome == "failed").map(|s| s.detail.clone())).unwrap_or_default()
}

fn took(mv: &MoveView) -> String {
    let finished = mv.finished_at.as_deref().unwrap_or_default();
    between(&mv.started_at, finished).map(|ms| format!(" in {}", span(ms))).unwrap_or_default()
}

/// `measured downtime 1.7 s`.
pub(crate) fn downtime(mv: &MoveView) -> String {
    match (mv.downtime_ms, mv.stateful) {
        (Some(ms), _) => format!("measured downtime {}", span(ms)),
        (None, false) => "no downtime: the new copy worked before the old one stopped".to_owned(),
        (None, true) => "no downtime was measured".to_owned(),
    }
}

/// `copy_volumes  ok       +4.2 s  source and target have the same content`.
fn line(mv: &MoveView, step: &MoveStepView) -> String {
    let since = between(&mv.started_at, &step.at).map(|ms| format!("+{}", span(ms))).unwrap_or_default();
    let again = if step.attempt > 1 { format!(" (attempt {})", step.attempt) } else { String::new() };
    clean(&format!("{:<12}  {:<6}  {since:<8}  {}{again}", step.phase, step.outcome, step.detail))
}

/// What it does now: with all numbers for a line that is rewritten, and without those that change all the time.
fn going_on(mv: &MoveView) -> (String, String) {
    let copies = matches!(mv.phase.as_str(), "preflight" | "copy_volumes");
    let transfer = mv.transfer.as_ref().filter(|t| copies && t.bytes_total > 0 && t.bytes_done < t.bytes_total);
    if let Some(transfer) = transfer {
        let (live, calm) = copying(transfer);
        return (clean(&format!("{}  {live}", mv.phase)), clean(&format!("{}  {calm}", mv.phase)));
    }
    let newest = mv.steps.last().filter(|s| s.phase == mv.phase && matches!(s.outcome.as_str(), "waiting" | "retry"));
    let why = mv.waiting_for.clone().filter(|why| !why.is_empty()).or_else(|| newest.map(|s| s.detail.clone()));
    let text = clean(&match why {
        Some(why) => format!("{}  {why}", mv.phase),
        None => mv.phase.clone(),
    });
    (text.clone(), text)
}

/// `copying, round 2  [####----------------] 21%  41 MiB of 196 MiB  212 MiB/s  0 s left`, and the same in tenths.
fn copying(transfer: &MoveTransfer) -> (String, String) {
    let MoveTransfer { bytes_total: total, bytes_done: done, rate_bytes_per_second: rate, round, .. } = *transfer;
    let (total_text, part) = (bytes(total), percent(done, total));
    let mut live = format!("copying, round {round}  {} {part}%  {} of {total_text}", gauge(done, total), bytes(done));
    if let Some(left_ms) = (total - done).saturating_mul(1_000).checked_div(rate) {
        live = format!("{live}  {}/s  {} left", bytes(rate), span(left_ms));
    }
    let mut calm = format!("copying, round {round}: {}% of {total_text}", part / 10 * 10);
    if let Some(error) = transfer.error.as_deref().filter(|error| !error.is_empty()) {
        (live, calm) = (format!("{live}  {error}"), format!("{calm}; {error}"));
    }
    (live, calm)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn step(phase: &str, outcome: &str, detail: &str, second: u32) -> MoveStepView {
        let at = format!("2023-11-14T22:13:{second:02}Z");
        MoveStepView { phase: phase.into(), outcome: outcome.into(), detail: detail.into(), at, attempt: 1 }
    }

    /// A database that is moved from `w1` to `w2`.
    pub(crate) fn sample(phase: &str, status: &str) -> MoveView {
        MoveView {
            id: "m1".into(),
            kind: "database".into(),
            name: "ledger".into(),
            from_node: "w1".into(),
            to_node: "w2".into(),
            stateful: true,
            phase: phase.into(),
            status: status.into(),
            started_at: "2023-11-14T22:13:00Z".into(),
            ..MoveView::default()
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_step_is_told_once() {
        let mut story = MoveStory::default();
        let mut mv = sample("preflight", "running");
        mv.steps = vec![step("preflight", "waiting", "target is getting image and network", 1)];
        let heard = story.hear(&mv, at(1));
        assert_eq!(heard.lines, Vec::<String>::new());
        assert_eq!(heard.live, "preflight  target is getting image and network");
        mv.phase = "stop_source".into();
        mv.steps.push(step("preflight", "ok", "target is ready", 4));
        assert_eq!(story.hear(&mv, at(2)).lines, ["preflight     ok      +4.0 s    target is ready"]);
        assert_eq!(story.hear(&mv, at(3)).lines, Vec::<String>::new());
    }

    #[test]
    fn steps_that_the_cluster_has_forgotten_do_not_confuse() {
        let mut story = MoveStory::default();
        let mut mv = sample("copy_volumes", "running");
        mv.steps = vec![step("preflight", "ok", "", 1), step("stop_source", "ok", "", 2)];
        assert_eq!(story.hear(&mv, at(1)).lines.len(), 2);
        // The oldest slides away, one is new.
        mv.steps = vec![step("stop_source", "ok", "", 2), step("copy_volumes", "retry", "differs", 3)];
        assert_eq!(story.hear(&mv, at(2)).lines, ["copy_volumes  retry   +3.0 s    differs"]);
        // All that was told is gone.
        mv.steps = vec![MoveStepView { attempt: 9, ..step("copy_volumes", "retry", "differs", 40) }];
        assert_eq!(story.hear(&mv, at(3)).lines, ["copy_volumes  retry   +40 s     differs (attempt 9)"]);
    }

    #[test]
    fn copying_has_bytes_rate_and_time_left() {
        let mut mv = sample("preflight", "running");
        mv.transfer = Some(MoveTransfer {
            bytes_total: 1 << 30,
            bytes_done: 1 << 28,
            rate_bytes_per_second: 1 << 26,
            round: 2,
            ..MoveTransfer::default()
        });
        let heard = MoveStory::default().hear(&mv, at(0));
        let bar = "[#####---------------] 25%";
        assert_eq!(heard.live, format!("preflight  copying, round 2  {bar}  256 MiB of 1.0 GiB  64 MiB/s  12 s left"));
        assert_eq!(heard.calm, "preflight  copying, round 2: 20% of 1.0 GiB");
        mv.transfer =
            mv.transfer.map(|t| MoveTransfer { rate_bytes_per_second: 0, error: Some("disk full".into()), ..t });
        let heard = MoveStory::default().hear(&mv, at(0));
        assert!(heard.live.ends_with("256 MiB of 1.0 GiB  disk full"), "{}", heard.live);
        assert!(heard.calm.ends_with("; disk full"), "{}", heard.calm);
    }

    #[test]
    fn downtime_is_counted_while_it_lasts_and_told_as_measured() {
        let mut story = MoveStory::default();
        let mut mv = sample("copy_volumes", "running");
        mv.stopped_at = Some("2023-11-14T22:13:05Z".into());
        mv.waiting_for = Some("what changed is being copied".into());
        story.hear(&mv, at(10));
        let heard = story.hear(&mv, at(13));
        assert_eq!(heard.live, "copy_volumes  what changed is being copied  down for 3.0 s");
        assert_eq!(heard.calm, "copy_volumes  what changed is being copied");
        mv.downtime_ms = Some(1_749);
        assert!(!story.hear(&mv, at(14)).live.contains("down for"));
        mv.status = "succeeded".into();
        mv.finished_at = Some("2023-11-14T22:13:12Z".into());
        assert!(story.hear(&mv, at(15)).over);
        let said = "database/ledger moved from w1 to w2 in 12 s; measured downtime 1.7 s";
        assert_eq!(verdict(&mv), Ok(said.to_owned()));
        let app = MoveView { kind: "app".into(), stateful: false, downtime_ms: None, ..mv };
        assert!(verdict(&app).expect("moved").contains("no downtime"));
    }

    #[test]
    fn a_move_that_was_taken_back_says_why_and_what_next() {
        let mut mv = sample("rollback", "rolled_back");
        mv.error = Some("target failed: no such image".into());
        let failure = verdict(&mv).expect_err("not moved");
        assert_eq!((failure.exit, failure.code.as_str()), (7, "move-rolled-back"));
        assert_eq!(failure.what, "database/ledger was not moved; w1 has it, as before");
        assert_eq!(failure.why, "target failed: no such image");
        assert!(failure.next.contains("caractrl nodes moves m1"), "{}", failure.next);
        mv.error = None;
        mv.steps = vec![step("place", "failed", "no room", 3), step("rollback", "ok", "", 4)];
        assert_eq!(verdict(&mv).expect_err("not moved").why, "no room");
        let failure = verdict(&MoveView { status: "failed".into(), ..mv.clone() }).expect_err("failed");
        assert_eq!((failure.exit, failure.code.as_str()), (7, "move-failed"));
        assert!(
            verdict(&MoveView { status: "lost_in_time".into(), ..mv })
                .expect_err("unknown")
                .what
                .contains("lost_in_time")
        );
    }

    #[test]
    fn only_running_goes_on() {
        for (status, over) in [("running", false), ("", false), ("succeeded", true), ("rolled_back", true), ("x", true)]
        {
            assert_eq!(MoveStory::default().hear(&sample("done", status), at(0)).over, over, "{status}");
        }
    }
}
