//! Keeps raft's membership equal to the servers that the state names: a server that joined becomes a learner, a learner
//! that has caught up becomes a voter, a server that was removed leaves.
//!
//! Level-triggered like everything the leader does: a leader that dies in the middle leaves the rest to the next one.
//! One change at a time; the next begins when the one before is committed.

use std::collections::BTreeMap;
use std::time::Duration;

use raft_store::{ChangeError, Status};

use crate::api::SharedApi;
use crate::leader::still_leads;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// A learner this close to the leader's last entry is given a vote.
const CAUGHT_UP: u64 = 64;

/// The next change that membership needs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Add(u64, String),
    Promote(u64),
    Remove(u64),
}

/// Runs while this server leads `term`.
pub async fn run(api: SharedApi, term: u64) {
    while still_leads(&api, term) {
        let wanted = api.read_local(|state| state.servers().map(|s| (s.id.0, s.address.clone())).collect());
        let Some(step) = next_step(&wanted, &api.raft.status()) else {
            api.env.clock.sleep(LOOK).await;
            continue;
        };
        let limit = api.config.request_deadline;
        let taken = cara_env::timeout(&*api.env.clock, limit, take(&api, &step)).await;
        match taken {
            Ok(Ok(())) => tracing::info!(?step, "membership changed"),
            Ok(Err(error)) => {
                tracing::warn!(?step, %error, "membership could not be changed; trying again");
                api.env.clock.sleep(LOOK).await;
            }
            Err(_) => tracing::warn!(?step, "membership change is not confirmed yet; looking again"),
        }
    }
}

async fn take(api: &SharedApi, step: &Step) -> Result<(), ChangeError> {
    match step {
        Step::Add(id, address) => api.raft.add_learner(*id, address).await,
        Step::Promote(id) => api.raft.promote(*id).await,
        Step::Remove(id) => api.raft.remove(*id).await,
    }
}

/// Additions before removals, so that the cluster never gets smaller than it must.
fn next_step(wanted: &BTreeMap<u64, String>, status: &Status) -> Option<Step> {
    if wanted.is_empty() {
        return None; // Not initialised yet.
    }
    let known = |id: &u64| status.voters.contains_key(id) || status.learners.contains_key(id);
    if let Some((id, address)) = wanted.iter().find(|(id, _)| !known(id)) {
        return Some(Step::Add(*id, address.clone()));
    }
    let last = status.last_log.unwrap_or_default();
    let caught_up = |id: &u64| status.matched.get(id).copied().flatten().is_some_and(|at| at + CAUGHT_UP >= last);
    if let Some(id) = status.learners.keys().find(|id| wanted.contains_key(id) && caught_up(id)) {
        return Some(Step::Promote(*id));
    }
    status.voters.keys().chain(status.learners.keys()).find(|id| !wanted.contains_key(id)).map(|id| Step::Remove(*id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(ids: &[u64]) -> BTreeMap<u64, String> {
        ids.iter().map(|id| (*id, format!("s{id}:7443"))).collect()
    }

    fn status(voters: &[u64], learners: &[u64], matched: &[(u64, u64)]) -> Status {
        Status {
            voters: members(voters),
            learners: members(learners),
            matched: matched.iter().map(|(id, at)| (*id, Some(*at))).collect(),
            last_log: Some(1000),
            ..Status::default()
        }
    }

    #[test]
    fn a_joined_server_is_added_then_promoted_once_it_has_caught_up() {
        let wanted = members(&[1, 2]);
        assert_eq!(next_step(&wanted, &status(&[1], &[], &[])), Some(Step::Add(2, "s2:7443".into())));
        assert_eq!(next_step(&wanted, &status(&[1], &[2], &[(2, 10)])), None, "it lags: it would cost the quorum");
        assert_eq!(next_step(&wanted, &status(&[1], &[2], &[(2, 990)])), Some(Step::Promote(2)));
        assert_eq!(next_step(&wanted, &status(&[1, 2], &[], &[])), None);
    }

    #[test]
    fn a_removed_server_leaves_after_its_replacement_came() {
        let wanted = members(&[1, 2, 4]);
        let with_dead = status(&[1, 2, 3], &[], &[]);
        assert_eq!(next_step(&wanted, &with_dead), Some(Step::Add(4, "s4:7443".into())));
        assert_eq!(next_step(&wanted, &status(&[1, 2, 3, 4], &[], &[])), Some(Step::Remove(3)));
    }

    #[test]
    fn nothing_is_removed_before_the_cluster_is_made() {
        assert_eq!(next_step(&BTreeMap::new(), &status(&[1], &[], &[])), None);
    }
}
