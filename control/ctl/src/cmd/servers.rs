//! `servers`: roles, lag, what can be lost, and adding and removing.

use std::time::Duration;

use cara_proto::rest::{ClusterView, JoinTokenRequest, MintedToken};

use super::Context;
use super::ask::confirm_deletion;
use crate::cli::ServersCommand;
use crate::client::Client;
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::out::Format;
use crate::suggest::closest;
use crate::view;

pub(super) async fn run(cx: &Context, command: Option<ServersCommand>) -> Outcome {
    let client = cx.client()?;
    match command.unwrap_or(ServersCommand::List) {
        ServersCommand::List => list(cx, &client).await,
        ServersCommand::JoinToken { ttl } => join_token(cx, &client, ttl).await,
        ServersCommand::Remove { member, yes } => remove(cx, &client, &member, yes).await,
    }
}

/// The table, and the line that says whether all is well.
pub(super) async fn list(cx: &Context, client: &Client) -> Outcome {
    let cluster = super::get::cluster(cx, client).await?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&cluster).unwrap_or_default());
    }
    if cx.ui.format == Format::Name {
        let names: Vec<String> = cluster.servers.iter().map(|s| format!("server/{}", s.name)).collect();
        cx.ui.data(&names.join("\n"));
        return Ok(());
    }
    cx.ui.table(&view::table(Kind::Server, &view::server_rows(&cluster), cx.ui.wide(), 0));
    let line = view::summary(&cluster);
    if cx.ui.out_tty {
        cx.ui.data(&line)
    } else {
        cx.ui.note(&line)
    }
    Ok(())
}

async fn join_token(cx: &Context, client: &Client, ttl: Option<Duration>) -> Outcome {
    let request = JoinTokenRequest { ttl_seconds: ttl.map(|t| t.as_secs()), ..JoinTokenRequest::default() };
    let minted: MintedToken = client.post("/servers/join-tokens", &request).await?.json()?;
    if cx.ui.structured() {
        return cx.ui.value(&serde_json::to_value(&minted).unwrap_or_default());
    }
    if !cx.ui.out_tty {
        cx.ui.data(&minted.token);
        return Ok(());
    }
    cx.ui.note(&format!("Valid once, until {}. On the new machine:", minted.expires_at));
    cx.ui.data(&format!("  {}", minted.join_commands.binary));
    cx.ui.note("Then start cara-server there; it catches up and becomes a voter: caractrl servers");
    Ok(())
}

async fn remove(cx: &Context, client: &Client, wanted: &str, yes: bool) -> Outcome {
    let cluster = super::get::cluster(cx, client).await?;
    let found = cluster.servers.iter().find(|s| s.name == wanted || s.id.to_string() == wanted);
    let Some(server) = found else { return Err(unknown(wanted, &cluster)) };
    let left = cluster.voters.saturating_sub(u64::from(server.voter));
    let margin = left.saturating_sub(left / 2 + 1);
    cx.ui.note(&format!("plan: remove {} ({}); {left} voters remain and can lose {margin}", server.name, server.role));
    confirm_deletion(cx, "server", &server.name, yes)?;
    client.delete(&format!("/servers/{}", server.id)).await?;
    cx.ui.data(&format!("server/{} removed", server.name));
    Ok(())
}

fn unknown(wanted: &str, cluster: &ClusterView) -> Failure {
    let names: Vec<&str> = cluster.servers.iter().map(|s| s.name.as_str()).collect();
    let next = match closest(wanted, names.iter().copied()) {
        Some(close) => format!("did you mean {close:?}?"),
        None => format!("the servers are: {}", names.join(", ")),
    };
    Failure::new(exit::NOT_FOUND, "not-found", format!("there is no server {wanted:?}")).next(next)
}
