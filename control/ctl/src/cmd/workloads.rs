//! `apps`, `databases`, `projects`: suspending, restarting, and the app's node.

use cara_proto::rest::{AppMoveView, NodeChoice};
use serde_json::{Value, json};

use super::ask::agree;
use super::{Context, answer, get, segment, with_suggestion};
use crate::cli::{AppsCommand, WorkloadsCommand};
use crate::client::{Client, ClientError};
use crate::failure::{Failure, Outcome};
use crate::follow;
use crate::kind::Kind;

pub(super) async fn apps(cx: &Context, command: Option<AppsCommand>) -> Outcome {
    let (name, node, with_volumes, yes) = match command {
        None => return run(cx, Kind::App, None).await,
        Some(AppsCommand::Common(command)) => return run(cx, Kind::App, Some(command)).await,
        Some(AppsCommand::SetNode { name, node, with_volumes, yes }) => (name, Some(node), with_volumes, yes),
        Some(AppsCommand::ClearNode { name, with_volumes, yes }) => (name, None, with_volumes, yes),
    };
    let client = cx.client()?;
    set_node(cx, &client, &name, node.as_deref(), with_volumes.then_some(yes)).await
}

pub(super) async fn run(cx: &Context, kind: Kind, command: Option<WorkloadsCommand>) -> Outcome {
    let client = cx.client()?;
    match command.unwrap_or(WorkloadsCommand::List) {
        WorkloadsCommand::List => get::list(cx, &client, kind).await,
        WorkloadsCommand::Get { name } => {
            let object = get::object(cx, &client, kind, &name).await?;
            get::show(cx, kind, &object)
        }
        WorkloadsCommand::Suspend { name } => switch(cx, &client, kind, &name, "suspend", "suspended").await,
        WorkloadsCommand::Resume { name } => switch(cx, &client, kind, &name, "resume", "resumed").await,
        WorkloadsCommand::Restart { name } => switch(cx, &client, kind, &name, "restart", "is being restarted").await,
    }
}

async fn switch(cx: &Context, client: &Client, kind: Kind, name: &str, verb: &str, done: &str) -> Outcome {
    let path = format!("{}/{}/{verb}", kind.path(), segment(name));
    let value: Value = match client.post(&path, &json!({})).await {
        Ok(answer) => answer.json()?,
        Err(error) => return Err(with_suggestion(client, kind, name, error.into()).await),
    };
    let title = format!("{}/{name}", kind.singular());
    answer::one(cx, &value, &title, &format!("{title} {done}"))
}

/// Puts an app on a node, or lets the scheduler choose. `volumes` says that its volumes go along, and whether that
/// was agreed to.
async fn set_node(cx: &Context, client: &Client, name: &str, node: Option<&str>, volumes: Option<bool>) -> Outcome {
    let title = format!("app/{name}");
    let body = NodeChoice { node_id: node.unwrap_or_default().to_owned() };
    let path = format!("/apps/{}", segment(name));
    let result = match volumes {
        None => client.put(&format!("{path}/node"), &body).await,
        Some(yes) => {
            agree(cx, &format!("the move of {title} with its volumes, which stops it for the last part"), yes)?;
            client.post(&format!("{path}/move-with-volumes"), &body).await
        }
    };
    let mut value = match result {
        Ok(accepted) => accepted.json::<Value>()?,
        Err(error) => return Err(suggested(client, name, node, error).await),
    };
    let begun: AppMoveView = answer::typed(&value)?;
    // Without volumes the answer comes before the move is over: the app runs all the time.
    if begun.status == "running" && !begun.id.is_empty() {
        value = follow::an_app(cx, client, name, &begun.id).await?;
    } else {
        follow::an_app_at_once(cx, name, &begun)?;
    }
    let done = node.map_or("is placed by the scheduler".to_owned(), |node| format!("is on {node}"));
    answer::one(cx, &value, &title, &format!("{title} {done}"))
}

async fn suggested(client: &Client, name: &str, node: Option<&str>, error: ClientError) -> Failure {
    let failure = Failure::from(error);
    match (node, failure.code.as_str()) {
        (Some(node), "unknown-node") => with_suggestion(client, Kind::Node, node, failure).await,
        _ => with_suggestion(client, Kind::App, name, failure).await,
    }
}
