//! `--moves N`: workloads without volumes go to other nodes, and each move is followed to its end.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cara_env::Env;
use cara_proto::rest::MoveView;
use futures_util::{StreamExt, stream};
use hyper::Method;
use serde_json::json;

use super::apps::{PREFIX, manifest};
use crate::connection::Connection;
use crate::measure::latency::Latency;
use crate::progress::bar;
use crate::report::{Report, Section};
use crate::target::Target;

/// Moves at a time: an eighth of what a cluster lets run.
const AT_ONCE: usize = 32;
/// Between two looks at a move.
const LOOK: Duration = Duration::from_millis(100);
/// A move that takes longer is stuck.
const MOVE_MAX: Duration = Duration::from_secs(120);

pub async fn run(env: &Env, target: &Target, count: usize, report: &mut Report) -> anyhow::Result<()> {
    let connections = super::connections(env, target, super::CONNECTIONS).await?;
    let prefix = format!("{PREFIX}move-{}", cara_env::hex(&*env.rng, 3));
    let name = |index: usize| format!("{prefix}-{index}");
    for index in 0..count {
        let connection = &connections[index % connections.len()];
        connection.change(Method::POST, "/apps", manifest(&name(index), 0), None).await?;
    }
    let bar = bar(&format!("{count} workloads move"), count as u64);
    let began = env.clock.monotonic();
    let go = |index: usize| move_once(env, &connections[index % connections.len()], name(index));
    let mut moving = stream::iter(0..count).map(go).buffer_unordered(AT_ONCE);
    let (mut all, mut failed) = (Latency::default(), 0_u32);
    while let Some(moved) = moving.next().await {
        match moved? {
            Some(took) => all.record(took),
            None => failed += 1,
        }
        bar.at(all.count());
    }
    let elapsed = env.clock.monotonic().saturating_sub(began).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a count of moves")]
    report.figures.put("moves_per_s", Some(all.count() as f64 / elapsed));
    report.figures.put("move_p50_s", all.ms(50.0).map(|ms| ms / 1_000.0));
    let seconds = |percent: f64| all.ms(percent).map(|ms| format!("{:.2}", ms / 1_000.0)).unwrap_or_default();
    report.section(Section {
        title: "Moves without volumes and without a shutdown delay".into(),
        header: &["done", "failed", "at a time", "p50 s", "p99 s"],
        rows: vec![vec![
            all.count().to_string(),
            failed.to_string(),
            AT_ONCE.to_string(),
            seconds(50.0),
            seconds(99.0),
        ]],
    });
    Ok(())
}

/// How long it took; none when it was taken back.
async fn move_once(env: &Env, connection: &Connection, name: String) -> anyhow::Result<Option<Duration>> {
    let began = env.clock.monotonic();
    let body = Bytes::from(json!({"shutdown_delay_s": 0}).to_string());
    let path = format!("/apps/{name}/move");
    let (answer, _) = connection.change(Method::POST, &path, body, None).await.context("a move was refused")?;
    let id = serde_json::from_slice::<MoveView>(&answer)?.id;
    loop {
        let answer = connection.read(&format!("/node-moves/{id}")).await?;
        let view: MoveView = serde_json::from_slice(&answer)?;
        let took = env.clock.monotonic().saturating_sub(began);
        match view.status.as_str() {
            "succeeded" => return Ok(Some(took)),
            "running" if took > MOVE_MAX => bail!("move {id} is still at {} after {MOVE_MAX:?}", view.phase),
            "running" => env.clock.sleep(LOOK).await,
            _ => return Ok(None),
        }
    }
}
