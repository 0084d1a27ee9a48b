//! What a fleet can be given to do besides living: each load has its own figures.

mod applies;
mod apps;
mod churn;
mod moves;
mod placements;
mod watchers;

use std::time::Duration;

use anyhow::Context as _;
use cara_env::Env;

use crate::agents::Fleet;
use crate::connection::Connection;
use crate::report::Report;
use crate::target::Target;

/// Connections of a load, spread over all servers.
const CONNECTIONS: usize = 30;

/// Which loads, one after the other; 0 = not this one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loads {
    pub churn: u32,
    pub apply_rate: u32,
    pub watchers: u32,
    pub placements: u32,
    pub moves: u32,
    /// Of those that have a rate.
    pub length: Duration,
}

/// Runs them.
pub async fn run(
    env: &Env,
    target: &Target,
    fleet: &mut Fleet,
    loads: Loads,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Loads { churn, apply_rate, watchers, placements, moves, length } = loads;
    if placements > 0 {
        placements::run(env, target, placements as usize, report).await?;
    }
    if moves > 0 {
        moves::run(env, target, moves as usize, report).await?;
    }
    if apply_rate > 0 {
        applies::run(env, target, apply_rate, length, report).await?;
    }
    if watchers > 0 {
        watchers::run(env, target, watchers as usize, report).await?;
    }
    if churn > 0 {
        churn::run(env, fleet, churn, length, report).await?;
    }
    if target.processes().is_empty() && placements + moves + apply_rate > 0 {
        // On a user's cluster nothing stays behind, and a node can go once nothing is on it.
        apps::delete_all(env, &connections(env, target, 1).await?[0]).await?;
    }
    Ok(())
}

/// Connections to all servers in turn.
async fn connections(env: &Env, target: &Target, count: usize) -> anyhow::Result<Vec<Connection>> {
    let servers = &target.access().servers;
    let mut open = Vec::with_capacity(count);
    for index in 0..count.max(1) {
        let server = servers.get(index % servers.len().max(1)).context("at least one server is needed")?;
        open.push(Connection::open(env, target.access(), server).await?);
    }
    Ok(open)
}
