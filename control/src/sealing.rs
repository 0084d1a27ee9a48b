//! Keeps this server's sealing keys as the state names them, without a restart; and on the leader, seals all secrets anew.
//!
//! ```text
//! a key is named that is not in server.json ─► pulled from a server that has it ─► saved ─► leader told (HoldSealingKey)
//! every server has the next key             ─► the leader seals all anew (Reseal)
//! a key is named among the former ones      ─► the state is synced ─► forgotten
//! ```
//! Level-triggered: what is on disk is compared with the state, so that a crash, a lost answer or a new leader at any point
//! costs another look. A server whose `server.json` is from a backup gets what it lacks in the same way.
//!
//! Invariant: a key goes only once the state that names it as a former one is durable. A server that loses power comes back
//! with that state or a newer one, and opens what is sealed there.

use std::time::Duration;

use cara_core::{Feature, ServerId};

use crate::api::SharedApi;
use crate::certificates::{rest, until_applied};
use crate::error::chain;
use crate::{identity, sealing_keys};

/// After a step that failed. All servers do it at most once in a while, and each step is one small message.
const RETRY: Duration = Duration::from_secs(1);

/// What the state says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Recorded {
    /// This server is a member, and all servers know the commands that this needs.
    is_supported: bool,
    /// The key under which the secrets are sealed; empty = the first one.
    current: String,
    next: Option<Next>,
    former: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Next {
    key_id: String,
    held_here: bool,
    held_by_all: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Pull(String),
    Hold(String),
    Reseal(String),
    Forget,
    Wait,
}

/// `kept` are the ids of the keys on disk.
fn next_step(recorded: &Recorded, kept: &[String], leads: bool) -> Step {
    if !recorded.is_supported {
        return Step::Wait;
    }
    if !recorded.current.is_empty() && !kept.contains(&recorded.current) {
        return Step::Pull(recorded.current.clone());
    }
    if let Some(next) = &recorded.next {
        if !kept.contains(&next.key_id) {
            return Step::Pull(next.key_id.clone());
        }
        if !next.held_here {
            return Step::Hold(next.key_id.clone());
        }
        if leads && next.held_by_all {
            return Step::Reseal(next.key_id.clone());
        }
    }
    if kept.iter().any(|id| recorded.former.contains(id)) { Step::Forget } else { Step::Wait }
}

/// Runs until the server stops.
pub async fn run(api: SharedApi) {
    let (mut changed, mut leading) = (api.administration.clone(), api.leading.clone());
    loop {
        changed.borrow_and_update();
        leading.borrow_and_update();
        let step = next_step(&recorded(&api), &kept(&api), api.leads());
        let done = match &step {
            Step::Pull(key_id) => pull(&api, key_id).await,
            Step::Hold(key_id) => hold(&api, key_id).await,
            Step::Reseal(key_id) => reseal(&api, key_id).await,
            Step::Forget => forget(&api).await,
            Step::Wait => {
                let more = tokio::select! {
                    biased;
                    more = changed.changed() => more.is_ok(),
                    more = leading.changed() => more.is_ok(),
                };
                if more { continue } else { return }
            }
        };
        let Err(problem) = done else { continue };
        tracing::warn!("{problem}; trying again");
        if !rest(&api, RETRY).await {
            return;
        }
    }
}

fn recorded(api: &SharedApi) -> Recorded {
    let own = ServerId(api.identity.server_id);
    api.read_local(|state| {
        let Some(cluster) = state.cluster() else { return Recorded::default() };
        let next = cluster.next_sealing_key.as_ref().map(|next| Next {
            key_id: next.key_id.clone(),
            held_here: next.is_held_by(own),
            held_by_all: state.lacking_next_key().next().is_none(),
        });
        Recorded {
            is_supported: state.supports(Feature::Lifecycle) && state.server(own).is_some(),
            current: cluster.sealing_key.clone(),
            next,
            former: cluster.former_sealing_keys.clone(),
        }
    })
}

fn kept(api: &SharedApi) -> Vec<String> {
    api.keeper.look(|identity, _| identity.sealing_keys().map(|key| sealing_keys::id_of(key)).collect())
}

/// Gets a key from a server that has it, and writes it down.
async fn pull(api: &SharedApi, key_id: &str) -> Result<(), String> {
    let key = api.ask_for_key(key_id).await?;
    cara_env::point("seal.pulled", || format!("server={}", api.identity.name)).await;
    let needed = api.sealed_under();
    let saved = api.keeper.change(|identity| identity.add_sealing_key(identity::to_hex(&key), |id| id == needed));
    saved.map_err(|error| format!("can't write the next sealing key down: {}", chain(&error)))?;
    tracing::info!("the next sealing key is on disk");
    cara_env::point("seal.saved", || format!("server={}", api.identity.name)).await;
    Ok(())
}

/// Tells the leader that this server has the key.
async fn hold(api: &SharedApi, key_id: &str) -> Result<(), String> {
    let told = api.tell_that_held(key_id).await;
    let revision = told.map_err(|error| format!("can't tell the leader that the next sealing key is here: {error}"))?;
    until_applied(api, revision).await;
    Ok(())
}

async fn reseal(api: &SharedApi, key_id: &str) -> Result<(), String> {
    let sealed = api.reseal(key_id).await;
    sealed.map_err(|error| format!("the secrets are not sealed under the next key yet: {error}"))?;
    tracing::info!("all secrets are sealed under the next key");
    Ok(())
}

/// Forgets the keys that the state names as former ones, once it is certain to name them so after a loss of power.
async fn forget(api: &SharedApi) -> Result<(), String> {
    let former = recorded(api).former;
    api.raft.sync_applied().await.map_err(|error| format!("can't sync the state: {error}"))?;
    let saved = api.keeper.change(|identity| identity.keep_sealing_keys(|id| !former.iter().any(|gone| gone == id)));
    saved.map_err(|error| format!("can't forget the former sealing key: {}", chain(&error)))?;
    tracing::info!("the former sealing key is forgotten");
    cara_env::point("seal.forgotten", || format!("server={}", api.identity.name)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(held_here: bool, held_by_all: bool) -> Recorded {
        let next = Some(Next { key_id: "b".into(), held_here, held_by_all });
        Recorded { is_supported: true, current: "a".into(), next, former: vec!["z".into()] }
    }

    fn step(recorded: &Recorded, kept: &[&str], leads: bool) -> Step {
        let kept: Vec<_> = kept.iter().map(|id| (*id).to_owned()).collect();
        next_step(recorded, &kept, leads)
    }

    #[test]
    fn a_key_is_on_disk_before_the_leader_is_told_and_all_have_it_before_it_seals() {
        assert_eq!(step(&told(false, false), &["a"], true), Step::Pull("b".into()));
        assert_eq!(step(&told(true, false), &["a"], true), Step::Pull("b".into()), "the file is from a backup");
        assert_eq!(step(&told(false, false), &["a", "b"], true), Step::Hold("b".into()));
        assert_eq!(step(&told(true, false), &["a", "b"], true), Step::Wait);
        assert_eq!(step(&told(true, true), &["a", "b"], true), Step::Reseal("b".into()));
        assert_eq!(step(&told(true, true), &["a", "b"], false), Step::Wait, "that is the leader's");
        let old = Recorded { is_supported: false, ..told(false, false) };
        assert_eq!(step(&old, &["a"], true), Step::Wait);
    }

    #[test]
    fn only_keys_that_are_named_as_former_ones_are_forgotten() {
        let stable = Recorded { next: None, ..told(true, true) };
        assert_eq!(step(&stable, &["a", "unnamed"], true), Step::Wait, "it may be in the log already");
        assert_eq!(step(&stable, &["z", "a"], true), Step::Forget);
        assert_eq!(step(&stable, &["z"], true), Step::Pull("a".into()), "what it needs comes first");
        let first = Recorded { is_supported: true, ..Recorded::default() };
        assert_eq!(step(&first, &["a"], true), Step::Wait, "a cluster that never replaced its key");
    }
}
