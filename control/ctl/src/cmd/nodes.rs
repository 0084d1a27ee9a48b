//! `nodes`: joining, cordoning, labels, events, deletion; moving has files of its own.

mod add;
mod drain;
mod drains;
mod health;
mod identity;
mod list;
mod lost;
mod move_workload;
mod moves;
mod placement;
mod region;
mod volumes;

use std::collections::BTreeMap;
use std::time::Duration;

use cara_proto::rest::{Accepts, ConnectionEvent, JoinTokenRequest, List, MintedToken};
use serde_json::{Value, json};

use super::ask::confirm_deletion;
use super::{Context, get, segment, with_suggestion};
use crate::cli::{NodesCommand, NodesList};
use crate::client::{Answer, Client, ClientError};
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::view;

pub(super) async fn run(cx: &Context, command: Option<NodesCommand>) -> Outcome {
    let client = cx.client()?;
    match command.unwrap_or(NodesCommand::List(NodesList::default())) {
        NodesCommand::List(words) => list::run(cx, &client, &words).await,
        NodesCommand::Get { node } => {
            let node = get::object(cx, &client, Kind::Node, &node).await?;
            get::show(cx, Kind::Node, &node)
        }
        NodesCommand::Add(words) => add::run(cx, &client, words).await,
        NodesCommand::JoinToken { revoke: Some(id), .. } => {
            client.delete(&format!("/nodes/join-tokens/{}", segment(&id))).await?;
            cx.ui.data(&format!("join-token/{id} revoked"));
            Ok(())
        }
        NodesCommand::JoinToken { name, ttl, revoke: None } => join_token(cx, &client, name, ttl).await,
        NodesCommand::Cordon { node } => switch(cx, &client, &node, "cordon").await,
        NodesCommand::Uncordon { node } => switch(cx, &client, &node, "uncordon").await,
        NodesCommand::Labels { node, changes } => labels(cx, &client, &node, &changes).await,
        NodesCommand::Workloads { node, accepts_app, accepts_database, accepts_build } => {
            accepts(cx, &client, &node, [accepts_app, accepts_database, accepts_build]).await
        }
        NodesCommand::Delete { node, yes } => delete(cx, &client, &node, yes).await,
        NodesCommand::Move(words) => move_workload::run(cx, &client, &words).await,
        NodesCommand::Moves(words) => moves::run(cx, &client, &words).await,
        NodesCommand::CancelMove { id } => moves::cancel(cx, &client, &id).await,
        NodesCommand::Drain(words) => drain::run(cx, &client, &words).await,
        NodesCommand::Drains { node, follow } => drains::run(cx, &client, &node, follow).await,
        NodesCommand::CancelDrain { id } => drains::cancel(cx, &client, &id).await,
        NodesCommand::Lost(words) => lost::run(cx, &client, &words).await,
        NodesCommand::Placement(words) => placement::run(cx, &client, &words).await,
        NodesCommand::Reenroll(words) => identity::reenroll(cx, &client, &words).await,
        NodesCommand::RevokeCert(words) => identity::revoke(cx, &client, &words).await,
        NodesCommand::Volumes(words) => volumes::run(cx, &client, &words).await,
        NodesCommand::Health { node } => health::run(cx, &client, &node).await,
        NodesCommand::Region { node, region, clear } => region::run(cx, &client, &node, region, clear).await,
        NodesCommand::Events { node, limit } => events(cx, &client, &node, limit).await,
    }
}

/// Runs one request about a node and adds "did you mean" when there is no such node.
async fn about<F>(client: &Client, node: &str, call: F) -> Outcome<Answer>
where
    F: Future<Output = Result<Answer, ClientError>>,
{
    match call.await {
        Ok(answer) => Ok(answer),
        Err(error) => Err(with_suggestion(client, Kind::Node, node, error.into()).await),
    }
}

fn path(node: &str, rest: &str) -> String {
    format!("/nodes/{}{rest}", segment(node))
}

async fn mint(client: &Client, name: Option<String>, ttl: Option<Duration>) -> Outcome<MintedToken> {
    let request =
        JoinTokenRequest { ttl_seconds: ttl.map(|t| t.as_secs()), node_name: name, ..JoinTokenRequest::default() };
    Ok(client.post("/nodes/join-tokens", &request).await?.json()?)
}

async fn join_token(cx: &Context, client: &Client, name: Option<String>, ttl: Option<Duration>) -> Outcome {
    let minted = mint(client, name, ttl).await?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&minted).unwrap_or_default());
    }
    add::notes(cx, &minted);
    cx.ui.note(&format!("Token {} for one node, valid until {}. It is shown this once.", minted.id, minted.expires_at));
    cx.ui.data(&minted.token);
    Ok(())
}

async fn switch(cx: &Context, client: &Client, node: &str, verb: &str) -> Outcome {
    let answer = about(client, node, client.post(&path(node, &format!("/{verb}")), &json!({}))).await?;
    if cx.ui.structured() && !answer.body.is_empty() {
        return cx.ui.value(&answer.json()?);
    }
    cx.ui.data(&format!("node/{node} {verb}ed"));
    Ok(())
}

async fn labels(cx: &Context, client: &Client, node: &str, changes: &[String]) -> Outcome {
    let at = path(node, "/labels");
    let mut labels: BTreeMap<String, String> = about(client, node, client.get_raw(&at)).await?.json()?;
    if !changes.is_empty() {
        change_labels(&mut labels, changes)?;
        about(client, node, client.put(&at, &labels)).await?;
    }
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&labels).unwrap_or_default());
    }
    let lines: Vec<String> = labels.iter().map(|(key, value)| crate::out::clean(&format!("{key}={value}"))).collect();
    cx.ui.data(&lines.join("\n"));
    Ok(())
}

/// `k=v` sets, `k-` removes; the same key twice is a mistake.
fn change_labels(labels: &mut BTreeMap<String, String>, changes: &[String]) -> Outcome {
    let mut seen = std::collections::BTreeSet::new();
    for change in changes {
        let (key, value) = match (change.split_once('='), change.strip_suffix('-')) {
            (Some((key, value)), _) => (key, Some(value)),
            (None, Some(key)) => (key, None),
            (None, None) => {
                return Err(Failure::usage(format!("{change:?} is no change of a label")).next("write K=V or K-"));
            }
        };
        if key.is_empty() || !seen.insert(key) {
            return Err(Failure::usage(format!("{change:?}: a key is empty or given twice")));
        }
        match value {
            Some(value) => labels.insert(key.to_owned(), value.to_owned()),
            None => labels.remove(key),
        };
    }
    Ok(())
}

async fn accepts(cx: &Context, client: &Client, node: &str, wanted: [Option<bool>; 3]) -> Outcome {
    let object = get::object(cx, client, Kind::Node, node).await?;
    let now: Accepts = object
        .pointer("/status/accepts")
        .map_or(Ok(Accepts::default()), |accepts| serde_json::from_value(accepts.clone()))
        .map_err(|e| ClientError::Malformed(e.to_string()))?;
    let [app, database, build] = wanted;
    let accepts = Accepts {
        app: app.unwrap_or(now.app),
        database: database.unwrap_or(now.database),
        build: build.unwrap_or(now.build),
    };
    if accepts != now {
        about(client, node, client.put(&path(node, "/workloads"), &accepts)).await?;
    }
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&accepts).unwrap_or_default());
    }
    let word = |yes: bool| if yes { "yes" } else { "no" };
    let Accepts { app, database, build } = accepts;
    cx.ui.data(&format!("apps {}\ndatabases {}\nbuilds {}", word(app), word(database), word(build)));
    Ok(())
}

/// Deletes a node after its name was typed.
pub(super) async fn delete(cx: &Context, client: &Client, node: &str, yes: bool) -> Outcome {
    confirm_deletion(cx, "node", node, yes)?;
    about(client, node, client.delete(&path(node, ""))).await?;
    cx.ui.data(&format!("node/{node} deleted"));
    Ok(())
}

async fn events(cx: &Context, client: &Client, node: &str, limit: u32) -> Outcome {
    let answer = about(client, node, client.get_raw(&path(node, &format!("/events?limit={limit}")))).await?;
    if cx.ui.structured() {
        return cx.ui.value(&answer.json::<Value>()?);
    }
    // A list with a revision, or bare.
    let value: Value = answer.json()?;
    let events: Vec<ConnectionEvent> = match serde_json::from_value::<List<ConnectionEvent>>(value.clone()) {
        Ok(list) => list.items,
        Err(_) => serde_json::from_value(value).map_err(|e| ClientError::Malformed(e.to_string()))?,
    };
    cx.ui.table(&view::events(&events));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_set_and_removed_together_or_not_at_all() {
        let change = |changes: &[&str]| {
            let mut labels = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
            let changes: Vec<String> = changes.iter().map(|c| (*c).to_owned()).collect();
            change_labels(&mut labels, &changes)
                .map(|()| labels.into_iter().map(|(k, v)| format!("{k}{v}")).collect::<String>())
        };
        assert_eq!(change(&["c=3", "a-"]), Ok("b2c3".to_owned()));
        assert_eq!(change(&["a=x=y-"]), Ok("ax=y-b2".to_owned()));
        for wrong in [&["a"][..], &["=1"], &["-"], &["a=1", "a-"]] {
            assert_eq!(change(wrong).map_err(|f| f.exit), Err(2), "{wrong:?}");
        }
    }
}
