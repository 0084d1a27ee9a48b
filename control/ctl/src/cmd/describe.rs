//! `describe`: one object in full.

use cara_proto::rest::{ConnectionEvent, List};

use super::{Context, get, segment, target};
use crate::cli::Target;
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::view;

/// Events shown below a node; `nodes events` has them all.
const EVENTS_SHOWN: u32 = 10;

pub(super) async fn run(cx: &Context, args: &Target) -> Outcome {
    let (kind, name) = target(&args.kind, args.name.as_deref())?;
    let Some(name) = name else {
        return Err(Failure::usage(format!("which {}?", kind.singular())).next(format!(
            "caractrl describe {} NAME; `caractrl get {}` lists them",
            kind.singular(),
            kind.plural()
        )));
    };
    if matches!(kind, Kind::Server | Kind::Token | Kind::ApiToken) {
        return Err(Failure::usage(format!("a {} has no more than its line", kind.singular()))
            .next(format!("caractrl get {} -o wide", kind.plural())));
    }
    let client = cx.client()?;
    let object = get::object(cx, &client, kind, &name).await?;
    if cx.ui.structured() {
        return cx.ui.value(&object);
    }
    cx.ui.data(&view::describe(kind, &object, cx.now_ms()));
    if kind == Kind::Node {
        let path = format!("/nodes/{}/events?limit={EVENTS_SHOWN}", segment(&name));
        let events: List<ConnectionEvent> = client.get(&path).await?;
        if !events.items.is_empty() {
            cx.ui.data("Events:");
            cx.ui.data(&view::events(&events.items).render(true, cx.ui.out_color, true));
        }
    }
    Ok(())
}
