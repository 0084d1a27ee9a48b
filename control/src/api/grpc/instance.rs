//! Whether an agent may have its node's session, or another machine has it: asks the log, this leader's ears, and the holder.

use cara_core::command::NoteClone;
use cara_core::instance::{Claim, Holder, Patience, Verdict, judge};
use cara_core::{Command, Epoch, NodeId, Rejected};
use cara_proto::agent::{Hello, Instance};

use crate::api::Api;
use crate::error::ApiError;
use crate::wire::millis;

/// Agents draw ids of 32 digits; of a longer one nothing is kept.
const INSTANCE_BYTES_MAX: usize = 64;

/// What the log says of the holder.
#[derive(Default)]
struct Recorded {
    instance: String,
    in_session: bool,
    clone: String,
}

/// The process that had the last session, if the caller may take over from it.
pub async fn admit(api: &Api, node: &NodeId, fingerprint: &str, hello: &Hello) -> Result<String, ApiError> {
    let now_ms = api.env.clock.wall_ms();
    let recorded = api.read_local(|state| {
        let known = state.node(node)?;
        let is_accepted = known.certificate.as_ref().is_some_and(|c| c.accepts(fingerprint, now_ms));
        Some((
            Recorded {
                instance: known.instance.clone(),
                in_session: known.session.is_some(),
                clone: known.clone_seen.as_ref().map(|seen| seen.instance.clone()).unwrap_or_default(),
            },
            is_accepted,
        ))
    });
    let (recorded, is_accepted) = recorded.unwrap_or_default();
    if !is_accepted {
        return Ok(recorded.instance); // The log refuses it, and says why.
    }
    let said = hello.instance.clone().unwrap_or_default();
    if said.id.len() > INSTANCE_BYTES_MAX {
        return Err(ApiError::invalid(format!("hello.instance.id: has more than {INSTANCE_BYTES_MAX} bytes")));
    }
    match verdict(api, node, &said, &recorded) {
        Verdict::Welcome => Ok(recorded.instance),
        Verdict::Wait => Err(ApiError::Held(
            "another process of this node has the session, and it is not known yet whether it lives",
        )),
        Verdict::Clone => Err(refuse_clone(api, node, said.id, recorded.instance, hello).await),
    }
}

fn verdict(api: &Api, node: &NodeId, said: &Instance, recorded: &Recorded) -> Verdict {
    let (now_ms, beat) = (api.mono_ms(), millis(api.config.agent_heartbeat));
    let (known, connected, heard_ms) = api.sessions.ask(node, &said.id, now_ms, beat);
    let claim = Claim {
        instance: &said.id,
        last_instance: &said.last_id,
        last_epoch: Epoch(said.last_epoch),
        is_first: known.is_first,
    };
    let holder = Holder {
        instance: &recorded.instance,
        in_session: recorded.in_session,
        spoke: Epoch(known.spoke),
        connected,
        answered: known.answered,
        heard_ms: heard_ms.max(known.began_ms),
        left_ms: known.left_ms,
        clone: &recorded.clone,
    };
    let patience = Patience { timeout_ms: millis(api.config.agent_timeout()), settle_ms: beat / 3 };
    let verdict = judge(claim, holder, patience, now_ms);
    if verdict == Verdict::Wait {
        api.sessions.challenge(node, known.number);
    }
    verdict
}

async fn refuse_clone(api: &Api, node: &NodeId, instance: String, holder: String, hello: &Hello) -> ApiError {
    let name = api.node_name(node);
    let hostname = hello.facts.as_ref().map(|facts| facts.hostname.clone()).unwrap_or_default();
    tracing::warn!(node = %name, %hostname, "a second machine with a copy of this node's identity is refused");
    let note = NoteClone { node: node.clone(), instance, expect_instance: holder, hostname };
    // Refused all the same when this can't be written down: the holder has the session.
    if let Err(error) = api.propose("leader", "", Command::NoteClone(note)).await {
        tracing::debug!(%error, "a clone was not noted");
    }
    cara_env::mark("clone.refused", || format!("node={name}"));
    Rejected::IdentityCloned { node: name }.into()
}
