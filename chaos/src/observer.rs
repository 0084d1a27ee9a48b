//! Who leads, asked of the servers themselves: an outsider that looks at `/readyz` five times a second.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cara_netsim::Boot;

use crate::rest::{Ask, Rest};
use crate::workload::Phase;
use crate::world::{Shared, address};

const EVERY: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_millis(500);

/// What the observer has seen.
#[derive(Debug, Default, Clone)]
pub struct Observed {
    /// The server that claims to lead the highest term, and that term.
    pub leader: Option<(String, u64)>,
    /// Terms in which somebody claimed to lead.
    pub terms: BTreeSet<u64>,
    /// Servers that vote, as the last leader said.
    pub voters: usize,
}

impl Observed {
    /// The leader's name, if one is known.
    pub fn leader(&self) -> Option<&str> {
        self.leader.as_ref().map(|(server, _)| server.as_str())
    }
}

/// Looks until the world ends.
pub async fn watch(boot: Boot, shared: Arc<Shared>, servers: Vec<String>) -> Result<(), String> {
    let env = boot.env;
    let founded = loop {
        match shared.founded() {
            Some(founded) => break founded,
            None => env.clock.sleep(EVERY).await,
        }
    };
    for server in servers {
        let (env, shared) = (env.clone(), shared.clone());
        let rest = Rest::new(&env, &founded.ca_fingerprint, &founded.token);
        drop(cara_env::spawn(async move {
            loop {
                env.clock.sleep(EVERY).await;
                let Ok(told) = rest.ask(&address(&server), &Ask::get("/readyz"), PATIENCE).await else { continue };
                if let Some(term) = leads(&String::from_utf8_lossy(&told.body)) {
                    if shared.phase() == Phase::Setup {
                        count_voters(&rest, &server, &shared).await;
                    }
                    let mut observed = shared.observed();
                    observed.terms.insert(term);
                    if observed.leader.as_ref().is_none_or(|(_, known)| *known <= term) {
                        observed.leader = Some((server.clone(), term));
                    }
                }
            }
        }));
    }
    std::future::pending().await
}

async fn count_voters(rest: &Rest, server: &str, shared: &Shared) {
    if let Ok(told) = rest.ask(&address(server), &Ask::get("/api/v1/servers"), PATIENCE).await {
        let voters = told.json()["voters"].as_u64().unwrap_or(0);
        shared.observed().voters = usize::try_from(voters).unwrap_or(0);
    }
}

/// The term in which the server that answered this leads, if it does.
fn leads(ready: &str) -> Option<u64> {
    let rest = ready.strip_prefix("ready: leader this server, term ")?;
    rest.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_told_from_a_follower_by_what_it_says() {
        assert_eq!(leads("ready: leader this server, term 7, applied 12\n"), Some(7));
        assert_eq!(leads("ready: leader s2:7443, term 7, applied 12\n"), None);
        assert_eq!(leads("not ready: no leader in term 7; are enough servers running?\n"), None);
    }
}
