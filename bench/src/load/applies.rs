//! `--apply-rate R`: so many manifests a second are applied, whether the last ones are answered or not: a cluster that falls
//! behind shows as latency, which is counted from the moment at which the call was due.

use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;
use hyper::Method;

use super::apps::{PREFIX, manifest};
use crate::measure::latency::Latency;
use crate::progress::bar;
use crate::report::{Report, Section};
use crate::target::Target;

/// Apps whose manifests change in turn.
const APPS: u64 = 100;

pub async fn run(env: &Env, target: &Target, rate: u32, length: Duration, report: &mut Report) -> anyhow::Result<()> {
    let connections = super::connections(env, target, super::CONNECTIONS).await?;
    let prefix = format!("{PREFIX}apply-{}", cara_env::hex(&*env.rng, 3));
    for app in 0..APPS {
        let name = format!("{prefix}-{app}");
        connections[0].change(Method::POST, "/apps", manifest(&name, 0), None).await?;
    }
    let calls = u64::from(rate) * length.as_secs().max(1);
    let bar = bar(&format!("{rate} manifests a second are applied"), calls);
    let began = env.clock.monotonic();
    let mut tasks = Vec::new();
    for (call, connection) in (0..calls).zip(connections.iter().cycle()) {
        let due = began + Duration::from_secs_f64(f64::from(u32::try_from(call)?) / f64::from(rate));
        env.clock.sleep(due.saturating_sub(env.clock.monotonic())).await;
        let (connection, clock) = (connection.clone(), env.clock.clone());
        let name = format!("{prefix}-{}", call % APPS);
        tasks.push(cara_env::spawn(async move {
            let body = manifest(&name, call + 1);
            connection.change(Method::PUT, &format!("/apps/{name}"), body, None).await?;
            anyhow::Ok(clock.monotonic().saturating_sub(due))
        }));
        bar.at(call);
    }
    let mut latency = Latency::default();
    for task in tasks {
        latency.record(task.await.context("a call has ended early")??);
    }
    let elapsed = env.clock.monotonic().saturating_sub(began).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
    report.figures.put("apply_per_s", Some(latency.count() as f64 / elapsed));
    report.figures.put("apply_p99_ms", latency.ms(99.0));
    let ms = |percent: f64| latency.ms(percent).map(|ms| format!("{ms:.1}")).unwrap_or_default();
    report.section(Section {
        title: "Manifests applied at a fixed rate".into(),
        header: &["wanted per s", "applied", "p50 ms", "p99 ms", "p99.9 ms"],
        rows: vec![vec![rate.to_string(), latency.count().to_string(), ms(50.0), ms(99.0), ms(99.9)]],
    });
    Ok(())
}
