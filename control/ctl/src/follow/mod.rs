//! Following what the cluster does by itself, to its end: moves and drains.
//!
//! ```text
//!   look (read the object) -> story (pure: which lines are new, what goes on) -> progress (terminal or log)
//! ```
//! Invariant: following changes nothing. Ctrl-C, --timeout and a cluster without a quorum end the following, never
//! the work, and say how to look again.

mod app_story;
mod drain_story;
mod move_story;

use std::time::Duration;

use cara_proto::rest::{AppMoveView, DrainView, MoveView};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, ClientError};
use crate::cmd::{Context, segment};
use crate::failure::{Failure, Outcome, exit};
use crate::wait::{POLL, Progress};

pub(crate) use drain_story::{blocked, reason};
pub(crate) use move_story::{downtime, title as move_title};

use app_story::AppStory;
use drain_story::DrainStory;
use move_story::MoveStory;

/// How long no server may answer while something is followed. Elections take seconds; who repairs a cluster takes minutes.
const TROUBLE_MAX: Duration = Duration::from_secs(300);

/// What one look has to say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Lines that stay.
    pub lines: Vec<String>,
    /// What goes on, with numbers that change all the time.
    pub live: String,
    /// What goes on, for a log: it changes only when there is something new.
    pub calm: String,
    /// There is nothing more to come.
    pub over: bool,
}

/// Follows a move to its end and gives the move as the API tells it.
///
/// # Errors
/// 7 when it was rolled back or failed, 8 when --timeout is over, 130 after Ctrl-C, 6 without any server for long.
pub(crate) async fn a_move(cx: &Context, client: &Client, id: &str, title: &str) -> Outcome<Value> {
    let path = move_path(id);
    let next = format!("`caractrl nodes moves {id}` shows it, `caractrl nodes cancel-move {id}` takes it back");
    let mut follow = Follow::new(cx, client, title, &next);
    let following = async {
        let mut story = MoveStory::default();
        loop {
            if let Some((mv, value)) = follow.look::<MoveView>(&path).await?
                && follow.told(&story.hear(&mv, cx.env.clock.monotonic()))
            {
                let said = move_story::verdict(&mv)?;
                cx.ui.note(&said);
                return Ok(value);
            }
            follow.rest().await?;
        }
    };
    until_ctrl_c(following, title, &next).await
}

/// Follows a drain, move by move, and gives it as the API tells it.
///
/// # Errors
/// As [`a_move`]; 7 when something stays on the node.
pub(crate) async fn a_drain(cx: &Context, client: &Client, id: &str, node: &str) -> Outcome<Value> {
    let path = format!("/node-drains/{}", segment(id));
    let title = format!("drain of {node}");
    let next = format!("`caractrl nodes drains {node}` shows it, `caractrl nodes cancel-drain {id}` stops it");
    let mut follow = Follow::new(cx, client, &title, &next);
    let following = async {
        let mut story = DrainStory::default();
        loop {
            if let Some((drain, value)) = follow.look::<DrainView>(&path).await? {
                let mut moves = Vec::new();
                for id in story.wanted(&drain) {
                    match follow.look::<MoveView>(&move_path(id)).await? {
                        Some((mv, _)) => moves.push(mv),
                        None => break,
                    }
                }
                if follow.told(&story.hear(&drain, &moves, cx.env.clock.monotonic())) {
                    let said = story.verdict(&drain)?;
                    cx.ui.note(&said);
                    return Ok(value);
                }
            }
            follow.rest().await?;
        }
    };
    until_ctrl_c(following, &title, &next).await
}

/// Follows an app's move through the older view of it.
///
/// # Errors
/// As [`a_move`].
pub(crate) async fn an_app(cx: &Context, client: &Client, app: &str, id: &str) -> Outcome<Value> {
    let path = format!("/apps/{}/moves/{}", segment(app), segment(id));
    let title = format!("app/{app}");
    let next = "`caractrl nodes moves --kind app` shows it".to_owned();
    let mut follow = Follow::new(cx, client, &title, &next);
    let following = async {
        let mut story = AppStory::default();
        loop {
            if let Some((mv, value)) = follow.look::<AppMoveView>(&path).await?
                && follow.told(&story.hear(&mv))
            {
                app_story::verdict(app, &mv)?;
                return Ok(value);
            }
            follow.rest().await?;
        }
    };
    until_ctrl_c(following, &title, &next).await
}

/// The steps of an app's move that was over at once.
///
/// # Errors
/// 7 when it failed.
pub(crate) fn an_app_at_once(cx: &Context, app: &str, mv: &AppMoveView) -> Outcome {
    for line in AppStory::default().hear(mv).lines {
        cx.ui.note(&line);
    }
    app_story::verdict(app, mv)
}

fn move_path(id: &str) -> String {
    format!("/node-moves/{}", segment(id))
}

/// Ctrl-C is listened for from the first moment on, also while no server answers.
async fn until_ctrl_c(following: impl Future<Output = Outcome<Value>>, title: &str, next: &str) -> Outcome<Value> {
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            let what = format!("{title}: no longer following; it goes on");
            Err(Failure::new(exit::DETACHED, "detached", what).next(next))
        }
        result = following => result,
    }
}

/// The looking, and what stands on the screen meanwhile.
struct Follow<'a> {
    cx: &'a Context,
    client: &'a Client,
    progress: Progress,
    title: String,
    next: String,
    started: Duration,
    /// Since when no server has answered.
    trouble: Option<Duration>,
}

impl<'a> Follow<'a> {
    fn new(cx: &'a Context, client: &'a Client, title: &str, next: &str) -> Self {
        Self {
            cx,
            client,
            progress: Progress::new(&cx.ui, title),
            title: title.to_owned(),
            next: next.to_owned(),
            started: cx.env.clock.monotonic(),
            trouble: None,
        }
    }

    /// Reads one object, typed and as it came; nothing while no server answers, which passes.
    async fn look<T: DeserializeOwned>(&mut self, path: &str) -> Outcome<Option<(T, Value)>> {
        let asked = self.cx.env.clock.monotonic();
        let error = match self.client.get::<Value>(path).await {
            Ok(value) => {
                self.trouble = None;
                let typed = serde_json::from_value(value.clone()).map_err(|e| ClientError::Malformed(e.to_string()))?;
                return Ok(Some((typed, value)));
            }
            Err(error) => error,
        };
        let since = *self.trouble.get_or_insert(asked);
        if !passes(&error) || self.cx.env.clock.monotonic() - since >= TROUBLE_MAX {
            return Err(Failure::from(error).next(&self.next));
        }
        let said = format!("no server answers ({error}); it goes on as soon as they do");
        self.progress.set_calm(&said, "no server answers; it goes on as soon as they do");
        Ok(None)
    }

    /// Says what was heard; true when there is nothing more to come.
    fn told(&mut self, heard: &Heard) -> bool {
        for line in &heard.lines {
            self.progress.say(line);
        }
        if heard.over {
            self.progress.clear();
        } else {
            self.progress.set_calm(&heard.live, &heard.calm);
        }
        heard.over
    }

    /// Sleeps until the next look, unless --timeout is over. Without it there is no limit: a move has its own.
    async fn rest(&self) -> Outcome {
        let waited = self.cx.env.clock.monotonic() - self.started;
        if let Some(limit) = self.cx.global.timeout.filter(|limit| waited >= *limit) {
            let what = format!("{}: not over after {} s; it goes on", self.title, limit.as_secs());
            return Err(Failure::new(exit::TIMEOUT, "timeout", what).next(&self.next));
        }
        self.cx.env.clock.sleep(POLL).await;
        Ok(())
    }
}

/// Does this trouble end by itself, as an election does?
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Interrupted(_) | ClientError::Quiet(_) => true,
        ClientError::Problem(problem) => matches!(problem.status, 429 | 502..=504),
        ClientError::Setup(_)
        | ClientError::Untrusted { .. }
        | ClientError::Unknown { .. }
        | ClientError::Malformed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::Problem;

    use super::*;

    #[test]
    fn an_election_is_waited_for_and_a_refusal_is_not() {
        let problem = |status| ClientError::Problem(Box::new(Problem { status, ..Problem::default() }));
        assert!(passes(&problem(503)) && passes(&problem(429)));
        assert!(!passes(&problem(404)) && !passes(&problem(403)) && !passes(&problem(500)));
        assert!(passes(&ClientError::Unreachable { tried: Vec::new(), waited: Duration::ZERO }));
        assert!(!passes(&ClientError::Untrusted { tried: Vec::new() }));
    }
}
