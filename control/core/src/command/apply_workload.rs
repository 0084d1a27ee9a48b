//! Creates or updates a workload by kind and name. A new one is placed by the same entry, so that many created at once
//! spread; a new spec of a placed one is granted again on the same node, under the next generation.

use crate::entry::Context;
use crate::event::Event;
use crate::feature::Feature;
use crate::id::{NodeId, Revision, WorkloadUid};
use crate::limits;
use crate::model::{Workload, WorkloadKind, WorkloadSpec};
use crate::name;
use crate::rejected::Rejected;
use crate::schedule;
use crate::spec_rules;
use crate::state::State;
use std::collections::BTreeMap;

/// Creates or updates a workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ApplyWorkload {
    /// The uid if the workload turns out to be new.
    #[prost(message, required, tag = "1")]
    pub uid: WorkloadUid,
    /// Names are unique in their kind.
    #[prost(message, required, tag = "2")]
    pub kind: WorkloadKind,
    /// The manifest's name.
    #[prost(string, tag = "3")]
    pub name: String,
    /// All of them.
    #[prost(btree_map = "string, string", tag = "4")]
    pub labels: BTreeMap<String, String>,
    /// All of them.
    #[prost(btree_map = "string, string", tag = "5")]
    pub annotations: BTreeMap<String, String>,
    /// All of it.
    #[prost(message, required, tag = "6")]
    pub spec: WorkloadSpec,
    /// The node that the user names; it must be able to take it now. None = one is chosen (or the one before is kept).
    #[prost(message, optional, tag = "7")]
    pub node: Option<NodeId>,
    /// Refuse if the workload changed since; 0 = it must not exist; none = whatever it is.
    #[prost(message, optional, tag = "8")]
    pub expect_revision: Option<Revision>,
}

pub(crate) fn apply(state: &mut State, cx: &Context, cmd: ApplyWorkload) -> Result<Vec<Event>, Rejected> {
    name::check_workload("metadata.name", &cmd.name)?;
    name::check_labels("metadata.labels", &cmd.labels)?;
    name::check_annotations("metadata.annotations", &cmd.annotations)?;
    spec_rules::check(cmd.kind, &cmd.spec)?;
    if cmd.spec.needs_moves() {
        state.check_supports(Feature::Moves)?;
    }
    let known = state.workload_by_name(cmd.kind, &cmd.name);
    let revision = known.map_or(Revision(0), |w| w.revision);
    super::check_revision(|| format!("workload {}", cmd.name), cmd.expect_revision, revision)?;
    match known.map(|w| w.uid.clone()) {
        Some(uid) => update(state, cx, uid, cmd),
        None => create(state, cx, cmd),
    }
}

fn create(state: &mut State, cx: &Context, cmd: ApplyWorkload) -> Result<Vec<Event>, Rejected> {
    super::check_id("uid", cmd.uid.as_str())?;
    if state.workload(&cmd.uid).is_some() {
        return Err(Rejected::WorkloadUidTaken { uid: cmd.uid.to_string() });
    }
    if state.workloads().len() >= limits::WORKLOADS_MAX {
        return Err(Rejected::TooMany { what: "workloads".into(), limit: limits::WORKLOADS_MAX.to_string() });
    }
    let workload = Workload {
        uid: cmd.uid.clone(),
        name: cmd.name,
        kind: cmd.kind,
        labels: cmd.labels,
        annotations: cmd.annotations,
        spec: cmd.spec,
        explicit_node: cmd.node,
        created_at_ms: cx.at_ms,
        updated_at_ms: cx.at_ms,
        ..Workload::default()
    };
    if let Some(node) = &workload.explicit_node {
        schedule::check_explicit(state, node, &workload)?;
    }
    let mut events = vec![Event::WorkloadCreated { uid: cmd.uid.clone(), kind: cmd.kind, name: workload.name.clone() }];
    state.put_workload(cx, workload);
    events.extend(state.place(cx, &cmd.uid));
    Ok(events)
}

fn update(state: &mut State, cx: &Context, uid: WorkloadUid, cmd: ApplyWorkload) -> Result<Vec<Event>, Rejected> {
    let known = state.workload(&uid).ok_or_else(|| Rejected::UnknownWorkload { workload: uid.to_string() })?;
    if known.deleting {
        return Err(Rejected::WorkloadDeleting { name: cmd.name });
    }
    let new_spec = known.spec != cmd.spec;
    let new_node = cmd.node.is_some() && cmd.node != known.explicit_node;
    let only_selector = WorkloadSpec { selector: cmd.spec.selector.clone(), ..known.spec.clone() } == cmd.spec;
    let (kind, placed) = (known.kind, known.placement.clone());
    if !new_spec && !new_node && known.labels == cmd.labels && known.annotations == cmd.annotations {
        return Ok(Vec::new());
    }
    if new_spec || new_node {
        super::check_not_moving(state, known)?; // Labels and annotations change nothing that a move rests on.
    }
    let mut next = Workload { spec: cmd.spec.clone(), ..known.clone() };
    if cmd.node.is_some() {
        next.explicit_node = cmd.node;
    }
    if let Some(placed) = placed.as_ref().filter(|_| next.spec.suspended && !known.spec.suspended) {
        state.check_agent(&placed.node, Feature::Moves)?;
    }
    match (&placed, &next.explicit_node) {
        (Some(placed), Some(node)) if new_node && placed.node != *node => {
            let node = state.node(&placed.node).map_or(placed.node.to_string(), |n| n.name.clone());
            return Err(Rejected::PlacementFixed { name: cmd.name, node });
        }
        (None, Some(node)) if new_node => schedule::check_explicit(state, node, &next)?,
        (Some(placed), _) if new_spec => {
            if let Some((port, by)) = schedule::host_port_conflict(state, &placed.node, &next) {
                return Err(Rejected::HostPortTaken { port: port.to_string(), by: by.to_owned() });
            }
            if let Some(node) = state.node(&placed.node)
                && let Some(unfit) = schedule::shortage_after(state, node, known, &next)
            {
                return Err(Rejected::NodeNotEligible { node: node.name.clone(), reason: unfit.to_string() });
            }
        }
        _ => {}
    }
    next.labels = cmd.labels;
    next.annotations = cmd.annotations;
    next.updated_at_ms = cx.at_ms;
    let mut events = vec![Event::WorkloadUpdated { uid: uid.clone(), kind, name: next.name.clone() }];
    state.edit_workload(cx, &uid, |workload| *workload = next);
    match placed {
        // A selector is asked when something is placed: what runs doesn't change with it.
        Some(_) if new_spec && only_selector && state.supports(Feature::Moves) => {}
        Some(placed) if new_spec => events.extend(state.grant(cx, &uid, placed.node, placed.auto_placed)),
        Some(_) => {}
        None => events.extend(state.place(cx, &uid)),
    }
    Ok(events)
}
