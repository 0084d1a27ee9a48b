//! `--placements N`: workloads created as fast as they are taken. The entry that creates one places it, so an answer is a
//! durable placement.

use cara_env::Env;
use futures_util::{StreamExt, stream};
use hyper::Method;

use super::apps::{PREFIX, manifest, node_of};
use crate::measure::latency::Latency;
use crate::progress::bar;
use crate::report::{Report, Section};
use crate::target::Target;

/// Creates at a time.
const AT_ONCE: usize = 256;

pub async fn run(env: &Env, target: &Target, count: usize, report: &mut Report) -> anyhow::Result<()> {
    let connections = super::connections(env, target, super::CONNECTIONS).await?;
    let prefix = format!("{PREFIX}place-{}", cara_env::hex(&*env.rng, 3));
    let bar = bar(&format!("{count} workloads are placed"), count as u64);
    let create = |index: usize| {
        let connection = connections[index % connections.len()].clone();
        let (name, clock) = (format!("{prefix}-{index}"), env.clock.clone());
        async move {
            let began = clock.monotonic();
            let (answer, _) = connection.change(Method::POST, "/apps", manifest(&name, 0), None).await?;
            anyhow::Ok((clock.monotonic().saturating_sub(began), node_of(&answer).is_some()))
        }
    };
    let began = env.clock.monotonic();
    let mut creating = stream::iter(0..count).map(create).buffer_unordered(AT_ONCE);
    let (mut latency, mut placed) = (Latency::default(), 0_u32);
    while let Some(created) = creating.next().await {
        let (took, is_placed) = created?;
        latency.record(took);
        placed += u32::from(is_placed);
        bar.at(latency.count());
    }
    let elapsed = env.clock.monotonic().saturating_sub(began).as_secs_f64();
    report.figures.put("placements_per_s", Some(f64::from(placed) / elapsed));
    let ms = |percent: f64| latency.ms(percent).map(|ms| format!("{ms:.1}")).unwrap_or_default();
    report.section(Section {
        title: "Workloads created and placed".into(),
        header: &["created", "placed", "at a time", "p50 ms", "p99 ms"],
        rows: vec![vec![count.to_string(), placed.to_string(), AT_ONCE.to_string(), ms(50.0), ms(99.0)]],
    });
    Ok(())
}
