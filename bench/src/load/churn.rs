//! `--churn R`: so many agents a second are ended in order and started again, each in turn.

use std::time::Duration;

use cara_env::Env;

use crate::agents::Fleet;
use crate::progress::bar;
use crate::report::{Report, Section};

/// After the last restart all shall be back by then.
const BACK_MAX: Duration = Duration::from_secs(60);

pub async fn run(env: &Env, fleet: &mut Fleet, rate: u32, length: Duration, report: &mut Report) -> anyhow::Result<()> {
    let restarts = u64::from(rate) * length.as_secs().max(1);
    let agents = fleet.agents() as u64;
    let bar = bar(&format!("{rate} agents a second are restarted"), restarts);
    let came_online = fleet.counts().came_online;
    fleet.begin_phase();
    let began = env.clock.monotonic();
    for restart in 0..restarts {
        let due = began + Duration::from_secs_f64(f64::from(u32::try_from(restart)?) / f64::from(rate));
        env.clock.sleep(due.saturating_sub(env.clock.monotonic())).await;
        fleet.restart(usize::try_from(restart % agents)?).await?;
        bar.at(restart);
    }
    let back = |counts: &crate::agents::Tick| {
        counts.came_online >= came_online + restarts.min(agents) && counts.online == agents
    };
    fleet.until("restarted agents being back", BACK_MAX, |_| (), back).await?;
    let phase = fleet.begin_phase();
    report.figures.put("churn_back_p99_ms", phase.returns.ms(99.0));
    let ms = |percent: f64| phase.returns.ms(percent).map(|ms| format!("{ms:.0}")).unwrap_or_default();
    report.section(Section {
        title: "Agents restarted at a fixed rate".into(),
        header: &["per s", "returns", "p50 ms", "p99 ms", "heartbeats missed by others"],
        rows: vec![vec![
            rate.to_string(),
            phase.returns.count().to_string(),
            ms(50.0),
            ms(99.0),
            phase.missed.to_string(),
        ]],
    });
    Ok(())
}
