//! What a look at the older view of an app's move has to say. Pure.

use cara_proto::rest::{AppMoveStep, AppMoveView};

use super::Heard;
use super::move_story::is_over;
use crate::failure::{Failure, Outcome, exit};
use crate::out::clean;

/// How many steps were told.
#[derive(Debug, Default)]
pub(super) struct AppStory {
    told: usize,
}

impl AppStory {
    /// Takes one look: a step is told when it is over.
    pub(super) fn hear(&mut self, mv: &AppMoveView) -> Heard {
        let fresh = mv.steps.get(self.told..).unwrap_or_default();
        let over: Vec<&AppMoveStep> =
            fresh.iter().take_while(|s| is_over(&s.status) && s.status != "pending").collect();
        self.told += over.len();
        let live = fresh.get(over.len()).map(|step| clean(&step.name)).unwrap_or_default();
        let lines = over.into_iter().map(line).collect();
        Heard { lines, calm: live.clone(), live, over: is_over(&mv.status) }
    }
}

/// `update_placement  succeeded`.
fn line(step: &AppMoveStep) -> String {
    let error = step.error.as_deref().unwrap_or_default();
    clean(&format!("{:<16}  {}  {error}", step.name, step.status)).trim_end().to_owned()
}

/// # Errors
/// 7 when it did not succeed.
pub(super) fn verdict(app: &str, mv: &AppMoveView) -> Outcome {
    if matches!(mv.status.as_str(), "succeeded" | "") {
        return Ok(());
    }
    Err(Failure::new(exit::FAILED, "move-failed", format!("app/{app} was not moved"))
        .why(mv.error.clone().unwrap_or_default())
        .next(format!("remove the cause, then move it again; `caractrl describe app {app}` shows where it is")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_when_they_are_over() {
        let step = |name: &str, status: &str| AppMoveStep {
            name: name.into(),
            status: status.into(),
            ..AppMoveStep::default()
        };
        let mut mv = AppMoveView { id: "m".into(), status: "running".into(), ..AppMoveView::default() };
        mv.steps =
            vec![step("stop_app", "succeeded"), step("move_volume:data", "running"), step("resume_app", "pending")];
        let mut story = AppStory::default();
        let heard = story.hear(&mv);
        assert_eq!(heard.lines, ["stop_app          succeeded"]);
        assert_eq!((heard.live.as_str(), heard.over), ("move_volume:data", false));
        mv.steps[1].status = "failed".into();
        mv.steps[1].error = Some("disk full".into());
        (mv.status, mv.error) = ("failed".into(), Some("disk full".into()));
        let heard = story.hear(&mv);
        assert_eq!((heard.lines, heard.over), (vec!["move_volume:data  failed  disk full".to_owned()], true));
        let failure = verdict("web", &mv).expect_err("failed");
        assert_eq!((failure.exit, failure.why.as_str()), (7, "disk full"));
        assert_eq!(verdict("web", &AppMoveView { status: "succeeded".into(), ..mv }), Ok(()));
    }
}
