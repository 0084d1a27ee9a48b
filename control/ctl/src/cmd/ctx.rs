//! `ctx`: saved clusters.

use serde_json::json;

use super::{Context, variable};
use crate::access::{self, Wanted, no_context};
use crate::cli::CtxCommand;
use crate::client::Client;
use crate::config::{self, Config};
use crate::failure::{Failure, Outcome};
use crate::out::Table;

pub(super) fn run(cx: &Context, command: Option<CtxCommand>) -> Outcome {
    let path = cx.config_path()?;
    let files = &*cx.env.files;
    let mut config = config::load(files, &path)?;
    let said = match command.unwrap_or(CtxCommand::List) {
        CtxCommand::List => return list(cx, &config),
        CtxCommand::Use { name } => {
            if !config.contexts.contains_key(&name) {
                return Err(no_context(&name, &config));
            }
            config.current.clone_from(&name);
            format!("context {name} is in use")
        }
        CtxCommand::Set { name } => {
            set(cx, &mut config, &name)?;
            format!("context {name} saved in {} and in use", path.display())
        }
        CtxCommand::Remove { name } => {
            if config.contexts.remove(&name).is_none() {
                return Err(no_context(&name, &config));
            }
            if config.current == name {
                config.current.clear();
            }
            format!("context {name} removed")
        }
    };
    config::save(files, &path, &config)?;
    cx.ui.data(&said);
    Ok(())
}

/// Takes what flags and variables say; the rest stays as it was in this context.
fn set(cx: &Context, config: &mut Config, name: &str) -> Outcome {
    if name.is_empty() || name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Failure::usage(format!("{name:?} can't be the name of a context")));
    }
    config.contexts.entry(name.to_owned()).or_default();
    let wanted = Wanted { context: Some(name.to_owned()), ..cx.wanted() };
    let access = access::resolve(&wanted, &variable, config, &*cx.env.files)?;
    Client::new(&cx.env, &access)?; // Refuses what could never work.
    let context =
        config::Context { servers: access.servers, token: access.token, ca_fingerprint: access.ca_fingerprint };
    config.contexts.insert(name.to_owned(), context);
    name.clone_into(&mut config.current);
    Ok(())
}

fn list(cx: &Context, config: &Config) -> Outcome {
    if cx.ui.structured() {
        let contexts: Vec<_> = config
            .contexts
            .iter()
            .map(|(name, context)| json!({ "name": name, "current": *name == config.current, "servers": context.servers }))
            .collect();
        return cx.ui.value(&json!(contexts));
    }
    let mut table = Table::new(&["CURRENT", "NAME", "SERVERS", "TOKEN"]);
    for (name, context) in &config.contexts {
        let current = if *name == config.current { "*" } else { "" };
        let token = if context.token.is_empty() { "" } else { "saved" };
        table.row(vec![current.to_owned(), name.clone(), context.servers.join(","), token.to_owned()]);
    }
    if table.is_empty() && cx.ui.out_tty {
        cx.ui.note("There are no contexts. next: caractrl ctx set NAME --server ... --token ... --ca-fingerprint ...");
    }
    cx.ui.table(&table);
    Ok(())
}
